package khodak2020

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/plots"
)

// Figure1Params are the parameters of Figure 1: accuracy of configurations
// with shared weights against their accuracy when trained by themselves.
type Figure1Params struct {
	TaskParams
	Configs int   // configurations
	Dims    []int // feature dimensions
}

// Figure1Paper is the setting of Appendix B.1; the dimensions are the authors'
// code's, which ran one seed.
var Figure1Paper = func() Figure1Params {
	p := Figure1Params{paperTasks, 32, []int{3125, 6250, 12500, 25000, 50000, 100000}}
	p.Tasks = []string{imageTask}
	return p
}()

// Figure1Quick has a twentieth of the images and smaller dimensions.
var Figure1Quick = func() Figure1Params {
	p := Figure1Params{quickTasks, 32, []int{32, 64, 128, 256, 512, 1024}}
	p.Tasks = []string{imageTask}
	p.ImageTrain, p.ImageValid, p.Seeds = 2048, 1024, 4
	return p
}()

// Figure1Large is what two cores manage in an hour or two: all images, and
// dimensions of which the last two are the paper's first two.
var Figure1Large = func() Figure1Params {
	p := Figure1Paper
	p.Dims, p.Seeds = []int{391, 781, 1563, 3125, 6250}, 5
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
		Cost:     catalog.Cost{Quick: "about a minute on two quiet cores; the project ships its trials", Paper: "weeks on two cores at 100,000 features: a GPU; all images with 6,250 features (Figure1Large) 15 minutes a seed, shipped"},
	}, Figure1Quick, Figure1Paper, Figure1)
}

// Figure1Result has a record for every task, dimension and seed.
type Figure1Result struct {
	Params Figure1Params
	Scale  string // "quick", "paper" or empty for own parameters
	tasks  []*opened
	found  map[string][][]*runs.Record // by task: a row a dimension, a record a seed
	all    []*runs.Record
}

// signalTrial is what a record of Figure 1 depends on besides its seed.
type signalTrial struct {
	taskTrial
	Configs int `json:"configs"`
	Dim     int `json:"dim"`
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
		o, err := p.open(ctx, task)
		if err != nil {
			return nil, err
		}
		defer o.close()
		if err := r.compute(ctx, o); err != nil {
			return nil, fmt.Errorf("figure 1, %s: %w", taskTitles[task], err)
		}
	}
	return r, nil
}

func (p Figure1Params) check() error {
	c := &checker{}
	p.TaskParams.check(c)
	c.expect(p.Configs >= 2, "Configs is %d, want at least 2: a correlation needs some", p.Configs)
	c.expect(len(p.Dims) > 0, "Dims is empty")
	for i, d := range p.Dims {
		c.expect(d >= 1 && !slices.Contains(p.Dims[:i], d), "Dims is %v, want different numbers from 1 on", p.Dims)
	}
	if c.err != nil {
		return catalog.Usagef("%v", c.err)
	}
	return nil
}

// compute reads or runs the trials of a task.
func (r *Figure1Result) compute(ctx context.Context, o *opened) error {
	p := r.Params
	code, err := o.code()
	if err != nil {
		return err
	}
	var trials []runs.Trial
	for _, d := range p.Dims {
		for _, seed := range runs.Seeds(p.Seeds) {
			trials = append(trials, runs.Trial{
				Figure: figure1ID, Params: signalTrial{p.trial(o.task), p.Configs, d}, Seed: seed, Code: code, Data: o.fingerprint,
			})
		}
	}
	records, err := o.sweepOf(figure1ID+" "+o.task, trials, p.Configs+1,
		func(ctx context.Context, t runs.Trial, step func(string)) (runs.Result, error) {
			return signal(ctx, o.problem(p.Configs, t.Seed), p.Configs, t.Params.(signalTrial).Dim, t.Seed, step)
		}).compute(ctx)
	if err != nil {
		return err
	}
	r.tasks, r.all = append(r.tasks, o), append(r.all, records...)
	for row := range slices.Chunk(records, p.Seeds) {
		r.found[o.task] = append(r.found[o.task], slices.DeleteFunc(slices.Clone(row), func(r *runs.Record) bool { return r == nil }))
	}
	return nil
}

// Records are the keys of the trials.
func (r *Figure1Result) Records() []string { return keysOf(r.all) }

// Figure draws a panel a dimension with one point a configuration (the first
// seed, as the paper's), and one with the rank correlations.
func (r *Figure1Result) Figure() plots.Figure {
	f := plots.Figure{Name: "khodak2020-figure1", Style: plots.ICML.Text(), Meta: meta(figure1Title, r.Scale, r.Params)}
	f.Caption = fmt.Sprintf("Each point is one of %d configurations, seed 0; grey: equal. Correlations over %d seeds, with %v %% intervals.", r.Params.Configs, r.Params.Seeds, 100*r.Params.Confidence)
	var panels []plots.Panel
	for _, o := range r.tasks {
		f.Caption += " " + o.sizesText() + "." + r.Params.paperText(o, slices.Max(r.Params.Dims), slices.Max(Figure1Paper.Dims))
		for i, d := range r.Params.Dims {
			if len(r.found[o.task][i]) > 0 {
				panels = append(panels, scatter(o.task, d, r.found[o.task][i][0]))
			}
		}
	}
	panels = append(panels, r.correlationPanel())
	for row := range slices.Chunk(panels, 3) {
		if row[0].Y.Label == "" {
			row[0].Y.Label = "standalone"
		}
		f.Panels = append(f.Panels, row)
	}
	return f
}

// scatter is one dimension's configurations.
func scatter(task string, d int, record *runs.Record) plots.Panel {
	p := plots.Panel{
		Title: fmt.Sprintf("%s, $d = %d$", taskTitles[task], d),
		X:     plots.Axis{Label: "shared weights"}, Legend: plots.Legend{Position: plots.LegendNone},
	}
	x, y := record.Series["shared"], record.Series["alone"]
	lo, hi := min(slices.Min(x), slices.Min(y)), max(slices.Max(x), slices.Max(y))
	p.Series = []plots.Series{
		{Label: "configurations", X: x, Y: y, Line: plots.NoLine, Marker: plots.Circle},
		{Label: "equal", X: []float64{lo, hi}, Y: []float64{lo, hi}, Reference: true},
	}
	return p
}

// correlationPanel is the rank correlation over the dimension.
func (r *Figure1Result) correlationPanel() plots.Panel {
	p := plots.Panel{
		Title: "rank correlation", X: plots.Axis{Label: "features $d$", Scale: plots.Log2}, Y: plots.Axis{Label: "Spearman's $ρ$", Min: -0.2, Max: 1.05},
		Legend: plots.Legend{Position: plots.LegendBelow},
	}
	for _, o := range r.tasks {
		for _, kind := range []struct{ label, series string }{{"whole validation set", "shared"}, {"own validation examples", "cell"}} {
			var x []float64
			var means []runs.Summary
			for i, d := range r.Params.Dims {
				s, err := runs.Summarize(r.correlations(o.task, i, kind.series), r.Params.Confidence)
				if err == nil {
					x, means = append(x, float64(d)), append(means, s)
				}
			}
			label := kind.label
			if len(r.tasks) > 1 {
				label = taskTitles[o.task] + ", " + label
			}
			p.Series = append(p.Series, plots.Bars(label, x, means))
		}
	}
	return p
}

// correlations is Spearman's ρ between standalone accuracy and a series, for
// every seed of a dimension. A seed in which one of them is constant has none.
func (r *Figure1Result) correlations(task string, dim int, series string) []float64 {
	var out []float64
	for _, record := range r.found[task][dim] {
		rho := spearman(record.Series[series], record.Series["alone"])
		if !math.IsNaN(rho) {
			out = append(out, rho)
		}
	}
	return out
}

// spearman is the rank correlation, equal values with their mean rank; NaN
// where one side is constant.
func spearman(x, y []float64) float64 { return stat.Correlation(ranks(x), ranks(y), nil) }

func ranks(x []float64) []float64 {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(x[a], x[b]) })
	out := make([]float64, len(x))
	for from := 0; from < len(order); {
		to := from
		for to < len(order) && x[order[to]] == x[order[from]] {
			to++
		}
		for _, i := range order[from:to] {
			out[i] = float64(from+to-1) / 2
		}
		from = to
	}
	return out
}

// strong is what we call a strong rank correlation; the paper gives no number.
const strong = 0.5

// Check judges what the paper says of Figure 1, task by task: a strong positive
// correlation, a stronger one at more features, and that the shared weights
// are much better under the best maps. It also says what a shared solve costs.
func (r *Figure1Result) Check() []runs.Claim {
	var claims []runs.Claim
	for _, o := range r.tasks {
		claims = append(claims, r.checkSignal(o.task), r.checkDims(o.task), r.checkBest(o.task), r.checkClock(o.task, "seconds"), r.checkClock(o.task, "madds"))
	}
	return claims
}

func (r *Figure1Result) claim(task, name string) runs.Claim {
	return runs.NewClaim(taskTitles[task]+": "+name, figure1Source)
}

func (r *Figure1Result) checkSignal(task string) runs.Claim {
	last := len(r.Params.Dims) - 1
	c := r.claim(task, fmt.Sprintf("figure1-correlation: strong rank correlation, at least %v, at d = %d", strong, r.Params.Dims[last]))
	c.Paper, c.Note = strong, "the paper prints no number: the border is ours; ours is Spearman's ρ on the whole validation set"
	s, err := runs.Summarize(r.correlations(task, last, "shared"), r.Params.Confidence)
	holds, fails := atLeast(strong)
	return judged(c, s, err, holds, fails)
}

func (r *Figure1Result) checkDims(task string) runs.Claim {
	first, last := 0, len(r.Params.Dims)-1
	c := r.claim(task, fmt.Sprintf("figure1-dims: stronger correlation at d = %d than at d = %d", r.Params.Dims[last], r.Params.Dims[first]))
	c.Paper, c.Note = 0, "ours is the difference of Spearman's ρ, paired by seed"
	a, b := r.correlations(task, last, "shared"), r.correlations(task, first, "shared")
	s, err := runs.MeanDiff(a, b, r.Params.Confidence)
	holds, fails := atLeast(0)
	return judged(c, s, err, holds, fails)
}

// checkBest compares, with shared weights, the maps of the upper and of the
// lower half by standalone accuracy.
func (r *Figure1Result) checkBest(task string) runs.Claim {
	last := len(r.Params.Dims) - 1
	c := r.claim(task, "alg1-best-maps: shared weights classify better under the better half of the maps")
	c.Paper, c.Note = 0, "ours is the difference of the mean accuracies with shared weights of the halves by standalone accuracy"
	var upper, lower []float64
	for _, record := range r.found[task][last] {
		alone, shared := record.Series["alone"], record.Series["shared"]
		order := make([]int, len(alone))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(alone[a], alone[b]) })
		var sums [2]float64
		half := len(order) / 2
		for i := range half {
			sums[0] += shared[order[i]] / float64(half)
			sums[1] += shared[order[len(order)-1-i]] / float64(half)
		}
		lower, upper = append(lower, sums[0]), append(upper, sums[1])
	}
	s, err := runs.MeanDiff(upper, lower, r.Params.Confidence)
	holds, fails := atLeast(0)
	return judged(c, s, err, holds, fails)
}

// checkClock compares a shared solve with the mean standalone one.
func (r *Figure1Result) checkClock(task, unit string) runs.Claim {
	last := len(r.Params.Dims) - 1
	c := r.claim(task, "wallclock: a shared solve is slower than the average standalone solve, ratio of "+map[string]string{"seconds": "seconds", "madds": "multiply-adds"}[unit])
	c.Paper, c.Note = 1, "times of the machine that computed the trials"
	var ratios []float64
	for _, record := range r.found[task][last] {
		ratios = append(ratios, record.Values[unit+"_shared"]/record.Values[unit+"_alone"])
	}
	s, err := runs.Summarize(ratios, r.Params.Confidence)
	holds, fails := atLeast(1)
	return judged(c, s, err, holds, fails)
}
