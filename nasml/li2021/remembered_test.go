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
