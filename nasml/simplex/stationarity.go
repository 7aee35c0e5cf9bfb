package simplex

import (
	"errors"
	"fmt"
	"math"
)

// Point is a pair (w, θ) of weights and architecture parameters, rows of θ of any lengths. Either part may be empty.
type Point struct {
	W     []float64
	Theta [][]float64
}

// Oracle returns the gradient of a smooth f at a point, of the point's shape.
type Oracle func(at Point) (Point, error)

// Stationarity measures how far a point is from being stationary for f in the geometry of the joint mirror map ½‖w‖² +
// φ(θ), by its Bregman stationarity (Li+ 2021, eq. 7 and Definitions 5–6; Zhang & He 2018, eq. 2.11).
type Stationarity struct {
	// Gamma is γ > 0 such that f + γ(½‖w‖² + φ(θ)) is convex, jointly in w and θ: constants of the blocks alone are not
	// enough (f = w₁w₂ is linear in each). For a convex f any γ will do. λ is 1/(2γ).
	Gamma float64
	// Tolerance is the relative accuracy of the distance from the point to its
	// proximal point; if 0 it is 1e-8. Take 1e-4 for a float32 gradient.
	Tolerance float64
	// Gradients is how often the oracle may be called; if 0 it is 10000.
	Gradients int
}

// Measured is what Stationarity.At returns.
type Measured struct {
	Delta     float64 // Δ_λ(w, θ)
	Gap       float64 // Frank–Wolfe gap of θ at the point itself
	Prox      Point   // prox_λ(w, θ)
	Gradients int     // calls of the oracle
}

// At returns Δ_λ at x = (w, θ), with D the divergence ½‖u_w−w‖² + D_φ(u_θ‖θ),
//
//	p = prox_λ(x) = arg min_u λ f(u) + D(u‖x) ,   λ = 1/(2γ),
//	Δ_λ(x) = (D(x‖p) + D(p‖x)) / λ² = (‖w−p_w‖² + Σ (θ−p_θ)(log θ − log p_θ)) / λ² .
//
// Known cases: for f = ⟨c, θ⟩, p = softmax(log θ − λc) and Δ = ⟨c, θ−p⟩/λ; with w alone and f = ½wᵀBw, p = (I+λB)⁻¹w
// and Δ = ‖∇f(p)‖². With w alone and a γ-smooth f, ‖∇f(w)‖² ≤ (9/4)·Δ.
//
// Weights of exactly 0 stay 0 in p, and Δ is small near every vertex, the worst included: judge it together with Gap.
//
// The problem is ½-strongly convex relative to the mirror map. It is solved by mirror descent with a step size found by
// halving, until the dual norm of the gradient in the mirror's coordinates, which bounds the distance to p, is below
// the tolerance. Rows of θ are normalised first. It returns an error if that is not reached, where γ turns out to be
// too small, and where θ is not on the simplices to 1e-4.
func (s Stationarity) At(f Oracle, x Point) (*Measured, error) {
	if !(s.Gamma > 0) || math.IsInf(s.Gamma, 0) {
		return nil, fmt.Errorf("bregman stationarity: Gamma is %v: it must be positive and finite", s.Gamma)
	}
	if err := Check(x.Theta, 1e-4); err != nil {
		return nil, fmt.Errorf("bregman stationarity: %w", err)
	}
	p := prox{Stationarity: s.withDefaults(), f: f, lambda: 1 / (2 * s.Gamma)}
	p.start = place{w: x.W, logTheta: logNormalised(x.Theta)}
	end, err := p.solve()
	if err != nil {
		return nil, fmt.Errorf("bregman stationarity at λ = 1/(2γ) = %g: %w", p.lambda, err)
	}
	_, _, both := divergences(p.start, end)
	return &Measured{
		Delta:     both / (p.lambda * p.lambda),
		Gap:       gap(p.start.point().Theta, p.start.grad.Theta),
		Prox:      end.point(),
		Gradients: p.calls,
	}, nil
}

func (s Stationarity) withDefaults() Stationarity {
	if s.Tolerance == 0 {
		s.Tolerance = 1e-8
	}
	if s.Gradients == 0 {
		s.Gradients = 10000
	}
	return s
}

// prox solves min_u h(u) = λ f(u) + D(u‖start).
type prox struct {
	Stationarity
	f      Oracle
	lambda float64
	start  place
	calls  int
}

// place is a point with log θ instead of θ, which keeps small weights exact,
// the gradient of f there, and the gradient of h in the mirror's coordinates:
//
//	residual = (w − w₀ + λ∇_w f,  log θ − log θ₀ + λ∇_θ f), rows up to a constant.
type place struct {
	w        []float64
	logTheta [][]float64 // normalised, −∞ for weights of 0
	grad     Point
	residual Point
	norm     float64 // dual norm of the residual
}

// solve is mirror descent on h: step a ≤ 1 takes log θ to log θ − a·residual. A step is taken where it halves the best
// residual so far, or where it is short enough for the descent lemma, D_h(u₊, u) ≤ D(u₊‖u)/a: finitely many steps of
// the first kind leave steps of the second only, which converge linearly because h is ½-strongly convex relative to the
// mirror map (Lu, Freund & Nesterov 2018, Theorem 3.1); infinitely many are convergence.
func (p *prox) solve() (place, error) {
	if err := p.evaluate(&p.start); err != nil {
		return place{}, err
	}
	here, best, step := p.start, p.start.norm, 1.0
	for !p.done(here) {
		if p.calls >= p.Gradients {
			return place{}, fmt.Errorf("not solved to a relative tolerance of %g in %d gradients (the residual is "+
				"%g): allow more Gradients, or a larger Tolerance if the gradient is not exact",
				p.Tolerance, p.calls, here.norm)
		}
		next := here.move(step)
		if err := p.evaluate(&next); err != nil {
			return place{}, err
		}
		enough, err := p.descends(here, next, step)
		if err != nil {
			return place{}, err
		}
		if !enough && next.norm > best/2 {
			step /= 2
			continue
		}
		here, best, step = next, math.Min(best, next.norm), math.Min(1, 1.2*step)
	}
	return here, nil
}

// done reports whether the distance from u to the solution, at most twice the
// residual because h is ½-strongly convex, is below the tolerance.
func (p *prox) done(u place) bool {
	_, _, both := divergences(p.start, u)
	rounding := 1e-13 * (1 + largest(p.start.w) + p.lambda*largest(u.grad.W) + p.lambda*largest(u.grad.Theta...))
	return 2*u.norm <= p.Tolerance*math.Sqrt(both)+rounding
}

// descends reports whether the step from u to next is short enough for the descent lemma, by gradients alone: D_h(next,
// u) = ⟨∇h(next)−∇h(u), next−u⟩ − D_h(u, next), and D_h ≥ D/2. It returns an error if the gradients contradict γ.
func (p *prox) descends(u, next place, step float64) (bool, error) {
	forward, back, both := divergences(next, u)
	inner, size := innerProduct(u, next)
	if inner < -p.Gamma*both-1e-6*size {
		return false, fmt.Errorf("f is not convex relative to γ = %g: two points have ⟨∇f(u)−∇f(v), u−v⟩ = %g at "+
			"a symmetric divergence of %g; take Gamma at least %g",
			p.Gamma, inner, both, -inner/both)
	}
	return p.lambda*inner+both-back/2 <= forward/step, nil
}

func (p *prox) evaluate(u *place) error {
	p.calls++
	at := u.point()
	grad, err := p.f(at)
	if err != nil {
		return fmt.Errorf("the oracle: %w", err)
	}
	if err := errors.Join(sameRows([][]float64{at.W}, [][]float64{grad.W}),
		sameRows(at.Theta, grad.Theta)); err != nil {
		return fmt.Errorf("the oracle's gradient does not fit its point: %w", err)
	}
	if total := largest(grad.W) + largest(grad.Theta...); math.IsNaN(total) || math.IsInf(total, 0) {
		return errors.New("the oracle's gradient is not finite")
	}
	u.grad = grad
	u.residual.W = make([]float64, len(u.w))
	square := 0.0
	for i := range u.w {
		u.residual.W[i] = u.w[i] - p.start.w[i] + p.lambda*grad.W[i]
		square += u.residual.W[i] * u.residual.W[i]
	}
	u.residual.Theta = mapRows(u.logTheta, func(e int, row, out []float64) {
		low, high := math.Inf(1), math.Inf(-1)
		for o, l := range row {
			if math.IsInf(l, -1) {
				continue
			}
			out[o] = l - p.start.logTheta[e][o] + p.lambda*grad.Theta[e][o]
			low, high = math.Min(low, out[o]), math.Max(high, out[o])
		}
		square += (high - low) * (high - low) / 4 // ‖·‖_∞ up to a constant, dual to ‖·‖₁
	})
	u.norm = math.Sqrt(square)
	return nil
}

func (u place) move(step float64) place {
	next := place{w: make([]float64, len(u.w))}
	for i := range u.w {
		next.w[i] = u.w[i] - step*u.residual.W[i]
	}
	next.logTheta = mapRows(u.logTheta, func(e int, row, out []float64) {
		for o, l := range row {
			out[o] = l - step*u.residual.Theta[e][o]
		}
		normaliseLog(out)
	})
	return next
}

func (u place) point() Point {
	theta := mapRows(u.logTheta, func(_ int, row, out []float64) {
		for o, l := range row {
			out[o] = math.Exp(l)
		}
	})
	return Point{W: u.w, Theta: theta}
}

// divergences returns D(u‖v), D(v‖u) and their sum, each at least 0.
func divergences(u, v place) (uv, vu, both float64) {
	var square float64
	for i := range u.w {
		square += (u.w[i] - v.w[i]) * (u.w[i] - v.w[i])
	}
	uv, vu = square/2, square/2
	for e := range u.logTheta {
		for o, l := range u.logTheta[e] {
			if math.IsInf(l, -1) {
				continue
			}
			d := l - v.logTheta[e][o]
			x, y := math.Exp(l), math.Exp(v.logTheta[e][o])
			uv += relativeEntropy(x, y, d)
			vu += relativeEntropy(y, x, -d)
		}
	}
	return uv, vu, uv + vu
}

// innerProduct returns ⟨∇f(u)−∇f(v), u−v⟩ and the size of what was summed, for its rounding error.
func innerProduct(u, v place) (inner, size float64) {
	add := func(gu, gv, d float64) {
		inner += (gu - gv) * d
		size += (math.Abs(gu) + math.Abs(gv)) * math.Abs(d)
	}
	for i := range u.w {
		add(u.grad.W[i], v.grad.W[i], u.w[i]-v.w[i])
	}
	for e := range u.logTheta {
		for o := range u.logTheta[e] {
			add(u.grad.Theta[e][o], v.grad.Theta[e][o], math.Exp(u.logTheta[e][o])-math.Exp(v.logTheta[e][o]))
		}
	}
	return inner, size
}

// logNormalised returns log θ with rows normalised, −∞ where θ is 0.
func logNormalised(theta [][]float64) [][]float64 {
	return mapRows(theta, func(_ int, row, out []float64) {
		for o, x := range row {
			out[o] = math.Log(x)
		}
		normaliseLog(out)
	})
}

func normaliseLog(row []float64) {
	total := logSumExp(row)
	for o := range row {
		row[o] -= total
	}
}

// largest is the largest magnitude in rows, 0 if there is none; NaN is the largest of all.
func largest(rows ...[]float64) float64 {
	var most float64
	for _, row := range rows {
		for _, v := range row {
			most = math.Max(most, math.Abs(v))
		}
	}
	return most
}

// LinearStationarity is the Bregman stationarity of ⟨∇, ·⟩ at θ in the entropic
// geometry (Li+ 2021, eq. 7), what [Stationarity] is of a linear function,
//
//	Δ_λ = Σₑ ⟨∇ₑ, θₑ − pₑ⟩ / λ ,   pₑ = softmax(log θₑ − λ∇ₑ) ,
//
// and for λ → 0 the variance Σₑ Var_{o∼θₑ} ∇ₑ,ₒ, which is also taken where rounding would leave nothing of the
// difference, at λ·‖∇‖∞ < 1e-6, and where γ = 0 made λ = 1/(2γ) infinite: then p is a vertex, and Δ_λ 0 whatever θ is.
// Rows with a weight of 0 keep it.
func LinearStationarity(theta, grad [][]float64, lambda float64) float64 {
	total := 0.0
	for e, row := range theta {
		mean, square, most := 0.0, 0.0, 0.0
		for o, p := range row {
			mean += p * grad[e][o]
			most = math.Max(most, math.Abs(grad[e][o]))
		}
		for o, p := range row {
			square += p * (grad[e][o] - mean) * (grad[e][o] - mean)
		}
		if lambda*most < 1e-6 || math.IsInf(lambda, 1) {
			total += square
			continue
		}
		total += (mean - tilted(row, grad[e], lambda)) / lambda
	}
	return total
}

// tilted is ⟨∇, p⟩ of p ∝ θ·exp(−λ∇).
func tilted(theta, grad []float64, lambda float64) float64 {
	least := math.Inf(1)
	for o, g := range grad {
		if theta[o] > 0 {
			least = math.Min(least, g)
		}
	}
	sum, inner := 0.0, 0.0
	for o, g := range grad {
		if theta[o] > 0 {
			p := theta[o] * math.Exp(-lambda*(g-least))
			sum, inner = sum+p, inner+p*g
		}
	}
	return inner / sum
}
