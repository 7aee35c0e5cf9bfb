package bilevel

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes
)

// Values of [Settings].Level.
const (
	Bilevel = "bilevel" // w on a training part, θ on a validation part
	ERM     = "erm"     // both on all examples
)

// Values of [Settings].Order: which of the two goes first in a step. The second
// sees what the first has changed.
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

// Settings say how weights and architecture take turns. They are JSON and part
// of a trial's key.
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

	// Uncleared moves the architecture by more than its own gradient: by that and
	// the sum of ∇_θ G of all training batches since its last move, those of the
	// whole warm-up before the first. PyTorch adds gradients up until they are
	// cleared, and the programs of GAEA for NAS-Bench-1Shot1 and ImageNet clear
	// the weights' only before the weights' pass:
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
// All of it keeps the last, smaller batch of an epoch (391 steps for 25,000
// examples, 782 for 50,000). Set KeepLast to false to save the compilation of a
// second graph.
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

// KeepsGradient reports whether a step hands a gradient of the architecture on to
// the next, as [State].Stale.
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
