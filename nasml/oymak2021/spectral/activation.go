package spectral

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/integrate/quad"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize"
)

// Activation is an activation function with what its tangent kernel needs.
type Activation struct {
	Name string
	Eval func(z float64) (value, slope float64) // σ(z), σ′(z)

	Slope, Curvature float64 // sup |σ′| and sup |σ″| over R; infinite if there is none

	slopeHermite func(degree int) []float64 // of σ′ where quadrature is too coarse
}

// Bound is the B of Oymak+ 2021, Theorem 3: it bounds |σ′| and |σ″|.
func (a Activation) Bound() float64 { return max(a.Slope, a.Curvature) }

// Activations by name. Those with an infinite Bound (ReLU, square) lie outside Theorem 3.
var Activations = map[string]Activation{
	"erf": {Eval: func(z float64) (float64, float64) { return math.Erf(z), 2 / math.SqrtPi * math.Exp(-z*z) },
		Slope: 2 / math.SqrtPi, Curvature: 2 * math.Sqrt(2/math.Pi/math.E)},
	"identity": {Eval: func(z float64) (float64, float64) { return z, 1 }, Slope: 1},
	"relu":     {Eval: relu, Slope: 1, Curvature: math.Inf(1), slopeHermite: stepHermite},
	"sigmoid":  {Eval: sigmoid, Slope: 0.25, Curvature: math.Sqrt(3) / 18},
	"sin":      {Eval: math.Sincos, Slope: 1, Curvature: 1},
	"softplus": {Eval: softplus, Slope: 1, Curvature: 0.25},
	"square":   {Eval: func(z float64) (float64, float64) { return z * z / 2, z }, Slope: math.Inf(1), Curvature: 1},
	"tanh": {Eval: func(z float64) (float64, float64) { t := math.Tanh(z); return t, 1 - t*t },
		Slope: 1, Curvature: 4 * math.Sqrt(3) / 9},
}

// NamedActivation looks an activation up. "tanh*2" is z ↦ tanh(2z), for any
// name and any factor but 0. It returns an error if the name is not known.
func NamedActivation(name string) (Activation, error) {
	base, factor, scaled := strings.Cut(name, "*")
	a, ok := Activations[base]
	var f float64
	if scaled {
		if _, err := fmt.Sscanf(factor+"\n", "%g\n", &f); err != nil || f == 0 || math.IsNaN(f) || math.IsInf(f, 0) {
			return a, fmt.Errorf("activation %q: the factor is %q, expected a number other than 0, as in tanh*2", name,
				factor)
		}
	}
	if !ok {
		known := strings.Join(slices.Sorted(maps.Keys(Activations)), ", ")
		return a, fmt.Errorf("unknown activation %q: take one of %s, or one of them with a factor, as in tanh*2", name,
			known)
	}
	a.Name = base
	if scaled {
		a = a.stretched(f, name)
	}
	return a, nil
}

// stretched is z ↦ σ(fz).
func (a Activation) stretched(f float64, name string) Activation {
	eval, hermite := a.Eval, a.slopeHermite
	s := Activation{
		Name: name, Slope: math.Abs(f) * a.Slope, Curvature: f * f * a.Curvature,
		Eval: func(z float64) (float64, float64) {
			value, slope := eval(f * z)
			return value, f * slope
		},
	}
	if hermite != nil { // a step is the same at every scale but its sign
		s.slopeHermite = func(degree int) []float64 {
			c := hermite(degree)
			for k := range c {
				c[k] *= f
				if f < 0 && k%2 == 1 {
					c[k] = -c[k]
				}
			}
			return c
		}
	}
	return s
}

// NamedActivations is [NamedActivation] of each name, of which there must be one.
func NamedActivations(names ...string) ([]Activation, error) {
	if len(names) == 0 {
		return nil, errors.New("at least one activation must be named")
	}
	var all []Activation
	for _, name := range names {
		a, err := NamedActivation(name)
		if err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return all, nil
}

func sigmoid(z float64) (float64, float64) {
	s := 1 / (1 + math.Exp(-z))
	return s, s * (1 - s)
}

// softplus is log(1+eᶻ), without overflow.
func softplus(z float64) (float64, float64) {
	s, _ := sigmoid(z)
	return max(z, 0) + math.Log1p(math.Exp(-math.Abs(z))), s
}

// relu has slope 0 at 0, as in PyTorch and JAX.
func relu(z float64) (float64, float64) {
	if z > 0 {
		return z, 1
	}
	return 0, 0
}

// stepHermite are the Hermite coefficients of the step 1{z>0}: c₀ = ½, then 0
// for even k and He_{k−1}(0)/√(2π k!) for odd k.
func stepHermite(degree int) []float64 {
	c := make([]float64, degree+1)
	c[0] = 0.5
	term := 1 / math.Sqrt(2*math.Pi) // He_{k−1}(0)/√(2π k!) at k = 1
	for k := 1; k <= degree; k += 2 {
		c[k] = term
		term *= -float64(k) / math.Sqrt(float64(k+1)*float64(k+2))
	}
	return c
}

// Mixture is σ_α = Σⱼ αⱼσⱼ, the activation of a search space's point α.
type Mixture struct {
	Activations []Activation
	Alpha       []float64
}

// Eval is σ_α(z) and σ_α′(z).
func (m Mixture) Eval(z float64) (value, slope float64) {
	for j, a := range m.Activations {
		v, s := a.Eval(z)
		value += m.Alpha[j] * v
		slope += m.Alpha[j] * s
	}
	return value, slope
}

const (
	tableEnd   = 12.0    // |z| beyond is evaluated directly
	tableKnots = 1 << 13 // on [−tableEnd, tableEnd]
	tableStep  = 2 * tableEnd / tableKnots
)

// Table is a mixture between knots: the cubic that has σ_α and σ_α′ at both ends, and its derivative. For smooth
// activations it is off by less than 10⁻¹¹ in value and 10⁻⁸ in slope, and costs the same however many are mixed. A
// mixture with a kink is evaluated directly.
type Table struct {
	mixture Mixture
	knots   [][2]float64 // value and slope times the step; nil: evaluate directly
}

// NewTable tabulates a mixture.
func NewTable(m Mixture) *Table {
	t := &Table{mixture: m}
	for _, a := range m.Activations {
		if math.IsInf(a.Curvature, 1) {
			return t
		}
	}
	t.knots = make([][2]float64, tableKnots+1)
	for i := range t.knots {
		value, slope := m.Eval(-tableEnd + float64(i)*tableStep)
		t.knots[i] = [2]float64{value, slope * tableStep}
	}
	return t
}

// Eval is the value and the slope at z.
func (t *Table) Eval(z float64) (value, slope float64) {
	place := (z + tableEnd) / tableStep
	if t.knots == nil || !(place >= 0 && place < tableKnots) {
		return t.mixture.Eval(z)
	}
	i := int(place)
	s := place - float64(i)
	a, b := t.knots[i], t.knots[i+1]
	// a₀ + s·(a₁ + s·(c₂ + s·c₃)), the cubic of Hermite's interpolation
	rise := b[0] - a[0]
	c2, c3 := 3*rise-2*a[1]-b[1], a[1]+b[1]-2*rise
	return a[0] + s*(a[1]+s*(c2+s*c3)), (a[1] + s*(2*c2+3*s*c3)) / tableStep
}

// Rule is a quadrature rule for Gaussian means,
//
//	E f(g) ≈ Σᵢ Wᵢ f(Xᵢ),  g ~ N(0, 1) .
type Rule struct{ X, W []float64 }

// GaussHermite is the rule with m nodes, exact for polynomials of degree 2m − 1. For a function that is analytic in a
// strip around the real line the error falls like exp(−c√m). It returns an error if m is not in 1…200, the range in
// which double precision has weights.
func GaussHermite(m int) (Rule, error) {
	if m < 1 || m > 200 {
		return Rule{}, fmt.Errorf("a Gauss–Hermite rule must have 1 to 200 nodes, got %d", m)
	}
	r := Rule{X: make([]float64, m), W: make([]float64, m)}
	quad.Hermite{}.FixedLocations(r.X, r.W, math.Inf(-1), math.Inf(1))
	for i := range r.X { // from the weight e^(−x²) to the density of N(0, 1)
		r.X[i] *= math.Sqrt2
		r.W[i] /= math.Sqrt(math.Pi)
	}
	return r, nil
}

// Mean is E f(g).
func (r Rule) Mean(f func(float64) float64) float64 {
	var sum float64
	for i, x := range r.X {
		sum += r.W[i] * f(x)
	}
	return sum
}

// Hermite are the coefficients of f in the normalised Hermite polynomials of the probabilists,
//
//	c_k = E[f(g) He_k(g)] / √k!,  k = 0…degree,
//
// so that E f(u)² = Σ c_k² and E f(u)f(v) = Σ c_k² ρᵏ for correlation ρ. It
// panics if the rule cannot tell the degree's polynomial from lower ones.
func (r Rule) Hermite(f func(float64) float64, degree int) []float64 {
	if degree >= len(r.X) {
		panic(fmt.Sprintf("Hermite coefficients from %d nodes: the degree must be below that, got %d",
			len(r.X), degree))
	}
	c := make([]float64, degree+1)
	for i, x := range r.X {
		y := r.W[i] * f(x)
		before, now := 0.0, 1.0 // He_k/√k! by its three-term recurrence
		for k := range c {
			c[k] += y * now
			before, now = now, (x*now-math.Sqrt(float64(k))*before)/math.Sqrt(float64(k+1))
		}
	}
	return c
}

// powerSeries is Σ c_k ρᵏ.
func powerSeries(c []float64, rho float64) float64 {
	var sum float64
	for k := len(c) - 1; k >= 0; k-- {
		sum = sum*rho + c[k]
	}
	return sum
}

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
// with r = Z̃θ − ỹ, b = Z̃ᵀr, e = (ZZᵀ+λI)⁻¹Zb and w = b − Zᵀe. It is the implicit derivative for λ > 0 and that of the
// pseudo-inverse for λ = 0, where F does not depend on the length of α.
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
