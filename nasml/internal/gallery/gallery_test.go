package gallery

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/internal/claims"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/plots"
)

// some is a gallery of three entries, of which one was not run.
func some() *Gallery {
	claim := runs.NewClaim("a < b", "Test 2000, p. 1")
	fails := claim
	claim.Holds, fails.Holds = runs.Holds, runs.Fails
	entry := func(id, paper string) catalog.Entry {
		return catalog.Entry{
			ID: id, Paper: paper, Title: "Costs | in $ and <more>", Kind: "figure",
			Notebook: "notebooks/" + id + ".ipynb",
			Cost:     catalog.Cost{Quick: "a second", Paper: "a day"},
		}
	}
	figure := plots.Figure{
		Name: "x", Meta: map[string]string{"title": "Costs"}, Caption: "Numbers of a test.",
		Panels: [][]plots.Panel{{{Series: []plots.Series{{X: []float64{1, 2}, Y: []float64{1, 2}}}}}},
	}
	paper := catalog.Setting{Scale: catalog.Paper}
	tally := func(holds, fails, open int) claims.Tally {
		count := map[claims.Verdict]int{claims.Holds: holds, claims.Fails: fails, claims.NotRun: open}
		return claims.Tally{Claims: count}
	}
	return &Gallery{Ledger: new(claims.Ledger), Items: []Item{
		{Entry: entry("a2000/figure1", "A 2000"), Setting: paper, Figure: figure, Claims: []runs.Claim{claim},
			Tally: tally(1, 0, 0)},
		{Entry: entry("a2000/figure2", "A 2000"), Setting: paper, Figure: figure, Claims: []runs.Claim{claim, fails},
			Tally: tally(1, 1, 0)},
		{Entry: entry("b2000/figure1", "B 2000"), Setting: catalog.Setting{Scale: catalog.Quick},
			Tally: tally(0, 0, 2)},
	}}
}

// A paper's title and address are on the index and on the pages of its entries.
func TestPagesNameThePaper(t *testing.T) {
	catalog.Works["A 2000"] = catalog.Work{Title: "On <A>", URL: "https://example.com/a"}
	catalog.Works["B 2000"] = catalog.Work{Title: "On B"}
	defer delete(catalog.Works, "A 2000")
	defer delete(catalog.Works, "B 2000")
	dir := t.TempDir()
	require.NoError(t, some().Write(dir))
	for page, want := range map[string]string{
		"a2000-figure1.html": `<a href="https://example.com/a"><cite>On &lt;A&gt;</cite></a>`,
		"b2000-figure1.html": `B 2000, <cite>On B</cite>`,
		"index.html":         `<a href="https://example.com/a"><cite>On &lt;A&gt;</cite></a>`,
	} {
		text, err := os.ReadFile(filepath.Join(dir, page))
		require.NoError(t, err)
		require.Contains(t, string(text), want)
	}
}

// Every link of a page leads to a file of the folder, and the pages ask nobody
// else.
func TestPagesNeedNothingElse(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "gallery")
	require.NoError(t, some().Write(dir))
	pages, err := filepath.Glob(filepath.Join(dir, "*.html"))
	require.NoError(t, err)
	require.Len(t, pages, 5)
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		require.NotContains(t, string(text), "http")
		for _, attribute := range []string{` href="`, ` src="`} {
			for _, rest := range strings.Split(string(text), attribute)[1:] {
				link, _, _ := strings.Cut(rest, `"`)
				require.FileExists(t, filepath.Join(dir, link))
			}
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "a2000-figure2.html"))
	require.NoError(t, err)
	for _, part := range []string{
		"go tool nasml run a2000/figure2 --scale paper", "✗ does not hold", "1 holds, 1 does not hold", "a &lt; b",
		"Costs | in $ and &lt;more&gt;",
		`alt="Costs`, "a2000-figure2.pdf", "a2000-figure2.eps", "a2000-figure2.csv",
	} {
		require.Contains(t, string(text), part)
	}
}

// checkout is a folder with the pages that are filled in.
func checkout(t *testing.T) string {
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "notebooks", "guide"), 0o777))
	for _, name := range []string{"README.md", "notebooks/guide/figures.md"} {
		text := "before\n" + begin + "\nold\n" + end + "\nafter\n"
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o666))
	}
	return root
}

func TestIndexIsANotebook(t *testing.T) {
	root := checkout(t)
	require.NoError(t, some().WritePages(root))
	text, err := os.ReadFile(filepath.Join(root, "notebooks", "index.ipynb"))
	require.NoError(t, err)
	var notebook struct {
		Cells []struct {
			Type   string   `json:"cell_type"`
			ID     string   `json:"id"`
			Source []string `json:"source"`
		}
		Format int `json:"nbformat"`
	}
	require.NoError(t, json.Unmarshal(text, &notebook))
	require.Equal(t, 4, notebook.Format)
	require.Len(t, notebook.Cells, 3, "a head, and a cell a paper")
	require.Equal(t, "markdown", notebook.Cells[1].Type)
	row := notebook.Cells[1].Source[4]
	picture := `<a href="a2000/figure1.ipynb"><img src="thumbnails/a2000-figure1.png" ` +
		`alt="Costs &#124; in &#36; and &lt;more&gt;" width="320"></a>`
	require.Equal(t, `<tr><td width="340">`+picture+`</td><td><b>Figure 1</b><br><a href="a2000/figure1.ipynb">`+
		"Costs &#124; in &#36; and &lt;more&gt;</a></td><td>1 holds</td>"+
		"<td>quick: a second<br>paper: a day</td></tr>\n", row)
	require.FileExists(t, filepath.Join(root, "notebooks", Thumbnails, "a2000-figure1.png"))
	require.NoFileExists(t, filepath.Join(root, "notebooks", Thumbnails, "b2000-figure1.png"))
}

// What stands around the generated part of a page stays, and every page has the same
// counts.
func TestPagesAreFilledIn(t *testing.T) {
	root := checkout(t)
	pages, err := some().Pages(root)
	require.NoError(t, err)
	for _, name := range []string{"README.md", "notebooks/guide/figures.md"} {
		text := string(pages[name])
		require.True(t, strings.HasPrefix(text, "before\n"+begin) && strings.HasSuffix(text, end+"\nafter\n"), text)
		require.NotContains(t, text, "\nold\n")
		for _, count := range []string{"| 1 holds |", "| 1 holds, 1 does not hold |", "| 2 not run |"} {
			require.Contains(t, text, count, name)
		}
	}
	require.NoError(t, os.WriteFile(filepath.Join(root, "README.md"), []byte("no marks"), 0o666))
	_, err = some().Pages(root)
	require.ErrorContains(t, err, "README.md has no part between")
}

// The largest scale comes first; a whole scale before a part of it; what is not shipped is looked for, too.
func TestSettings(t *testing.T) {
	e, err := catalog.Lookup("khodak2020/figure2")
	require.NoError(t, err)
	var names []string
	for _, s := range settingsOf(e) {
		names = append(names, s.String())
	}
	require.Equal(t, []string{
		"--scale paper", "--scale paper --set Tasks=imdb", "--scale large",
		"--scale quick", "--scale quick --set Methods=rs,rs-lambda",
	}, names)
}
