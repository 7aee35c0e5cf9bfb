package command

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/catalog"
)

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

// Every Go snippet of the README and of the guide is the body of an Example, so
// that it builds, and every link of theirs leads to what is there.
func TestREADMESnippetsAreExamples(t *testing.T) {
	root, err := findRoot()
	require.NoError(t, err)
	pages, err := filepath.Glob(filepath.Join(root, "notebooks", "guide", "*.md"))
	require.NoError(t, err)
	require.NotEmpty(t, pages)
	var bodies []string
	files, err := filepath.Glob(filepath.Join(root, "nasml", "*", "example_test.go"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		bodies = append(bodies, exampleBodies(t, file)...)
	}
	all := strings.Join(bodies, "\n")
	for _, page := range append(pages, filepath.Join(root, "README.md")) {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, block := range goBlock.FindAllStringSubmatch(string(text), -1) {
			_, statements, found := strings.Cut(block[1], "%%\n")
			require.True(t, found, "a snippet of %s has no line %%%%, so that a cell takes it for declarations", page)
			require.Contains(t, all, squeezed(statements), "a snippet of %s is in no Example", page)
		}
		linksLead(t, page, string(text))
	}
	require.Regexp(t, goBlock, read(t, filepath.Join(root, "README.md")))
}

// blocksRun are lines that make the blocks of Go small enough for a test, by the figure
// that a block runs, and that need no data which the project does not ship.
var blocksRun = map[string]string{
	"oymak2021.Figure2": "p.Seeds, p.Widths, p.DeltaAlphas, p.Epochs = 2, p.Widths[:2], p.DeltaAlphas[:1], 1\n",
	"li2021.Figure1": `p.Seeds, p.Epochs, p.Cells, p.Channels, p.Batch, p.Examples = 2, 1, 1, 2, 16, 0
few, classes := make([]float32, 64*8*8), make([]int, 64)
for i := range few {
	few[i], classes[i/64] = float32(i%11)/11, i/64%5
}
if _, err := data.FromArrays("few", data.Train, 8, 8, 1, few, classes); err != nil {
	panic(err)
}
p.Data, p.Image = "few", 8
`,
}

// Every block of Go of the README and of the guide runs as it is pasted into a cell, one
// after the other in one kernel, and so does a cell of statements after them all.
func TestBlocksRunAsPasted(t *testing.T) {
	s := readySite(t)
	var cells []string
	for _, page := range []string{"README.md", "notebooks/guide/vary.md"} {
		for _, block := range goBlock.FindAllStringSubmatch(read(t, filepath.Join(s.Root, page)), -1) {
			cells = append(cells, small(t, block[1]))
		}
	}
	require.Len(t, cells, 5)
	cells = append(cells, "%%\nprintln(1)")
	run := notebookRun{env: []string{"NASML_STORE=" + t.TempDir(), "GOMLX_BACKEND=go"}}
	require.NoError(t, s.runNotebook(t.Context(), console{t.Output(), t.Output()}, writeNotebook(t, cells...), run))
}

// small is a block with less to compute.
func small(t *testing.T, block string) string {
	for figure, less := range blocksRun {
		for line := range strings.Lines(block) {
			if strings.Contains(line, "notebook.Run("+figure) {
				return "import \"github.com/nasml/lab/nasml/data\"\n\n" + strings.Replace(block, line, less+line, 1)
			}
		}
	}
	t.Fatalf("a block that runs no figure of blocksRun:\n%s", block)
	return ""
}

var pageLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// linksLead to files that are there.
func linksLead(t *testing.T, page, text string) {
	for _, found := range pageLink.FindAllStringSubmatch(text, -1) {
		if to, _, _ := strings.Cut(found[1], "#"); to != "" && !strings.Contains(to, "://") {
			_, err := os.Stat(filepath.Join(filepath.Dir(page), to))
			require.NoError(t, err, "%s links %s", page, found[1])
		}
	}
}

// Every paper of an entry is in the README by its title, with its address where one
// is known, and can be cited.
func TestPapersAreNamed(t *testing.T) {
	root, err := findRoot()
	require.NoError(t, err)
	readme, citation := read(t, filepath.Join(root, "README.md")), read(t, filepath.Join(root, "CITATION.cff"))
	for _, e := range catalog.All() {
		work := catalog.Works[e.Paper]
		require.NotEmpty(t, work.Title, "catalog.Works lacks %s", e.Paper)
		require.Contains(t, citation, work.Title)
		want := "*" + work.Title + "*"
		if work.URL != "" {
			want = "[" + want + "](" + work.URL + ")"
		}
		require.Contains(t, readme, want)
	}
}

// exampleBodies are the texts between the braces of the examples in a file.
func exampleBodies(t *testing.T, file string) []string {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, file, text, parser.ParseComments)
	require.NoError(t, err)
	var bodies []string
	for _, decl := range parsed.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && strings.HasPrefix(f.Name.Name, "Example") {
			from, to := files.Position(f.Body.Lbrace).Offset+1, files.Position(f.Body.Rbrace).Offset
			bodies = append(bodies, squeezed(string(text[from:to])))
		}
	}
	return bodies
}

// squeezed is text with one space if there is white space.
func squeezed(text string) string { return strings.Join(strings.Fields(text), " ") }
