package features

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/mat"
)

// Engine compiles the graphs of random Fourier features, each once a shape, so one engine serves a whole search.
type Engine struct {
	backend compute.Backend
	execs   map[string]*Exec
	blocks  int // numbers of a block's features at most
}

// NewEngine computes features and their products in float32; sums over blocks and all that is smaller is float64.
func NewEngine(b compute.Backend) *Engine {
	return &Engine{backend: b, execs: map[string]*Exec{}, blocks: 1 << 25}
}

// Close frees the compiled graphs.
func (e *Engine) Close() {
	for _, exec := range e.execs {
		exec.Finalize()
	}
	clear(e.execs)
}

// The sizes of a block: the products want many rows, and few sizes are to be compiled.
const smallestBlock, largestBlock = 32, 2048

// blockSize is how many rows the next block takes of those that are left: a
// power of two, so that at most 31 rows are computed that nobody asked for.
func (e *Engine) blockSize(d, left int) int {
	size := 1 << (bits.Len(uint(left)) - 1)
	most := 1 << (bits.Len(uint(max(1, e.blocks/d))) - 1)
	return max(smallestBlock, min(size, most, largestBlock))
}

// run executes the graph of that name, which fn builds. Its outputs are on the device.
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
	out, err := exec.Call(in...)
	if err != nil {
		return nil, fmt.Errorf("running the graph %q: %w", name, err)
	}
	return out, nil
}

// finish waits until a graph has run, by taking one number that it computed. Calls return before, and the memory of
// inputs that the device shares with the host must not be freed until then.
func finish(out []*tensors.Tensor, err error) (*tensors.Tensor, error) {
	if err != nil {
		return nil, err
	}
	if _, err := download(out[1]); err != nil {
		finalize(out[0])
		return nil, err
	}
	return out[0], nil
}

// withOne is a result for [finish], flat.
func withOne(x *Node) []*Node {
	x = Reshape(x, x.Shape().Size())
	return []*Node{x, Slice(x, AxisElem(0))}
}

// matrix makes a flat input one of so many columns. Matrices go to and from the device flat because XLA on a CPU packs
// the right side of a product for the processor and keeps that packed form by the address of the memory, where it is an
// input as it stands: another matrix at the same address would be taken for the old one. A reshaped input is not kept,
// and costs nothing.
func matrix(flat *Node, cols int) *Node { return Reshape(flat, -1, cols) }

func (e *Engine) draw(key [2]uint32, rows, cols int, of draw) (*tensors.Tensor, error) {
	in := tensors.FromFlatDataAndDimensions(key[:], 2)
	defer finalize(in)
	return finish(e.run(fmt.Sprintf("draw %s [%d, %d]", of, rows, cols), func(in []*Node) []*Node {
		return withOne(drawGraph(in[0], rows, cols, of))
	}, in))
}

// features are √(2/d)·cos(XW + b) of a block, [size, d], of its inputs times the factor of
// their bandwidth, [size, p], W, [p, d], and b, [1, d]; all flat.
func (e *Engine) features(x []float32, w, b *tensors.Tensor, size int) (*tensors.Tensor, error) {
	in := tensors.FromFlatDataAndDimensions(x, len(x))
	defer finalize(in)
	p := len(x) / size
	return finish(e.run(fmt.Sprintf("features of %d inputs", p), func(in []*Node) []*Node {
		d := in[2].Shape().Size()
		phase := Add(Dot(matrix(in[0], p), matrix(in[1], d)).Product(), matrix(in[2], d))
		return withOne(MulScalar(Cos(phase), math.Sqrt(2/float64(d))))
	}, in, w, b))
}

// mul is ΦX, [n, k] row-major, on the host.
func (e *Engine) mul(phi *tensors.Tensor, x uploaded) ([]float64, error) {
	out, err := e.run(x.name("mul"), func(in []*Node) []*Node {
		return []*Node{Dot(matrix(in[0], x.rows), matrix(in[1], x.cols)).Product()}
	}, phi, x.tensor)
	if err != nil {
		return nil, err
	}
	return download(out[0])
}

// mulTrans is YᵀΦ, [k, d] row-major, on the host. (XLA's product with Φᵀ on the left is several times slower on a CPU.)
func (e *Engine) mulTrans(phi *tensors.Tensor, y *mat.Dense) ([]float64, error) {
	right := upload(y)
	defer right.finalize()
	out, err := e.run(right.name("mulTrans"), func(in []*Node) []*Node {
		d := in[0].Shape().Size() / right.rows
		return []*Node{Dot(Transpose(matrix(in[1], right.cols), 0, 1), matrix(in[0], d)).Product()}
	}, phi, right.tensor)
	if err != nil {
		return nil, err
	}
	return download(out[0])
}

// step is the new Y, ΦX − 1·shiftᵀ − Y·diag(scale) in its first rows and 0 in the others, and YᵀΦ with it.
func (e *Engine) step(
	phi *tensors.Tensor, x uploaded, y *mat.Dense, shift, scale []float64, rows int,
) (newY, z []float64, err error) {
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
	added, masked := upload(add), upload(mask)
	defer added.finalize()
	defer masked.finalize()
	out, err := e.run(x.name("step"), func(in []*Node) []*Node {
		phi, x, add, mask := matrix(in[0], x.rows), matrix(in[1], x.cols), matrix(in[2], x.cols), matrix(in[3], 1)
		y := Mul(Add(Dot(phi, x).Product(), add), mask)
		return []*Node{y, Dot(Transpose(y, 0, 1), phi).Product()}
	}, phi, x.tensor, added.tensor, masked.tensor)
	if err != nil {
		return nil, nil, err
	}
	if newY, err = download(out[0]); err != nil {
		return nil, nil, err
	}
	z, err = download(out[1])
	return newY, z, err
}

type uploaded struct {
	tensor     *tensors.Tensor
	rows, cols int
}

func (u uploaded) name(product string) string {
	return fmt.Sprintf("%s [%d, %d]", product, u.rows, u.cols)
}

func (u uploaded) finalize() { finalize(u.tensor) }

func finalize(t *tensors.Tensor) { _ = t.FinalizeAll() } // nothing to be done where that fails

func upload(m *mat.Dense) uploaded {
	rows, cols := m.Dims()
	data := make([]float32, 0, rows*cols)
	for i := range rows {
		for _, v := range m.RawRowView(i) {
			data = append(data, float32(v))
		}
	}
	return uploaded{tensors.FromFlatDataAndDimensions(data, rows*cols), rows, cols}
}

// download takes a result from the device and frees it there.
func download(t *tensors.Tensor) ([]float64, error) {
	defer finalize(t)
	if err := t.ToLocal(); err != nil { // unlike ConstFlatData alone, it waits until the device is done
		return nil, fmt.Errorf("reading a result: %w", err)
	}
	out := make([]float64, t.Shape().Size())
	err := t.ConstFlatData(func(flat any) {
		for i, v := range flat.([]float32) {
			out[i] = float64(v)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("reading a result: %w", err)
	}
	return out, nil
}
