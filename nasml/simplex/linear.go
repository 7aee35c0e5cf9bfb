package simplex

import "math"

// LinearStationarity is the Bregman stationarity of ⟨∇, ·⟩ at θ in the entropic
// geometry (Li+ 2021, eq. 7), what [Stationarity] is of a linear function,
//
//	Δ_λ = Σₑ ⟨∇ₑ, θₑ − pₑ⟩ / λ ,   pₑ = softmax(log θₑ − λ∇ₑ) ,
//
// and for λ → 0 the variance Σₑ Var_{o∼θₑ} ∇ₑ,ₒ, which is also taken where rounding
// would leave nothing of the difference, at λ·‖∇‖∞ < 1e-6, and where γ = 0 made
// λ = 1/(2γ) infinite: then p is a vertex, and Δ_λ 0 whatever θ is. Rows with a
// weight of 0 keep it.
func LinearStationarity(theta, grad [][]float64, lambda float64) float64 {
	total := 0.0
	for e, row := range theta {
		mean, square, most := 0.0, 0.0, 0.0
		for o, p := range row {
			mean += p * grad[e][o]
			most = math.Max(most, math.Abs(grad[e][o]))
		}
		for o, p := range row {
			square += p * (grad[e][o] - mean) * (grad[e][o] - mean)
		}
		if lambda*most < 1e-6 || math.IsInf(lambda, 1) {
			total += square
			continue
		}
		total += (mean - tilted(row, grad[e], lambda)) / lambda
	}
	return total
}

// tilted is ⟨∇, p⟩ of p ∝ θ·exp(−λ∇).
func tilted(theta, grad []float64, lambda float64) float64 {
	least := math.Inf(1)
	for o, g := range grad {
		if theta[o] > 0 {
			least = math.Min(least, g)
		}
	}
	sum, inner := 0.0, 0.0
	for o, g := range grad {
		if theta[o] > 0 {
			p := theta[o] * math.Exp(-lambda*(g-least))
			sum, inner = sum+p, inner+p*g
		}
	}
	return inner / sum
}
