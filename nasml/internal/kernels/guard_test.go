package kernels

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// withCheck skips a test where the C compiler has no check of this name, or where a
// program with it does not run, and makes a folder.
func withCheck(t *testing.T, check string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	program := filepath.Join(dir, "empty.c")
	require.NoError(t, os.WriteFile(program, []byte("int main(void) { return 0; }"), 0o600))
	err := cc(t.Context(), dir, check, "-o", "empty", program)
	if err == nil {
		err = exec.CommandContext(t.Context(), filepath.Join(dir, "empty")).Run()
	}
	if err != nil {
		t.Skipf("this C compiler has no %s: %v", check, err)
	}
	return dir
}

// Threads that share jobs do every part once, and leave nothing behind:
// testdata/jobs.c, with the compiler's checks of the order of accesses.
func TestJobsAreShared(t *testing.T) {
	const check = "-fsanitize=thread"
	dir := withCheck(t, check)
	source, err := filepath.Abs("testdata/jobs.c")
	require.NoError(t, err)
	require.NoError(t, cc(t.Context(), dir, "-std=gnu11", "-O1", "-g", "-pthread", check, "-o", "jobs", source))
	said, err := exec.CommandContext(t.Context(), filepath.Join(dir, "jobs")).CombinedOutput()
	require.NoError(t, err, "%s", said)
	require.Equal(t, "clean\n", string(said))
}

// No kernel reads or writes beside its arrays, for any shapes, and all of every
// result is written: testdata/guard.c, with the compiler's checks of addresses.
func TestKernelsStayInsideTheirArrays(t *testing.T) {
	const check = "-fsanitize=address"
	dir := withCheck(t, check)
	source, err := filepath.Abs("c")
	require.NoError(t, err)
	common := []string{"-std=gnu11", "-O0", "-g", "-Wno-psabi", check, "-pthread"}
	link := append(common[:len(common):len(common)], "-o", "guard", filepath.Join(source, "../testdata/guard.c"),
		filepath.Join(source, "kernels.c"))
	run := exec.CommandContext(t.Context(), filepath.Join(dir, "guard"))
	for _, v := range variants() {
		args := append(append(common[:len(common):len(common)], v.flags...), v.defines()...)
		object := v.isa + ".o"
		require.NoError(t, cc(t.Context(), dir, append(args, "-c", "-o", object, filepath.Join(source, "loops.c"))...))
		link = append(link, object)
		run.Args = append(run.Args, v.isa)
	}
	require.NoError(t, cc(t.Context(), dir, append(link, "-lm")...))
	said, err := run.CombinedOutput()
	require.NoError(t, err, "%s", said)
	require.Contains(t, string(said), "plain: clean")
}
