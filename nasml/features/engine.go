package features

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/mat"
)

// Engine compiles the graphs of random Fourier features, each once a shape, so
// one engine serves a whole search.
type Engine struct {
	backend compute.Backend
	dtype   dtypes.DType
	execs   map[string]*Exec
	blocks  int // numbers of a block's features at most
}

// NewEngine computes features and their products in float32; sums over blocks
// and all that is smaller is float64.
func NewEngine(b compute.Backend) *Engine { return NewEngineOf(b, dtypes.Float32) }

// NewEngineOf is NewEngine with float32 or float64 products. The drawn numbers
// are the same, float32 ones.
func NewEngineOf(b compute.Backend, dtype dtypes.DType) *Engine {
	return &Engine{backend: b, dtype: dtype, execs: map[string]*Exec{}, blocks: 1 << 25}
}

// Close frees the compiled graphs.
func (e *Engine) Close() {
	for _, exec := range e.execs {
		exec.Finalize()
	}
	clear(e.execs)
}

// The sizes of a block: the products want many rows, and few sizes are to be
// compiled.
const smallestBlock, largestBlock = 32, 2048

// blockSize is how many rows the next block takes of those that are left: a
// power of two, so that at most 31 rows are computed that nobody asked for.
func (e *Engine) blockSize(d, left int) int {
	size := 1 << (bits.Len(uint(left)) - 1)
	most := 1 << (bits.Len(uint(max(1, e.blocks/d))) - 1)
	return max(smallestBlock, min(size, most, largestBlock))
}

// run executes the graph of that name, which fn builds. Its outputs are on the
// device.
func (e *Engine) run(name string, fn func(in []*Node) []*Node, in ...any) ([]*tensors.Tensor, error) {
	exec, ok := e.execs[name]
	if !ok {
		var err error
		if exec, err = NewExec(e.backend, fn); err != nil {
			return nil, fmt.Errorf("building the graph %q: %w", name, err)
		}
		e.execs[name] = exec.WithName(name).SetMaxCache(-1)
		exec = e.execs[name]
	}
	out, err := exec.Exec(in...)
	if err != nil {
		return nil, fmt.Errorf("running the graph %q: %w", name, err)
	}
	return out, nil
}

// draw is a matrix of random numbers.
func (e *Engine) draw(key [2]uint32, rows, cols int, of draw) (*tensors.Tensor, error) {
	name := fmt.Sprintf("draw %s [%d, %d]", of, rows, cols)
	out, err := e.run(name, func(in []*Node) []*Node {
		return []*Node{ConvertDType(drawGraph(in[0], rows, cols, of), e.dtype)}
	}, key[:])
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

// FourierGraph is √(2/d)·cos(XW + b): x has shape [n, p] and holds inputs times
// the factor of their bandwidth, w has shape [p, d] and b [1, d]. It is a graph
// function: it panics where the shapes differ.
func FourierGraph(x, w, b *Node) *Node {
	w.AssertDims(x.Shape().Dim(1), w.Shape().Dim(1))
	d := w.Shape().Dim(1)
	b.AssertDims(1, d)
	phase := Add(Dot(x, w).Product(), b)
	return MulScalar(Cos(phase), math.Sqrt(2/float64(d)))
}

// features are those of a block, [size, d], of its inputs, [size, p].
func (e *Engine) features(x []float32, w, b *tensors.Tensor, size, d int) (*tensors.Tensor, error) {
	in := tensors.FromFlatDataAndDimensions(x, size, len(x)/size)
	defer finalize(in)
	out, err := e.run("features", func(in []*Node) []*Node {
		return []*Node{FourierGraph(ConvertDType(in[0], e.dtype), in[1], in[2])}
	}, in, w, b)
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

// mul is ΦX, [n, k] row-major, on the host.
func (e *Engine) mul(phi, x *tensors.Tensor) ([]float64, error) {
	out, err := e.run("mul", func(in []*Node) []*Node { return []*Node{Dot(in[0], in[1]).Product()} }, phi, x)
	if err != nil {
		return nil, err
	}
	return download(out[0])
}

// mulTrans is YᵀΦ, [k, d] row-major, on the host. (XLA's product with Φᵀ on
// the left is several times slower on a CPU.)
func (e *Engine) mulTrans(phi *tensors.Tensor, y *mat.Dense) ([]float64, error) {
	right, err := e.upload(y)
	if err != nil {
		return nil, err
	}
	defer right.finalize()
	out, err := e.run("mulTrans", func(in []*Node) []*Node {
		return []*Node{Dot(Transpose(in[1], 0, 1), in[0]).Product()}
	}, phi, right.tensor)
	if err != nil {
		return nil, err
	}
	return download(out[0])
}

// step is the new Y, ΦX − 1·shiftᵀ − Y·diag(scale) in its first rows and 0 in
// the others, and YᵀΦ with it.
func (e *Engine) step(phi, x *tensors.Tensor, y *mat.Dense, shift, scale []float64, rows int) (newY, z []float64, err error) {
	size, k := y.Dims()
	add := mat.NewDense(size, k, nil) // −1·shiftᵀ − Y·diag(scale)
	mask := mat.NewDense(size, 1, nil)
	for i := range rows {
		to, from := add.RawRowView(i), y.RawRowView(i)
		for j := range to {
			to[j] = -shift[j] - from[j]*scale[j]
		}
		mask.Set(i, 0, 1)
	}
	onDevice := make([]uploaded, 2)
	for i, m := range []*mat.Dense{add, mask} {
		if onDevice[i], err = e.upload(m); err != nil {
			return nil, nil, err
		}
		defer onDevice[i].finalize()
	}
	out, err := e.run("step", func(in []*Node) []*Node {
		phi, x, add, mask := in[0], in[1], in[2], in[3]
		y := Mul(Add(Dot(phi, x).Product(), add), mask)
		return []*Node{y, Dot(Transpose(y, 0, 1), phi).Product()}
	}, phi, x, onDevice[0].tensor, onDevice[1].tensor)
	if err != nil {
		return nil, nil, err
	}
	if newY, err = download(out[0]); err != nil {
		return nil, nil, err
	}
	z, err = download(out[1])
	return newY, z, err
}

// uploaded is a matrix for the device.
type uploaded struct{ tensor *tensors.Tensor }

func (u uploaded) finalize() { finalize(u.tensor) }

func finalize(t *tensors.Tensor) { _ = t.FinalizeAll() } // nothing to be done where that fails

// upload makes a matrix a tensor of the engine's type.
func (e *Engine) upload(m *mat.Dense) (uploaded, error) {
	rows, cols := m.Dims()
	if e.dtype == dtypes.Float64 {
		return uploaded{tensors.FromFlatDataAndDimensions(flat(m), rows, cols)}, nil
	}
	if e.dtype != dtypes.Float32 {
		return uploaded{}, fmt.Errorf("random Fourier features: found products of type %s, expected float32 or float64", e.dtype)
	}
	data := make([]float32, 0, rows*cols)
	for _, v := range flat(m) {
		data = append(data, float32(v))
	}
	return uploaded{tensors.FromFlatDataAndDimensions(data, rows, cols)}, nil
}

// flat are the entries of a matrix, row by row.
func flat(m *mat.Dense) []float64 {
	raw := m.RawMatrix()
	if raw.Stride == raw.Cols {
		return raw.Data[:raw.Rows*raw.Cols]
	}
	out := make([]float64, 0, raw.Rows*raw.Cols)
	for i := range raw.Rows {
		out = append(out, m.RawRowView(i)...)
	}
	return out
}

// download takes a result from the device and frees it there.
func download(t *tensors.Tensor) ([]float64, error) {
	defer finalize(t)
	out := make([]float64, t.Shape().Size())
	err := t.ConstFlatData(func(flat any) {
		switch data := flat.(type) {
		case []float32:
			for i, v := range data {
				out[i] = float64(v)
			}
		case []float64:
			copy(out, data)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("reading a result: %w", err)
	}
	return out, nil
}
