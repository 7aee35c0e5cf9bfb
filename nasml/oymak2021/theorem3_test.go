package oymak2021

import (
	"context"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/spectral"
)

// thm3Context has an empty store of its own; these theorems need no XLA.
func thm3Context(t *testing.T) context.Context {
	t.Helper()
	store, err := runs.Open(t.TempDir())
	require.NoError(t, err)
	return runs.WithProgress(runs.WithStore(t.Context(), store), runs.Silent)
}

// thm3Stand are synthetic images, small enough for a test.
func thm3Stand(t *testing.T) *thm3ImageSet {
	t.Helper()
	set := &thm3ImageSet{fingerprint: "stand-in", synthetic: true}
	for seed, part := range []**thm3Split{&set.train, &set.test} {
		im, err := data.SyntheticImages(uint64(seed), 120, data.ImageSpec{Classes: 2, Height: 8, Width: 8})
		require.NoError(t, err)
		*part = &thm3Split{im, 0}
	}
	return set
}

func thm3Net(t *testing.T, n, d, k int, seed uint64) (net *thm3Network, x, pool, w *mat.Dense) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	x, pool, w = spectral.SpherePoints(rng, n, d), spectral.SpherePoints(rng, 5, d), spectral.Normals(rng, k, d)
	y := make([]float64, n)
	for i := range y {
		y[i] = float64(2*rng.IntN(2) - 1)
	}
	net, err := newThm3Network(x, pool, w, y, 0.5)
	require.NoError(t, err)
	return net, x, pool, w
}

func thm3Sigma(t *testing.T, alpha ...float64) *spectral.Table {
	t.Helper()
	acts, err := spectral.NamedActivations("tanh", "softplus")
	require.NoError(t, err)
	return spectral.NewTable(spectral.Mixture{Activations: acts, Alpha: alpha})
}

// A network written out in loops, with derivatives of the loss by differences.
func TestThm3DescentIsGradientDescentOnW(t *testing.T) {
	for _, d := range []int{3, 9} { // fewer and more features than examples
		const n, k, steps = 5, 6, 7
		net, x, pool, w := thm3Net(t, n, d, k, uint64(d))
		sigma := thm3Sigma(t, 0.4, 0.6)
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
func TestThm3LinearizationIsItsGradientDescent(t *testing.T) {
	const n, d, steps = 6, 4, 9
	net, x, pool, w := thm3Net(t, n, d, 8, 3)
	sigma := thm3Sigma(t, 0.5, 0.5)
	done, err := net.descend(t.Context(), sigma, steps, 0.1)
	require.NoError(t, err)
	phi, err := spectral.Features(sigma.Eval, x, w, net.v)
	require.NoError(t, err)
	other, err := spectral.Features(sigma.Eval, pool, w, net.v)
	require.NoError(t, err)
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

func TestThm3WideNetworkFollowsItsKernel(t *testing.T) {
	gap := func(k int) float64 {
		net, _, _, _ := thm3Net(t, 8, 5, k, 4)
		done, err := net.descend(t.Context(), thm3Sigma(t, 1, 0), 50, 0.1)
		require.NoError(t, err)
		return done.LinearGap
	}
	require.Less(t, gap(16384), gap(256)/4, "64 times the width, an eighth of the distance but for chance")
}

func TestThm3StepsThatSufficeSuffice(t *testing.T) {
	net, _, _, _ := thm3Net(t, 6, 8, 2048, 5)
	sigma := thm3Sigma(t, 0.3, 0.7)
	first, err := net.descend(t.Context(), sigma, 1, 0.05)
	require.NoError(t, err)
	done, err := net.descend(t.Context(), sigma, int(first.Needed)+1, 0.05)
	require.NoError(t, err)
	require.GreaterOrEqual(t, done.Reached, 0)
	require.LessOrEqual(t, float64(done.Reached), first.Needed)
}

func TestThm3DivergenceAndCancellationAreErrors(t *testing.T) {
	net, _, _, _ := thm3Net(t, 4, 3, 4, 6)
	net.y[0] = 1e9
	_, err := net.descend(t.Context(), thm3Sigma(t, 1, 0), 5, 0.1)
	require.ErrorContains(t, err, "diverged")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = net.descend(ctx, thm3Sigma(t, 1, 0), 5, 0.1)
	require.ErrorIs(t, err, context.Canceled)
}

func TestThm3Examples(t *testing.T) {
	images := thm3Stand(t)
	for _, source := range append(Theorem3Quick.sources(), thm3Paired) {
		world := Theorem3Quick.world(source)
		if source == thm3Paired {
			world.Dim = 10
		}
		train, rest, err := world.draw(1, 40, 60, images)
		require.NoError(t, err)
		more, _, err := world.draw(1, 60, 60, images)
		require.NoError(t, err)
		require.Equal(t, train.y, more.y[:40], "a seed's first examples are the same for every n")
		margin := 0
		for i := range 40 {
			require.InDelta(t, 1, mat.Norm(train.x.RowView(i), 2), 1e-12)
			require.InDelta(t, 1, math.Abs(train.y[i]), 0)
			if math.Abs(train.x.At(i, 0)*train.y[i]-world.CosPhi) < 1e-12 {
				margin++
			}
			if source == thm3Paired && i%2 == 1 {
				require.Equal(t, train.y[i-1], train.y[i])
				require.Equal(t, train.x.At(i-1, 3), -train.x.At(i, 3))
			}
		}
		switch source {
		case thm3Cap:
			require.Equal(t, 40, margin)
		case thm3Flipped:
			require.Less(t, margin, 40)
			require.Greater(t, margin, 30)
		}
		require.False(t, mat.Equal(train.x.RowView(0), rest.x.RowView(0)))
	}
	_, _, err := Theorem3Quick.world(thm3Images).draw(1, 1000, 60, images)
	require.ErrorContains(t, err, "expected at least 1000")
}

func TestThm3StepsCountFromTheLastError(t *testing.T) {
	require.Equal(t, 2, lastAbove([]float64{1, 0.5, 0, 0}, 0.1))
	require.Equal(t, 3, lastAbove([]float64{1, 0, 0.5, 0}, 0.1), "an error that comes back counts")
	require.Equal(t, -1, lastAbove([]float64{1, 0.5}, 0.1))
	require.Equal(t, 0, lastAbove([]float64{0}, 0.1))
	require.Equal(t, 0.75, thm3Error([]float64{0, 1, -1, 2}, []float64{1, -1, 1, 1}), "an output of 0 is wrong")
}

// thm3Tiny runs in a second.
func thm3Tiny() Theorem3Params {
	p := Theorem3Quick
	p.Images = data.Synthetic
	p.Alphas, p.Seeds, p.Steps = 0, 2, 20
	p.Activations = []string{"tanh", "softplus"}
	p.Widths, p.WidthTrain = []int{2, 64, 128}, 6
	p.Trains, p.Width = []int{6, 8}, 32
	p.Validations, p.Pool, p.Draws = []int{8, 32}, 50, 3
	p.Sizes, p.SizeTrain, p.SizeAlphas = []int{2, 3}, 8, 3
	p.Ranks, p.RankPool = []int{1, 5}, 20
	return p
}

func TestTheorem3IsReadBack(t *testing.T) {
	ctx, p := thm3Context(t), thm3Tiny()
	first, err := p.run(ctx, thm3Stand(t))
	require.NoError(t, err)
	again, err := p.run(ctx, thm3Stand(t))
	require.NoError(t, err)
	require.Equal(t, first.Records(), again.Records())
	require.Equal(t, runs.ClaimTable(first.Check()), runs.ClaimTable(again.Check()))
	require.NoError(t, first.Figure().Validate())
	require.Contains(t, first.Figure().Caption, "SYNTHETIC")

	other, err := p.run(thm3Context(t), thm3Stand(t)) // another store, other goroutines
	require.NoError(t, err)
	require.Equal(t, runs.ClaimTable(first.Check()), runs.ClaimTable(other.Check()))

	p.Seed = 1
	shifted, err := p.run(ctx, thm3Stand(t))
	require.NoError(t, err)
	require.Equal(t, first.trains[thm3Cap][0][1].Key, shifted.trains[thm3Cap][0][0].Key, "seed 1 is seed 1")
}

func TestTheorem3PresetsAndWrongParameters(t *testing.T) {
	require.NoError(t, Theorem3Quick.check())
	require.NoError(t, Theorem3Paper.check())
	for _, id := range []string{theorem3ID, assumption3ID} {
		entry, err := catalog.Lookup(id)
		require.NoError(t, err)
		_, err = os.Stat("../../" + entry.Notebook)
		require.NoError(t, err, "the entry's notebook must be there")
	}
	p := Theorem3Quick
	p.Activations = []string{"relu", "tanh"}
	p.Widths = []int{3, 64}
	p.Trains = []int{10}
	p.Epsilon = 0
	p.Sizes = []int{2, 40}
	p.RankWorld = []string{"moon"}
	p.Seeds = 0
	_, err := Theorem3(t.Context(), p)
	var usage *catalog.UsageError
	require.ErrorAs(t, err, &usage)
	for _, part := range []string{"relu", "even numbers", "Trains", "Epsilon", "40", "moon", "Seeds"} {
		require.ErrorContains(t, err, part)
	}
}

// made3 is a result with invented numbers: the verdicts follow from them.
func made3(t *testing.T, change func(r *Theorem3Result)) map[string]runs.Claim {
	t.Helper()
	r, err := thm3Tiny().run(thm3Context(t), thm3Stand(t))
	require.NoError(t, err)
	change(r)
	claims := map[string]runs.Claim{}
	for _, c := range r.Check() {
		claims[c.Name] = c
	}
	return claims
}

func TestTheorem3ClaimsFollowTheNumbers(t *testing.T) {
	const slope = "thm3-nv: sup |L − L̂_V| falls as n_V^(−1/2)"
	const iters = "thm3-iters: steps to ε over those that suffice for the kernel"
	const bound = "thm3-bound: 0-1 risk of α̂ within the bound, C = 1"
	set := func(sup func(n int) float64, steps, selected float64) func(r *Theorem3Result) {
		return func(r *Theorem3Result) {
			for _, records := range r.sizes {
				for seed, record := range records {
					for i, n := range r.Params.Validations {
						record.Series["sup"][i] = sup(n) * (1 + 0.01*float64(seed))
					}
				}
			}
			for _, record := range r.all {
				for i := range record.Series["steps"] {
					record.Series["steps"][i], record.Series["needed"][i], record.Series["term"][i] = steps, 10, 0.1
				}
				for i := range record.Series["selected_max"] {
					record.Series["selected_max"][i] = selected
				}
			}
		}
	}
	good := made3(t, set(func(n int) float64 { return 1 / math.Sqrt(float64(n)) }, 5, 0.1))
	require.Equal(t, runs.Holds, good[slope].Holds)
	require.Equal(t, runs.Holds, good[iters].Holds)
	require.Equal(t, runs.Holds, good[bound].Holds)
	bad := made3(t, set(func(int) float64 { return 1 }, 11, 0.99))
	require.Equal(t, runs.Fails, bad[slope].Holds)
	require.Equal(t, runs.Fails, bad[iters].Holds)
	require.Equal(t, runs.Fails, bad[bound].Holds)
	never := made3(t, set(func(int) float64 { return 1 }, -1, 0))
	require.Equal(t, runs.Fails, never[iters].Holds, "20 steps were more than the 10 that suffice")
}

func TestThm3ClaimsNeedIntervals(t *testing.T) {
	one := thm3Claim("c", "s", 0, -1, 1, []float64{0.5}, 0.95, "n")
	require.Equal(t, runs.NotKnown, one.Holds)
	require.Contains(t, one.Note, "undecided")
	require.Equal(t, runs.Holds, thm3Claim("c", "s", 0, -1, 1, []float64{0.5, 0.4, 0.6}, 0.95, "n").Holds)
	require.Equal(t, runs.Fails, thm3Claim("c", "s", 0, -1, 1, []float64{5, 5.1, 5.2}, 0.95, "n").Holds)
	require.Equal(t, runs.NotKnown, thm3Claim("c", "s", 0, -1, 1, []float64{0.9, 1.1, 1}, 0.95, "n").Holds)
	require.Equal(t, runs.NotKnown, thm3Claim("c", "s", 0, -1, 1, nil, 0.95, "n").Holds)
	require.Equal(t, runs.NotKnown, thm3Greater("c", "s", []float64{1, -1}, []float64{0, 0}, 0.95, "n").Holds)
	_, err := thm3Exponent([]float64{1, 2}, []float64{1, 0})
	require.ErrorContains(t, err, "positive")
	lo, hi := binomialInterval(0, 17, 0.95)
	require.Zero(t, float64(lo))
	require.InDelta(t, 1-math.Pow(0.025, 1.0/17), float64(hi), 1e-9)
	lo, hi = binomialInterval(3, 3, 0.95)
	require.InDelta(t, math.Pow(0.025, 1.0/3), float64(lo), 1e-9)
	require.Equal(t, runs.Number(1), hi)
}
