package convergence

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/nasml/lab/nasml/trial"
)

// ballMax is the maximum of αᵀEα + 2⟨b, α⟩ over the unit ball, exactly: by strong duality of a quadratic with one
// quadratic constraint it is
//
//	min { μ + bᵀ(μI − E)⁻¹b : μ ≥ max(λ_max(E), 0) } ,
//
// a convex function of one number, whose derivative 1 − Σⱼ bⱼ²/(μ − λⱼ)² is bisected.
func ballMax(e *mat.SymDense, b []float64) float64 {
	var eig mat.EigenSym
	if !eig.Factorize(e, true) {
		return math.NaN() // a result with it is refused
	}
	var vectors mat.Dense
	eig.VectorsTo(&vectors)
	values := eig.Values(nil)
	var rotated mat.VecDense
	rotated.MulVec(vectors.T(), mat.NewVecDense(len(b), b))
	c := rotated.RawVector().Data
	excess := func(mu float64) float64 { // Σ c²/(μ−λ)² − 1, decreasing in μ
		sum := -1.0
		for j, l := range values {
			if c[j] != 0 {
				sum += c[j] * c[j] / ((mu - l) * (mu - l))
			}
		}
		return sum
	}
	lo := max(values[len(values)-1], 0)
	hi := lo + floats.Norm(c, 2)
	for range 200 {
		mid := (lo + hi) / 2
		if mid <= lo || mid >= hi {
			break
		}
		if excess(mid) > 0 {
			lo = mid
		} else {
			hi = mid
		}
	}
	total := hi
	for j, l := range values {
		if d := hi - l; d > 0 && c[j] != 0 {
			total += c[j] * c[j] / d
		}
	}
	return total
}

// tight is a family that reaches the theorem's rate: the prediction is the superposition itself, f_α(x) = ⟨α, g⟩ with
// g ~ N(0, I_h), without training; y = g₁/2 + ε/2 and the loss is squared. Δ is the unit ball of R^h or, as a set of
// effective dimension 2 in R^h, its intersection with the plane of the first two axes. With the moments Ĝ and ĉ of a
// validation sample, E = Ĝ − I and e = ĉ − e₁/2,
//
//	L̂_V − L = αᵀEα − 2⟨e, α⟩ + s,   ∇(L̂_V − L) = 2(Eα − e) ,
//
// so that both suprema over Δ are maxima of quadratics over a ball.
type tight struct {
	second *mat.SymDense // E
	first  []float64     // e
	rest   float64       // s = ỹᵀỹ/n − E y²
}

func newTight(rng *rand.Rand, h, n int) tight {
	g, y := mat.NewDense(n, h, nil), make([]float64, n)
	for i := range n {
		row := g.RawRowView(i)
		copy(row, trial.Normals(rng, h, 1))
		y[i] = row[0]/2 + rng.NormFloat64()/2
	}
	t := tight{second: new(mat.SymDense)}
	t.second.SymOuterK(1/float64(n), g.T())
	for i := range h {
		t.second.SetSym(i, i, t.second.At(i, i)-1)
	}
	var first mat.VecDense
	first.MulVec(g.T(), mat.NewVecDense(n, y))
	first.ScaleVec(1/float64(n), &first)
	t.first = first.RawVector().Data
	t.first[0] -= 0.5
	t.rest = floats.Dot(y, y)/float64(n) - 0.5
	return t
}

// gaps are sup |L̂_V − L| and sup ‖∇L̂_V − ∇L‖ over the part of the unit ball that is spanned by the first k axes; the
// gradient is that of R^h.
func (t tight) gaps(k int) (risk, gradient float64) {
	e := mat.NewSymDense(k, nil)
	for i := range k {
		for j := i; j < k; j++ {
			e.SetSym(i, j, t.second.At(i, j))
		}
	}
	up := ballMax(e, floats.ScaleTo(make([]float64, k), -1, t.first[:k]))
	e.ScaleSym(-1, e)
	down := ballMax(e, t.first[:k])

	h := len(t.first)
	columns := mat.DenseCopyOf(t.second).Slice(0, h, 0, k).(*mat.Dense) // E restricted to Δ
	var square mat.SymDense
	square.SymOuterK(4, columns.T())
	var b mat.VecDense
	b.MulVec(columns.T(), mat.NewVecDense(h, t.first))
	b.ScaleVec(-4, &b)
	most := ballMax(&square, b.RawVector().Data)
	return max(up+t.rest, down-t.rest), math.Sqrt(most + 4*floats.Dot(t.first, t.first))
}

// fixed is |L̂_V − L| at the single α = e₁.
func (t tight) fixed() float64 {
	return math.Abs(t.second.At(0, 0) - 2*t.first[0] + t.rest)
}
