package li2021

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/simplex"
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
	require.Equal(t, runs.ClaimTable(r.Check()), runs.ClaimTable(again.Check()), "stored and fresh results are the same")
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

var everyOp = NetParams{Edges: 2, Inputs: 3, Ops: []string{"tanh", "sin", "bump", "wave", "cos", "zero"}, Examples: 5, Noise: 0.2, Batch: 3}

func TestSmoothOpsAndTheirBounds(t *testing.T) {
	const h = 1e-5
	for name, op := range smoothOps {
		var most [3]float64
		for z := -8.0; z < 8; z += 0.003 {
			v, d, dd := op.at(z)
			up, du, _ := op.at(z + h)
			down, dn, _ := op.at(z - h)
			require.InDelta(t, (up-down)/(2*h), d, 1e-8, name)
			require.InDelta(t, (du-dn)/(2*h), dd, 1e-8, name)
			for i, x := range []float64{v, d, dd} {
				most[i] = math.Max(most[i], math.Abs(x))
			}
		}
		for i := range most {
			require.LessOrEqual(t, most[i], op.bounds[i], "%s, derivative %d", name, i)
			require.GreaterOrEqual(t, most[i], 0.999*op.bounds[i], "%s, derivative %d: the bound is not idle", name, i)
		}
	}
}

// The gradient against finite differences, and minibatches without bias.
func TestSupernetGradient(t *testing.T) {
	n := newNet(everyOp, 3)
	at, grad := n.draw(runs.RNG(1, "test")), n.zeros()
	n.gradient(at, grad)
	const h = 1e-6
	for i := range at {
		for j := range at[i] {
			up, down := cloneRows(at), cloneRows(at)
			up[i][j] += h
			down[i][j] -= h
			require.InDelta(t, (n.value(up)-n.value(down))/(2*h), grad[i][j], 1e-8)
		}
	}
	mean, one, rng := n.zeros(), n.zeros(), runs.RNG(2, "test")
	const draws = 20000
	for range draws {
		n.minibatch(at, one, rng)
		for i := range one {
			for j, g := range one[i] {
				mean[i][j] += g / draws
			}
		}
	}
	for i := range mean {
		require.InDeltaSlice(t, grad[i], mean[i], 0.01)
	}
}

// weakness against the quadratic form of the Hessian by finite differences of
// the gradient: none is below −γ, and one is close.
func TestSupernetWeakness(t *testing.T) {
	n := newNet(everyOp, 4)
	rng := runs.RNG(5, "test")
	const h = 1e-5
	for range 5 {
		at := n.draw(rng)
		gamma, err := n.weakness(at)
		require.NoError(t, err)
		require.LessOrEqual(t, gamma, n.constants().gamma, "the proved constant")
		least := math.Inf(1)
		v := n.draw(rng)
		for range 4000 { // a random walk downhill over directions in scaled coordinates
			u := cloneRows(v)
			square := 0.0
			for i := range u {
				for j := range u[i] {
					u[i][j] += 0.3 * rng.NormFloat64()
					square += u[i][j] * u[i][j]
				}
			}
			up, down, gu, gd := cloneRows(at), cloneRows(at), n.zeros(), n.zeros()
			scaled := n.zeros()
			for i := range u {
				for j := range u[i] {
					u[i][j] /= math.Sqrt(square)
					scaled[i][j] = u[i][j]
					if i >= n.Edges {
						scaled[i][j] *= math.Sqrt(at[i][j])
					}
					up[i][j] += h * scaled[i][j]
					down[i][j] -= h * scaled[i][j]
				}
			}
			n.gradient(up, gu)
			n.gradient(down, gd)
			form := 0.0
			for i := range u {
				form += (inner(gu[i], scaled[i]) - inner(gd[i], scaled[i])) / (2 * h)
			}
			if form < least {
				least, v = form, u
			}
		}
		require.GreaterOrEqual(t, least, -gamma-1e-6)
		require.Less(t, least, -0.3*gamma)
	}
}

// A point where f is 0 is stationary; and every part is where Assumption 1 and
// Stationarity expect it.
func TestTheTeacherIsStationary(t *testing.T) {
	p := everyOp
	p.Noise = 0
	n := newNet(p, 6)
	at := n.draw(runs.RNG(7, "test"))
	for i, x := range n.x {
		n.y[i] = n.output(at, x)
	}
	require.Zero(t, n.value(at))
	m, err := n.stationarity(at, n.constants().gamma)
	require.NoError(t, err)
	require.InDelta(t, 0, m.Delta, 1e-20)
	gw, gt := n.moments(at)
	require.Zero(t, gw+gt)
	require.Equal(t, at[0], n.point(at).W[:p.Inputs])
	require.Equal(t, at[p.Edges:], n.point(at).Theta)
}

func TestDrawTimesHasNoBias(t *testing.T) {
	const steps = 50
	g := func(step int) float64 { return 1 / float64(step+1) }
	decreasing := func(step int) float64 { return 1 / math.Sqrt(float64(step+1)) }
	for name, eta := range map[string]func(int) float64{"uniform": nil, "decreasing": decreasing} {
		want, total := 0.0, 0.0
		for step := range steps {
			w := 1.0
			if eta != nil {
				w = eta(step)
			}
			want, total = want+w*g(step), total+w
		}
		sum, rng := 0.0, runs.RNG(8, name)
		const draws = 4000
		for range draws {
			times := drawTimes(rng, steps, 4, eta)
			require.True(t, slices.IsSortedFunc(times, func(a, b timed) int { return a.step - b.step }))
			for _, at := range times {
				sum += at.weight * g(at.step) / draws
			}
		}
		require.InEpsilon(t, want/total, sum, 0.02, name)
	}
	require.Zero(t, drawTimes(runs.RNG(1, "one"), 1, 3, nil)[2].step, "one step")
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

// Δ on f = xy at (0, 0): 8γ² for γ < ½ and 0 above; elsewhere against a
// search over a grid.
func TestSaddleStationarity(t *testing.T) {
	for gamma, want := range map[float64]float64{0.1: 0.08, 0.25: 0.5, 0.4: 1.28, 1: 0, 3: 0} {
		require.InDelta(t, want, saddleStationarity(0, 0, 1/(2*gamma)), 1e-12, "γ = %v", gamma)
	}
	for _, at := range [][3]float64{{0.3, -0.8, 0.5}, {1, -1, 2}, {-0.2, 0.9, 0.9}, {0.7, 0.6, 5}} {
		x, y, lambda := at[0], at[1], at[2]
		best, square := math.Inf(1), 0.0
		for u := -1.0; u <= 1.0005; u += 0.002 {
			for v := -1.0; v <= 1.0005; v += 0.002 {
				d := (u-x)*(u-x) + (v-y)*(v-y)
				if value := lambda*u*v + d/2; value < best {
					best, square = value, d
				}
			}
		}
		require.InDelta(t, square/lambda/lambda, saddleStationarity(x, y, lambda), 0.02)
	}
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

// The closed forms of Δ against the general solver.
func TestCorollary1Stationarity(t *testing.T) {
	c := corollary1Trial{Shape: "cosine", Slope: 0.3, Gamma: 0.3}
	f := func(at simplex.Point) (simplex.Point, error) {
		return simplex.Point{W: []float64{c.gradient(at.W[0])}}, nil
	}
	for _, x := range []float64{0, 0.4, 1.7, -2.9, math.Pi, 9} {
		want, err := simplex.Stationarity{Gamma: c.Gamma}.At(f, simplex.Point{W: []float64{x}})
		require.NoError(t, err)
		require.InDelta(t, want.Delta, c.stationarity(x), 1e-8, "x = %v", x)
	}
	c = corollary1Trial{Shape: "sharp", Slope: 0.5, Gamma: 2} // λ = 1/4: |x| against 1/8
	require.InDelta(t, 0.25, c.stationarity(-3), 1e-15)
	require.InDelta(t, 0.04, c.stationarity(0.05), 1e-15)
	require.Zero(t, c.stationarity(0))
}

func TestMirrorOnSmallRuns(t *testing.T) {
	p := MirrorQuick
	p.Options, p.Draws, p.Seeds, p.Gap = []int{4, 32}, 200, 4, 0.2
	names := fail(verdicts(t, Mirror, p))
	require.Len(t, names, 1)
	require.Contains(t, names[0], "SGD on logits over EG, tuned")
}

// Entries of ±1 with the means that are asked for.
func TestMirrorOracle(t *testing.T) {
	rng := runs.RNG(9, "test")
	trial := mirrorTrial{Oracle: "dense", Options: 130, Margin: 0.5}
	grad, mean := make([]float64, 130), make([]float64, 130)
	const draws = 4000
	for range draws {
		trial.draw(grad, rng)
		for o, g := range grad {
			require.Equal(t, 1.0, math.Abs(g))
			mean[o] += g / draws
		}
	}
	require.InDelta(t, -0.5, mean[0], 0.06)
	for _, m := range mean[1:] {
		require.InDelta(t, 0, m, 0.08)
	}
}

// throughSoftmax is the Jacobian of a softmax: against finite differences.
func TestThroughSoftmax(t *testing.T) {
	z, c := []float64{0.3, -1, 0.8}, []float64{1, 2, -0.5}
	f := func(z []float64) float64 { return inner(c, simplex.PhiConjugateGradient([][]float64{z})[0]) }
	grad := slices.Clone(c)
	throughSoftmax(simplex.PhiConjugateGradient([][]float64{z})[0], grad)
	for o := range z {
		up, down := slices.Clone(z), slices.Clone(z)
		up[o], down[o] = z[o]+1e-6, z[o]-1e-6
		require.InDelta(t, (f(up)-f(down))/2e-6, grad[o], 1e-9)
	}
}

func TestSparsityOnSmallRuns(t *testing.T) {
	p := SparsityQuick
	p.Margins, p.StreamSteps, p.Edges, p.Levels = []float64{0.1}, 1500, 4, []string{"bilevel"}
	p.Units, p.Steps, p.Sequences, p.Seeds = 8, 600, 300, 4
	require.Empty(t, fail(verdicts(t, Sparsity, p)))
}

// The gradients of the small mixture against finite differences.
func TestMixtureGradient(t *testing.T) {
	rng := runs.RNG(10, "test")
	n := sparsityTrial{Edges: 3, Inputs: 4}.randomNet(rng)
	theta := newChooser("eg", 1, 3, len(unitOps)).theta
	x, target := []float64{0.3, -1, 0.5, 2}, 0.7
	gradW, gradTheta := zerosLike(n.w), zerosLike(theta)
	n.at(theta, x, target, 1, gradW, gradTheta)
	loss := func() float64 { r := n.at(theta, x, 0, 0, nil, nil) - target; return r * r / 2 }
	check := func(values, grads [][]float64) {
		for i := range values {
			for j := range values[i] {
				old := values[i][j]
				values[i][j] = old + 1e-6
				up := loss()
				values[i][j] = old - 1e-6
				down := loss()
				values[i][j] = old
				require.InDelta(t, (up-down)/2e-6, grads[i][j], 1e-8)
			}
		}
	}
	check(n.w, gradW)
	check(theta, gradTheta)
}

func TestStationarityOnFewProblems(t *testing.T) {
	p := StationarityQuick
	p.Seeds = 4
	names := fail(verdicts(t, StationarityOf, p))
	require.Len(t, names, 1)
	require.Contains(t, names[0], "fixed points of prox")
}

func TestPresetsOfTheTheoremsMakeSense(t *testing.T) {
	for _, p := range []interface{ check() error }{
		Theorem1Quick, Theorem1Paper, Theorem2Quick, Theorem2Paper, Corollary1Quick, Corollary1Paper,
		MirrorQuick, MirrorPaper, SparsityQuick, SparsityPaper, StationarityQuick, StationarityPaper,
	} {
		require.NoError(t, p.check())
	}
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
	refused("below 1", r, err)
	refused("Seeds is 1", r, err)
	refused(`Ops has "relu"`, r, err)
	q := Theorem2Quick
	q.Blocks, q.Ratios = []int{3}, []float64{1}
	r2, err := Theorem2(ctx, q)
	refused("Blocks has 3", r2, err)
	refused("Ratios is [1]", r2, err)
	c := Corollary1Quick
	c.Slopes, c.Start = []float64{2}, 0
	r3, err := Corollary1(ctx, c)
	refused("Slopes is [2]", r3, err)
	refused("Start is 0", r3, err)
	m := MirrorQuick
	m.Gap, m.Options = 0.4, []int{1, 4}
	r4, err := Mirror(ctx, m)
	refused("Gap is 0.4", r4, err)
	refused("Options is [1 4]", r4, err)
	s := SparsityQuick
	s.Below, s.Eager = 3, 0
	r5, err := Sparsity(ctx, s)
	refused("Below is 3", r5, err)
	refused("Eager is 0", r5, err)
	st := StationarityQuick
	st.Lambdas, st.Distances = []float64{0, 1}, []float64{0.1, 1}
	r6, err := StationarityOf(ctx, st)
	refused("Lambdas is [0 1]", r6, err)
	refused("Distances has 1", r6, err)
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
	require.ErrorContains(t, err, "f would be constant")

	q := Theorem2Quick
	q.NetParams, q.Blocks, q.Steps, q.Runs, q.Iterates, q.Seeds = NetParams{Edges: 1, Inputs: 1, Ops: []string{"cos", "sin"}, Examples: 1, Batch: 1}, []int{1, 2}, []int{2, 3}, 2, 1, 2
	r2, err := Theorem2(ctx, q)
	require.NoError(t, err)
	require.NoError(t, r2.Figure().Validate())
	require.NotEmpty(t, r2.Check())

	c := Corollary1Quick
	c.Slopes, c.Blocks, c.Steps, c.Runs, c.Seeds = []float64{1}, []int{1}, []int{1}, 1, 2
	r3, err := Corollary1(ctx, c)
	require.NoError(t, err)
	require.NoError(t, r3.Figure().Validate())
	require.InDelta(t, 1/math.Sqrt2, r3.Cases[0].constants()[0], 1e-12, "Δ = s² at the start, over L√(2bγF) = √2")
}

func TestACancelledTheoremEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(isolated(t))
	cancel()
	_, err := Theorem1(ctx, Theorem1Quick)
	require.ErrorIs(t, err, context.Canceled)
}

func TestWilson(t *testing.T) {
	lo, hi := wilson(0, 100, 0.95)
	require.InDelta(t, 0, lo, 1e-12)
	require.InDelta(t, 0.0370, hi, 1e-4) // z²/(n+z²)
	lo, hi = wilson(50, 100, 0.95)
	require.InDelta(t, 0.4038, lo, 1e-4)
	require.InDelta(t, 0.5962, hi, 1e-4)
}
