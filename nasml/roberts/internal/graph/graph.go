// Package graph is computation graphs with a mixture of operations on each edge,
// and what Roberts+ say of them in Section 5.
package graph

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/nasml/lab/nasml/roberts/internal/mixture"
	"github.com/nasml/lab/nasml/supernet"
	"github.com/nasml/lab/nasml/trial"
)

// MostArchitectures are summed over.
const MostArchitectures = 1 << 17

// Trial is a computation graph: what a record of one depends on.
type Trial struct {
	Space         supernet.Space `json:"space"`
	Concentration float64        `json:"concentration"`
	Channels      int            `json:"channels"`
	Samples       int            `json:"samples"`
}

// DrawTheta draws α for every edge, [|E|][|O|].
func DrawTheta(space supernet.Space, seed uint64, concentration float64) [][]float64 {
	theta := make([][]float64, len(space.Edges))
	for e := range theta {
		theta[e] = mixture.Dirichlet(trial.RNG(seed, "α", fmt.Sprint(e)), len(space.Ops), concentration)
	}
	return theta
}

// dag is a cell whose nodes are vectors and whose operations are linear maps [edge][operation][out][in]: none is 0,
// skip_connect the identity, and every other a random matrix, as any convolution or mean is a matrix.
type dag struct {
	space supernet.Space
	maps  [][][][]float64
	relu  bool // of every node but the first and the last
}

func newDAG(space supernet.Space, channels int, rng *rand.Rand) dag {
	d := dag{space: space}
	for range space.Edges {
		var ops [][][]float64
		for _, op := range space.Ops {
			m := make([][]float64, channels)
			for i := range m {
				m[i] = make([]float64, channels)
				switch op {
				case "none":
				case "skip_connect":
					m[i][i] = 1
				default:
					m[i] = trial.Normals(rng, channels, 1/math.Sqrt(float64(channels)))
				}
			}
			ops = append(ops, m)
		}
		d.maps = append(d.maps, ops)
	}
	return d
}

// output is the last node for weights θ [|E|][|O|] of the operations.
func (d dag) output(x []float64, theta [][]float64) []float64 {
	nodes := make([][]float64, d.space.Nodes)
	nodes[0] = x
	for j := 1; j < d.space.Nodes; j++ {
		nodes[j] = make([]float64, len(x))
		for e, edge := range d.space.Edges {
			if edge.To != j {
				continue
			}
			for o, weight := range theta[e] {
				if weight == 0 {
					continue
				}
				for i, row := range d.maps[e][o] {
					nodes[j][i] += weight * floats.Dot(row, nodes[edge.From])
				}
			}
		}
		if d.relu && j < d.space.Nodes-1 {
			for i, z := range nodes[j] {
				nodes[j][i] = max(z, 0)
			}
		}
	}
	return nodes[d.space.Nodes-1]
}

// sum is Σ_a (Π_e θ_{e,a_e}) f_a(x) over all architectures a, and the a of the largest weight.
func (d dag) sum(ctx context.Context, x []float64, theta [][]float64) (sum []float64, mode []int, err error) {
	choice, ops, all := make([]int, len(d.space.Edges)), len(d.space.Ops), 1
	for range choice {
		all *= ops
	}
	sum = make([]float64, len(x))
	best := -1.0
	for number := range all {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		weight := 1.0
		for e := range choice {
			choice[e], number = number%ops, number/ops
			weight *= theta[e][choice[e]]
		}
		floats.AddScaled(sum, weight, d.output(x, d.space.OneHot(choice)))
		if weight > best {
			best, mode = weight, slices.Clone(choice)
		}
	}
	return sum, mode, nil
}

// sampled is the largest |mean − want|/standard error over the outputs, of
// architectures with an operation drawn on each edge by itself.
func (d dag) sampled(
	ctx context.Context, x []float64, theta [][]float64, want []float64, samples int, rng *rand.Rand,
) (float64, error) {
	outputs := make([][]float64, len(x))
	for range samples {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		choice := make([]int, len(theta))
		for e, row := range theta {
			u := rng.Float64()
			for choice[e] < len(row)-1 && u >= row[choice[e]] {
				u -= row[choice[e]]
				choice[e]++
			}
		}
		for i, y := range d.output(x, d.space.OneHot(choice)) {
			outputs[i] = append(outputs[i], y)
		}
	}
	var most float64
	for i, ys := range outputs {
		mean, std := stat.MeanStdDev(ys, nil)
		if std > 0 { // NaN of one sample
			most = max(most, math.Abs(mean-want[i])/(std/math.Sqrt(float64(samples))))
		}
	}
	return most, nil
}

// Run checks one graph and the operations on one feature map.
func (t Trial) Run(ctx context.Context, ops *Scaler, seed uint64) (trial.Result, error) {
	values := map[string]float64{}
	theta := DrawTheta(t.Space, seed, t.Concentration)
	rng := trial.RNG(seed, "graph")
	d := newDAG(t.Space, t.Channels, rng)
	x := trial.Normals(rng, t.Channels, 1)
	for _, name := range []string{"linear", "relu"} {
		d.relu = name == "relu"
		sum, mode, err := d.sum(ctx, x, theta)
		if err != nil {
			return trial.Result{}, err
		}
		values[name] = difference(d.output(x, theta), sum)
		values["mode"] = 0
		for e, o := range t.Space.Argmax(theta) {
			values["mode"] += trial.Indicator(mode[e] != o)
		}
		if d.relu {
			if values["sampled"], err = d.sampled(ctx, x, theta, sum, t.Samples,
				trial.RNG(seed, "samples")); err != nil {
				return trial.Result{}, err
			}
		}
	}
	return trial.Result{Values: values}, ops.scale(rng, values)
}

// difference is ‖a − b‖/‖b‖, and ‖a‖ where b is 0.
func difference(a, b []float64) float64 {
	norm := floats.Norm(b, 2)
	if norm == 0 {
		norm = 1
	}
	return floats.Distance(a, b, 2) / norm
}

// StandardOps are operations of search spaces on maps [B, H, W, C] with a kernel
// [3, 3, C, C], without batch normalisation and biases.
var StandardOps = map[string]func(x, kernel *Node) *Node{
	"identity":        func(x, _ *Node) *Node { return x },
	"zero":            func(x, _ *Node) *Node { return ZerosLike(x) },
	"ReLU":            func(x, _ *Node) *Node { return supernet.Activations["relu"](x) },
	"max pooling":     func(x, _ *Node) *Node { return MaxPool(x).Window(3).Strides(1).PadSame().Done() },
	"average pooling": func(x, _ *Node) *Node { return MeanPool(x).Window(3).Strides(1).PadSame().Done() },
	"convolution":     func(x, k *Node) *Node { return Convolve(x, k).PadSame().Done() },
	"dilated convolution": func(x, k *Node) *Node {
		return Convolve(x, k).PaddingPerDim([][2]int{{2, 2}, {2, 2}}).Dilations(2).Done()
	},
	"ReLU-convolution": func(x, k *Node) *Node { return Convolve(supernet.Activations["relu"](x), k).PadSame().Done() },
}

// OtherOps are not homogeneous of degree 1.
var OtherOps = map[string]func(x, kernel *Node) *Node{
	"tanh":                        func(x, _ *Node) *Node { return Tanh(x) },
	"sigmoid":                     func(x, _ *Node) *Node { return Sigmoid(x) },
	"batch norm":                  func(x, _ *Node) *Node { return batchNorm(x) },
	"ReLU-convolution-batch norm": func(x, k *Node) *Node { return batchNorm(StandardOps["ReLU-convolution"](x, k)) },
}

// batchNorm normalises each channel by its batch, as training does.
func batchNorm(x *Node) *Node {
	centred := Sub(x, ReduceAndKeep(x, ReduceMean, 0, 1, 2))
	variance := ReduceAndKeep(Mul(centred, centred), ReduceMean, 0, 1, 2)
	return Div(centred, Sqrt(AddScalar(variance, 1e-5)))
}

// Scaler evaluates every operation on a feature map and on a multiple of it.
type Scaler struct {
	exec  *Exec
	names []string
}

// Close frees what was compiled.
func (s *Scaler) Close() { s.exec.Finalize() }

// scaling is c in f(cx) = c·f(x).
const scaling = 2.7

// NewScaler builds the graph of all operations.
func NewScaler(b compute.Backend) (*Scaler, error) {
	names := slices.Concat(slices.Sorted(maps.Keys(StandardOps)), slices.Sorted(maps.Keys(OtherOps)))
	exec, err := NewExec(b, func(x, k *Node) []*Node {
		var both []*Node
		for _, name := range names {
			op := StandardOps[name]
			if op == nil {
				op = OtherOps[name]
			}
			both = append(both, Reshape(op(MulScalar(x, scaling), k), -1), Reshape(MulScalar(op(x, k), scaling), -1))
		}
		return both
	})
	if err != nil {
		return nil, fmt.Errorf("building the graph of the operations: %w", err)
	}
	return &Scaler{exec, names}, nil
}

// scale puts ‖f(cx) − c·f(x)‖/‖c·f(x)‖ of every operation among the values.
func (s *Scaler) scale(rng *rand.Rand, values map[string]float64) error {
	const batch, size, channels = 4, 6, 3
	x := tensors.FromFlatDataAndDimensions(trial.Normals(rng, batch*size*size*channels, 1), batch, size, size,
		channels)
	kernel := tensors.FromFlatDataAndDimensions(trial.Normals(rng, 9*channels*channels, 0.3), 3, 3, channels,
		channels)
	out, err := s.exec.Call(x, kernel)
	if err != nil {
		return fmt.Errorf("scaling the operations: %w", err)
	}
	for i, name := range s.names {
		values["scale "+name] = difference(out[2*i].Value().([]float64), out[2*i+1].Value().([]float64))
	}
	return nil
}
