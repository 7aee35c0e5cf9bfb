package li2021

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/runs"
)

// verdicts runs a theorem and returns its claims by name; the figure has to be
// one that can be drawn, and a second call has to compute nothing.
func verdicts[P any, R catalog.Result](t *testing.T, theorem func(context.Context, P) (R, error), p P) []runs.Claim {
	t.Helper()
	ctx := isolated(t)
	r, err := theorem(ctx, p)
	require.NoError(t, err)
	require.NoError(t, r.Figure().Validate())
	require.NotEmpty(t, r.Records())
	again, err := theorem(ctx, p)
	require.NoError(t, err)
	require.Equal(t, r.Records(), again.Records())
	require.Equal(t, runs.ClaimTable(r.Check()), runs.ClaimTable(again.Check()),
		"stored and fresh results are the same")
	for _, c := range r.Check() {
		require.NotContains(t, c.Note, "not run", c.Name)
	}
	return r.Check()
}

// fail lists the claims that do not hold.
func fail(claims []runs.Claim) (names []string) {
	for _, c := range claims {
		if c.Holds == runs.Fails {
			names = append(names, c.Name)
		}
	}
	return names
}

func TestTheorem1OnSmallRuns(t *testing.T) {
	p := Theorem1Quick
	p.Targets, p.Runs, p.Iterates, p.Seeds = []float64{0.4, 0.8}, 3, 6, 2
	require.Empty(t, fail(verdicts(t, Theorem1, p)))
	p.Short = 15 // nearly the theorem's own T: the control has to be seen failing
	require.Len(t, fail(verdicts(t, Theorem1, p)), 1)
}

func TestTheorem2OnSmallRuns(t *testing.T) {
	p := Theorem2Quick
	p.Steps, p.Ratios, p.Seeds, p.Gammas = []int{500, 20000}, []float64{2}, 2, []float64{0.1, 1}
	names := fail(verdicts(t, Theorem2, p))
	require.Len(t, names, 1)
	require.Contains(t, names[0], "γ = 0.1 (block-wise)")
}

func TestCorollary1OnSmallRuns(t *testing.T) {
	p := Corollary1Quick
	p.Steps, p.Seeds = []int{1000, 30000}, 3
	names := fail(verdicts(t, Corollary1, p))
	require.Len(t, names, 1)
	require.Contains(t, names[0], "follows from Theorem 2")
	times, best := bestStep()
	require.InDelta(t, 3, follows(1), 1e-9)
	require.InDelta(t, 1/math.Sqrt2, times, 1e-6)
	require.InDelta(t, 2*math.Sqrt2, best, 1e-9)
}

func TestMirrorOnSmallRuns(t *testing.T) {
	p := MirrorQuick
	p.Options, p.Draws, p.Seeds, p.Gap = []int{4, 32}, 200, 4, 0.2
	names := fail(verdicts(t, Mirror, p))
	require.Len(t, names, 1)
	require.Contains(t, names[0], "SGD on logits over EG, tuned")
}

func TestSparsityOnSmallRuns(t *testing.T) {
	p := SparsityQuick
	p.Margins, p.StreamSteps, p.Edges, p.Levels = []float64{0.1}, 1500, 4, []string{"bilevel"}
	p.Units, p.Steps, p.Sequences, p.Seeds = 8, 600, 300, 4
	require.Empty(t, fail(verdicts(t, Sparsity, p)))
}

func TestStationarityOnFewProblems(t *testing.T) {
	p := StationarityQuick
	p.Seeds = 4
	names := fail(verdicts(t, StationarityOf, p))
	require.Len(t, names, 1)
	require.Contains(t, names[0], "fixed points of prox")
}

func TestTheoremsRefuseWhatMakesNoSense(t *testing.T) {
	ctx := isolated(t)
	refused := func(want string, _ any, err error) {
		t.Helper()
		var usage *catalog.UsageError
		require.ErrorAs(t, err, &usage)
		require.ErrorContains(t, err, want)
	}
	p := Theorem1Quick
	p.Targets, p.Seeds, p.Ops = []float64{0.5, 1}, 1, []string{"tanh", "relu"}
	r, err := Theorem1(ctx, p)
	refused("value of Targets must", r, err)
	refused("Seeds must", r, err)
	refused(`Ops must be one of bump, cos, sin, tanh, wave, zero, got "relu"`, r, err)
	q := Theorem2Quick
	q.Blocks, q.Ratios = []int{3}, []float64{1}
	r2, err := Theorem2(ctx, q)
	refused("Blocks must be 1, 2 or 2·Edges = 4, got 3", r2, err)
	refused("value of Ratios must", r2, err)
	c := Corollary1Quick
	c.Slopes, c.Start = []float64{2}, 0
	r3, err := Corollary1(ctx, c)
	refused("value of Slopes must", r3, err)
	refused("Start must", r3, err)
	m := MirrorQuick
	m.Gap, m.Options = 0.4, []int{1, 4}
	r4, err := Mirror(ctx, m)
	refused("Gap must be below Margin/2", r4, err)
	refused("value of Options must", r4, err)
	s := SparsityQuick
	s.Below, s.Eager = 3, 0
	r5, err := Sparsity(ctx, s)
	refused("Below must", r5, err)
	refused("Eager must", r5, err)
	st := StationarityQuick
	st.Lambdas, st.Distances = []float64{0, 1}, []float64{0.1, 1}
	r6, err := StationarityOf(ctx, st)
	refused("value of Lambdas must", r6, err)
	refused("value of Distances must", r6, err)
}

// The smallest cases have defined answers: one edge, one input, one example, one
// run, one step, one block, two operations.
func TestTheSmallestTheorems(t *testing.T) {
	ctx := isolated(t)
	p := Theorem1Quick
	p.NetParams = NetParams{Edges: 1, Inputs: 1, Ops: []string{"zero", "sin"}, Examples: 1, Batch: 1}
	p.Targets, p.Runs, p.Iterates, p.Seeds, p.Short, p.Orders = []float64{0.5, 0.9}, 1, 1, 2, 0, []string{"random"}
	r, err := Theorem1(ctx, p)
	require.NoError(t, err)
	require.NoError(t, r.Figure().Validate())
	require.NotEmpty(t, r.Check())
	p.Ops = []string{"zero", "zero"}
	_, err = Theorem1(ctx, p)
	require.ErrorContains(t, err, "else f is constant")

	q := Theorem2Quick
	q.NetParams = NetParams{Edges: 1, Inputs: 1, Ops: []string{"cos", "sin"}, Examples: 1, Batch: 1}
	q.Blocks, q.Steps, q.Runs, q.Iterates, q.Seeds = []int{1, 2}, []int{2, 3}, 2, 1, 2
	r2, err := Theorem2(ctx, q)
	require.NoError(t, err)
	require.NoError(t, r2.Figure().Validate())
	require.NotEmpty(t, r2.Check())

	c := Corollary1Quick
	c.Slopes, c.Blocks, c.Steps, c.Runs, c.Seeds = []float64{1}, []int{1}, []int{1}, 1, 2
	r3, err := Corollary1(ctx, c)
	require.NoError(t, err)
	require.NoError(t, r3.Figure().Validate())
	require.InDelta(t, 1/math.Sqrt2, r3.Groups.Values("constant")[0], 1e-12, "Δ = s² at the start, over L√(2bγF) = √2")
}

func TestACancelledTheoremEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(isolated(t))
	cancel()
	_, err := Theorem1(ctx, Theorem1Quick)
	require.ErrorIs(t, err, context.Canceled)
}
