package bench

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTextWithoutPeers(t *testing.T) {
	p := TextQuick
	p.Texts, p.Rounds = 50, 2
	r, err := Text(t.Context(), p)
	require.NoError(t, err)
	require.Len(t, r.Entries, 1)
	require.Len(t, r.Entries[0].Seconds, 2)
	var table bytes.Buffer
	require.NoError(t, r.WriteTable(&table))
	require.Contains(t, table.String(), "Hashed n-grams up to order 2 of 50 reviews (synthetic), d = 65536")
}

// Where the peers' environment is, both count the same n-grams.
func TestTextBesidePeers(t *testing.T) {
	python, err := filepath.Abs("../../../.nasml/venv-peers/bin/python")
	require.NoError(t, err)
	if err := exec.CommandContext(t.Context(), python, "-c", "import mmh3, sklearn").Run(); err != nil {
		t.Skip("needs mmh3 and scikit-learn: run \"go tool nasml bench --peers\" once")
	}
	p := TextQuick
	p.Python, p.Rounds = python, 1
	r, err := Text(t.Context(), p)
	require.NoError(t, err)
	require.Len(t, r.Entries, 3)
	for _, e := range r.Entries {
		require.Empty(t, e.NotRun)
		require.LessOrEqual(t, e.LossDifference, tolerance)
	}
}
