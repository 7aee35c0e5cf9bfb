package search

import (
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/nasml/lab/nasml/internal/checkpoint"
	"github.com/nasml/lab/nasml/trial"
)

func (s *Runner) initial(seed uint64) []*tensors.Tensor {
	var theta []*tensors.Tensor
	flat := s.initialArchitecture(seed)
	for _, b := range s.product {
		n := b.Rows * b.Options
		theta = append(theta, tensors.FromFlatDataAndDimensions(flat[:n:n], b.Rows, b.Options))
		flat = flat[n:]
	}
	return s.State(s.net.InitWeights(trial.RNG(seed, "weights")), s.net.InitStats(), theta)
}

func zeros(dims ...int) *tensors.Tensor {
	return tensors.FromShape(shapes.Make(dtypes.Float32, dims...))
}

// initialArchitecture is α, 0 or 10⁻³·N(0, 1), or the uniform θ, block by block.
func (s *Runner) initialArchitecture(seed uint64) []float32 {
	var flat []float32
	rng := trial.RNG(seed, "architecture")
	for _, b := range s.product {
		for range b.Rows * b.Options {
			x := float32(0)
			switch {
			case s.method.Hold == OnSimplex:
				x = 1 / float32(b.Options)
			case s.Start == "normal":
				x = float32(1e-3 * rng.NormFloat64())
			}
			flat = append(flat, x)
		}
	}
	return flat
}

// initialTheta is softmax(α) or θ at the start.
func (s *Runner) initialTheta(seed uint64) []float64 {
	var flat []float64
	for _, x := range s.initialArchitecture(seed) {
		flat = append(flat, float64(x))
	}
	if s.method.Hold == OnSimplex {
		return flat
	}
	for _, block := range Blocks(s.product, flat) {
		for _, row := range block { // a part of flat
			sum := 0.0
			for _, x := range row {
				sum += math.Exp(x)
			}
			for i, x := range row {
				row[i] = math.Exp(x) / sum
			}
		}
	}
	return flat
}

// bounded rejects a state that is not finite before it replaces one that is.
func (r *run) bounded() error {
	for _, t := range r.tensors() {
		if t.DType() != dtypes.Float32 {
			continue
		}
		flat, err := tensors.CopyFlatData[float32](t)
		if err != nil {
			return err
		}
		for _, x := range flat {
			if bad(float64(x)) {
				return r.diverged(fmt.Sprintf("after this step the state has a number that is %v", x))
			}
		}
	}
	return nil
}

// tensors are all that a checkpoint holds besides the position.
func (r *run) tensors() []*tensors.Tensor {
	if r.control == nil {
		return r.state()
	}
	return slices.Concat(r.state(), r.control.state)
}

// place is the head of a checkpoint. Randomness is a function of seed, epoch and step: there is no generator to keep.
type place struct {
	Position position  `json:"position"`
	Theta    []float64 `json:"theta"`
	Shapes   []string  `json:"shapes"` // of the tensors behind it
}

func (r *run) save(w io.Writer) error {
	return checkpoint.Write(w, place{r.at, r.theta, checkpoint.Shapes(r.tensors())}, r.tensors()...)
}

func (r *run) load(from io.Reader) error {
	var p place
	if err := checkpoint.Read(from, &p, r.tensors()...); err != nil {
		return err
	}
	if !slices.Equal(p.Shapes, checkpoint.Shapes(r.tensors())) || len(p.Theta) != len(r.theta) {
		return fmt.Errorf("the checkpoint has %d tensors and θ of %d numbers: %w", len(p.Shapes), len(p.Theta),
			checkpoint.ErrOther)
	}
	r.at, r.theta = p.Position, p.Theta
	return nil
}
