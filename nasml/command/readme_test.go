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
			require.Contains(t, all, squeezed(block[1]), "a snippet of %s is in no Example", page)
		}
		linksLead(t, page, string(text))
	}
	require.Regexp(t, goBlock, read(t, filepath.Join(root, "README.md")))
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

// squeezed is text with one space where there is white space.
func squeezed(text string) string { return strings.Join(strings.Fields(text), " ") }
