package features

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// Mixture is a sample seen through h feature maps φᵢ: 𝒳 → R^p, whose superposition φ_α(x) = Σᵢ αᵢφᵢ(x) is the feature
// map of α (Oymak+ 2021, Definition 2).
type Mixture struct {
	Maps []*mat.Dense // Φᵢ, [n, p]: row j is φᵢ(xⱼ)
	Y    []float64    // targets, [n]
}

// NewMixture checks the shapes of a mixture.
func NewMixture(maps []*mat.Dense, y []float64) (*Mixture, error) {
	if len(maps) == 0 {
		return nil, errors.New("mixture: at least one feature map is needed")
	}
	n, p := maps[0].Dims()
	if len(y) != n {
		return nil, fmt.Errorf("mixture: each of %d rows of features must have a target, got %d", n, len(y))
	}
	for i, m := range maps {
		if rows, cols := m.Dims(); rows != n || cols != p {
			return nil, fmt.Errorf("mixture: maps must have equal shapes, map %d has [%d, %d] and the first [%d, %d]",
				i, rows, cols, n, p)
		}
		if slices.ContainsFunc(m.RawMatrix().Data, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }) {
			return nil, fmt.Errorf("mixture: map %d has a feature that is not finite", i)
		}
	}
	return &Mixture{maps, y}, nil
}

// At is Φ_α = Σᵢ αᵢΦᵢ, [n, p]. It panics if α has another length than Maps.
func (m *Mixture) At(alpha []float64) *mat.Dense {
	if len(alpha) != len(m.Maps) {
		panic(fmt.Sprintf("mixture: α must have %d entries, one for each map, got %d", len(m.Maps), len(alpha)))
	}
	n, p := m.Maps[0].Dims()
	out := mat.NewDense(n, p, nil)
	for i, a := range alpha {
		for j := range n {
			floats.AddScaled(out.RawRowView(j), a, m.Maps[i].RawRowView(j))
		}
	}
	return out
}

// MixtureFit is the ridge solution of one α and λ on a training sample,
//
//	θ_α = argmin_θ ‖y − Φ_αθ‖² + λ‖θ‖²   (Oymak+ 2021, eq. 6),
//
// with what its derivatives need. Where n ≤ p, λ = 0 is the interpolant of minimum norm, θ_α = Φ_αᵀ(Φ_αΦ_αᵀ)⁻¹y.
type MixtureFit struct {
	Alpha    []float64 // α, [h]
	Lambda   float64   // λ, the paper's α_{h+1}
	Theta    []float64 // θ_α, [p]
	Residual []float64 // y − Φ_αθ_α, [n]

	train *Mixture
	phi   *mat.Dense    // Φ_α
	b     *mat.VecDense // dual: (Φ_αΦ_αᵀ + λI)⁻¹y
	chol  *mat.Cholesky // of the smaller system
	dual  bool          // n ≤ p
}

// Fit solves the lower-level problem.
//
// It returns an error if α has the wrong length or is not finite, λ is negative, and where λ is 0 (or too small to
// matter) and Φ_α does not have full rank: the solution has no derivative there.
func (m *Mixture) Fit(alpha []float64, lambda float64) (*MixtureFit, error) {
	if len(alpha) != len(m.Maps) || floats.HasNaN(alpha) {
		return nil, fmt.Errorf("mixture: α must have %d numbers, one for each map, got %v", len(m.Maps), alpha)
	}
	if !(lambda >= 0) || math.IsInf(lambda, 1) {
		return nil, fmt.Errorf("mixture: λ must be at least 0, got %v", lambda)
	}
	f := &MixtureFit{Alpha: slices.Clone(alpha), Lambda: lambda, train: m, phi: m.At(alpha)}
	n, p := f.phi.Dims()
	f.dual = n <= p
	var wide mat.Matrix = f.phi // wide·wideᵀ is the smaller Gram matrix
	if !f.dual {
		wide = f.phi.T()
	}
	var err error
	if f.chol, err = shifted(wide, lambda); err != nil {
		return nil, fmt.Errorf("mixture at α = %.4g: %w", alpha, err)
	}
	y := mat.NewVecDense(n, m.Y)
	theta := mat.NewVecDense(p, nil)
	if f.dual {
		f.b = mat.NewVecDense(n, nil)
		err = f.chol.SolveVecTo(f.b, y)
		theta.MulVec(f.phi.T(), f.b)
	} else {
		var right mat.VecDense
		right.MulVec(f.phi.T(), y)
		err = f.chol.SolveVecTo(theta, &right)
	}
	f.Theta = theta.RawVector().Data
	f.Residual = slices.Clone(m.Y)
	floats.Sub(f.Residual, mulVec(f.phi, f.Theta))
	return f, err
}

// Jacobian is ∂θ_α/∂(α₁, …, α_h, λ), [p, h+1]. With K = Φ_αΦ_αᵀ + λI, b = K⁻¹y, r = y − Φ_αθ and A = Φ_αᵀΦ_α + λI,
//
//	dual:   ∂ᵢθ = Φᵢᵀb − Φ_αᵀK⁻¹(Φᵢθ + Φ_αΦᵢᵀb) ,  ∂_λθ = −Φ_αᵀK⁻¹b ,
//	primal: ∂ᵢθ = A⁻¹(Φᵢᵀr − Φ_αᵀΦᵢθ) ,            ∂_λθ = −A⁻¹θ .
func (f *MixtureFit) Jacobian() (*mat.Dense, error) {
	n, p := f.phi.Dims()
	h := len(f.Alpha)
	out := mat.NewDense(p, h+1, nil)
	if !f.dual {
		right := mat.NewDense(p, h+1, nil)
		for i, m := range f.train.Maps {
			col := mulVec(m.T(), f.Residual)
			floats.Sub(col, mulVec(f.phi.T(), mulVec(m, f.Theta)))
			right.SetCol(i, col)
		}
		right.SetCol(h, floats.ScaleTo(make([]float64, p), -1, f.Theta))
		return out, f.chol.SolveTo(out, right)
	}
	b := f.b.RawVector().Data
	right, direct := mat.NewDense(n, h+1, nil), mat.NewDense(p, h+1, nil)
	for i, m := range f.train.Maps {
		back := mulVec(m.T(), b)
		direct.SetCol(i, back)
		col := mulVec(m, f.Theta)
		floats.Add(col, mulVec(f.phi, back))
		right.SetCol(i, col)
	}
	right.SetCol(h, b)
	var solved mat.Dense
	if err := f.chol.SolveTo(&solved, right); err != nil {
		return nil, err
	}
	out.Mul(f.phi.T(), &solved)
	out.Sub(direct, out)
	return out, nil
}

// MinSingular is the smallest singular value of Φ_α as a map onto the smaller
// of R^n and R^p: the n-th one of a wide matrix, not 0.
func (m *Mixture) MinSingular(alpha []float64) (float64, error) {
	var svd mat.SVD
	if !svd.Factorize(m.At(alpha), mat.SVDNone) {
		return 0, fmt.Errorf("mixture: no singular value decomposition at α = %.4g", alpha)
	}
	values := svd.Values(nil)
	return values[len(values)-1], nil
}

func mulVec(m mat.Matrix, v []float64) []float64 {
	n, _ := m.Dims()
	out := mat.NewVecDense(n, nil)
	out.MulVec(m, mat.NewVecDense(len(v), v))
	return out.RawVector().Data
}

// maxCondition is the condition number above which a system is refused: some
// digits of a solution in float64 have to be left.
const maxCondition = 1e13

// shifted factorizes MMᵀ + λI. It returns an error if that matrix is singular to rounding.
func shifted(m mat.Matrix, lambda float64) (*mat.Cholesky, error) {
	var gram mat.SymDense
	gram.SymOuterK(1, m)
	n := gram.SymmetricDim()
	for i := range n {
		gram.SetSym(i, i, gram.At(i, i)+lambda)
	}
	var chol mat.Cholesky
	if ok := chol.Factorize(&gram); !ok || !(chol.Cond() < maxCondition) {
		return nil, fmt.Errorf(
			"the %d×%d system with λ = %v is singular to rounding (condition number over %.0e): expected features of "+
				"full rank, or a larger λ", n, n, lambda, maxCondition)
	}
	return &chol, nil
}
