// Package convergence measures both sides of Oymak+ 2021, Theorem 1: by how much validation risks and their
// hypergradients differ from those of the distribution, at the worst α.
package convergence

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/nasml/lab/nasml/oymak2021/internal/activation"
	"github.com/nasml/lab/nasml/oymak2021/internal/instance"
	"github.com/nasml/lab/nasml/oymak2021/internal/validation"
	"github.com/nasml/lab/nasml/trial"
)

// Case is a curve over n_V: what a trial depends on but its seed.
type Case struct {
	Part       string           `json:"part"`
	Maps       int              `json:"maps,omitempty"` // h
	Validation []int            `json:"validation"`
	Repeats    int              `json:"repeats"`
	Instance   *instance.Params `json:"world,omitempty"`
	Train      int              `json:"train,omitempty"`
	Lambda     float64          `json:"lambda"`
	Bad        bool             `json:"bad,omitempty"`
	Candidates int              `json:"candidates,omitempty"`
	Ascent     int              `json:"ascent,omitempty"`
	Net        *activation.Net  `json:"net,omitempty"`
	Loss       string           `json:"loss,omitempty"`
	Lipschitz  []float64        `json:"lipschitz,omitempty"`
}

// Run computes one seed. Images are needed by "net" alone.
//
//   - "tight": for every n_V the means over validation samples of the suprema over the ball of R^h ("gap", "gradient")
//     and over its two-dimensional part ("gap2", "gradient2"), and of the gap at one α ("fixed");
//   - "ridge": see runRidge;
//   - "net": see runNet;
//   - "lipschitz": "gap", the mean supremum for every L, and "few", that of three samples only;
//   - "cover": the sizes of covers, see cover.
//
// It returns an error if ctx is cancelled, some Φ_α is singular at λ = 0, there
// are too few images, or a training diverges.
func (c Case) Run(ctx context.Context, seed uint64, images activation.Images) (trial.Result, error) {
	switch c.Part {
	case "tight":
		return c.runTight(ctx, seed)
	case "ridge":
		return c.runRidge(ctx, seed)
	case "net":
		return c.runNet(ctx, seed, images)
	case "lipschitz":
		return c.runLipschitz(seed), nil
	}
	return cover(seed), nil
}

func (c Case) runTight(ctx context.Context, seed uint64) (trial.Result, error) {
	series, err := validation.Over(ctx, c.Validation, c.Repeats, func(n, rep int, sums map[string]float64) error {
		t := newTight(trial.RNG(seed, "tight", fmt.Sprint(c.Maps, n, rep)), c.Maps, n)
		gap, gradient := t.gaps(c.Maps)
		gap2, gradient2 := t.gaps(min(2, c.Maps))
		sums["gap"] += gap
		sums["gradient"] += gradient
		sums["gap2"] += gap2
		sums["gradient2"] += gradient2
		sums["fixed"] += t.fixed()
		return nil
	})
	return trial.Result{Series: series}, err
}

func (c Case) runLipschitz(seed uint64) trial.Result {
	const step = 0.1
	mean := func(stream string, n int) []float64 {
		sup := make([]float64, len(c.Lipschitz))
		for rep := range c.Repeats {
			for i, v := range cosines(trial.RNG(seed, stream, fmt.Sprint(rep)), n, c.Lipschitz, step) {
				sup[i] += v / float64(c.Repeats)
			}
		}
		return sup
	}
	return trial.Result{Series: map[string][]float64{
		"gap": mean("cosines", c.Validation[0]), "few": mean("few cosines", 3),
	}}
}

// cosines is sup |mean cos(ωxᵢ) − e^{−ω²/2}| over ω ∈ [0, L] for n samples x ~ N(0, 1): the family f_α(x) = cos(Lαx), α
// ∈ [0, 1], has h = 1 and Lipschitz constant L·|x|. It returns the supremum for every L of an ascending list, on a grid
// of that step (the sum moves by at most max|x|·step/2 between two points).
func cosines(rng *rand.Rand, n int, ls []float64, step float64) []float64 {
	x := trial.Normals(rng, n, 1)
	out := make([]float64, len(ls))
	at, sup := 0, 0.0
	for i, l := range ls {
		for ; float64(at)*step <= l; at++ {
			omega, sum := float64(at)*step, 0.0
			for _, v := range x {
				sum += math.Cos(omega * v)
			}
			sup = max(sup, math.Abs(sum/float64(n)-math.Exp(-omega*omega/2)))
		}
		out[i] = sup
	}
	return out
}

// runNet trains a network for every candidate and draws validation samples from the pool: series as in runRidge,
// without the gradient.
func (c Case) runNet(ctx context.Context, seed uint64, images activation.Images) (trial.Result, error) {
	task, err := activation.NewTask(images, *c.Net, seed)
	if err != nil {
		return trial.Result{}, err
	}
	var losses [][]float64
	var risks []float64
	trainError, trainLoss := 0.0, 0.0
	for _, alpha := range instance.Candidates(trial.RNG(seed, "candidates"), c.Maps, c.Candidates) {
		train, pool, err := task.Train(ctx, alpha)
		if err != nil {
			return trial.Result{}, err
		}
		each := activation.Losses(c.Loss, task.PoolY, pool)
		losses, risks = append(losses, each), append(risks, trial.Mean(each))
		trainError = max(trainError, trial.Mean(activation.Losses("error", task.Y, train)))
		trainLoss = max(trainLoss, trial.Mean(activation.Losses("squared", task.Y, train)))
	}
	best, violations, centre := slices.Min(risks), 0.0, min(c.Maps, len(losses)-1)
	series, err := validation.Over(ctx, c.Validation, c.Repeats, func(n, rep int, sums map[string]float64) error {
		index := validation.Draw(trial.RNG(seed, "validation", fmt.Sprint(n, rep)), c.Net.Pool, n)
		gap, chosen := validation.Choose(losses, risks, index)
		if chosen-best > 2*gap*(1+1e-12) {
			violations++
		}
		sums["gap"] += gap
		sums["fixed"] += math.Abs(validation.MeanAt(losses[centre], index) - risks[centre])
		sums["excess"] = sums["excess"] + chosen - best // in this order of rounding
		return nil
	})
	return trial.Result{Series: series, Values: map[string]float64{
		"best": best, "worst": slices.Max(risks), "violations": violations,
		"train": trainError, "train_loss": trainLoss,
	}}, err
}

// CoverRadii are the ε of the covers, for a set of radius 1.
var CoverRadii = []float64{0.8, 0.4, 0.2, 0.1}

// cover covers a sample of the unit ball of R^h, h = 1, 2, 3 ("ball1"…), and of a circle in R^10 ("circle") greedily
// with balls of radius ε. The centres are ε apart, so that their number is at most (1+2/ε)^h and at least the size of
// the smallest cover of the sample by balls of radius ε.
func cover(seed uint64) trial.Result {
	const points = 20000
	series := map[string][]float64{}
	for h := 1; h <= 3; h++ {
		rng := trial.RNG(seed, "ball", string(rune('0'+h)))
		sample := make([][]float64, points)
		for i := range sample {
			sample[i] = ballPoint(rng, h)
		}
		series["ball"+string(rune('0'+h))] = coverSizes(sample)
	}
	rng := trial.RNG(seed, "circle")
	plane := instance.Orthonormal(rng, 10, 2)
	circle := make([][]float64, points/10)
	for i := range circle {
		angle := 2 * math.Pi * rng.Float64()
		circle[i] = make([]float64, 10)
		for k := range circle[i] {
			circle[i][k] = plane.At(k, 0)*math.Cos(angle) + plane.At(k, 1)*math.Sin(angle)
		}
	}
	series["circle"] = coverSizes(circle)
	return trial.Result{Series: series}
}

func ballPoint(rng *rand.Rand, h int) []float64 {
	x := trial.Normals(rng, h, 1)
	floats.Scale(math.Pow(rng.Float64(), 1/float64(h))/floats.Norm(x, 2), x)
	return x
}

// coverSizes are the sizes of greedy covers for every radius.
func coverSizes(sample [][]float64) []float64 {
	var sizes []float64
	for _, eps := range CoverRadii {
		var centres [][]float64
		for _, x := range sample {
			if !slices.ContainsFunc(centres, func(c []float64) bool { return floats.Distance(x, c, 2) <= eps }) {
				centres = append(centres, x)
			}
		}
		sizes = append(sizes, float64(len(centres)))
	}
	return sizes
}

// ballMax is the maximum of αᵀEα + 2⟨b, α⟩ over the unit ball, exactly: by strong duality of a quadratic with one
// quadratic constraint it is
//
//	min { μ + bᵀ(μI − E)⁻¹b : μ ≥ max(λ_max(E), 0) } ,
//
// a convex function of one number, whose derivative 1 − Σⱼ bⱼ²/(μ − λⱼ)² is bisected.
func ballMax(e *mat.SymDense, b []float64) float64 {
	var eig mat.EigenSym
	if !eig.Factorize(e, true) {
		return math.NaN() // a result with it is refused
	}
	var vectors mat.Dense
	eig.VectorsTo(&vectors)
	values := eig.Values(nil)
	var rotated mat.VecDense
	rotated.MulVec(vectors.T(), mat.NewVecDense(len(b), b))
	c := rotated.RawVector().Data
	excess := func(mu float64) float64 { // Σ c²/(μ−λ)² − 1, decreasing in μ
		sum := -1.0
		for j, l := range values {
			if c[j] != 0 {
				sum += c[j] * c[j] / ((mu - l) * (mu - l))
			}
		}
		return sum
	}
	lo := max(values[len(values)-1], 0)
	hi := lo + floats.Norm(c, 2)
	for range 200 {
		mid := (lo + hi) / 2
		if mid <= lo || mid >= hi {
			break
		}
		if excess(mid) > 0 {
			lo = mid
		} else {
			hi = mid
		}
	}
	total := hi
	for j, l := range values {
		if d := hi - l; d > 0 && c[j] != 0 {
			total += c[j] * c[j] / d
		}
	}
	return total
}

// tight is a family that reaches the theorem's rate: the prediction is the superposition itself, f_α(x) = ⟨α, g⟩ with
// g ~ N(0, I_h), without training; y = g₁/2 + ε/2 and the loss is squared. Δ is the unit ball of R^h or, as a set of
// effective dimension 2 in R^h, its intersection with the plane of the first two axes. With the moments Ĝ and ĉ of a
// validation sample, E = Ĝ − I and e = ĉ − e₁/2,
//
//	L̂_V − L = αᵀEα − 2⟨e, α⟩ + s,   ∇(L̂_V − L) = 2(Eα − e) ,
//
// so that both suprema over Δ are maxima of quadratics over a ball.
type tight struct {
	second *mat.SymDense // E
	first  []float64     // e
	rest   float64       // s = ỹᵀỹ/n − E y²
}

func newTight(rng *rand.Rand, h, n int) tight {
	g, y := mat.NewDense(n, h, nil), make([]float64, n)
	for i := range n {
		row := g.RawRowView(i)
		copy(row, trial.Normals(rng, h, 1))
		y[i] = row[0]/2 + rng.NormFloat64()/2
	}
	t := tight{second: new(mat.SymDense)}
	t.second.SymOuterK(1/float64(n), g.T())
	for i := range h {
		t.second.SetSym(i, i, t.second.At(i, i)-1)
	}
	var first mat.VecDense
	first.MulVec(g.T(), mat.NewVecDense(n, y))
	first.ScaleVec(1/float64(n), &first)
	t.first = first.RawVector().Data
	t.first[0] -= 0.5
	t.rest = floats.Dot(y, y)/float64(n) - 0.5
	return t
}

// gaps are sup |L̂_V − L| and sup ‖∇L̂_V − ∇L‖ over the part of the unit ball that is spanned by the first k axes; the
// gradient is that of R^h.
func (t tight) gaps(k int) (risk, gradient float64) {
	e := mat.NewSymDense(k, nil)
	for i := range k {
		for j := i; j < k; j++ {
			e.SetSym(i, j, t.second.At(i, j))
		}
	}
	up := ballMax(e, floats.ScaleTo(make([]float64, k), -1, t.first[:k]))
	e.ScaleSym(-1, e)
	down := ballMax(e, t.first[:k])

	h := len(t.first)
	columns := mat.DenseCopyOf(t.second).Slice(0, h, 0, k).(*mat.Dense) // E restricted to Δ
	var square mat.SymDense
	square.SymOuterK(4, columns.T())
	var b mat.VecDense
	b.MulVec(columns.T(), mat.NewVecDense(h, t.first))
	b.ScaleVec(-4, &b)
	most := ballMax(&square, b.RawVector().Data)
	return max(up+t.rest, down-t.rest), math.Sqrt(most + 4*floats.Dot(t.first, t.first))
}

// fixed is |L̂_V − L| at the single α = e₁.
func (t tight) fixed() float64 {
	return math.Abs(t.second.At(0, 0) - 2*t.first[0] + t.rest)
}
