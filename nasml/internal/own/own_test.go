package own

import (
	"math/rand/v2"
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"
)

var points = []float64{-30, -3, -0.7, -1e-3, 0, 1e-3, 0.2, 1.3, 30}

func nameOf(t *testing.T, f func(z *Node) *Node) string {
	t.Helper()
	name, err := Name("f", of(f))
	require.NoError(t, err)
	return name
}

func of(f func(z *Node) *Node) Probe {
	return Probe{Of: func(in []*Node) []*Node { return []*Node{f(in[0])} }, Inputs: []any{points}}
}

func TestANameIsWhatAFunctionComputes(t *testing.T) {
	sin := nameOf(t, Sin)
	require.Regexp(t, "^own:[0-9a-f]{16}$", sin)
	require.Equal(
		t,
		sin,
		nameOf(t, func(z *Node) *Node { return Neg(Sin(Neg(z))) }),
		"the same numbers, written in another way",
	)
	seen := map[string]int{sin: -1}
	for i, other := range []func(z *Node) *Node{
		func(z *Node) *Node { return MulScalar(Sin(z), 5) },
		func(z *Node) *Node { return Sin(MulScalar(z, 5)) },
		func(z *Node) *Node { return Sin(MulScalar(z, 1+1e-7)) },
		func(z *Node) *Node { return StopGradient(Sin(z)) },
		func(z *Node) *Node { return AddScalar(Sin(z), 1e-6) },
	} {
		name := nameOf(t, other)
		require.NotContains(t, seen, name, "function %d", i)
		seen[name] = i
	}
}

// Functions that agree in their values and differ in how they are differentiated
// train differently.
func TestANameKnowsTheGradient(t *testing.T) {
	relu := func(z *Node) *Node { return Where(GreaterThan(z, ZerosLike(z)), z, ZerosLike(z)) }
	half := func(z *Node) *Node { return MulScalar(Add(z, Abs(z)), 0.5) } // at 0 by the sign of 0
	straight := func(z *Node) *Node { return Add(StopGradient(Sub(relu(z), z)), z) }
	require.NotEqual(t, nameOf(t, relu), nameOf(t, straight))
	require.Equal(t, nameOf(t, half), nameOf(t, half))
}

func TestWhatCannotBeKnownIsRefused(t *testing.T) {
	calls := 0.0
	_, err := Name("counting", of(func(z *Node) *Node { calls++; return AddScalar(z, calls) }))
	require.ErrorContains(t, err, "counting gives other numbers when it is called again")
	_, err = Name("random", of(func(z *Node) *Node { return AddScalar(z, rand.Float64()) }))
	require.ErrorContains(t, err, "random gives other numbers")
	_, err = Name("broken", of(func(*Node) *Node { panic("no such shape") }))
	require.ErrorContains(t, err, "broken cannot be run")
	require.ErrorContains(t, err, "no such shape")
}

func TestAFunctionOfSomeShapesIsKnownByThose(t *testing.T) {
	onlyThree := func(z *Node) *Node { z.AssertDims(3); return Exp(z) }
	three := Probe{Of: func(in []*Node) []*Node { return []*Node{onlyThree(in[0])} }, Inputs: []any{points[:3]}}
	name, err := Name("f", of(onlyThree), three)
	require.NoError(t, err)
	require.NotEmpty(t, name)
}

func TestSame(t *testing.T) {
	closure := func(c float64) func(z *Node) *Node { return func(z *Node) *Node { return MulScalar(z, c) } }
	one, two := closure(1), closure(2)
	require.True(t, Same(one, one))
	require.False(t, Same(one, two), "the same code with other captured numbers")
	require.True(t, Same(Sin, Sin))
	require.False(t, Same(Sin, Cos))
	require.False(t, Same(nil, Sin))
}

func BenchmarkName(b *testing.B) {
	for b.Loop() {
		if _, err := Name("sin", of(Sin)); err != nil {
			b.Fatal(err)
		}
	}
}
