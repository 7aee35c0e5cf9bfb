package command

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/runs"
)

// another is a module beside this one that requires it.
type another struct {
	dir string
	env []string
}

var notRequired = regexp.MustCompile(`(?s)\ntool \([^)]*\)|\ntool [^\n]*|\nmodule [^\n]*|\nreplace [^\n]*`)

// newAnother copies testdata/own into a folder and makes a module of it that has this
// checkout in the place of the published module, and the versions that it pins.
func newAnother(t *testing.T) *another {
	t.Helper()
	root, err := findRoot()
	require.NoError(t, err)
	a := &another{dir: t.TempDir()}
	require.NoError(t, os.CopyFS(a.dir, os.DirFS(filepath.Join("testdata", "own"))))
	ours := read(t, filepath.Join(root, "go.mod"))
	theirs := "module example.com/mine\n" + notRequired.ReplaceAllString("\n"+ours, "\n") +
		"\nrequire github.com/nasml/lab v0.0.0\n\nreplace github.com/nasml/lab => " + root + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(a.dir, "go.mod"), []byte(theirs), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(a.dir, "go.sum"), []byte(read(t, filepath.Join(root, "go.sum"))),
		0o644))
	a.env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off", setupVar+"=", pluginPathVar+"=",
		"NASML_STORE="+filepath.Join(a.dir, "store"))
	return a
}

func (a *another) build(t *testing.T, pkg, program string) string {
	t.Helper()
	path := filepath.Join(a.dir, program)
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", path, pkg)
	cmd.Dir, cmd.Env = a.dir, a.env
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	return path
}

// run returns what a program of the module prints, and what it says.
func (a *another) run(t *testing.T, env, program string, args ...string) (out, says string, status int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	var stderr strings.Builder
	cmd.Dir, cmd.Env, cmd.Stderr = a.dir, append(a.env, env), &stderr
	text, _ := cmd.Output()
	return string(text), stderr.String(), cmd.ProcessState.ExitCode()
}

// A figure of another module is in the command that it makes by one import, beside
// those of the papers: in list, show and run; an edit of its body is another trial.
func TestAFigureOfAnotherModule(t *testing.T) {
	if testing.Short() {
		t.Skip("links three programs: not with -short")
	}
	a := newAnother(t)
	program := a.build(t, ".", "mine")

	out, says, status := a.run(t, "A=", program, "list", "--json")
	require.Zero(t, status, says)
	var entries []catalog.Entry
	require.NoError(t, json.Unmarshal([]byte(out), &entries))
	titles := map[string]string{}
	for _, e := range entries {
		titles[e.ID] = e.Title
	}
	require.Equal(t, "Areas of noisy squares", titles["squares/figure1"])
	require.Contains(t, titles, "li2021/figure1")

	out, says, status = a.run(t, "A=", program, "show", "squares/figure1")
	require.Zero(t, status, says)
	require.Contains(t, out, "Sides: []int")

	records := func(program string) []string {
		out, says, status := a.run(t, "A=", program, "run", "squares/figure1", "--set", "Seeds=6", "--format", "svg",
			"--json")
		require.Zero(t, status, says)
		var o outcome
		require.NoError(t, json.Unmarshal([]byte(out), &o))
		require.Len(t, o.Records, 18)
		require.Equal(t, runs.Holds, o.Claims[0].Holds)
		require.FileExists(t, filepath.Join(a.dir, o.Files[0]))
		return o.Records
	}
	first := records(program)
	require.Equal(t, first, records(program))
	source := filepath.Join(a.dir, "squares", "squares.go")
	edited := strings.Replace(read(t, source), "/100\n", "/200\n", 1)
	require.NoError(t, os.WriteFile(source, []byte(edited), 0o644))
	require.NotEqual(t, first, records(a.build(t, ".", "edited")))

	// What needs XLA says what to do here, if there is no checkout, and no file is left.
	_, says, status = a.run(t, "GOMLX_BACKEND=xla:cpu", program, "run", "oymak2021/figure2", "--set", "Data=synthetic",
		"--set", "Epochs=1")
	require.Equal(t, exitFailed, status)
	for _, part := range []string{
		"PJRT_PLUGIN_LIBRARY_PATH", "xla-cpu-pjrt==0.0.1", "GOMLX_BACKEND=go", "NASML_SETUP",
	} {
		require.Contains(t, says, part)
	}
	_, says, status = a.run(t, "A=", program, "lab", "--no-browser")
	require.Equal(t, exitFailed, status)
	require.Contains(t, says, "no checkout of "+modulePath)

	out, says, status = a.run(t, "GOMLX_BACKEND=go", a.build(t, "./library", "searching"))
	require.Zero(t, status, says)
	require.Regexp(t, `^\|(skip|nor|avg)_.*\] *\n$`, strings.ReplaceAll(out, "]\n", "] \n"))
}

// The entry that CONTRIBUTING.md prints is the one that the test above builds and runs.
func TestContributingPrintsTheEntry(t *testing.T) {
	root, err := findRoot()
	require.NoError(t, err)
	page := read(t, filepath.Join(root, ".github", "CONTRIBUTING.md"))
	entry := read(t, filepath.Join("testdata", "own", "squares", "squares.go"))
	require.Contains(t, page, "```go\n"+entry+"```\n")
}

// The lines that run a search in another module are those of search's Example, which
// the README may show.
func TestTheLibraryProgramIsTheExample(t *testing.T) {
	bodies := strings.Join(exampleBodies(t, filepath.Join("..", "search", "example_test.go")), "\n")
	program := read(t, filepath.Join("testdata", "own", "library", "main.go"))
	_, body, _ := strings.Cut(program, "func main() {")
	body, _, _ = strings.Cut(body, "\n}\n")
	require.Contains(t, bodies, squeezed(body))
}
