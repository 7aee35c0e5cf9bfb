package spectral

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/nasml/lab/nasml/trial"
)

// RankOneLaw draws what the two-stage algorithm of Oymak+ 2021, Section 5, gives
// on i.i.d. standard normal features, without drawing the features: its results
// have the same law as those of Moment, TopLeft, Projected and MinNorm, in
// O(h²) numbers instead of 2nhp. N is n of each of the two sets, Noise the
// standard deviation σ of the labels' noise.
//
// By rotation α* = e₁ and θ* = e₁. Given the labels ỹ of the validation set,
// with S = ‖ỹ‖² ~ (1+σ²)χ²ₙ,
//
//	M̂ = S/(1+σ²)·e₁e₁ᵀ + √S·G,   G i.i.d. standard normal, but G₁₁ of variance σ²/(1+σ²),
//
// because only the entry (1,1) of a feature matrix tells of its label. So
// M̂M̂ᵀ = mmᵀ + S·LLᵀ with m the first column of M̂ and LLᵀ a Wishart matrix of
// p−1 degrees of freedom (Bartlett's L is triangular). In the second stage the
// features along α̂ are normal, y = ρZθ* + √(1−ρ²)·w + noise, and
//
//	risk = 1 + σ² − ρ²B + (1−ρ²+σ²)T    for p ≥ n,
//	risk = (1−ρ²+σ²)(1 + T)             for p ≤ n,
//
// with independent B ~ χ²ₙ/(χ²ₙ+χ²₍ₚ₋ₙ₎) the share of θ* in the rows' span and
// T ~ χ²ₙ/χ²₍ₚ₋ₙ₊₁₎ (for p < n: χ²ₚ/χ²₍ₙ₋ₚ₊₁₎) the rest's squared norm.
type RankOneLaw struct {
	N, P, H int
	Noise   float64
}

// Draw is one outcome: ρ² = ⟨α*, α̂⟩² and the population risk of (α̂, θ̂).
func (l RankOneLaw) Draw(rng *rand.Rand) (rho2, risk float64, err error) {
	if rho2, err = l.drawCorrelation(rng); err != nil {
		return 0, 0, err
	}
	return rho2, l.drawRisk(rng, rho2), nil
}

func chi2(rng *rand.Rand, k int) float64 {
	if k <= 0 {
		return 0
	}
	return distuv.ChiSquared{K: float64(k), Src: rng}.Rand()
}

func (l RankOneLaw) drawCorrelation(rng *rand.Rand) (float64, error) {
	v := 1 + l.Noise*l.Noise
	s := v * chi2(rng, l.N)
	first := trial.Normals(rng, l.H, math.Sqrt(s))
	first[0] = s/v + first[0]*l.Noise/math.Sqrt(v)
	rows := bartlett(rng, l.H, l.P-1)
	_, alpha, err := TopEigen(l.H, func(dst, x []float64) {
		copy(dst, first)
		floats.Scale(floats.Dot(first, x), dst)
		right := make([]float64, l.H)
		for i, row := range rows {
			floats.AddScaled(right[:len(row)], x[i], row)
		}
		for i, row := range rows {
			dst[i] += s * floats.Dot(row, right[:len(row)])
		}
	})
	if err != nil {
		return 0, err
	}
	return alpha[0] * alpha[0], nil
}

// bartlett are the rows of a lower triangular (or, for p < h, trapezoidal) L so
// that LLᵀ has the law of GGᵀ, G ∈ ℝ^{h×p} standard normal.
func bartlett(rng *rand.Rand, h, p int) [][]float64 {
	rows := make([][]float64, h)
	for i := range rows {
		rows[i] = trial.Normals(rng, min(i+1, p), 1)
		if i < p {
			rows[i][i] = math.Sqrt(chi2(rng, p-i))
		}
	}
	return rows
}

func (l RankOneLaw) drawRisk(rng *rand.Rand, rho2 float64) float64 {
	rest := 1 - rho2 + l.Noise*l.Noise
	if l.P < l.N {
		return rest * (1 + chi2(rng, l.P)/chi2(rng, l.N-l.P+1))
	}
	in, out := chi2(rng, l.N), chi2(rng, l.P-l.N)
	return rest + rho2*out/(in+out) + rest*chi2(rng, l.N)/chi2(rng, l.P-l.N+1)
}

// CorrelationLimit is the limit of ρ² as n, p, h → ∞ with p̄ = p/n and h̄ = h/n
// fixed, on standard normal features with label noise of variance σ²:
//
//	ρ² → (1 − ph/m²)₊ / (1 + h/m),   m = n/(1+σ²) .
//
// M̂/√(Sp) is a spike of size √(m/p) in a normalized h×p noise matrix, and the
// formula is that of Benaych-Georges and Nadakuditi (2012) for its left singular
// vector: it begins to show at ph = m². Oymak+ 2021, Theorem 4, has the bound
// 1 − 64p̄h̄ for σ = 0.
func CorrelationLimit(pBar, hBar, noise float64) float64 {
	v := 1 + noise*noise
	pBar, hBar = pBar*v, hBar*v
	return max(0, 1-pBar*hBar) / (1 + hBar)
}

// ExpectedRisk is the exact mean risk of least squares of least norm along a
// direction of correlation ρ, on n standard normal examples in ℝᵖ with label
// noise of variance σ². With r = 1 − ρ² + σ²,
//
//	1 + σ² − ρ²·n/p + r·n/(p−n−1)   for p > n+1,
//	r·(1 + p/(n−p−1))               for p < n−1,
//
// and +∞ between. ρ² = 1, σ = 0 is the oracle that knows α*: 1 − n/p.
func ExpectedRisk(n, p int, rho2, noise float64) float64 {
	rest := 1 - rho2 + noise*noise
	switch N, P := float64(n), float64(p); {
	case p >= n && rest == 0:
		return 1 - N/P
	case p > n+1:
		return rest + rho2*(1-N/P) + rest*N/(P-N-1)
	case p < n-1:
		return rest * (1 + P/(N-P-1))
	case rest == 0:
		return 0
	}
	return math.Inf(1)
}

// RiskLimit is ExpectedRisk as n, p → ∞ with p̄ = p/n > 1 fixed:
//
//	ρ²(1 − 1/p̄) + (1 − ρ² + σ²)/(1 − 1/p̄) .
func RiskLimit(pBar, rho2, noise float64) float64 {
	x := 1 - 1/pBar
	return rho2*x + (1-rho2+noise*noise)/x
}
