package command

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/backend/programs"
)

func TestCacheIsShownAndCleared(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "xla")
	t.Setenv(programs.Env, dir)
	t.Setenv(programs.LimitEnv, "50")
	said := func(args ...string) string {
		status, out, err := call(t, append([]string{"cache"}, args...)...)
		require.Equal(t, exitOK, status, err)
		return out
	}
	require.Equal(t, "0 compiled programs, 0.0 of 50 MB, in "+dir+"\n", said())
	cache, err := programs.Default()
	require.NoError(t, err)
	require.NoError(t, cache.Put(programs.KeyOf([]byte("one")), make([]byte, 2_000_000)))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "foreign"), nil, 0o600))
	require.Equal(t, "1 compiled programs, 2.0 of 50 MB, in "+dir+"\n", said("show"))
	require.Equal(t, "removed 1 compiled programs, 2.0 MB, from "+dir+"\n", said("clear"))
	require.Equal(t, "0 compiled programs, 0.0 of 50 MB, in "+dir+"\n", said())
	require.FileExists(t, filepath.Join(dir, "foreign"))

	t.Setenv(programs.Env, "off")
	require.Equal(t, "compiled programs are not kept: NASML_XLA_CACHE is off\n", said())
	status, _, text := call(t, "cache", "clear")
	require.Equal(t, exitUsage, status)
	require.Equal(t, "nasml: no cache to clear: NASML_XLA_CACHE is off\n", text)
}
