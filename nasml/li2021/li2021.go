// Package li2021 reproduces the figures, tables and theorems of Li, Khodak, Balcan, Talwalkar, "Geometry-Aware Gradient
// Algorithms for Neural Architecture Search", ICLR 2021 (GAEA). Its figures on NAS-Bench-201 share their searches.
package li2021

import (
	"cmp"
	"embed"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/bilevel"
	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/internal/forecast"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/search"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/supernet"
	"github.com/nasml/lab/plots"
)

const paper = "Li+ 2021"

var ofPaper = lab.Paper{ID: "li2021", Name: paper, Shipped: shippedRecords}

//go:embed records
var shippedRecords embed.FS

func means(lists [][]float64) []float64 { return study.Map(lists, mean) }

func mean(x []float64) (sum float64) {
	for _, v := range x {
		sum += v / float64(len(x))
	}
	return sum
}

// seriesOver is a series of each record over a value of that, a list a record.
func seriesOver(records []*runs.Record, series, value string) [][]float64 {
	return study.Map(records, func(r *runs.Record) []float64 {
		return study.Map(r.Series[series], func(v float64) float64 { return v / r.Values[value] })
	})
}

// everyRounding judges that no value is above 0 by more than rounding.
func everyRounding(c lab.Claim, values []float64, rounding float64) runs.Claim {
	judged := verdict.Every(c.Claim, values, rounding)
	judged.Paper, judged.Tolerance = 0, runs.Number(rounding)
	return judged
}

func logs(x []float64) []float64 { return study.Map(x, math.Log) }

// geometric is a curve on a log axis: the geometric mean of each list with its interval. A list that is empty or has a
// value that is not positive has no point.
func geometric(label string, xs []float64, lists [][]float64, confidence float64) plots.Series {
	var at []float64
	var means []runs.Summary
	for i, list := range lists {
		if m, err := runs.Summarize(logs(list), confidence); err == nil {
			at, means = append(at, xs[i]), append(means, m.Exp())
		}
	}
	return plots.Bars(label, at, means)
}

// finished are the finished searches of a row. The record of one that another process is running has no values yet.
func (f found) finished() []*runs.Record { return finishedOf(f.records) }

func finishedOf(records []*runs.Record) []*runs.Record {
	return slices.DeleteFunc(slices.Clone(records), func(r *runs.Record) bool {
		return r == nil || len(r.Values) == 0
	})
}

// column is the value of a series at an index, for each search of a row; a negative index counts from the end.
func (f found) column(series string, at int) (out []float64) {
	for _, r := range f.finished() {
		x := r.Series[series]
		i := at
		if at < 0 {
			i = len(x) + at
		}
		if i >= 0 && i < len(x) {
			out = append(out, x[i])
		}
	}
	return out
}

// values are series of records, as [found.band] takes them.
func values(series string) func(r *runs.Record) []float64 {
	return func(r *runs.Record) []float64 { return r.Series[series] }
}

// band is the mean over the searches of a row at every x that all of them have, with its interval, clipped by within. x
// nil: epochs from the start.
func (f found) band(
	confidence float64, label string, x []float64, of func(r *runs.Record) []float64,
	within func([]runs.Summary) []runs.Summary,
) plots.Series {
	means := within(summaries(study.Map(f.finished(), of), confidence))
	if x == nil {
		x = epochsFrom(0, len(means))
	}
	return plots.Band(label, x[:min(len(x), len(means))], means)
}

func epochsFrom(first, n int) (x []float64) {
	for e := range n {
		x = append(x, float64(first+e))
	}
	return x
}

// summaries are the means of curves with their intervals, at the places that all curves have.
func summaries(curves [][]float64, confidence float64) (means []runs.Summary) {
	for _, values := range study.Columns(curves) {
		if len(values) < len(curves) {
			break
		}
		s, err := runs.Summarize(values, confidence)
		if err != nil {
			panic(err) // the records hold finite numbers
		}
		means = append(means, s)
	}
	return means
}

// between clips intervals to the range of a quantity.
func between(lo, hi float64) func([]runs.Summary) []runs.Summary {
	return func(means []runs.Summary) []runs.Summary {
		return study.Map(means, func(s runs.Summary) runs.Summary { return s.Within(lo, hi) })
	}
}

// anywhere leaves intervals as they are.
var anywhere = between(math.Inf(-1), math.Inf(1))

// atMostUniform clips intervals of entropies to [0, the largest mean], which is the entropy of the uniform weights at
// the start.
func atMostUniform(entropies []runs.Summary) []runs.Summary {
	most := math.Inf(-1)
	for _, s := range entropies {
		most = max(most, s.Mean)
	}
	return between(0, most)(entropies)
}

// theta is θ after epoch e of a search, edge by edge.
func (f found) theta(r *runs.Record, e int) [][]float64 {
	return f.blocksAfter(r, e)[0]
}

func epochs(r *runs.Record) int { return int(r.Values["epochs"]) }

func arch(space supernet.Space, choice []int) (data.Arch201, error) {
	all := make([]int, len(choice))
	for e, o := range choice {
		if all[e] = slices.Index(data.Ops201[:], space.Ops[o]); all[e] < 0 {
			return data.Arch201{}, fmt.Errorf("the table knows no operation %q", space.Ops[o])
		}
	}
	return data.NewArch201(all)
}

// final is the architecture that a search found: at the epoch of the selection rule if the method reads it off θ and
// has validation images.
func (f found) final(r *runs.Record) (data.Arch201, error) {
	a, err := f.architecture(r)
	if err != nil {
		return data.Arch201{}, err
	}
	return arch(f.space, a.Code)
}

// architecture is final on any space.
func (f found) architecture(r *runs.Record) (search.Arch, error) {
	if f.selects() {
		epoch, err := f.selectedEpoch(r)
		if err != nil {
			return search.Arch{}, err
		}
		return f.opened.Discretize(f.blocksAfter(r, epoch))
	}
	return f.opened.Arch(study.Map(r.Series["final"], func(x float64) int { return int(x) }))
}

func (f found) selectedEpoch(r *runs.Record) (int, error) {
	epoch, err := search.SelectionRules[f.rule](&search.Curve{
		TrainLoss: make([]float64, epochs(r)), ValidAccuracy: r.Series["valid_accuracy"],
		Evaluated: r.Series["evaluated"], Supernet: r.Series["supernet"],
	})
	if err != nil {
		return 0, fmt.Errorf("search %s: %w", r.Key, err)
	}
	return epoch, nil
}

// numbers is the size of θ.
func (f found) numbers() (n int) {
	for _, b := range f.blocks {
		n += b.Rows * b.Options
	}
	return n
}

// blocksAfter is θ after an epoch, block by block.
func (f found) blocksAfter(r *runs.Record, epoch int) [][][]float64 {
	size := f.numbers()
	return search.Blocks(f.blocks, r.Series["theta"][epoch*size:(epoch+1)*size])
}

// selects reports whether the rule has a choice; else the search's own end counts.
func (f found) selects() bool {
	return f.rule != "" && f.rule != search.LastEpoch &&
		search.Methods[f.row.method()].Final == search.ByArgmax && f.settings.Bilevel.Level != bilevel.ERM
}

// accuracies are the table's accuracies of the current architecture after each epoch, from the first: at the start all
// operations tie.
func (f found) accuracies(r *runs.Record, column []float64) (out []float64, err error) {
	for e := 1; e <= epochs(r); e++ {
		a, err := arch(f.space, f.space.Argmax(f.theta(r, e)))
		if err != nil {
			return nil, err
		}
		out = append(out, column[a.Number()])
	}
	return out, nil
}

func (p SearchParams) searchedOn() string {
	if p.Folder != "" {
		return imagesOf(p.Examples, "photographs in "+filepath.Base(p.Folder))
	}
	return imagesOf(p.Examples, strings.ToUpper(string(p.Data)))
}

// synthetic reports whether the images are synthetic; the paper's curves are then not drawn.
func (p SearchParams) synthetic() bool { return p.Data == data.Synthetic && p.Folder == "" }

func (p SearchParams) titled(title string) string {
	if p.synthetic() {
		return strings.ReplaceAll(title, "on CIFAR-10", "on synthetic images")
	}
	return title
}

// searchCaption states the scale at which searches were run; params are the figure's.
func searchCaption(p SearchParams, all []found, params any) string {
	var parts []string
	if len(all) > 0 {
		s, cells := all[0].settings, "$N$ = %d"
		if all[0].oneShot.Name != "" {
			cells = "%d cells"
		}
		parts = append(parts, fmt.Sprintf("Searches on %s: $C$ = %d, "+cells+", %d×%d pixels, batch %d, %s, %s; %s.",
			p.searchedOn(), s.Channels, s.Cells, s.Image, s.Image, s.Batch, study.Counted(s.Epochs, "epoch"),
			study.Counted(p.Seeds, "seed"), settingNote(p.Data, p.Preset, params)))
	}
	for _, f := range all {
		if n := len(f.finished()); n < p.Seeds {
			parts = append(parts, fmt.Sprintf("%s: %d of %d searches were run.", f.short(), n, p.Seeds))
		}
	}
	return strings.Join(parts, " ")
}

func sayChanges(f *lab.Picture, rows []found) {
	lab.Changes(f, rows, func(f found) string { return f.row.named() }, func(f found) []string { return f.changes })
}

// settingNote says which data and settings were used, as the end of a sentence.
func settingNote(on data.Name, preset string, params any) string {
	note := strings.Trim(study.SettingNote(params), " .")
	note = strings.ToLower(note[:1]) + note[1:]
	if preset == "code" {
		note = "settings of the authors' code"
	}
	if on == data.Synthetic {
		note = "SYNTHETIC DATA, not the paper's; " + note
	}
	return note
}

// judged judges a claim on two rows seed by seed. Both rows must have all seeds, else values at the same index belong
// to different seeds.
func (p SearchParams) judged(c runs.Claim, a, b []float64, judge func(runs.Claim) runs.Claim) runs.Claim {
	if len(a) != p.Seeds || len(b) != p.Seeds {
		return verdict.NotRun(c, fmt.Sprintf("%d and %d of %d seeds", len(a), len(b), p.Seeds))
	}
	return judge(c)
}

func (p SearchParams) above(c lab.Claim, a, b []float64) runs.Claim {
	return p.judged(c.Claim, a, b, func(runs.Claim) runs.Claim { return c.Difference(a, b).Above(0) })
}

func (p SearchParams) below(c lab.Claim, a, b []float64) runs.Claim {
	return p.judged(c.Claim, a, b, func(runs.Claim) runs.Claim { return c.Difference(a, b).Below(0) })
}

// tabulated returns an error if the table lacks the architectures of the searches' spaces.
func (p SearchParams) tabulated(rows []string) error {
	for _, w := range rows {
		if err := tabulated(cmp.Or(row(w).space(), p.Space)); err != nil {
			return err
		}
	}
	return tabulated(p.Space)
}

// tabulated returns an error if the table lacks the architectures of a space.
func tabulated(name string) error {
	benchmark := supernet.Spaces["nasbench201"]
	space, ok := supernet.Spaces[name]
	if forecast.Kind(name) == "" { // that it is unknown is said elsewhere
		return nil
	}
	for _, op := range space.Ops {
		ok = ok && slices.Contains(benchmark.Ops, op)
		if _, named := supernet.Operations[op]; named && ok { // it may be a reader's by now
			key, err := supernet.OperationKey(op)
			ok = err == nil && key == op
		}
	}
	if !ok || !slices.Equal(space.Edges, benchmark.Edges) {
		return catalog.Usagef("the space is %q, whose architectures the table of NAS-Bench-201 does not have: "+
			"take its own space, or Figure 1", name)
	}
	return nil
}
