package command

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/nasml/lab/nasml/runs"
	"github.com/stretchr/testify/require"
)

// No time is left where nothing is left to do, and nowhere else.
func TestTimeLeft(t *testing.T) {
	for seconds, want := range map[float64]string{
		0: "0s", 1e-9: "1s", 0.4: "1s", 1: "1s", 59.2: "1m0s", 3600: "1h0m0s", 1e300: "277777h46m40s",
		math.MaxFloat64: "277777h46m40s",
	} {
		require.Equal(t, want, standing{Seconds: runs.Number(seconds)}.row()[6], seconds)
	}
	require.Equal(t, []string{"not known", "-", "-"}, standing{Seconds: runs.None}.row()[6:])
}

// In a folder that is only readable the files go to the user's cache folder, and where
// the user names a folder they go nowhere else.
func TestOutFolder(t *testing.T) {
	cache, here := t.TempDir(), t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("HOME", cache)
	t.Chdir(here)
	out, err := outFolder(console{os.Stdout, os.Stderr}, "", "figures")
	require.NoError(t, err)
	require.Equal(t, "figures", out)
	require.NoError(t, os.Remove("figures"))

	readOnly(t, here)
	out, err = outFolder(console{os.Stdout, os.Stderr}, "", "figures")
	require.NoError(t, err)
	users, err := os.UserCacheDir()
	require.NoError(t, err)
	require.Equal(t, filepath.Join(users, "nasml", "figures"), out)
	require.DirExists(t, out)
	_, err = outFolder(console{os.Stdout, os.Stderr}, "mine", "figures")
	require.ErrorContains(t, err, "take another with --out")
}

// readOnly makes a folder one that is only readable, also for root where it can.
func readOnly(t *testing.T, dir string) {
	require.NoError(t, os.Chmod(dir, 0o500))
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
	if os.Mkdir(filepath.Join(dir, "probe"), 0o700) == nil {
		require.NoError(t, os.Remove(filepath.Join(dir, "probe")))
		if err := os.Mkdir("/sys/nasml", 0o700); err == nil || errors.Is(err, os.ErrNotExist) {
			t.Skip("root may write everywhere")
		}
		t.Chdir("/sys")
	}
}
