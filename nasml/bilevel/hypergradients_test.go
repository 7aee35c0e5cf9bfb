package bilevel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// ridge is a bilevel problem with a closed form: a penalty e^θⱼ for every
// weight, so that the Hessian and the mixed derivatives depend on θ.
//
//	G(w, θ) = ½‖Xw − y‖² + ½ Σⱼ e^θⱼ wⱼ²,  w*(θ) = (XᵀX + diag(e^θ) + wd·I)⁻¹ Xᵀy
//	F(w, θ) = ½‖Zw − u‖² + ½ Σⱼ sⱼ θⱼ²
//
// where wd is the decay of the weights' optimizer. w is [2, 2] and [3], θ is
// [3] and [2, 2]: lists of which neither has the shapes of the other.
type ridge struct {
	x, z         *mat.Dense // [8, 7], [5, 7]
	y, u, s      *mat.VecDense
	theta, w, v  []float64
	eta, mu, wd  float64
	terms        int
	damping, eps float64
	step         float64
}

const dim = 7

func newRidge() *ridge {
	rng := rand.New(rand.NewPCG(1, 2))
	normal := func(n int) []float64 {
		x := make([]float64, n)
		for i := range x {
			x[i] = rng.NormFloat64()
		}
		return x
	}
	return &ridge{
		x: mat.NewDense(8, dim, normal(8*dim)), z: mat.NewDense(5, dim, normal(5*dim)),
		y: mat.NewVecDense(8, normal(8)), u: mat.NewVecDense(5, normal(5)), s: mat.NewVecDense(dim, normal(dim)),
		theta: normal(dim), w: normal(dim), v: normal(dim), eta: 0.03, mu: 0.9, wd: 0.2,
	}
}

// hessian is ∇²_ww G + (wd + λ)I and the linear part Xᵀy.
func (r *ridge) hessian() (*mat.SymDense, *mat.VecDense) {
	var xx mat.Dense
	xx.Mul(r.x.T(), r.x)
	h := mat.NewSymDense(dim, nil)
	for i := range dim {
		for j := range i + 1 {
			h.SetSym(i, j, xx.At(i, j))
		}
		h.SetSym(i, i, xx.At(i, i)+math.Exp(r.theta[i])+r.wd+r.damping)
	}
	var xy mat.VecDense
	xy.MulVec(r.x.T(), r.y)
	return h, &xy
}

func (r *ridge) solve(h *mat.SymDense, b *mat.VecDense) []float64 {
	var q mat.VecDense
	if err := q.SolveVec(h, b); err != nil {
		panic(err)
	}
	return q.RawVector().Data
}

// outer is F(w, θ) and ∇_w F.
func (r *ridge) outer(w []float64) (float64, *mat.VecDense) {
	var e, dw mat.VecDense
	e.MulVec(r.z, mat.NewVecDense(dim, w))
	e.SubVec(&e, r.u)
	dw.MulVec(r.z.T(), &e)
	f := mat.Dot(&e, &e) / 2
	for j, theta := range r.theta {
		f += r.s.AtVec(j) * theta * theta / 2
	}
	return f, &dw
}

// implicit is ∇_θ F − ∇²_θw G q, where ∂²G/∂θⱼ∂wⱼ = e^θⱼ wⱼ.
func (r *ridge) implicit(w, q []float64) []float64 {
	grad := make([]float64, dim)
	for j, theta := range r.theta {
		grad[j] = r.s.AtVec(j)*theta - math.Exp(theta)*w[j]*q[j]
	}
	return grad
}

// lookAhead is w′ of the unrolled forms.
func (r *ridge) lookAhead() []float64 {
	r2 := *r
	r2.damping = 0
	h, xy := r2.hessian()
	var move mat.VecDense
	move.MulVec(h, mat.NewVecDense(dim, r.w))
	move.SubVec(&move, xy)
	move.AddScaledVec(&move, r.mu, mat.NewVecDense(dim, r.v))
	ahead := slices.Clone(r.w)
	floats.AddScaled(ahead, -r.eta, move.RawVector().Data)
	return ahead
}

func parts(x []float64, names string) []any {
	if names == "w" {
		return []any{[][]float64{x[:2], x[2:4]}, x[4:]}
	}
	return []any{x[:3], [][]float64{x[3:5], x[5:]}}
}

func flat(x []*Node) *Node {
	return Concatenate([]*Node{Reshape(x[0], x[0].Shape().Size()), Reshape(x[1], x[1].Shape().Size())}, 0)
}

func half(x *Node) *Node { return MulScalar(ReduceAllSum(Square(x)), 0.5) }

func constOf(g *Graph, m *mat.Dense) *Node {
	r, c := m.Dims()
	return Reshape(Const(g, m.RawMatrix().Data), r, c)
}

// problem is the ridge problem in the graph; aux is (Σw, Σθ) of its pass.
func (r *ridge) problem(g *Graph) Problem {
	aux := func(w, theta *Node) []*Node { return []*Node{ReduceAllSum(w), ReduceAllSum(theta)} }
	return Problem{
		Inner: func(ws, thetas []*Node) (*Node, []*Node) {
			w, theta := flat(ws), flat(thetas)
			e := Sub(Dot(constOf(g, r.x), w).Product(), Const(g, r.y.RawVector().Data))
			penalty := MulScalar(ReduceAllSum(Mul(Exp(theta), Square(w))), 0.5)
			return Add(half(e), penalty), aux(AddScalar(w, 100), theta)
		},
		Outer: func(ws, thetas []*Node) (*Node, []*Node) {
			w, theta := flat(ws), flat(thetas)
			e := Sub(Dot(constOf(g, r.z), w).Product(), Const(g, r.u.RawVector().Data))
			direct := MulScalar(ReduceAllSum(Mul(Const(g, r.s.RawVector().Data), Square(theta))), 0.5)
			return Add(half(e), direct), aux(w, theta)
		},
	}
}

// hypergradient runs one at (w, θ).
func (r *ridge) hypergradient(t *testing.T, name string, w []float64) (loss float64, grad, aux []float64) {
	t.Helper()
	in := slices.Concat(parts(w, "w"), parts(r.theta, "theta"), parts(r.v, "w"), []any{r.eta})
	out := run(t, func(in []*Node) []*Node {
		o := Options{Eta: in[6], Momentum: r.mu, WeightDecay: r.wd, Terms: r.terms, Damping: r.damping,
			StepSize: r.step, Epsilon: r.eps}
		loss, grad, aux := Hypergradients[name](r.problem(in[0].Graph()), o, in[0:2], in[2:4], in[4:6])
		for i := range grad {
			grad[i].AssertDims(in[2+i].Shape().Dimensions...)
		}
		return slices.Concat([]*Node{loss}, grad, aux)
	}, in...)
	return out[0][0], concat(out[1], out[2]), concat(out[3], out[4])
}

func TestFirstOrder(t *testing.T) {
	r := newRidge()
	loss, grad, aux := r.hypergradient(t, "first-order", r.w)
	want, _ := r.outer(r.w)
	require.InDelta(t, want, loss, 1e-12)
	requireClose(t, r.implicit(r.w, make([]float64, dim)), grad, 1e-14, "s ⊙ θ")
	requireClose(t, []float64{floats.Sum(r.w), floats.Sum(r.theta)}, aux, 1e-13, "the outer pass at w")
}

func TestUnrolledIsTheGradientThroughOneStep(t *testing.T) {
	r := newRidge()
	loss, grad, aux := r.hypergradient(t, "unrolled", r.w)
	ahead := r.lookAhead()
	wantLoss, v := r.outer(ahead)
	require.InDelta(t, wantLoss, loss, 1e-12*(1+wantLoss))
	q := slices.Clone(v.RawVector().Data)
	floats.Scale(r.eta, q)
	requireClose(t, r.implicit(r.w, q), grad, 1e-12, "the formula of one step")
	requireClose(t, []float64{floats.Sum(ahead), floats.Sum(r.theta)}, aux, 1e-12, "the outer pass at w′")

	const h = 1e-5
	for j := range dim { // F(w′(θ), θ), w′ and F on the host
		side := func(sign float64) float64 {
			moved := *r
			moved.theta = slices.Clone(r.theta)
			moved.theta[j] += sign * h
			f, _ := moved.outer(moved.lookAhead())
			return f
		}
		require.InDelta(t, (side(1)-side(-1))/(2*h), grad[j], 1e-6, "finite difference in θ%d", j)
	}
}

func TestUnrolledWithoutVelocityTakesItForZero(t *testing.T) {
	r := newRidge()
	for _, name := range []string{"unrolled", "finite-difference"} {
		in := append(append(parts(r.w, "w"), parts(r.theta, "theta")...), r.eta)
		out := run(t, func(in []*Node) []*Node {
			_, grad, _ := Hypergradients[name](r.problem(in[0].Graph()),
				Options{Eta: in[4], Momentum: r.mu, WeightDecay: r.wd}, in[0:2], in[2:4], nil)
			return grad
		}, in...)
		zero := *r
		zero.v = make([]float64, dim)
		_, want, _ := zero.hypergradient(t, name, r.w)
		require.Equal(t, want, concat(out...))
	}
}

// quartic has a third derivative in w, so that a central difference is not
// exact, and an outer gradient that depends on θ: G = ¼ Σ e^θⱼ wⱼ⁴,
// F = ½ Σ(θⱼwⱼ − 1)².
func quartic() Problem {
	return Problem{
		Inner: func(w, theta []*Node) (*Node, []*Node) {
			return MulScalar(ReduceAllSum(Mul(Exp(theta[0]), Square(Square(w[0])))), 0.25), nil
		},
		Outer: func(w, theta []*Node) (*Node, []*Node) { return half(AddScalar(Mul(theta[0], w[0]), -1)), nil },
	}
}

func TestFiniteDifferenceErrorIsOfSecondOrder(t *testing.T) {
	gradient := func(name string, epsilon float64) []float64 {
		return run(t, func(in []*Node) []*Node {
			eta := Const(in[0].Graph(), 0.1)
			loss, grad, aux := Hypergradients[name](quartic(), Options{Eta: eta, Epsilon: epsilon}, in[:1], in[1:], nil)
			require.Empty(t, aux)
			return []*Node{grad[0], loss}
		}, []float64{0.7, -1.1, 0.4}, []float64{0.2, -0.5, 1})[0]
	}
	exact := gradient("unrolled", 0)
	var x, y []float64
	for _, epsilon := range []float64{0.4, 0.2, 0.1, 0.05} {
		x = append(x, math.Log(epsilon))
		y = append(y, math.Log(floats.Distance(exact, gradient("finite-difference", epsilon), 2)))
	}
	_, slope := stat.LinearRegression(x, y, nil, false)
	require.InDelta(t, 2, slope, 1e-3)
	require.Equal(t, gradient("finite-difference", 0.01), gradient("finite-difference", 0), "0.01 is the default")
}

func TestFiniteDifferenceWhereTheOuterGradientVanishes(t *testing.T) {
	grad := run(t, func(in []*Node) []*Node {
		p := quartic()
		p.Outer = func(w, theta []*Node) (*Node, []*Node) {
			return Add(half(theta[0]), MulScalar(ReduceAllSum(w[0]), 0)), nil
		}
		_, grad, _ := FiniteDifference(p, Options{Eta: Const(in[0].Graph(), 0.1)}, in[:1], in[1:], nil)
		return grad
	}, []float64{1, 2}, []float64{3, -4})
	require.Equal(t, []float64{3, -4}, grad[0])
}

func TestConjugateGradientsAreExactAfterDimSteps(t *testing.T) {
	for _, damping := range []float64{0, 0.7} {
		r := newRidge()
		h, xy := r.hessian()
		w := r.solve(h, xy) // w*(θ)
		r.damping = damping
		damped, _ := r.hessian()
		wantLoss, v := r.outer(w)
		want := r.implicit(w, r.solve(damped, v))

		var last float64
		for _, terms := range []int{1, 4, dim, 3 * dim} {
			r.terms = terms
			loss, grad, aux := r.hypergradient(t, "cg", w)
			require.InDelta(t, wantLoss, loss, 1e-12*(1+wantLoss))
			requireClose(t, []float64{floats.Sum(w), floats.Sum(r.theta)}, aux, 1e-12, "the outer pass at w")
			last = floats.Distance(want, grad, 2)
			if terms < dim {
				require.Greater(t, last, 1e-6, "K = %d is not enough", terms)
			} else {
				require.Less(t, last, 1e-8, "K = %d, λ = %v", terms, damping)
			}
		}
	}
}

// The exact hypergradient is that of F(w*(θ), θ), with w* solved again at every θ.
func TestConjugateGradientsAgainstDifferencesOfTheSolution(t *testing.T) {
	r := newRidge()
	h, xy := r.hessian()
	r.terms = dim
	_, grad, _ := r.hypergradient(t, "cg", r.solve(h, xy))
	const step = 1e-5
	for j := range dim {
		side := func(sign float64) float64 {
			moved := *r
			moved.theta = slices.Clone(r.theta)
			moved.theta[j] += sign * step
			h, xy := moved.hessian()
			f, _ := moved.outer(moved.solve(h, xy))
			return f
		}
		require.InDelta(t, (side(1)-side(-1))/(2*step), grad[j], 1e-7, "θ%d", j)
	}
}

// G = ½ Σ hⱼ e^θⱼ wⱼ² with h = (10, −0.1), F = Σ cⱼwⱼ, at w = (1, 1), θ = 0.
func saddle(t *testing.T, c []float64, terms int) []float64 {
	return run(t, func(in []*Node) []*Node {
		h, c := Const(in[0].Graph(), []float64{10, -0.1}), Const(in[0].Graph(), c)
		p := Problem{
			Inner: func(w, theta []*Node) (*Node, []*Node) {
				return MulScalar(ReduceAllSum(Mul(Mul(h, Exp(theta[0])), Square(w[0]))), 0.5), nil
			},
			Outer: func(w, _ []*Node) (*Node, []*Node) { return ReduceAllSum(Mul(c, w[0])), nil },
		}
		_, grad, _ := ConjugateGradients(p, Options{Terms: terms}, in[:1], in[1:], nil)
		return grad
	}, []float64{1, 1}, []float64{0, 0})[0]
}

// The first direction (1, 1) has curvature 9.9, so q = (1, 1)·2/9.9; the second
// has a negative one, and q must stay.
func TestConjugateGradientsStopAtNegativeCurvature(t *testing.T) {
	for _, terms := range []int{1, 2, 3, 6} {
		requireClose(t, []float64{-10 * 2 / 9.9, 0.1 * 2 / 9.9}, saddle(t, []float64{1, 1}, terms), 1e-14, "K = %d",
			terms)
		require.Equal(t, []float64{0, 0}, saddle(t, []float64{0, 1}, terms), "negative from the start")
		require.Equal(t, []float64{0, 0}, saddle(t, []float64{0, 0}, terms), "nothing to solve")
		requireClose(t, []float64{-1, 0}, saddle(t, []float64{1, 0}, terms), 1e-14, "solved after one step")
	}
}

func TestConjugateGradientsDoNotHideNaN(t *testing.T) {
	r := newRidge()
	r.terms = dim
	r.u.SetVec(0, math.NaN()) // ∇_w F is NaN, ∇_θ F and ∇²_θw G are not
	_, grad, _ := r.hypergradient(t, "cg", r.w)
	require.True(t, math.IsNaN(floats.Sum(grad)))
}

func TestNeumannIsItsSum(t *testing.T) {
	r := newRidge()
	r.damping, r.step, r.terms = 0.3, 0.01, 4
	h, _ := r.hessian()
	_, v := r.outer(r.w)
	term, q := mat.VecDenseCopyOf(v), mat.NewVecDense(dim, nil)
	for range r.terms {
		q.AddScaledVec(q, r.step, term)
		var ht mat.VecDense
		ht.MulVec(h, term)
		term.AddScaledVec(term, -r.step, &ht)
	}
	_, grad, _ := r.hypergradient(t, "neumann", r.w)
	requireClose(t, r.implicit(r.w, q.RawVector().Data), grad, 1e-13, "a Σ (I − aH)ᵏ v")
}

func TestNeumannConvergesGeometrically(t *testing.T) {
	r := newRidge()
	h, xy := r.hessian()
	w := r.solve(h, xy)
	_, v := r.outer(w)
	want := r.implicit(w, r.solve(h, v))
	var eigen mat.EigenSym
	require.True(t, eigen.Factorize(h, false))
	values := eigen.Values(nil)
	r.step = 1 / values[dim-1]

	var x, y []float64
	for _, terms := range []int{60, 90, 120} { // where the smallest eigenvalue is all that is left
		r.terms = terms
		_, grad, _ := r.hypergradient(t, "neumann", w)
		x, y = append(x, float64(terms)), append(y, math.Log(floats.Distance(want, grad, 2)))
	}
	_, slope := stat.LinearRegression(x, y, nil, false)
	rate := math.Log(1 - r.step*values[0])
	require.InEpsilon(t, rate, slope, 0.02, "errors fall as (1 − a·smallest eigenvalue)ᴷ")
}

// What w and θ were computed from is no business of the hypergradient, be it
// each other; and nothing flows through what it returns.
func TestHypergradientsTakeTheirInputsAsInputs(t *testing.T) {
	r := newRidge()
	r.terms, r.step = 3, 0.01
	plus := func(x, other []*Node, sum float64) []*Node { // x by value, with a derivative of 1 by all of other
		zero := AddScalar(ReduceAllSum(flat(other)), -sum)
		return each(x, func(x *Node) *Node { return Add(x, zero) })
	}
	for name := range Hypergradients {
		_, want, _ := r.hypergradient(t, name, r.w)
		for _, entangled := range []string{"w on θ", "θ on w"} {
			out := run(t, func(in []*Node) []*Node {
				ws, thetas := in[0:2], in[2:4]
				if entangled == "w on θ" {
					ws = plus(ws, thetas, floats.Sum(r.theta))
				} else {
					thetas = plus(thetas, ws, floats.Sum(r.w))
				}
				o := Options{Eta: in[6], Momentum: r.mu, WeightDecay: r.wd, Terms: r.terms, StepSize: r.step}
				loss, grad, aux := Hypergradients[name](r.problem(in[0].Graph()), o, ws, thetas, in[4:6])
				sum := Add(ReduceAllSum(flat(grad)), Add(loss, Add(aux[0], aux[1])))
				return slices.Concat(grad, Gradient(sum, in[0:4]...))
			}, slices.Concat(parts(r.w, "w"), parts(r.theta, "theta"), parts(r.v, "w"), []any{r.eta})...)
			requireClose(t, want, concat(out[0], out[1]), 1e-12, "%s, %s", name, entangled)
			require.Zero(t, floats.Norm(concat(out[2:]...), 1), "%s, %s", name, entangled)
		}
	}
}

func TestHypergradientsRefuseWhatDoesNotFit(t *testing.T) {
	r := newRidge()
	try := func(name string, o Options, velocity []any) error {
		in := slices.Concat(parts(r.w, "w"), parts(r.theta, "theta"), velocity)
		return fails(t, func(in []*Node) *Node {
			if o.StepSize != 7 { // a mark for: no learning rate
				o.Eta = Const(in[0].Graph(), 0.1)
			}
			_, grad, _ := Hypergradients[name](r.problem(in[0].Graph()), o, in[0:2], in[2:4], in[4:])
			return grad[0]
		}, in...)
	}
	require.ErrorContains(t, try("unrolled", Options{StepSize: 7}, parts(r.v, "w")), "Options.Eta must be")
	require.ErrorContains(t, try("unrolled", Options{}, parts(r.v, "theta")),
		"tensor 0 must have equal shapes, got (Float64)[2, 2] and (Float64)[3]")
	require.ErrorContains(t, try("unrolled", Options{}, parts(r.v, "w")[:1]), "got 2 and 1 tensors")
	require.ErrorContains(t, try("cg", Options{}, nil), "Options.Terms must be at least 1, got 0")
	require.ErrorContains(t, try("neumann", Options{Terms: 1}, nil), "Options.StepSize must be above 0, got 0")
}
