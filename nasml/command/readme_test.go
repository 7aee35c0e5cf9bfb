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
)

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

// Every Go snippet of the README is the body of an Example, so that it builds.
func TestREADMESnippetsAreExamples(t *testing.T) {
	root, err := findRoot()
	require.NoError(t, err)
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	var bodies []string
	files, err := filepath.Glob(filepath.Join(root, "nasml", "*", "example_test.go"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		bodies = append(bodies, exampleBodies(t, file)...)
	}
	all := strings.Join(bodies, "\n")
	blocks := goBlock.FindAllStringSubmatch(string(readme), -1)
	require.NotEmpty(t, blocks)
	for _, block := range blocks {
		require.Contains(t, all, squeezed(block[1]), "a snippet of the README is in no Example")
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
