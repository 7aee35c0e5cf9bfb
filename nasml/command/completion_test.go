package command

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Tab on p.Wi and Shift+Tab on notebook.Export are answered by the kernel, which finds the pinned gopls; Tab in a
// string, the first in a new kernel, by the names that the field may be.
func TestCompletionInACell(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a kernel and its language server: not with -short")
	}
	s, err := openSite(t.Context())
	require.NoError(t, err)
	for _, st := range append(s.steps(), s.completion()) { // nothing is computed
		if slices.Contains([]string{"venv", "tools", "kernel", "gopls"}, st.name) && !s.done(st) {
			t.Skipf("needs the set-up, of which %q is missing: run `go tool nasml setup`", st.name)
		}
	}
	cmd := exec.CommandContext(t.Context(), s.python("venv"), filepath.Join("testdata", "complete.py"), "240")
	cmd.Env, cmd.Stderr = s.env(), t.Output()
	out, err := cmd.Output()
	require.NoError(t, err)
	var seen struct {
		Matches, Names       []string
		Doc, Replaced        string
		First, Tab, ShiftTab float64 // seconds of the answers
	}
	require.NoError(t, json.Unmarshal(out, &seen), "%s", out)
	t.Logf("Tab in a string %.2f s, on a field %.2f s, Shift+Tab %.2f s", seen.First, seen.Tab, seen.ShiftTab)
	require.Equal(t, []string{"sigmoid", "sin"}, seen.Names)
	require.Equal(t, "si", seen.Replaced)
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
