package simplex

import (
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"
)

func TestUpdateKeyOfAShippedUpdateIsItsName(t *testing.T) {
	for name := range Updates {
		key, err := UpdateKey(name)
		require.NoError(t, err)
		require.Equal(t, name, key)
	}
	_, err := UpdateKey("none")
	require.ErrorContains(t, err, "unknown update")
}

func keyOf(t *testing.T, name string, update Update) string {
	t.Helper()
	before, was := Updates[name]
	Updates[name] = update
	defer func() {
		delete(Updates, name)
		if was {
			Updates[name] = before
		}
	}()
	key, err := UpdateKey(name)
	require.NoError(t, err)
	return key
}

func TestUpdateKeyFollowsTheBody(t *testing.T) {
	scaled := func(c float64) Update {
		return func(theta, grad *Node, eta float64) *Node { return EG(theta, grad, c*eta) }
	}
	mine := keyOf(t, "mine", scaled(2))
	require.Equal(t, mine, keyOf(t, "renamed", scaled(2)))
	require.NotEqual(t, mine, keyOf(t, "mine", scaled(2.001)), "an edited body")
	require.Equal(t, mine, keyOf(t, "mine", func(theta, grad *Node, eta float64) *Node {
		return EG(theta, Add(grad, grad), eta) // 2η∇ = η(∇ + ∇)
	}), "the same in another way")
	require.Equal(t, mine, keyOf(t, "eg", scaled(2)), "in the place of a shipped one")
	require.NotEqual(t, "eg", keyOf(t, "eg", EGNormalizeClamp))
}

func TestUpdateKeyRefusesWhatHasAState(t *testing.T) {
	calls := 0.0
	Updates["drifting"] = func(theta, grad *Node, eta float64) *Node { calls++; return EG(theta, grad, eta*calls) }
	defer delete(Updates, "drifting")
	_, err := UpdateKey("drifting")
	require.ErrorContains(t, err, `simplex.Updates["drifting"] gives other numbers`)
}
