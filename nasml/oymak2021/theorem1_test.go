package oymak2021

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/features"
	"github.com/nasml/lab/nasml/runs"
)

// thm1Context has an empty store of its own and shows no progress.
func thm1Context(t *testing.T) context.Context {
	t.Helper()
	store, err := runs.Open(t.TempDir())
	require.NoError(t, err)
	return runs.WithProgress(runs.WithStore(t.Context(), store), runs.Silent)
}

func tinyTheorem1() Theorem1Params {
	p := Theorem1Quick
	p.TightMaps, p.TightValidation = []int{1, 8}, []int{2, 64, 256}
	p.Maps, p.Validation, p.Lambdas = []int{1, 3}, []int{20, 80}, []float64{0, 0.1}
	p.Inputs, p.Features, p.Train, p.Candidates, p.Ascent = 8, 10, 5, 6, 2
	p.Data, p.Classes, p.NetTrain, p.Pool, p.Width, p.Steps, p.NetCandidates = data.Synthetic, [2]int{0, 1}, 8, 40, 8, 30, 4
	p.Lipschitz, p.LipschitzValid = []float64{1, 3, 10}, 30
	p.Seeds, p.Repeats = 2, 3
	return p
}

func TestTheoremsAreRegistered(t *testing.T) {
	for _, id := range []string{theorem1ID, figure1ID, lemma1ID, lemma2ID, theorem2ID} {
		entry, err := catalog.Lookup(id)
		require.NoError(t, err)
		_, err = os.Stat("../../" + entry.Notebook)
		require.NoError(t, err, "the entry's notebook must be there")
	}
	for _, check := range []func() error{
		Theorem1Quick.check, Theorem1Paper.check, Figure1Quick.check, Figure1Paper.check, Lemma1Quick.check, Lemma1Paper.check,
		Lemma2Quick.check, Lemma2Paper.check, Theorem2Quick.check, Theorem2Paper.check,
	} {
		require.NoError(t, check())
	}
}

func TestTheorem1WrongParameters(t *testing.T) {
	p := Theorem1Quick
	p.Parts, p.Train, p.Classes, p.Loss, p.NetMaps = []string{"ridges", "net"}, 50, [2]int{1, 1}, "huber", []int{9}
	_, err := Theorem1(t.Context(), p)
	var usage *catalog.UsageError
	require.ErrorAs(t, err, &usage)
	for _, part := range []string{"ridges", "n_T ≤ min(d, p) = 40", "Classes", "huber", "NetMaps has 9"} {
		require.ErrorContains(t, err, part)
	}
}

// One small run of all parts: read again it is the same, a changed list
// computes only what is new, and nothing of it is NaN.
func TestTheorem1StoresItsTrials(t *testing.T) {
	ctx, p := thm1Context(t), tinyTheorem1()
	first, err := Theorem1(ctx, p)
	require.NoError(t, err)
	require.NoError(t, first.Figure().Validate())
	for _, c := range first.Check() {
		require.NotContains(t, c.Note, "NaN", c.Name)
		require.False(t, math.IsInf(float64(c.Ours), 0), c.Name)
	}
	again, err := Theorem1(ctx, p)
	require.NoError(t, err)
	require.Equal(t, runs.ClaimTable(first.Check()), runs.ClaimTable(again.Check()), "an unchanged call reads everything")
	require.Equal(t, first.Records(), again.Records())
	p.Maps = []int{1, 2, 3}
	more, err := Theorem1(ctx, p)
	require.NoError(t, err)
	fresh := 0
	for _, key := range more.Records() {
		if !slices.Contains(first.Records(), key) {
			fresh++
		}
	}
	require.Equal(t, 3*p.Seeds, fresh, "two λ and the bad labels of h = 2")

	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	p.Seeds++
	_, err = Theorem1(cancelled, p)
	require.ErrorIs(t, err, context.Canceled)
}

// The checks fail where the numbers contradict the theorem.
func TestTheorem1ChecksCanFail(t *testing.T) {
	p := tinyTheorem1()
	p.Parts, p.Seeds = []string{"tight"}, 3
	r, err := Theorem1(thm1Context(t), p)
	require.NoError(t, err)
	for _, c := range r.Curves {
		for _, record := range c.records {
			for name := range record.Series {
				for i, n := range c.Validation { // a gap that falls like n^(−0.1)
					record.Series[name][i] = math.Pow(float64(n), -0.1)
				}
			}
		}
	}
	claims := r.Check()
	require.Equal(t, runs.Fails, claims[0].Holds, claims[0].Name)
	require.Equal(t, runs.Fails, claims[1].Holds, "no growth in h")
}

func TestBallMaxAgainstSearch(t *testing.T) {
	rng := runs.RNG(1, "ball")
	for trial := range 30 {
		g := lem2Gaussian(rng, 2, 2)
		e := mat.NewSymDense(2, []float64{g.At(0, 0) - float64(trial%3), g.At(0, 1), g.At(0, 1), g.At(1, 1) - float64(trial%3)})
		b := []float64{rng.NormFloat64(), rng.NormFloat64()}
		if trial%5 == 0 { // no linear part: the largest eigenvalue, or 0
			b = []float64{0, 0}
		}
		got, err := thm1BallMax(e, b)
		require.NoError(t, err)
		want := math.Inf(-1)
		for i := range 400 {
			for j := range 101 {
				angle, r := 2*math.Pi*float64(i)/400, float64(j)/100
				a := mat.NewVecDense(2, []float64{r * math.Cos(angle), r * math.Sin(angle)})
				want = max(want, mat.Inner(a, e, a)+2*floats.Dot(b, a.RawVector().Data))
			}
		}
		require.InDelta(t, want, got, 2e-3*(1+math.Abs(want)))
		require.GreaterOrEqual(t, got, want-1e-12)
	}
	// The hard case: b is orthogonal to the top eigenvector. max of a₁² + 2·0.1·a₂ is 1 + 0.01.
	got, err := thm1BallMax(mat.NewSymDense(2, []float64{1, 0, 0, 0}), []float64{0, 0.1})
	require.NoError(t, err)
	require.InDelta(t, 1.01, got, 1e-9)
}

// The suprema bound the gap and its gradient at every α of the ball, and are
// reached on a fine grid; the gradient is that of the gap.
func TestTightGaps(t *testing.T) {
	for _, h := range []int{1, 2, 5} {
		f := newThm1Tight(runs.RNG(3, "tight"), h, 7)
		risk, gradient, err := f.gaps(h)
		require.NoError(t, err)
		gapAt := func(alpha []float64) float64 {
			a := mat.NewVecDense(h, alpha)
			return mat.Inner(a, f.second, a) - 2*floats.Dot(f.first, alpha) + f.rest
		}
		rng, nearRisk, nearGradient := runs.RNG(4, "α"), 0.0, 0.0
		for range 4000 {
			alpha := thm1BallPoint(rng, h)
			if rng.IntN(2) == 0 {
				floats.Scale(1/floats.Norm(alpha, 2), alpha)
			}
			grad := fd.Gradient(nil, gapAt, alpha, &fd.Settings{Formula: fd.Central})
			nearRisk, nearGradient = max(nearRisk, math.Abs(gapAt(alpha))), max(nearGradient, floats.Norm(grad, 2))
		}
		require.LessOrEqual(t, nearRisk, risk*(1+1e-9))
		require.LessOrEqual(t, nearGradient, gradient*(1+1e-6))
		if h <= 2 {
			require.InEpsilon(t, risk, nearRisk, 0.02)
			require.InEpsilon(t, gradient, nearGradient, 0.02)
		}
		require.InDelta(t, math.Abs(gapAt(unit(h))), f.fixed(), 1e-12)
	}
}

func unit(h int) []float64 {
	e := make([]float64, h)
	e[0] = 1
	return e
}

// The closed forms of the world against samples: risk, moments and maps.
func TestWorldAgainstSamples(t *testing.T) {
	w := thm1World{Inputs: 5, Features: 7, Maps: 3, Decay: 1, Flips: 0.1}
	teacher := newThm1Teacher(2, w)
	for _, p := range teacher.maps {
		require.InDelta(t, 1, lem2Spectral(p), 1e-12, "B = 1")
	}
	rng := runs.RNG(5, "w")
	x, y := teacher.sample(rng, 200_000)
	v := []float64{1, -2, 0.5, 0.3, 0.7}
	var f mat.VecDense
	f.MulVec(x, mat.NewVecDense(5, v))
	sum := 0.0
	for i, target := range y {
		sum += (target - f.AtVec(i)) * (target - f.AtVec(i))
	}
	require.InDelta(t, teacher.risk(v), sum/200_000, 0.02)

	// L̂_V − L by the moments of one sample, and its gradient.
	dev := teacher.deviation(runs.RNG(6, "v"), 11)
	x, y = teacher.sample(runs.RNG(6, "v"), 11)
	direct := func(v []float64) float64 {
		sum := 0.0
		for i, target := range y {
			r := target - floats.Dot(x.RawRowView(i), v)
			sum += r * r / 11
		}
		return sum - teacher.risk(v)
	}
	gap, grad := dev.gap(v)
	require.InDelta(t, direct(v), gap, 1e-12)
	require.InDeltaSlice(t, fd.Gradient(nil, direct, v, &fd.Settings{Formula: fd.Central}), grad, 1e-6)
}

// w_α = P_αᵀθ_α predicts as the mixture does, and its Jacobian is that of
// differences; inputs, features and examples of 1 are allowed.
func TestWeightsAndTheirJacobian(t *testing.T) {
	for _, w := range []thm1World{{6, 8, 3, 1, 0.1}, {1, 1, 1, 0, 0}} {
		teacher := newThm1Teacher(1, w)
		x, y := teacher.sample(runs.RNG(1, "x"), min(4, w.Inputs))
		train, err := teacher.mixture(x, y)
		require.NoError(t, err)
		at := append(thm1SimplexPoint(runs.RNG(2, "α"), w.Maps), 0.3)
		weights := func(at []float64) []float64 {
			fit, err := train.Fit(at[:w.Maps], at[w.Maps])
			require.NoError(t, err)
			v, _, err := teacher.weights(fit, false)
			require.NoError(t, err)
			return v
		}
		fit, err := train.Fit(at[:w.Maps], 0.3)
		require.NoError(t, err)
		v, jacobian, err := teacher.weights(fit, true)
		require.NoError(t, err)
		predicted := mat.NewVecDense(len(y), nil)
		predicted.MulVec(x, mat.NewVecDense(len(v), v))
		require.InDeltaSlice(t, fit.Predict(train), predicted.RawVector().Data, 1e-12)
		want := mat.NewDense(w.Inputs, w.Maps+1, nil)
		fd.Jacobian(want, func(y, x []float64) { copy(y, weights(x)) }, at, &fd.JacobianSettings{Formula: fd.Central})
		require.True(t, mat.EqualApprox(want, jacobian, 1e-5*(1+mat.Norm(want, 2))))
	}
}

func TestCandidatesLieInTheSimplex(t *testing.T) {
	for _, h := range []int{1, 2, 7} {
		all := thm1Candidates(runs.RNG(1, "c"), h, 30)
		require.GreaterOrEqual(t, len(all), 1)
		for _, alpha := range all {
			require.InDelta(t, 1, floats.Sum(alpha), 1e-12)
			require.GreaterOrEqual(t, floats.Min(alpha), 0.0)
		}
		moved := thm1Multiplied(all[0], []float64{3, -1, 2, 0, 5, 1, 1}[:h])
		require.InDelta(t, 1, floats.Sum(moved), 1e-12)
	}
}

func TestActivationSlopes(t *testing.T) {
	for name, a := range thm1Activations {
		for _, z := range []float64{-2, -0.3, 0.4, 1.7} {
			require.InDelta(t, fd.Derivative(a.value, z, &fd.Settings{Formula: fd.Central}), a.slope(z), 1e-6, name)
		}
	}
}

// Training on the Gram matrix is gradient descent in W, by plain loops.
func TestNetEqualsGradientDescentInW(t *testing.T) {
	im, err := thm1Images(t.Context(), data.Synthetic, [2]int{2, 5})
	require.NoError(t, err)
	net := thm1Net{Classes: [2]int{2, 5}, Train: 6, Pool: 5, Activations: []string{"relu", "tanh"}, Width: 4, Steps: 7, C0: 2, Rate: 0.5}
	task, err := newThm1Task(im, net, 3)
	require.NoError(t, err)
	alpha := []float64{0.3, 0.7}
	train, pool, err := task.train(t.Context(), alpha)
	require.NoError(t, err)

	_, d := task.x.Dims()
	rng := runs.RNG(3, "weights")
	w := mat.NewDense(net.Width, d, nil)
	w.Apply(func(int, int, float64) float64 { return rng.NormFloat64() }, w)
	output := func(x []float64) (f float64, slopes []float64) {
		for j := range net.Width {
			z := floats.Dot(w.RawRowView(j), x)
			f += task.head[j] * (alpha[0]*max(z, 0) + alpha[1]*math.Tanh(z))
			slopes = append(slopes, task.head[j]*(alpha[0]*thm1Step(z)+alpha[1]*(1-math.Tanh(z)*math.Tanh(z))))
		}
		return f, slopes
	}
	eta := net.Rate / task.sharpness(alpha)
	for range net.Steps {
		grad := mat.NewDense(net.Width, d, nil)
		for i := range net.Train {
			x := task.x.RawRowView(i)
			f, slopes := output(x)
			for j, s := range slopes {
				floats.AddScaled(grad.RawRowView(j), (f-task.y[i])*s, x)
			}
		}
		grad.Scale(-eta, grad)
		w.Add(w, grad)
	}
	for i := range net.Train {
		f, _ := output(task.x.RawRowView(i))
		require.InDelta(t, f, train[i], 1e-9)
	}
	for i := range net.Pool {
		f, _ := output(task.pool.RawRowView(i))
		require.InDelta(t, f, pool[i], 1e-9)
	}
	require.InDelta(t, 2, floats.Dot(task.head, task.head), 1e-12, "‖v‖² = c₀")
}

// The sharpness is λ_max of the tangent kernel JJᵀ, J by differences in W.
func TestNetSharpness(t *testing.T) {
	im, err := thm1Images(t.Context(), data.Synthetic, [2]int{2, 5})
	require.NoError(t, err)
	net := thm1Net{Classes: [2]int{2, 5}, Train: 3, Pool: 2, Activations: []string{"tanh", "sigmoid"}, Width: 4, Steps: 1, C0: 1, Rate: 1}
	task, err := newThm1Task(im, net, 0)
	require.NoError(t, err)
	alpha := []float64{0.5, 0.5}
	slopes := task.apply(alpha, task.z, true)
	_, d := task.x.Dims()
	jacobian := mat.NewDense(3, 4*d, nil)
	for i := range 3 {
		for j := range 4 {
			for k := range d {
				jacobian.Set(i, j*d+k, task.head[j]*slopes.At(i, j)*task.x.At(i, k))
			}
		}
	}
	s := lem2Spectral(jacobian)
	require.InEpsilon(t, s*s, task.sharpness(alpha), 1e-9)
}

func TestCoversAreCounted(t *testing.T) {
	// Points −1, −0.5, 0, 0.5, 1 in order: greedy centres at ε = 0.8 are −1, 0, 1.
	sample := [][]float64{{-1}, {-0.5}, {0}, {0.5}, {1}}
	require.Equal(t, []float64{3, 5, 5, 5}, thm1CoverSizes(sample))
}

func TestCosinesGrowWithL(t *testing.T) {
	got := thm1Cosines(runs.RNG(1, "c"), 50, []float64{0, 1, 30}, 0.1)
	require.Zero(t, got[0], "at ω = 0 both sides are 1")
	require.True(t, slices.IsSorted(got))
	require.Less(t, got[2], 1.0)
}

func TestSlopesAndVerdicts(t *testing.T) {
	require.InDelta(t, -0.5, thm1Slope([]float64{1, 4, 16}, []float64{2, 1, 0.5}), 1e-12)
	require.True(t, math.IsNaN(thm1Slope([]float64{1}, []float64{1})))
	require.True(t, math.IsNaN(thm1Slope([]float64{1, 2}, []float64{1, 0})))
	claim := func(values ...float64) runs.Verdict {
		return thm1Claim("", "", 0, -0.1, 0.1, values, 0.95, "").Holds
	}
	require.Equal(t, runs.Holds, claim(0.01, -0.01, 0.02))
	require.Equal(t, runs.Fails, claim(0.51, 0.49, 0.5))
	require.Equal(t, runs.NotKnown, claim(0.3, -0.3, 0.1), "the interval holds an end")
	require.Equal(t, runs.NotKnown, claim(0), "one seed has no interval")
	require.Equal(t, runs.NotKnown, claim(math.NaN(), 0))
	require.Equal(t, runs.Fails, claim(1, 1), "a number without noise is its own interval")
	require.Equal(t, runs.Fails, thm1None("", "", 1, 5, "").Holds)
	require.Equal(t, runs.NotKnown, thm1None("", "", 0, 0, "").Holds)
}

func TestFigure1FromNetworks(t *testing.T) {
	ctx, p := thm1Context(t), Figure1Quick
	p.Data, p.Classes, p.Train, p.Pool, p.Width, p.Steps = data.Synthetic, [2]int{0, 1}, 8, 60, 8, 30
	p.LineSteps, p.PlaneSteps, p.Validation, p.Seeds = 3, 2, []int{3, 400}, 2
	r, err := Figure1(ctx, p)
	require.NoError(t, err)
	require.NoError(t, r.Figure().Validate())
	require.Contains(t, r.caption(), "SYNTHETIC DATA")
	require.Len(t, r.Records(), 4)
	require.Len(t, r.line[0].Series["test"], 4)
	require.Len(t, r.plane[0].Series["test"], 6)
	byName := map[string]runs.Verdict{}
	for _, c := range r.Check() {
		byName[c.Name] = c.Holds
	}
	require.Equal(t, runs.NotKnown, byName["figure1c-train-zero"])
	p.Plane[2] = "tanhh"
	_, err = Figure1(ctx, p)
	require.ErrorContains(t, err, "tanhh")
}

func TestFigure1Grid(t *testing.T) {
	require.Equal(t, [][]float64{{1, 0}, {0.5, 0.5}, {0, 1}}, fig1Grid(2, 2))
	grid := fig1Grid(3, 4)
	require.Len(t, grid, 15)
	for _, alpha := range grid {
		require.InDelta(t, 1, floats.Sum(alpha), 1e-12)
	}
}

func TestLemma2Quadratics(t *testing.T) {
	example := lem2Example(3, 2)
	require.InDelta(t, 3, example.lipschitz, 1e-12)
	require.Zero(t, example.smooth)
	require.InDelta(t, 3, example.cross, 1e-12)
	rng := runs.RNG(1, "q")
	for range 50 {
		h, p := 1+rng.IntN(3), 1+rng.IntN(4)
		hessian := lem2Separate(rng, h, p)
		b, err := lem2Quadratic(hessian, h)
		require.NoError(t, err)
		// By differences: θ_α solves H_θθθ = −H_θα α, so it is linear in α.
		most := 0.0
		for range 200 {
			alpha := thm1BallPoint(rng, h)
			floats.Scale(1/floats.Norm(alpha, 2), alpha)
			var theta mat.VecDense
			right := mat.NewVecDense(p, nil)
			for i := range p {
				for j := range h {
					right.SetVec(i, right.AtVec(i)-hessian.At(h+i, j)*alpha[j])
				}
			}
			require.NoError(t, theta.SolveVec(lem2Block(hessian, h, h+p), right))
			most = max(most, mat.Norm(&theta, 2))
		}
		require.LessOrEqual(t, most, b.lipschitz*(1+1e-9))
		require.Greater(t, most, 0.5*b.lipschitz)
		require.LessOrEqual(t, b.lipschitz, b.cross*(1+1e-9))
		joint, err := lem2Quadratic(lem2Joint(rng, h, p), h)
		require.NoError(t, err)
		require.LessOrEqual(t, joint.lipschitz, joint.smooth*(1+1e-6))
	}
}

func TestLemma2NewtonFindsTheMinimum(t *testing.T) {
	rng := runs.RNG(2, "n")
	a, b := lem2Gaussian(rng, 5, 2), lem2Gaussian(rng, 5, 3)
	alpha := []float64{1, -2}
	theta, err := lem2Newton(a, b, alpha, 0.5)
	require.NoError(t, err)
	value := func(theta []float64) float64 {
		v, _, _ := lem2Expand(a, b, alpha, theta, 0.5)
		return v
	}
	require.InDeltaSlice(t, []float64{0, 0, 0}, fd.Gradient(nil, value, theta, &fd.Settings{Formula: fd.Central}), 1e-6)
	_, grad, hessian := lem2Expand(a, b, alpha, []float64{0.1, 0.2, 0.3}, 0.5)
	at := []float64{0.1, 0.2, 0.3}
	require.InDeltaSlice(t, fd.Gradient(nil, value, at, &fd.Settings{Formula: fd.Central}), grad, 1e-6)
	want := mat.NewSymDense(3, nil)
	fd.Hessian(want, value, at, nil)
	require.True(t, mat.EqualApprox(want, hessian, 1e-4))
}

func TestLemma2Run(t *testing.T) {
	p := Lemma2Quick
	p.Maps, p.Weights, p.Cases, p.Lambdas, p.Candidates, p.Seeds = []int{1, 2}, []int{1, 3}, 5, []float64{0.1, 1}, 4, 2
	r, err := Lemma2(thm1Context(t), p)
	require.NoError(t, err)
	require.NoError(t, r.Figure().Validate())
	claims := r.Check()
	require.Equal(t, runs.Holds, claims[0].Holds)
	require.Equal(t, runs.Fails, claims[5].Holds, "the counterexample")
	p.Lambdas = []float64{0}
	_, err = Lemma2(t.Context(), p)
	require.ErrorContains(t, err, "not strongly convex")
}

// The derivatives of (6) in runRidge against differences of the objective.
func TestLemma2RidgeConstants(t *testing.T) {
	c := lem2Case{Kind: "ridge", Lambda: 0.5, Train: 4, Candidates: 1, World: &thm1World{Inputs: 5, Features: 6, Maps: 1, Flips: 0}}
	got, err := c.run(t.Context(), 1)
	require.NoError(t, err)
	teacher := newThm1Teacher(1, *c.World)
	x, y := teacher.sample(runs.RNG(1, "train"), 4)
	train, err := teacher.mixture(x, y)
	require.NoError(t, err)
	fit, err := train.Fit([]float64{1}, 0.5) // h = 1: the only candidate
	require.NoError(t, err)
	objective := func(v []float64) float64 { // v = (α, θ)
		sum := 0.5 * floats.Dot(v[1:], v[1:])
		for i := range y {
			r := y[i] - v[0]*floats.Dot(train.Maps[0].RawRowView(i), v[1:])
			sum += r * r
		}
		return sum
	}
	hessian := mat.NewSymDense(7, nil)
	fd.Hessian(hessian, objective, append([]float64{1}, fit.Theta...), nil)
	cross := 0.0
	for i := 1; i < 7; i++ {
		cross += hessian.At(i, 0) * hessian.At(i, 0)
	}
	require.InEpsilon(t, math.Sqrt(hessian.At(0, 0)/1), got.Values["smooth"], 1e-3, "μ = 2λ = 1, because p > n_T")
	require.InEpsilon(t, math.Sqrt(cross), got.Values["cross"], 1e-3)
}

func tinyLemma1() Lemma1Params {
	p := Lemma1Quick
	p.Lambdas, p.Trains, p.Decays, p.Maps, p.Scales = []float64{0.1, 0}, []int{4}, []float64{1}, []int{3, 1}, []float64{1, 100}
	p.Inputs, p.Features, p.Candidates, p.Pool, p.Validation, p.Repeats, p.Seeds = 8, 9, 8, 50, []int{4, 40, 400}, 2, 2
	return p
}

func TestLemma1Run(t *testing.T) {
	r, err := Lemma1(thm1Context(t), tinyLemma1())
	require.NoError(t, err)
	require.NoError(t, r.Figure().Validate())
	byName := map[string]runs.Claim{}
	for _, c := range r.Check() {
		byName[c.Name] = c
	}
	require.Equal(t, runs.Holds, byName["own: Lipschitz constant ≤ our bound"].Holds)
	require.InDelta(t, 1, float64(byName["own: c·L is the same for Δ and cΔ at λ = 0"].Ours), 1e-9)
	p := tinyLemma1()
	p.Maps = []int{1}
	one, err := Lemma1(thm1Context(t), p)
	require.NoError(t, err)
	at := slices.IndexFunc(one.Check(), func(c runs.Claim) bool { return strings.HasPrefix(c.Name, "own: c·L") })
	require.Contains(t, one.Check()[at].Note, "not decidable with h = 1")
	p = tinyLemma1()
	p.Trains = []int{9}
	_, err = Lemma1(t.Context(), p)
	require.ErrorContains(t, err, "n_T ≤ min(d, p) = 8")
}

// 20·1·20²·0.5⁻²·21 with R = 1; twice the scale is 2³ or 2⁴ times that.
func TestLemma1Argument(t *testing.T) {
	c := lem1Case{Train: 20, Scale: 1}
	require.InEpsilon(t, 20*400*4*21.0, c.argument(0.5, 3), 1e-12)
	c.Scale = 2
	require.InEpsilon(t, 8*20*400*4*21.0, c.argument(0.5, 3), 1e-12)
	require.InEpsilon(t, 16*20*400*4*21.0, c.argument(0.5, 4), 1e-12)
	c.Scale = 0.1
	require.Equal(t, 1.0, c.radius(), "R ≥ 1")
}

// σ_max of the Jacobian bounds every difference quotient of f_α over the
// sphere, and small steps reach it.
func TestLemma1LipschitzConstant(t *testing.T) {
	teacher := newThm1Teacher(4, thm1World{Inputs: 6, Features: 8, Maps: 2, Decay: 1})
	x, y := teacher.sample(runs.RNG(1, "x"), 4)
	train, err := teacher.mixture(x, y)
	require.NoError(t, err)
	alpha := []float64{0.4, 0.6}
	w, slope, err := lem1Fit(teacher, train, alpha, 0.2, true)
	require.NoError(t, err)
	most, rng := 0.0, runs.RNG(2, "steps")
	for range 2000 {
		step := thm1BallPoint(rng, 3)
		floats.Scale(1e-5, step)
		moved, _, err := lem1Fit(teacher, train, []float64{alpha[0] + step[0], alpha[1] + step[1]}, 0.2+step[2], true)
		require.NoError(t, err)
		most = max(most, floats.Distance(w, moved, 2)/floats.Norm(step, 2))
	}
	require.LessOrEqual(t, most, slope*(1+1e-3))
	require.InEpsilon(t, slope, most, 0.05)
}

func tinyTheorem2() Theorem2Params {
	p := Theorem2Quick
	p.Maps, p.Trains, p.Validation = []int{2, 1}, []int{5, 10}, []int{2, 5, 10}
	p.Inputs, p.Features, p.Candidates, p.Pool = 12, 14, 5, 60
	p.PropMaps, p.Sizes, p.FixedTrain, p.Repeats, p.Seeds = []int{1, 2}, []int{10, 40}, 20, 2, 2
	return p
}

func TestTheorem2Run(t *testing.T) {
	r, err := Theorem2(thm1Context(t), tinyTheorem2())
	require.NoError(t, err)
	require.NoError(t, r.Figure().Validate())
	for _, c := range r.Check() {
		require.NotContains(t, c.Note, "NaN", c.Name)
	}
	p := tinyTheorem2()
	p.Trains = []int{5, 20}
	_, err = Theorem2(t.Context(), p)
	require.ErrorContains(t, err, "(8) does not hold")
}

// For the interpolant of minimum norm yᵀK⁻¹y = ‖θ‖², and at α* without noise it
// is at most ‖θ*‖² = 1.
func TestTheorem2Complexity(t *testing.T) {
	teacher := newThm1Teacher(5, thm1World{Inputs: 12, Features: 15, Maps: 3, Decay: 1})
	x, y := thm2Linear(teacher, runs.RNG(1, "x"), 7, 0)
	train, err := teacher.mixture(x, y)
	require.NoError(t, err)
	fit, err := train.Fit(teacher.best, 0)
	require.NoError(t, err)
	phi := train.At(teacher.best)
	var gram mat.Dense
	gram.Mul(phi, phi.T())
	var solved mat.VecDense
	require.NoError(t, solved.SolveVec(&gram, mat.NewVecDense(7, y)))
	require.InDelta(t, floats.Dot(y, solved.RawVector().Data), floats.Dot(fit.Theta, fit.Theta), 1e-9)
	require.LessOrEqual(t, floats.Dot(fit.Theta, fit.Theta), 1.0)
}

// f_α^𝒟 is the limit of large training samples.
func TestPopulationIsTheLimit(t *testing.T) {
	teacher := newThm1Teacher(6, thm1World{Inputs: 6, Features: 3, Maps: 2, Flips: 0.1})
	alpha := []float64{0.3, 0.7}
	want, err := thm2Population(teacher, alpha)
	require.NoError(t, err)
	var last float64
	for i, n := range []int{200, 20_000} {
		x, y := teacher.sample(runs.RNG(7, fmt.Sprint(n)), n)
		train, err := teacher.mixture(x, y)
		require.NoError(t, err)
		got, err := thm2Weights(teacher, train, alpha)
		require.NoError(t, err)
		distance := floats.Distance(want, got, 2) / floats.Norm(want, 2)
		if i > 0 {
			require.Less(t, distance, last/3)
			require.Less(t, distance, 0.05)
		}
		last = distance
	}
	// No other weights in the row space of P_α have less risk.
	fit, err := (&features.Mixture{Maps: teacher.maps, Y: make([]float64, 3)}).Fit(alpha, 1)
	require.NoError(t, err)
	require.Len(t, fit.Theta, 6)
	for i := range 3 {
		moved := floats.AddScaledTo(make([]float64, 6), want, 0.05, teacher.at(alpha).RawRowView(i))
		require.Greater(t, teacher.risk(moved), teacher.risk(want))
	}
}
