package files

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// onceOf is Remembered of a file, with the number of times that it was computed.
func onceOf(t *testing.T, path, sum string) (got string, computed int) {
	t.Helper()
	got, err := Remembered(path, "sum", func() (string, error) { computed++; return sum, nil })
	require.NoError(t, err)
	return got, computed
}

func TestFingerprintsAreRemembered(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	path := filepath.Join(t.TempDir(), "table.csv")
	write := func(text string, age time.Duration) {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		at := time.Now().Add(-age)
		require.NoError(t, os.Chtimes(path, at, at))
	}
	a, b := strings.Repeat("a01b", 16), strings.Repeat("c10d", 16)
	expect := func(why, computes, want string, times int) {
		t.Helper()
		got, computed := onceOf(t, path, computes)
		require.Equal(t, want, got, why)
		require.Equal(t, times, computed, why)
	}
	write("one", time.Hour)
	expect("first", a, a, 1)
	expect("unchanged", b, a, 0)
	write("four", 2*time.Hour)
	expect("another size and time", b, b, 1)
	expect("unchanged", a, b, 0)
	write("five", time.Hour)
	expect("another time", a, a, 1)
	kept, _, known := lookUp[string](path, "sum")
	require.True(t, known)
	for _, damaged := range []string{"", "{", `{"Value":"` + b + `"}`} {
		require.NoError(t, os.WriteFile(kept, []byte(damaged), 0o600))
		expect("kept as "+damaged, a, a, 1)
		expect("kept anew", b, a, 0)
	}
	text, err := os.ReadFile(kept)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(kept, []byte(string(text[:len(text)-20])+"zzzzzzzzzzzzzzz\"}\n"), 0o600))
	expect("no fingerprint", b, b, 1)
	text, err = os.ReadFile(kept)
	require.NoError(t, err)
	require.Contains(t, string(text), b)
	other := strings.NewReplacer("0", "1", "1", "0").Replace(b)
	require.NoError(t, os.WriteFile(kept, []byte(strings.Replace(string(text), b, other, 1)), 0o600))
	expect("digits changed", b, b, 1)
	expect("healed", a, b, 0)
	write("now", 0)
	expect("too young to be told by its time", a, a, 1)
	expect("too young to be told by its time", b, b, 1)

	write("old", time.Hour)
	expect("another file", a, a, 1)
	Forget(path, "sum")
	expect("forgotten", b, b, 1)
	got, err := Remembered("", "sum", func() (string, error) { return a, nil })
	require.NoError(t, err)
	require.Equal(t, a, got, "no file")
}
