package spectral

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/nasml/lab/nasml/trial"
)

// Symmetric is the symmetric part (A + Aᵀ)/2 of a square matrix.
func Symmetric(a mat.Matrix) *mat.SymDense {
	n, m := a.Dims()
	if n != m {
		panic(fmt.Sprintf("symmetric part of a matrix [%d, %d]", n, m))
	}
	s := mat.NewSymDense(n, nil)
	for i := range n {
		for j := i; j < n; j++ {
			s.SetSym(i, j, (a.At(i, j)+a.At(j, i))/2)
		}
	}
	return s
}

// Eigen are the eigenvalues of a symmetric matrix, the largest first, with their eigenvectors as the columns of
// vectors.
func Eigen(k mat.Symmetric) (values []float64, vectors *mat.Dense) {
	var eig mat.EigenSym
	n := k.SymmetricDim()
	vectors = mat.NewDense(n, n, nil)
	if !eig.Factorize(k, true) {
		return slices.Repeat([]float64{math.NaN()}, n), vectors
	}
	var columns mat.Dense
	eig.VectorsTo(&columns)
	values = eig.Values(nil)
	slices.Reverse(values)
	for j := range n {
		vectors.SetCol(j, mat.Col(nil, n-1-j, &columns))
	}
	return values, vectors
}

// EigenRange is the smallest and the largest eigenvalue.
func EigenRange(k mat.Symmetric) (smallest, largest float64) {
	var eig mat.EigenSym
	if !eig.Factorize(k, false) {
		return math.NaN(), math.NaN()
	}
	values := eig.Values(nil)
	return values[0], values[len(values)-1]
}

// Norm is the spectral norm of a symmetric matrix, max |λ|.
func Norm(k mat.Symmetric) float64 {
	lo, hi := EigenRange(k)
	return max(math.Abs(lo), math.Abs(hi))
}

// InverseForm is yᵀK⁻¹y for a positive definite K. It returns an error if K is singular to working precision:
// λ_min ≤ n ε λ_max.
func InverseForm(k mat.Symmetric, y []float64) (sum float64, err error) {
	values, vectors := Eigen(k)
	n := len(values)
	if last := values[n-1]; !(last > float64(n)*0x1p-52*values[0]) {
		return 0, fmt.Errorf(
			"kernel matrix of %d inputs has λ_min = %.3g beside λ_max = %.3g, expected it positive definite: look "+
				"for equal or opposite inputs, or add a ridge", n, last, values[0])
	}
	label := mat.NewVecDense(n, y)
	for j, value := range values {
		c := mat.Dot(vectors.ColView(j), label)
		sum += c * c / value
	}
	return sum, nil
}

// Normals is a matrix [n, d] of independent standard normal entries.
func Normals(rng *rand.Rand, n, d int) *mat.Dense {
	return mat.NewDense(n, d, trial.Normals(rng, n*d, 1))
}

// SpherePoints are n independent uniform points of the unit sphere in R^d.
func SpherePoints(rng *rand.Rand, n, d int) *mat.Dense {
	m := Normals(rng, n, d)
	for i := range n {
		row := m.RawRowView(i)
		norm := mat.Norm(mat.NewVecDense(d, row), 2)
		for j := range row {
			row[j] /= norm
		}
	}
	return m
}

// Middle is the middle of the simplex in R^h, (1/h, …, 1/h).
func Middle(h int) []float64 { return slices.Repeat([]float64{1 / float64(h)}, h) }

// Corners are the corners of the simplex in R^h.
func Corners(h int) [][]float64 {
	all := make([][]float64, h)
	for j := range all {
		all[j] = make([]float64, h)
		all[j][j] = 1
	}
	return all
}

// SimplexPoint is a random point of the simplex in R^h, Dirichlet(1/2, …, 1/2), which visits corners, edges and middle.
func SimplexPoint(rng *rand.Rand, h int) []float64 {
	alpha := make([]float64, h)
	var sum float64
	for j := range alpha {
		g := rng.NormFloat64() // g²/2 is Gamma(1/2)
		alpha[j] = g * g
		sum += alpha[j]
	}
	for j := range alpha {
		alpha[j] /= sum
	}
	return alpha
}

// SmallestOverSimplex looks for the α of the simplex with the smallest λ_min(K_α) (the λ₀ of Oymak+ 2021, Assumption
// 3). From each start it alternates the minimum over u of uᵀK_αu and that over α of the convex αᵀQα, Qᵢⱼ = uᵀKᵢⱼu, so
// that λ_min never rises. The result is an upper bound of the infimum; [Blocks.CertifiedSmallest] is a lower one.
func (b *Blocks) SmallestOverSimplex(starts ...[]float64) (smallest float64, alpha []float64) {
	smallest = math.Inf(1)
	for _, at := range starts {
		for range 20 {
			values, vectors := Eigen(Symmetric(b.At(at)))
			n := len(values)
			if last := values[n-1]; last < smallest {
				smallest, alpha = last, at
			}
			next := smallestOnSimplex(b.forms(vectors.ColView(n-1)), at)
			if distance(next, at) < 1e-9 {
				break
			}
			at = next
		}
	}
	return smallest, alpha
}

// forms is the matrix of the uᵀKᵢⱼu.
func (b *Blocks) forms(u mat.Vector) *mat.SymDense {
	h := len(b.k)
	q := mat.NewDense(h, h, nil)
	for i := range h {
		for j := range h {
			q.Set(i, j, mat.Inner(u, b.k[i][j], u))
		}
	}
	return Symmetric(q)
}

// smallestOnSimplex minimizes αᵀQα over the simplex, Q ⪰ 0, by Frank–Wolfe steps with exact line search from a start.
func smallestOnSimplex(q *mat.SymDense, start []float64) []float64 {
	alpha := slices.Clone(start)
	h := len(alpha)
	for range 200 {
		grad := make([]float64, h)
		best := 0
		for i := range h {
			for j := range h {
				grad[i] += q.At(i, j) * alpha[j]
			}
			if grad[i] < grad[best] {
				best = i
			}
		}
		var along float64 // αᵀQ(e−α)
		for i := range h {
			along -= alpha[i] * grad[i]
		}
		value := -along
		along += grad[best]
		bend := q.At(best, best) - 2*grad[best] + value // (e−α)ᵀQ(e−α)
		if along >= 0 || bend <= 0 {
			return alpha
		}
		step := min(1, -along/bend)
		for i := range h {
			alpha[i] *= 1 - step
		}
		alpha[best] += step
	}
	return alpha
}

func distance(a, b []float64) float64 {
	var sum float64
	for i := range a {
		sum += (a[i] - b[i]) * (a[i] - b[i])
	}
	return math.Sqrt(sum)
}

// CertifiedSmallest is a λ₀ that holds for every α with ‖α‖₁ = 1, of either sign, at once:
//
//	λ_min(K_α) = min_u (α⊗u)ᵀ𝒦(α⊗u) ≥ λ_min(𝒦)‖α‖₂² ≥ λ_min(𝒦)/h,
//
// with 𝒦 the Gram matrix of all feature maps, see [Blocks.Whole].
func (b *Blocks) CertifiedSmallest() float64 {
	smallest, _ := EigenRange(b.Whole())
	return smallest / float64(len(b.k))
}

// Signed are the blocks of the activations sⱼσⱼ: its simplex is the orthant of the ℓ₁ sphere with the signs s.
func (b *Blocks) Signed(signs []float64) *Blocks {
	s := newBlocks(len(b.k))
	for i, row := range b.k {
		for j, k := range row {
			s.k[i][j] = mat.DenseCopyOf(k)
			s.k[i][j].Scale(signs[i]*signs[j], k)
		}
	}
	return s
}

// TopEigen is the largest eigenvalue λ of a symmetric positive semidefinite operator on ℝⁿ, given by its product with a
// vector, and its unit eigenvector with the largest entry positive. It is Lanczos' method with full
// reorthogonalization, from a fixed random start, until ‖Av − λv‖ ≤ 10⁻¹⁰λ, at most n steps. If λ is multiple it
// returns one eigenvector.
//
// It returns an error if the operator is 0 (ErrNoDirection) or not finite.
func TopEigen(n int, apply func(dst, v []float64)) (value float64, vector []float64, err error) {
	rng := rand.New(rand.NewPCG(1, 2)) // any start with a share of the leading direction
	k := &krylov{q: [][]float64{unit(trial.Normals(rng, n, 1))}}
	for steps := 1; ; steps++ {
		beta, err := k.step(apply)
		if err != nil {
			return 0, nil, err
		}
		// Looking is as expensive as a dense eigenproblem of size steps.
		if exhausted := steps == n || beta == 0; exhausted || steps%10 == 0 {
			value, vector, residual := k.ritz(beta)
			if value == 0 {
				return 0, nil, ErrNoDirection
			}
			if exhausted || residual <= 1e-10*value {
				return value, vector, nil
			}
		}
	}
}

// krylov is an orthonormal basis q of the span of q₁, Aq₁, A²q₁, … with the tridiagonal matrix of A in it.
type krylov struct {
	q           [][]float64
	alpha, beta []float64
}

// step adds a direction and returns its length β before normalization, 0 if the space is exhausted.
func (k *krylov) step(apply func(dst, v []float64)) (beta float64, err error) {
	last := k.q[len(k.q)-1]
	next := make([]float64, len(last))
	apply(next, last)
	size := floats.Norm(next, 2)
	if math.IsNaN(size) || math.IsInf(size, 0) {
		return 0, fmt.Errorf("spectral: the operator's product with a unit vector has norm %v, expected a finite one",
			size)
	}
	k.alpha = append(k.alpha, floats.Dot(last, next))
	for range 2 { // once leaves a rest of rounding errors
		for _, q := range k.q {
			floats.AddScaled(next, -floats.Dot(q, next), q)
		}
	}
	beta = floats.Norm(next, 2)
	if beta <= 1e-14*size || len(k.q) == len(last) {
		return 0, nil
	}
	floats.Scale(1/beta, next)
	k.q, k.beta = append(k.q, next), append(k.beta, beta)
	return beta, nil
}

// ritz is the leading eigenpair of the tridiagonal matrix, in ℝⁿ, with the norm of its residual.
func (k *krylov) ritz(beta float64) (value float64, vector []float64, residual float64) {
	m := len(k.alpha)
	t := mat.NewSymDense(m, nil)
	for i, a := range k.alpha {
		t.SetSym(i, i, a)
		if i+1 < m {
			t.SetSym(i, i+1, k.beta[i])
		}
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(t, true) {
		panic("spectral: a finite tridiagonal matrix has eigenvalues")
	}
	var s mat.Dense
	eigen.VectorsTo(&s)
	value = eigen.Values(nil)[m-1]
	vector = make([]float64, len(k.q[0]))
	for i := range m {
		floats.AddScaled(vector, s.At(i, m-1), k.q[i])
	}
	return value, positive(unit(vector)), math.Abs(beta * s.At(m-1, m-1))
}

// positive is v or −v, so that the entry of largest size is positive.
func positive(v []float64) []float64 {
	largest := 0
	for i, x := range v {
		if math.Abs(x) > math.Abs(v[largest]) {
			largest = i
		}
	}
	if v[largest] < 0 {
		floats.Scale(-1, v)
	}
	return v
}
