package command

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The picture of the packages in CONTRIBUTING.md is the one that "go list" sees.
// With NASML_UPDATE_GOLDEN=1 it is drawn again.
func TestPictureOfThePackages(t *testing.T) {
	root, err := findRoot()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...")
	cmd.Dir = root
	out, err := cmd.Output()
	require.NoError(t, err)
	want := drawPackages(string(out))

	const begin, end = "```mermaid\n", "```\n"
	file := filepath.Join(root, ".github", "CONTRIBUTING.md")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(text), begin)
	require.True(t, found, "no picture in %s", file)
	have, after, found := strings.Cut(rest, end)
	require.True(t, found)
	if os.Getenv("NASML_UPDATE_GOLDEN") != "" {
		require.NoError(t, os.WriteFile(file, []byte(before+begin+want+end+after), 0o644))
		return
	}
	require.Equal(
		t,
		want,
		have,
		"the packages have changed: draw the picture anew with NASML_UPDATE_GOLDEN=1 go test ./nasml/command -run "+
			"TestPictureOfThePackages",
	)
}

// drawPackages is a graph of the packages of this module: who imports whom, but
// for what follows from other arrows. Rooms below a package's internal folder
// are drawn as the package that they belong to.
func drawPackages(list string) string {
	imports := map[string]map[string]bool{}
	for line := range strings.Lines(list) {
		words := strings.Fields(line)
		from, ours := shortName(words[0])
		if !ours {
			continue
		}
		if imports[from] == nil {
			imports[from] = map[string]bool{}
		}
		for _, path := range words[1:] {
			if to, ours := shortName(path); ours && to != from {
				imports[from][to] = true
			}
		}
	}
	text := "graph LR\n"
	for _, from := range slices.Sorted(maps.Keys(imports)) {
		for _, to := range slices.Sorted(maps.Keys(imports[from])) {
			if !follows(imports, from, to) {
				text += fmt.Sprintf("  %s --> %s\n", from, to)
			}
		}
	}
	return text
}

// shortName is the name of a package in the picture; false for packages of
// others, and for helpers of tests.
func shortName(path string) (string, bool) {
	path, ours := strings.CutPrefix(path, "github.com/nasml/lab/")
	path = strings.TrimPrefix(path, "nasml/")
	if room := strings.Index(path, "/internal/"); room > 0 {
		path = path[:room]
	}
	test := strings.HasSuffix(path, "test") || strings.HasSuffix(path, "steady")
	return strings.ReplaceAll(path, "/", "_"), ours && !test
}

// follows reports whether "from imports to" follows from other imports.
func follows(imports map[string]map[string]bool, from, to string) bool {
	for other := range imports[from] {
		if other != to && reaches(imports, other, to, map[string]bool{from: true}) {
			return true
		}
	}
	return false
}

func reaches(imports map[string]map[string]bool, from, to string, seen map[string]bool) bool {
	if seen[from] {
		return false
	}
	seen[from] = true
	if imports[from][to] {
		return true
	}
	for next := range imports[from] {
		if reaches(imports, next, to, seen) {
			return true
		}
	}
	return false
}

func TestAnArrowThatFollowsIsNotDrawn(t *testing.T) {
	text := drawPackages(`github.com/nasml/lab/nasml/a github.com/nasml/lab/nasml/b github.com/nasml/lab/nasml/c fmt
github.com/nasml/lab/nasml/b github.com/nasml/lab/nasml/c
github.com/nasml/lab/nasml/c
github.com/nasml/lab/nasml/p/internal/room github.com/nasml/lab/nasml/a
github.com/nasml/lab/nasml/p github.com/nasml/lab/nasml/p/internal/room github.com/nasml/lab/nasml/xtest
`)
	require.Equal(t, "graph LR\n  a --> b\n  b --> c\n  p --> a\n", text)
}
