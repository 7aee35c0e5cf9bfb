package gallery

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/plots"
)

func items() []Item {
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
	return []Item{
		{Entry: entry("a2000/figure1", "A 2000"), Setting: paper, Figure: figure, Claims: []runs.Claim{claim}},
		{Entry: entry("a2000/figure2", "A 2000"), Setting: paper, Figure: figure, Claims: []runs.Claim{claim, fails}},
		{Entry: entry("b2000/figure1", "B 2000"), Setting: catalog.Setting{Scale: catalog.Quick}},
	}
}

func TestStates(t *testing.T) {
	var states []string
	for _, it := range items() {
		sign, _ := it.Sign()
		states = append(states, sign+" "+it.State())
	}
	require.Equal(t, []string{"✓ 1 of 1 claims hold", "✗ 1 of 2 claims hold, 1 does not", "○ to compute"}, states)
}

// A paper's title and address are on the index and on the pages of its entries.
func TestPagesNameThePaper(t *testing.T) {
	catalog.Works["A 2000"] = catalog.Work{Title: "On <A>", URL: "https://example.com/a"}
	catalog.Works["B 2000"] = catalog.Work{Title: "On B"}
	defer delete(catalog.Works, "A 2000")
	defer delete(catalog.Works, "B 2000")
	dir := t.TempDir()
	require.NoError(t, Write(dir, items(), nil))
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
	require.NoError(t, Write(dir, items(), nil))
	pages, err := filepath.Glob(filepath.Join(dir, "*.html"))
	require.NoError(t, err)
	require.Len(t, pages, 4)
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
		"go tool nasml run a2000/figure2 --scale paper", "✗ DOES NOT HOLD", "a &lt; b", "Costs | in $ and &lt;more&gt;",
		`alt="Costs`, "a2000-figure2.pdf", "a2000-figure2.eps", "a2000-figure2.csv",
	} {
		require.Contains(t, string(text), part)
	}
}

func TestIndexIsANotebook(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, WriteIndex(dir, items()))
	text, err := os.ReadFile(filepath.Join(dir, "index.ipynb"))
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
		`alt="Costs &#124; in &#36; and &lt;more&gt;" width="180"></a>`
	require.Equal(t, "| "+picture+" | [Costs &#124; in &#36; and &lt;more&gt;](a2000/figure1.ipynb) | "+
		"✓ 1 of 1 claims hold | a second | a day |\n", row)
	require.FileExists(t, filepath.Join(dir, Thumbnails, "a2000-figure1.png"))
	require.NoFileExists(t, filepath.Join(dir, Thumbnails, "b2000-figure1.png"))
}

// The best setting comes first, and what is shipped before quick scale.
func TestSettings(t *testing.T) {
	e := catalog.Entry{Shipped: []catalog.Setting{{Scale: catalog.Quick, Set: []string{"A=1"}}}}
	require.Equal(t, []catalog.Setting{{Scale: catalog.Paper}, e.Shipped[0], {Scale: catalog.Quick}}, settingsOf(e))
}
