package smoothnet

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/li2021/internal/descent"
	"github.com/nasml/lab/nasml/trial"
)

var everyOp = Params{
	Edges: 2, Inputs: 3, Ops: []string{"tanh", "sin", "bump", "wave", "cos", "zero"}, Examples: 5, Noise: 0.2, Batch: 3,
}

func TestSmoothOpsAndTheirBounds(t *testing.T) {
	const h = 1e-5
	for name, op := range operations {
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
	at, grad := n.draw(trial.RNG(1, "test")), n.zeros()
	n.gradient(at, grad)
	const h = 1e-6
	for i := range at {
		for j := range at[i] {
			up, down := descent.Clone(at), descent.Clone(at)
			up[i][j] += h
			down[i][j] -= h
			require.InDelta(t, (n.Value(up)-n.Value(down))/(2*h), grad[i][j], 1e-8)
		}
	}
	mean, one, rng := n.zeros(), n.zeros(), trial.RNG(2, "test")
	const draws = 20000
	for range draws {
		n.Minibatch(at, one, rng)
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
	rng := trial.RNG(5, "test")
	const h = 1e-5
	for range 5 {
		at := n.draw(rng)
		gamma, err := n.weakness(at)
		require.NoError(t, err)
		require.LessOrEqual(t, gamma, n.constants().Gamma, "the proved constant")
		least := math.Inf(1)
		v := n.draw(rng)
		for range 4000 { // a random walk downhill over directions in scaled coordinates
			u := descent.Clone(v)
			square := 0.0
			for i := range u {
				for j := range u[i] {
					u[i][j] += 0.3 * rng.NormFloat64()
					square += u[i][j] * u[i][j]
				}
			}
			up, down, gu, gd := descent.Clone(at), descent.Clone(at), n.zeros(), n.zeros()
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
				form += (descent.Inner(gu[i], scaled[i]) - descent.Inner(gd[i], scaled[i])) / (2 * h)
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
	at := n.draw(trial.RNG(7, "test"))
	for i, x := range n.x {
		n.y[i] = n.output(at, x)
	}
	require.Zero(t, n.Value(at))
	m, err := n.Stationarity(at, n.constants().Gamma)
	require.NoError(t, err)
	require.InDelta(t, 0, m.Delta, 1e-20)
	gw, gt := n.Moments(at)
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
		sum, rng := 0.0, trial.RNG(8, name)
		const draws = 4000
		for range draws {
			times := DrawTimes(rng, steps, 4, eta)
			require.True(t, slices.IsSortedFunc(times, func(a, b Time) int { return a.Step - b.Step }))
			for _, at := range times {
				sum += at.Weight * g(at.Step) / draws
			}
		}
		require.InEpsilon(t, want/total, sum, 0.02, name)
	}
	require.Zero(t, DrawTimes(trial.RNG(1, "one"), 1, 3, nil)[2].Step, "one step")
}

// Assumption 1.1 as printed, with γφ(θ) and without γ‖w‖²/2, asks for a convex f(·, θ):
// φ does not contain w. The quadratic form of the Hessian in w is negative in some
// direction.
func TestAssumption1AsPrintedNeedsConvexWeights(t *testing.T) {
	n := newNet(everyOp, 4)
	rng := trial.RNG(5, "test")
	const h = 1e-5
	for range 5 {
		at, least := n.draw(rng), math.Inf(1)
		for range 2000 {
			up, down, gu, gd := descent.Clone(at), descent.Clone(at), n.zeros(), n.zeros()
			along, square := n.zeros(), 0.0
			for i := range n.Edges { // the rows of w; those of θ stay
				for j := range along[i] {
					along[i][j] = rng.NormFloat64()
					square += along[i][j] * along[i][j]
					up[i][j] += h * along[i][j]
					down[i][j] -= h * along[i][j]
				}
			}
			n.gradient(up, gu)
			n.gradient(down, gd)
			form := 0.0
			for i := range n.Edges {
				form += (descent.Inner(gu[i], along[i]) - descent.Inner(gd[i], along[i])) / (2 * h)
			}
			least = min(least, form/square)
		}
		require.Less(t, least, -1e-3)
	}
}
