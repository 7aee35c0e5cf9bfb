package roberts

import (
	"context"
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/backend"
	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/roberts/internal/mixture"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/trial"
)

// ProblemParams are the parameters that all random problems share. The paper has no
// experiments, so all values are choices of this implementation.
type ProblemParams struct {
	Activations   []string  // the pool that operations are drawn from, see [Activation]; own ones are welcome
	Inputs        int       `validate:"gte=1"`           // k: x ∼ N(0, I_k)
	Width         int       `validate:"gte=1"`           // d hidden units; v ∼ N(0, I_d/d)
	Spread        float64   `validate:"positive"`        // standard deviation of the pre-activations Wᵀx
	Points        int       `validate:"gte=1"`           // n points, which are the whole population
	Concentration float64   `validate:"positive"`        // of the symmetric Dirichlet distribution of α; 1: uniform
	Problems      int       `validate:"gte=1"`           // a seed
	Seeds         int       `validate:"gte=1"`           // records of so many problems each
	Noise         []float64 `validate:"dive,positive"`   // levels of label noise, in standard deviations of the signal
	WeightErrors  []float64 `validate:"dive,positive"`   // levels of W − W*, in standard deviations of W*
	AlphaErrors   []float64 `validate:"dive,gt=0,lte=1"` // levels of α − α*: α = (1 − level)α* + level·(another draw)
	Sign          bool      // also labels ±1, the paper's classification setting, which Assumption 3 excludes
	Confidence    float64   `validate:"gt=0,lt=1"` // of the intervals
}

// pool has saturating, unbounded, odd and even activations, and with the leaky
// ReLU one that is a mixture of two others.
var pool = []string{"relu", "tanh", "identity", "sigmoid", "sin", "softplus", "square", "0.8*relu+0.2*identity"}

var quickProblems = ProblemParams{
	Activations: pool, Inputs: 4, Width: 8, Spread: 2, Points: 128, Concentration: 1,
	Problems: 250, Seeds: 4,
	Noise: []float64{0.01, 0.1, 1}, WeightErrors: []float64{0.01, 0.1, 1}, AlphaErrors: []float64{0.01, 0.1, 1},
	Sign: true, Confidence: 0.95,
}

var paperProblems = lab.With(quickProblems, func(p *ProblemParams) {
	p.Points, p.Problems, p.Seeds = 2048, 1000, 10
	levels := []float64{0.01, 0.03, 0.1, 0.3, 1}
	p.Noise, p.WeightErrors, p.AlphaErrors = levels, levels, levels
})

// rules reports unknown activations, and a pool that is too small for h operations.
func (p ProblemParams) rules(h int, c *study.Checks) {
	_, err := mixture.ActivationsOf(p.Activations)
	c.Expect(err == nil, "%v", err)
	c.Expect(len(p.Activations) >= h, "Activations must have at least %d entries to draw operations from, got %d", h,
		len(p.Activations))
}

func (p ProblemParams) base(h int) problems {
	return problems{
		Activations: p.Activations, Operations: h, Inputs: p.Inputs, Width: p.Width, Spread: p.Spread,
		Points: p.Points, Concentration: p.Concentration, Count: p.Problems, Violation: mixture.None,
	}
}

func (p ProblemParams) only(names []string) problems {
	q := p.base(len(names))
	q.Only = names
	return q
}

func splitSpace(space string) []string { return strings.Split(space, "/") }

// operationsOf splits "relu/tanh/sin" into activations, each of the pool.
func (p ProblemParams) operationsOf(space string) ([]string, error) {
	names := splitSpace(space)
	for i, name := range names {
		if !slices.Contains(p.Activations, name) || slices.Contains(names[:i], name) {
			return nil, catalog.Usagef("space %q: %q must appear once, and in Activations %v",
				space, name, p.Activations)
		}
	}
	return names, nil
}

// shippedRecords are the trials that are shipped, so that nobody has to
// repeat them to see the results at the paper's scale.
//
//go:embed records
var shippedRecords embed.FS

// problemsCode is what the theorems compute: random problems and what the checker says of them.
var problemsCode = code.Define("roberts/problems", "roberts/internal/mixture")

func (p ProblemParams) caption() string {
	return fmt.Sprintf(
		"%d random problems a point, all settings ours: $k = %d$ inputs, width $d = %d$, a population of %d points, "+
			"operations from a pool of %d, $α$ from a Dirichlet distribution (%v); bars: %v %% CI of a share.",
		p.Problems*p.Seeds, p.Inputs, p.Width, p.Points, len(p.Activations), p.Concentration, 100*p.Confidence)
}

var paper = lab.Paper{ID: "roberts", Name: "Roberts+", Shipped: shippedRecords}

// problems and problemGroups are what the theorems compute: random problems of one kind, a record a seed.
type (
	problems      = mixture.Problems
	problemGroups = lab.Groups[problems]
)

// problemBench opens the backend. What the activations of the pool compute is part of the keys: own ones are welcome.
func problemBench[P interface{ problemParams() ProblemParams }](
	_ context.Context, p P, _ string,
) (lab.Bench[problems], error) {
	b, err := backend.Open()
	if err != nil {
		return lab.Bench[problems]{}, err
	}
	probe, err := mixture.Probe(b, p.problemParams().Activations)
	es := mixture.NewEvaluators(b)
	keyed := func(q problems) problems { q.Probe = probe; return q }
	return lab.Bench[problems]{
		Key: func(q problems) any { return keyed(q) },
		Run: func(ctx context.Context, q problems, seed uint64, step study.Step) (trial.Result, error) {
			return keyed(q).Simulate(ctx, es, seed, func(n int) { step(n, "") })
		},
		Study: study.Study{Workers: 1, Device: backend.Opener(1)}, // each uses all cores
		Close: es.Close,
	}, err
}

func (p ProblemParams) problemParams() ProblemParams { return p }

func problemUnits(q problems) int { return q.Count }
