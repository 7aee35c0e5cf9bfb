package command

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLargePagesAreAskedForOnce(t *testing.T) {
	const madvise = "always [madvise] never\n"
	env, ok := withLargePages([]string{"A=1"}, madvise)
	require.True(t, ok)
	require.Equal(t, []string{"A=1", "GLIBC_TUNABLES=" + largePages}, env)
	_, ok = withLargePages(env, madvise)
	require.False(t, ok, "or the program would start itself for ever")
	_, ok = withLargePages([]string{"GLIBC_TUNABLES=glibc.malloc.check=1"}, madvise)
	require.False(t, ok, "a person's own options stay")
	for _, state := range []string{"", "[always] madvise never", "always madvise [never]"} {
		_, ok = withLargePages(nil, state)
		require.False(t, ok, state)
	}
}
