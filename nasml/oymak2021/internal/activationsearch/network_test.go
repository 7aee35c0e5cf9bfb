package activationsearch

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"

	"github.com/nasml/lab/nasml/oymak2021/spectral"
)

func tinyNetwork(t *testing.T, n, d, k int, seed uint64) (net *network, x, pool, w *mat.Dense) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	x, pool, w = spectral.SpherePoints(rng, n, d), spectral.SpherePoints(rng, 5, d), spectral.Normals(rng, k, d)
	y := make([]float64, n)
	for i := range y {
		y[i] = float64(2*rng.IntN(2) - 1)
	}
	net, err := newNetwork(x, pool, w, y, 0.5)
	require.NoError(t, err)
	return net, x, pool, w
}

func sigmaOf(t *testing.T, alpha ...float64) *spectral.Table {
	t.Helper()
	acts, err := spectral.NamedActivations("tanh", "softplus")
	require.NoError(t, err)
	return spectral.NewTable(spectral.Mixture{Activations: acts, Alpha: alpha})
}

// A network written out in loops, with derivatives of the loss by differences.
func TestDescentIsGradientDescentOnW(t *testing.T) {
	for _, d := range []int{3, 9} { // fewer and more features than examples
		const n, k, steps = 5, 6, 7
		net, x, pool, w := tinyNetwork(t, n, d, k, uint64(d))
		sigma := sigmaOf(t, 0.4, 0.6)
		done, err := net.descend(t.Context(), sigma, steps, 0.1)
		require.NoError(t, err)
		f := func(w *mat.Dense, x mat.Vector) (sum float64) {
			for r := range k {
				value, _ := sigma.Eval(mat.Dot(w.RowView(r), x))
				sum += net.v[r] * value
			}
			return sum
		}
		loss := func(w *mat.Dense) (sum float64) {
			for i := range n {
				sum += math.Pow(net.y[i]-f(w, x.RowView(i)), 2) / 2
			}
			return sum
		}
		slow := mat.DenseCopyOf(w)
		for range steps {
			grad := mat.NewDense(k, d, nil)
			for p := range slow.RawMatrix().Data {
				at := slow.RawMatrix().Data[p]
				slow.RawMatrix().Data[p] = at + 1e-5
				up := loss(slow)
				slow.RawMatrix().Data[p] = at - 1e-5
				grad.RawMatrix().Data[p] = (up - loss(slow)) / 2e-5
				slow.RawMatrix().Data[p] = at
			}
			grad.Scale(done.Eta, grad)
			slow.Sub(slow, grad)
		}
		for i := range 5 {
			require.InDelta(t, f(slow, pool.RowView(i)), done.Pool[i], 1e-7, "d = %d", d)
		}
		require.InDelta(t, f(slow, x.RowView(2)), done.Train[2], 1e-7)
		require.InDelta(t, mat.Norm(difference(slow, w), 2)/mat.Norm(net.w0, 2), done.Movement, 1e-7)
	}
}

func difference(a, b *mat.Dense) *mat.Dense {
	var d mat.Dense
	d.Sub(a, b)
	return &d
}

// The closed form of the linearized network against its own steps.
func TestLinearizationIsItsGradientDescent(t *testing.T) {
	const n, d, steps = 6, 4, 9
	net, x, pool, w := tinyNetwork(t, n, d, 8, 3)
	sigma := sigmaOf(t, 0.5, 0.5)
	done, err := net.descend(t.Context(), sigma, steps, 0.1)
	require.NoError(t, err)
	phi := spectral.Features(sigma.Eval, x, w, net.v)
	other := spectral.Features(sigma.Eval, pool, w, net.v)
	f0 := net.forward(sigma, x, nil, w).f
	start := net.forward(sigma, pool, nil, w).f
	var theta, f, grad, out mat.VecDense
	theta = *mat.NewVecDense(8*d, nil)
	for range steps {
		f.MulVec(phi, &theta)
		for i := range n {
			f.SetVec(i, f.AtVec(i)+f0[i]-net.y[i])
		}
		grad.MulVec(phi.T(), &f)
		theta.AddScaledVec(&theta, -done.Eta, &grad)
	}
	out.MulVec(other, &theta)
	for i := range start {
		require.InDelta(t, start[i]+out.AtVec(i), done.Linear[i], 1e-6)
	}
}

func TestWideNetworkFollowsItsKernel(t *testing.T) {
	gap := func(k int) float64 {
		net, _, _, _ := tinyNetwork(t, 8, 5, k, 4)
		done, err := net.descend(t.Context(), sigmaOf(t, 1, 0), 50, 0.1)
		require.NoError(t, err)
		return done.LinearGap
	}
	require.Less(t, gap(16384), gap(256)/4, "64 times the width, an eighth of the distance but for chance")
}

func TestStepsThatSufficeSuffice(t *testing.T) {
	net, _, _, _ := tinyNetwork(t, 6, 8, 2048, 5)
	sigma := sigmaOf(t, 0.3, 0.7)
	first, err := net.descend(t.Context(), sigma, 1, 0.05)
	require.NoError(t, err)
	done, err := net.descend(t.Context(), sigma, int(first.Needed)+1, 0.05)
	require.NoError(t, err)
	require.GreaterOrEqual(t, done.Reached, 0)
	require.LessOrEqual(t, float64(done.Reached), first.Needed)
}

func TestDivergenceAndCancellationAreErrors(t *testing.T) {
	net, _, _, _ := tinyNetwork(t, 4, 3, 4, 6)
	net.y[0] = 1e9
	_, err := net.descend(t.Context(), sigmaOf(t, 1, 0), 5, 0.1)
	require.ErrorContains(t, err, "diverged")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = net.descend(ctx, sigmaOf(t, 1, 0), 5, 0.1)
	require.ErrorIs(t, err, context.Canceled)
}

func TestStepsCountFromTheLastError(t *testing.T) {
	require.Equal(t, 2, lastAbove([]float64{1, 0.5, 0, 0}, 0.1))
	require.Equal(t, 3, lastAbove([]float64{1, 0, 0.5, 0}, 0.1), "an error that comes back counts")
	require.Equal(t, -1, lastAbove([]float64{1, 0.5}, 0.1))
	require.Equal(t, 0, lastAbove([]float64{0}, 0.1))
	require.Equal(t, 0.75, errorRate([]float64{0, 1, -1, 2}, []float64{1, -1, 1, 1}), "an output of 0 is wrong")
}
