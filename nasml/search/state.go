package search

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/nasml/lab/nasml/runs"
)

// initial is the state before the search: weights, momentum 0, running
// statistics, α or θ, slots 0.
func (s *Searcher) initial(seed uint64) []*tensors.Tensor {
	state := s.net.InitWeights(runs.RNG(seed, "weights"))
	for _, w := range s.net.Weights() {
		state = append(state, zeros(w.Dims...))
	}
	state = append(state, s.net.InitStats()...)
	edges, ops := len(s.space.Edges), len(s.space.Ops)
	state = append(state, tensors.FromFlatDataAndDimensions(s.initialArchitecture(seed), edges, ops))
	extra := s.slots()
	if s.clipsBoth() {
		extra++ // the gradient that was left over
	}
	for range extra {
		state = append(state, zeros(edges, ops))
	}
	return state
}

func zeros(dims ...int) *tensors.Tensor {
	return tensors.FromShape(shapes.Make(dtypes.Float32, dims...))
}

// initialArchitecture is α, 0 or 10⁻³·N(0, 1), or the uniform θ.
func (s *Searcher) initialArchitecture(seed uint64) []float32 {
	flat := make([]float32, len(s.space.Edges)*len(s.space.Ops))
	rng := runs.RNG(seed, "architecture")
	for i := range flat {
		switch {
		case s.method.Hold == OnSimplex:
			flat[i] = 1 / float32(len(s.space.Ops))
		case s.Start == "normal":
			flat[i] = float32(1e-3 * rng.NormFloat64())
		}
	}
	return flat
}

// initialTheta is softmax(α) or θ at the start.
func (s *Searcher) initialTheta(seed uint64) []float64 {
	columns := len(s.space.Ops)
	flat := make([]float64, 0, len(s.space.Edges)*columns)
	for _, x := range s.initialArchitecture(seed) {
		flat = append(flat, float64(x))
	}
	if s.method.Hold == OnSimplex {
		return flat
	}
	for _, row := range rows(flat, columns) {
		sum := 0.0
		for _, x := range row {
			sum += math.Exp(x)
		}
		for i, x := range row {
			row[i] = math.Exp(x) / sum
		}
	}
	return flat
}

// float64s reads a float32 tensor and frees it.
func float64s(t *tensors.Tensor) ([]float64, error) {
	single, err := tensors.CopyFlatData[float32](t)
	if err != nil {
		return nil, err
	}
	if err := t.FinalizeAll(); err != nil {
		return nil, err
	}
	out := make([]float64, len(single))
	for i, v := range single {
		out[i] = float64(v)
	}
	return out, nil
}

// keep saves a run, where there is something to save to.
func (r *run) keep(o Options) error {
	if o.Save == nil || r.at.Epoch+r.at.Step == 0 {
		return nil
	}
	return o.Save(r.save)
}

// tensors are all that a checkpoint holds besides the position.
func (r *run) tensors() []*tensors.Tensor {
	if r.control == nil {
		return r.state
	}
	return append(append([]*tensors.Tensor{}, r.state...), r.control.state...)
}

// save writes the position as JSON with its length before it, θ, and the bytes
// of every tensor of the state. What is random is a function of seed, epoch and
// step, so that a generator has no state to keep.
func (r *run) save(w io.Writer) error {
	head, err := json.Marshal(checkpoint{r.at, r.theta})
	if err != nil {
		return err
	}
	if err := binary.Write(w, binary.LittleEndian, uint64(len(head))); err != nil {
		return err
	}
	if _, err := w.Write(head); err != nil {
		return err
	}
	for _, t := range r.tensors() {
		var writeErr error
		if err := t.ConstBytes(func(data []byte) { _, writeErr = w.Write(data) }); err != nil {
			return err
		}
		if writeErr != nil {
			return writeErr
		}
	}
	return nil
}

type checkpoint struct {
	Position position  `json:"position"`
	Theta    []float64 `json:"theta"`
}

// load reads what save wrote.
func (r *run) load(from io.Reader) error {
	wrap := func(err error) error { return fmt.Errorf("reading the checkpoint: %w", err) }
	var length uint64
	if err := binary.Read(from, binary.LittleEndian, &length); err != nil {
		return wrap(err)
	}
	const limit = 1 << 28
	if length > limit {
		return wrap(fmt.Errorf("a head of %d bytes, at most %d expected", length, limit))
	}
	head := make([]byte, length)
	if _, err := io.ReadFull(from, head); err != nil {
		return wrap(err)
	}
	var c checkpoint
	if err := json.Unmarshal(head, &c); err != nil {
		return wrap(err)
	}
	for _, t := range r.tensors() {
		var readErr error
		if err := t.MutableBytes(func(data []byte) { _, readErr = io.ReadFull(from, data) }); err != nil {
			return wrap(err)
		}
		if readErr != nil {
			return wrap(readErr)
		}
	}
	r.at, r.theta = c.Position, c.Theta
	return nil
}
