package gallery_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/catalog"
	_ "github.com/nasml/lab/nasml/catalog/papers" // registers their entries
	"github.com/nasml/lab/nasml/runs"
)

const (
	updateEnv = "NASML_UPDATE_GOLDEN" // set: write the file again
	keepEnv   = "NASML_GOLDEN_DIR"    // set: a folder for the pictures themselves, to compare those of two commits
	storeEnv  = "NASML_GOLDEN_STORE"  // set: a run store besides the shipped records, with a file of its own in it
)

// views are the questions of the entries whose parameters have a View.
var views = map[string][]string{
	"oymak2021/theorem3": {"bound"},
	"oymak2021/theorem4": {"boundary", "searches", "assumptions"}, // "bounds" is the default
}

// golden is what of an entry at one setting may not change unseen: how many trials it asks for and which of them
// are shipped; where all are, the SHA-256 of its picture, of the numbers in it, and of its claims; and what is wrong
// where it cannot be drawn.
type golden struct {
	Missing int               `json:"missing,omitempty"`
	Stored  int               `json:"stored,omitempty"`
	Keys    string            `json:"keys,omitempty"`
	Error   string            `json:"error,omitempty"`
	Files   map[string]string `json:"files,omitempty"`
}

// everyDigit reports whether sums of float64 end in the last digits of the golden files: not where the processor fuses
// operations, where only claims are compared, which have six digits.
const everyDigit = runtime.GOARCH == "amd64"

// pinned is a claim for a reader of testdata/claims.json, who sees which verdict flips and which number moves.
type pinned struct {
	Name  string       `json:"name"`
	Rows  []string     `json:"rows"` // of the papers' claims; null: a claim of ours
	Holds runs.Verdict `json:"holds"`
	Ours  string       `json:"ours"`
	Lo    string       `json:"lo"`
	Hi    string       `json:"hi"`
}

// Every entry draws and claims, byte for byte, what it did when testdata/golden.json and testdata/claims.json were
// written: from the shipped records alone, without data, computing nothing.
func TestEveryEntryStaysAsItIs(t *testing.T) {
	if testing.Short() {
		t.Skip("draws every entry")
	}
	folder := cmp.Or(os.Getenv(storeEnv), "testdata")
	found, known := map[string]golden{}, readGolden[golden](t, folder, "golden.json")
	claims, knownClaims := map[string][]pinned{}, readGolden[[]pinned](t, folder, "claims.json")
	t.Setenv("NASML_DATA", t.TempDir())
	t.Setenv("NASML_STORE", t.TempDir())
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1") // nothing is downloaded
	t.Setenv("GOMLX_BACKEND", "go")               // for the keys of activations: nothing else is computed
	store, err := runs.Open(cmp.Or(os.Getenv(storeEnv), t.TempDir()))
	require.NoError(t, err)
	ctx := runs.WithProgress(runs.WithStore(t.Context(), store), runs.Silent)
	var names []string
	for _, e := range catalog.All() {
		for _, s := range settings(e) {
			name := e.ID + " " + s.String()
			names = append(names, name)
			t.Run(name, func(t *testing.T) {
				found[name], claims[name] = pin(ctx, t, name, e, s)
				if os.Getenv(updateEnv) == "" {
					require.Equal(t, knownClaims[name], claims[name], "claims have changed")
				}
				if os.Getenv(updateEnv) == "" && everyDigit {
					require.Equal(t, known[name], found[name], "set %s to a folder, here and at the commit before, "+
						"and compare them; where the change is meant, set %s=1", keepEnv, updateEnv)
				}
			})
		}
	}
	if os.Getenv(updateEnv) != "" {
		writeGolden(t, folder, "golden.json", names, known, found)
		writeGolden(t, folder, "claims.json", names, knownClaims, claims)
	}
	require.ElementsMatch(t, names, slices.Collect(maps.Keys(known)), "no entry and no setting is lost")
}

func readGolden[T any](t *testing.T, folder, name string) map[string]T {
	known := map[string]T{}
	if text, err := os.ReadFile(filepath.Join(folder, name)); err == nil {
		require.NoError(t, json.Unmarshal(text, &known))
	}
	return known
}

// writeGolden updates what is known of the entries of these names; with -run, of those that were run.
func writeGolden[T any](t *testing.T, folder, name string, names []string, known, found map[string]T) {
	maps.Copy(known, found)
	maps.DeleteFunc(known, func(name string, _ T) bool { return !slices.Contains(names, name) })
	text, err := json.MarshalIndent(known, "", " ")
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(folder, 0o777))
	require.NoError(t, os.WriteFile(filepath.Join(folder, name), append(text, '\n'), 0o666))
}

// settings are every scale, what is shipped besides, and every view of each.
func settings(e catalog.Entry) []catalog.Setting {
	all := e.AllSettings()
	for _, s := range slices.Clone(all) {
		for _, view := range views[e.ID] {
			all = append(all, catalog.Setting{Scale: s.Scale, Set: append(slices.Clone(s.Set), "View="+view)})
		}
	}
	return all
}

// pin draws an entry at a setting from what is shipped.
func pin(ctx context.Context, t *testing.T, name string, e catalog.Entry, s catalog.Setting) (g golden, all []pinned) {
	part := new(runs.Part) // looks, and computes nothing
	partErr := e.RunPart(ctx, part, s.Scale, s.Set)
	g.Missing, g.Stored = part.Elsewhere()
	g.Keys = keysOf(slices.Collect(maps.Keys(part.Stored())))
	r, err := e.Stored(ctx, s)
	var open *catalog.OpenError
	if errors.As(err, &open) {
		return g, nil
	}
	var usage *catalog.UsageError
	if err = cmp.Or(err, partErr); errors.As(err, &usage) {
		g.Error = err.Error()
		return g, nil
	}
	if err != nil { // in words of this machine
		g.Error = "data are needed to know its trials"
		return g, nil
	}
	figure, claims := r.Figure(), r.Check()
	require.LessOrEqual(t, len(sentenceEnd.FindAllString(figure.Caption, -1)), 3, "sentences of %q", figure.Caption)
	if e.Settings != nil {
		claims = append(claims, e.Settings()...)
	}
	g.Files = map[string]string{}
	keep := func(format string, text []byte, err error) {
		require.NoError(t, err)
		g.Files[format] = sum(text)
		if dir := os.Getenv(keepEnv); dir != "" {
			file := strings.NewReplacer("/", "-", " ", "_").Replace(name) + "." + format
			require.NoError(t, os.MkdirAll(dir, 0o777))
			require.NoError(t, os.WriteFile(filepath.Join(dir, file), text, 0o666))
		}
	}
	picture, err := figure.Render("svg")
	keep("svg", picture, err)
	numbers, err := figure.CSV()
	keep("csv", numbers, err)
	judged, err := json.MarshalIndent(claims, "", " ")
	keep("json", judged, err)
	g.Keys = keysOf(r.Records())
	for _, c := range claims {
		all = append(all, pinned{c.Name, c.Rows, c.Holds, six(c.Ours), six(c.Lo), six(c.Hi)})
	}
	return g, all
}

// six are six significant digits.
func six(x runs.Number) string {
	if !x.Valid() {
		return "–"
	}
	return strconv.FormatFloat(float64(x), 'g', 6, 64)
}

var sentenceEnd = regexp.MustCompile(`\.(\s|$)`)

// keysOf is one word for a set of trials.
func keysOf(trials []string) string {
	slices.Sort(trials)
	return sum([]byte(strings.Join(slices.Compact(trials), "\n")))
}

func sum(text []byte) string {
	hash := sha256.Sum256(text)
	return hex.EncodeToString(hash[:12])
}
