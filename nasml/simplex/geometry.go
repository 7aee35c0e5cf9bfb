package simplex

import (
	"fmt"
	"math"
)

// EntropyOf is the mean over the rows of θ of the Shannon entropy in nats,
//
//	H(θ) = (1/|E|) Σ_e −Σ_o θ_eo log θ_eo ,   0·log 0 = 0:
//
// ln |O| for uniform rows, 0 if every row sits on one operation (Li+ 2021, Figure 1). Rows are taken as they are, even
// if they do not sum to 1. It is NaN if there is no row.
func EntropyOf(theta [][]float64) float64 { return (0 - Phi(theta)) / float64(len(theta)) }

// Phi is the entropic mirror map φ(θ) = Σ_e Σ_o θ_eo log θ_eo in nats, with 0·log 0 = 0 (Li+ 2021, Section 3.3). It is
// 1-strongly convex with respect to Norm on the product of simplices.
func Phi(theta [][]float64) float64 {
	var sum float64
	for _, row := range theta {
		for _, x := range row {
			if x != 0 {
				sum += x * math.Log(x)
			}
		}
	}
	return sum
}

// PhiConjugateGradient is ∇φ*(y), the softmax of each row: it takes ∇φ(θ) back
// to θ, because a softmax does not see the constant 1.
func PhiConjugateGradient(y [][]float64) [][]float64 {
	return mapRows(y, func(_ int, row, out []float64) {
		total := logSumExp(row)
		for o := range row {
			out[o] = math.Exp(row[o] - total)
		}
	})
}

// BregmanOf is the Bregman divergence of φ, for entries ≥ 0:
//
//	D_φ(u‖θ) = φ(u) − φ(θ) − ⟨∇φ(θ), u − θ⟩ = Σ u log(u/θ) − u + θ ,
//
// in nats: the Kullback–Leibler divergence summed over the rows where they are normalised, and at least 0 where they
// are not. It is +∞ where u puts weight on an operation that θ gives none.
func BregmanOf(u, theta [][]float64) float64 {
	mustSameRows("BregmanOf", u, theta)
	var sum float64
	for e := range u {
		for o, x := range u[e] {
			switch y := theta[e][o]; {
			case x == 0:
				sum += y
			case y == 0:
				return math.Inf(1)
			default:
				sum += relativeEntropy(x, y, math.Log(x)-math.Log(y))
			}
		}
	}
	return sum
}

// relativeEntropy is x·d − (x−y) for d = log(x/y), at least 0: without cancellation where x and y are close.
func relativeEntropy(x, y, d float64) float64 {
	if math.Abs(d) < 1e-3 {
		return y * d * d * (1./2 + d*(1./3+d*(1./8+d/30))) // y·(eᵈd − (eᵈ−1))
	}
	return x*d - (x - y)
}

// EGOf is EG for host values with rows of any lengths: the proximal step
//
//	arg min_{u ∈ Θ} η ⟨g, u⟩ + D_φ(u‖θ) ∝ θ ⊙ exp(−η g) .
func EGOf(theta, grad [][]float64, eta float64) [][]float64 {
	mustSameRows("EGOf", theta, grad)
	return PhiConjugateGradient(mapRows(theta, func(e int, row, out []float64) {
		least := math.Inf(1) // softmax does not see a shift, and nothing overflows upwards
		for o, x := range row {
			if x != 0 {
				least = math.Min(least, grad[e][o])
			}
		}
		for o, x := range row {
			out[o] = math.Log(x) - eta*math.Max(grad[e][o]-least, 0)
		}
	}))
}

// Norm is ‖x‖₁/√|E| over |E| rows, the norm that φ is 1-strongly convex in
// (Li+ 2021, Section 3.3): D_φ(u‖θ) ≥ ½ Norm(u−θ)².
func Norm(x [][]float64) float64 {
	var sum float64
	for _, row := range x {
		for _, v := range row {
			sum += math.Abs(v)
		}
	}
	return sum / math.Sqrt(float64(len(x)))
}

// DualNorm is √|E|·‖g‖_∞ over |E| rows, the norm dual to Norm: it measures
// gradients, ⟨g, x⟩ ≤ DualNorm(g)·Norm(x). A NaN in g gives NaN.
func DualNorm(g [][]float64) float64 {
	return math.Sqrt(float64(len(g))) * largest(g...)
}

// gap is the Frank–Wolfe gap max_{u ∈ Θ} ⟨g, θ−u⟩ = Σ_e ⟨g_e, θ_e⟩ − min g_e for the gradient g at θ: 0 where no
// direction within Θ descends. Unlike Bregman stationarity it does not vanish near every vertex.
func gap(theta, grad [][]float64) float64 {
	mustSameRows("gap", theta, grad)
	var sum float64
	for e, row := range theta {
		least := math.Inf(1)
		for _, g := range grad[e] {
			least = math.Min(least, g)
		}
		for o, x := range row {
			sum += x * (grad[e][o] - least)
		}
	}
	return sum
}

// Check returns an error if θ is not on the product of simplices: a NaN or an infinity, a negative weight, or a row
// whose sum is further than tolerance from 1. The error names the row and the option.
func Check(theta [][]float64, tolerance float64) error {
	for e, row := range theta {
		var sum float64
		for o, x := range row {
			if !(x >= 0) || math.IsInf(x, 0) {
				return fmt.Errorf("θ[%d][%d] is %v: weights must be finite and not negative; look for a NaN in "+
					"the gradient or a step size too large", e, o, x)
			}
			sum += x
		}
		if math.Abs(sum-1) > tolerance {
			return fmt.Errorf("row %d of θ sums to %v, not to 1 within %g: %v", e, sum, tolerance, row)
		}
	}
	return nil
}

// logSumExp is log Σ exp xᵢ without overflow.
func logSumExp(x []float64) float64 {
	most := math.Inf(-1)
	for _, v := range x {
		most = math.Max(most, v)
	}
	var sum float64
	for _, v := range x {
		sum += math.Exp(v - most)
	}
	return most + math.Log(sum)
}

// mapRows returns new rows of the same lengths, filled by f.
func mapRows(x [][]float64, f func(e int, row, out []float64)) [][]float64 {
	out := make([][]float64, len(x))
	for e, row := range x {
		out[e] = make([]float64, len(row))
		f(e, row, out[e])
	}
	return out
}

func mustSameRows(name string, a, b [][]float64) {
	if err := sameRows(a, b); err != nil {
		panic(fmt.Errorf("simplex.%s: %w", name, err))
	}
}

func sameRows(a, b [][]float64) error {
	if len(a) != len(b) {
		return fmt.Errorf("one argument has %d rows and the other %d: they must agree", len(a), len(b))
	}
	for e := range a {
		if len(a[e]) != len(b[e]) {
			return fmt.Errorf("row %d has %d entries in one argument and %d in the other: they must agree", e,
				len(a[e]), len(b[e]))
		}
	}
	return nil
}
