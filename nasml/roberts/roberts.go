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

import (
	"fmt"

	"github.com/nasml/lab/nasml/backend"
	"github.com/nasml/lab/nasml/roberts/internal/mixture"
)

// Report is what α says of the operations that it mixes.
type Report = mixture.Report

// Check tells what α says of operations with the outputs [h][n] on points with
// labels y [n]. It returns an error if the shapes do not fit, a number is not
// finite, or α is not on the simplex.
func Check(alpha []float64, outputs [][]float64, y []float64) (*Report, error) {
	return mixture.Check(alpha, outputs, y)
}

// Net is a two-layer network f(x) = vᵀσ_α(Wᵀx) that a search has found.
type Net struct {
	Activations []string    // σ₁ … σ_h, see [ProblemParams]
	Alpha       []float64   // α, [h]
	W           [][]float64 // W, [k][d]
	V           []float64   // v, [d]
}

// CheckNet is [Check] for a network on inputs x [n][k] with labels y [n]. It
// evaluates every operation with the shared weights on the process's backend.
func CheckNet(net Net, x [][]float64, y []float64) (*Report, error) {
	outputs, err := net.Outputs(x)
	if err != nil {
		return nil, err
	}
	r, err := Check(net.Alpha, outputs, y)
	if err != nil {
		return nil, err
	}
	r.Names = net.Activations
	return r, nil
}

// Outputs are f_σᵢ(x, W) of every operation with the shared weights, [h][n], for
// inputs x [n][k]. It returns an error if the shapes do not fit, an activation is
// unknown or the backend cannot be opened.
func (net Net) Outputs(x [][]float64) ([][]float64, error) {
	k, d := len(net.W), len(net.V)
	if k == 0 || d == 0 || len(x) == 0 || len(net.Activations) == 0 {
		return nil, fmt.Errorf("network with %d activations, W of %d rows and v of %d entries on %d inputs: each must "+
			"be at least 1", len(net.Activations), k, d, len(x))
	}
	flatX, err := flatten("x", x, k)
	if err != nil {
		return nil, err
	}
	flatW, err := flatten("W", net.W, d)
	if err != nil {
		return nil, err
	}
	b, err := backend.Open()
	if err != nil {
		return nil, err
	}
	e, err := mixture.NewEvaluator(b, net.Activations, mixture.Sizes{Count: 1, Points: len(x), Inputs: k, Width: d})
	if err != nil {
		return nil, err
	}
	defer e.Close()
	out, err := e.Outputs(flatX, flatW, net.V)
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

func flatten(name string, rows [][]float64, width int) ([]float64, error) {
	flat := make([]float64, 0, len(rows)*width)
	for i, row := range rows {
		if len(row) != width {
			return nil, fmt.Errorf("row %d of %s must have %d entries, got %d", i, name, width, len(row))
		}
		flat = append(flat, row...)
	}
	return flat, nil
}
