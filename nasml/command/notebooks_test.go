package command

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// notebookOf is the text of a notebook of cells of Go.
func notebookOf(t *testing.T, cells ...string) []byte {
	t.Helper()
	var list []map[string]any
	for i, source := range cells {
		list = append(list, map[string]any{
			"cell_type": "code", "id": fmt.Sprint("cell", i), "execution_count": nil, "metadata": map[string]any{},
			"outputs": []any{}, "source": source,
		})
	}
	kernel := map[string]any{"name": "gonb", "display_name": "Go (gonb)", "language": "go"}
	text, err := json.Marshal(map[string]any{
		"cells": list, "metadata": map[string]any{"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5,
	})
	require.NoError(t, err)
	return text
}

// writeNotebook makes a notebook of code cells.
func writeNotebook(t *testing.T, cells ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tiny.ipynb")
	require.NoError(t, os.WriteFile(path, notebookOf(t, cells...), 0o644))
	return path
}

// readySite is the checkout, where it is set up.
func readySite(t *testing.T) *site {
	t.Helper()
	if testing.Short() {
		t.Skip("starts kernels: not with -short")
	}
	s, err := openSite(t.Context())
	require.NoError(t, err)
	for _, st := range s.steps() {
		if !s.done(st) {
			t.Skipf("needs the set-up, of which %q is missing: run `go tool nasml setup`", st.name)
		}
	}
	return s
}

func TestRunNotebookFailsWithItsCells(t *testing.T) {
	s := readySite(t)
	for name, test := range map[string]struct {
		cells []string
		want  []string // in the error
	}{
		"compile error": {[]string{"%%\nprintln(1)", "%%\nundefined()"}, []string{"cell 2 of 2", "undefined"}},
		"no %%":         {[]string{"x := 1"}, []string{"cell 1 of 1", "found x", "start the cell with %%"}},
		"panic":         {[]string{"%%\npanic(\"no such luck\")"}, []string{"cell 1 of 1", "no such luck"}},
		"shell line":    {[]string{"!false"}, []string{"cell 1 of 1", "exit status 1"}},
		"magic":         {[]string{"!true", "%nosuchmagic"}, []string{"cell 2 of 2", "unknown or not implemented"}},
		"too slow":      {[]string{"!sleep 60"}, []string{"cell 1 of 1", "timed out"}},
	} {
		t.Run(name, func(t *testing.T) {
			file := writeNotebook(t, test.cells...)
			before, err := os.ReadFile(file)
			require.NoError(t, err)
			limit := time.Minute
			if name == "too slow" {
				limit = time.Second
			}
			err = s.runNotebook(t.Context(), console{t.Output(), t.Output()}, file,
				notebookRun{write: true, timeout: limit})
			require.Error(t, err)
			for _, want := range append(test.want, "tiny.ipynb") {
				require.Contains(t, strings.ToLower(err.Error()), want)
			}
			after, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, string(before), string(after), "a notebook that fails is left as it was")
		})
	}
}

func TestRunNotebookWritesOutputs(t *testing.T) {
	s := readySite(t)
	file := writeNotebook(
		t,
		"import (\n\t\"fmt\"\n\t\"os\"\n\n\t\"github.com/nasml/lab/nasml/data\"\n)",
		"%%\nfmt.Println(\"scale\", os.Getenv(\"NASML_SCALE\"), data.MNIST)\n"+
			"fmt.Fprintln(os.Stderr, \"exit status 3\")",
	)
	var log bytes.Buffer
	r := notebookRun{timeout: 5 * time.Minute, env: []string{"NASML_SCALE=quick"}}
	require.NoError(t, s.runNotebook(t.Context(), console{&log, &log}, file, r), log.String())
	require.NotContains(t, read(t, file), "scale quick mnist", "without write the file stays as it is")

	r.write = true
	require.NoError(t, s.runNotebook(t.Context(), console{&log, &log}, file, r), log.String())
	first := read(t, file)
	require.Contains(t, first, "scale quick mnist")
	require.Contains(t, log.String(), "cell 2 of 2")
	require.Regexp(t, `: done in [\d.]+s, its cells in \d+\.\d, \d+\.\d s\n`, log.String())
	require.NoError(t, s.runNotebook(t.Context(), console{&log, &log}, file, r))
	require.Equal(t, first, read(t, file), "a second run gives the same file")
}

// A dot-import of one cell leaves the next, which does without, as it was.
func TestADotImportStaysInItsCell(t *testing.T) {
	s := readySite(t)
	file := writeNotebook(t, "import . \"github.com/gomlx/gomlx/core/graph\"\n\n"+
		"var half = func(x *Node) *Node { return MulScalar(x, 0.5) }", "%%\nprintln(half != nil)", "%rm half",
		"%%\nprintln(1)")
	require.NoError(t, s.runNotebook(t.Context(), console{t.Output(), t.Output()}, file, notebookRun{}))
}

func TestRunNotebookStopsWithItsContext(t *testing.T) {
	s := readySite(t)
	ctx, cancel := context.WithCancel(t.Context())
	running := writerFunc(func(p []byte) (int, error) {
		if strings.Contains(string(p), "cell 1 of 1") {
			cancel()
		}
		return len(p), nil
	})
	err := s.runNotebook(ctx, console{running, running}, writeNotebook(t, "!sleep 600"), notebookRun{})
	require.Error(t, err)
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}

// Every notebook has what the kernel says of its language, so that opening it changes nothing.
func TestNotebooksSayWhatTheKernelSays(t *testing.T) {
	root, err := findRoot()
	require.NoError(t, err)
	files, err := filepath.Glob(filepath.Join(root, "notebooks", "*", "*.ipynb"))
	require.NoError(t, err)
	top, err := filepath.Glob(filepath.Join(root, "notebooks", "*.ipynb"))
	require.NoError(t, err)
	for _, file := range append(files, top...) {
		if strings.Contains(file, ".ipynb_checkpoints") { // JupyterLab's, of no reader
			continue
		}
		var notebook struct {
			Metadata struct {
				Language map[string]string `json:"language_info"`
			}
		}
		require.NoError(t, json.Unmarshal([]byte(read(t, file)), &notebook))
		require.Equal(t, map[string]string{
			"name": "go", "mimetype": "text/x-go", "file_extension": ".go", "pygments_lexer": "", "codemirror_mode": "",
			"nbconvert_exporter": "",
		}, notebook.Metadata.Language, file)
	}
}
