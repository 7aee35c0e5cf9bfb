package spectral

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

// Deep is a network of Depth hidden layers of equal width k with the mixture
// σ_α = Σⱼ αⱼσⱼ after each, all hidden layers trained and the output fixed
// (Oymak+ 2021, Section 4.2, extensions):
//
//	z₁ = W₁x,   z_l = (s/√k) W_l σ_α(z_{l−1}),   f_α(x) = vᵀσ_α(z_D),   vᵢ = ±√(c₀/k),
//
// with standard normal W. With Depth 1 it is the network of [Tangent]. Its
// tangent kernel is no longer quadratic in α.
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
// where (u, v) ~ N(0, Σ_l). All inputs have the same variance q_l in a layer, so
// that the means are power series in the correlation Σ_l/q_l. It is an error
// if a variance vanishes or overflows.
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
