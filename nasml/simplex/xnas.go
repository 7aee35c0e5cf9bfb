package simplex

import (
	"fmt"
	"math"
	"slices"

	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes
)

// XNAS are the settings of XNAS's update (Nayman+ 2019, "XNAS: Neural
// Architecture Search with Expert Advice", Algorithm 1; compared with GAEA in
// Li+ 2021, Appendix C.4): exponentiated gradient with gradients clipped for
// each example, and a wipe-out of operations that can no longer win.
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
// An operation gains at most exp(2ηL) on another by an example, so what is wiped
// out could not even have tied: for the same gradients the arg max at the end
// is the same with and without wipe-out. At the last step nothing but the best
// operation of a row is left, or those tied for it.
//
// XNAS's search code is not public. The formulas are those of the public
// re-implementation in microsoft/archai (supergraph/algos/xnas), which also
// reports from XNAS's authors that a step is made for each example. What stays
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

// Step returns θ after one batch. theta has shape [|E|, |O|]; grads has shape
// [B, |E|, |O|] and holds each example's gradient of its own loss (B times the
// gradient of the batch's mean loss at one copy of θ for each example); t is a
// scalar, the number of steps done before, 0 at the first. From t ≥ T−1 on only
// the best operations are left. It is a graph function: it panics with the
// shapes where they do not fit, and where a setting is out of range.
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
