package data_test

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/data/datatest"
)

// The part that travels has as many rows as classes of S1 to S3 are in the subset, each
// once, and the best training of S2 that the space's authors print.
func TestOneShot101(t *testing.T) {
	b, err := data.OneShot101()
	require.NoError(t, err)
	require.Equal(t, 20401, b.Len())
	require.Equal(t, "0abdf27185ce5e5e87764ab049e1fc2cf9364c2d9e83655f41394859a537b77c", b.Fingerprint,
		"as README.md says")
	require.False(t, b.Complete())
	cell, err := data.ParseCell101("I1O 111")
	require.NoError(t, err)
	x, err := b.Accuracy(cell, data.Query101{Split: data.Test, Epochs: 108, Trial: 1})
	require.NoError(t, err)
	require.InDelta(t, 100*8345./9984, x, 1e-9)
}

// The rows are those of the published subset, whose cells are classes of a space; with
// NASML_UPDATE_GOLDEN=1 the part is taken from it again.
func TestOneShot101IsOfTheSubset(t *testing.T) {
	dir := datatest.Dir(t, "nasbench/nb1shot1_classes.csv.gz", "nasbench/nb101_108_subset151644.csv.gz")
	classes, err := csv.NewReader(strings.NewReader(unzipped(t,
		filepath.Join(dir, "nasbench", "nb1shot1_classes.csv.gz")))).ReadAll()
	require.NoError(t, err)
	found := map[string]bool{}
	for _, row := range classes[1:] {
		found[row[4]] = row[4] != ""
	}
	var want strings.Builder
	for i, line := range strings.SplitAfter(unzipped(t,
		filepath.Join(dir, "nasbench", "nb101_108_subset151644.csv.gz")), "\n") {
		if id, _, _ := strings.Cut(line, ","); i == 0 || found[id] {
			want.WriteString(line)
		}
	}
	const path = "shipped/nasbench101_1shot1.csv.gz"
	if os.Getenv("NASML_UPDATE_GOLDEN") != "" {
		var out bytes.Buffer
		z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
		require.NoError(t, err)
		_, err = io.WriteString(z, want.String())
		require.NoError(t, err)
		require.NoError(t, z.Close())
		require.NoError(t, os.WriteFile(path, out.Bytes(), 0o644))
	}
	require.Equal(t, want.String(), unzipped(t, path))
}

func unzipped(t *testing.T, path string) string {
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	z, err := gzip.NewReader(bytes.NewReader(raw))
	require.NoError(t, err)
	text, err := io.ReadAll(z)
	require.NoError(t, err)
	return string(text)
}
