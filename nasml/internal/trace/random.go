package trace

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/gomlx/gomlx/core/tensors"
)

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
