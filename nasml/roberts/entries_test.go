package roberts

import (
	"context"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/backend"
	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/supernet"
)

// isolated is a context with an empty store and no progress.
func isolated(t *testing.T) context.Context {
	t.Helper()
	store, err := runs.Open(t.TempDir())
	require.NoError(t, err)
	return runs.WithProgress(runs.WithStore(t.Context(), store), runs.Silent)
}

func tinyParams() ProblemParams {
	p := quickProblems
	p.Points, p.Width, p.Problems, p.Seeds = 12, 3, 40, 2
	p.Noise, p.WeightErrors, p.AlphaErrors = []float64{1, 3}, []float64{1}, []float64{1}
	return p
}

func tinySearch() SearchParams {
	p := SearchQuick
	p.Spaces, p.Noise, p.Seeds, p.Steps, p.Train, p.Valid = p.Spaces[:2], []float64{0, 0.5}, 2, 30, 20, 20
	return p
}

func entries() map[string]func(context.Context) (catalog.Result, error) {
	return map[string]func(context.Context) (catalog.Result, error){
		theorem1ID: func(ctx context.Context) (catalog.Result, error) { return Theorem1(ctx, Theorem1Params{tinyParams()}) },
		theorem4ID: func(ctx context.Context) (catalog.Result, error) {
			return Theorem4(ctx, Theorem4Params{tinyParams(), Theorem4Quick.Spaces, 8})
		},
		theorem7ID: func(ctx context.Context) (catalog.Result, error) {
			return Theorem7(ctx, Theorem7Params{tinyParams(), []int{2, 3, 5}, 3, "relu/tanh/sin"})
		},
		mapID: func(ctx context.Context) (catalog.Result, error) {
			p := MapParams{tinyParams(), 2, []int{1, 4}, []int{4, 30}}
			p.Activations = pool[:4]
			p.WeightErrors, p.AlphaErrors, p.Sign = nil, nil, false
			return Map(ctx, p)
		},
		searchID: func(ctx context.Context) (catalog.Result, error) { return Search(ctx, tinySearch()) },
		figure1ID: func(ctx context.Context) (catalog.Result, error) {
			p := Figure1Quick
			p.Seeds, p.Samples = 2, 50
			return Figure1(ctx, p)
		},
	}
}

// Every entry computes once, draws, and judges the paper's claims; what is a
// theorem holds.
func TestEntries(t *testing.T) {
	for id, run := range entries() {
		t.Run(strings.TrimPrefix(id, "roberts/"), func(t *testing.T) {
			ctx := isolated(t)
			r, err := run(ctx)
			require.NoError(t, err)
			require.NoError(t, r.Figure().Validate())
			svg, err := r.Figure().Render("svg")
			require.NoError(t, err)
			require.NotEmpty(t, svg)
			for _, c := range r.Check() {
				if strings.HasPrefix(c.Name, "RO0") {
					require.NotEqual(t, runs.Fails, c.Holds, "%s: %s", c.Name, c.Note)
				}
			}
			again, err := run(ctx)
			require.NoError(t, err)
			require.Equal(t, r.Records(), again.Records())
			require.Equal(t, r.Figure(), again.Figure())

			stopped, cancel := context.WithCancel(isolated(t))
			cancel()
			_, err = run(stopped)
			require.ErrorIs(t, err, context.Canceled)

			entry, err := catalog.Lookup(id)
			require.NoError(t, err)
			_, err = os.Stat("../../" + entry.Notebook)
			require.NoError(t, err, "the entry's notebook must be there")
		})
	}
}

// One point, one hidden unit, operations that are the same there or everywhere:
// no NaN, and the theorem where it says anything.
func TestDegenerateProblems(t *testing.T) {
	p := tinyParams()
	p.Points, p.Width, p.Inputs = 1, 1, 1
	one, err := Theorem1(isolated(t), Theorem1Params{p})
	require.NoError(t, err)
	require.Equal(t, runs.Holds, one.Check()[0].Holds)
	require.NoError(t, one.Figure().Validate())

	p = tinyParams()
	p.Activations = []string{"tanh", "tanh", "0*tanh"}
	same, err := Theorem4(isolated(t), Theorem4Params{p, nil, 4})
	require.NoError(t, err)
	require.NoError(t, same.Figure().Validate())
	require.Zero(t, same.groups[0].sum("ordered"), "two operations are the same: Assumption 1 fails")
	for _, c := range same.Check() {
		require.False(t, strings.HasPrefix(c.Name, "RO0") && c.Holds == runs.Fails, c.Name)
	}
}

// A violated assumption shows as a claim that fails: no claim is written to
// hold.
func TestClaimsFailWhereTheyAreFalse(t *testing.T) {
	p := Theorem1Params{tinyParams()}
	r, err := Theorem1(isolated(t), p)
	require.NoError(t, err)
	noisy := &Theorem1Result{Params: p, groups: r.groups[2:]} // the groups under its assumptions are gone
	claims := noisy.Check()
	require.Equal(t, runs.Fails, claims[0].Holds, claims[0].Note)
	require.Equal(t, runs.Fails, claims[1].Holds, claims[1].Note)
}

func TestChangedParametersComputeOnlyWhatTheyChange(t *testing.T) {
	ctx, p := isolated(t), Theorem1Params{tinyParams()}
	first, err := Theorem1(ctx, p)
	require.NoError(t, err)
	p.Seeds = 3
	second, err := Theorem1(ctx, p)
	require.NoError(t, err)
	require.Subset(t, second.Records(), first.Records())
	require.Len(t, second.Records(), len(first.Records())*3/2)
}

// An own activation is part of the key by its values.
func TestOwnActivationsChangeTheKey(t *testing.T) {
	ctx, p := isolated(t), Theorem1Params{tinyParams()}
	defer delete(supernet.Activations, "mine")
	p.Activations = []string{"relu", "mine"}
	supernet.Activations["mine"] = supernet.Activations["tanh"]
	first, err := Theorem1(ctx, p)
	require.NoError(t, err)
	supernet.Activations["mine"] = supernet.Activations["sin"]
	second, err := Theorem1(ctx, p)
	require.NoError(t, err)
	require.NotEqual(t, first.Records()[0], second.Records()[0])
	require.Equal(t, runs.Holds, second.Check()[0].Holds)
}

func TestParametersThatMakeNoSenseAreRefused(t *testing.T) {
	var usage *catalog.UsageError
	bad := func(change func(*ProblemParams)) error {
		p := Theorem1Params{tinyParams()}
		change(&p.ProblemParams)
		_, err := Theorem1(isolated(t), p)
		return err
	}
	for want, err := range map[string]error{
		"Points = 0":       bad(func(p *ProblemParams) { p.Points = 0 }),
		"Noise has -1":     bad(func(p *ProblemParams) { p.Noise = []float64{-1} }),
		"AlphaErrors has":  bad(func(p *ProblemParams) { p.AlphaErrors = []float64{2} }),
		"Spread is NaN":    bad(func(p *ProblemParams) { p.Spread = math.NaN() }),
		"Concentration is": bad(func(p *ProblemParams) { p.Concentration = 0 }),
		"Confidence is 1":  bad(func(p *ProblemParams) { p.Confidence = 1 }),
		"Seeds = 0":        bad(func(p *ProblemParams) { p.Seeds = 0 }),
		`"reluu"`:          bad(func(p *ProblemParams) { p.Activations = []string{"reluu", "tanh"} }),
		"Activations has 1": bad(func(p *ProblemParams) {
			p.Activations = []string{"tanh"}
		}),
	} {
		require.ErrorAs(t, err, &usage, want)
		require.ErrorContains(t, err, want)
	}
	_, err := Theorem4(isolated(t), Theorem4Params{tinyParams(), []string{"relu/tanh"}, 8})
	require.ErrorAs(t, err, &usage)
	_, err = Theorem7(isolated(t), Theorem7Params{tinyParams(), []int{1}, 3, "relu/tanh"})
	require.ErrorAs(t, err, &usage)
	_, err = Theorem7(isolated(t), Theorem7Params{tinyParams(), []int{2}, 3, "relu/relu"})
	require.ErrorAs(t, err, &usage)
	_, err = Map(isolated(t), MapParams{tinyParams(), 3, nil, nil})
	require.ErrorAs(t, err, &usage)
	for _, change := range []func(*SearchParams){
		func(p *SearchParams) { p.Update = "adam" }, func(p *SearchParams) { p.Starts = []string{"far"} },
		func(p *SearchParams) { p.Teacher = []float64{1} }, func(p *SearchParams) { p.Teacher = []float64{1, 0, 1} },
		func(p *SearchParams) { p.Noise = nil }, func(p *SearchParams) { p.Spaces = []string{"relu/tanhh"} },
		func(p *SearchParams) { p.Eta = 0 }, func(p *SearchParams) { p.Steps = 0 },
	} {
		q := tinySearch()
		change(&q)
		_, err = Search(isolated(t), q)
		require.ErrorAs(t, err, &usage)
	}
	for _, change := range []func(*Figure1Params){
		func(p *Figure1Params) { p.Space = "darts" }, func(p *Figure1Params) { p.Without = []string{"conv"} },
		func(p *Figure1Params) { p.Without = supernet.NASBench201.Ops }, func(p *Figure1Params) { p.Seeds = 0 },
	} {
		q := Figure1Quick
		change(&q)
		_, err = Figure1(isolated(t), q)
		require.ErrorAs(t, err, &usage)
	}
}

// Where W stays at W*, α is found: the loss in α is a convex quadratic with its
// minimum 0 at α*.
func TestSearchFindsAlphaAtTheTeachersWeights(t *testing.T) {
	b, err := backend.Open()
	require.NoError(t, err)
	es := &evaluators{b, map[string]*evaluator{}}
	defer es.close()
	p := teaching{
		Activations: []string{"relu", "tanh", "sin"}, Teacher: []float64{0.5, 0.3, 0.2}, Inputs: 3, Width: 4, Student: 4,
		Spread: 2, Train: 30, Valid: 30, Start: "near", Update: "eg", Eta: 3, LearningRate: 1e-12, Steps: 400,
	}
	l, err := p.lesson(es, 5)
	require.NoError(t, err)
	_, l.w, _ = p.inputs(5)
	c := &class{p, []lesson{l}}
	w, alpha, err := c.train(t.Context(), b, func() {})
	require.NoError(t, err)
	require.InDeltaSlice(t, p.Teacher, alpha.Value().([][]float64)[0], 1e-3)
	results, err := c.results(b, []teaching{p}, w, alpha)
	require.NoError(t, err)
	require.Less(t, results[0].Values["mixture"], 1e-6*results[0].Values["best_loss"])
	require.Zero(t, results[0].Values["bound_wrong"])
}

// W moves by the training loss, and lowers it.
func TestSearchTrainsWeights(t *testing.T) {
	b, err := backend.Open()
	require.NoError(t, err)
	es := &evaluators{b, map[string]*evaluator{}}
	defer es.close()
	p := teaching{
		Activations: []string{"relu", "tanh"}, Teacher: []float64{0.6, 0.4}, Inputs: 3, Width: 4, Student: 6,
		Spread: 1.5, Train: 40, Valid: 40, Start: "random", Update: "softmax", Eta: 0.1, LearningRate: 0.03, Steps: 200,
	}
	l, err := p.lesson(es, 2)
	require.NoError(t, err)
	require.Len(t, l.w, 3*6, "a wider student has weights and a head of its own")
	before := &class{p, []lesson{l}}
	mixture := func(w, alpha *tensors.Tensor) float64 {
		results, err := before.results(b, []teaching{p}, w, alpha)
		require.NoError(t, err)
		return results[0].Values["mixture"]
	}
	state := before.state()
	start := mixture(state[0], state[3])
	w, alpha, err := before.train(t.Context(), b, func() {})
	require.NoError(t, err)
	require.Less(t, mixture(w, alpha), start/3)
}

// Two edges in a row multiply their matrices; an edge past them adds.
func TestGraphByHand(t *testing.T) {
	space := supernet.Space{Name: "by hand", Nodes: 3, Edges: []supernet.Edge{{From: 0, To: 1}, {From: 0, To: 2}, {From: 1, To: 2}}, Ops: []string{"skip_connect", "avg_pool_3x3"}}
	d := newDAG(space, 1, runs.RNG(1))
	d.maps[0][1][0][0], d.maps[1][1][0][0], d.maps[2][1][0][0] = -2, 3, 5
	theta := [][]float64{{0.25, 0.75}, {0.5, 0.5}, {0.2, 0.8}}
	x := []float64{2}
	node := 2 * (0.25 - 0.75*2)                                                      // −2.5
	require.InDelta(t, node*(0.2+0.8*5)+2*(0.5+0.5*3), d.output(x, theta)[0], 1e-13) // −6.5
	sum, mode, err := d.sum(t.Context(), x, theta)
	require.NoError(t, err)
	require.InDelta(t, -6.5, sum[0], 1e-13)
	require.Equal(t, []int{1, 0, 1}, mode)
	d.relu = true
	require.InDelta(t, 4, d.output(x, theta)[0], 1e-13, "node 1 is negative")
	sum, _, err = d.sum(t.Context(), x, theta)
	require.NoError(t, err)
	require.InDelta(t, 4+0.25*2*4.2, sum[0], 1e-13, "where node 1 skips it is 2")
}
