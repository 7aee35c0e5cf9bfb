package oymak2021

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/nasml/lab/nasml/runs"
)

// lem2Kinds are the random functions: quadratics that are jointly convex,
// those that are convex in θ only, and a log-sum-exp.
var lem2Kinds = []string{"joint", "separate", "log-sum-exp"}

// lem2Shares are the quantiles that are kept of the sorted ratios.
var lem2Shares = []float64{0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1}

// lem2Case is what a trial depends on but its seed.
type lem2Case struct {
	Kind       string     `json:"kind"`
	Maps       []int      `json:"maps,omitempty"`
	Weights    []int      `json:"weights,omitempty"`
	Cases      int        `json:"cases,omitempty"`
	Lambda     float64    `json:"lambda,omitempty"`
	Train      int        `json:"train,omitempty"`
	Candidates int        `json:"candidates,omitempty"`
	World      *thm1World `json:"world,omitempty"`
}

// lem2Bounds are the Lipschitz constant of α ↦ θ_α and what should bound it.
type lem2Bounds struct {
	lipschitz float64
	smooth    float64 // √(L̄/μ), L̄ the smoothness in α alone
	joint     float64 // √(L̄/μ), L̄ the smoothness in (α, θ)
	cross     float64 // ‖H_θα‖/μ
}

func (c lem2Case) run(ctx context.Context, seed uint64) (runs.Result, error) {
	if c.Kind == "ridge" {
		return c.runRidge(ctx, seed)
	}
	var all []lem2Bounds
	for _, h := range c.Maps {
		for _, p := range c.Weights {
			for i := range c.Cases {
				if err := ctx.Err(); err != nil {
					return runs.Result{}, err
				}
				rng := runs.RNG(seed, c.Kind, fmt.Sprint(h, p, i))
				b, err := lem2Draw(rng, c.Kind, h, p)
				if err != nil {
					return runs.Result{}, err
				}
				all = append(all, b)
			}
		}
	}
	var smooth, joint []float64
	values := map[string]float64{"cases": float64(len(all)), "over_smooth": 0, "over_joint": 0, "over_cross": 0}
	for _, b := range all {
		smooth, joint = append(smooth, b.lipschitz/b.smooth), append(joint, b.lipschitz/b.joint)
		for name, bound := range map[string]float64{"over_smooth": b.smooth, "over_joint": b.joint, "over_cross": b.cross} {
			if b.lipschitz > bound*(1+1e-9) {
				values[name]++
			}
		}
	}
	slices.Sort(smooth)
	slices.Sort(joint)
	values["largest"] = smooth[len(smooth)-1]
	series := map[string][]float64{}
	for _, share := range lem2Shares {
		at := int(math.Round(share * float64(len(smooth)-1)))
		series["smooth"], series["joint"] = append(series["smooth"], smooth[at]), append(series["joint"], joint[at])
	}
	return runs.Result{Values: values, Series: series}, nil
}

func lem2Draw(rng *rand.Rand, kind string, h, p int) (lem2Bounds, error) {
	switch kind {
	case "joint":
		return lem2Quadratic(lem2Joint(rng, h, p), h)
	case "separate":
		return lem2Quadratic(lem2Separate(rng, h, p), h)
	}
	return lem2LogSumExp(rng, h, p)
}

// lem2Joint is a Hessian AAᵀ of (α, θ) of rank p + a random part of h, so that
// it is convex, and strongly so in θ, and often not strongly in (α, θ).
func lem2Joint(rng *rand.Rand, h, p int) *mat.SymDense {
	a := lem2Gaussian(rng, h+p, p+rng.IntN(h+1))
	var hessian mat.SymDense
	hessian.SymOuterK(1, a)
	return &hessian
}

// lem2Separate is a random symmetric Hessian whose θ-block is made positive
// definite, with a smallest eigenvalue in [0.1, 1.1].
func lem2Separate(rng *rand.Rand, h, p int) *mat.SymDense {
	g := lem2Gaussian(rng, h+p, h+p)
	hessian := mat.NewSymDense(h+p, nil)
	for i := range h + p {
		for j := i; j < h+p; j++ {
			hessian.SetSym(i, j, (g.At(i, j)+g.At(j, i))/2)
		}
	}
	shift := 0.1 + rng.Float64() - lem2Smallest(lem2Block(hessian, h, h+p))
	for i := h; i < h+p; i++ {
		hessian.SetSym(i, i, hessian.At(i, i)+shift)
	}
	return hessian
}

func lem2Gaussian(rng *rand.Rand, n, d int) *mat.Dense {
	m := mat.NewDense(n, d, nil)
	m.Apply(func(int, int, float64) float64 { return rng.NormFloat64() }, m)
	return m
}

// lem2Block is the symmetric block of rows and columns from…to−1.
func lem2Block(m *mat.SymDense, from, to int) *mat.SymDense {
	out := mat.NewSymDense(to-from, nil)
	for i := range to - from {
		for j := i; j < to-from; j++ {
			out.SetSym(i, j, m.At(from+i, from+j))
		}
	}
	return out
}

func lem2Eigenvalues(m *mat.SymDense) []float64 {
	var eig mat.EigenSym
	if !eig.Factorize(m, false) {
		return []float64{math.NaN()} // a result with it is refused
	}
	return eig.Values(nil)
}

func lem2Smallest(m *mat.SymDense) float64 { return lem2Eigenvalues(m)[0] }

// lem2Norm is the spectral norm of a symmetric matrix.
func lem2Norm(m *mat.SymDense) float64 {
	values := lem2Eigenvalues(m)
	return max(math.Abs(values[0]), math.Abs(values[len(values)-1]))
}

// lem2Example is (μ/2)θ² − kμαθ, which is not jointly convex: H_αα = 0 and
// θ_α = kα.
func lem2Example(k, mu float64) lem2Bounds {
	b, err := lem2Quadratic(mat.NewSymDense(2, []float64{0, -k * mu, -k * mu, mu}), 1)
	if err != nil { // the θ-block is the number μ
		panic(err)
	}
	return b
}

// lem2Quadratic is exact for ½(α, θ)ᵀH(α, θ): θ_α = −H_θθ⁻¹H_θα α.
func lem2Quadratic(hessian *mat.SymDense, h int) (lem2Bounds, error) {
	n := hessian.SymmetricDim()
	inner := lem2Block(hessian, h, n)
	cross := mat.NewDense(n-h, h, nil)
	for i := range n - h {
		for j := range h {
			cross.Set(i, j, hessian.At(h+i, j))
		}
	}
	var chol mat.Cholesky
	if !chol.Factorize(inner) {
		return lem2Bounds{}, fmt.Errorf("lemma 2: the Hessian in θ is not positive definite")
	}
	var slope mat.Dense
	if err := chol.SolveTo(&slope, cross); err != nil {
		return lem2Bounds{}, fmt.Errorf("lemma 2: the Hessian in θ: %w", err)
	}
	mu := lem2Smallest(inner)
	return lem2Bounds{
		lipschitz: lem2Spectral(&slope),
		smooth:    math.Sqrt(lem2Norm(lem2Block(hessian, 0, h)) / mu),
		joint:     math.Sqrt(lem2Norm(hessian) / mu),
		cross:     lem2Spectral(cross) / mu,
	}, nil
}

// lem2Spectral is the largest singular value.
func lem2Spectral(m *mat.Dense) float64 {
	var svd mat.SVD
	if !svd.Factorize(m, mat.SVDNone) {
		return math.NaN()
	}
	return svd.Values(nil)[0]
}

// lem2LogSumExp is L̄(α, θ) = log Σᵢ exp(aᵢᵀα + bᵢᵀθ) + (μ/2)‖θ‖², jointly
// convex, L̄-smooth in α with L̄ = ‖A‖²/2 because ‖diag(q) − qqᵀ‖ ≤ ½. Its
// Lipschitz constant is measured on pairs, both near and far.
func lem2LogSumExp(rng *rand.Rand, h, p int) (lem2Bounds, error) {
	const terms, mu = 12, 0.5
	a, b := lem2Gaussian(rng, terms, h), lem2Gaussian(rng, terms, p)
	most := 0.0
	for _, distance := range []float64{1e-3, 1, 10} {
		alpha, beta := make([]float64, h), make([]float64, h)
		for i := range alpha {
			alpha[i] = rng.NormFloat64()
			beta[i] = alpha[i] + distance*rng.NormFloat64()
		}
		x, err := lem2Newton(a, b, alpha, mu)
		if err != nil {
			return lem2Bounds{}, err
		}
		y, err := lem2Newton(a, b, beta, mu)
		if err != nil {
			return lem2Bounds{}, err
		}
		most = max(most, floats.Distance(x, y, 2)/floats.Distance(alpha, beta, 2))
	}
	whole := mat.NewDense(terms, h+p, nil)
	whole.Augment(a, b)
	full := lem2Spectral(whole)*lem2Spectral(whole)/2 + mu
	outer, inner := lem2Spectral(a), lem2Spectral(b)
	return lem2Bounds{most, math.Sqrt(outer * outer / 2 / mu), math.Sqrt(full / mu), outer * inner / 2 / mu}, nil
}

// lem2Newton minimizes over θ by Newton's method with halved steps.
func lem2Newton(a, b *mat.Dense, alpha []float64, mu float64) ([]float64, error) {
	_, p := b.Dims()
	theta := make([]float64, p)
	value, grad, hessian := lem2Expand(a, b, alpha, theta, mu)
	for range 100 {
		if floats.Norm(grad, 2) < 1e-12*(1+mu) {
			break
		}
		var chol mat.Cholesky
		var step mat.VecDense
		if !chol.Factorize(hessian) {
			return nil, fmt.Errorf("lemma 2: the Hessian of the log-sum-exp is not positive definite")
		}
		if err := chol.SolveVecTo(&step, mat.NewVecDense(p, grad)); err != nil {
			return nil, err
		}
		for size := 1.0; size > 1e-12; size /= 2 {
			next := floats.AddScaledTo(make([]float64, p), theta, -size, step.RawVector().Data)
			v, g, hs := lem2Expand(a, b, alpha, next, mu)
			// Near the minimum the value no longer tells, the gradient does.
			rounding := 1e-12 * (1 + math.Abs(value))
			if v < value-rounding || (v <= value+rounding && floats.Norm(g, 2) < floats.Norm(grad, 2)) {
				theta, value, grad, hessian = next, v, g, hs
				break
			}
		}
	}
	if floats.Norm(grad, 2) > 1e-8 {
		return nil, fmt.Errorf("lemma 2: Newton's method stopped at a gradient of norm %.2g", floats.Norm(grad, 2))
	}
	return theta, nil
}

// lem2Expand is the log-sum-exp with its gradient and Hessian in θ.
func lem2Expand(a, b *mat.Dense, alpha, theta []float64, mu float64) (float64, []float64, *mat.SymDense) {
	terms, p := b.Dims()
	z := make([]float64, terms)
	for i := range z {
		z[i] = floats.Dot(a.RawRowView(i), alpha) + floats.Dot(b.RawRowView(i), theta)
	}
	value := floats.LogSumExp(z)
	grad, hessian := floats.ScaleTo(make([]float64, p), mu, theta), mat.NewSymDense(p, nil)
	average := make([]float64, p)
	for i := range z {
		q := math.Exp(z[i] - value)
		floats.AddScaled(average, q, b.RawRowView(i))
		hessian.SymRankOne(hessian, q, b.RowView(i))
	}
	hessian.SymRankOne(hessian, -1, mat.NewVecDense(p, average))
	for i := range p {
		hessian.SetSym(i, i, hessian.At(i, i)+mu)
	}
	floats.Add(grad, average)
	return value + mu/2*floats.Dot(theta, theta), grad, hessian
}

// runRidge takes suprema over α in the simplex for ‖y − Φ_αθ‖² + λ‖θ‖², whose
// second derivatives are
//
//	H_αα = 2 (θᵀΦᵢᵀΦⱼθ)ᵢⱼ ,  H_θαᵢ = 2 (Φ_αᵀΦᵢθ − Φᵢᵀr) ,  H_θθ = 2 (Φ_αᵀΦ_α + λI) .
func (c lem2Case) runRidge(ctx context.Context, seed uint64) (runs.Result, error) {
	t := newThm1Teacher(seed, *c.World)
	x, y := t.sample(runs.RNG(seed, "train"), c.Train)
	train, err := t.mixture(x, y)
	if err != nil {
		return runs.Result{}, err
	}
	var lipschitz, outer, cross float64
	weakest := math.Inf(1)
	for _, alpha := range thm1Candidates(runs.RNG(seed, "candidates"), c.World.Maps, c.Candidates) {
		if err := ctx.Err(); err != nil {
			return runs.Result{}, err
		}
		fit, err := train.Fit(alpha, c.Lambda)
		if err != nil {
			return runs.Result{}, err
		}
		jacobian, err := fit.Jacobian()
		if err != nil {
			return runs.Result{}, err
		}
		h := len(alpha)
		lipschitz = max(lipschitz, lem2Spectral(jacobian.Slice(0, c.World.Features, 0, h).(*mat.Dense)))
		images, mixed := mat.NewDense(c.Train, h, nil), mat.NewDense(c.World.Features, h, nil)
		phi, theta := train.At(alpha), mat.NewVecDense(c.World.Features, fit.Theta)
		for i, m := range train.Maps {
			var image, back, rest mat.VecDense
			image.MulVec(m, theta)
			back.MulVec(phi.T(), &image)
			rest.MulVec(m.T(), mat.NewVecDense(c.Train, fit.Residual))
			back.SubVec(&back, &rest)
			images.SetCol(i, image.RawVector().Data)
			mixed.SetCol(i, back.RawVector().Data)
		}
		outer = max(outer, 2*lem2Spectral(images)*lem2Spectral(images))
		cross = max(cross, 2*lem2Spectral(mixed))
		least := 0.0
		if c.World.Features <= c.Train {
			if least, err = train.MinSingular(alpha); err != nil {
				return runs.Result{}, err
			}
		}
		weakest = min(weakest, 2*(c.Lambda+least*least))
	}
	return runs.Result{Values: map[string]float64{"lipschitz": lipschitz, "smooth": math.Sqrt(outer / weakest), "cross": cross / weakest}}, nil
}
