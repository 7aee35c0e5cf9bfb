package trace

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	"github.com/gomlx/gomlx/core/tensors"

	"github.com/nasml/lab/nasml/bilevel"
	"github.com/nasml/lab/nasml/internal/limits"
	"github.com/nasml/lab/nasml/search"
	"github.com/nasml/lab/nasml/simplex"
	"github.com/nasml/lab/nasml/supernet"
)

// Settings say what a trace's steps compute; the package comment says how.
type Settings struct {
	Source string `json:"source,omitempty"`

	Space        string   `json:"space"`
	Ops          []string `json:"ops"`
	Channels     int      `json:"channels" validate:"gte=1"`
	Cells        int      `json:"cells" validate:"gte=1"`
	Image        int      `json:"image" validate:"gte=4"`
	Classes      int      `json:"classes" validate:"gte=1"`
	Affine       bool     `json:"affine"`
	ConvBias     bool     `json:"conv_bias"`
	TrackStats   bool     `json:"track_stats"`
	TrackOutside bool     `json:"track_outside"`

	Method        string  `json:"method"`
	Order         string  `json:"order"`
	Hypergradient string  `json:"hypergradient"`
	Steps         int     `json:"steps" validate:"gte=1"`
	LearningRate  float64 `json:"learning_rate" validate:"gt=0"`
	Momentum      float64 `json:"momentum" validate:"gte=0"`
	WeightDecay   float64 `json:"weight_decay" validate:"gte=0"`
	Nesterov      bool    `json:"nesterov"`
	Clip          float64 `json:"clip" validate:"gte=0"`
	ClipCovers    string  `json:"clip_covers"`
	Unused        string  `json:"unused"`

	Update          string  `json:"update"`
	ArchRate        float64 `json:"arch_rate" validate:"gt=0"`
	ArchBeta1       float64 `json:"arch_beta1" validate:"gte=0,lt=1"`
	ArchBeta2       float64 `json:"arch_beta2" validate:"gte=0,lt=1"`
	ArchEpsilon     float64 `json:"arch_epsilon" validate:"gt=0"`
	ArchWeightDecay float64 `json:"arch_weight_decay" validate:"gte=0"`
	EntropyWeight   float64 `json:"entropy_weight" validate:"gte=0"`
	Tau             float64 `json:"tau" validate:"gt=0"`
}

func standard() Settings {
	return Settings{
		Space: supernet.NASBench201.Name, Steps: 1, Tau: 1, ArchEpsilon: 1e-8, Unused: unusedOnce,
		Order: bilevel.ArchitectureFirst, Hypergradient: "first-order", ClipCovers: bilevel.ClipWeights,
	}
}

// Values of Settings.Unused.
const (
	unusedOnce = "zero-once-sampled"
	unusedZero = "zero"
	unusedSkip = "skip"
)

// method is what tells the methods apart.
type method struct {
	parameter string // "alpha": a softmax makes it θ
	sampled   bool
}

var methods = map[string]method{
	"darts":      {"alpha", false},
	"gaea-darts": {"theta", false},
	"gdas":       {"alpha", true},
	"gaea-gdas":  {"theta", true},
}

func parse(text string) (Settings, error) {
	s := standard()
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return s, fmt.Errorf("settings: found %.60q, expected JSON as in the comment of package trace: %w", text, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return s, fmt.Errorf("settings: found %.60q after the JSON, expected nothing more", text[d.InputOffset():])
	}
	if s.Ops == nil {
		s.Ops = supernet.Spaces[s.Space].Ops
	}
	return s, s.Check()
}

// words is where a word of a field's name begins: LearningRate is learning_rate in JSON.
var words = regexp.MustCompile("([a-z])([A-Z])")

// Check returns every invalid setting: the field, what it is, what it may be.
func (s Settings) Check() error {
	var errs []error
	expect := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("settings: "+format, args...))
		}
	}
	oneOf := func(name, value string, allowed ...string) {
		list := strings.Join(allowed, ", ")
		expect(slices.Contains(allowed, value), "%s must be one of %s, got %q", name, list, value)
	}
	ofTheta := methods[s.Method].parameter == "theta"
	oneOf("space", s.Space, slices.Sorted(maps.Keys(supernet.Spaces))...)
	oneOf("method", s.Method, slices.Sorted(maps.Keys(methods))...)
	oneOf("order", s.Order, bilevel.ArchitectureFirst, bilevel.WeightsFirst)
	oneOf("hypergradient", s.Hypergradient, "first-order", "unrolled", "finite-difference")
	oneOf("clip_covers", s.ClipCovers, bilevel.ClipWeights, bilevel.ClipWeightsAndArchitecture)
	oneOf("unused", s.Unused, unusedOnce, unusedZero, unusedSkip)
	if ofTheta {
		oneOf("update", s.Update, slices.Sorted(maps.Keys(simplex.Updates))...)
	} else {
		oneOf("update", s.Update, "adam", "sgd")
	}
	for _, broken := range limits.Broken(s) {
		field, must, _ := strings.Cut(broken, " ")
		expect(false, "%s %s", strings.ToLower(words.ReplaceAllString(field, "${1}_$2")), must)
	}
	expect(s.EntropyWeight == 0 || ofTheta, "entropy_weight must be 0 with method %s, whose architecture is α, got %v",
		s.Method, s.EntropyWeight)
	expect(!s.leavesBetween() || s.Hypergradient == "first-order",
		"hypergradient must be first-order with order %q in a method that samples, got %q: weights of operations that "+
			"were not sampled must stay as they are between the passes", s.Order, s.Hypergradient)
	expect(!s.TrackStats && !s.TrackOutside || s.Hypergradient == "first-order",
		"track_stats or track_outside with hypergradient %q: which of its passes move the running statistics is not "+
			"agreed on", s.Hypergradient)
	return firstFew(errs)
}

// leavesBetween reports whether weights that were not sampled are restored before the architecture's pass.
func (s Settings) leavesBetween() bool {
	return s.leaves() && s.Order == bilevel.WeightsFirst
}

func (s Settings) leaves() bool {
	return methods[s.Method].sampled && s.Unused != unusedZero
}

func (s Settings) net() (*supernet.Net, error) {
	space := supernet.Spaces[s.Space]
	space.Ops = s.Ops
	return supernet.New(supernet.Config{
		Space: space, Channels: s.Channels, Cells: s.Cells, Image: s.Image, Classes: s.Classes,
		Affine: s.Affine, ConvBias: s.ConvBias, TrackStats: s.TrackStats, TrackOutside: s.TrackOutside,
	})
}

func (s Settings) search() search.Settings {
	return search.Settings{
		Method: s.Method, Epochs: 1, Momentum: s.Momentum, WeightDecay: s.WeightDecay, Nesterov: s.Nesterov,
		Bilevel: bilevel.Settings{
			Order: s.Order, Clip: s.Clip, ClipCovers: s.ClipCovers, Hypergradient: s.Hypergradient,
		},
		Update: s.Update, ArchRate: s.ArchRate, ArchBeta1: s.ArchBeta1, ArchBeta2: s.ArchBeta2,
		ArchEpsilon: s.ArchEpsilon, ArchWeightDecay: s.ArchWeightDecay, EntropyWeight: s.EntropyWeight,
	}
}

// Random is a trace without outputs, by seed: weights as PyTorch draws them, perturbed scales and biases of batch norm,
// normal images, a random architecture and Gumbel noise, float32.
func Random(s Settings, batch int, seed uint64) (*Trace, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	net, err := s.net()
	if err != nil {
		return nil, fmt.Errorf("settings: %w", err)
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	t := &Trace{Settings: s, Arrays: map[string]Array{}}
	for i, w := range net.InitWeights(rng) {
		a := Float32(tensors.MustCopyFlatData[float32](w), w.Shape().Dimensions...)
		if net.Weights()[i].FanIn == 0 { // batch norm
			for i := range a.Values {
				a.Values[i] += 0.1 * rng.NormFloat64()
			}
		}
		t.Arrays["weights/"+net.Weights()[i].Path] = rounded(a.permuted(toForeign(a.Dims)...))
	}
	random := func(draw func() float64, dims ...int) Array {
		a := Array{Type: "<f4", Dims: dims, Values: make([]float64, size(dims))}
		for i := range a.Values {
			a.Values[i] = draw()
		}
		return rounded(a)
	}
	edges, ops := len(net.Config.Space.Edges), len(s.Ops)
	m := methods[s.Method]
	theta := random(func() float64 { return 0.3 * rng.NormFloat64() }, edges, ops)
	if m.parameter == "theta" {
		softmax(theta.Values, ops)
		theta = rounded(theta)
	}
	t.Arrays[m.parameter] = theta
	for _, part := range []string{"train", "valid"} {
		t.Arrays[part+"_images"] = random(rng.NormFloat64, s.Steps, batch, 3, s.Image, s.Image)
		labels := random(func() float64 { return float64(rng.IntN(s.Classes)) }, s.Steps, batch)
		labels.Type = "<i4"
		t.Arrays[part+"_labels"] = labels
		if m.sampled {
			gumbel := func() float64 { return -math.Log(rng.ExpFloat64()) }
			t.Arrays["noise/"+part] = random(gumbel, s.Steps, edges, ops)
		}
	}
	return t, t.Check()
}

// Double makes all floats float64, and with them the computation.
func (t *Trace) Double() {
	for name, a := range t.Arrays {
		if a.Type == "<f4" {
			a.Type = "<f8"
			t.Arrays[name] = a
		}
	}
}

// rounded rounds to float32.
func rounded(a Array) Array {
	for i, x := range a.Values {
		a.Values[i] = float64(float32(x))
	}
	return a
}

// softmax normalizes each row of n. The maximum is subtracted first, as in PyTorch, so that ties agree.
func softmax(x []float64, n int) {
	for ; len(x) > 0; x = x[n:] {
		sum, largest := 0.0, slices.Max(x[:n])
		for i := range n {
			x[i] = math.Exp(x[i] - largest)
			sum += x[i]
		}
		for i := range n {
			x[i] /= sum
		}
	}
}
