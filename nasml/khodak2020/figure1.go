package khodak2020

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/khodak2020/internal/mapsearch"
	"github.com/nasml/lab/nasml/rank"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/trial"
	"github.com/nasml/lab/nasml/verdict"
	"github.com/nasml/lab/plots"
)

// Figure1Params are the parameters of Figure 1: accuracy of configurations
// with shared weights against their accuracy when trained by themselves.
type Figure1Params struct {
	TaskParams
	Configs int   // configurations
	Dims    []int // feature dimensions
}

// Figure1Paper is the setting of Appendix B.1 on CIFAR-10: 32 configurations,
// 3,125 to 100,000 features, which are the authors' code's, and ten seeds, of
// which they ran one. 100,000 features take weeks on two cores: it wants a GPU,
// and was not run.
var Figure1Paper = func() Figure1Params {
	p := Figure1Params{paperTasks, 32, []int{3125, 6250, 12500, 25000, 50000, 100000}}
	p.Tasks = []string{mapsearch.ImageTask}
	return p
}()

// Figure1Quick has 2,048 training images, 32 to 1,024 features and four seeds:
// half a minute on two cores. Spearman's ρ at 1,024 features is 0.88 ± 0.12.
var Figure1Quick = func() Figure1Params {
	p := Figure1Params{quickTasks, 32, []int{32, 64, 128, 256, 512, 1024}}
	p.Tasks = []string{mapsearch.ImageTask}
	p.ImageTrain, p.ImageValid, p.Seeds = 2048, 1024, 4
	return p
}()

// Figure1Large has all training and validation images and five seeds, with 391
// to 6,250 features, of which the last two are the paper's first two: 25 minutes
// on two cores. Spearman's ρ at 6,250 features is 0.86 ± 0.02, no other than at
// 391; of the two thirds of the maps that do better than guessing it falls from 0.88
// to 0.73. A shared solve takes 2 % more multiply-adds than one by itself.
var Figure1Large = func() Figure1Params {
	p := Figure1Paper
	p.Dims, p.Seeds, p.ImageTest = []int{391, 781, 1563, 3125, 6250}, 5, 1000
	return p
}()

const (
	figure1ID     = "khodak2020/figure1"
	figure1Title  = "Validation accuracy of feature maps with shared weights and by themselves"
	figure1Source = "Khodak+ 2020, Figure 1 and Sec. 2"
)

func init() {
	catalog.Register(catalog.Entry{
		ID: figure1ID, Paper: "Khodak+ 2020", Title: figure1Title, Kind: "figure",
		Notebook: "notebooks/khodak2020/figure1_signal.ipynb",
		Cost: catalog.Cost{
			Quick: "half a minute on two cores; the project ships its trials",
			Paper: "weeks on two cores at 100,000 features: a GPU; --scale large, all images with up to 6,250 " +
				"features, 25 minutes on two cores; the project ships its trials",
		},
		Shipped: []catalog.Setting{{Scale: catalog.Quick}, {Scale: catalog.Large}}, Settings: figure1Settings,
	}, Figure1Quick, Figure1Paper, Figure1, catalog.Preset[Figure1Params]{Scale: catalog.Large, Params: Figure1Large})
}

// Figure1Result has a record for every task, dimension and seed.
type Figure1Result struct {
	Params Figure1Params
	Scale  string // "quick", "paper", "large" or empty for own parameters
	tasks  []*examples
	found  map[string][][]*runs.Record // by task: a row a dimension, a record a seed, nil where there is none
	all    []*runs.Record
}

// Figure1 computes what the run store lacks: one trial a task, dimension and
// seed. Cancelling ctx ends it, with the finished trials stored. It is a
// *catalog.UsageError where a parameter makes no sense, and an error where the
// data cannot be had.
func Figure1(ctx context.Context, p Figure1Params) (*Figure1Result, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	r := &Figure1Result{Params: p, Scale: runs.Scale(ctx), found: map[string][][]*runs.Record{}}
	for _, task := range p.Tasks {
		e, err := p.open(ctx, task)
		if err != nil {
			return nil, err
		}
		defer e.close()
		records, err := e.study(figure1ID).Run(ctx, p.cases(e))
		if err != nil {
			return nil, err
		}
		r.tasks, r.all = append(r.tasks, e), append(r.all, records...)
		r.found[task] = slices.Collect(slices.Chunk(records, p.Seeds))
	}
	return r, nil
}

func (p Figure1Params) check() error {
	c := new(study.Checks)
	p.TaskParams.check(c)
	c.Expect(p.Configs >= 2, "Configs is %d, want at least 2: a correlation needs some", p.Configs)
	study.Distinct(c, "Dims", p.Dims, 1)
	for _, d := range p.Dims {
		c.AtLeast("Dims", d, 1)
	}
	return c.Err("Figure 1")
}

func (p Figure1Params) signal(task string, d int) mapsearch.Signal {
	return mapsearch.Signal{Setting: p.setting(task), Configs: p.Configs, Dim: d}
}

// cases are the trials of a task: a signal for every dimension and seed.
func (p Figure1Params) cases(e *examples) []study.Case {
	var cases []study.Case
	for _, d := range p.Dims {
		signal := p.signal(e.task, d)
		cases = append(cases, study.Each(p.Seeds, func(seed uint64) study.Case {
			return study.Case{
				Params: signal, Data: e.fingerprint, Units: signal.Calls(),
				Label: fmt.Sprintf("%s, d = %d", e.title(), d),
				Run: func(ctx context.Context, step study.Step) (trial.Result, error) {
					maps, err := e.load()
					if err != nil {
						return trial.Result{}, err
					}
					return signal.Run(ctx, maps, seed, func(note string) { step(1, note) })
				},
			}
		})...)
	}
	return cases
}

// Records are the keys of the trials.
func (r *Figure1Result) Records() []string { return study.Keys(r.all) }

// Figure draws a panel a dimension with one point a configuration (the first
// seed, as the paper's), its colour the kernel and its marker the bandwidth, and one
// with the rank correlations.
func (r *Figure1Result) Figure() plots.Figure {
	style := plots.ICML.Text()
	style.Aspect = 1 // both axes are accuracies
	f := plots.Figure{
		Name: "khodak2020-figure1", Style: style, Meta: study.Meta(figure1Title, r.Scale, r.Params),
	}
	f.Caption = fmt.Sprintf("Validation accuracy of %d configurations, seed 0; dashed: equal. Correlations over %d "+
		"seeds with %v %% intervals: of all maps on the whole validation set and on each map's own part of it, and of "+
		"those above chance on the whole.", r.Params.Configs, r.Params.Seeds, 100*r.Params.Confidence)
	var panels []plots.Panel
	for _, e := range r.tasks {
		f.Caption += " " + lookNotes[e.task] + ", in thirds of its logarithmic range."
		f.Caption += e.caption("", slices.Max(r.Params.Dims), slices.Max(Figure1Paper.Dims))
		for i, d := range r.Params.Dims {
			row := r.found[e.task][i]
			if first := slices.IndexFunc(row, func(r *runs.Record) bool { return r != nil }); first >= 0 {
				maps := r.Params.signal(e.task, d).Maps(row[first].Trial.Seed)
				panels = append(panels, scatter(e.task, e.title(), d, row[first], maps))
			}
		}
	}
	f.Caption += study.SettingNote(r.Params)
	panels = append(panels, r.correlationPanel())
	for row := range slices.Chunk(panels, 3) {
		if row[0].Y.Label == "" {
			row[0].Y.Label = "accuracy, standalone"
		}
		f.Panels = append(f.Panels, row)
	}
	return f
}

// kindLooks are the kinds of maps of a task, in the order of the legend, scaleNames
// what the number of [mapsearch.Map] is, and lookNotes both in words.
var (
	kindLooks = map[string][]struct{ kind, label, color string }{
		mapsearch.ImageTask:  {{"gaussian", "Gaussian", "#0072B2"}, {"laplacian", "Laplacian", "#D55E00"}},
		mapsearch.ReviewTask: {{"nb", "NB", "#009E73"}, {"sif", "SIF", "#CC79A7"}},
	}
	scaleNames = map[string]string{mapsearch.ImageTask: "γ", mapsearch.ReviewTask: "α"}
	lookNotes  = map[string]string{
		mapsearch.ImageTask:  "Colour: kernel of the map; marker: its bandwidth $γ$",
		mapsearch.ReviewTask: "Colour: weighting of the map; marker: its $α$",
	}
)

// scaleRanges are equal thirds of the range that the scale is drawn from, on its
// logarithmic axis: 10⁻⁵ to 10⁻³, to 10⁻¹, to 10.
var scaleRanges = []struct {
	label  string // behind the name of the scale
	below  float64
	marker plots.Marker
}{
	{"< 10^{-3}", 1e-3, plots.TriangleDown}, {"< 10^{-1}", 1e-1, plots.Circle},
	{"≤ 10", math.Inf(1), plots.TriangleUp},
}

// scatter is one dimension's configurations.
func scatter(task, title string, d int, record *runs.Record, maps []mapsearch.Map) plots.Panel {
	p := plots.Panel{
		Title: fmt.Sprintf("%s, $d = %d$", title, d),
		X:     plots.Axis{Label: "accuracy, shared weights"},
	}
	x, y := record.Series["shared"], record.Series["alone"]
	p.X.Max = 1.05 * max(slices.Max(x), slices.Max(y))
	p.Y.Max = p.X.Max // the same scale on both, so that the diagonal is one
	for _, look := range kindLooks[task] {
		from := 0.
		for _, scale := range scaleRanges {
			s := plots.Series{
				Label: fmt.Sprintf("%s, $%s %s$", look.label, scaleNames[task], scale.label), Color: look.color,
				Line: plots.NoLine, Marker: scale.marker,
			}
			for i, m := range maps {
				if m.Kind == look.kind && from <= m.Scale && m.Scale < scale.below {
					s.X, s.Y = append(s.X, x[i]), append(s.Y, y[i])
				}
			}
			if from = scale.below; len(s.X) > 0 {
				p.Series = append(p.Series, s)
			}
		}
	}
	p.Series = append(p.Series, plots.Series{
		X: []float64{0, p.X.Max}, Y: []float64{0, p.X.Max}, Reference: true, Line: plots.Dashed,
	})
	return p
}

// correlationPanel is the rank correlation over the dimension.
func (r *Figure1Result) correlationPanel() plots.Panel {
	p := plots.Panel{
		Title: "rank correlation", X: plots.Axis{Label: "features $d$", Scale: plots.Log2},
		Y:      plots.Axis{Label: "Spearman's $ρ$", Min: -1, Max: 1}, // with room for a legend
		Legend: plots.Legend{Position: plots.LegendInside},
	}
	for _, e := range r.tasks {
		for _, kind := range []struct{ label, series string }{
			{"all maps", "shared"}, {"own part", "cell"}, {"above chance", "above"},
		} {
			var x []float64
			var means []runs.Summary
			for i, d := range r.Params.Dims {
				s, err := verdict.Correlations(known(r.correlations(e, i, kind.series)), r.Params.Confidence)
				if err == nil {
					x, means = append(x, float64(d)), append(means, s)
				}
			}
			label := kind.label
			if len(r.tasks) > 1 {
				label = e.title() + ", " + label
			}
			p.Series = append(p.Series, plots.Bars(label, x, means))
		}
	}
	return p
}

// correlations is Spearman's ρ between standalone accuracy and a series, for
// every seed of a dimension: NaN where one of them is constant. The series "above"
// is "shared" of the maps that are above chance by themselves.
func (r *Figure1Result) correlations(e *examples, dim int, series string) []float64 {
	border := e.chance()
	return bySeed(r.found[e.task][dim], func(r *runs.Record) float64 {
		x, y := r.Series[series], r.Series["alone"]
		if series == "above" {
			x, y = aboveChance(r, border)
		}
		return spearman(x, y)
	})
}

// classes of a task, which are about equally frequent.
var classes = map[string]float64{mapsearch.ImageTask: 10, mapsearch.ReviewTask: 2}

// chance is the accuracy up to which a map counts as guessing: that of guessing, 1/k,
// and four standard errors on n validation examples, 4·√((1/k)(1−1/k)/n).
func (e *examples) chance() float64 {
	guess := 1 / classes[e.task]
	return guess + 4*math.Sqrt(guess*(1-guess)/float64(e.sizes[1]))
}

// aboveChance are the accuracies with shared weights and alone of the maps that by
// themselves do better than guessing.
func aboveChance(r *runs.Record, border float64) (shared, alone []float64) {
	for i, a := range r.Series["alone"] {
		if a > border {
			shared, alone = append(shared, r.Series["shared"][i]), append(alone, a)
		}
	}
	return shared, alone
}

// spearman is the rank correlation; NaN where there is none, as where one side is
// constant.
func spearman(x, y []float64) float64 {
	rho, err := rank.SpearmanRho(x, y)
	if err != nil {
		return math.NaN()
	}
	return rho
}

// ascending are the places of x in ascending order of its values, equal ones as
// they stand.
func ascending(x []float64) []int {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(x[a], x[b]) })
	return order
}

// strong is what we call a strong rank correlation; the paper gives no number.
const strong = 0.5

// Check judges what the paper says of Figure 1, task by task: a strong positive
// correlation and a stronger one at more features, of all maps and of those above
// chance, because the maps that guess are a cluster that makes a correlation by
// itself; and that the shared weights are much better under the best maps. It also
// says what a shared solve costs.
func (r *Figure1Result) Check() []runs.Claim {
	var claims []runs.Claim
	for _, e := range r.tasks {
		for _, maps := range []struct{ series, which string }{{"shared", ""}, {"above", ", maps above chance"}} {
			claims = append(claims,
				r.checkSignal(e, maps.series, maps.which), r.checkDims(e, maps.series, maps.which))
		}
		claims = append(claims, r.checkBest(e.task),
			r.checkCost(e.task, "seconds", "seconds"), r.checkCost(e.task, "madds", "multiply-adds"))
	}
	return claims
}

// confidence is that of each claim: every one is made of every task.
func (r *Figure1Result) confidence() float64 {
	return verdict.Family(r.Params.Confidence, len(r.tasks))
}

func (r *Figure1Result) claim(task, name string) runs.Claim {
	return ofTask(r.Params.title(task), verdict.Claim(name, figure1Source))
}

// last is the number of the last dimension, and its records.
func (r *Figure1Result) last(task string) (dim int, records []*runs.Record) {
	dim = len(r.Params.Dims) - 1
	return dim, r.found[task][dim]
}

func (r *Figure1Result) checkSignal(e *examples, series, which string) runs.Claim {
	last, _ := r.last(e.task)
	c := r.claim(e.task, fmt.Sprintf("[figure1-correlation abstract-signal] strong rank correlation, "+
		"at least %v, at d = %d%s",
		strong, r.Params.Dims[last], which))
	c.Paper = strong
	c.Note = "the paper prints no number: the border is ours; ours is Spearman's ρ on the whole validation set, with " +
		"an interval over seeds on Fisher's scale" + r.guessing(e, last, series)
	s, err := verdict.Correlations(known(r.correlations(e, last, series)), r.confidence())
	return verdict.AtLeast(c, s, err, strong)
}

// guessing says, for those above chance, how many maps they are.
func (r *Figure1Result) guessing(e *examples, dim int, series string) string {
	if series != "above" {
		return ""
	}
	border := e.chance()
	counts := known(bySeed(r.found[e.task][dim], func(r *runs.Record) float64 {
		_, alone := aboveChance(r, border)
		return float64(len(alone))
	}))
	if len(counts) == 0 {
		return ""
	}
	return fmt.Sprintf("; %.0f to %.0f of %d maps are above %.3f by themselves", slices.Min(counts), slices.Max(counts),
		r.Params.Configs, border)
}

func (r *Figure1Result) checkDims(e *examples, series, which string) runs.Claim {
	last, _ := r.last(e.task)
	c := r.claim(e.task, fmt.Sprintf("own: stronger correlation at d = %d than at d = %d%s",
		r.Params.Dims[last], r.Params.Dims[0], which))
	more, fewer := pairs(r.correlations(e, last, series), r.correlations(e, 0, series))
	c.Note = "ours is the difference of atanh ρ, Fisher's scale, paired by seed"
	if len(more) > 0 {
		c.Note += fmt.Sprintf("; mean ρ %.3f and %.3f", stat.Mean(more, nil), stat.Mean(fewer, nil))
	}
	after, err := verdict.Fisher(more)
	before, also := verdict.Fisher(fewer)
	if err := errors.Join(err, also); err != nil {
		return verdict.NotRun(c, err.Error())
	}
	return verdict.Greater(c, after, before, r.confidence())
}

// checkBest compares, with shared weights, the maps of the upper and of the
// lower half by standalone accuracy.
func (r *Figure1Result) checkBest(task string) runs.Claim {
	_, records := r.last(task)
	c := r.claim(task, "[alg1-best-maps] shared weights classify better under the better half of the maps")
	c.Note = "ours is the difference of the mean accuracies with shared weights of the halves by standalone accuracy"
	half := func(upper bool) []float64 {
		return known(bySeed(records, func(record *runs.Record) float64 {
			order := ascending(record.Series["alone"])
			if upper {
				slices.Reverse(order)
			}
			sum, n := 0.0, len(order)/2
			for _, i := range order[:n] {
				sum += record.Series["shared"][i] / float64(n)
			}
			return sum
		}))
	}
	return verdict.Greater(c, half(true), half(false), r.confidence())
}

// checkCost compares a shared solve with the mean standalone one.
func (r *Figure1Result) checkCost(task, value, unit string) runs.Claim {
	_, records := r.last(task)
	c := r.claim(task, "[wallclock] a shared solve is slower than the average standalone solve, ratio of "+unit)
	c.Paper, c.Note = 1, "geometric mean over the seeds; times of the machine that computed the trials"
	ratios := bySeed(records, func(r *runs.Record) float64 {
		return r.Values[value+"_shared"] / r.Values[value+"_alone"]
	})
	s, err := verdict.Ratios(known(ratios), r.confidence())
	return verdict.AtLeast(c, s, err, 1)
}
