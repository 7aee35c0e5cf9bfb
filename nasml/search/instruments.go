package search

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/nasml/lab/nasml/internal/device"
	"github.com/nasml/lab/nasml/simplex"
	"github.com/nasml/lab/nasml/supernet"
	"github.com/nasml/lab/nasml/trial"
)

// Readings are what the instruments of a search read after each of Curve.Evaluated epochs, with the current shared
// weights, on one batch of validation images without augmentation: F is its loss.
type Readings struct {
	Loss []float64 `json:"loss,omitempty"` // F(w, θ)

	// Convexity is γ, the least number for which F(w, ·) + γφ is convex near θ: minus the least eigenvalue of
	// diag(√θ)·∇²F·diag(√θ), or 0, from Settings.Instruments products (Li+ 2021, Assumption 1, for θ alone).
	Convexity []float64 `json:"convexity,omitempty"`

	// Gradient is Σₑ ‖∇ₑF‖∞², which G_θ² bounds there.
	Gradient []float64 `json:"gradient,omitempty"`

	// Stationarity is Δ_λ of F linearised at θ, see [simplex.LinearStationarity], at λ = 1/(2γ): the distance of θ from
	// where exponentiated gradient rests.
	Stationarity []float64 `json:"stationarity,omitempty"`

	// Of every number θᵢ of a row (Roberts+, Sections 2 and 3, on an edge of a real supernet in the place of the whole
	// network): Alone is F with the operation i alone on the edge, in the place of Lᵢ, and Apart is
	//
	//	Aᵢ = ½·E‖gᵢ − mᵢ‖² ,
	//
	// where gᵢ are the logits with i alone and mᵢ those with the other operations, each
	// with θₖ/(1 − θᵢ). Rows of one option have 0.
	Alone [][]float64 `json:"alone,omitempty"`
	Apart [][]float64 `json:"apart,omitempty"`
}

// instrument is what an evaluation of the supernet is given besides θ.
type instrument struct {
	*run
	images, labels *tensors.Tensor
	state          []*tensors.Tensor
}

func (r *run) instrument(rng *rand.Rand) (instrument, error) {
	images, labels, err := r.batch(pick(rng, r.validation, min(r.Batch, len(r.validation))), nil)
	state := Cut(r.Step, r.state())
	return instrument{r, images, labels, slices.Concat(state.Weights, state.Stats)}, err
}

func (i instrument) free() { _ = device.Free(i.images, i.labels) }

// instruments reads all instruments after an epoch.
func (r *run) instruments(ctx context.Context, c *Curve, epoch int) error {
	rng := trial.RNG(r.seed, "instruments", fmt.Sprint(epoch))
	i, err := r.instrument(rng)
	if err != nil {
		return err
	}
	defer i.free()
	out, err := i.call(ctx, r.gauge, r.theta)
	if err != nil {
		return err
	}
	loss, grad := out[0], out[1:]
	least, err := lanczos(func(v []float64) ([]float64, error) { return i.negative(ctx, v) }, len(grad), r.Instruments,
		rng)
	if err != nil {
		return err
	}
	gamma := max(0, least)
	theta, slopes := Blocks(r.product, r.theta), Blocks(r.product, grad)
	square, delta := 0.0, 0.0
	for b := range theta {
		delta += simplex.LinearStationarity(theta[b], slopes[b], 1/(2*gamma))
		for _, row := range slopes[b] {
			most := math.Max(slices.Max(row), -slices.Min(row))
			square += most * most
		}
	}
	alone, apart, err := i.each(ctx)
	if err != nil {
		return err
	}
	m := &c.Readings
	m.Loss, m.Convexity = append(m.Loss, loss), append(m.Convexity, gamma)
	m.Gradient, m.Stationarity = append(m.Gradient, square), append(m.Stationarity, delta)
	m.Alone, m.Apart = append(m.Alone, alone), append(m.Apart, apart)
	return nil
}

// call evaluates under some θ, with more blocks before it.
func (i instrument) call(ctx context.Context, exec *Exec, flat ...[]float64) ([]float64, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	args := []any{i.images, i.labels}
	for _, x := range flat {
		for b, block := range Blocks(i.product, x) {
			args = append(args, matrix(i.product[b], block))
		}
	}
	for _, t := range i.state {
		args = append(args, t)
	}
	out, err := exec.Call(args...)
	if err != nil {
		return nil, err
	}
	numbers, err := device.Float64s(out...)
	if err == nil && slices.ContainsFunc(numbers, bad) {
		err = errors.New("a derivative of the validation loss is not finite: the weights have diverged; " +
			"lower LearningRate")
	}
	return numbers, err
}

// negative is −diag(√θ)·∇²F·diag(√θ)·v.
func (i instrument) negative(ctx context.Context, v []float64) ([]float64, error) {
	scaled := slices.Clone(v)
	for k, x := range i.theta {
		scaled[k] *= math.Sqrt(x)
	}
	out, err := i.call(ctx, i.relative, scaled, i.theta)
	if err != nil {
		return nil, err
	}
	for k, x := range i.theta {
		out[k] *= -math.Sqrt(x)
	}
	return out, nil
}

// each is the loss of every operation alone on its edge, and its distance from the others.
func (i instrument) each(ctx context.Context) (alone, apart []float64, err error) {
	alone, apart = make([]float64, len(i.theta)), make([]float64, len(i.theta))
	at := 0
	for _, b := range i.product {
		for range b.Rows {
			row := i.theta[at : at+b.Options]
			for o := range row {
				if b.Options == 1 {
					continue
				}
				if alone[at+o], apart[at+o], err = i.one(ctx, at, row, o); err != nil {
					return nil, nil, err
				}
			}
			at += b.Options
		}
	}
	return alone, apart, nil
}

// one is the loss and the distance of option o of the row that begins at index at of θ.
func (i instrument) one(ctx context.Context, at int, row []float64, o int) (loss, apart float64, err error) {
	with := func(weights []float64) ([]float64, error) {
		theta := slices.Clone(i.theta)
		copy(theta[at:], weights)
		return i.call(ctx, i.score, theta)
	}
	only, rest := make([]float64, len(row)), slices.Clone(row)
	only[o], rest[o] = 1, 0
	own, err := with(only)
	if err != nil {
		return 0, 0, err
	}
	sum := 0.0
	for _, x := range rest {
		sum += x
	}
	if sum <= 0 { // nothing else is there
		return own[0], 0, nil
	}
	for k := range rest {
		rest[k] /= sum
	}
	others, err := with(rest)
	if err != nil {
		return 0, 0, err
	}
	for k, g := range own[1:] {
		apart += (g - others[1+k]) * (g - others[1+k]) / 2
	}
	return own[0], apart / float64(i.labels.Shape().Size()), nil
}

// slope is F and ∇F: see batchLoss.
func (s *Runner) slope(in []*Node) []*Node {
	theta := in[2 : 2+s.blocks()]
	loss, _ := s.batchLoss(in, theta)
	return append([]*Node{loss}, Gradient(loss, theta...)...)
}

// curved is ∇²F·v: v stands before θ.
func (s *Runner) curved(in []*Node) []*Node {
	n := s.blocks()
	theta := in[2+n : 2+2*n]
	loss, _ := s.batchLoss(in, theta)
	return hessianProduct(loss, theta, in[2:2+n])
}

// curvedInLogits is ∇²_α F·v, θ = softmax(α): v stands before α.
func (s *Runner) curvedInLogits(in []*Node) []*Node {
	n := s.blocks()
	alpha := in[2+n : 2+2*n]
	loss, _ := s.batchLoss(in, each(alpha, func(x *Node) *Node { return Softmax(x, -1) }))
	return hessianProduct(loss, alpha, in[2:2+n])
}

// hessianProduct is ∇²f·v.
func hessianProduct(f *Node, x, v []*Node) []*Node {
	inner := ScalarZero(f.Graph(), f.DType())
	for i, g := range Gradient(f, x...) {
		inner = Add(inner, ReduceAllSum(Mul(g, StopGradient(v[i]))))
	}
	return Gradient(inner, x...)
}

// scored is F and the logits.
func (s *Runner) scored(in []*Node) []*Node {
	loss, logits := s.batchLoss(in, in[2:2+s.blocks()])
	return []*Node{loss, logits}
}

// batchLoss is the loss under θ in training mode: in are images, labels and, at the end, weights and statistics.
func (s *Runner) batchLoss(in, theta []*Node) (loss, logits *Node) {
	logits = s.logits(in[0], theta, in[len(in)-len(s.net.Weights())-len(s.net.Stats()):], true)
	_, loss = supernet.Score(logits, in[1])
	return loss, logits
}

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
