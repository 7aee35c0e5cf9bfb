package excessrisk

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"

	_ "github.com/nasml/lab/nasml/internal/steady"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/trial"
)

func smallWorld(seed uint64, dim int) *instance {
	return newInstance(InstanceParams{Inputs: 3, Support: 60, Dim: dim, Gamma: 0.3, Centers: 3, Top: 0.9}, seed)
}

// The target of a world that is not exact is a function of the class, with the
// norm that it says.
func TestWorldsTargetIsRealizable(t *testing.T) {
	w := smallWorld(1, 40)
	phi := w.features(w.x, 0.3)
	all := sample{y: w.target}
	for x := range w.target {
		all.at = append(all.at, x)
	}
	f, _, err := fit(phi, all, 0)
	require.NoError(t, err)
	largest := 0.0
	for x, v := range w.target {
		require.InDelta(t, v, f[x], 1e-8)
		largest = max(largest, math.Abs(v))
	}
	require.InDelta(t, 0.9, largest, 1e-12)
	require.Positive(t, w.norm)
}

// With many features the target of the kernel and that of its features agree.
func TestRandomFeaturesApproachTheKernel(t *testing.T) {
	p := InstanceParams{Inputs: 3, Support: 50, Dim: 20000, Gamma: 0.3, Centers: 3, Top: 1}
	approximate := newInstance(p, 2)
	p.Exact = true
	exact := newInstance(p, 2)
	for x := range exact.target {
		require.InDelta(t, exact.target[x], approximate.target[x], 0.05)
	}
	phi := approximate.features(approximate.x, 0.3)
	var gram mat.Dense
	gram.Mul(phi, phi.T())
	gram.Sub(&gram, gaussKernel(exact.x, exact.x, 0.3))
	require.Less(t, mat.Max(&gram), 0.05) // O(1/√d)
}

// The ridge solution makes the gradient vanish, by either system.
func TestFitIsStationary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dim, n := rapid.IntRange(1, 30).Draw(t, "d"), rapid.IntRange(1, 30).Draw(t, "n")
		lambda := rapid.Float64Range(1e-3, 10).Draw(t, "λ")
		w := smallWorld(rapid.Uint64().Draw(t, "seed"), dim)
		rng := trial.RNG(3, "test")
		s := w.sample(n, rng)
		phi := w.features(w.x, 0.5)
		f, objective, err := fit(phi, s, lambda)
		require.NoError(t, err)
		// At the optimum λw = Φᵀ(y − Φw), so λf = ΦΦ_Tᵀ(y − f_T), which needs no w;
		// and the objective is ⟨y, y − f⟩.
		value := 0.0
		for i, x := range s.at {
			value += s.y[i] * (s.y[i] - f[x])
		}
		require.InDelta(t, value, objective, 1e-6*(1+math.Abs(value)))
		for x := range f {
			sum := 0.0
			for i, at := range s.at {
				sum += mat.Dot(phi.RowView(x), phi.RowView(at)) * (s.y[i] - f[at])
			}
			require.InDelta(t, lambda*f[x], sum, 1e-6)
		}
	})
}

// λ = 0 interpolates if there are features enough, also with a point twice.
func TestFitWithoutRegularisation(t *testing.T) {
	w := smallWorld(4, 50)
	s := sample{at: []int{3, 8, 8, 20}, y: []float64{1, -1, -1, 1}}
	f, objective, err := fit(w.features(w.x, 0.5), s, 0)
	require.NoError(t, err)
	for i, x := range s.at {
		require.InDelta(t, s.y[i], f[x], 1e-6)
	}
	require.InDelta(t, 0, objective, 1e-9)
	narrow := smallWorld(4, 2)
	_, _, err = fit(narrow.features(narrow.x, 0.5), sample{at: []int{5}, y: []float64{1}}, 0)
	require.NoError(t, err, "one point, two features")
}

// The exact excess risk is the mean over many drawn labels.
func TestExcessIsThePopulations(t *testing.T) {
	w := smallWorld(5, 20)
	f := make([]float64, len(w.target))
	for x := range f {
		f[x] = 3 * math.Sin(float64(x)) // beyond the clip as well
	}
	s := w.sample(400000, trial.RNG(1, "labels"))
	risk := empirical(f, s)
	require.InDelta(t, w.excess(f)+w.noise(), risk, 0.02)
	require.InDelta(t, w.noise(), empirical(w.target, s), 0.02)
	require.Zero(t, w.excess(w.target))
}

func TestGammasHaveTheBestInFront(t *testing.T) {
	for n := 1; n < 20; n++ {
		g := gammas(n, [2]float64{1e-3, 10}, 0.1, trial.RNG(uint64(n), "γ"))
		require.Len(t, g, n)
		require.Equal(t, 0.1, g[0])
		for _, v := range g {
			require.True(t, v >= 1e-3 && v <= 10*(1+1e-12))
		}
	}
}

func TestReadingsOfLambda(t *testing.T) {
	const n, delta = 400, 0.1
	literal := math.Sqrt(math.Log(10) / n)
	require.InDelta(t, literal, regularisation("sum", n, delta), 1e-12)
	require.InDelta(t, n*literal, regularisation("mean", n, delta), 1e-9)
	require.Zero(t, regularisation("none", n, delta))
}

// The printed forms: Theorem 3.1 follows from A.2, as log(1/δ) ≤ Λ + log(1/δ).
func TestTheorem31IsNoStrongerThanA2(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := bounds{
			epsilon: rapid.Float64Range(0, 1).Draw(t, "ε*"),
			delta:   rapid.Float64Range(1e-6, 0.999).Draw(t, "δ"),
		}
		v, k := rapid.IntRange(1, 10000).Draw(t, "|V|"), rapid.IntRange(1, 1000).Draw(t, "|C|")
		theoremA2, theorem31, _ := b.rightSides(v, k)
		require.GreaterOrEqual(t, theorem31, theoremA2-1e-12)
	})
	b := bounds{epsilon: 0.5, delta: 0.1}
	want := 0.5 + 4*math.Sqrt(math.Log(10)/200) + 4*math.Sqrt(0.02*(math.Log(16)+math.Log(10)))
	got, _, _ := b.rightSides(100, 16)
	require.InDelta(t, want, got, 1e-12)
}

// Algorithm 1's solve with random assignments approaches the minimiser of the
// expected objective λ‖w‖² + Σ (1/|C|) Σ_c ℓ (Section 1.1): their distance falls
// as n^−1/2, λ in proportion to n.
func TestRandomAssignmentApproachesTheExpectedObjective(t *testing.T) {
	const d, configs, repeats = 6, 4, 12
	w := newInstance(InstanceParams{Inputs: 3, Support: 100, Dim: d, Gamma: 0.3, Centers: 3, Top: 0.9}, 8)
	var maps []*mat.Dense
	for _, gamma := range []float64{0.01, 0.1, 1, 5} {
		maps = append(maps, w.features(w.x, gamma))
	}
	solve := func(rows *mat.Dense, y *mat.VecDense, lambda float64) *mat.VecDense {
		var b mat.VecDense
		b.MulVec(rows.T(), y)
		out := mat.NewVecDense(d, nil)
		require.NoError(t, solveShifted(out, rows.T(), lambda, &b))
		return out
	}
	var sizes, distances []float64
	for n := 200; n <= 12800; n *= 4 {
		distance := 0.0
		for repeat := range repeats {
			rng := trial.RNG(uint64(repeat), "assignments")
			s := w.sample(n, rng)
			all, mixed := mat.NewDense(n*configs, d, nil), mat.NewDense(n, d, nil)
			targets := mat.NewVecDense(n*configs, nil)
			for i, x := range s.at {
				for c, phi := range maps { // every map, each with weight 1/|C|
					row := all.RawRowView(i*configs + c)
					for j, v := range phi.RawRowView(x) {
						row[j] = v / math.Sqrt(configs)
					}
					targets.SetVec(i*configs+c, s.y[i]/math.Sqrt(configs))
				}
				mixed.SetRow(i, maps[rng.IntN(configs)].RawRowView(x))
			}
			lambda := 0.05 * float64(n)
			expected := solve(all, targets, lambda)
			shared := solve(mixed, mat.NewVecDense(n, s.y), lambda)
			shared.SubVec(shared, expected)
			distance += mat.Norm(shared, 2) / mat.Norm(expected, 2) / repeats
		}
		sizes, distances = append(sizes, float64(n)), append(distances, distance)
	}
	slope, err := verdict.Slope(sizes, distances)
	require.NoError(t, err)
	require.InDelta(t, -0.5, slope, 0.08, "%v", distances)
}

// Covers by sets of bounded diameter, against all partitions of few points.
func TestCoverAndPackingBracketTheCoveringNumber(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "n")
		functions := make([][]float64, n)
		for i := range functions {
			functions[i] = rapid.SliceOfN(rapid.Float64Range(-1, 1), 3, 3).Draw(t, "f")
		}
		eps := rapid.Float64Range(0.01, 1.2).Draw(t, "ε")
		d := supDistances(functions)
		exact := coveringNumber(functions, eps)
		require.LessOrEqual(t, packing(d, 2*eps), exact)
		require.GreaterOrEqual(t, cliqueCover(d, 2*eps), exact)
		require.LessOrEqual(t, cliqueCover(d, 2*eps), n)
	})
}

// coveringNumber tries all partitions: a part lies in a ball of radius ε where
// the midrange of its values is within ε of all of them, at every place.
func coveringNumber(f [][]float64, eps float64) int {
	best := len(f)
	part := make([]int, len(f))
	var place func(i, used int)
	place = func(i, used int) {
		if used >= best {
			return
		}
		if i == len(f) {
			for p := range used {
				for x := range f[0] {
					lo, hi := math.Inf(1), math.Inf(-1)
					for j := range f {
						if part[j] == p {
							lo, hi = min(lo, f[j][x]), max(hi, f[j][x])
						}
					}
					if (hi-lo)/2 > eps {
						return
					}
				}
			}
			best = used
			return
		}
		for p := range used + 1 {
			part[i] = p
			place(i+1, max(used, p+1))
		}
	}
	place(0, 0)
	return best
}

// Members of an unregularised version space all interpolate and differ.
func TestVersionSpaceInterpolates(t *testing.T) {
	w := smallWorld(6, 50)
	s := sample{at: []int{1, 2, 30}, y: []float64{1, -1, 1}}
	space, err := versionSpace(w.features(w.x, 0.5), s, 5, trial.RNG(0, "space"))
	require.NoError(t, err)
	require.Len(t, space, 5)
	for _, f := range space {
		for i, x := range s.at {
			require.InDelta(t, s.y[i], f[x], 1e-6)
		}
	}
	require.Equal(t, 5, packing(supDistances(space), 1e-3))
}

func TestCoinsAreFair(t *testing.T) {
	rng := trial.RNG(0, "coins")
	for _, n := range []int{1, 63, 64, 65, 200} {
		sum, squares := 0.0, 0.0
		const draws = 4000
		for range draws {
			v := float64(coins(n, rng))
			require.True(t, v >= 0 && v <= float64(n))
			sum, squares = sum+v, squares+v*v
		}
		m := sum / draws
		require.InDelta(t, float64(n)/2, m, 5*math.Sqrt(float64(n)/4/draws))
		require.InDelta(t, float64(n)/4, squares/draws-m*m, 0.15*float64(n)/4+0.01)
	}
}
