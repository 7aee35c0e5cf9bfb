package command

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/internal/accept"
)

// What computes trials is source of which was shown that it computes what the
// stored ones were computed with. Where this fails, an edit may move numbers:
// run "go tool nasml store accept", which finds out.
func TestSourcesAreAccepted(t *testing.T) {
	open, err := accept.Open(nil)
	require.NoError(t, err)
	for _, k := range open {
		t.Errorf("the source of %s is not accepted: run \"go tool nasml store accept %s\"", k.Name(), k.Name())
	}
}

// The ledger speaks of kinds that there are.
func TestTheLedgerHasNoKindThatIsGone(t *testing.T) {
	root, err := findRoot()
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(code.LedgerFile)))
	require.NoError(t, err)
	ledger, err := code.ParseLedger(text)
	require.NoError(t, err)
	known := map[string]bool{}
	for _, k := range code.Kinds() {
		known[k.Name()] = true
	}
	for name := range ledger.Kinds {
		require.True(t, known[name], "no package defines the kind %s", name)
	}
}

// The cheapest shipped trial of every kind comes out again as it was shipped, as far as machines of different kinds
// compute the same. It is what CI looks at in every run; "store accept" looks at every branch.
func TestShippedTrialsComeOutAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes")
	}
	shipped, notes, err := accept.Shipped(t.Context())
	require.NoError(t, err)
	for _, note := range notes {
		t.Log(note)
	}
	const longest = 13 // seconds; the cheapest of oymak2021/figure3 takes 12
	for _, k := range code.Kinds() {
		t.Run(k.Name(), func(t *testing.T) {
			version, err := k.Version()
			require.NoError(t, err)
			trial, ok := accept.Cheapest(shipped[version])
			if !ok || accept.Seconds([]accept.Trial{trial}) > longest {
				t.Skipf("no shipped trial of this kind can be computed in %d seconds here", longest)
			}
			moved, largest, err := accept.Recompute(
				t.Context(),
				[]accept.Trial{trial},
				func(text string) { t.Log(text) },
			)
			if errors.Is(err, data.ErrMissing) {
				t.Skipf("needs real data: %v", err)
			}
			require.NoError(t, err)
			require.False(t, slices.ContainsFunc(moved, accept.Difference.Counts), "%v", moved)
			if len(moved) > 0 {
				t.Skipf("a machine of another kind computed the record, and rounds otherwise: %v", moved)
			}
			t.Logf("largest relative difference: %v", largest)
		})
	}
}

func TestAddToLedger(t *testing.T) {
	file := filepath.Join(t.TempDir(), "versions.json")
	require.NoError(
		t,
		os.WriteFile(file, []byte(`{"modules": {}, "kinds": {"k": {"version": "v", "source": "r"}}}`), 0o644),
	)
	require.NoError(t, addToLedger(file, "k", "s"))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var l code.Ledger
	require.NoError(t, json.Unmarshal(text, &l))
	require.Equal(t, code.Version{Version: "v", Source: "s"}, l.Kinds["k"])
}
