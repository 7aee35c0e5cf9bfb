package bilevel

import (
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"
)

func keyOf(t *testing.T, name string, h Hypergradient) string {
	t.Helper()
	Hypergradients[name] = h
	defer delete(Hypergradients, name)
	key, err := HypergradientKey(name)
	require.NoError(t, err)
	return key
}

func TestHypergradientKeyOfAShippedOneIsItsName(t *testing.T) {
	for name := range Hypergradients {
		key, err := HypergradientKey(name)
		require.NoError(t, err)
		require.Equal(t, name, key)
	}
	_, err := HypergradientKey("none")
	require.ErrorContains(t, err, "unknown hypergradient")
}

// The probe tells all of the shipped ones apart: as a reader's they have five keys.
func TestHypergradientKeyFollowsTheBody(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{"first-order", "unrolled", "finite-difference", "cg", "neumann"} {
		h := Hypergradients[name]
		key := keyOf(t, "mine", func(p Problem, o Options, w, theta, v []*Node) (*Node, []*Node, []*Node) {
			return h(p, o, w, theta, v)
		})
		require.NotContains(t, seen, key, name)
		seen[key] = name
	}
	damped := func(c float64) Hypergradient {
		return func(p Problem, o Options, w, theta, v []*Node) (*Node, []*Node, []*Node) {
			o.Damping = c
			return ConjugateGradients(p, o, w, theta, v)
		}
	}
	mine := keyOf(t, "mine", damped(1))
	require.Equal(t, mine, keyOf(t, "renamed", damped(1)))
	require.NotEqual(t, mine, keyOf(t, "mine", damped(1.01)))
}
