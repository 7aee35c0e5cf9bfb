package supernet

import (
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"
)

// addOperation puts a reader's operation into Operations for one test.
func addOperation(t *testing.T, name string, op Operation) {
	t.Helper()
	before, had := Operations[name]
	t.Cleanup(func() {
		if delete(Operations, name); had {
			Operations[name] = before
		}
	})
	Operations[name] = op
}

// squared is w·x², with a weight of its own for each channel, at stride 1.
func squared(factor float64) Operation {
	return func(l Layers, x Map, _ int, _ bool) Map {
		return l.Apply(x, x, []Weight{{"w", []int{x.C}, 1, InitUniform}}, int64(x.H*x.W*x.C),
			func(x *Node, w []*Node) *Node {
				return MulScalar(Mul(Mul(x, x), ExpandAxes(w[0], 0, 1, 2)), factor)
			})
	}
}

// A reader's ReLU–convolution–BN is NAS-Bench-201's: logits, running statistics and
// gradients, mixed and sampled, in training and evaluation.
func TestAnInsertedOperationIsTheOneComputedTogether(t *testing.T) {
	const batch = 3
	addOperation(t, "mine", func(l Layers, x Map, stride int, _ bool) Map {
		return l.BN("bn", l.Conv("conv", l.ReLU(x), 3, stride, x.C))
	})
	for _, c := range []Config{{}, {Affine: true}, {TrackStats: true}, {Affine: true, TrackStats: true}} {
		c.Space = NASBench201
		ours := newSetup(t, c, batch)
		c.Space.Ops = []string{"none", "skip_connect", "nor_conv_1x1", "mine", "avg_pool_3x3"}
		own := newSetup(t, c, batch)
		require.Len(t, own.net.Weights(), len(ours.net.Weights()))
		for _, training := range []bool{true, false} {
			for _, chosen := range [][][]float64{nil, someChosen(c.Space)} {
				for _, theta := range []any{ours.theta[0], ours.theta} {
					run := func(s *setup) []float64 {
						return flatten(s.run(t, theta, chosen, func(in Input, labels *Node) []*Node {
							in.Train = training
							logits, stats := s.net.Forward(in)
							_, loss := Score(logits, labels)
							grads := Gradient(loss, append([]*Node{in.Theta}, in.Weights...)...)
							return append(append([]*Node{logits}, stats...), grads...)
						}))
					}
					require.InDeltaSlice(t, run(ours), run(own), 1e-9, "%+v, training %v, chosen %v", c, training,
						chosen != nil)
				}
			}
		}
	}
}

func TestGradientsOfAnInsertedOperation(t *testing.T) {
	addOperation(t, "mine", squared(1))
	s := newSetup(t, Config{Space: NASBench201.Without("avg_pool_3x3").With("mine", "max_pool_3x3")}, 2)
	s.checkGradients(t, 7, func(in Input, labels *Node) *Node { return loss(s.net, in, labels) })
	require.Positive(t, s.net.MultiplyAdds())
}

func TestOneShotTakesOwnOperations(t *testing.T) {
	addOperation(t, "mine", func(l Layers, x Map, stride int, _ bool) Map {
		return l.ReLU(l.BN("bn", l.Conv("conv", x, 3, stride, x.C)))
	})
	for _, partial := range []int{1, 2} {
		ours := newOneShotSetup(t, OneShotConfig{Space: OneShot1, Partial: partial})
		space := OneShot1
		space.Ops = []string{"maxpool3x3", "mine", "conv1x1-bn-relu"}
		own := newOneShotSetup(t, OneShotConfig{Space: space, Partial: partial})
		logits := func(s *oneShotSetup) []float64 {
			return s.run(t, true, func(p Pass, loss func(Pass) *Node) []*Node {
				return append([]*Node{s.net.Evaluate(p).Logits}, Gradient(loss(p), p.Theta...)...)
			})[0]
		}
		require.InDeltaSlice(t, logits(ours), logits(own), 1e-10)
	}
	require.Error(t, OneShot1.With("theirs").Check())
}

func TestAnOperationHasToKeepTheSize(t *testing.T) {
	addOperation(t, "mine", func(l Layers, x Map, _ int, _ bool) Map { return l.Conv("conv", x, 3, 2, x.C) })
	_, err := New(Config{Space: NASBench201.With("mine")})
	require.ErrorContains(t, err, "makes a map of 16×16 pixels and 16 channels of one of 32×32 and 16")
}

// A space goes by what its operations compute, also where one is put into the place
// of a shipped one.
func TestSpaceKeysFollowTheBodyOfAnOperation(t *testing.T) {
	t.Cleanup(func() { delete(Spaces, "mine"); delete(CellSpaces, "mine"); delete(OneShots, "mine") })
	Spaces["mine"], CellSpaces["mine"] = NASBench201.With("sq"), DARTS.With("sq")
	OneShots["mine"] = OneShot1.With("sq")
	for kind, keyOf := range map[string]func(string) (string, error){
		"nasbench201": SpaceKey, "cells": CellSpaceKey, "oneshot": OneShotKey,
	} {
		seen := map[string]bool{}
		for _, factor := range []float64{1, 2, 1} {
			addOperation(t, "sq", squared(factor))
			key, err := keyOf("mine")
			require.NoError(t, err)
			seen[key] = true
		}
		require.Len(t, seen, 2, kind)
	}
	delete(Operations, "sq")
	for name, keyOf := range map[string]func(string) (string, error){
		"nor_conv_3x3": SpaceKey, "sep_conv_3x3": CellSpaceKey,
	} {
		space := map[string]string{"nor_conv_3x3": NASBench201.Name, "sep_conv_3x3": DARTS.Name}[name]
		ours, err := keyOf(space)
		require.NoError(t, err)
		require.Equal(t, space, ours)
		addOperation(t, name, squared(3))
		theirs, err := keyOf(space)
		require.NoError(t, err)
		require.NotEqual(t, ours, theirs)
	}
}
