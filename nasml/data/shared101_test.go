package data

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLoadShared101(t *testing.T) {
	head := "variant,space,seed,id,proxy_val_acc"
	load := func(lines ...string) ([]Shared101, error) {
		dir := t.TempDir()
		write201(t, dir, subset101File, table101)
		write201(t, dir, shared101File, lines)
		return LoadShared101(dir)
	}
	all, err := load(head, "base,full,0,7,0.5", "base,full,1,7,0.25", "base,full,0,0,0.75")
	require.NoError(t, err)
	require.Len(t, all, 2)
	require.Equal(t, Shared101{
		"base", "full", 0, []Cell101{all[1].Cells[0], all[0].Cells[1]}, []float64{50, 75}, all[1].Fingerprint,
	}, all[0])
	require.Len(t, all[0].Fingerprint, 64)
	require.Equal(t, "I1O 111", all[0].Cells[1].String(), "by id, not by row")
	require.Equal(t, []float64{25}, all[1].Accuracy)
	for row, want := range map[string]string{
		"base,full,0,8,0.5":  `line 2, column id: found "8"`,
		"base,full,0,x,0.5":  `line 2, column id: found "x"`,
		"base,full,0,7,50":   `line 2, column proxy_val_acc: found "50"`,
		"base,full,0,7,NaN":  `line 2, column proxy_val_acc: found "NaN"`,
		"base,full,z,7,0.5":  `line 2, column seed: found "z"`,
		"base,full,0,7":      "found 4 fields",
		"base,full,0,7,0.5,": "found 6 fields",
	} {
		_, err := load(head, row)
		require.ErrorIs(t, err, ErrBroken)
		require.ErrorContains(t, err, want)
	}
	_, err = load("variant,space,seed,id,acc")
	require.ErrorContains(t, err, "line 1, column proxy_val_acc: found no such column")
	_, err = LoadShared101(t.TempDir())
	require.ErrorIs(t, err, ErrMissing)
}
