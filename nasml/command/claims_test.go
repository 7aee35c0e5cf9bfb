package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/internal/claims"
	"github.com/nasml/lab/nasml/runs"
)

func rowsByID(t *testing.T) map[string]claims.Row {
	t.Helper()
	rows, err := claims.Rows()
	require.NoError(t, err)
	byID := map[string]claims.Row{}
	for _, r := range rows {
		byID[r.ID] = r
	}
	return byID
}

// Every row that a claim names is there and lists the claim's entry; every row that
// says it is judged by an entry is named by one of the entry's claims; and a claim
// that names none says that it is ours.
func TestClaimsAndRowsNameEachOther(t *testing.T) {
	t.Setenv("NASML_DATA", t.TempDir())
	store, err := runs.Open(t.TempDir())
	require.NoError(t, err)
	found, err := claims.Find(runs.WithStore(t.Context(), store))
	require.NoError(t, err)
	rows, named := rowsByID(t), map[string]bool{}
	for _, of := range found {
		for _, c := range of.Claims {
			if len(c.Rows) == 0 {
				assert.True(t, strings.HasPrefix(c.Source, "ours"),
					"%s: %q names no row, so its name begins with own: or another mark", of.Entry, c.Name)
			}
			for _, row := range c.Rows {
				id := claims.RowOf(of.Entry, row)
				assert.Contains(t, rows[id].Entries, of.Entry, "%s: %q names the row %q", of.Entry, c.Name, id)
				named[id+" "+of.Entry] = true
			}
		}
	}
	for id, r := range rows {
		for _, entry := range r.Entries {
			_, err := catalog.Lookup(entry)
			require.NoError(t, err, "%s is to judge %s", entry, id)
			assert.True(t, named[id+" "+entry], "no claim of %s names the row %s", entry, id)
		}
	}
}

// The rows in the golden tables of all papers are there, too.
func TestGoldenTablesNameRows(t *testing.T) {
	root, err := findRoot()
	require.NoError(t, err)
	rows := rowsByID(t)
	text, err := os.ReadFile(filepath.Join(root, "nasml/internal/gallery/testdata/claims.json"))
	require.NoError(t, err)
	var tables map[string][]struct {
		Name string   `json:"name"`
		Rows []string `json:"rows"`
	}
	require.NoError(t, json.Unmarshal(text, &tables))
	for setting, table := range tables {
		entry := strings.Fields(setting)[0]
		for _, c := range table {
			require.NotRegexp(t, `\b(LI|RO)\d{3}\b`, c.Name, "ids are for the field, not for readers")
			for _, row := range c.Rows {
				require.Contains(t, rows[claims.RowOf(entry, row)].Entries, entry, "%s: %s", setting, c.Name)
			}
		}
	}
}

// A row that a test holds names one that is there.
func TestRowsNameTestsThatAreThere(t *testing.T) {
	root, err := findRoot()
	require.NoError(t, err)
	for id, r := range rowsByID(t) {
		folder, name := r.ByTest()
		if folder == "" {
			continue
		}
		files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(folder), "*_test.go"))
		require.NoError(t, err)
		require.True(t, slices.ContainsFunc(files, func(file string) bool {
			text, err := os.ReadFile(file)
			return err == nil && strings.Contains(string(text), "\nfunc "+name+"(t *testing.T)")
		}), "%s: no test %s in %s", id, name, folder)
	}
}

// At least 330 of the 405 rows have a check that a run can decide, or that one will.
func TestMostRowsHaveACheck(t *testing.T) {
	judged := 0
	for _, r := range rowsByID(t) {
		if len(r.Entries) > 0 {
			judged++
		}
	}
	require.GreaterOrEqual(t, judged, 330)
}

func TestClaimsOfOnePaperAtOneScale(t *testing.T) {
	t.Setenv("NASML_STORE", t.TempDir())
	t.Setenv("NASML_DATA", t.TempDir())
	code, out, log := call(t, "claims", "--paper", "roberts", "--scale", "paper", "--json")
	require.Equal(t, exitOK, code, log)
	require.Contains(t, log, "21 rows")
	var rows []struct {
		ID     string           `json:"id"`
		Checks []map[string]any `json:"checks"`
		Reason string           `json:"reason"`
	}
	require.NoError(t, json.Unmarshal([]byte(out), &rows))
	require.Len(t, rows, 21)
	require.Equal(t, "RO001", rows[0].ID)
	require.NotEmpty(t, rows[0].Checks)
	require.Equal(t, true, rows[0].Checks[0]["holds"])
	for _, r := range rows {
		for _, c := range r.Checks {
			require.Equal(t, "paper", c["scale"])
		}
	}

	t.Setenv("COLUMNS", "100")
	code, out, log = call(t, "claims", "--paper", "Oymak+ 2021, ext")
	require.Equal(t, exitOK, code, log)
	require.Contains(t, out, "Oymak+ 2021, extended")
	require.NotContains(t, out, "\x1b", "no colours where there is no terminal")
	for line := range strings.Lines(out) {
		require.LessOrEqual(t, len([]rune(line)), 101)
	}

	page := filepath.Join(t.TempDir(), "claims.html")
	code, out, log = call(t, "claims", "--paper", "roberts", "--html", page)
	require.Equal(t, exitOK, code, log)
	require.Empty(t, out)
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Contains(t, string(text), `id="RO021"`)

	for _, args := range [][]string{
		{"claims", "--paper", "nobody"}, {"claims", "--scale", "huge"}, {"claims", "--json", "--csv"},
	} {
		code, out, log = call(t, args...)
		require.Equal(t, exitUsage, code, "%v: %s", args, log)
		require.Empty(t, out)
	}
}

// A ledger without what is stored would be false: that a store cannot be read is an
// error of every command that says what is known, and no page is written.
func TestAStoreThatCannotBeReadIsAnError(t *testing.T) {
	t.Setenv("NASML_DATA", t.TempDir())
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	inside := t.TempDir() // opens, and has a file where its folder of records should be
	require.NoError(t, os.WriteFile(filepath.Join(inside, "records"), nil, 0o600))
	page := filepath.Join(t.TempDir(), "claims.html")
	for _, store := range []string{file, inside} {
		t.Setenv("NASML_STORE", store)
		for _, args := range [][]string{
			{"claims", "--short", "--paper", "oymak"},
			{"claims", "--html", page, "--paper", "roberts"},
			{"show", "oymak2021/figure2"},
			{"list", "--state", "open", "--paper", "roberts"},
		} {
			status, out, err := call(t, args...)
			require.Equal(t, 1, status, "%v with %s: %s", args, store, out)
			require.Contains(t, err, "run store", args)
			require.Contains(t, err, store, args)
			require.Empty(t, out, args)
		}
	}
	require.NoFileExists(t, page)
}

// What the ledger says does not depend on whether data sets are there: paper-scale
// trials on CIFAR-10 are looked for without its archive, and nothing is downloaded.
func TestLedgerNeedsNoData(t *testing.T) {
	t.Setenv("NASML_STORE", t.TempDir())
	t.Setenv("NASML_DATA", t.TempDir())
	found, err := claims.Find(t.Context())
	require.NoError(t, err)
	for _, id := range []string{"khodak2020/figure1", "khodak2020/figure2", "khodak2020/figure3"} {
		require.True(t, slices.ContainsFunc(found, func(f claims.Found) bool {
			return f.Entry == id && f.Scale == catalog.Paper
		}), id)
	}
	require.True(t, slices.ContainsFunc(found, func(f claims.Found) bool {
		return f.Entry == "oymak2021/figure3" && f.Scale == catalog.Large
	}), "a scale between the two that every entry has")
}

// The page goes into what the name stands for: a link is not replaced.
func TestPageOfClaimsThroughALink(t *testing.T) {
	dir := t.TempDir()
	page, link := filepath.Join(dir, "page.html"), filepath.Join(dir, "link.html")
	require.NoError(t, os.WriteFile(page, []byte("old"), 0o600))
	require.NoError(t, os.Symlink(page, link))
	require.NoError(t, writePage(link, new(claims.Ledger)))
	info, err := os.Lstat(link)
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&os.ModeSymlink)
	require.Contains(t, read(t, page), "<html")
}

// A look at what is stored needs no set-up; a backend that is asked for stays.
func TestALookNeedsNoXLA(t *testing.T) {
	t.Setenv(pluginPathVar, "")
	t.Setenv(setupVar, t.TempDir())
	t.Setenv("GOMLX_BACKEND", "")
	readWithoutXLA(t.Context())
	require.Equal(t, "go", os.Getenv("GOMLX_BACKEND"))
	t.Setenv("GOMLX_BACKEND", "xla:cpu")
	readWithoutXLA(t.Context())
	require.Equal(t, "xla:cpu", os.Getenv("GOMLX_BACKEND"))
}
