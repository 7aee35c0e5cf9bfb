package supernet

import (
	"math"
	"slices"
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"
)

// noiseMaps are what the operation makes of two maps in two places, after strides 1
// and 2, as flat numbers.
func noiseMaps(t *testing.T, scale float32) [][]float32 {
	t.Helper()
	images := make([]float32, 8*32*32*4)
	for i := range images {
		images[i] = scale * float32(math.Sin(float64(i)))
	}
	out, err := CallOnceN(shared(), func(in []*Node) []*Node {
		n := &CellNet{plan: &walk{index: map[string]int{}}}
		l := Layers{walk: n.walk(Pass{Images: Reshape(in[0], 8, 32, 32, 4), Train: true})}
		var maps []*Node
		for _, place := range []string{"2<-0", "2<-1"} {
			for stride := 1; stride <= 2; stride++ {
				y := noise(l.In(place), Map{H: 32, W: 32, C: 4, node: l.walk.pass.Images}, stride, true)
				maps = append(maps, Reshape(y.node, -1))
			}
		}
		return maps
	}, images)
	require.NoError(t, err)
	var flat [][]float32
	for _, x := range out {
		flat = append(flat, x.Value().([]float32))
	}
	return flat
}

// TestNoiseIsNormal: mean 0, variance 1, fourth moment 3 and P(|z| < 1) = 0.6827,
// each to five standard errors; independent of another place's; the same for the same
// images, and another for others.
func TestNoiseIsNormal(t *testing.T) {
	maps := noiseMaps(t, 1)
	for i, z := range maps {
		n := float64(len(z))
		require.Len(t, z, 8*32*32*4/[]int{1, 4}[i%2])
		var mean, square, fourth, within float64
		for _, v := range z {
			x := float64(v)
			mean, square, fourth = mean+x/n, square+x*x/n, fourth+x*x*x*x/n
			if math.Abs(x) < 1 {
				within += 1 / n
			}
		}
		require.InDelta(t, 0, mean, 5/math.Sqrt(n))
		require.InDelta(t, 1, square, 5*math.Sqrt(2/n))
		require.InDelta(t, 3, fourth, 5*math.Sqrt(96/n))
		require.InDelta(t, 0.682689, within, 5*math.Sqrt(0.2166/n))
	}
	product := 0.0
	for i := range maps[0] {
		product += float64(maps[0][i]*maps[2][i]) / float64(len(maps[0]))
	}
	require.InDelta(t, 0, product, 5/math.Sqrt(float64(len(maps[0]))), "of two places")
	require.True(t, slices.Equal(maps[0], noiseMaps(t, 1)[0]), "of the same images")
	require.False(t, slices.Equal(maps[0], noiseMaps(t, 1.001)[0]), "of others")
}

// TestNoiseLetsNothingThrough: cells of noise alone leave the stem without a gradient.
func TestNoiseLetsNothingThrough(t *testing.T) {
	g, err := ParseGenotype("Genotype(normal=[('noise', 0), ('noise', 1)], normal_concat=[2], " +
		"reduce=[('noise', 0), ('noise', 1)], reduce_concat=[2])")
	require.NoError(t, err)
	net, err := NewDerived(DerivedConfig{
		Skeleton: Skeleton{Channels: 4, Cells: 3, Image: 8}, Genotype: g,
	})
	require.NoError(t, err)
	s := newCellSetup(t, net, 2, false)
	of := slices.IndexFunc(net.Weights(), func(w Weight) bool { return w.Path == "stem/conv" })
	last := slices.IndexFunc(net.Weights(), func(w Weight) bool { return w.Path == "classifier/weight" })
	require.GreaterOrEqual(t, of, 0)
	out := s.run(t, func(p Pass, _ *Node) []*Node {
		grads := Gradient(ReduceAllSum(Square(net.Evaluate(p).Logits)), p.Weights[of], p.Weights[last])
		return []*Node{ReduceAllSum(Abs(grads[0])), ReduceAllSum(Abs(grads[1]))}
	})
	require.Zero(t, out[0][0])
	require.Positive(t, out[1][0])
}
