package supernet

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/floats"
)

// cellSetup is a network with random values.
type cellSetup struct {
	net    *CellNet
	pixels fmap
	labels []int32
	values map[string][]float64
	theta  [][][]float64
	drop   [][]float64 // [B, places], nil for none
}

func newCellSetup(t *testing.T, net *CellNet, batch int, drop bool) *cellSetup {
	t.Helper()
	rng := rand.New(rand.NewPCG(5, 6))
	image := net.skeleton.Image
	s := &cellSetup{net: net, pixels: newMap(batch, image, image, 3), values: map[string][]float64{}}
	s.pixels.v = normal(rng, len(s.pixels.v))
	for range batch {
		s.labels = append(s.labels, int32(rng.IntN(net.skeleton.Classes)))
	}
	for _, w := range slices.Concat(net.Weights(), net.Stats()) {
		v := normal(rng, size(w.Dims))
		floats.Scale(1/math.Sqrt(float64(max(w.FanIn, 1))), v)
		if w.Init == InitOnes {
			for i := range v {
				v[i] = 0.5 + rng.Float64()
			}
		}
		s.values[w.Path] = v
	}
	for _, b := range net.Architecture() {
		rows := make([][]float64, b.Rows)
		for e := range rows {
			rows[e] = make([]float64, b.Options)
			for o := range rows[e] {
				rows[e][o] = rng.Float64()
			}
		}
		s.theta = append(s.theta, rows)
	}
	if drop {
		for b := range batch {
			s.drop = append(s.drop, nil)
			for range net.DropPlaces() {
				s.drop[b] = append(s.drop[b], float64(rng.IntN(3)))
			}
		}
	}
	return s
}

func (s *cellSetup) loops(train bool) *cellLoops {
	r := &cellLoops{values: s.values, next: map[string][]float64{}, train: train}
	for _, w := range s.net.Stats() {
		r.next[w.Path] = slices.Clone(s.values[w.Path])
	}
	for place := range s.net.DropPlaces() {
		for _, factors := range s.drop {
			r.drop = append(r.drop, factors[place])
		}
	}
	return r
}

// run evaluates build on the values.
func (s *cellSetup) run(t *testing.T, build func(p Pass, labels *Node) []*Node) [][]float64 {
	t.Helper()
	x := s.pixels
	args := []any{tensors.FromFlatDataAndDimensions(slices.Clone(x.v), x.b, x.h, x.w, x.c), slices.Clone(s.labels)}
	for _, w := range slices.Concat(s.net.Weights(), s.net.Stats()) {
		args = append(args, tensors.FromFlatDataAndDimensions(slices.Clone(s.values[w.Path]), w.Dims...))
	}
	for _, rows := range s.theta {
		args = append(args, rows)
	}
	if s.drop != nil {
		args = append(args, s.drop)
	}
	out, err := CallOnceN(shared(), func(in []*Node) []*Node {
		rest := in[2:]
		take := func(n int) []*Node {
			part := rest[:n:n]
			rest = rest[n:]
			return part
		}
		p := Pass{
			Images: in[0], Weights: take(len(s.net.Weights())), Stats: take(len(s.net.Stats())),
			Theta: take(len(s.theta)), Train: true,
		}
		if s.drop != nil {
			p.Drop = rest[0]
		}
		return build(p, in[1])
	}, args...)
	require.NoError(t, err)
	flat := make([][]float64, len(out))
	for i, o := range out {
		flat[i] = tensors.MustCopyFlatData[float64](o)
	}
	return flat
}

// tiny is a space with two nodes and one operation of every kind.
var tiny = CellSpace{Name: "tiny", Nodes: 2, Ops: []string{
	"none", "max_pool_3x3", "avg_pool_3x3", "skip_connect", "sep_conv_3x3", "dil_conv_5x5",
}}

var searches = map[string]SearchConfig{
	"darts":    {Skeleton: Skeleton{Channels: 2, Cells: 3, Image: 8, Classes: 3}, Space: tiny},
	"pc-darts": {Skeleton: Skeleton{Channels: 4, Cells: 3, Image: 8, Classes: 3}, Space: tiny, Partial: 2, Edges: true},
	"two":      {Skeleton: Skeleton{Channels: 4, Cells: 2, Image: 4, Classes: 2}, Space: tiny, Partial: 4},
	"imagenet": {
		Skeleton: Skeleton{Stem: "imagenet-search", Channels: 4, Cells: 3, Image: 32, Classes: 3},
		Space:    tiny, Partial: 2, Edges: true,
	},
	"edges": {
		Skeleton: Skeleton{Channels: 2, Cells: 3, Image: 8, Classes: 3},
		Space: CellSpace{Nodes: 1, EdgeOps: map[CellType][][]string{
			Normal: {{"skip_connect", "dil_conv_3x3"}, {"sep_conv_5x5", "none"}},
			Reduce: {{"none", "max_pool_3x3"}, {"skip_connect", "avg_pool_3x3"}},
		}},
	},
}

func TestSearchNetworksAreThePlainLoops(t *testing.T) {
	for name, c := range searches {
		t.Run(name, func(t *testing.T) {
			net, err := NewSearch(c)
			require.NoError(t, err)
			c.Skeleton, c.Partial = c.withDefaults(), max(c.Partial, 1)
			s := newCellSetup(t, net, 2, false)
			for _, train := range []bool{true, false} {
				r := s.loops(train)
				want := r.search(c, s.pixels, s.theta)
				got := s.run(t, func(p Pass, _ *Node) []*Node {
					p.Train = train
					o := net.Evaluate(p)
					return append([]*Node{o.Logits}, o.Stats...)
				})
				require.InDeltaSlice(t, want, got[0], 1e-11)
				for i, w := range net.Stats() {
					require.InDeltaSlice(t, r.next[w.Path], got[1+i], 1e-11, w.Path)
				}
			}
		})
	}
}

// someGenotype has every operation, an identity, a reduced skip, and a
// concatenation of some nodes in another order.
var someGenotype = Genotype{
	Normal: Cell{[]Gene{
		{"sep_conv_3x3", 1}, {"skip_connect", 0}, {"dil_conv_3x3", 2}, {"avg_pool_3x3", 0}, {"none", 1},
		{"max_pool_3x3", 3},
	}, []int{4, 2}},
	Reduce: Cell{[]Gene{
		{"skip_connect", 0}, {"max_pool_3x3", 1}, {"dil_conv_5x5", 0}, {"skip_connect", 2},
	}, []int{2, 3}},
}

func TestDerivedNetworksAreThePlainLoops(t *testing.T) {
	for name, c := range map[string]DerivedConfig{
		"cifar": {
			Skeleton: Skeleton{Channels: 2, Cells: 4, Image: 32, Classes: 3},
			Genotype: someGenotype, Auxiliary: true,
		},
		"imagenet": {
			Skeleton: Skeleton{Stem: "imagenet", Channels: 2, Cells: 4, Image: 224, Classes: 3},
			Genotype: someGenotype, Auxiliary: true,
		},
		"no head": {Skeleton: Skeleton{Channels: 2, Cells: 3, Image: 8, Classes: 3}, Genotype: someGenotype},
	} {
		t.Run(name, func(t *testing.T) {
			net, err := NewDerived(c)
			require.NoError(t, err)
			c.Skeleton = c.withDefaults()
			s := newCellSetup(t, net, 2, true)
			r := s.loops(true)
			logits, aside := r.derived(c, s.pixels)
			require.Empty(t, r.drop, "every place was met")
			var evaluated *Node
			got := s.run(t, func(p Pass, _ *Node) []*Node {
				o := net.Evaluate(p)
				out := append([]*Node{o.Logits}, o.Stats...)
				if c.Auxiliary {
					out = append(out, o.Auxiliary)
				}
				p.Train = false
				o = net.Evaluate(p)
				evaluated = o.Auxiliary
				return append(out, o.Logits)
			})
			require.Nil(t, evaluated)
			require.InDeltaSlice(t, logits, got[0], 1e-11)
			for i, w := range net.Stats() {
				require.InDeltaSlice(t, r.next[w.Path], got[1+i], 1e-11, w.Path)
			}
			if c.Auxiliary {
				require.InDeltaSlice(t, aside, got[len(got)-2], 1e-11)
			}
			r = s.loops(false)
			r.drop = nil // no path is dropped in evaluation
			logits, _ = r.derived(c, s.pixels)
			require.InDeltaSlice(t, logits, got[len(got)-1], 1e-11)
		})
	}
}

// along moves θ and the weights into a random direction and returns the central
// difference of f there, and the slope that its gradients claim.
func (s *cellSetup) slopes(t *testing.T, f func(p Pass, labels *Node) *Node) (difference, slope float64) {
	t.Helper()
	const h = 1e-6
	grads := s.run(t, func(p Pass, labels *Node) []*Node {
		return Gradient(f(p, labels), slices.Concat(p.Theta, p.Weights)...)
	})
	rng := rand.New(rand.NewPCG(11, 12))
	var directions [][]float64
	for _, g := range grads {
		d := normal(rng, len(g))
		directions = append(directions, d)
		slope += floats.Dot(d, g)
	}
	at := func(step float64) float64 {
		to := *s
		to.theta, to.values = nil, map[string][]float64{}
		for i, rows := range s.theta {
			var moved [][]float64
			for e, row := range rows {
				x := slices.Clone(row)
				floats.AddScaled(x, step, directions[i][e*len(row):][:len(row)])
				moved = append(moved, x)
			}
			to.theta = append(to.theta, moved)
		}
		for i, w := range s.net.Weights() {
			to.values[w.Path] = slices.Clone(s.values[w.Path])
			floats.AddScaled(to.values[w.Path], step, directions[len(s.theta)+i])
		}
		for _, w := range s.net.Stats() {
			to.values[w.Path] = s.values[w.Path]
		}
		return to.run(t, func(p Pass, labels *Node) []*Node { return []*Node{f(p, labels)} })[0][0]
	}
	return (at(h) - at(-h)) / (2 * h), slope
}

func cellLoss(net *CellNet) func(p Pass, labels *Node) *Node {
	return func(p Pass, labels *Node) *Node {
		o := net.Evaluate(p)
		_, loss := Score(o.Logits, labels)
		if o.Auxiliary != nil {
			_, aside := Score(o.Auxiliary, labels)
			loss = Add(loss, MulScalar(aside, 0.4))
		}
		return loss
	}
}

func TestGradientsOfCells(t *testing.T) {
	for _, name := range []string{"darts", "pc-darts"} {
		net, err := NewSearch(searches[name])
		require.NoError(t, err)
		s := newCellSetup(t, net, 2, false)
		difference, slope := s.slopes(t, cellLoss(net))
		require.InDelta(t, difference, slope, 1e-6*(1+math.Abs(slope)), name)
	}
	net, err := NewDerived(DerivedConfig{
		Skeleton: Skeleton{Channels: 2, Cells: 3, Image: 8, Classes: 3}, Genotype: someGenotype,
	})
	require.NoError(t, err)
	difference, slope := newCellSetup(t, net, 2, true).slopes(t, cellLoss(net))
	require.InDelta(t, difference, slope, 1e-6*(1+math.Abs(slope)))
}

// TestGradientsOfGradientsOfCells: those that an unrolled hypergradient needs,
// of ⟨∂loss/∂w, u⟩ in θ and in w.
func TestGradientsOfGradientsOfCells(t *testing.T) {
	net, err := NewSearch(searches["two"])
	require.NoError(t, err)
	s := newCellSetup(t, net, 2, false)
	difference, slope := s.slopes(t, func(p Pass, labels *Node) *Node {
		sum := ScalarZero(labels.Graph(), p.Images.DType())
		for i, grad := range Gradient(cellLoss(net)(p, labels), p.Weights...) {
			u := normal(rand.New(rand.NewPCG(9, uint64(i))), grad.Shape().Size())
			sum = Add(sum, ReduceAllSum(Mul(Reshape(grad, -1), Const(labels.Graph(), u))))
		}
		return sum
	})
	require.InDelta(t, difference, slope, 1e-5*(1+math.Abs(slope)))
}

// TestThetaOfEveryExample: with one matrix an example, the gradients of the
// examples add up to that of a common one.
func TestThetaOfEveryExample(t *testing.T) {
	net, err := NewSearch(searches["pc-darts"])
	require.NoError(t, err)
	s := newCellSetup(t, net, 2, false)
	out := s.run(t, func(p Pass, labels *Node) []*Node {
		common := cellLoss(net)(p, labels)
		each := p
		each.Theta = nil
		for _, theta := range p.Theta {
			each.Theta = append(each.Theta, Identity(BroadcastPrefix(theta, 2)))
		}
		apart := cellLoss(net)(each, labels)
		out := append([]*Node{common, apart}, Gradient(common, p.Theta...)...)
		for _, g := range Gradient(apart, each.Theta...) {
			out = append(out, ReduceSum(g, 0))
		}
		return out
	})
	require.InDelta(t, out[0][0], out[1][0], 1e-12)
	n := len(s.theta)
	for i := range s.theta {
		require.InDeltaSlice(t, out[2+i], out[2+n+i], 1e-11)
		if i < 2 {
			for e := range tiny.Edges() {
				require.Zero(t, out[2+i][e*tiny.Options()], "none has no gradient")
			}
		}
	}
}

func TestOwnOperationAndSpace(t *testing.T) {
	Operations["own"] = func(l Layers, x Map, stride int, _ bool) Map {
		x = l.BN("bn", l.Conv("conv", l.ReLU(x), 3, stride, x.C))
		return l.Apply(x, x, []Weight{{"gain", []int{x.C}, 0, InitOnes}}, 0, func(x *Node, w []*Node) *Node {
			return Mul(x, BroadcastToShape(Reshape(w[0], 1, 1, 1, -1), x.Shape()))
		})
	}
	Operations["wrong"] = func(l Layers, x Map, stride int, _ bool) Map { return l.Conv("conv", x, 1, 1, x.C+1) }
	defer delete(Operations, "own")
	defer delete(Operations, "wrong")
	c := SearchConfig{
		Skeleton: Skeleton{Channels: 2, Cells: 3, Image: 4, Classes: 2},
		Space:    CellSpace{Name: "mine", Nodes: 1, Ops: []string{"own", "none"}},
	}
	net, err := NewSearch(c)
	require.NoError(t, err)
	var found []string
	for _, w := range net.Weights() {
		if strings.HasPrefix(w.Path, "cells/0/") {
			found = append(found, strings.TrimPrefix(w.Path, "cells/0/"))
		}
	}
	require.Equal(t, []string{
		"preprocess0/conv", "preprocess1/conv", "2<-0/own/conv", "2<-0/own/gain", "2<-1/own/conv", "2<-1/own/gain",
	}, found)
	difference, slope := newCellSetup(t, net, 2, false).slopes(t, cellLoss(net))
	require.InDelta(t, difference, slope, 1e-6*(1+math.Abs(slope)))
	c.Space.Ops = []string{"wrong", "none"}
	_, err = NewSearch(c)
	require.ErrorContains(t, err, "cells/0/2<-0/wrong: at stride 1 it must make 4×4×2 of 4×4×2, got 4×4×3")
}

func TestCellNetworksThatAreNone(t *testing.T) {
	search := func(change func(c *SearchConfig)) error {
		c := SearchConfig{Skeleton: Skeleton{Channels: 4, Cells: 3, Image: 8}}
		change(&c)
		_, err := NewSearch(c)
		return err
	}
	derive := func(change func(c *DerivedConfig)) error {
		c := DerivedConfig{Skeleton: Skeleton{Channels: 4, Cells: 5, Image: 32}, Genotype: someGenotype}
		change(&c)
		_, err := NewDerived(c)
		return err
	}
	require.NoError(t, search(func(*SearchConfig) {}))
	require.NoError(t, derive(func(*DerivedConfig) {}))
	for says, err := range map[string]error{
		`stem "mnist" is unknown: take one of [cifar imagenet imagenet-search]`: search(func(c *SearchConfig) {
			c.Stem = "mnist"
		}),
		"channels -1":                        search(func(c *SearchConfig) { c.Channels = -1 }),
		"6 channels of which 1/K, K = 4, go": search(func(c *SearchConfig) { c.Channels, c.Partial = 6, 4 }),
		"cells/0/preprocess0: halves a map of 4×4 pixels to 3 channels: " +
			"all three must be even": search(func(c *SearchConfig) {
			c.Stem, c.Channels, c.Image = "imagenet-search", 3, 16
		}),
		"cells/2: halves a map of 3×3 pixels: the size must be even; " +
			"take larger images": search(func(c *SearchConfig) { c.Image = 6 }),
		`unknown`: search(func(c *SearchConfig) { c.Space = CellSpace{Name: "x", Nodes: 1, Ops: []string{"x"}} }),
		"edge 1, into node 2": derive(func(c *DerivedConfig) {
			c.Genotype.Normal.Genes = slices.Clone(c.Genotype.Normal.Genes)
			c.Genotype.Normal.Genes[1].Op = "x"
		}),
		"auxiliary: the head sits on a map of 4×4 pixels, it needs 8 to 10": derive(func(c *DerivedConfig) {
			c.Auxiliary, c.Image = true, 16
		}),
		"3 cells: the auxiliary head would sit on the last of them": derive(func(c *DerivedConfig) {
			c.Auxiliary, c.Cells = true, 3
		}),
	} {
		require.ErrorContains(t, err, says)
		require.NotContains(t, err.Error(), "\n")
	}
}
