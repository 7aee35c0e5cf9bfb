// Package simplex is the geometry of architecture parameters θ: products of simplices, the updates that stay on them,
// their entropic mirror map and what is measured on them (Li+ 2021, "GAEA", Section 3 and Appendix B).
//
// It has two faces. Graph functions take GoMLX nodes, run inside a training step and panic where shapes do not fit; θ
// has shape [..., |O|] and every row of the last axis is one simplex. Host functions, whose names end in Of where a
// graph function has the same name, take float64 rows of any lengths, so that they work on simplices of mixed sizes;
// they panic where two arguments do not have the same rows, as gonum's do.
//
// NaN is never hidden: a NaN in θ or in a gradient gives a NaN in its row.
package simplex

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes

	"github.com/nasml/lab/nasml/internal/own"
)

// Update is one step on θ against its gradient with step size η. It is a graph
// function: θ and grad have shape [..., |O|], and so has the result.
type Update func(theta, grad *Node, eta float64) *Node

// Updates are the updates without a state, by name. A reader adds one with Updates["mine"] = func(theta, grad *Node,
// eta float64) *Node {…}; search.Updates has those that keep a state.
//
// Those of this package are finite for every finite gradient up to 1e38, and for θ with exact zeros; an operation whose
// weight is zero keeps it, except under the two that clamp and under "projected".
var Updates = map[string]Update{
	"eg":                 EG,
	"eg-clamp-normalize": EGClampNormalize,
	"eg-normalize-clamp": EGNormalizeClamp,
	"projected":          Projected,
	"softmax":            SoftmaxSGD,
}

// CheckUpdate returns an error that lists the known names where name is not one of Updates.
func CheckUpdate(name string) error {
	if _, ok := Updates[name]; ok {
		return nil
	}
	return own.Unknown("update", name, Updates, "simplex.Updates")
}

// EG is one exponentiated-gradient step, mirror descent on a product of
// simplices with the entropic mirror map φ(θ) = Σᵢ θᵢ log θᵢ (Li+ 2021, eq. 8):
//
//	θₜ₊₁ = θₜ ⊙ exp(−η ∇ₜ) / ‖θₜ ⊙ exp(−η ∇ₜ)‖₁ .
//
// It works on log θ, so that a row whose mass sits on one operation neither overflows nor turns into NaN. A weight of
// zero stays zero; a positive one stays positive, as it does in exact arithmetic: where it would underflow it becomes
// the smallest normal number (1e-38 in float32), from which it can come back. A row of zeros is no simplex and gives
// NaN. It is a graph function: it panics if the shapes differ or if η is negative.
func EG(theta, grad *Node, eta float64) *Node {
	mustFit("EG", theta, grad, eta)
	return stayPositive(theta, Softmax(descend(theta, grad, eta), -1))
}

// clampAt is the smallest weight in GAEA's code.
const clampAt = 1e-5

// EGClampNormalize is EG as in the code of GAEA PC-DARTS and GAEA DARTS (liamcli/gaea_release@1604615,
// architect_edarts.py): the product is clamped before it is normalised,
//
//	u = max(θₜ ⊙ exp(−η ∇ₜ), 1e-5),   θₜ₊₁ = u / ‖u‖₁ .
//
// This departs from eq. 8: the clamp bears on the product itself, so the step depends on the mean of ∇ in a row;
// operations of weight zero come back; and the entropy cannot fall to 0. Rows sum to 1. Panics as EG does.
func EGClampNormalize(theta, grad *Node, eta float64) *Node {
	mustFit("EGClampNormalize", theta, grad, eta)
	step := atLeast(MulScalar(grad, eta), -1e30) // exp(1e30) stands for all that is more
	u := Sub(Log(theta), step)
	return Softmax(atLeast(u, math.Log(clampAt)), -1)
}

// EGNormalizeClamp is EG as in the code of GAEA GDAS
// (liamcli/gaea_release@1604615, architect_egdas.py): normalised, then clamped,
//
//	θₜ₊₁ = max(EG(θₜ), 1e-5) .
//
// Rows need not sum to 1: they may exceed it by up to 1e-5·(|O|−1). Operations
// of weight zero come back. Panics as EG does.
func EGNormalizeClamp(theta, grad *Node, eta float64) *Node {
	return atLeast(EG(theta, grad, eta), clampAt)
}

// Projected is one projected-gradient step in the Euclidean geometry, exact:
//
//	θₜ₊₁ = arg min_{u ∈ Θ} ‖u − (θₜ − η ∇ₜ)‖₂ = max(y − τ, 0),   y = θₜ − η ∇ₜ .
//
// The threshold of a row is τ = maxᵢ (Σ_{j: yⱼ ≥ yᵢ} yⱼ − 1) / |{j: yⱼ ≥ yᵢ}|, because Σ_{j∈S} (yⱼ − τ) ≤ 1 for every
// set S, with equality for the support of the projection. That takes |O|² numbers a row and no sort. Panics as EG does.
func Projected(theta, grad *Node, eta float64) *Node {
	mustFit("Projected", theta, grad, eta)
	y := Sub(theta, MulScalar(Sub(grad, ReduceAndKeep(grad, ReduceMin, -1)), eta))
	// The projection does not see a shift of a row, nor what lies 1 or more
	// below its maximum: with the maximum at 0 no sum loses the 1.
	y = atLeast(Sub(y, ReduceAndKeep(y, ReduceMax, -1)), -1)

	n := theta.Shape().Dim(-1)
	pairs := append(slices.Clone(theta.Shape().Dimensions), n) // [..., i, j]
	yi := BroadcastToDims(InsertAxes(y, -1), pairs...)
	yj := BroadcastToDims(InsertAxes(y, -2), pairs...)
	above := GreaterOrEqual(yj, yi)
	sum := ReduceSum(Where(above, yj, ZerosLike(yj)), -1)
	count := ReduceSum(ConvertDType(above, y.DType()), -1)
	tau := ReduceAndKeep(Div(AddScalar(sum, -1), count), ReduceMax, -1)
	return atLeast(Sub(y, tau), 0)
}

// SoftmaxSGD is one step of plain SGD on logits z with θ = softmax(z), written
// on θ, so that it needs no state: with J = diag(θ) − θθᵀ, ∂f/∂z = J ∇ and
//
//	θₜ₊₁ = softmax(zₜ − η J ∇ₜ),   zₜ = log θₜ,   J ∇ = θ ⊙ (∇ − ⟨θ, ∇⟩) .
//
// A softmax does not see that log θ is z but for a constant a row. DARTS's own optimizer is Adam on z, which has state
// and is not this. A weight of zero (a logit of −∞) stays zero. Rows of θ must sum to 1. Panics as EG does.
func SoftmaxSGD(theta, grad *Node, eta float64) *Node {
	mustFit("SoftmaxSGD", theta, grad, eta)
	mean := ReduceAndKeep(Mul(theta, grad), ReduceSum, -1)
	gradZ := Mul(theta, Sub(grad, mean))
	return stayPositive(theta, Softmax(descend(theta, gradZ, eta), -1))
}

// descend returns log θ − η·step, shifted in each row so that the operation of positive weight with the smallest step
// has log θ: softmax does not see the shift, and nothing overflows upwards.
func descend(theta, step *Node, eta float64) *Node {
	zero := ScalarZero(theta.Graph(), theta.DType())
	among := Where(GreaterThan(theta, zero), step, Infinity(theta.Graph(), theta.DType(), 1))
	least := ReduceAndKeep(among, ReduceMin, -1)
	// Below 0 only where θ is 0, where the step means nothing.
	down := atLeast(Sub(step, least), 0)
	return Sub(Log(theta), MulScalar(down, eta))
}

// stayPositive raises next to the smallest normal number where θ is positive.
func stayPositive(theta, next *Node) *Node {
	tiny := Scalar(theta.Graph(), theta.DType(), smallestNormal(theta.DType()))
	lost := And(GreaterThan(theta, ScalarZero(theta.Graph(), theta.DType())), LessThan(next, tiny))
	return Where(lost, tiny, next)
}

func smallestNormal(dtype dtypes.DType) float64 {
	switch dtype {
	case dtypes.Float64:
		return 0x1p-1022
	case dtypes.Float16:
		return 0x1p-14
	default: // float32 and bfloat16
		return 0x1p-126
	}
}

// atLeast is max(x, least), but NaN stays NaN on every backend.
func atLeast(x *Node, least float64) *Node {
	bound := Scalar(x.Graph(), x.DType(), least)
	return Where(LessThan(x, bound), bound, x)
}

func mustFit(name string, theta, grad *Node, eta float64) {
	if !theta.Shape().Equal(grad.Shape()) {
		panic(fmt.Errorf("simplex.%s: theta has shape %s and its gradient %s: they must be equal", name, theta.Shape(),
			grad.Shape()))
	}
	if !theta.DType().IsFloat() || theta.Rank() == 0 {
		panic(fmt.Errorf("simplex.%s: theta has shape %s: it must be a float of shape [..., options]", name,
			theta.Shape()))
	}
	if !(eta >= 0 && eta <= math.MaxFloat32) {
		panic(fmt.Errorf("simplex.%s: the step size is %v: it must be finite and not negative", name, eta))
	}
}

var shipped = maps.Clone(Updates)

// UpdateKey names an entry of [Updates] in the key of a trial: one of this package by its name, a reader's by what it
// computes, so that an edited body is recomputed and a new name is not. It returns an error if there is no such entry,
// and where it cannot be known by what it computes because it is random or has a state.
func UpdateKey(name string) (string, error) {
	return own.Entry("update", name, "simplex.Updates", Updates, shipped, func(update Update) (probes []own.Probe) {
		for _, eta := range []float64{0, 0.1, 3} {
			of := func(in []*Node) []*Node { return []*Node{update(in[0], in[1], eta)} }
			for _, point := range probePoints {
				probes = append(probes, own.Probe{Of: of, Inputs: []any{point.theta, point.grad}})
			}
		}
		return probes
	})
}

// probePoints are uniform and uneven rows, one next to a vertex and one on it,
// of two to eight options, under gradients of both signs and several sizes.
var probePoints = []struct{ theta, grad any }{
	{[][]float64{{0.5, 0.5}, {0.9, 0.1}}, [][]float64{{1, -1}, {0.3, 0.2}}},
	{
		[][]float64{
			{0.2, 0.2, 0.2, 0.2, 0.2}, {0.1, 0.4, 0.05, 0.25, 0.2}, {1 - 4e-6, 1e-6, 1e-6, 1e-6, 1e-6}, {0, 1, 0, 0, 0},
		},
		[][]float64{{0.3, -0.2, 0.05, 0, 1}, {-2, 0.7, 0.1, 5, -0.01}, {1, -1, 30, -0.5, 0}, {1e-3, -1e-3, 0.4, -7, 2}},
	},
	{
		[][][]float64{
			{{0.125, 0.125, 0.125, 0.125, 0.125, 0.125, 0.125, 0.125}},
			{{0.3, 0.05, 0.15, 0.02, 0.18, 0.1, 0.12, 0.08}},
		},
		[][][]float64{{{1, 2, 3, 4, -1, -2, -3, -4}}, {{0.1, -0.2, 0.3, -0.4, 0.5, -0.6, 0.7, 0}}},
	},
}

// XNAS are the settings of XNAS's update (Nayman+ 2019, "XNAS: Neural Architecture Search with Expert Advice",
// Algorithm 1; compared with GAEA in Li+ 2021, Appendix C.4): exponentiated gradient with gradients clipped for each
// example, and a wipe-out of operations that can no longer win.
//
// With N = |O|, T' the number of examples of the whole search (Steps batches of
// B) and n of those seen, this batch included, a step is
//
//	G    = Σ_b clip(∇_b, −L, L)                       over the batch, elementwise
//	v    = θ ⊙ exp(−η G)
//	v_i ← 0  where  v_i < max_j v_j · exp(−2ηL (T'−n))
//	θ'   = v / ‖v‖₁
//	η    = √(2 ln N / (T' L²))                        unless Eta is set.
//
// An operation gains at most exp(2ηL) on another by an example, so what is wiped out could not even have tied: for the
// same gradients the arg max at the end is the same with and without wipe-out. At the last step nothing but the best
// operation of a row is left, or those tied for it.
//
// XNAS's search code is not public. The formulas are those of the public re-implementation in microsoft/archai
// (supergraph/algos/xnas), which also reports from XNAS's authors that a step is made for each example. What stays
// open, and what is done here:
//
//   - the batch: the gradients of its B examples are taken at the same θ, and
//     their B steps are made together, as a sum; T' counts examples. With Mean
//     it is one step a batch with the mean of the clipped gradients, T' = Steps.
//     Li+ say only that gradients are clipped before they are aggregated;
//   - the clip: L bounds |∂ℓ/∂θ_o| of an example, so it is elementwise, on the
//     gradient summed over the cells that share θ. archai takes each cell as a
//     step of its own and counts T' times the cells: set Eta for that rate;
//   - L itself, for which Li+ give no value.
type XNAS struct {
	Steps   int     // T: architecture steps (batches) of the whole search; must be positive
	Bound   float64 // L: largest |∂ℓ/∂θ| of an example; if 0 it is 1
	Eta     float64 // η: step size; if 0 it is √(2 ln N / (T' L²))
	Mean    bool    // a batch is one step with its mean gradient, not B steps
	KeepAll bool    // no wipe-out
}

// Check returns an error if a setting is out of range.
func (x XNAS) Check() error {
	switch {
	case x.Steps <= 0:
		return fmt.Errorf("XNAS: Steps is %d: set it to the number of architecture steps of the whole search", x.Steps)
	case !(x.Bound >= 0) || math.IsInf(x.Bound, 0):
		return fmt.Errorf("XNAS: Bound is %v: it must be positive and finite, or 0 for 1", x.Bound)
	case !(x.Eta >= 0) || math.IsInf(x.Eta, 0):
		return fmt.Errorf("XNAS: Eta is %v: it must be positive and finite, or 0 for Nayman+'s", x.Eta)
	}
	return nil
}

// Rate returns the step size η for rows of so many options and batches of so
// many examples: Eta, or √(2 ln options / (T' L²)).
func (x XNAS) Rate(options, batch int) float64 {
	if x.Eta > 0 {
		return x.Eta
	}
	horizon := float64(x.Steps) * x.perBatch(batch)
	return math.Sqrt(2*math.Log(float64(options))/horizon) / x.bound()
}

// Step returns θ after one batch. theta has shape [|E|, |O|]; grads has shape [B, |E|, |O|] and holds each example's
// gradient of its own loss (B times the gradient of the batch's mean loss at one copy of θ for each example); t is a
// scalar, the number of steps done before, 0 at the first. From t ≥ T−1 on only the best operations are left. It is a
// graph function: it panics with the shapes where they do not fit, and where a setting is out of range.
func (x XNAS) Step(theta, grads, t *Node) *Node {
	if err := x.Check(); err != nil {
		panic(err)
	}
	if theta.Rank() != 2 || grads.Rank() != 3 ||
		!slices.Equal(grads.Shape().Dimensions[1:], theta.Shape().Dimensions) ||
		grads.DType() != theta.DType() || !theta.DType().IsFloat() || !t.IsScalar() {
		panic(fmt.Errorf("XNAS: theta has shape %s, grads %s and t %s: they must be [edges, options], [batch, "+
			"edges, options] and a scalar",
			theta.Shape(), grads.Shape(), t.Shape()))
	}
	batch, bound := grads.Shape().Dim(0), x.bound()
	eta := x.Rate(theta.Shape().Dim(-1), batch)

	g := ReduceSum(atMost(atLeast(grads, -bound), bound), 0)
	if x.Mean {
		g = MulScalar(g, 1/float64(batch))
	}
	logV := descend(theta, g, eta) // log v, shifted in each row
	if !x.KeepAll {
		left := AddScalar(MulScalar(ConvertDType(t, theta.DType()), -1), float64(x.Steps-1)) // T − t − 1
		reach := MulScalar(atLeast(left, 0), 2*eta*bound*x.perBatch(batch))                  // what can be made up for
		threshold := Sub(ReduceAndKeep(logV, ReduceMax, -1), reach)
		out := LessThan(logV, BroadcastToShape(threshold, logV.Shape()))
		logV = Where(out, Infinity(theta.Graph(), theta.DType(), -1), logV)
		theta = Where(out, ZerosLike(theta), theta)
	}
	return stayPositive(theta, Softmax(logV, -1))
}

func (x XNAS) bound() float64 {
	if x.Bound == 0 {
		return 1
	}
	return x.Bound
}

// atMost is min(x, most), but NaN stays NaN on every backend.
func atMost(x *Node, most float64) *Node { return Neg(atLeast(Neg(x), -most)) }

// perBatch is the number of Algorithm 1's steps that a batch stands for.
func (x XNAS) perBatch(batch int) float64 {
	if x.Mean {
		return 1
	}
	return float64(batch)
}
