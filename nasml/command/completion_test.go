package command

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Tab on p.Wi and Shift+Tab on notebook.Export are answered by the kernel, which finds
// the pinned gopls.
func TestCompletionInACell(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a kernel and its language server: not with -short")
	}
	s := readySite(t)
	if !s.done(s.completion()) {
		t.Skip("needs gopls: `go tool nasml setup` builds it")
	}
	cmd := exec.CommandContext(t.Context(), s.python("venv"), filepath.Join("testdata", "complete.py"), "240")
	cmd.Env, cmd.Stderr = s.env(), t.Output()
	out, err := cmd.Output()
	require.NoError(t, err)
	var seen struct {
		Matches       []string
		Doc           string
		Tab, ShiftTab float64 // seconds of the answers
	}
	require.NoError(t, json.Unmarshal(out, &seen), "%s", out)
	t.Logf("Tab %.2f s, Shift+Tab %.2f s", seen.Tab, seen.ShiftTab)
	require.Contains(t, seen.Matches, "Widths")
	require.Contains(t, seen.Doc, "Export writes a result's picture into the folder dir")
}

// gopls is pinned in a module of its own, which the laboratory's knows nothing of.
func TestGoplsIsPinned(t *testing.T) {
	root, err := findRoot()
	require.NoError(t, err)
	mod := read(t, filepath.Join(root, goplsModule, "go.mod"))
	require.Regexp(t, `(?m)^\tgolang.org/x/tools/gopls v\d+\.\d+\.\d+ // indirect$`, mod)
	require.Regexp(t, `(?m)^tool golang.org/x/tools/gopls$`, mod)
	require.Contains(t, read(t, filepath.Join(root, goplsModule, "go.sum")), "golang.org/x/tools/gopls v")
	require.NotContains(t, read(t, filepath.Join(root, "go.mod")), "golang.org/x/tools/gopls")
}
