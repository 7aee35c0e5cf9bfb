package features

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/compute"
	_ "github.com/gomlx/compute/gobackend"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/nasml/lab/nasml/backend"
)

// threefry is threefryGraph on the host.
func threefry(key, counter [2]uint32) [2]uint32 {
	keys := [3]uint32{key[0], key[1], key[0] ^ key[1] ^ threefryMark}
	a, b := counter[0]+keys[0], counter[1]+keys[1]
	for round := range uint32(5) {
		for _, turn := range threefryTurns[round%2] {
			a += b
			b = bits.RotateLeft32(b, turn) ^ a
		}
		a += keys[(round+1)%3]
		b += keys[(round+2)%3] + round + 1
	}
	return [2]uint32{a, b}
}

// drawAt is the host's version of one number of drawGraph, in float64.
func drawAt(key [2]uint32, row, col uint32, of draw) float64 {
	random := threefry(key, [2]uint32{row, col})
	unit := func(n uint32) float64 { return (float64(n>>9) + 0.5) * 0x1p-23 }
	u, v := unit(random[0]), unit(random[1])
	switch of {
	case normal:
		return math.Sqrt(-2*math.Log(u)) * math.Cos(2*math.Pi*v)
	case cauchy:
		size := 1 / math.Tan(math.Pi/2*u)
		if random[1]&1 == 1 {
			size = -size
		}
		return size
	default:
		return 2 * math.Pi * u
	}
}

func goEngine(t *testing.T) *Engine {
	b, err := compute.NewWithConfig("go")
	require.NoError(t, err)
	e := NewEngine(b)
	t.Cleanup(func() { e.Close(); b.Finalize() })
	return e
}

// Salmon+ 2011 publish these with their code (kat_vectors, threefry2x32 20).
func TestThreefryKnownAnswers(t *testing.T) {
	require.Equal(t, [2]uint32{0x6b200159, 0x99ba4efe}, threefry([2]uint32{}, [2]uint32{}))
	ones := [2]uint32{math.MaxUint32, math.MaxUint32}
	require.Equal(t, [2]uint32{0x1cb996fc, 0xbb002be7}, threefry(ones, ones))
	require.Equal(t, [2]uint32{0xc4923a9c, 0x483df7a0},
		threefry([2]uint32{0x13198a2e, 0x03707344}, [2]uint32{0x243f6a88, 0x85a308d3}))
}

func TestGraphDrawsAsTheHost(t *testing.T) {
	e := goEngine(t)
	key := drawKey(7, "test")
	for _, of := range []draw{normal, cauchy, uniform} {
		m, err := e.draw(key, 9, 13, of)
		require.NoError(t, err)
		got := tensors.MustCopyFlatData[float32](m)
		for i := range got {
			want := drawAt(key, uint32(i/13), uint32(i%13), of)
			require.InDelta(t, want, got[i], 2e-6*(1+math.Abs(want)), "%s %d", of, i)
		}
		wider, err := e.draw(key, 12, 20, of)
		require.NoError(t, err)
		all := tensors.MustCopyFlatData[float32](wider)
		for i := range got {
			require.Equal(t, got[i], all[i/13*20+i%13], "a number does not depend on the size of the matrix")
		}
	}
}

func TestDrawsHaveTheirDistributions(t *testing.T) {
	key, n := drawKey(1, "test"), 40_000
	var x, y, c, u []float64
	for i := range uint32(n) {
		x, y = append(x, drawAt(key, i, 0, normal)), append(y, drawAt(key, 0, i+1, normal))
		c, u = append(c, drawAt(key, i, 1, cauchy)), append(u, drawAt(key, i, 2, uniform))
	}
	sem := 1 / math.Sqrt(float64(n))
	require.InDelta(t, 0, stat.Mean(x, nil), 4*sem)
	require.InDelta(t, 1, stat.Variance(x, nil), 4*math.Sqrt2*sem)
	require.InDelta(t, 0, stat.ExKurtosis(x, nil), 4*math.Sqrt(24)*sem)
	require.InDelta(t, 0, stat.Correlation(x, y, nil), 4*sem)
	// cos(tX) has the mean e^{-t²/2} for a normal X and e^{-|t|} for a Cauchy one.
	for _, at := range []float64{0.1, 0.5, 1, 2} {
		require.InDelta(t, math.Exp(-at*at/2), meanCos(x, at), 4*sem)
		require.InDelta(t, math.Exp(-at), meanCos(c, at), 4*sem)
		require.InDelta(t, 0, meanCos(u, 1), 4*sem)
	}
	below := 0
	for _, v := range c {
		if v < -1 {
			below++
		}
	}
	require.InDelta(t, 0.25, float64(below)/float64(n), 2*sem, "the lower quartile of a Cauchy variable is −1")
}

func meanCos(x []float64, t float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += math.Cos(t * v)
	}
	return sum / float64(len(x))
}

// hostFeatures are the features, straight from the formula.
func hostFeatures(f Fourier, rows Rows) *mat.Dense {
	n, p := rows.X.Rows, rows.X.Cols
	drawn := map[string]*mat.Dense{} // of [rows, d]
	drawAll := func(of draw, size int, parts ...string) *mat.Dense {
		name := fmt.Sprint(of, parts)
		if drawn[name] == nil {
			key := drawKey(f.Seed, parts...)
			m := mat.NewDense(size, f.Dim, nil)
			m.Apply(
				func(i, j int, _ float64) float64 { return float64(float32(drawAt(key, uint32(i), uint32(j), of))) },
				m,
			)
			drawn[name] = m
		}
		return drawn[name]
	}
	out, scaled, wide := mat.NewDense(n, f.Dim, nil), make([]float32, p), make([]float64, p)
	for i := range n {
		index, c := rows.config(i)
		name := ""
		if f.Fresh {
			name = fmt.Sprint(index)
		}
		of := map[Kernel]draw{Gaussian: normal, Laplacian: cauchy}[c.Kernel]
		w, b := drawAll(of, p, string(of), name), drawAll(uniform, 1, "offsets", name)
		rows.Scaling.applyTo(scaled, rows.X.Row(i), c.Preprocess, c.factor())
		for l, v := range scaled {
			wide[l] = float64(v)
		}
		var phase mat.VecDense
		phase.MulVec(w.T(), mat.NewVecDense(p, wide))
		for j := range f.Dim {
			out.Set(i, j, math.Sqrt(2/float64(f.Dim))*math.Cos(phase.AtVec(j)+b.At(0, j)))
		}
	}
	return out
}

// someRows are n rows of p inputs with four configurations.
func someRows(t *testing.T, n, p int) Rows {
	rng := rand.New(rand.NewPCG(1, 2))
	x := Table{Rows: n, Cols: p, Data: make([]float32, n*p)}
	for i := range x.Data {
		x.Data[i] = rng.Float32()
	}
	s, err := FitScaling(x)
	require.NoError(t, err)
	rows := Rows{X: x, Scaling: s, Config: make([]int, n), Configs: []FourierConfig{
		{Gaussian, 0.3, Raw}, {Laplacian, 0.05, MinMax}, {Gaussian, 0.02, Standard}, {Laplacian, 0.2, UnitRows},
	}}
	for i := range rows.Config {
		rows.Config[i] = rng.IntN(4)
	}
	return rows
}

func TestFeaturesAgainstTheFormula(t *testing.T) {
	e := goEngine(t)
	e.blocks = 40 * 11 // blocks of 32 rows
	rows := someRows(t, 75, 6)
	rng := rand.New(rand.NewPCG(3, 4))
	for _, fresh := range []bool{false, true} {
		f := Fourier{Dim: 11, Seed: 5, Fresh: fresh}
		phi := dense{hostFeatures(f, rows)}
		for _, keep := range []int64{0, 40 * 11 * 4, 1 << 30} { // none, some, all of 75 rows
			m, err := e.Features(t.Context(), f, rows, keep)
			require.NoError(t, err)
			require.Equal(t, keep == 1<<30, m.Kept())
			if keep > 0 {
				require.NotEmpty(t, m.kept)
			}
			x, y := randomMatrix(rng, 11, 3), randomMatrix(rng, 75, 3)
			got, want := mat.NewDense(75, 3, nil), mat.NewDense(75, 3, nil)
			require.NoError(t, m.MulTo(t.Context(), got, x))
			require.NoError(t, phi.MulTo(t.Context(), want, x))
			require.True(t, mat.EqualApprox(got, want, 2e-5))
			got, want = mat.NewDense(11, 3, nil), mat.NewDense(11, 3, nil)
			require.NoError(t, m.MulTransTo(t.Context(), got, y))
			require.NoError(t, phi.MulTransTo(t.Context(), want, y))
			require.True(t, mat.EqualApprox(got, want, 2e-5))
			// The step, against its two products.
			yStep, shift, scale := mat.DenseCopyOf(y), []float64{1, -2, 3}, []float64{0.5, 0, -1}
			require.NoError(t, m.StepTo(t.Context(), got, yStep, x, shift, scale))
			yWant := mat.NewDense(75, 3, nil)
			require.NoError(t, phi.MulTo(t.Context(), yWant, x))
			yWant.Apply(func(i, j int, v float64) float64 { return v - shift[j] - scale[j]*y.At(i, j) }, yWant)
			require.NoError(t, phi.MulTransTo(t.Context(), want, yWant))
			require.True(t, mat.EqualApprox(yStep, yWant, 2e-5))
			require.True(t, mat.EqualApprox(got, want, 2e-4))
			m.Close()
		}
	}
}

func TestFeaturesDoNotDependOnTheCut(t *testing.T) {
	rows := someRows(t, 130, 4)
	x := randomMatrix(rand.New(rand.NewPCG(5, 6)), 16, 2)
	var first *mat.Dense
	for _, blocks := range []int{1, 64 * 16, 1 << 20} {
		e := goEngine(t)
		e.blocks = blocks
		m, err := e.Features(t.Context(), Fourier{Dim: 16, Seed: 1}, rows, 0)
		require.NoError(t, err)
		y := mat.NewDense(130, 2, nil)
		require.NoError(t, m.MulTo(t.Context(), y, x))
		if first == nil {
			first = y
		}
		require.True(t, mat.EqualApprox(first, y, 1e-5), "float32")
		m.Close()
	}
}

// ⟨φ(x), φ(x′)⟩ → k(x, x′), at the rate d^{-1/2}.
func TestFeaturesApproximateTheirKernel(t *testing.T) {
	x := Table{Rows: 2, Cols: 3, Data: []float32{0.1, 0.9, 0.4, 0.6, 0.3, 0.2}}
	kernels := map[Kernel]float64{Gaussian: 0.5*0.5 + 0.6*0.6 + 0.2*0.2, Laplacian: 0.5 + 0.6 + 0.2}
	for kernel, distance := range kernels {
		for _, gamma := range []float64{1e-5, 0.7, 10} {
			want := math.Exp(-gamma * distance)
			f := Fourier{Dim: 20_000, Seed: 3}
			phi := hostFeatures(f, Rows{X: x, Configs: []FourierConfig{{kernel, gamma, Raw}}})
			got := mat.Dot(phi.RowView(0), phi.RowView(1))
			require.InDelta(t, want, got, 4/math.Sqrt(20_000), "%s γ = %v", kernel, gamma)
		}
	}
}

func TestRidgeOnFeatures(t *testing.T) {
	rows := someRows(t, 90, 5)
	f := Fourier{Dim: 24, Seed: 2}
	y := randomMatrix(rand.New(rand.NewPCG(7, 8)), 90, 3)
	w, b := exactRidge(hostFeatures(f, rows), y, 0.5)
	e := goEngine(t)
	for _, keep := range []int64{0, 1 << 30} {
		m, err := e.Features(t.Context(), f, rows, keep)
		require.NoError(t, err)
		fit, err := FitRidge(t.Context(), m, y, RidgeParams{Lambda: 0.5, Tol: 1e-7})
		require.NoError(t, err)
		require.True(t, mat.EqualApprox(w, fit.Weights, 1e-4*mat.Norm(w, 2)))
		require.InDeltaSlice(t, b, fit.Intercept, 1e-4)
		require.Equal(t, 1+slices.Max(fit.Solve.Iterations), fit.Solve.Passes,
			"one pass an iteration, and one for means and Aᵀy")
		scores, err := fit.Scores(t.Context(), m)
		require.NoError(t, err)
		want, err := fit.Scores(t.Context(), dense{hostFeatures(f, rows)})
		require.NoError(t, err)
		require.True(t, mat.EqualApprox(want, scores, 1e-4))
		m.Close()
	}
}

func TestPreprocessing(t *testing.T) {
	train := Table{Rows: 3, Cols: 2, Data: []float32{1, 7, 3, 7, 5, 7}}
	s, err := FitScaling(train)
	require.NoError(t, err)
	apply := func(how Preprocess, row ...float32) []float32 {
		out := make([]float32, 2)
		s.applyTo(out, row, how, 2)
		return out
	}
	require.Equal(t, []float32{6, 16}, apply(Raw, 3, 8))
	require.Equal(t, []float32{1, 2}, apply(MinMax, 3, 8), "a constant column is shifted only")
	require.Equal(t, []float32{4, 0}, apply(MinMax, 9, 7), "a new row may leave [0, 1]")
	require.InDeltaSlice(t, []float32{float32(2 * 2 / math.Sqrt(8.0/3)), 2}, apply(Standard, 5, 8), 1e-6)
	require.InDeltaSlice(t, []float32{1.2, 1.6}, apply(UnitRows, 3, 4), 1e-6)
	require.Equal(t, []float32{0, 0}, apply(UnitRows, 0, 0), "a row of zeros stays")

	constant, err := FitScaling(Table{Rows: 3, Cols: 1, Data: []float32{0.1, 0.1, 0.1}})
	require.NoError(t, err)
	out := make([]float32, 1)
	constant.applyTo(out, []float32{0.1}, Standard, 1)
	require.Zero(t, out[0], "rounding of the mean is not scaled up")
}

func TestFeaturesOfEdgeCases(t *testing.T) {
	e := goEngine(t)
	for _, c := range []FourierConfig{
		{Gaussian, 1e-5, Raw}, {Gaussian, 10, Standard}, {Laplacian, 1e-5, UnitRows}, {Laplacian, 10, MinMax},
	} {
		for _, n := range []int{1, 3} {
			x := Table{Rows: n, Cols: 2, Data: make([]float32, 2*n)} // zeros: constant columns
			s, err := FitScaling(x)
			require.NoError(t, err)
			m, err := e.Features(t.Context(), Fourier{Dim: 1, Seed: 1},
				Rows{X: x, Scaling: s, Configs: []FourierConfig{c}}, 0)
			require.NoError(t, err)
			y := mat.NewDense(n, 1, slices.Repeat([]float64{2}, n))
			fit, err := FitRidge(t.Context(), m, y, RidgeParams{Lambda: 0.5, Tol: 1e-4})
			require.NoError(t, err)
			require.InDelta(t, 2, fit.Intercept[0], 1e-5, "equal targets need no feature")
			m.Close()
		}
	}
}

func TestFeaturesRefuse(t *testing.T) {
	e := goEngine(t)
	good := func() (Fourier, Rows) { return Fourier{Dim: 2, Seed: 1}, someRows(t, 5, 2) }
	for want, change := range map[string]func(*Fourier, *Rows){
		"d must be at least 1, got 0":      func(f *Fourier, _ *Rows) { f.Dim = 0 },
		"at least one configuration":       func(_ *Fourier, r *Rows) { r.Configs = nil },
		`got "rbf"`:                        func(_ *Fourier, r *Rows) { r.Configs[1].Kernel = "rbf" },
		"γ must be positive, got 0":        func(_ *Fourier, r *Rows) { r.Configs[0].Gamma = 0 },
		"γ must be positive, got NaN":      func(_ *Fourier, r *Rows) { r.Configs[0].Gamma = math.NaN() },
		`got "whiten"`:                     func(_ *Fourier, r *Rows) { r.Configs[3].Preprocess = "whiten" },
		"a Scaling of 2 columns":           func(_ *Fourier, r *Rows) { r.Scaling = nil },
		"must have a configuration, got 4": func(_ *Fourier, r *Rows) { r.Config = r.Config[:4] },
		"row 2 has configuration 9":        func(_ *Fourier, r *Rows) { r.Config[2] = 9 },
		"NaN in row 1, column 0":           func(_ *Fourier, r *Rows) { r.X.Data[2] = float32(math.NaN()) },
		"+Inf in row 0":                    func(_ *Fourier, r *Rows) { r.X.Data[1] = float32(math.Inf(1)) },
		"2 columns with 7 numbers":         func(_ *Fourier, r *Rows) { r.X.Data = r.X.Data[:7] },
		"a table of 0 rows and 2 colu":     func(_ *Fourier, r *Rows) { r.X = Table{Cols: 2} },
	} {
		f, rows := good()
		change(&f, &rows)
		_, err := e.Features(t.Context(), f, rows, 0)
		require.ErrorContains(t, err, want)
	}
	_, err := FitScaling(Table{Rows: 1, Cols: 1, Data: []float32{float32(math.NaN())}})
	require.ErrorContains(t, err, "NaN")

	f, rows := good()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = e.Features(ctx, f, rows, 1<<20)
	require.ErrorIs(t, err, context.Canceled)
	m, err := e.Features(t.Context(), f, rows, 0)
	require.NoError(t, err)
	require.ErrorContains(t, m.MulTo(t.Context(), mat.NewDense(5, 1, nil), mat.NewDense(3, 1, nil)), "[5, 2]")
	require.ErrorIs(t, m.MulTo(ctx, mat.NewDense(5, 1, nil), mat.NewDense(2, 1, nil)), context.Canceled)
}

// XLA on a CPU may keep the packed right side of a product by its address, so
// the matrices of a search, which come and go, have to be right every time.
func TestXLASeesNewMatricesAtOldAddresses(t *testing.T) {
	b, err := backend.Open()
	if err != nil {
		t.Skipf("no XLA: %v", err)
	}
	e := NewEngine(b)
	defer e.Close()
	rng := rand.New(rand.NewPCG(1, 1))
	n, p, d := 600, 300, 512
	x := Table{Rows: n, Cols: p, Data: make([]float32, n*p)}
	for i := range x.Data {
		x.Data[i] = rng.Float32()
	}
	rows := Rows{X: x, Configs: []FourierConfig{{Gaussian, 0.1, Raw}, {Laplacian, 0.01, Raw}}, Config: make([]int, n)}
	for i := range rows.Config {
		rows.Config[i] = i % 2
	}
	right, wants := randomMatrix(rng, d, 3), map[uint64]*mat.Dense{}
	for round := range 8 {
		f := Fourier{Dim: d, Seed: uint64(round % 2)}
		want, ok := wants[f.Seed]
		if !ok {
			want = mat.NewDense(n, 3, nil)
			want.Mul(hostFeatures(f, rows), right)
			wants[f.Seed] = want
		}
		m, err := e.Features(t.Context(), f, rows, 0)
		require.NoError(t, err)
		got, z := mat.NewDense(n, 3, nil), mat.NewDense(d, 3, nil)
		require.NoError(t, m.MulTo(t.Context(), got, right))
		require.True(t, mat.EqualApprox(want, got, 5e-3), "round %d", round)
		got.Zero()
		require.NoError(t, m.StepTo(t.Context(), z, got, right, make([]float64, 3), make([]float64, 3)))
		require.True(t, mat.EqualApprox(want, got, 5e-3), "round %d", round)
		m.Close()
	}
}
