package supernet

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func paths(weights []Weight) []string {
	var out []string
	for _, w := range weights {
		out = append(out, w.Path)
	}
	return out
}

func TestWeightsOfTheSkeleton(t *testing.T) {
	net, err := New(Config{Channels: 2, Cells: 1, Classes: 7})
	require.NoError(t, err)
	got := paths(net.Weights())
	require.Equal(t, []string{
		"stem/conv", "stem/bn/scale", "stem/bn/bias",
		"cells/0/1<-0/nor_conv_1x1/conv", "cells/0/1<-0/nor_conv_3x3/conv",
		"cells/0/2<-0/nor_conv_1x1/conv", "cells/0/2<-0/nor_conv_3x3/conv",
		"cells/0/2<-1/nor_conv_1x1/conv",
	}, got[:8])
	require.Equal(t, []string{
		"cells/1/conv_a", "cells/1/conv_a/bn/scale", "cells/1/conv_a/bn/bias",
		"cells/1/conv_b", "cells/1/conv_b/bn/scale", "cells/1/conv_b/bn/bias",
		"cells/1/downsample", "cells/2/1<-0/nor_conv_1x1/conv",
	}, got[15:23])
	require.Equal(t, []string{"last/bn/scale", "last/bn/bias", "classifier/weight", "classifier/bias"},
		got[len(got)-4:])
	require.Empty(t, net.Stats())

	dims := map[string][]int{}
	fanIn := map[string]int{}
	for _, w := range net.Weights() {
		dims[w.Path], fanIn[w.Path] = w.Dims, w.FanIn
	}
	require.Equal(t, []int{3, 3, 3, 2}, dims["stem/conv"])
	require.Equal(t, 27, fanIn["stem/conv"])
	require.Equal(t, []int{3, 3, 4, 8}, dims["cells/3/conv_a"])
	require.Equal(t, []int{1, 1, 4, 8}, dims["cells/3/downsample"])
	require.Equal(t, []int{3, 3, 8, 8}, dims["cells/4/3<-2/nor_conv_3x3/conv"])
	require.Equal(t, 72, fanIn["cells/4/3<-2/nor_conv_3x3/conv"])
	require.Equal(t, []int{8, 7}, dims["classifier/weight"])
}

// A NAS-Bench-201 network whose edges are all nor_conv_3x3 has 1.531546 million
// parameters (the table's number for this architecture on CIFAR-10); a search
// network with that operation alone has the same, less BN's scale and shift in
// the cells.
func TestNumberOfParametersIsTheTables(t *testing.T) {
	space := NASBench201
	space.Ops = []string{"nor_conv_3x3"}
	for affine, want := range map[bool]int{true: 1531546, false: 1531546 - 2*6*5*(16+32+64)} {
		net, err := New(Config{Space: space, Affine: affine})
		require.NoError(t, err)
		total := 0
		for _, w := range net.Weights() {
			size := 1
			for _, d := range w.Dims {
				size *= d
			}
			total += size
		}
		require.Equal(t, want, total)
	}
}

func TestOptionalWeights(t *testing.T) {
	net, err := New(Config{Channels: 2, Cells: 1, Affine: true, ConvBias: true, TrackStats: true})
	require.NoError(t, err)
	require.Equal(t, []string{
		"cells/0/1<-0/nor_conv_1x1/conv", "cells/0/1<-0/nor_conv_1x1/conv_bias",
		"cells/0/1<-0/nor_conv_1x1/bn/scale", "cells/0/1<-0/nor_conv_1x1/bn/bias",
	}, paths(net.Weights())[3:7])
	stats := paths(net.Stats())
	require.Equal(t, []string{"stem/bn/mean", "stem/bn/variance", "cells/0/1<-0/nor_conv_1x1/bn/mean"}, stats[:3])
	require.Len(t, stats, 2*(1+3*6*2+2*2+1))
	require.False(t, slices.Contains(paths(net.Weights()), "cells/1/conv_a/conv_bias"), "reductions have no bias")
}

// With BN=0 AutoDL-Projects tracks the statistics of what is no search cell.
func TestStatisticsOutsideOfCells(t *testing.T) {
	net, err := New(Config{Channels: 2, Cells: 2, TrackOutside: true})
	require.NoError(t, err)
	var want []string
	for _, bn := range []string{
		"stem/bn", "cells/2/conv_a/bn", "cells/2/conv_b/bn", "cells/5/conv_a/bn", "cells/5/conv_b/bn", "last/bn",
	} {
		want = append(want, bn+"/mean", bn+"/variance")
	}
	require.Equal(t, want, paths(net.Stats()))
}

func TestInitialization(t *testing.T) {
	net, err := New(Config{Channels: 8, Cells: 1, TrackStats: true})
	require.NoError(t, err)
	first := net.InitWeights(rand.New(rand.NewPCG(1, 2)))
	again := net.InitWeights(rand.New(rand.NewPCG(1, 2)))
	for i, w := range net.Weights() {
		values := first[i].Value()
		require.Equal(t, values, again[i].Value(), "the same seed")
		require.Equal(t, w.Dims, first[i].Shape().Dimensions)
	}
	flat := func(path string) []float32 {
		i := slices.Index(paths(net.Weights()), path)
		var out []float32
		require.NoError(t, first[i].ConstFlatData(func(data any) { out = slices.Clone(data.([]float32)) }))
		return out
	}
	for _, path := range []string{"stem/bn/scale", "last/bn/scale", "cells/1/conv_b/bn/scale"} {
		for _, v := range flat(path) {
			require.Equal(t, float32(1), v)
		}
	}
	for _, v := range flat("last/bn/bias") {
		require.Zero(t, v)
	}
	// U(±1/√fan_in): nothing beyond, the ends nearly reached, variance 1/(3·fan_in).
	kernel := flat("cells/4/3<-2/nor_conv_3x3/conv") // 9·32·32 values of fan-in 288
	bound, square := 1/math.Sqrt(288), 0.0
	for _, v := range kernel {
		square += float64(v) * float64(v)
	}
	require.LessOrEqual(t, float64(slices.Max(kernel)), bound)
	require.GreaterOrEqual(t, float64(slices.Min(kernel)), -bound)
	require.Greater(t, float64(slices.Max(kernel)), 0.99*bound)
	require.InEpsilon(t, bound*bound/3, square/float64(len(kernel)), 0.05)
	for i, stat := range net.InitStats() {
		want := float32(0)
		if net.Stats()[i].Init == InitOnes {
			want = 1
		}
		require.Equal(t, want, stat.Value().([]float32)[0], net.Stats()[i].Path)
	}
}

func TestConfigurationsThatMakeNoNetwork(t *testing.T) {
	for want, c := range map[string]Config{
		"image size 30": {Image: 30},
		"image size -4": {Image: -4},
		"channels -1":   {Channels: -1},
		"stage -2":      {Cells: -2},
		"classes -3":    {Classes: -3},
		"both set":      {TrackStats: true, TrackOutside: true},
	} {
		_, err := New(c)
		require.ErrorContains(t, err, want)
	}
	net, err := New(Config{})
	require.NoError(t, err)
	require.Equal(t, Config{Space: NASBench201, Channels: 16, Cells: 5, Image: 32, Classes: 10}, net.Config)
}
