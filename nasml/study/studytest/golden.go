// Package studytest holds what the tests of all papers' packages have in common.
package studytest

import (
	"encoding/json"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/runs"
)

// Shipped names an entry, a scale and settings whose trials the project ships.
type Shipped struct {
	ID, Scale string
	Set       []string
}

// UpdateEnv is a variable that makes Golden write what it finds where it is set.
const UpdateEnv = "NASML_UPDATE_GOLDEN"

// Golden runs entries from shipped records alone, with an empty store and no
// data, and compares all claims with those in a file, so that no verdict flips
// and no number moves unseen. It fails where a trial is not shipped, and where
// drawing needs data. With UpdateEnv set it writes the file.
func Golden(t *testing.T, file string, entries ...Shipped) {
	t.Helper()
	found := map[string][]pinned{}
	for _, e := range entries {
		found[e.name()] = pin(e.claims(t))
	}
	text, err := json.MarshalIndent(found, "", " ")
	require.NoError(t, err)
	text = append(text, '\n')
	if os.Getenv(UpdateEnv) != "" {
		require.NoError(t, os.WriteFile(file, text, 0o644))
		return
	}
	golden, err := os.ReadFile(file)
	require.NoError(t, err, "set %s=1 to write it", UpdateEnv)
	require.Equal(
		t,
		string(golden),
		string(text),
		"claims have changed: say why in the change log, and set %s=1 to update %s",
		UpdateEnv,
		file,
	)
}

func (e Shipped) name() string {
	name := e.ID + " " + e.Scale
	for _, s := range e.Set {
		name += " " + s
	}
	return name
}

// claims runs the entry where nothing but the shipped records is.
func (e Shipped) claims(t *testing.T) []runs.Claim {
	t.Helper()
	t.Setenv("NASML_DATA", t.TempDir())
	store, err := runs.Open(t.TempDir())
	require.NoError(t, err)
	ctx := runs.WithProgress(runs.WithStore(t.Context(), store), runs.Silent)
	entry, err := catalog.Lookup(e.ID)
	require.NoError(t, err)

	part := new(runs.Part) // looks, and computes nothing
	_, _ = entry.Run(runs.WithPart(ctx, part), e.Scale, e.Set)
	require.NoError(t, part.Err(), e.name())
	require.Zero(t, part.Summary().Elsewhere, "%s: so many trials are not shipped, or are of other code", e.name())

	result, err := entry.Run(ctx, e.Scale, e.Set)
	require.NoError(t, err, e.name())
	figure := result.Figure()
	require.NotEmpty(t, figure.Name)
	return result.Check()
}

// pinned is what of a claim may not change unseen.
type pinned struct {
	Name  string       `json:"name"`
	Rows  []string     `json:"rows"` // of the papers' claims; null: a claim of ours
	Holds runs.Verdict `json:"holds"`
	Ours  string       `json:"ours"`
	Lo    string       `json:"lo"`
	Hi    string       `json:"hi"`
}

func pin(claims []runs.Claim) []pinned {
	var all []pinned
	for _, c := range claims {
		all = append(all, pinned{c.Name, c.Rows, c.Holds, six(c.Ours), six(c.Lo), six(c.Hi)})
	}
	return all
}

// six are six significant digits: claims are float64 sums, whose last digits a
// compiler may move.
func six(x runs.Number) string {
	if !x.Valid() {
		return "–"
	}
	return strconv.FormatFloat(float64(x), 'g', 6, 64)
}
