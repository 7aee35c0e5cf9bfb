package bilevel

import (
	"testing"

	"github.com/gomlx/compute"
	_ "github.com/gomlx/compute/gobackend"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/floats"
)

func goBackend(t *testing.T) compute.Backend {
	t.Helper()
	b, err := compute.NewWithConfig("go")
	require.NoError(t, err)
	return b
}

// run executes a graph function once and returns its results as flat lists.
func run(t *testing.T, f func(in []*Node) []*Node, in ...any) [][]float64 {
	t.Helper()
	out, err := ExecOnceN(goBackend(t), func(in []*Node) []*Node {
		var flat []*Node
		for _, x := range f(in) {
			flat = append(flat, Reshape(x, x.Shape().Size()))
		}
		return flat
	}, in...)
	require.NoError(t, err)
	values := make([][]float64, len(out))
	for i, x := range out {
		values[i] = x.Value().([]float64)
	}
	return values
}

// fails returns the error of a graph function that panics.
func fails(t *testing.T, f func(in []*Node) *Node, in ...any) error {
	t.Helper()
	_, err := ExecOnce(goBackend(t), f, in...)
	require.Error(t, err)
	return err
}

func concat(lists ...[]float64) (all []float64) {
	for _, x := range lists {
		all = append(all, x...)
	}
	return all
}

func requireClose(t *testing.T, want, got []float64, tolerance float64, msg string, args ...any) {
	t.Helper()
	require.Len(t, got, len(want), append([]any{msg}, args...)...)
	scale := 1 + floats.Norm(want, 2)
	for i := range want {
		require.InDelta(t, want[i], got[i], tolerance*scale, append([]any{msg}, args...)...)
	}
}
