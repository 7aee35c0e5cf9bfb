package khodak2020

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/internal/rank"
	"github.com/nasml/lab/nasml/khodak2020/internal/mapsearch"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/plots"
)

// Figure1Params are the parameters of Figure 1: accuracy of configurations
// with shared weights against their accuracy when trained by themselves.
type Figure1Params struct {
	TaskParams
	Configs int   `validate:"gte=2"`                   // configurations: a correlation needs some
	Dims    []int `validate:"min=1,unique,dive,gte=1"` // feature dimensions
}

// Figure1Paper is the setting of Appendix B.1 on CIFAR-10: 32 configurations and 3,125 to 100,000 features, as in the
// authors' code, and ten seeds, of which they ran one. Its first three dimensions were run, with five seeds.
var Figure1Paper = func() Figure1Params {
	p := Figure1Params{paperTasks, 32, []int{3125, 6250, 12500, 25000, 50000, 100000}}
	p.Tasks = []string{mapsearch.ImageTask}
	return p
}()

// Figure1Quick has 2,048 training images, 32 to 1,024 features and four seeds: one to two minutes on two cores.
var Figure1Quick = func() Figure1Params {
	p := Figure1Params{quickTasks, 32, []int{32, 64, 128, 256, 512, 1024}}
	p.Tasks = []string{mapsearch.ImageTask}
	p.ImageTrain, p.ImageValid, p.Seeds = 2048, 1024, 4
	return p
}()

// Figure1Large has all training and validation images and five seeds, with 391 to 6,250
// features, of which the last two are the paper's first two: an hour on two cores.
var Figure1Large = func() Figure1Params {
	p := Figure1Paper
	p.Dims, p.Seeds, p.ImageTest = []int{391, 781, 1563, 3125, 6250}, 5, 1000
	return p
}()

// Figure1 trains configurations with shared weights and by themselves: one trial a task, dimension and seed.
var Figure1 = lab.Declare(lab.Entry[Figure1Params, mapsearch.Signal]{
	Of: paper, Name: "figure1", Kind: lab.Figure, Source: figure1Source, Notebook: "figure1_signal",
	Title: "Validation accuracy of feature maps with shared weights and by themselves",
	Cost: catalog.Cost{
		Quick: "one to two minutes on two cores; precomputed",
		Paper: "6 hours a seed on two cores (forecast) with KeepGB=16 and 20 GiB of memory; up to 12,500 features " +
			"half an hour a seed; precomputed",
	},
	Quick: Figure1Quick, Paper: Figure1Paper,
	Also: []catalog.Preset[Figure1Params]{{Scale: catalog.Large, Params: Figure1Large}},
	Shipped: []catalog.Setting{
		{Scale: catalog.Paper, Set: []string{"Dims=3125,6250,12500", "Seeds=5", "ImageTest=1000"}},
	},
	Settings: figure1Settings,
	Note:     study.SettingNote, Rules: func(p Figure1Params, c *study.Checks) { p.rules(c) },
	Trials: func(p Figure1Params) (gs lab.Groups[mapsearch.Signal]) {
		for _, task := range p.Tasks {
			for _, d := range p.Dims {
				gs.Add(task, p.Seeds, mapsearch.Signal{Setting: p.setting(task), Configs: p.Configs, Dim: d})
			}
		}
		return gs
	},
	By: taskOf[mapsearch.Signal],
	Bench: func(ctx context.Context, p Figure1Params, task string) (lab.Bench[mapsearch.Signal], error) {
		size := func(t mapsearch.Signal) string { return fmt.Sprintf("d = %d", t.Dim) }
		return taskBench(ctx, p.TaskParams, task, size)
	},
	Draw:   drawSignal,
	Claims: judgeSignals,
})

const figure1Source = "Figure 1 and Sec. 2"

type figure1 = lab.Result[Figure1Params, mapsearch.Signal]

func signalRecords(r *figure1, task string, d int) []*runs.Record {
	return r.Part(task).Where(func(t mapsearch.Signal) bool { return t.Dim == d }).Records()
}

// strong is what we call a strong rank correlation; the paper gives no number.
const strong = 0.5

// judgeSignals judges what the paper says of Figure 1, task by task: a strong positive correlation and a stronger one
// at more features, of all maps and of those above chance, because the maps that guess are a cluster that makes a
// correlation by itself; and that the shared weights are much better under the best maps. It also says what a shared
// solve costs.
func judgeSignals(r *figure1) []runs.Claim {
	var claims []runs.Claim
	for _, task := range r.Params.Tasks {
		for _, maps := range []struct{ series, which string }{{"shared", ""}, {"above", ", maps above chance"}} {
			claims = append(claims,
				judgeSignal(r, task, maps.series, maps.which), judgeDims(r, task, maps.series, maps.which))
		}
		claims = append(claims, judgeBest(r, task), judgeCost(r, task, "seconds", "seconds"),
			judgeCost(r, task, "madds", "multiply-adds"))
	}
	return claims
}

func (p Figure1Params) ends() (first, last int) { return p.Dims[0], p.Dims[len(p.Dims)-1] }

func judgeSignal(r *figure1, task, series, which string) runs.Claim {
	_, last := r.Params.ends()
	c := taskClaim(r, task, "[figure1-correlation abstract-signal] strong rank correlation, at least %v, at d = %d%s",
		strong, last, which).Says(strong).Noting("the paper prints no number: the border is ours; ours is Spearman's "+
		"ρ on the whole validation set, with an interval over seeds on Fisher's scale%s",
		guessing(r, task, last, series))
	return c.Of(verdict.Correlations(present(correlations(r, task, last, series)), c.Confidence)).AtLeast(strong)
}

// guessing says, for those above chance, how many maps they are.
func guessing(r *figure1, task string, d int, series string) string {
	if series != "above" {
		return ""
	}
	border := examplesOf(r, task).chance()
	counts := present(bySeed(signalRecords(r, task, d), func(r *runs.Record) float64 {
		_, alone := aboveChance(r, border)
		return float64(len(alone))
	}))
	if len(counts) == 0 {
		return ""
	}
	return fmt.Sprintf("; %.0f to %.0f of %d maps are above %.3f by themselves", slices.Min(counts), slices.Max(counts),
		r.Params.Configs, border)
}

func judgeDims(r *figure1, task, series, which string) runs.Claim {
	first, last := r.Params.ends()
	more, fewer := completePairs(correlations(r, task, last, series), correlations(r, task, first, series))
	note := "ours is the difference of atanh ρ, Fisher's scale, paired by seed"
	if len(more) > 0 {
		note += fmt.Sprintf("; mean ρ %.3f and %.3f", stat.Mean(more, nil), stat.Mean(fewer, nil))
	}
	c := taskClaim(r, task, "own: stronger correlation at d = %d than at d = %d%s", last, first, which)
	c.Note = note
	after, err := verdict.Fisher(more)
	before, also := verdict.Fisher(fewer)
	if err := errors.Join(err, also); err != nil {
		return c.NotRun("%v", err)
	}
	return greater(c, after, before)
}

// judgeBest compares, with shared weights, the maps of the upper and of the lower half by standalone accuracy.
func judgeBest(r *figure1, task string) runs.Claim {
	_, last := r.Params.ends()
	half := func(upper bool) []float64 {
		return bySeed(signalRecords(r, task, last), func(record *runs.Record) float64 {
			order := make([]int, len(record.Series["alone"]))
			floats.ArgsortStable(slices.Clone(record.Series["alone"]), order)
			if upper {
				slices.Reverse(order)
			}
			sum, n := 0.0, len(order)/2
			for _, i := range order[:n] {
				sum += record.Series["shared"][i] / float64(n)
			}
			return sum
		})
	}
	c := taskClaim(r, task, "[alg1-best-maps] shared weights classify better under the better half of the maps")
	c.Note = "ours is the difference of the mean accuracies with shared weights of the halves by standalone accuracy"
	return greater(c, half(true), half(false))
}

func judgeCost(r *figure1, task, value, unit string) runs.Claim {
	_, last := r.Params.ends()
	ratios := bySeed(signalRecords(r, task, last), func(r *runs.Record) float64 {
		return r.Values[value+"_shared"] / r.Values[value+"_alone"]
	})
	const slower = "[wallclock] a shared solve is slower than the average standalone solve, ratio of %s"
	c := taskClaim(r, task, slower, unit).Says(1).
		Noting("geometric mean over the seeds; times of the machine that computed the trials")
	return c.Of(verdict.Ratios(present(ratios), c.Confidence)).AtLeast(1)
}

// correlations is Spearman's ρ between standalone accuracy and a series, for every seed of a dimension: NaN where one
// of them is constant. The series "above" is "shared" of the maps that are above chance by themselves.
func correlations(r *figure1, task string, d int, series string) []float64 {
	border := examplesOf(r, task).chance()
	return bySeed(signalRecords(r, task, d), func(r *runs.Record) float64 {
		x, y := r.Series[series], r.Series["alone"]
		if series == "above" {
			x, y = aboveChance(r, border)
		}
		rho, err := rank.SpearmanRho(x, y)
		if err != nil {
			return math.NaN()
		}
		return rho
	})
}

// aboveChance are the accuracies with shared weights and alone of the maps that by themselves do better than guessing.
func aboveChance(r *runs.Record, border float64) (shared, alone []float64) {
	for i, a := range r.Series["alone"] {
		if a > border {
			shared, alone = append(shared, r.Series["shared"][i]), append(alone, a)
		}
	}
	return shared, alone
}

// drawSignal draws a panel a dimension with one point a configuration (the first seed, as the paper's), its colour the
// kernel and its marker the bandwidth, and one with the rank correlations.
func drawSignal(r *figure1, f *lab.Picture) {
	f.Style.Aspect = 1 // both axes are accuracies
	f.Say("Validation accuracy of %d configurations with shared weights and alone (seed 0; dashed: equal), and their "+
		"rank correlations: of all maps, of all on their own part of the validation set, and of those above "+
		"chance; %s.",
		r.Params.Configs, r.Interval("bars", r.Params.Seeds, "seed"))
	var setting []string
	var panels []plots.Panel
	for _, task := range r.Params.Tasks {
		setting = append(setting, examplesOf(r, task).caption("", slices.Max(r.Params.Dims),
			slices.Max(Figure1Paper.Dims)))
		for _, g := range r.Part(task) {
			if at := slices.IndexFunc(g.Records, func(r *runs.Record) bool { return r != nil }); at >= 0 {
				first := g.Records[at]
				p := scatter(task, first, g.Trial.Maps(first.Trial.Seed))
				p.Title = fmt.Sprintf("%s, $d = %d$", r.Params.title(task), g.Trial.Dim)
				panels = append(panels, p)
			}
		}
	}
	f.Say("%s.", strings.Join(setting, "; "))
	for row := range slices.Chunk(append(panels, correlationPanel(r)), 3) {
		if row[0].Y.Label == "" {
			row[0].Y.Label = "accuracy, standalone"
		}
		f.Row(row...)
	}
}

// kindLooks are the kinds of maps of a task, in the order of the legend, scaleNames
// what the number of [mapsearch.Map] is.
var (
	kindLooks = map[string][]struct{ kind, label, color string }{
		mapsearch.ImageTask:  {{"gaussian", "Gaussian", "#0072B2"}, {"laplacian", "Laplacian", "#D55E00"}},
		mapsearch.ReviewTask: {{"nb", "NB", "#009E73"}, {"sif", "SIF", "#CC79A7"}},
	}
	scaleNames = map[string]string{mapsearch.ImageTask: "γ", mapsearch.ReviewTask: "α"}
)

// scaleRanges are equal thirds of the range that the scale is drawn from, on its
// logarithmic axis: 10⁻⁵ to 10⁻³, to 10⁻¹, to 10.
var scaleRanges = []struct {
	label  string // behind the name of the scale
	below  float64
	marker plots.Marker
}{{"< 10^{-3}", 1e-3, plots.TriangleDown}, {"< 10^{-1}", 1e-1, plots.Circle}, {"≤ 10", math.Inf(1), plots.TriangleUp}}

func scatter(task string, record *runs.Record, maps []mapsearch.Map) plots.Panel {
	p := plots.Panel{X: plots.Axis{Label: "accuracy, shared weights"}}
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

func correlationPanel(r *figure1) plots.Panel {
	p := plots.Panel{
		Title: "rank correlation", X: plots.Axis{Label: "features $d$", Scale: plots.Log2},
		Y:      plots.Axis{Label: "Spearman's $ρ$", Min: -1, Max: 1}, // with room for a legend
		Legend: plots.Legend{Position: plots.LegendInside},
	}
	for _, task := range r.Params.Tasks {
		for _, kind := range []struct{ label, series string }{
			{"all maps", "shared"}, {"own part", "cell"}, {"above chance", "above"},
		} {
			x, means := means(study.Floats(r.Params.Dims), func(i int) (runs.Summary, error) {
				return verdict.Correlations(present(correlations(r, task, r.Params.Dims[i], kind.series)), r.Confidence)
			})
			label := kind.label
			if len(r.Params.Tasks) > 1 {
				label = r.Params.title(task) + ", " + label
			}
			p.Series = append(p.Series, plots.Bars(label, x, means))
		}
	}
	return p
}
