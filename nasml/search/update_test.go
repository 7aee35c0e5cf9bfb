package search

import (
	"maps"
	"math"
	"math/rand/v2"
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/bilevel"
	"github.com/nasml/lab/nasml/simplex"
)

// momentum is a reader's update with a state: EG by a moving sum of gradients.
func momentum(mu float64) Update {
	return Update{Moves: OnSimplex, Rule: func(o Setup) bilevel.Rule {
		return bilevel.Each(1, func(theta, grad *Node, own []*Node, _ bilevel.Move) (*Node, []*Node) {
			v := Add(MulScalar(own[0], mu), grad)
			return simplex.EG(theta, v, o.Rate), []*Node{v}
		})
	}}
}

// moved is a reader's update without a state.
func moved(step func(theta, grad *Node, o Setup, m bilevel.Move) *Node) Update {
	return Update{Moves: OnSimplex, Rule: func(o Setup) bilevel.Rule {
		return bilevel.Each(0, func(theta, grad *Node, _ []*Node, m bilevel.Move) (*Node, []*Node) {
			return step(theta, grad, o, m), nil
		})
	}}
}

// walked are θ after each of some moves along the same gradients.
func walked(t *testing.T, u Update, theta [][]float64, grads ...[][]float64) [][][]float64 {
	t.Helper()
	in := []any{theta}
	for _, g := range grads {
		in = append(in, g)
	}
	out, err := ExecOnceN(pure(t), threeMoves(u, Settings{ArchRate: 0.3, Epochs: 10}), in...)
	require.NoError(t, err)
	var all [][][]float64
	for i := 0; i < len(out); i += 1 + u.Rule(Setup{}).Slots {
		all = append(all, out[i].Value().([][]float64))
	}
	return all
}

// Along a constant gradient c the sum after n moves is c·(1 − μⁿ)/(1 − μ), so
// that θ is softmax(−η c Σₙ (1 − μⁿ)/(1 − μ)).
func TestAnUpdateKeepsItsState(t *testing.T) {
	const mu, eta = 0.9, 0.3
	c := [][]float64{{1, -0.5, 0.2}}
	start := [][]float64{{1. / 3, 1. / 3, 1. / 3}}
	far := 0.0
	for n, theta := range walked(t, momentum(mu), start, c, c, c, c) {
		far += (1 - math.Pow(mu, float64(n+1))) / (1 - mu)
		want, sum := make([]float64, 3), 0.0
		for o := range want {
			want[o] = math.Exp(-eta * far * c[0][o])
			sum += want[o]
		}
		for o := range want {
			require.InDelta(t, want[o]/sum, theta[0][o], 1e-14, "move %d", n+1)
		}
	}
}

// An update without a state is the same as an entry of either map.
func TestAnUpdateOfPackageSimplexIsOneWithoutAState(t *testing.T) {
	theta, rng := [][]float64{{0.2, 0.3, 0.5}}, rand.New(rand.NewPCG(1, 2))
	var grads [][][]float64
	for range 3 {
		grads = append(grads, [][]float64{{rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64()}})
	}
	for name := range maps.Clone(simplex.Updates) {
		found, err := lookupUpdate(name)
		require.NoError(t, err)
		require.Zero(t, found.Rule(Setup{}).Slots)
		require.Equal(t, OnSimplex, found.Moves)
		own := moved(func(theta, grad *Node, _ Setup, _ bilevel.Move) *Node {
			return simplex.Updates[name](theta, grad, 0.3)
		})
		require.Equal(t, walked(t, own, theta, grads...), walked(t, found, theta, grads...), name)
	}
	require.Equal(t, walked(t, momentum(0), theta, grads...), walked(t, stateless(simplex.EG), theta, grads...))
}

func TestASearchWithAnUpdateOfAReader(t *testing.T) {
	Updates["momentum"] = momentum(0.9)
	defer delete(Updates, "momentum")
	s := tiny(t, "gaea-darts")
	plain := curve(t, s)
	s.Update = "momentum"
	require.NoError(t, s.Check())
	kept := curve(t, s)
	require.NotEqual(t, plain.Theta, kept.Theta)
	x, err := New(pure(t), s, pictures(t, 24))
	require.NoError(t, err)
	defer x.Close()
	for _, steps := range []int{2, 4} {
		require.Equal(t, kept, interrupted(t, x, steps), "the state is part of the checkpoint")
	}

	Updates["momentum"] = momentum(0) // is EG
	require.Equal(t, plain.Theta, curve(t, s).Theta)
}

func curve(t *testing.T, s Settings) *Curve {
	t.Helper()
	x, err := New(pure(t), s, pictures(t, 24))
	require.NoError(t, err)
	defer x.Close()
	c, err := x.Search(t.Context(), 3, Options{})
	require.NoError(t, err)
	return c
}

func TestUpdatesThatDoNotFitAreRefused(t *testing.T) {
	defer func(before map[string]Update) { Updates = before }(maps.Clone(Updates))
	resting := moved(func(theta, _ *Node, _ Setup, _ bilevel.Move) *Node { return theta })
	Updates["logits"] = Update{Moves: Logits, Rule: resting.Rule}
	Updates["examples"] = Update{Moves: OnSimplex, PerExample: true, Rule: resting.Rule}
	Updates["eg"] = momentum(0)
	for update, want := range map[string]string{
		"logits":   `Update must move points of a simplex, which GAEA DARTS holds: one of [`,
		"examples": "an update by per-example gradients needs a method that computes them",
		"eg":       `two updates are called "eg"`,
		"unknown":  `unknown update "unknown": take one of [adam eg`,
	} {
		s := tiny(t, "gaea-darts")
		s.Update = update
		require.ErrorContains(t, s.Check(), want)
	}
	delete(Updates, "eg")
	for want, kept := range map[string]func(grad *Node) []*Node{
		`the update "mine" after its move: each parameter must have 1 slots, got 2 slots`: func(grad *Node) []*Node {
			return []*Node{grad, grad}
		},
		`the update "mine" after its move: slot 0 must have the shape`: func(grad *Node) []*Node {
			return []*Node{ReduceAllSum(grad)}
		},
	} {
		Updates["mine"] = Update{Moves: OnSimplex, Rule: func(Setup) bilevel.Rule {
			return bilevel.Each(1, func(theta, grad *Node, _ []*Node, _ bilevel.Move) (*Node, []*Node) {
				return theta, kept(grad)
			})
		}}
		s := tiny(t, "gaea-darts")
		s.Update = "mine"
		x, err := New(pure(t), s, pictures(t, 24))
		require.NoError(t, err)
		_, err = x.Search(t.Context(), 3, Options{})
		require.ErrorContains(t, err, want)
		x.Close()
	}
}

// An update whose θ is no point of the simplex ends the search, with the edge, the step
// and the sum.
func TestAnUpdateThatLeavesTheSimplexIsAnError(t *testing.T) {
	defer func(before map[string]Update) { Updates = before }(maps.Clone(Updates))
	for sums, step := range map[string]simplex.Update{
		"its row sums to 1.25": func(theta, _ *Node, _ float64) *Node { return MulScalar(theta, 1.25) },
		"its row sums to 1; ": func(theta, _ *Node, _ float64) *Node { // from each option to the next, too much
			ahead := Iota(theta.Graph(), theta.Shape(), -1)
			return Add(theta, Sub(ahead, Reverse(ahead, -1)))
		},
	} {
		Updates["mine"] = stateless(step)
		s := tiny(t, "gaea-darts")
		s.Update = "mine"
		x, err := New(pure(t), s, pictures(t, 24))
		require.NoError(t, err)
		_, err = x.Search(t.Context(), 3, Options{})
		require.ErrorContains(t, err, "step 1 of ")
		require.ErrorContains(t, err, `the update "mine" left the simplex: θ of `)
		require.ErrorContains(t, err, sums)
		x.Close()
	}
}
