package activationsearch

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/nasml/lab/nasml/oymak2021/internal/neural"
	"github.com/nasml/lab/nasml/oymak2021/spectral"
)

// network is the one-hidden-layer network of Section 4.2 on a fixed set of
// training inputs, ready for gradient descent on W:
//
//	f_α(x) = vᵀσ_α(Wx),   L̂_T(W) = ½ Σᵢ (yᵢ − f_α(xᵢ))²   (9).
//
// The rows of ∇L̂_T lie in the span of the training inputs. With more features than inputs, W is therefore kept in
// coordinates of that span; what it does elsewhere never changes, and is in poolRest. Both are exact.
type network struct {
	x        *mat.Dense // training inputs [n, r]
	pool     *mat.Dense // other inputs [m, r]
	poolRest *mat.Dense // what W₀ outside the span adds to their Wx [m, k]; nil: nothing
	w0       *mat.Dense // initial weights [k, r]
	v        []float64  // fixed output weights, ±√(c₀/k), half of each
	y        []float64
}

// newNetwork draws no numbers: w0 [k, d] is the initialization.
func newNetwork(x, pool, w0 *mat.Dense, y []float64, c0 float64) (*network, error) {
	n, d := x.Dims()
	k, _ := w0.Dims()
	net := &network{x: x, pool: pool, w0: w0, y: y, v: neural.OutputWeights(k, c0)}
	if d <= n {
		return net, nil
	}
	basis, err := rowSpan(x)
	if err != nil {
		return nil, err
	}
	var full, seen mat.Dense
	full.Mul(pool, w0.T())
	net.x, net.pool, net.w0 = new(mat.Dense), new(mat.Dense), new(mat.Dense)
	net.x.Mul(x, basis)
	net.pool.Mul(pool, basis)
	net.w0.Mul(w0, basis)
	seen.Mul(net.pool, net.w0.T())
	full.Sub(&full, &seen)
	net.poolRest = &full
	return net, nil
}

// rowSpan is an orthonormal basis [d, n] of a space that holds the rows of x [n, d], n < d.
func rowSpan(x *mat.Dense) (*mat.Dense, error) {
	n, d := x.Dims()
	var svd mat.SVD
	if !svd.Factorize(x, mat.SVDThinV) {
		return nil, fmt.Errorf("singular values of the inputs [%d, %d] did not converge: do they hold NaN?", n, d)
	}
	var v mat.Dense
	svd.VTo(&v)
	return &v, nil
}

type descent struct {
	Eta        float64   // step size 1/λ_max(K̂_α)
	Errors     []float64 // training 0-1 error before each step and after the last
	Reached    int       // first step from which on the error stays at most ε; −1: never
	Needed     float64   // steps that suffice for the linearized network, see below
	Movement   float64   // ‖W_T − W₀‖_F/‖W₀‖_F
	Train      []float64 // f(xᵢ) after T steps
	Pool       []float64 // f on the pool after T steps
	Linear     []float64 // the linearized network's f on the pool after T steps
	LinearGap  float64   // largest |f − linearized f| on the pool
	Smallest   float64   // λ_min(K̂_α)
	InitialMax float64   // largest |f(xᵢ)| before training
}

// descend runs T steps of gradient descent at the activation σ_α with the step 1/λ_max(K̂_α), K̂_α the Gram matrix at
// W₀, and beside it the same T steps of the network linearized at W₀, in closed form:
//
//	f_T(x) = f₀(x) + K̂(x, X) K̂⁻¹ (I − (I − ηK̂)^T)(y − f₀).
//
// For that one ‖r_τ‖ ≤ (1 − ηλ_min)^τ‖r₀‖, and the 0-1 error is at most ‖r‖²/n,
// so that log(‖r₀‖²/(εn))/(2ηλ_min) steps suffice (Needed).
func (net *network) descend(ctx context.Context, sigma *spectral.Table, steps int, epsilon float64) (*descent, error) {
	start := net.forward(sigma, net.x, nil, net.w0)
	startPool := net.forward(sigma, net.pool, net.poolRest, net.w0)
	values, vectors := spectral.Eigen(spectral.Symmetric(net.gram(net.x, start.slopes, net.x, start.slopes)))
	n := len(net.y)
	d := &descent{Eta: 1 / values[0], Smallest: values[n-1], Reached: -1}
	d.Needed = net.needed(start.f, d, epsilon)
	for _, f := range start.f {
		d.InitialMax = max(d.InitialMax, math.Abs(f))
	}
	w, err := net.walk(ctx, sigma, steps, d)
	if err != nil {
		return nil, err
	}
	d.Reached = lastAbove(d.Errors, epsilon)
	var moved mat.Dense
	moved.Sub(w, net.w0)
	d.Movement = mat.Norm(&moved, 2) / mat.Norm(net.w0, 2)
	d.Train = net.forward(sigma, net.x, nil, w).f
	d.Pool = net.forward(sigma, net.pool, net.poolRest, w).f
	cross := net.gram(net.pool, startPool.slopes, net.x, start.slopes)
	d.Linear = net.linear(start.f, startPool.f, cross, values, vectors, d.Eta, steps)
	for i, f := range d.Pool {
		d.LinearGap = max(d.LinearGap, math.Abs(f-d.Linear[i]))
	}
	return d, nil
}

func (net *network) walk(ctx context.Context, sigma *spectral.Table, steps int, d *descent) (*mat.Dense, error) {
	w := mat.DenseCopyOf(net.w0)
	grad := new(mat.Dense)
	for step := 0; ; step++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		now := net.forward(sigma, net.x, nil, w)
		wrong := errorRate(now.f, net.y)
		if loss := squares(now.f, net.y); math.IsNaN(loss) || loss > 1e6*float64(len(net.y)) {
			return nil, fmt.Errorf("gradient descent diverged at step %d of %d: take a wider network or a larger c₀, "+
				"both make it more nearly linear", step, steps)
		}
		d.Errors = append(d.Errors, wrong)
		if step == steps {
			return w, nil
		}
		for i, f := range now.f { // ∂L̂/∂zᵢᵣ = (fᵢ − yᵢ) vᵣ σ′(zᵢᵣ)
			residual := f - net.y[i]
			row := now.slopes.RawRowView(i)
			for r := range row {
				row[r] *= residual * net.v[r]
			}
		}
		grad.Mul(now.slopes.T(), net.x)
		grad.Scale(d.Eta, grad)
		w.Sub(w, grad)
	}
}

// pass is a forward pass: outputs [n] and σ_α′(z) [n, k].
type pass struct {
	f      []float64
	slopes *mat.Dense
}

func (net *network) forward(sigma *spectral.Table, x, rest, w *mat.Dense) pass {
	z := new(mat.Dense)
	z.Mul(x, w.T())
	if rest != nil {
		z.Add(z, rest)
	}
	n, _ := x.Dims()
	p := pass{f: make([]float64, n), slopes: z}
	for i := range n {
		row := z.RawRowView(i)
		for r, v := range row {
			value, slope := sigma.Eval(v)
			p.f[i] += net.v[r] * value
			row[r] = slope
		}
	}
	return p
}

// gram is K̂_α between two sets of inputs, with c₀.
func (net *network) gram(x, slopes, z, other *mat.Dense) *mat.Dense {
	var weighted, k, rho mat.Dense
	weighted.Apply(func(_, r int, s float64) float64 { return net.v[r] * net.v[r] * s }, other)
	k.Mul(slopes, weighted.T())
	rho.Mul(x, z.T())
	k.MulElem(&k, &rho)
	return &k
}

func (net *network) linear(f0, pool0 []float64, cross *mat.Dense, values []float64, vectors *mat.Dense,
	eta float64, steps int) []float64 {
	n := len(net.y)
	residual := mat.NewVecDense(n, floats.SubTo(make([]float64, n), net.y, f0))
	var inEigen, coefficients, out mat.VecDense
	inEigen.MulVec(vectors.T(), residual)
	for j, lambda := range values {
		learnt := float64(steps) * eta // the limit at λ = 0
		if x := eta * lambda; x > 1e-14 {
			learnt = -math.Expm1(float64(steps)*math.Log1p(-min(x, 1))) / lambda
		}
		inEigen.SetVec(j, inEigen.AtVec(j)*learnt)
	}
	coefficients.MulVec(vectors, &inEigen)
	out.MulVec(cross, &coefficients)
	return floats.AddTo(make([]float64, len(pool0)), pool0, out.RawVector().Data)
}

// needed is log(‖r₀‖²/(εn))/(2ηλ_min); infinite where λ_min ≤ 0.
func (net *network) needed(f0 []float64, d *descent, epsilon float64) float64 {
	if d.Smallest <= 0 {
		return math.Inf(1)
	}
	return max(0, math.Log(squares(f0, net.y)/(epsilon*float64(len(f0))))/(2*d.Eta*d.Smallest))
}

// lastAbove is the first step from which on no error exceeds ε; −1 if the last one does.
func lastAbove(errors []float64, epsilon float64) int {
	step := len(errors)
	for step > 0 && errors[step-1] <= epsilon {
		step--
	}
	if step == len(errors) {
		return -1
	}
	return step
}

// errorRate is the share of yf ≤ 0: an output of 0 counts as wrong.
func errorRate(f, y []float64) float64 {
	wrong := 0
	for i := range f {
		if y[i]*f[i] <= 0 {
			wrong++
		}
	}
	return float64(wrong) / float64(len(f))
}

func squares(f, y []float64) (sum float64) {
	for i := range f {
		sum += (f[i] - y[i]) * (f[i] - y[i])
	}
	return sum
}
