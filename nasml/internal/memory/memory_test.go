package memory

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMemory(t *testing.T) {
	require.Positive(t, Free())
	require.GreaterOrEqual(t, Has(), 1e8)
	require.Zero(t, AfterWord("/no/such/file", ""))
	before := debug.SetMemoryLimit(1 << 20)
	defer debug.SetMemoryLimit(before)
	require.InDelta(t, 1<<20, Has(), 0)
}
