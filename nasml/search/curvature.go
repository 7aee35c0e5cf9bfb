package search

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/nasml/lab/nasml/supernet"
	"github.com/nasml/lab/nasml/trial"
)

// curvature is the largest eigenvalue of the Hessian of the validation loss in
// the logits of the architecture, on one batch without augmentation and with the
// shared weights as they are,
//
//	λ_max(∇²_α F(w, α)),  α = log θ .
//
// Where it grows, the discretisation of θ loses accuracy (Zela+ 2020,
// https://arxiv.org/abs/1909.09656, Section 4). θ on a simplex is looked at in its
// logits, too, so that methods can be compared. It is found by the method of
// Lanczos with Settings.Curvature products.
func (r *run) curvature(ctx context.Context, epoch int) (float64, error) {
	rng := trial.RNG(r.seed, "curvature", fmt.Sprint(epoch))
	images, labels, err := r.batch(pick(rng, r.validation, min(r.Batch, len(r.validation))), nil)
	if err != nil {
		return 0, err
	}
	alpha := make([]float64, len(r.theta))
	for i, x := range r.theta {
		alpha[i] = math.Log(max(x, 1e-12)) // what an update has wiped out stays out
	}
	state := Cut(r.Step, r.state())
	product := func(v []float64) ([]float64, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		args := []any{images, labels}
		for _, flat := range [][]float64{v, alpha} {
			for b, block := range Blocks(r.product, flat) {
				args = append(args, matrix(r.product[b], block))
			}
		}
		for _, t := range slices.Concat(state.Weights, state.Stats) {
			args = append(args, t)
		}
		out, err := r.hessian.Call(args...)
		if err != nil {
			return nil, err
		}
		return float64s(out...)
	}
	defer func() {
		for _, t := range []*tensors.Tensor{images, labels} {
			_ = t.FinalizeAll()
		}
	}()
	return lanczos(product, len(alpha), r.Curvature, rng)
}

// hessianProduct is ∇²_α F·v: in are images, labels, v and α by blocks, weights
// and statistics.
func (s *searcher) hessianProduct(in []*Node) []*Node {
	n, weights := s.blocks(), len(s.net.Weights())
	v, alpha, rest := in[2:2+n], in[2+n:2+2*n], in[2+2*n:]
	made := s.net.Evaluate(supernet.Pass{
		Images: in[0], Theta: each(alpha, func(x *Node) *Node { return Softmax(x, -1) }), Weights: rest[:weights],
		Stats: rest[weights:], Train: true,
	})
	_, loss := supernet.Score(made.Logits, in[1])
	inner := ScalarZero(loss.Graph(), loss.DType())
	for i, g := range Gradient(loss, alpha...) {
		inner = Add(inner, ReduceAllSum(Mul(g, StopGradient(v[i]))))
	}
	return Gradient(inner, alpha...)
}

// lanczos is the largest eigenvalue of a symmetric matrix [n, n] that is known by
// its products, from at most so many of them (Lanczos 1950, with full
// reorthogonalisation): exact for n of them, and from below for fewer.
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
		if i := slices.IndexFunc(next, bad); i >= 0 {
			return 0, fmt.Errorf("a product with the Hessian has the element %v: the weights have diverged; lower "+
				"LearningRate", next[i])
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
