package trial

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestSeeds(t *testing.T) {
	require.Equal(t, []uint64{0, 1, 2}, Seeds(3))
	require.Empty(t, Seeds(-1))
}

// The streams are part of every result, so they may never change.
func TestStreamsStayAsTheyAre(t *testing.T) {
	require.Equal(t, []uint64{17830914646893687293, 14851652964649072403},
		[]uint64{RNG(0).Uint64(), RNG(1, "init", "layer 1").Uint64()})
}

func TestStreamsAreNamedAndSeparate(t *testing.T) {
	seen := map[uint64]string{}
	for name, x := range map[string]uint64{
		"0":          Source(0).Uint64(),
		"1":          Source(1).Uint64(),
		"0 empty":    Source(0, "").Uint64(),
		"0 ab c":     Source(0, "ab", "c").Uint64(),
		"0 a bc":     Source(0, "a", "bc").Uint64(),
		"0 abc":      Source(0, "abc").Uint64(),
		"256":        Source(256).Uint64(),
		"0 \\x00...": Source(0, "\x00\x00\x00\x00\x00\x00\x00\x00").Uint64(),
	} {
		require.NotContains(t, seen, x, name)
		seen[x] = name
	}
}

// Two streams of one seed do not follow each other.
func TestStreamsAreUncorrelated(t *testing.T) {
	a, b := RNG(3, "init"), RNG(3, "batches")
	const n = 20_000
	sum := 0.0
	for range n {
		sum += a.NormFloat64() * b.NormFloat64()
	}
	require.Less(t, math.Abs(sum/n), 4/math.Sqrt(n))
}

func TestStreamGoesOnFromItsState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		source := Source(rapid.Uint64().Draw(t, "seed"), rapid.String().Draw(t, "part"))
		for range rapid.IntRange(0, 100).Draw(t, "drawn") {
			source.Uint64()
		}
		state, err := source.MarshalBinary()
		require.NoError(t, err)
		copied := Source(0)
		require.NoError(t, copied.UnmarshalBinary(state))
		for range 50 {
			require.Equal(t, source.Uint64(), copied.Uint64())
		}
	})
}
