// Package bilevel holds the two nested optimizations of a weight-sharing search,
//
//	min_θ F(w*(θ), θ)  with  w*(θ) ∈ argmin_w G(w, θ),        (Li+ 2021, eq. 2)
//
// F the validation loss and G the training loss; with F and G on the same
// examples it is empirical risk minimization (ERM, Li+ 2021, eq. 3).
//
// Five [Hypergradients] approximate ∇_θ F(w*(θ), θ). [SGD] and [Adam] step as PyTorch's do, [ClipGlobalNorm] bounds
// gradients, [Search] composes one step of weights and architecture in the order that [Settings] name. On the host,
// [Settings.Split] and [Settings.Epoch] draw the examples, and [Cosine] is a learning rate.
//
// Weights w and architecture θ are lists of nodes of any shapes and one float
// type. Graph functions panic where shapes or lengths differ, and say both.
package bilevel

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes

	"github.com/nasml/lab/nasml/trial"
)

// Loss is a scalar loss of weights and architecture on the examples that its closure holds. aux is state that the
// forward pass changes, such as the running statistics of batch norm, or nil.
type Loss func(w, theta []*Node) (loss *Node, aux []*Node)

// Problem is the pair of objectives: Inner is the training loss G(w, θ), Outer the validation loss F(w, θ).
type Problem struct{ Inner, Outer Loss }

// detach returns nodes of the same values whose past no gradient enters: in
// what is built on them, they are inputs to differentiate by.
//
// It matters where one step is built on another. New weights are a function of θ in the graph, and a plain Gradient by
// θ of a loss at them would be an unrolled hypergradient without anyone asking for it.
func detach(x []*Node) []*Node {
	return each(x, func(x *Node) *Node { return Identity(StopGradient(x)) })
}

// constant returns nodes of the same values that no gradient passes.
func constant(x []*Node) []*Node { return each(x, StopGradient) }

func each(x []*Node, f func(*Node) *Node) []*Node {
	y := make([]*Node, len(x))
	for i := range x {
		y[i] = f(x[i])
	}
	return y
}

// each2 is f of the pairs of two lists of equal shapes; what names them where they differ.
func each2(what string, x, y []*Node, f func(x, y *Node) *Node) []*Node {
	if len(x) != len(y) {
		panic(fmt.Errorf("%s: lists must have equal lengths, got %d and %d tensors", what, len(x), len(y)))
	}
	z := make([]*Node, len(x))
	for i := range x {
		if !x[i].Shape().Equal(y[i].Shape()) {
			panic(fmt.Errorf("%s: tensor %d must have equal shapes, got %s and %s", what, i, x[i].Shape(),
				y[i].Shape()))
		}
		z[i] = f(x[i], y[i])
	}
	return z
}

// inner is ⟨x, y⟩ = Σᵢ ⟨xᵢ, yᵢ⟩.
func inner(what string, x, y []*Node) *Node {
	products := each2(what, x, y, func(x, y *Node) *Node {
		return Dot(Reshape(x, x.Shape().Size()), Reshape(y, y.Shape().Size())).Product()
	})
	if len(products) == 0 {
		panic(fmt.Errorf("%s: an empty list has no inner product", what))
	}
	sum := products[0]
	for _, product := range products[1:] {
		sum = Add(sum, product)
	}
	return sum
}

// addScaled is x + c·y for a scalar c.
func addScaled(what string, x []*Node, c *Node, y []*Node) []*Node {
	return each2(what, x, y, func(x, y *Node) *Node { return Add(x, Mul(ConvertDType(c, y.DType()), y)) })
}

func gradients(f *Node, x, y []*Node) (dx, dy []*Node) {
	all := Gradient(f, slices.Concat(x, y)...)
	return all[:len(x)], all[len(x):]
}

// Values of [Settings].Level.
const (
	Bilevel = "bilevel" // w on a training part, θ on a validation part
	ERM     = "erm"     // both on all examples
)

// Values of [Settings].Order: which of the two goes first in a step. The second sees what the first has changed.
const (
	ArchitectureFirst = "architecture-first"
	WeightsFirst      = "weights-first"
)

// Values of [Settings].Pairing: how the architecture's batches are drawn.
const (
	FreshShuffle       = "fresh-shuffle"       // each step again: distinct examples, as the head of a new shuffle
	WithoutReplacement = "without-replacement" // one shuffle in turn, and a new one when it is used up
	WithReplacement    = "with-replacement"    // every example by itself, all equally likely
	Same               = "same"                // the weights' batch
)

// Values of [Settings].ClipCovers.
const (
	ClipWeights                = "weights"
	ClipWeightsAndArchitecture = "weights+architecture" // one norm over the gradients of both
)

// Settings say how weights and architecture take turns. They are JSON and part of a trial's key.
type Settings struct {
	Level         string  `json:"level"`
	Order         string  `json:"order"`
	Pairing       string  `json:"pairing"`
	KeepLast      bool    `json:"keep_last,omitempty"` // use an epoch's last, smaller batch: compiles the step twice
	Warmup        int     `json:"warmup"`              // epochs at the start that leave the architecture as it is
	Clip          float64 `json:"clip"`                // largest global norm of a gradient of the weights; 0: any
	ClipCovers    string  `json:"clip_covers,omitempty"`
	ArchClip      float64 `json:"arch_clip,omitempty"` // largest global norm of the architecture's gradient; 0: any
	Hypergradient string  `json:"hypergradient"`       // a name of [Hypergradients]

	// Uncleared moves the architecture by more than its own gradient: by that and the sum of ∇_θ G of all training
	// batches since its last move, those of the whole warm-up before the first. PyTorch adds gradients up until they
	// are cleared, and the programs of GAEA for NAS-Bench-1Shot1 and ImageNet clear the weights' only before the
	// weights' pass:
	//
	//	∇ₜ = ∇_θ F(wₜ, θₜ) + ∇_θ G(wₜ₋₁, θₜ)    (architecture first, no warm-up).
	Uncleared bool `json:"uncleared,omitempty"`

	// See [Options].
	Terms    int     `json:"terms,omitempty"`
	Damping  float64 `json:"damping,omitempty"`
	StepSize float64 `json:"step_size,omitempty"`
	Epsilon  float64 `json:"epsilon,omitempty"`
}

// AsCode is how the authors' code takes turns, by the name of the program.
//
// All of it keeps the last, smaller batch of an epoch (391 steps for 25,000 examples, 782 for 50,000). Set KeepLast to
// false to save the compilation of a second graph.
var AsCode = map[string]Settings{
	"darts":              darts,
	"darts-second-order": with(darts, func(s *Settings) { s.Hypergradient = "finite-difference" }),
	"pc-darts":           with(darts, func(s *Settings) { s.Warmup = 15 }),
	// On ImageNet the architecture's gradient is clipped, too, over operations and
	// edges; GAEA's program lets the weights go first and does not clear it.
	"pc-darts-imagenet": with(darts, func(s *Settings) { s.Pairing, s.Warmup, s.ArchClip = WithoutReplacement, 35, 5 }),
	"gaea-imagenet": with(darts, func(s *Settings) {
		s.Order, s.Pairing, s.Warmup, s.ArchClip, s.Uncleared = WeightsFirst, WithoutReplacement, 35, 5, true
	}),
	"1shot1": with(darts, func(s *Settings) { s.Pairing = WithoutReplacement }),

	// GAEA. On the DARTS space its batches are drawn as DARTS' are; on
	// NAS-Bench-201 they come from AutoDL-Projects' loader unless it is ERM.
	"gaea":                  darts,
	"gaea-nasbench201":      with(darts, func(s *Settings) { s.Pairing = WithReplacement }),
	"gaea-nasbench201-erm":  with(darts, func(s *Settings) { s.Level = ERM }),
	"gaea-nasbench201-gdas": with(darts, func(s *Settings) { s.Pairing, s.Warmup = WithReplacement, 50 }),
	// the published curves have no warm-up
	"gaea-1shot1": with(darts, func(s *Settings) { s.Pairing, s.Warmup, s.Uncleared = WithoutReplacement, 10, true }),

	// AutoDL-Projects, on NAS-Bench-201.
	"autodl-darts-v1": autoDL,
	"autodl-darts-v2": with(autoDL, func(s *Settings) {
		s.Order, s.Hypergradient = ArchitectureFirst, "finite-difference"
	}),
	"autodl-gdas": autoDL,
	"autodl-setn": with(autoDL, func(s *Settings) { s.Clip, s.ClipCovers = 0, "" }),
}

// darts is how DARTS' program takes turns, and autoDL that of DARTS-V1 in AutoDL-Projects.
var (
	darts = Settings{
		Level: Bilevel, Order: ArchitectureFirst, Pairing: FreshShuffle, KeepLast: true,
		Clip: 5, ClipCovers: ClipWeights, Hypergradient: "first-order",
	}
	autoDL = with(darts, func(s *Settings) {
		s.Order, s.Pairing, s.ClipCovers = WeightsFirst, WithReplacement, ClipWeightsAndArchitecture
	})
)

func with(s Settings, change func(*Settings)) Settings {
	change(&s)
	return s
}

// KeepsGradient reports whether a step hands a gradient of the architecture on to the next, as [State].Stale.
func (s Settings) KeepsGradient() bool {
	return s.Uncleared || s.ClipCovers == ClipWeightsAndArchitecture
}

// Options of the hypergradient for weights that sgd moves at learning rate eta.
func (s Settings) Options(sgd SGD, eta *Node) Options {
	return Options{
		Eta: eta, Momentum: sgd.Momentum, WeightDecay: sgd.WeightDecay,
		Terms: s.Terms, Damping: s.Damping, StepSize: s.StepSize, Epsilon: s.Epsilon,
	}
}

// Check returns an error for every invalid field.
func (s Settings) Check() error {
	var errs []error
	expect := func(ok bool, field string, value any, want string) {
		if !ok {
			errs = append(errs, fmt.Errorf("%s must be %s, got %#v", field, want, value))
		}
	}
	oneOf := func(field, value string, allowed ...string) {
		expect(slices.Contains(allowed, value), field, value, "one of "+strings.Join(allowed, ", "))
	}
	atLeast0 := func(field string, value float64) {
		expect(value >= 0 && !math.IsInf(value, 1), field, value, "a finite number, at least 0")
	}
	oneOf("Level", s.Level, Bilevel, ERM)
	oneOf("Order", s.Order, ArchitectureFirst, WeightsFirst)
	if s.Level == Bilevel {
		oneOf("Pairing", s.Pairing, FreshShuffle, WithoutReplacement, WithReplacement) // Same would be ERM
	} else {
		oneOf("Pairing", s.Pairing, FreshShuffle, WithoutReplacement, WithReplacement, Same)
	}
	oneOf("Hypergradient", s.Hypergradient, slices.Sorted(maps.Keys(Hypergradients))...)
	if s.Clip == 0 {
		oneOf("ClipCovers without Clip", s.ClipCovers, "", ClipWeights)
	} else {
		oneOf("ClipCovers", s.ClipCovers, ClipWeights, ClipWeightsAndArchitecture)
	}
	expect(!s.Uncleared || s.ClipCovers != ClipWeightsAndArchitecture, "Uncleared", s.Uncleared,
		"false with ClipCovers "+ClipWeightsAndArchitecture+", which keeps another gradient")
	atLeast0("Warmup", float64(s.Warmup))
	atLeast0("Clip", s.Clip)
	atLeast0("ArchClip", s.ArchClip)
	atLeast0("Damping", s.Damping)
	atLeast0("StepSize", s.StepSize)
	atLeast0("Epsilon", s.Epsilon)
	implicit := s.Hypergradient == "cg" || s.Hypergradient == "neumann"
	expect(s.Terms > 0 || s.Terms == 0 && !implicit, "Terms", s.Terms,
		"at least 1 for cg and neumann, 0 for the others")
	expect(s.StepSize != 0 || s.Hypergradient != "neumann", "StepSize", s.StepSize,
		"more than 0 for neumann, at most 1/(largest eigenvalue of the Hessian)")
	return errors.Join(errs...)
}

// Split divides the examples 0, …, n−1 into the first ⌊fraction·n⌋ for the weights and the rest for the architecture:
// in order where rng is nil, as DARTS does with fraction 0.5 (train_search.py:89-101), else shuffled. For ERM both are
// all examples, in order.
//
// It returns an error if a part would be empty.
func (s Settings) Split(n int, fraction float64, rng *rand.Rand) (train, validation []int, err error) {
	all := trial.Indices(0, max(n, 0))
	if s.Level == ERM {
		if n < 1 {
			return nil, nil, fmt.Errorf("a search needs at least 1 example, got %d", n)
		}
		return all, slices.Clone(all), nil
	}
	if rng != nil {
		all = shuffled(all, rng)
	}
	k := int(fraction * float64(len(all)))
	if !(fraction > 0 && fraction < 1) || k < 1 {
		return nil, nil, fmt.Errorf("training and validation part must both have examples, got a training part of "+
			"%v out of %d examples", fraction, n)
	}
	return all[:k:k], all[k:], nil
}

// Epoch holds the batches of an epoch: step i takes Weights[i] for the weights
// and Architecture[i] for the architecture.
type Epoch struct{ Weights, Architecture [][]int }

// Epoch draws the batches of one epoch. It is a function of its arguments and of the state of rng, so that a resumed
// run draws an epoch again from the seed of that epoch; and the weights' batches do not depend on the pairing.
//
// The weights' batches go through train in a new order. The last one, if smaller than batch, is dropped unless KeepLast
// is set, to keep one shape of the compiled step; the originals keep it. The architecture's batches come from
// validation by Pairing. They are of size batch, but for those that pair each example of the weights' batch with one
// (with-replacement, same), which are of its size, and for the end of a shuffle (without-replacement, KeepLast).
//
// It returns an error if train or validation do not fill one batch.
func (s Settings) Epoch(train, validation []int, batch int, rng *rand.Rand) (Epoch, error) {
	if batch < 1 {
		return Epoch{}, fmt.Errorf("the batch size must be at least 1, got %d", batch)
	}
	if rng == nil {
		return Epoch{}, errors.New("drawing an epoch needs a random generator seeded for this epoch")
	}
	weights := s.batches(train, batch, rng)
	if len(weights) == 0 {
		return Epoch{}, tooFew("training", len(train), batch)
	}
	next, err := s.partners(validation, batch, rng)
	if err != nil {
		return Epoch{}, err
	}
	e := Epoch{Weights: weights}
	for _, w := range weights {
		e.Architecture = append(e.Architecture, next(w))
	}
	return e, nil
}

// partners returns the function that draws the architecture's batch which goes with a weights' batch.
func (s Settings) partners(validation []int, batch int, rng *rand.Rand) (func(weights []int) []int, error) {
	enough := len(validation) >= batch || s.KeepLast && len(validation) > 0
	switch s.Pairing {
	case Same:
		return slices.Clone[[]int], nil
	case WithReplacement:
		enough = len(validation) > 0
	}
	if !enough {
		return nil, tooFew("validation", len(validation), batch)
	}
	switch s.Pairing {
	case FreshShuffle:
		order, size := slices.Clone(validation), min(batch, len(validation))
		return func([]int) []int {
			for i := range size { // the head of a Fisher–Yates shuffle, whatever order it starts from
				j := i + rng.IntN(len(order)-i)
				order[i], order[j] = order[j], order[i]
			}
			return slices.Clone(order[:size])
		}, nil
	case WithoutReplacement:
		var left [][]int
		return func([]int) []int {
			if len(left) == 0 {
				left = s.batches(validation, batch, rng)
			}
			first := left[0]
			left = left[1:]
			return first
		}, nil
	case WithReplacement:
		return func(weights []int) []int {
			drawn := make([]int, len(weights))
			for i := range drawn {
				drawn[i] = validation[rng.IntN(len(validation))]
			}
			return drawn
		}, nil
	}
	return nil, errors.Join(fmt.Errorf("no pairing is called %q", s.Pairing), s.Check())
}

// batches cuts a new order of the examples into batches, the last one by KeepLast.
func (s Settings) batches(examples []int, size int, rng *rand.Rand) [][]int {
	all := slices.Collect(slices.Chunk(shuffled(examples, rng), size))
	if n := len(all); n > 0 && len(all[n-1]) < size && !s.KeepLast {
		all = all[:n-1]
	}
	return all
}

func tooFew(part string, have, batch int) error {
	return fmt.Errorf("the %s part has %d examples, which do not fill one batch of %d: take more examples, a "+
		"smaller batch, or KeepLast", part, have, batch)
}

func shuffled(x []int, rng *rand.Rand) []int {
	x = slices.Clone(x)
	rng.Shuffle(len(x), func(i, j int) { x[i], x[j] = x[j], x[i] })
	return x
}
