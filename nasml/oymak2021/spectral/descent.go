package spectral

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize"
)

// Stored are examples held in memory, 8·n·h·p bytes, for searches.
type Stored struct {
	N, H, P int
	x       []float64 // [n, h, p]
	y       []float64
}

// Store draws all examples and keeps them.
func Store(ctx context.Context, d Examples) (*Stored, error) {
	s := &Stored{N: d.N, H: d.H, P: d.P, x: make([]float64, d.N*d.H*d.P), y: make([]float64, d.N)}
	size := d.H * d.P
	err := d.pass(ctx, func(_, i int, x []float64, y float64) {
		copy(s.x[i*size:], x)
		s.y[i] = y
	})
	return s, err
}

// along is Z_α: row i is Xᵢᵀα.
func (s *Stored) along(alpha []float64) *mat.Dense {
	z := mat.NewDense(s.N, s.P, nil)
	for i := range s.N {
		mulTrans(z.RawRowView(i), s.x[i*s.H*s.P:(i+1)*s.H*s.P], s.P, alpha)
	}
	return z
}

// times is the matrix with rows Xᵢv ∈ ℝ^h.
func (s *Stored) times(v []float64) *mat.Dense {
	out := mat.NewDense(s.N, s.H, nil)
	m := blas64.General{Rows: s.N * s.H, Cols: s.P, Stride: s.P, Data: s.x}
	blas64.Gemv(blas.NoTrans, 1, m, vector(v), 0, vector(out.RawMatrix().Data))
	return out
}

// Split is a rank-one problem with separate training and validation examples of the same shape.
type Split struct {
	Train, Valid *Stored
	Ridge        float64 // λ ≥ 0 of the lower level; 0 is least squares of least norm, for n ≤ p
}

// lower is the solution of the lower level,
//
//	θ_α = argmin ‖y − Z_αθ‖² + λ‖θ‖² = Zᵀc,   c = (ZZᵀ + λI)⁻¹y ,
//
// with what its derivative needs.
func (s Split) lower(alpha []float64) (z *mat.Dense, chol *mat.Cholesky, c, theta []float64, err error) {
	z = s.Train.along(alpha)
	var gram mat.SymDense
	gram.SymOuterK(1, z)
	for i := range s.Train.N {
		gram.SetSym(i, i, gram.At(i, i)+s.Ridge)
	}
	chol = &mat.Cholesky{}
	if !chol.Factorize(&gram) || chol.Cond() > 1e12 {
		return nil, nil, nil, nil, fmt.Errorf("spectral: Z_αZ_αᵀ + λI with λ = %v is singular: use a larger λ", s.Ridge)
	}
	c = solve(chol, s.Train.y)
	return z, chol, c, mulVec(z.T(), c), nil
}

// Theta is θ_α.
func (s Split) Theta(alpha []float64) ([]float64, error) {
	_, _, _, theta, err := s.lower(alpha)
	return theta, err
}

// Loss is the upper level's loss and its exact hypergradient,
//
//	F(α) = (1/ñ) ‖Z̃_αθ_α − ỹ‖² ,
//	∂F/∂α = (2/ñ) [ Σᵢ rᵢ X̃ᵢθ + Σᵢ cᵢ Xᵢw − Σᵢ eᵢ Xᵢθ ] ,
//
// with r = Z̃θ − ỹ, b = Z̃ᵀr, e = (ZZᵀ+λI)⁻¹Zb and w = b − Zᵀe. It is the implicit
// derivative for λ > 0 and that of the pseudo-inverse for λ = 0, where F does
// not depend on the length of α.
func (s Split) Loss(alpha []float64) (loss float64, grad []float64, err error) {
	z, chol, c, theta, err := s.lower(alpha)
	if err != nil {
		return 0, nil, err
	}
	validX := s.Valid.times(theta) // X̃ᵢθ
	r := mulVec(validX, alpha)     // Z̃θ = (X̃ᵢθ)ᵀα
	floats.Sub(r, s.Valid.y)
	b := mulVec(s.Valid.along(alpha).T(), r)
	e := solve(chol, mulVec(z, b))
	w := slices.Clone(b)
	floats.Sub(w, mulVec(z.T(), e))
	grad = mulVec(validX.T(), r)
	floats.Add(grad, mulVec(s.Train.times(w).T(), c))
	floats.Sub(grad, mulVec(s.Train.times(theta).T(), e))
	n := float64(s.Valid.N)
	floats.Scale(2/n, grad)
	return floats.Dot(r, r) / n, grad, nil
}

// Descend searches α on the unit sphere by the exact hypergradient: at most steps of L-BFGS on F(α/‖α‖) from start,
// which is not 0. It returns the best α with its loss, or an error if the lower level is singular at start or ctx is
// cancelled.
func (s Split) Descend(ctx context.Context, start []float64, steps int) (alpha []float64, loss float64, err error) {
	alpha = unit(start)
	if loss, _, err = s.Loss(alpha); err != nil || steps == 0 || s.Train.H == 1 {
		return alpha, loss, err
	}
	here := &sphereProblem{split: s}
	problem := optimize.Problem{
		Func: func(x []float64) float64 { here.visit(x); return here.loss },
		Grad: func(dst, x []float64) { here.visit(x); copy(dst, here.grad) },
	}
	settings := &optimize.Settings{
		MajorIterations:   steps,
		GradientThreshold: 1e-7,
		Recorder:          until{ctx},
		Converger:         &optimize.FunctionConverge{Absolute: 1e-10, Relative: 1e-8, Iterations: 10},
	}
	result, err := optimize.Minimize(problem, alpha, settings, &optimize.LBFGS{})
	if ctx.Err() != nil {
		return nil, 0, ctx.Err()
	}
	if result == nil {
		return nil, 0, err
	}
	// A line search that finds no better point ends the search; it is no error.
	if result.F < loss {
		return positive(unit(result.X)), result.F, nil
	}
	return positive(alpha), loss, nil
}

type until struct{ ctx context.Context }

func (u until) Init() error { return u.ctx.Err() }

func (u until) Record(*optimize.Location, optimize.Operation, *optimize.Stats) error {
	return u.ctx.Err()
}

// sphereProblem is F(α/‖α‖) with its gradient. It caches the last point: a line search needs both there.
type sphereProblem struct {
	split Split
	at    []float64
	loss  float64
	grad  []float64
}

func (p *sphereProblem) visit(x []float64) {
	if slices.Equal(x, p.at) {
		return
	}
	p.at = slices.Clone(x)
	u := unit(x)
	loss, g, err := p.split.Loss(u)
	if err != nil { // a wall: the line search turns back
		p.loss, p.grad = math.Inf(1), make([]float64, len(x))
		return
	}
	floats.AddScaled(g, -floats.Dot(g, u), u)
	floats.Scale(1/floats.Norm(x, 2), g)
	p.loss, p.grad = loss, g
}

func unit(x []float64) []float64 {
	u := slices.Clone(x)
	floats.Scale(1/floats.Norm(u, 2), u)
	return u
}

// Alternate is the search that ignores how θ_α moves with α, as first-order DARTS does: in turns, θ fits the training
// set at the present α, and α fits the validation set at that θ by least squares.
func (s Split) Alternate(ctx context.Context, start []float64, rounds int) (alpha []float64, err error) {
	alpha = unit(start)
	for range rounds {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		theta, err := s.Theta(alpha)
		if err != nil {
			return nil, err
		}
		next, err := MinNorm(s.Valid.times(theta), s.Valid.y)
		if err != nil {
			return nil, err
		}
		if floats.Norm(next, 2) == 0 { // θ predicts nothing: stay
			break
		}
		alpha = unit(next)
	}
	return positive(alpha), nil
}
