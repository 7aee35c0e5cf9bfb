package li2021

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/data"
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
	const a, b = data.NASBench101Fingerprint, data.Shared101Fingerprint
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
}

// What is opened a second time is not read, but for its content; and what has changed
// under an unchanged time is found where it is read.
func TestOpenedTable101(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir := t.TempDir()
	_, err := openNASBench101(dir)
	require.ErrorIs(t, err, data.ErrMissing)
	at := time.Now().Add(-time.Hour)
	write := func(file string, lines ...string) {
		path := strings.TrimSuffix(filepath.Join(dir, file), ".gz")
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
		require.NoError(t, os.Chtimes(path, at, at))
	}
	write(subset101File, "id,adj_upper,ops,params,val9984_1,val9984_2,val9984_3,"+
		"test9984_1,test9984_2,test9984_3,time_s_1,time_s_2,time_s_3",
		"7,100101,I31O,10177674,9213,9148,9156,9184,9100,9126,1531.04,1532.4,1531.5")
	write(shared101File, "variant,space,seed,id,proxy_val_acc", "base,full,0,7,0.5")
	table, err := data.LoadNASBench101(dir)
	require.NoError(t, err)
	shared, err := data.LoadShared101(dir)
	require.NoError(t, err)
	for range 2 {
		opened, err := openNASBench101(dir)
		require.NoError(t, err)
		require.Equal(t, table.Fingerprint, opened.fingerprint)
		content, err := opened.content()
		require.NoError(t, err)
		require.Equal(t, table.Cells(), content.Cells())
		both, err := openShared101(dir)
		require.NoError(t, err)
		require.Equal(t, shared[0].Fingerprint, both.fingerprint)
		all, err := both.content()
		require.NoError(t, err)
		require.Equal(t, shared, all)
	}
	write(shared101File, "variant,space,seed,id,proxy_val_acc", "base,full,0,7,0.6")
	both, err := openShared101(dir)
	require.NoError(t, err, "remembered")
	_, err = both.content()
	require.ErrorContains(t, err, "has changed since it was opened; run again")
	both, err = openShared101(dir)
	require.NoError(t, err)
	all, err := both.content()
	require.NoError(t, err, "the next time it is known anew")
	require.InDeltaSlice(t, []float64{60}, all[0].Accuracy, 1e-9)

	path := strings.TrimSuffix(filepath.Join(dir, subset101File), ".gz")
	info, err := os.Stat(path)
	require.NoError(t, err)
	write(subset101File, strings.Repeat("x", int(info.Size())-1))
	opened, err := openNASBench101(dir)
	require.NoError(t, err, "remembered")
	_, err = opened.content()
	require.ErrorIs(t, err, data.ErrBroken)
}
