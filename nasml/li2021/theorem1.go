package li2021

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/li2021/internal/algorithm1"
	"github.com/nasml/lab/nasml/li2021/internal/smoothnet"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/trial"
	"github.com/nasml/lab/plots"
)

// Theorem1Params are the parameters of Theorem 1: a small smooth supernet with proved constants, see NetParams, and
// target accuracies.
type Theorem1Params struct {
	NetParams
	// ε over Δ at the start, below 1, or there would be nothing to reach.
	Targets []float64 `validate:"min=2,ascending,dive,gt=0,lt=1"`
	// "random": Algorithm 1; "cyclic": w and θ in turn, as in practice.
	Orders []string `validate:"unique,dive,oneof=random cyclic"`
	// A control: a constant so far below T's 16 that the conclusion should fail; 0: no such case.
	Short    float64 `validate:"gte=0,lt=16"`
	Runs     int     `validate:"gte=1"` // independent runs on each problem
	Iterates int     `validate:"gte=1"` // random iterates of each run at which Δ is measured
	Seeds    int     `validate:"gte=2"` // problems: data, teacher and start

	Confidence float64 `validate:"gt=0.5,lt=1"` // of the intervals
}

// Theorem 1 names no problem; the presets differ in the smallest ε and the number of runs. In both, the theorem holds
// at every ε on every problem, and so does practice: blocks in turn and the last iterate.
var (
	// Theorem1Quick runs 4 problems at three ε down to 0.15 of the start's Δ, in about 6 s on two cores.
	Theorem1Quick = Theorem1Params{
		NetParams: smallNet, Targets: []float64{0.15, 0.3, 0.6}, Orders: []string{"random", "cyclic"}, Short: 0.0625,
		Runs: 6, Iterates: 16, Seeds: 4, Confidence: 0.95,
	}
	// Theorem1Paper runs 8 problems at five ε down to 0.03: about 20 minutes on two cores, precomputed. On the worst
	// problem Δ/ε is 0.23, and T would need a constant of 0.8 instead of 16.
	Theorem1Paper = Theorem1Params{
		NetParams: smallNet, Targets: []float64{0.03, 0.06, 0.12, 0.25, 0.5},
		Orders: []string{"random", "cyclic"}, Short: 0.0625, Runs: 12, Iterates: 32, Seeds: 8, Confidence: 0.95,
	}
)

// theorem1Constant is the constant of T.
const theorem1Constant = 16.0

// Theorem1 runs Algorithm 1 on small supernets with the theorem's own T and η,
//
//	T = ⌈16γF(G_w²+G_θ²)/ε²⌉ ,   η = √(4F/(γ(G_w²+G_θ²)T)) ,
//
// and measures Δ_{1/(2γ)} at random iterates and at the last one. γ, G_w and G_θ are proved bounds, not estimates.
var Theorem1 = lab.Declare(lab.Entry[Theorem1Params, algorithm1.Trial]{
	Of: ofPaper, Name: "theorem1", Kind: lab.Theorem, Source: "Theorem 1", Notebook: "theorem1_convergence",
	Title: "Block-stochastic mirror descent reaches ε-stationarity in O(1/ε²) steps",
	Cost:  catalog.Cost{Quick: "about 6 s on two cores", Paper: "about 20 minutes on two cores; precomputed"},
	Quick: Theorem1Quick, Paper: Theorem1Paper,
	Code: code.Define("li2021/theorem1", "li2021/internal/algorithm1"),
	Rules: func(p Theorem1Params, c *study.Checks) {
		checkNet(c, p.NetParams)
		c.Expect(slices.Contains(p.Orders, "random"),
			"Orders must include random, which the theorem is about, got %v", p.Orders)
	},
	Trials: Theorem1Params.trials,
	Units:  func(t algorithm1.Trial) int { return 1 + int(t.Constant*float64(t.Runs)/(t.Target*t.Target)) },
	Bench:  theorem1Bench,
	Draw:   drawTheorem1,
	Claims: judgeTheorem1,
})

type theorem1 = lab.Result[Theorem1Params, algorithm1.Trial]

func (p Theorem1Params) trials() (gs lab.Groups[algorithm1.Trial]) {
	add := func(part, order string, constant float64) {
		for _, target := range p.Targets {
			gs.Add(part, p.Seeds, algorithm1.Trial{
				Params: p.NetParams, Target: target, Order: order, Constant: constant, Runs: p.Runs,
				Iterates: p.Iterates,
			})
		}
	}
	for _, order := range p.Orders {
		add(order, order, theorem1Constant)
	}
	if p.Short > 0 {
		add("short", "random", p.Short)
	}
	return gs
}

func theorem1Bench(_ context.Context, p Theorem1Params, _ string) (lab.Bench[algorithm1.Trial], error) {
	problem := smoothnet.Problems(p.NetParams)
	return lab.Bench[algorithm1.Trial]{
		Label: func(t algorithm1.Trial) string { return fmt.Sprintf("%s blocks, ε = %v Δ(start)", t.Order, t.Target) },
		Run: func(ctx context.Context, t algorithm1.Trial, seed uint64, _ study.Step) (trial.Result, error) {
			s, err := problem(seed)
			if err != nil {
				return trial.Result{}, err
			}
			return t.Run(ctx, s, seed)
		},
	}, nil
}

// theorem1Variants are the curves: the part that is run, and which iterate is returned.
var theorem1Variants = []struct{ part, iterate, label string }{
	{"random", "random", "random block, random iterate (Algorithm 1)"},
	{"random", "last", "random block, last iterate"},
	{"cyclic", "random", "blocks in turn, random iterate"},
	{"cyclic", "last", "blocks in turn, last iterate (practice)"},
	{"short", "random", "Algorithm 1, $T$ too short (control)"},
}

// theorem1Problems are the numbers of steps and E Δ of Algorithm 1, a row a problem, over ε.
func theorem1Problems(r *theorem1) (steps, delta [][]float64) {
	gs := r.Part("random")
	delta = study.Map(gs, func(g lab.Group[algorithm1.Trial]) []float64 {
		return means(study.Rows(g.Records, "random"))
	})
	return study.Columns(gs.Lists("steps")), study.Columns(delta)
}

// drawTheorem1 draws, on the left, the stationarity reached over that asked for, relative to the start, with the
// theorem's bound; on the right Algorithm 1 on every problem over the number of steps.
func drawTheorem1(r *theorem1, f *lab.Picture) {
	p, bound := r.Params, "Theorem 1: at most $ε$"
	left := plots.Panel{
		Title: "reached against asked for",
		X:     plots.Axis{Label: "$ε$ / $Δ$ at the start", Scale: plots.Log10},
		Y:     plots.Axis{Label: "$𝔼 Δ_{1/2γ}$ / $Δ$ at the start", Scale: plots.Log10},
	}
	for _, v := range theorem1Variants {
		gs := r.Part(v.part)
		reached := study.Map(gs, func(g lab.Group[algorithm1.Trial]) []float64 {
			return means(seriesOver(g.Records, v.iterate, "delta_start"))
		})
		if s := geometric(v.label, gs.X(func(t algorithm1.Trial) float64 { return t.Target }), reached,
			r.Confidence); len(s.X) > 0 {
			left.Series = append(left.Series, s)
		}
	}
	ends := []float64{p.Targets[0], last(p.Targets)}
	left.Series = append(left.Series, plots.Series{Label: bound, X: ends, Y: ends, Reference: true})
	right := plots.Panel{
		Title: "Algorithm 1, each problem",
		X:     plots.Axis{Label: "steps $T$", Scale: plots.Log10},
		Y:     plots.Axis{Label: "$𝔼 Δ_{1/2γ}$", Scale: plots.Log10},
	}
	steps, delta := theorem1Problems(r)
	for i, asked := range study.Columns(r.Part("random").Lists("epsilon")) {
		right.Series = append(right.Series,
			plots.Series{Label: theorem1Variants[0].label, X: steps[i], Y: delta[i], Faint: i > 0},
			plots.Series{Label: bound, X: steps[i], Y: asked, Reference: true})
	}
	f.Row(left, right)
	f.Say("Supernets of %d edges × %d smooth operations, weights in $ℝ^{%d}$, single examples of %d, %d runs each; "+
		"$γ$, $G_w$ and $G_θ$ are proved.", p.Edges, len(p.Ops), p.Edges*p.Inputs, p.Examples, p.Runs)
	f.Say("%s (geometric).", r.Interval("Left, bars", p.Seeds, "problem"))
}

// NetParams describe the small supernet of Theorems 1 and 2, a regression f(w, θ).
type NetParams = smoothnet.Params

var smallNet = NetParams{
	Edges: 2, Inputs: 3, Ops: []string{"tanh", "sin", "bump"}, Examples: 24, Noise: 0.3, Batch: 1,
}

func checkNet(c *study.Checks, p NetParams) {
	c.AtLeast("Edges", p.Edges, 1)
	c.AtLeast("Inputs", p.Inputs, 1)
	c.AtLeast("Examples", p.Examples, 1)
	c.AtLeast("Batch", p.Batch, 1)
	c.Expect(p.Noise >= 0 && !math.IsInf(p.Noise, 0), "Noise must be at least 0, got %v", p.Noise)
	c.Expect(len(p.Ops) >= 2, "Ops must have at least two operations to choose from, got %v", p.Ops)
	c.Expect(slices.ContainsFunc(p.Ops, func(op string) bool { return op != "zero" }),
		"Ops must have an operation other than zero, else f is constant, got %v", p.Ops)
	for _, op := range p.Ops {
		c.OneOf("Ops", op, smoothnet.Operations()...)
	}
}
