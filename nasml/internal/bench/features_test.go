package bench

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFeaturesWithoutPeers(t *testing.T) {
	p := FeaturesQuick
	p.Rounds = 2
	r, err := Features(t.Context(), testBackend(t), p)
	require.NoError(t, err)
	require.Len(t, r.Cases, 2)
	for _, c := range r.Cases {
		require.Len(t, c.Entries, 1)
		require.Len(t, c.Entries[0].Seconds, 2)
	}
	var table bytes.Buffer
	require.NoError(t, r.WriteTable(&table))
	require.Contains(t, table.String(), "64 random Fourier features of 300 images (synthetic)")
	require.Contains(t, table.String(), "200 reviews (synthetic) in 4096 bins")
}

func TestFeaturesPeersThatDifferAreNotTimed(t *testing.T) {
	p := FeaturesQuick
	p.Python = fakePython(t, `while read line; do echo '{"seconds": 1, "losses": [1, 2]}'; done`)
	r, err := Features(t.Context(), testBackend(t), p)
	require.NoError(t, err)
	for _, c := range r.Cases {
		require.NotEmpty(t, c.Entries[0].Seconds, "ours is timed all the same")
		for _, e := range c.Entries[1:] {
			require.Contains(t, e.NotRun, "found 2 losses")
			require.Empty(t, e.Seconds)
		}
	}
}

// Where the peers' environment is, both find the same models.
func TestFeaturesBesidePeers(t *testing.T) {
	python, err := filepath.Abs("../../../.nasml/venv-peers/bin/python")
	require.NoError(t, err)
	if err := exec.CommandContext(t.Context(), python, "-c", "import sklearn").Run(); err != nil {
		t.Skip("needs scikit-learn: run \"go tool nasml bench --peers\" once")
	}
	p := FeaturesQuick
	p.Python, p.Rounds = python, 1
	r, err := Features(t.Context(), testBackend(t), p)
	require.NoError(t, err)
	require.Len(t, r.Cases[0].Entries, 3)
	require.Len(t, r.Cases[1].Entries, 2)
	for _, c := range r.Cases {
		for _, e := range c.Entries {
			require.Empty(t, e.NotRun)
			require.LessOrEqual(t, e.LossDifference, tolerance)
		}
	}
}
