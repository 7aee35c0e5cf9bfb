package li2021

import (
	"context"
	"slices"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/search"
)

// line is a row of Table 2: for each data set the looked-up accuracies of all
// runs, in percent, or why there are none.
type line struct {
	name     string // of a tabular method, or a row
	title    string
	accuracy [3][]float64
	missing  [3]string
	paper    table2Row
	printed  bool      // the paper has this line
	seconds  []float64 // of each search on Data
	mark     string    // behind its numbers: "*" where they are of a reduced scale
	of       found     // of a group of searches, which is no line
}

func (l line) base() found { return l.of }

// lineOf is the line of a name in a block; an empty one if there is none.
func lineOf(block []line, name string) line {
	if i := slices.IndexFunc(block, func(l line) bool { return l.name == name }); i >= 0 {
		return block[i]
	}
	return line{name: name, title: row(name).title()}
}

// why says why a line has no accuracies in a column.
func (l line) why(i int) string {
	if l.missing[i] == "" || l.missing[i] == "not run" {
		return lacking
	}
	return l.missing[i]
}

const lacking = "the run store lacks it"

// directSets are the other data sets that the bottom block searches on, by
// their column. As on CIFAR-10, the training images are split in halves; the
// benchmark's authors used 5,000 test images of CIFAR-100 and 3,000 validation
// images of ImageNet16-120 for the architecture.
var directSets = [3]data.Name{1: data.CIFAR100, 2: data.ImageNet16}

// addSearches adds the searches, then the lines of the middle block, whose searches are on Data, and of the bottom
// block, whose are on the data set of the column.
func addSearches(ctx context.Context, r *table2, columns [3][]float64) error {
	p := r.Params
	var on [3][]found // nil: no data
	for i := range on {
		gs, err := p.searchesFor(ctx, r.Study().ID, i)
		if err != nil {
			return err
		}
		for _, g := range gs {
			on[i] = append(on[i], g.Trial.of)
		}
		r.Groups = append(r.Groups, gs...)
	}
	for _, b := range []struct {
		part      string
		rows      []string
		published map[row]table2Row
		on        [3][]found
	}{
		{"middle", p.Rows, publishedTransfer, [3][]found{on[0], on[0], on[0]}},
		{"bottom", p.Direct, publishedDirect, on},
	} {
		for _, w := range rowsNamed(b.rows) {
			l := line{name: string(w), title: w.title()}
			l.paper, l.printed = b.published[w]
			lines, err := p.lookUp(l, b.on, columns)
			if err != nil {
				return err
			}
			r.Groups.Add(b.part, 0, lines...)
		}
	}
	return nil
}

// searchesFor reads or runs the searches on the data set of a column: the first on Data, the others where it is there
// and the bottom block asks for it. Nothing is downloaded.
func (p Table2Params) searchesFor(ctx context.Context, title string, column int) (lab.Groups[line], error) {
	q, rows, part := p.SearchParams, p.searched(), searchPart
	if name := directSets[column]; name != "" {
		if len(p.Direct) == 0 || !present(name) {
			return nil, nil
		}
		q.Data, rows, part, title = name, p.Direct, "direct", title+" on "+string(name)
		if name == data.ImageNet16 {
			q.Image = 16 // all that it has
		}
	}
	gs, err := searchGroups(ctx, q, title, rows, func(f found) (line, error) {
		f.pick = p.pick(f.row)
		return line{name: string(f.row), of: f}, nil
	})
	for i := range gs {
		gs[i].Part = part
	}
	return gs, err
}

// present reports whether a data set is there with all that is needed to train.
func present(name data.Name) bool {
	files, err := data.Status(name)
	return err == nil && !slices.ContainsFunc(files, func(f data.FileStatus) bool {
		return f.State != data.Present && f.State != data.Incomplete
	})
}

// pick is the rule of a row.
func (p Table2Params) pick(w row) search.Pick {
	switch {
	case p.Pick != "":
		return search.Pick(p.Pick)
	case p.Preset == "code" && w.variant() != "benchmark":
		return search.PickAsCode(w.method())
	}
	return search.LastEpoch
}

// lookUp fills a line from the searches of each column and, where AlsoPick
// asks for it and the method leaves a choice, a second one below it.
func (p Table2Params) lookUp(l line, on [3][]found, columns [3][]float64) ([]line, error) {
	if p.reduced() {
		l.mark = "*"
	}
	also, lines := search.Pick(p.AlsoPick), []line{l}
	for _, f := range on[0] {
		if f.row != row(l.name) {
			continue
		}
		for _, record := range f.ran() {
			lines[0].seconds = append(lines[0].seconds, record.Seconds/float64(max(1, record.Batch)))
		}
		if f.pick = also; f.picks() || also == search.LastEpoch {
			lines = append(lines, line{name: l.name, title: l.title + ", " + search.PickTitles[also], mark: l.mark})
		}
	}
	for i, column := range columns {
		for n := range lines {
			if err := lines[n].fill(i, on[i], column, []search.Pick{"", also}[n]); err != nil {
				return nil, err
			}
		}
	}
	return lines, nil
}

// fill looks the architectures of a line's searches up in one column, by a rule where one is given.
func (l *line) fill(i int, all []found, column []float64, rule search.Pick) error {
	if l.missing[i] = "not run"; all == nil {
		l.missing[i] = "no data"
	}
	for _, f := range all {
		if f.row != row(l.name) {
			continue
		}
		if rule != "" {
			f.pick = rule
		}
		for _, record := range f.ran() {
			a, err := f.final(record)
			if err != nil {
				return err
			}
			l.accuracy[i] = append(l.accuracy[i], column[a.Number()])
		}
	}
	return nil
}
