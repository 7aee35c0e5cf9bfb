// Package roberts reproduces the figure and the theorems of Roberts, Liang,
// Sala, "Understanding Neural Architecture Search by its Architecture
// Parameters" (Roberts+): what the weights α of a mixture of operations say of
// the operations themselves.
//
// The setting is a two-layer network whose activation is a convex combination,
//
//	f_σ(x, W) = vᵀσ(Wᵀx),  σ_α = Σᵢ αᵢσᵢ,  α ∈ Δ^{h−1},       (Roberts+, Sec. 3)
//
// with x ∈ R^k, W ∈ R^{k×d}, v ∈ R^d. [Check] takes any such α with the outputs
// of the operations, wherever they come from, and tells which of the paper's
// assumptions and conditions hold, by how much, and whether the arg max of α is
// the best operation. [CheckNet] does so for a network.
package roberts

import "github.com/nasml/lab/nasml/roberts/internal/mixture"

// Net is a two-layer network f(x) = vᵀσ_α(Wᵀx) that a search has found.
type Net = mixture.Net

// Report is what α says of the operations that it mixes.
type Report = mixture.Report

// Check tells what α says of operations with the outputs [h][n] on points with
// labels y [n]. It returns an error if the shapes do not fit, a number is not
// finite, or α is not on the simplex.
func Check(alpha []float64, outputs [][]float64, y []float64) (*Report, error) {
	return mixture.Check(alpha, outputs, y)
}

// CheckNet is [Check] for a network on inputs x [n][k] with labels y [n]. It
// evaluates every operation with the shared weights on the process's backend.
func CheckNet(net Net, x [][]float64, y []float64) (*Report, error) {
	return mixture.CheckNet(net, x, y)
}
