package li2021

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/internal/own"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/li2021/internal/tabular"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/search"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/trial"
)

// line is a row of Table 2: the looked-up accuracies of all runs for each data set, in percent, or why there are none.
type line struct {
	block, name string // name of a tabular method, or a row
	title       string
	accuracy    [3][]float64
	missing     [3]string
	paper       table2Row
	printed     bool      // the paper has this line
	seconds     []float64 // of each search on Data
	mark        string    // behind its numbers: "*" if they are of a reduced scale
}

// The blocks of the table.
const (
	topBlock       = "tabular"
	readingsBlock  = "readings" // of the settings of the top block
	middleBlock    = "middle"
	bottomBlock    = "bottom"
	referenceBlock = "reference"
)

// newLine is a line before it is looked up. A reading of settings has the paper's numbers of its method.
func newLine(block, name, title string) line {
	l := line{block: block, name: name, title: title}
	if block == readingsBlock {
		block = topBlock
	}
	l.paper, l.printed = publishedTables().Table2[block][name]
	return l
}

func lines(r *table2, block string) []line {
	all, _ := r.Facts["lines"].([]line)
	return slices.DeleteFunc(slices.Clone(all), func(l line) bool { return l.block != block })
}

func lineOf(block []line, name string) line {
	if i := slices.IndexFunc(block, func(l line) bool { return l.name == name }); i >= 0 {
		return block[i]
	}
	return line{name: name, title: row(name).title()}
}

func (l line) why(i int) string {
	if l.missing[i] == "" || l.missing[i] == "not run" {
		return lacking
	}
	return l.missing[i]
}

const lacking = "the run store lacks it"

// tabularCase is a line of the top block with its one trial, all runs of the method.
type tabularCase struct {
	line
	trial tabular.Trial
}

func runTabular(ctx context.Context, r *table2, table *data.NASBench201, columns [3][]float64) (all []line, err error) {
	gs, err := r.Params.tabularCases()
	if err != nil {
		return nil, err
	}
	b := lab.Bench[tabularCase]{
		Study: r.Study(),
		Key:   func(c tabularCase) any { return c.trial },
		Data:  func(tabularCase) string { return table.Fingerprint },
		Label: func(c tabularCase) string { return c.name },
		Units: func(c tabularCase) int { return c.trial.Runs },
		Run: func(ctx context.Context, c tabularCase, _ uint64, step study.Step) (trial.Result, error) {
			return c.trial.Run(ctx, table, func() { step(1, c.name) })
		},
	}
	b.Title = b.ID + ", top block"
	if err := b.Compute(ctx, gs); err != nil {
		return nil, err
	}
	for _, g := range gs {
		r.Groups = append(r.Groups, lab.Group[found]{Part: g.Part, Seeds: 1, Records: g.Records})
		all = append(all, g.Trial.lookUp(g.Records[0], columns))
	}
	return all, nil
}

func (p Table2Params) tabularCases() (gs lab.Groups[tabularCase], err error) {
	add := func(l line, s search.TabularSettings) {
		s.Budget = cmp.Or(p.Budget, s.Budget)
		s, keyErr := keyedTabular(l.name, s)
		err = cmp.Or(err, keyErr)
		gs.Add(l.block, 1, tabularCase{l, tabular.Trial{Settings: s, Runs: p.Runs}})
	}
	for _, method := range p.Tabular {
		add(newLine(topBlock, method, strings.ToUpper(method)), p.tabularSettings(method))
	}
	words := strings.NewReplacer(plusNoise, " and one trial a query", "one-trial", "one trial a query", "-", " ")
	for _, name := range p.Readings {
		variant, noisy := strings.CutSuffix(name, plusNoise)
		s := search.TabularVariants[variant]
		if noisy {
			s.SeedNoise = search.OneTrialNoise
		}
		_, what, _ := strings.Cut(name, "/") // "sample-3+one-trial"
		add(newLine(readingsBlock, s.Method, strings.ToUpper(s.Method)+", "+words.Replace(what)), s)
	}
	return gs, err
}

// plusNoise ends the name of a reading whose queries have the noise of one trial.
const plusNoise = "+one-trial"

func (p Table2Params) tabularSettings(method string) search.TabularSettings {
	for _, name := range slices.Backward(p.Variant) {
		if s := search.TabularVariants[name]; s.Method == method {
			return s
		}
	}
	if p.Settings == "code" {
		return search.TabularAsCode[method]
	}
	return search.TabularAsPaper[method]
}

// lookUp adds the accuracies of a record. Older ones have the architectures only.
func (c tabularCase) lookUp(record *runs.Record, columns [3][]float64) line {
	for i, column := range columns {
		if record == nil || record.Series == nil {
			c.missing[i] = "not run"
			continue
		}
		if c.accuracy[i] = record.Series[tabular.Accuracy[i]]; c.accuracy[i] == nil {
			for _, number := range record.Series["architecture"] {
				c.accuracy[i] = append(c.accuracy[i], column[int(number)])
			}
		}
	}
	return c.line
}

// directSets are the other data sets of the bottom block, by column. Training images are halved as on CIFAR-10; the
// benchmark's authors used 5,000 test images of CIFAR-100 and 3,000 validation images of ImageNet16-120 for θ.
var directSets = [3]data.Name{1: data.CIFAR100, 2: data.ImageNet16}

// runRows reads or runs the searches. Lines of the middle block are of the planned searches on Data; each column of the
// bottom block is of searches on its own data set, if that exists. Nothing is downloaded.
func runRows(
	ctx context.Context, r *table2, planned lab.Groups[found], columns [3][]float64,
) (all []line, err error) {
	p := r.Params
	var on [3][]found // nil: no data
	for i, name := range directSets {
		q, gs, part, title := p.SearchParams, planned, searchPart, r.Study().ID
		if name != "" {
			if len(p.Direct) == 0 || !present(name) {
				continue
			}
			q.Data, part, title = name, "direct", title+" on "+string(name)
			if name == data.ImageNet16 {
				q.Image = 16 // all that it has
			}
			if gs, err = q.plan(p.Direct); err != nil {
				return nil, err
			}
		}
		if err := q.search(ctx, title, gs); err != nil {
			return nil, err
		}
		for n := range gs {
			gs[n].Part, gs[n].Trial.rule = part, p.rule(gs[n].Trial.row)
		}
		on[i], r.Groups = gs.Trials(), append(r.Groups, gs...)
	}
	for _, block := range []string{middleBlock, bottomBlock} {
		from, rows := on, p.Direct
		if block == middleBlock {
			from, rows = [3][]found{on[0], on[0], on[0]}, p.Rows
		}
		for _, name := range rows {
			lines, err := p.lookUp(newLine(block, name, row(name).title()), from, columns)
			if err != nil {
				return nil, err
			}
			all = append(all, lines...)
		}
	}
	return all, nil
}

// present reports whether a data set has all that is needed to train.
func present(name data.Name) bool {
	files, err := data.Status(name)
	return err == nil && !slices.ContainsFunc(files, func(f data.FileStatus) bool {
		return f.State != data.Present && f.State != data.Incomplete
	})
}

func (p Table2Params) rule(w row) search.SelectionRule {
	switch {
	case p.Pick != "":
		return search.SelectionRule(p.Pick)
	case p.Preset == "code" && w.variant() != "benchmark":
		return search.RuleAsCode(w.method())
	}
	return search.LastEpoch
}

// lookUp fills a line from the searches of each column. If AlsoPick asks for it and the method leaves a choice, it adds
// a second line.
func (p Table2Params) lookUp(l line, on [3][]found, columns [3][]float64) ([]line, error) {
	if p.reduced() {
		l.mark = "*"
	}
	also, lines := search.SelectionRule(p.AlsoPick), []line{l}
	f, _ := rowIn(on[0], row(l.name))
	lines[0].seconds = f.seconds()
	if f.rule = also; f.selects() || also == search.LastEpoch {
		title := l.title + ", " + search.RuleTitles[also]
		lines = append(lines, line{block: l.block, name: l.name, title: title, mark: l.mark})
	}
	for i, column := range columns {
		for n := range lines {
			if err := lines[n].fill(i, on[i], column, []search.SelectionRule{"", also}[n]); err != nil {
				return nil, err
			}
		}
	}
	return lines, nil
}

func (f found) seconds() []float64 {
	return study.Map(f.finished(), func(r *runs.Record) float64 { return r.Seconds / float64(max(1, r.Batch)) })
}

// fill looks up the architectures of a line's searches in one column, by a rule if one is given.
func (l *line) fill(i int, all []found, column []float64, rule search.SelectionRule) error {
	if l.missing[i] = "not run"; all == nil {
		l.missing[i] = "no data"
	}
	f, _ := rowIn(all, row(l.name))
	f.rule = cmp.Or(rule, f.rule)
	for _, record := range f.finished() {
		a, err := f.final(record)
		if err != nil {
			return err
		}
		l.accuracy[i] = append(l.accuracy[i], column[a.Number()])
	}
	return nil
}

var shippedTabular = maps.Clone(search.TabularMethods)

// keyedTabular are settings with the method's name in the key of a trial: a custom method is keyed by what it does on a
// small benchmark and registered under that name, so that renaming it does not change its random stream. Without listed
// settings it has random search's budget. It returns an error if the method is not a function of its stream.
func keyedTabular(method string, s search.TabularSettings) (search.TabularSettings, error) {
	f := search.TabularMethods[method]
	if own.Same(f, shippedTabular[method]) {
		return s, nil
	}
	if s.Method == "" {
		s = search.TabularAsPaper["rs"]
	}
	s.Method = method
	name, err := probeTabular(f, s)
	if err != nil {
		return s, err
	}
	again, err := probeTabular(f, s)
	if err != nil {
		return s, err
	}
	if name != again {
		return s, fmt.Errorf("search.TabularMethods[%q] searches in another way when it is called again with the same "+
			"random stream: a trial with it could never be known by what it computes", method)
	}
	search.TabularMethods[name] = f
	s.Method = name
	return s, nil
}

// probeTabular names what a method does with two random streams on a benchmark of six edges with five operations.
func probeTabular(f search.Tabular, s search.TabularSettings) (string, error) {
	method := s.Method
	s.Budget, s.Method = probeQueries, "" // a second a query
	var runs []search.Trajectory
	for seed := range uint64(2) {
		found, err := f(context.Background(), smallBench{}, s, trial.RNG(seed, "probe"))
		if err != nil {
			return "", fmt.Errorf("search.TabularMethods[%q] cannot be run to find out what it does: %w", method, err)
		}
		runs = append(runs, found)
	}
	text, err := json.Marshal(runs)
	if err != nil {
		return "", fmt.Errorf("search.TabularMethods[%q]: %w", method, err)
	}
	return own.Text(string(text)), nil
}

const probeQueries = 60

type smallBench struct{}

func (smallBench) Groups() [][]int {
	edges := []int{5, 5, 5}
	return [][]int{edges[:1], edges[:2], edges}
}

func (smallBench) Query(arch []int) (accuracy, seconds float64, err error) {
	for edge, op := range arch {
		accuracy += float64((op*(edge+2)+3*edge)%7) * (1 + float64(edge)/10)
	}
	return accuracy, 1, nil
}
