package search

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/nasml/lab/nasml/trial"
)

// curvature is the largest eigenvalue of the Hessian of the validation loss in the architecture's logits, on one batch
// without augmentation and with the current shared weights,
//
//	λ_max(∇²_α F(w, α)),  α = log θ .
//
// If it grows, discretising θ loses accuracy (Zela+ 2020, https://arxiv.org/abs/1909.09656, Section 4). θ on a simplex
// is taken to its logits, too, so that methods can be compared. It is found by Lanczos' method with Settings.Curvature
// products.
func (r *run) curvature(ctx context.Context, epoch int) (float64, error) {
	rng := trial.RNG(r.seed, "curvature", fmt.Sprint(epoch))
	i, err := r.instrument(rng)
	if err != nil {
		return 0, err
	}
	defer i.free()
	alpha := make([]float64, len(r.theta))
	for k, x := range r.theta {
		alpha[k] = math.Log(max(x, 1e-12)) // what an update has wiped out stays out
	}
	product := func(v []float64) ([]float64, error) { return i.call(ctx, r.hessian, v, alpha) }
	return lanczos(product, len(alpha), r.Curvature, rng)
}

// lanczos is the largest eigenvalue of a symmetric matrix [n, n] known by its products, from at most the given number
// of them (Lanczos 1950, with full reorthogonalisation): exact for n of them, a lower bound for fewer.
func lanczos(product func(v []float64) ([]float64, error), n, most int, rng *rand.Rand) (float64, error) {
	v := make([]float64, n)
	for i := range v {
		v[i] = rng.NormFloat64()
	}
	var basis [][]float64
	var diagonal, beside []float64
	for range min(most, n) {
		floats.Scale(1/floats.Norm(v, 2), v)
		basis = append(basis, v)
		next, err := product(v)
		if err != nil {
			return 0, err
		}
		size := floats.Norm(next, 2)
		diagonal = append(diagonal, floats.Dot(v, next))
		for range 2 { // once leaves what rounding has mixed in
			for _, b := range basis {
				floats.AddScaled(next, -floats.Dot(b, next), b)
			}
		}
		norm := floats.Norm(next, 2)
		if norm <= 1e-6*size { // products are of single precision
			break
		}
		beside, v = append(beside, norm), next
	}
	k := len(diagonal)
	t := mat.NewSymDense(k, nil)
	for i, x := range diagonal {
		if t.SetSym(i, i, x); i+1 < k {
			t.SetSym(i, i+1, beside[i])
		}
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(t, false) {
		return 0, fmt.Errorf("the eigenvalues of a matrix [%d, %d] were not found", k, k)
	}
	return slices.Max(eigen.Values(nil)), nil
}
