package roberts

import (
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/gonum/floats"

	"github.com/nasml/lab/nasml/roberts/internal/mixture"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/plots"
)

// simplexMap classifies the points of Δ² for one network: its points [3][…] in
// the order of simplexLabels.
type simplexMap struct {
	names  []string
	grid   int // points along an edge
	points [3][][]float64
}

var simplexLabels = [3]string{"Condition 3: arg max is right", "right without the condition", "arg max is wrong"}

// newSimplexMap needs nothing but the losses between the operations, D:
//
//	Lᵢ = Σ_k α_k D_ik − ½ Σ_kl α_k α_l D_kl,  Aᵢ = Lᵢ/(1 − αᵢ)² .
func newSimplexMap(names []string, d [][]float64, grid int) simplexMap {
	m := simplexMap{names: names, grid: grid}
	for a := range grid {
		for b := range grid - a {
			// About the middle of a small triangle, and never a tie: no two of the
			// parts 0.31, 0.37 and 0.32 are the same.
			alpha := []float64{(float64(a) + 0.31) / float64(grid), (float64(b) + 0.37) / float64(grid), 0}
			alpha[2] = 1 - alpha[0] - alpha[1]
			class := classOf(d, alpha)
			m.points[class] = append(m.points[class], alpha)
		}
	}
	return m
}

// classOf is the position in simplexLabels of α.
func classOf(d [][]float64, alpha []float64) int {
	losses, far := make([]float64, len(alpha)), make([]float64, len(alpha))
	for i := range alpha {
		losses[i] = distanceLoss(d, alpha, i)
		far[i] = losses[i] / math.Pow(mixture.Rest(alpha, i), 2)
	}
	best := floats.MinIdx(losses)
	if best != floats.MaxIdx(alpha) {
		return 2
	}
	for j := range alpha {
		if j != best && far[best] < far[j]*(1-mixture.Tolerance) {
			return 1
		}
	}
	return 0
}

// distanceLoss is Lᵢ from the losses between the operations.
func distanceLoss(d [][]float64, alpha []float64, i int) float64 {
	var sum float64
	for k := range alpha {
		sum += alpha[k] * d[i][k]
		for l := range k {
			sum -= alpha[k] * alpha[l] * d[k][l]
		}
	}
	return sum
}

func (m simplexMap) panel() plots.Panel {
	triangle := &plots.Simplex{Grid: m.grid}
	for i, name := range m.names {
		triangle.Corners[i] = study.Title(shortName(name))
	}
	for class, label := range simplexLabels {
		triangle.Areas = append(triangle.Areas, plots.Area{
			Label: label, Color: [...]string{"#332288", "#DDDDDD", "#E69F00"}[class], Points: m.points[class],
		})
	}
	return plots.Panel{Title: strings.Join(triangle.Corners[:], ", "), Simplex: triangle}
}

// shortName is an activation for an axis.
func shortName(name string) string {
	if name == "0.8*relu+0.2*identity" {
		return "leaky relu"
	}
	return name
}

// claim is the share of the simplex where arg max discretization is wrong, for
// the network drawn. It is an area and has no interval.
func (m simplexMap) claim() runs.Claim {
	total := len(m.points[0]) + len(m.points[1]) + len(m.points[2])
	c := runs.NewClaim(fmt.Sprintf("own: arg max is wrong on a part of the simplex of %v", m.names), own)
	c.Ours = runs.Number(float64(len(m.points[2])) / float64(total))
	c.Holds = runs.Judge(len(m.points[2]) > 0)
	c.Note = fmt.Sprintf("one network; the condition guarantees arg max on %.3g of the simplex",
		float64(len(m.points[0]))/float64(total))
	return c
}
