package spectral

import (
	"fmt"
	"math"
	"sync"

	"gonum.org/v1/gonum/mat"
)

// hermiteDegree is that of the expansions: the coefficients of a slope that is analytic in a strip of half-width π/2,
// such as tanh′, have fallen below 10⁻⁹ there.
const hermiteDegree = 100

var hermiteRule = sync.OnceValue(func() Rule {
	rule, err := GaussHermite(200)
	if err != nil {
		panic(err) // there are as many nodes
	}
	return rule
})

// Tangent is the neural tangent kernel of activation search on a one-hidden-layer network of infinite width, f_α(x) =
// vᵀσ_α(Wx) with σ_α = Σⱼ αⱼσⱼ and only W ~ N(0, 1) trained (Oymak+ 2021, Definition 3). For inputs of unit norm
//
//	K_α(x, x′) = c₀ Σᵢⱼ αᵢαⱼ ρ κᵢⱼ(ρ),   κᵢⱼ(ρ) = E σᵢ′(u)σⱼ′(v),   ρ = ⟨x, x′⟩,
//
// with u, v standard normal of correlation ρ: quadratic in α. With the Hermite coefficients cᵢₖ of σᵢ′, κᵢⱼ(ρ) = Σₖ
// cᵢₖcⱼₖρᵏ; that of ReLU with itself, whose series converges slowly, is the arc-cosine kernel (π − arccos ρ)/2π.
//
// What it gives is divided by c₀ = ‖v‖², which only scales it.
type Tangent struct {
	Activations []Activation
	series      [][][]float64 // cᵢₖcⱼₖ; nil for two steps
}

// NewTangent expands the slopes of the activations.
func NewTangent(activations ...Activation) *Tangent {
	t := &Tangent{Activations: activations}
	var coefficients [][]float64
	for _, a := range activations {
		expand := a.slopeHermite
		if expand == nil {
			expand = func(degree int) []float64 { return hermiteRule().Hermite(a.slope, degree) }
		}
		coefficients = append(coefficients, expand(hermiteDegree))
	}
	for i, ci := range coefficients {
		t.series = append(t.series, make([][]float64, len(activations)))
		for j, cj := range coefficients {
			if activations[i].slopeHermite != nil && activations[j].slopeHermite != nil {
				continue
			}
			t.series[i][j] = trimmed(products(ci, cj))
		}
	}
	return t
}

func (a Activation) slope(z float64) float64 {
	_, slope := a.Eval(z)
	return slope
}

// trimmed leaves out the last terms where they add nothing at ρ = 1.
func trimmed(c []float64) []float64 {
	var largest float64
	for _, v := range c {
		largest = max(largest, math.Abs(v))
	}
	last := len(c)
	for last > 1 && math.Abs(c[last-1]) <= 1e-18*largest {
		last--
	}
	return c[:last]
}

func products(a, b []float64) []float64 {
	c := make([]float64, len(a))
	for k := range c {
		c[k] = a[k] * b[k]
	}
	return c
}

// Pair is κᵢⱼ(ρ). A ρ outside [−1, 1] counts as the nearest end.
func (t *Tangent) Pair(i, j int, rho float64) float64 {
	rho = min(1, max(-1, rho))
	if t.series[i][j] != nil {
		return powerSeries(t.series[i][j], rho)
	}
	// Two steps at 0, perhaps reflected: 1{u>0} is the slope at +∞.
	up, down := t.Activations[i].slope(1), t.Activations[i].slope(-1)
	up2, down2 := t.Activations[j].slope(1), t.Activations[j].slope(-1)
	same := (math.Pi - math.Acos(rho)) / (2 * math.Pi) // P(u>0, v>0)
	return (up*up2+down*down2)*same + (up*down2+down*up2)*(0.5-same)
}

// Blocks are the matrices Kᵢⱼ of two sets of inputs. The kernel of any α is a sum of them:
//
//	K_α = Σᵢⱼ αᵢαⱼKᵢⱼ .
type Blocks struct {
	k [][]*mat.Dense // h × h, each n × m
}

// Blocks are ρ κᵢⱼ(ρ) between the rows of x [n, d] and of z [m, d]. It returns an error if a row has not unit norm,
// because the kernel then depends on the norm, too.
func (t *Tangent) Blocks(x, z *mat.Dense) (*Blocks, error) {
	for _, rows := range []*mat.Dense{x, z} {
		if err := checkUnitRows(rows); err != nil {
			return nil, err
		}
	}
	rho, h := inner(x, z), len(t.Activations)
	b := newBlocks(h)
	for i := range h {
		for j := range i + 1 {
			k := new(mat.Dense)
			k.Apply(func(_, _ int, r float64) float64 { return r * t.Pair(i, j, r) }, rho)
			b.k[i][j], b.k[j][i] = k, k // κᵢⱼ(ρ) is symmetric in i, j
		}
	}
	return b, nil
}

func newBlocks(h int) *Blocks {
	b := &Blocks{k: make([][]*mat.Dense, h)}
	for i := range b.k {
		b.k[i] = make([]*mat.Dense, h)
	}
	return b
}

// checkUnitRows is an error if a row of x has not norm 1.
func checkUnitRows(x *mat.Dense) error {
	n, _ := x.Dims()
	for i := range n {
		if norm := mat.Norm(x.RowView(i), 2); !(math.Abs(norm-1) < 1e-8) {
			return fmt.Errorf("input %d must have norm 1, got %v: divide each input by its norm", i, norm)
		}
	}
	return nil
}

func inner(x, z *mat.Dense) *mat.Dense {
	rho := new(mat.Dense)
	rho.Mul(x, z.T())
	return rho
}

// At is K_α. It panics if α has not one entry for each activation.
func (b *Blocks) At(alpha []float64) *mat.Dense {
	if len(alpha) != len(b.k) {
		panic(fmt.Sprintf("α has %d entries for %d activations", len(alpha), len(b.k)))
	}
	n, m := b.k[0][0].Dims()
	sum := mat.NewDense(n, m, nil)
	out := sum.RawMatrix().Data
	for i, row := range b.k {
		for j, k := range row {
			weight := alpha[i] * alpha[j]
			if weight == 0 {
				continue
			}
			for p, v := range k.RawMatrix().Data {
				out[p] += weight * v
			}
		}
	}
	return sum
}

// Whole is the Gram matrix of all feature maps at once, [hn, hn] with block
// Kᵢⱼ at (i, j), for blocks of one set of inputs with itself.
func (b *Blocks) Whole() *mat.SymDense {
	h := len(b.k)
	n, _ := b.k[0][0].Dims()
	whole := mat.NewSymDense(h*n, nil)
	for p := range h * n {
		for q := p; q < h*n; q++ {
			whole.SetSym(p, q, b.k[p/n][q/n].At(p%n, q%n))
		}
	}
	return whole
}

// WideBlocks are the blocks of a network of finite width k with the hidden weights w [k, d], Monte Carlo estimates of
// Tangent.Blocks:
//
//	K̂ᵢⱼ(x, x′) = ⟨x, x′⟩ (1/k) Σᵣ σᵢ′(wᵣᵀx)σⱼ′(wᵣᵀx′) .
//
// They are the inner products of the feature maps of [Features], divided by c₀.
func WideBlocks(activations []Activation, x, z, w *mat.Dense) *Blocks {
	rho, left, right := inner(x, z), slopes(activations, x, w), slopes(activations, z, w)
	width, _ := w.Dims()
	b := newBlocks(len(activations))
	for i := range left {
		for j := range right {
			k := inner(left[i], right[j])
			k.Scale(1/float64(width), k)
			k.MulElem(k, rho)
			b.k[i][j] = k
		}
	}
	return b
}

// slopes are σⱼ′(XWᵀ), [n, k] for each activation.
func slopes(activations []Activation, x, w *mat.Dense) (all []*mat.Dense) {
	z := inner(x, w)
	for _, a := range activations {
		s := new(mat.Dense)
		s.Apply(func(_, _ int, v float64) float64 { return a.slope(v) }, z)
		all = append(all, s)
	}
	return all
}

// Features are the rows φ(xᵢ) = vec((v ⊙ σ′(Wxᵢ))xᵢᵀ) ∈ R^{kd} of one activation: the derivative of vᵀσ(Wx) by W
// (Oymak+ 2021, Definition 3). w is [k, d] and v has k entries.
func Features(eval func(z float64) (value, slope float64), x, w *mat.Dense, v []float64) *mat.Dense {
	z := inner(x, w)
	n, d := x.Dims()
	phi := mat.NewDense(n, len(v)*d, nil)
	for i := range n {
		for r := range v {
			_, slope := eval(z.At(i, r))
			for c := range d {
				phi.Set(i, r*d+c, v[r]*slope*x.At(i, c))
			}
		}
	}
	return phi
}

// Deep is a network of Depth hidden layers of equal width k with the mixture σ_α = Σⱼ αⱼσⱼ after each, all hidden
// layers trained and the output fixed (Oymak+ 2021, Section 4.2, extensions):
//
//	z₁ = W₁x,   z_l = (s/√k) W_l σ_α(z_{l−1}),   f_α(x) = vᵀσ_α(z_D),   vᵢ = ±√(c₀/k),
//
// with standard normal W. With Depth 1 it is the network of [Tangent]. Its tangent kernel is no longer quadratic in α.
type Deep struct {
	Activations []Activation
	Depth       int     // D ≥ 1
	Gain        float64 // s, the standard deviation of the weights times √k
}

// Kernel is the tangent kernel of infinite width, divided by c₀, for inputs of
// unit norm with inner products rho [n, m]. With the covariance Σ of a layer,
//
//	Σ₁ = ρ,  Θ₁ = ρ,  Σ_{l+1} = s² E σ_α(u)σ_α(v),
//	Θ_{l+1} = Σ_{l+1} + s² E σ_α′(u)σ_α′(v) ⊙ Θ_l,   K_α = E σ_α′(u)σ_α′(v) ⊙ Θ_D,
//
// where (u, v) ~ N(0, Σ_l). All inputs have the same variance q_l in a layer, so that the means are power series in the
// correlation Σ_l/q_l. It is an error if a variance vanishes or overflows.
func (d Deep) Kernel(alpha []float64, rho *mat.Dense) (*mat.Dense, error) {
	all, err := d.Kernels(alpha, rho)
	if err != nil {
		return nil, err
	}
	return all[d.Depth-1], nil
}

// Kernels are those of the depths 1…Depth, for the cost of the last.
func (d Deep) Kernels(alpha []float64, rho *mat.Dense) ([]*mat.Dense, error) {
	n, m := rho.Dims()
	correlation, theta := mat.DenseCopyOf(rho), mat.DenseCopyOf(rho)
	variance, gain := 1.0, d.Gain*d.Gain
	var all []*mat.Dense
	for layer := 1; ; layer++ {
		values, slopes, err := d.expand(alpha, math.Sqrt(variance))
		if err != nil {
			return nil, fmt.Errorf("deep kernel, layer %d: %w", layer, err)
		}
		slope := mat.NewDense(n, m, nil)
		slope.Apply(func(_, _ int, r float64) float64 { return powerSeries(slopes, r) }, correlation)
		theta.MulElem(theta, slope)
		all = append(all, mat.DenseCopyOf(theta))
		if layer == d.Depth {
			return all, nil
		}
		variance = gain * powerSeries(values, 1)
		if !(variance > 1e-100 && variance < 1e100) {
			return nil, fmt.Errorf(
				"deep kernel: the variance of layer %d is %v, expected it between 1e-100 and 1e100: change the gain %v",
				layer+1, variance, d.Gain)
		}
		covariance := mat.NewDense(n, m, nil)
		covariance.Apply(func(_, _ int, r float64) float64 { return gain * powerSeries(values, r) }, correlation)
		theta.Scale(gain, theta)
		theta.Add(theta, covariance)
		correlation.Apply(func(_, _ int, c float64) float64 { return min(1, max(-1, c/variance)) }, covariance)
	}
}

// expand are the squared Hermite coefficients of σ_α(√q·) and σ_α′(√q·). It returns an error if they add up to less
// than 99.9 % of the mean square, as for steep functions of a large variance.
func (d Deep) expand(alpha []float64, deviation float64) (values, slopes []float64, err error) {
	rule, mixture := hermiteRule(), Mixture{d.Activations, alpha}
	for i, f := range []func(z float64) float64{
		func(z float64) float64 { v, _ := mixture.Eval(deviation * z); return v },
		func(z float64) float64 { _, s := mixture.Eval(deviation * z); return s },
	} {
		c := rule.Hermite(f, hermiteDegree)
		squares := trimmed(products(c, c))
		all := rule.Mean(func(z float64) float64 { return f(z) * f(z) })
		if sum := powerSeries(squares, 1); !(math.Abs(all-sum) <= 1e-3*all) {
			return nil, nil, fmt.Errorf(
				"at a standard deviation of %.3g the activation's coefficients to degree %d hold %.2f %% of its mean "+
					"square, expected 99.9: take a smaller gain, or bounded activations", deviation, hermiteDegree,
				100*sum/all)
		}
		if i == 0 {
			values = squares
		} else {
			slopes = squares
		}
	}
	return values, slopes, nil
}

// WideKernel is the tangent kernel, divided by c₀, between the rows of x of the network with these weights: weights[0]
// is [k, d], the others, one a further layer, [k, k], and signs are the k signs of v.
func (d Deep) WideKernel(alpha []float64, x *mat.Dense, weights []*mat.Dense, signs []float64) *mat.SymDense {
	n, _ := x.Dims()
	k, _ := weights[0].Dims()
	mixture := NewTable(Mixture{d.Activations, alpha})
	inputs, slopes := []*mat.Dense{x}, make([]*mat.Dense, d.Depth) // of each layer
	scales := make([]float64, d.Depth)
	for l, w := range weights {
		scales[l] = d.Gain / math.Sqrt(float64(k))
		if l == 0 {
			scales[l] = 1
		}
		z := inner(inputs[l], w)
		z.Scale(scales[l], z)
		value, slope := mat.NewDense(n, k, nil), mat.NewDense(n, k, nil)
		for p, v := range z.RawMatrix().Data {
			value.RawMatrix().Data[p], slope.RawMatrix().Data[p] = mixture.Eval(v)
		}
		inputs, slopes[l] = append(inputs, value), slope
	}
	back := mat.NewDense(n, k, nil) // ∂f/∂z_l
	for i := range n {
		for r := range k {
			back.Set(i, r, signs[r]/math.Sqrt(float64(k)))
		}
	}
	kernel := mat.NewDense(n, n, nil)
	for l := d.Depth - 1; l >= 0; l-- {
		back.MulElem(back, slopes[l])
		left := inner(back, back)
		left.MulElem(left, inner(inputs[l], inputs[l]))
		left.Scale(scales[l]*scales[l], left)
		kernel.Add(kernel, left)
		if l > 0 {
			next := new(mat.Dense)
			next.Mul(back, weights[l])
			next.Scale(scales[l], next)
			back = next
		}
	}
	return Symmetric(kernel)
}
