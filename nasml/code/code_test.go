package code

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func sourceIn(t *testing.T, files map[string]string, rooms ...string) string {
	t.Helper()
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	source, err := sourceOf(fsys, map[string]string{"gonum.org/v1/gonum": "v1", "xla-cpu-pjrt": "2"}, rooms, nil)
	require.NoError(t, err)
	return source
}

const someCode = `// Package p.
package p

// F adds.
func F(a, b int) int {
	return add(a, b) // one line
}
`

func TestSourceIgnoresCommentsLayoutTestsAndNamesOfFiles(t *testing.T) {
	want := sourceIn(t, map[string]string{"p/a.go": someCode, "q/b.go": "package q"}, "p")
	for _, same := range []map[string]string{
		{"p/a.go": "package p; func F(a,b int) int { return add(a,b) }"},
		{"p/a.go": "package p\n\n/* much\nchanged */\nfunc F(\n\ta, b int,\n) int {\n\treturn " +
			"add(\n\t\ta,\n\t\tb,\n\t)\n}\n"},
		{"p/a.go": someCode, "p/a_test.go": "package p"},
		{"p/moved.go": someCode},
		{"p/a.go": someCode, "p/notes.md": "1", "p/testdata/x.go": "package x"},
	} {
		require.Equal(t, want, sourceIn(t, same, "p"))
	}
}

func TestSourceSeesChanges(t *testing.T) {
	seen := map[string]int{sourceIn(t, map[string]string{"p/a.go": someCode}, "p"): -1}
	for i, other := range []map[string]string{
		{"p/a.go": "package p\nfunc F(a, b int) int { return add(b, a) }"},
		{"p/a.go": "package p\nfunc F(a, b int) int { return add(a, b) + 0 }"},
		{"p/a.go": "package p\nfunc F(a, b int) int { return add(a, `b`) }"},
		{"p/a.go": "package p\nfunc F(a, b int) int { return add(a, \"b\") }"},
		{"p/a.go": "//go:embed x\n" + someCode},
		{"p/a.go": someCode, "p/b.go": "package p"},
		{"p/a.go": someCode, "p/kernel.c": "1"},
		{"p/a.go": someCode, "p/kernel.c": "2"},
		{"p/a.go": "package p\nimport \"gonum.org/v1/gonum/stat\"\n"},
	} {
		source := sourceIn(t, other, "p")
		require.NotContains(t, seen, source, "case %d", i)
		seen[source] = i
	}
}

// What a package imports of this module is part of it, however far down.
func TestSourceFollowsImports(t *testing.T) {
	files := map[string]string{
		"p/a.go":   "package p\nimport \"github.com/nasml/lab/nasml/q/r\"\n",
		"q/r/r.go": "package r\nimport _ \"github.com/nasml/lab/nasml/s\"\n",
		"s/s.go":   "package s\nconst c = 1\n",
		"u/u.go":   "package u\n",
	}
	before := sourceIn(t, files, "p")
	for name, counts := range map[string]bool{"q/r/r.go": true, "s/s.go": true, "u/u.go": false} {
		changed := maps.Clone(files)
		changed[name] += "var x = 2\n"
		require.Equal(t, counts, sourceIn(t, changed, "p") != before, name)
	}
}

func TestSourceDependsOnTheVersionsOfWhatIsImported(t *testing.T) {
	of := func(imported, gonum, plugin string) string {
		fsys := fstest.MapFS{"p/a.go": {Data: []byte("package p\nimport _ \"" + imported + "\"\n")}}
		source, err := sourceOf(fsys, map[string]string{"gonum.org/v1/gonum": gonum, "xla-cpu-pjrt": plugin},
			[]string{"p"}, nil)
		require.NoError(t, err)
		return source
	}
	require.NotEqual(t, of("gonum.org/v1/gonum/stat", "v1", "2"), of("gonum.org/v1/gonum/stat", "v2", "2"))
	require.Equal(t, of("gonum.org/v1/gonum/stat", "v1", "2"), of("gonum.org/v1/gonum/stat", "v1", "3"))
	require.NotEqual(t, of("github.com/gomlx/gomlx/core/graph", "v1", "2"),
		of("github.com/gomlx/gomlx/core/graph", "v1", "3"))
	require.Equal(t, of("fmt", "v1", "2"), of("fmt", "v3", "3"))
}

// Sources of another module count with all that they import of this one, but for what
// draws, judges and stores.
func TestSourcesOfAnotherModule(t *testing.T) {
	ours := fstest.MapFS{
		"trial/t.go": {Data: []byte("package trial\n")}, "runs/r.go": {Data: []byte("package runs\n")},
	}
	of := func(body string) string {
		text := "package mine\n\nimport (\n\t\"github.com/nasml/lab/nasml/runs\"\n" +
			"\t\"github.com/nasml/lab/nasml/trial\"\n\t\"github.com/nasml/lab/plots\"\n)\n" + body
		source, err := sourceOf(ours, nil, nil, fstest.MapFS{"a.go": {Data: []byte(text)},
			"deep/b.go": {Data: []byte("package deep\n")}, "a_test.go": {Data: []byte(body)}})
		require.NoError(t, err)
		return source
	}
	before := of("func f() int { return 1 }")
	require.Equal(t, before, of("// f is one.\nfunc f() int { return 1 }"))
	require.NotEqual(t, before, of("func f() int { return 2 }"))
	ours["runs/r.go"] = &fstest.MapFile{Data: []byte("package runs\n\nvar x = 1\n")}
	require.Equal(t, before, of("func f() int { return 1 }"))
	ours["trial/t.go"] = &fstest.MapFile{Data: []byte("package trial\n\nvar x = 1\n")}
	require.NotEqual(t, before, of("func f() int { return 1 }"))
	_, err := sourceOf(ours, nil, nil, fstest.MapFS{})
	require.ErrorContains(t, err, "there is no Go file")
}

func TestSourceErrors(t *testing.T) {
	file := func(text string) fstest.MapFS { return fstest.MapFS{"p/a.go": {Data: []byte(text)}} }
	for want, files := range map[string]fstest.MapFS{
		"p/a.go:2":                      file("package p\nvar s = \"open\n"),
		"package p":                     {},
		"p imports package q":           file("package p\nimport \"github.com/nasml/lab/nasml/q\"\n"),
		"a picture would be part of it": file("package p\nimport \"github.com/nasml/lab/plots\"\n"),
	} {
		_, err := sourceOf(files, nil, []string{"p"}, nil)
		require.ErrorContains(t, err, strings.TrimSuffix(want, " of it"))
	}
}

func TestAVersionStaysWhereItsSourceIsAccepted(t *testing.T) {
	l, err := ParseLedger([]byte(`{"kinds": {"k": {"version": "v", "source": "a"}}}`))
	require.NoError(t, err)
	l.Accept("k", "b")
	l.Accept("new", "c")
	require.Equal(t, map[string]Version{
		"k":   {Version: "v", Source: "b"},
		"new": {Version: "c", Source: "c"},
	}, l.Kinds)
	text, err := l.Text()
	require.NoError(t, err)
	again, err := ParseLedger(text)
	require.NoError(t, err)
	require.Equal(t, l, again)
}

// The pinned modules are those that the checkout builds and installs.
func TestModulesAreThoseOfTheBuild(t *testing.T) {
	gomod, err := os.ReadFile("../../go.mod")
	require.NoError(t, err)
	requirements, err := os.ReadFile("../command/requirements.txt")
	require.NoError(t, err)
	for module, version := range ledger().Modules {
		pin := regexp.MustCompile(`(?m)^\s*` + regexp.QuoteMeta(module) + `(==| )` + regexp.QuoteMeta(version) + `\b`)
		require.True(t, pin.Match(gomod) || pin.Match(requirements),
			"%s %s is pinned neither in go.mod nor in requirements.txt", module, version)
	}
}

func TestLedgerFileIsAsWeWriteIt(t *testing.T) {
	file, err := ledgerFile.ReadFile("versions.json")
	require.NoError(t, err)
	text, err := ledger().Text()
	require.NoError(t, err)
	require.Equal(t, string(text), string(file))
	require.True(t, json.Valid(file))
}

func TestKindsAreDefinedOnce(t *testing.T) {
	k := Define("test/kind", "trial")
	require.Contains(t, Kinds(), k)
	require.PanicsWithValue(t, `code: "test/kind" is defined twice`, func() { Define("test/kind", "trial") })
	version, err := k.Version()
	require.NoError(t, err)
	source, err := k.Source()
	require.NoError(t, err)
	require.Equal(t, source, version, "a kind that the ledger does not know is its own version")
	require.False(t, k.Assume())
}

func BenchmarkSource(b *testing.B) {
	for b.Loop() {
		k := &Kind{name: "bench", rooms: []string{"search"}}
		if _, err := k.Version(); err != nil {
			b.Fatal(err)
		}
	}
}
