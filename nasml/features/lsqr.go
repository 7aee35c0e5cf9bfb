package features

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

// Stop says why a solver stopped.
type Stop string

// The reasons, numbered as istop in Algorithm 583.
const (
	StopZero         Stop = "x = 0"                               // 0
	StopResidual     Stop = "residual small"                      // 1: a solution of Ax = b up to the tolerances
	StopLeastSquares Stop = "gradient small"                      // 2: a least-squares solution up to ATol
	StopCondition    Stop = "condition number large"              // 3
	StopExact        Stop = "residual at machine precision"       // 4
	StopFlat         Stop = "gradient at machine precision"       // 5
	StopSingular     Stop = "condition number beyond the machine" // 6
	StopLimit        Stop = "limit of iterations"                 // 7
)

// Solve says how the solution of k targets went. The norms are those that the
// recursion carries along, so they cost nothing and are as good as it is.
type Solve struct {
	Iterations []int     // of each target, [k]
	Stop       []Stop    // [k]
	Residual   []float64 // √(‖b − Ax‖² + λ‖x‖²), [k]
	Gradient   []float64 // ‖Aᵀ(b − Ax) − λx‖, [k]
	Passes     int       // over A, of all targets together
}

// lsqr is the algorithm of Paige and Saunders (1982, Algorithm 583) for
//
//	min_x ‖b − Ax‖² + damp²‖x‖² ,
//
// for the columns of B, [n, k], all together, so that a pass over A serves all of them; x has shape [d, k]. Every
// column keeps its own recursion and stops by its own test, so its iterations are those of SciPy's lsqr on it alone
// with atol = btol = tol. With damp = 0 and a singular A it finds the solution of minimum norm. A is known by AᵀB and
// by step, [Operator.StepTo] without a shift. maxIter 0 stands for 2d.
//
// It returns an error if damp or tol is negative, a number is not finite, or step fails.
func lsqr(
	b, atb *mat.Dense, damp, tol float64, maxIter int, step func(dst, y, x *mat.Dense, scale []float64) error,
) (*mat.Dense, Solve, error) {
	if !(damp >= 0) || math.IsInf(damp, 1) || !(tol >= 0) {
		return nil, Solve{}, fmt.Errorf("LSQR: damp and tolerance must be at least 0, got %v and %v", damp, tol)
	}
	d, k := atb.Dims()
	s := Solve{
		Iterations: make([]int, k), Stop: make([]Stop, k), Residual: make([]float64, k), Gradient: make([]float64, k),
	}
	if maxIter <= 0 {
		maxIter = 2 * d
	}
	r := bidiagonalize(b, atb)
	targets := make([]*lsqrTarget, k)
	for j := range targets {
		targets[j] = newLSQRTarget(r.alpha[j], r.beta[j], damp, tol, maxIter)
	}
	x, w, next := mat.NewDense(d, k, nil), mat.DenseCopyOf(r.v), mat.NewDense(d, k, nil)
	for {
		active := false
		for j, t := range targets {
			active = active || t.stop == ""
			s.Iterations[j], s.Stop[j], s.Residual[j], s.Gradient[j] = t.iterations, t.stop, t.residual(), t.gradient
			if math.IsNaN(t.gradient) || math.IsInf(t.gradient, 0) {
				return nil, s, fmt.Errorf(
					"LSQR: found %v as the gradient of target %d after %d iterations: the matrix or the right side "+
						"has a number that is not finite", t.gradient, j, t.iterations)
			}
		}
		if !active {
			return x, s, nil
		}
		if err := step(next, r.u, r.v, r.alpha); err != nil {
			return nil, s, fmt.Errorf("LSQR: %w", err)
		}
		s.Passes++
		r.advance(next)
		advanceLSQR(targets, x, w, r)
	}
}

// bidiagonal is the state of the bidiagonalization of Golub and Kahan, with a
// column a target: β₁u₁ = b, α₁v₁ = Aᵀu₁, and then
//
//	βu ← Av − αu,   αv ← Aᵀu − βv .
type bidiagonal struct {
	u, v        *mat.Dense // [n, k], [d, k]
	alpha, beta []float64  // [k]
}

func bidiagonalize(b, atb *mat.Dense) *bidiagonal {
	r := &bidiagonal{u: mat.DenseCopyOf(b), v: mat.DenseCopyOf(atb), beta: columnNorms(b)}
	divideColumns(r.u, r.beta)
	divideColumns(r.v, r.beta) // Aᵀu = Aᵀb/β
	r.alpha = columnNorms(r.v)
	divideColumns(r.v, r.alpha)
	return r
}

// advance normalizes the new u, which is Av − αu, and makes v of it and of
// Aᵀ(Av − αu). Where u is 0, v and α stay as they are, as in SciPy.
func (r *bidiagonal) advance(atu *mat.Dense) {
	r.beta = columnNorms(r.u)
	divideColumns(r.u, r.beta)
	divideColumns(atu, r.beta)
	d, _ := atu.Dims()
	for i := range d {
		v, z := r.v.RawRowView(i), atu.RawRowView(i)
		for j, beta := range r.beta {
			if beta > 0 {
				v[j] = z[j] - beta*v[j]
			}
		}
	}
	norms := columnNorms(r.v)
	for j, beta := range r.beta {
		if beta > 0 {
			r.alpha[j] = norms[j]
		} else {
			norms[j] = 1
		}
	}
	divideColumns(r.v, norms)
}

// divideColumns divides the columns by numbers, except where that is 0.
func divideColumns(m *mat.Dense, by []float64) {
	factors := make([]float64, len(by))
	for j, v := range by {
		factors[j] = 1
		if v != 0 {
			factors[j] = 1 / v
		}
	}
	rows, _ := m.Dims()
	for i := range rows {
		row := m.RawRowView(i)
		for j, f := range factors {
			row[j] *= f
		}
	}
}

// advanceLSQR updates x and the direction w of every target that has not stopped: x ← x + (φ/ρ)w, w ← v − (θ/ρ)w.
func advanceLSQR(targets []*lsqrTarget, x, w *mat.Dense, r *bidiagonal) {
	norms := columnNorms(w)
	k := len(targets)
	alongX, alongW, running := make([]float64, k), make([]float64, k), make([]bool, k)
	for j, t := range targets {
		if t.stop != "" {
			continue
		}
		running[j] = true
		alongX[j], alongW[j] = t.advance(r.alpha[j], r.beta[j], norms[j])
	}
	d, _ := x.Dims()
	for i := range d {
		xi, wi, vi := x.RawRowView(i), w.RawRowView(i), r.v.RawRowView(i)
		for j, run := range running {
			if run {
				xi[j] += alongX[j] * wi[j]
				wi[j] = vi[j] + alongW[j]*wi[j]
			}
		}
	}
}

// lsqrTarget is the recursion of one right side, in the names of the article.
type lsqrTarget struct {
	damp, tol float64
	maxIter   int

	iterations              int
	stop                    Stop
	alpha                   float64
	rhoBar, phiBar          float64
	aNorm, bNorm, dNorm2    float64 // ‖A‖_F and ‖b‖ as seen so far; dNorm2 leads to cond(A)
	res2                    float64
	cs2, sn2, z, xNorm, xx2 float64
	gradient                float64 // ‖Aᵀr‖
}

func newLSQRTarget(alpha, beta, damp, tol float64, maxIter int) *lsqrTarget {
	t := &lsqrTarget{
		damp: damp, tol: tol, maxIter: maxIter,
		alpha: alpha, rhoBar: alpha, phiBar: beta, bNorm: beta, cs2: -1, gradient: alpha * beta,
	}
	if t.gradient == 0 {
		t.stop = StopZero
	}
	return t
}

func (t *lsqrTarget) residual() float64 { return math.Sqrt(t.phiBar*t.phiBar + t.res2) }

// advance takes the next α and β and the norm of w, and returns the factors of w in the updates of x and of w.
func (t *lsqrTarget) advance(alpha, beta, wNorm float64) (alongX, alongW float64) {
	t.iterations++
	if beta > 0 {
		t.aNorm = math.Sqrt(t.aNorm*t.aNorm + t.alpha*t.alpha + beta*beta + t.damp*t.damp)
	}
	t.alpha = alpha
	rhoBar := t.rhoBar
	if t.damp > 0 { // a rotation eliminates damp
		rhoBar = math.Hypot(t.rhoBar, t.damp)
		psi := t.damp / rhoBar * t.phiBar
		t.phiBar *= t.rhoBar / rhoBar
		t.res2 += psi * psi
	}
	rho := math.Hypot(rhoBar, beta) // another one eliminates β below the diagonal
	cs, sn := rhoBar/rho, beta/rho
	if rho == 0 { // A is 0 on what is left
		t.stop, t.gradient = StopFlat, 0
		return 0, 0
	}
	theta := sn * alpha
	t.rhoBar = -cs * alpha
	phi := cs * t.phiBar
	t.phiBar *= sn
	t.gradient = alpha * math.Abs(sn*phi)
	t.dNorm2 += wNorm / rho * (wNorm / rho)
	t.norm(phi, rho, theta)
	t.test()
	return phi / rho, -theta / rho
}

// norm updates the estimate of ‖x‖ by a rotation from the right.
func (t *lsqrTarget) norm(phi, rho, theta float64) {
	delta, gammaBar := t.sn2*rho, -t.cs2*rho
	right := phi - delta*t.z
	zBar := right / gammaBar
	t.xNorm = math.Sqrt(t.xx2 + zBar*zBar)
	gamma := math.Hypot(gammaBar, theta)
	t.cs2, t.sn2 = gammaBar/gamma, theta/gamma
	t.z = right / gamma
	t.xx2 += t.z * t.z
}

// test decides whether to stop; where several tests hold, the last one counts.
func (t *lsqrTarget) test() {
	const eps, conTol = 0x1p-52, 1e-8 // SciPy's
	r := t.residual()
	test1 := r / t.bNorm
	test2 := t.gradient / (t.aNorm*r + eps)
	test3 := 1 / (t.aNorm*math.Sqrt(t.dNorm2) + eps)
	size := t.aNorm * t.xNorm / t.bNorm
	for _, c := range []struct {
		holds bool
		stop  Stop
	}{
		{t.iterations >= t.maxIter, StopLimit},
		{1+test3 <= 1, StopSingular},
		{1+test2 <= 1, StopFlat},
		{1+test1/(1+size) <= 1, StopExact},
		{test3 <= conTol, StopCondition},
		{test2 <= t.tol, StopLeastSquares},
		{test1 <= t.tol+t.tol*size, StopResidual},
	} {
		if c.holds {
			t.stop = c.stop
		}
	}
}
