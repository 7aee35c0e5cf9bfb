package data

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// onceOf is remembered of a file, with the number of times that it was computed.
func onceOf(t *testing.T, path, sum string) (got string, computed int) {
	t.Helper()
	got, err := remembered(path, func() (string, error) { computed++; return sum, nil })
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
	const a, b = NASBench101Fingerprint, Shared101Fingerprint
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
	kept, _, known := lookedUp(path)
	require.True(t, known)
	for _, damaged := range []string{"", "{", `{"Fingerprint":"` + b + `"}`} {
		require.NoError(t, os.WriteFile(kept, []byte(damaged), 0o600))
		expect("kept as "+damaged, a, a, 1)
		expect("kept anew", b, a, 0)
	}
	text, err := os.ReadFile(kept)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(kept, []byte(string(text[:len(text)-20])+"zzzzzzzzzzzzzzz\"}\n"), 0o600))
	expect("no fingerprint", b, b, 1)
	write("now", 0)
	expect("too young to be told by its time", a, a, 1)
	expect("too young to be told by its time", b, b, 1)
}

// What is opened a second time is not read, but for its content; and what has changed
// under an unchanged time is found where it is read.
func TestOpenNASBench101(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir := t.TempDir()
	_, err := OpenNASBench101(dir)
	require.ErrorIs(t, err, ErrMissing)
	write201(t, dir, subset101File, table101)
	write201(t, dir, shared101File, []string{"variant,space,seed,id,proxy_val_acc", "base,full,0,7,0.5"})
	at := time.Now().Add(-time.Hour)
	for _, file := range []string{subset101File, shared101File} {
		require.NoError(t, os.Chtimes(filepath.Join(dir, file), at, at))
	}
	table, err := LoadNASBench101(dir)
	require.NoError(t, err)
	shared, err := LoadShared101(dir)
	require.NoError(t, err)
	for range 2 {
		opened, err := OpenNASBench101(dir)
		require.NoError(t, err)
		require.Equal(t, table.Fingerprint, opened.Fingerprint)
		content, err := opened.Content()
		require.NoError(t, err)
		require.Equal(t, table.Cells(), content.Cells())
		both, err := OpenShared101(dir)
		require.NoError(t, err)
		require.Equal(t, shared[0].Fingerprint, both.Fingerprint)
		all, err := both.Content()
		require.NoError(t, err)
		require.Equal(t, shared, all)
	}
	path := filepath.Join(dir, subset101File)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, make([]byte, info.Size()), 0o600))
	require.NoError(t, os.Chtimes(path, at, at))
	opened, err := OpenNASBench101(dir)
	require.NoError(t, err, "remembered")
	_, err = opened.Content()
	require.ErrorIs(t, err, ErrBroken)
}
