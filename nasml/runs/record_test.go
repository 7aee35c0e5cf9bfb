package runs

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRevisionIsTheCommitAndWhetherItWasModified(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git")
	}
	dir := t.TempDir()
	require.Equal(t, "unknown", revisionOf(dir), "no checkout")
	git := func(args ...string) {
		cmd := exec.Command(
			"git",
			append([]string{"-C", dir, "-c", "user.name=t", "-c", "user.email=t@example.org"}, args...)...)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	file := filepath.Join(dir, "a.go")
	require.NoError(t, os.WriteFile(file, []byte("package a\n"), 0o644))
	git("init", "--quiet")
	git("add", "a.go")
	git("commit", "--quiet", "-m", "a")
	clean := revisionOf(dir)
	require.Regexp(t, "^[0-9a-f]{40}$", clean)
	require.NoError(t, os.WriteFile(file, []byte("package b\n"), 0o644))
	require.Equal(t, clean+" modified", revisionOf(dir))
}

// Tests are not stamped with a commit, and know it all the same.
func TestARecordNamesItsCommit(t *testing.T) {
	s, ctx := testStore(t)
	records, err := s.Compute(ctx, toyTrials(0, 1), Options{}, func(_ context.Context, j *Job) error {
		return j.Done(0, Result{Values: map[string]float64{"x": 1}})
	})
	require.NoError(t, err)
	require.Regexp(t, "^[0-9a-f]{40}( modified)?$|^v|^unknown$", records[0].Versions[thisModule])
	require.Contains(t, records[0].Versions, "go")
}
