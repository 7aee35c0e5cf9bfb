package supernet

import (
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"
)

func activationKey(t *testing.T, name string, sigma Activation) string {
	t.Helper()
	before, was := Activations[name]
	Activations[name] = sigma
	defer func() {
		delete(Activations, name)
		if was {
			Activations[name] = before
		}
	}()
	key, err := ActivationKey(name)
	require.NoError(t, err)
	return key
}

func TestActivationKeyOfAShippedOneIsItsName(t *testing.T) {
	for name := range Activations {
		key, err := ActivationKey(name)
		require.NoError(t, err)
		require.Equal(t, name, key)
	}
	_, err := ActivationKey("none")
	require.ErrorContains(t, err, "unknown activation")
}

// What was seen in a notebook: MulScalar(Sin(z), 5) after Sin(5z) under the
// same name showed the old numbers.
func TestActivationKeyFollowsTheBody(t *testing.T) {
	inner := activationKey(t, "mine", func(z *Node) *Node { return Sin(MulScalar(z, 5)) })
	outer := activationKey(t, "mine", func(z *Node) *Node { return MulScalar(Sin(z), 5) })
	require.NotEqual(t, inner, outer)
	require.Equal(t, outer, activationKey(t, "renamed", func(z *Node) *Node {
		s := Sin(z)
		return MulScalar(s, 5)
	}))
	require.Equal(t, outer, activationKey(t, "relu", func(z *Node) *Node { return MulScalar(Sin(z), 5) }))
}

func TestSpaceKeyIsItsContent(t *testing.T) {
	for name := range Spaces {
		key, err := SpaceKey(name)
		require.NoError(t, err)
		require.Equal(t, name, key)
	}
	_, err := SpaceKey("none")
	require.ErrorContains(t, err, "unknown space")

	keyOf := func(name string, s Space) string {
		Spaces[name] = s
		defer delete(Spaces, name)
		key, err := SpaceKey(name)
		require.NoError(t, err)
		return key
	}
	smaller := NASBench201.Without("none")
	mine := keyOf("mine", smaller)
	require.Equal(t, mine, keyOf("renamed", smaller))
	require.NotEqual(t, mine, keyOf("mine", smaller.Without(smaller.Ops[0])))
}
