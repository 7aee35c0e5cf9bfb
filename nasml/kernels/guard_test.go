package kernels

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// No kernel reads or writes beside its arrays, for any shapes, and all of every
// result is written: testdata/guard.c, with the compiler's checks of addresses.
func TestKernelsStayInsideTheirArrays(t *testing.T) {
	dir := t.TempDir()
	const check = "-fsanitize=address"
	program := filepath.Join(dir, "empty.c")
	require.NoError(t, os.WriteFile(program, []byte("int main(void) { return 0; }"), 0o600))
	if err := cc(t.Context(), dir, check, "-o", "empty", program); err != nil {
		t.Skipf("this C compiler has no %s: %v", check, err)
	}
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
