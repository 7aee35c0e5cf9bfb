package mixture

import (
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/floats"
	"pgregory.net/rapid"

	_ "github.com/nasml/lab/nasml/internal/steady"
)

// TestMain takes the pure-Go backend, which needs no set-up and compiles
// nothing.
func TestMain(m *testing.M) {
	if os.Getenv("GOMLX_BACKEND") == "" {
		_ = os.Setenv("GOMLX_BACKEND", "go")
	}
	os.Exit(m.Run())
}

// lines are outputs that are multiples of one z with E z² = 2, so that
// 𝓛(a·z, b·z) = (a − b)².
func lines(multiples ...float64) [][]float64 {
	z := []float64{math.Sqrt2, -math.Sqrt2}
	out := make([][]float64, len(multiples))
	for i, a := range multiples {
		out[i] = []float64{a * z[0], a * z[1]}
	}
	return out
}

func mustCheck(t require.TestingT, alpha []float64, outputs [][]float64, y []float64) *Report {
	r, err := Check(alpha, outputs, y)
	require.NoError(t, err)
	return r
}

func uniform(h int) []float64 {
	alpha := make([]float64, h)
	for i := range alpha {
		alpha[i] = 1 / float64(h)
	}
	return alpha
}

func drawSimplex(t *rapid.T, h int, least float64) []float64 {
	alpha := rapid.SliceOfN(rapid.Float64Range(least, 1), h, h).Draw(t, "α")
	if floats.Sum(alpha) == 0 {
		alpha[0] = 1
	}
	floats.Scale(1/floats.Sum(alpha), alpha)
	return alpha
}

func drawOutputs(t *rapid.T, h, n int) [][]float64 {
	out := make([][]float64, h)
	for i := range out {
		out[i] = rapid.SliceOfN(rapid.Float64Range(-3, 3), n, n).Draw(t, "g")
	}
	return out
}

// On the line, g = (0.1z, z, −z) has its best operation at the smallest weight:
// all numbers by hand.
func TestCounterexampleOnTheLine(t *testing.T) {
	alpha, g := []float64{0.2, 0.45, 0.35}, lines(0.1, 1, -1)
	r := mustCheck(t, alpha, g, Combine(alpha, g)) // f_σα = 0.12·z
	require.InDeltaSlice(t, []float64{0.0004, 0.7744, 1.2544}, r.Loss, 1e-15)
	for i, want := range []float64{0.000625, 2.56, sq(1 + 0.47/0.65)} {
		require.InDelta(t, want, float64(r.Far[i]), 1e-14)
	}
	require.Equal(t, 0, r.Best)
	require.Equal(t, 1, r.ArgMax)
	require.False(t, r.ArgMaxRight())
	require.False(t, r.RankingRight())
	require.True(t, r.Ordered && r.Distinct && r.Interior && r.Realized)
	first, all := r.Conditions()
	require.Zero(t, first)
	require.Zero(t, all, "A₂ = 2.56 < A₃ too, although α₃ < α₂")
	require.InDelta(t, 0.35*(1.21-4)/0.81, float64(r.Pairs[0].Threshold), 1e-14)
	require.True(t, r.Pairs[2].Right)
	require.Contains(t, r.String(), "arg max α is 2, the best operation is 1")
}

// Equal distances between all operations: α then ranks them whatever it is.
func TestEquidistantOperationsAreRankedByAlpha(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := rapid.IntRange(2, 6).Draw(t, "h")
		alpha := drawSimplex(t, h, 0.01)
		g := make([][]float64, h)
		for i := range g {
			g[i] = make([]float64, h)
			g[i][i] = 1
		}
		r := mustCheck(t, alpha, g, Combine(alpha, g))
		for _, p := range r.Pairs {
			require.True(t, p.Right, "α = %v", alpha)
			require.InDelta(t, 0, float64(p.Threshold), 1e-12)
		}
	})
}

// The identities behind the theorems for any outputs and any α:
// Lᵢ = (1 − αᵢ)²Aᵢ, the theorem, the two exact criteria, and the form of both
// sides in the losses between operations, D, alone.
func TestTheoremAndExactCriteria(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, n := rapid.IntRange(2, 5).Draw(t, "h"), rapid.IntRange(2, 7).Draw(t, "n")
		alpha, g := drawSimplex(t, h, 0.01), drawOutputs(t, h, n)
		r := mustCheck(t, alpha, g, Combine(alpha, g))
		for i := range alpha {
			require.InDelta(t, r.Loss[i], sq(1-alpha[i])*float64(r.Far[i]), 1e-12)
			require.InDelta(t, r.Loss[i], lossFromDistances(r.Between, alpha, i), 1e-12)
		}
		for _, p := range r.Pairs {
			i, j := p.I, p.J
			if r.Loss[j]-r.Loss[i] < 1e-6 || math.Abs(alpha[i]-alpha[j]) < 1e-6 {
				continue // rounding decides
			}
			if p.Condition {
				require.True(t, p.Right, "Theorem 7")
			}
			require.Equal(t, p.Right, float64(r.Far[i]/r.Far[j]) > r.Loss[i]/r.Loss[j], "α_j < α_i ⇔ A_i/A_j > L_i/L_j")
			require.Greater(t, alpha[i]-alpha[j], float64(p.Threshold),
				"L_i < L_j ⇔ α_i − α_j > Σ α_k(D_ik − D_jk)/D_ij")
		}
	})
}

// D_ik ≥ D_jk for all k is exactly when the conclusion holds for every α: where it
// fails for k, nearly all weight on k and equal rests refute it.
func TestPriorIsExactlyForEveryAlpha(t *testing.T) {
	var refuted int
	rapid.Check(t, func(t *rapid.T) {
		h := rapid.IntRange(3, 5).Draw(t, "h")
		g := drawOutputs(t, h, 6)
		alpha := drawSimplex(t, h, 0.01)
		for _, p := range mustCheck(t, alpha, g, Combine(alpha, g)).Pairs {
			if p.Prior {
				require.True(t, p.Right)
				continue
			}
			d := mustCheck(t, uniform(len(g)), g, g[0]).Between
			for k := range alpha {
				if k != p.I && k != p.J && d[p.I][k] < d[p.J][k]*(1-1e-6) {
					against := make([]float64, h)
					against[p.I], against[p.J], against[k] = 0.1, 0.1, 0.8
					r := mustCheck(t, against, g, Combine(against, g))
					require.Less(t, r.Loss[p.I], r.Loss[p.J])
					refuted++
				}
			}
		}
	})
	require.Greater(t, refuted, 50)
}

func sq(x float64) float64 { return x * x }

// lossFromDistances is Lᵢ = Σ_k α_k D_ik − ½ Σ_kl α_k α_l D_kl.
func lossFromDistances(d [][]float64, alpha []float64, i int) float64 {
	var sum float64
	for k := range alpha {
		sum += alpha[k] * d[i][k]
		for l := range alpha {
			sum -= alpha[k] * alpha[l] * d[k][l] / 2
		}
	}
	return sum
}

// Whatever the labels are, a guaranteed pair is in order, and a sparse α is
// right: neither needs Assumption 3.
func TestGuaranteesNeedNoRealizability(t *testing.T) {
	var guaranteed, sparse int
	rapid.Check(t, func(t *rapid.T) {
		h, n := rapid.IntRange(2, 4).Draw(t, "h"), rapid.IntRange(4, 8).Draw(t, "n")
		alpha, g := drawSimplex(t, h, 0), drawOutputs(t, h, n)
		if rapid.Bool().Draw(t, "concentrated") {
			floats.Scale(0.1, alpha)
			alpha[0] += 0.9
		}
		noise := rapid.SliceOfN(rapid.Float64Range(-1, 1), n, n).Draw(t, "noise")
		y := Combine(alpha, g)
		floats.AddScaled(y, rapid.SampledFrom([]float64{0, 0.1, 0.5, 3}).Draw(t, "level"), noise)
		r := mustCheck(t, alpha, g, y)
		for _, p := range r.Pairs {
			if p.Guaranteed {
				guaranteed++
				require.True(t, p.Right)
			}
		}
		if r.Sparse() {
			sparse++
			require.True(t, r.ArgMaxRight())
		}
	})
	require.Greater(t, guaranteed, 20)
	require.Greater(t, sparse, 5)
}

// Condition 6 without realizability says nothing: labels can be such that it
// holds, Lᵢ < Lⱼ, and αⱼ > αᵢ. The gap sees it.
func TestConditionAloneFailsWithoutRealizability(t *testing.T) {
	alpha, g := []float64{0.3, 0.7}, lines(1, -1) // f_σα = −0.4·z
	r := mustCheck(t, alpha, g, lines(0.5)[0])
	require.Len(t, r.Pairs, 1)
	p := r.Pairs[0]
	require.True(t, p.Condition, "two operations: A₁ = A₂")
	require.False(t, p.Right)
	require.Negative(t, p.Gap)
	require.False(t, p.Guaranteed)
	require.False(t, r.Realized)
}

func TestEdges(t *testing.T) {
	one := mustCheck(t, []float64{1}, lines(2), lines(1)[0])
	require.Empty(t, one.Pairs)
	require.False(t, one.Interior)
	require.True(t, one.ArgMaxRight())
	require.False(t, one.Far[0].Valid())

	vertex := mustCheck(t, []float64{1, 0}, lines(1, 3), lines(1)[0])
	require.False(t, vertex.Interior)
	require.False(t, vertex.Ordered, "f_σα is the operation itself")
	require.False(t, vertex.Pairs[0].Condition)
	require.False(t, vertex.Pairs[0].Margin.Valid())
	require.True(t, vertex.ArgMaxRight())

	zero := mustCheck(t, []float64{0.6, 0.4, 0}, lines(1, 3, 4), lines(1.8)[0])
	require.False(t, zero.Interior)
	require.True(t, zero.RankingRight(), "γ may be on the boundary")

	twice := mustCheck(t, []float64{0.5, 0.5}, lines(1, 1), lines(1)[0])
	require.False(t, twice.Distinct)
	require.False(t, twice.ArgMaxRight(), "no operation is the best")
	require.Empty(t, twice.Pairs)

	tie := mustCheck(t, []float64{0.5, 0.5}, lines(1, 2), lines(1.5)[0])
	require.False(t, tie.Distinct)
	require.False(t, tie.RankingRight())
}

func TestWhatCannotBeChecked(t *testing.T) {
	for want, call := range map[string]func() error{
		"must sum to 1, got 0.9": func() error {
			_, err := Check([]float64{0.5, 0.4}, lines(1, 2), lines(1)[0])
			return err
		},
		"α[0] must be between 0 and 1, got -0.1": func() error {
			_, err := Check([]float64{-0.1, 1.1}, lines(1, 2), lines(1)[0])
			return err
		},
		"weight of at least one operation": func() error { _, err := Check(nil, nil, nil); return err },
		"3 operations": func() error {
			_, err := Check([]float64{0.5, 0.5}, lines(1, 2, 3), lines(1)[0])
			return err
		},
		"labels: NaN": func() error {
			_, err := Check([]float64{1}, lines(1), []float64{0, math.NaN()})
			return err
		},
		"operation 0: 2, expec": func() error { _, err := Check([]float64{1}, lines(1), []float64{0}); return err },
		`"relux"`:               func() error { _, err := Activation("0.5*relux+tanh"); return err },
		`"a" is no number`:      func() error { _, err := Activation("a*relu"); return err },
	} {
		require.ErrorContains(t, call(), want)
	}
}

func TestFactorizations(t *testing.T) {
	gamma := Factor([]float64{0.5, 0.2, 0.3}, 0) // Lemma 2: β = α₂/(α₂ + α₃)
	require.InDeltaSlice(t, []float64{0, 0.4, 0.6}, gamma, 1e-15)
	require.Nil(t, Factor([]float64{1, 0}, 0))
	rapid.Check(t, func(t *rapid.T) {
		alpha := drawSimplex(t, rapid.IntRange(2, 7).Draw(t, "h"), 0)
		i := rapid.IntRange(0, len(alpha)-1).Draw(t, "i")
		if gamma := Factor(alpha, i); gamma != nil {
			require.InDelta(t, 1, floats.Sum(gamma), 1e-14)
			for k := range alpha {
				if k != i {
					require.InDelta(t, alpha[k], Rest(alpha, i)*gamma[k], 1e-15)
				}
			}
		}
		b := StickBreaking(alpha)
		require.EqualValues(t, 1, b[len(b)-1])
		require.InDeltaSlice(t, alpha, Sticks(b), 1e-15)
	})
}
