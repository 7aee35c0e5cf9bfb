package backend

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/backend/programs"
	"github.com/nasml/lab/nasml/internal/kernels"
)

// kernelEnv starts this test's program once more, to print what a program with
// kernels computes, and how many there are.
const kernelEnv = "NASML_TEST_KERNEL_PROGRAM"

func init() {
	if os.Getenv(kernelEnv) == "" {
		return
	}
	b, err := Open()
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	out := MustNewExec(b, func(x, k *Node) *Node {
		return ReduceAllSum(Square(kernels.AvgPool3x3(kernels.DepthwiseConv(x, k, 1, 2), 2)))
	}).MustCall(normal(1, 2, 6, 7, 5), normal(2, 3, 3, 5))
	fmt.Printf("%g %d\n", tensors.MustCopyFlatData[float32](out[0])[0], len(Kernels()))
	os.Exit(0)
}

// Without kernels, for whatever reason, a program computes the same, and one
// line says why there are none.
func TestProgramsWithoutKernels(t *testing.T) {
	openCPU(t)
	elsewhere := t.TempDir() // a set-up without kernels
	require.NoError(t, os.MkdirAll(filepath.Join(elsewhere, "pjrt"), 0o755))
	require.NoError(t, os.Symlink(hooked.path, filepath.Join(elsewhere, "pjrt", "pjrt_c_api_cpu_plugin.so")))
	program := func(env ...string) (value float64, kernels int, said string) {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(append(os.Environ(), kernelEnv+"=1", compute.ConfigEnvVar+"=xla:cpu",
			pluginPathEnv+"="+filepath.Join(elsewhere, "pjrt"), programs.Env+"="+t.TempDir()), env...)
		var err strings.Builder
		cmd.Stderr = &err
		out, failed := cmd.Output()
		require.NoError(t, failed, "%s%s", out, err.String())
		_, failed = fmt.Sscan(string(out), &value, &kernels)
		require.NoError(t, failed)
		return value, kernels, err.String()
	}
	cache := programs.Env + "=" + t.TempDir()
	want, n, said := program(cache)
	require.Empty(t, said)
	require.Equal(t, 32, n)
	loaded, n, said := program(cache)
	require.Empty(t, said)
	require.Equal(t, 32, n, "a program that is loaded calls kernels, too")
	require.Equal(t, want, loaded)
	broken := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(broken, "kernels"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(broken, "kernels", kernels.FileName()), []byte("no library"), 0o644))
	require.NoError(t, os.MkdirAll(filepath.Join(broken, "pjrt"), 0o755))
	require.NoError(t, os.Symlink(hooked.path, filepath.Join(broken, "pjrt", "pjrt_c_api_cpu_plugin.so")))
	for name, test := range map[string]struct{ env, more, says string }{
		"off":              {kernels.Env + "=off", "", ""},
		"a broken library": {pluginPathEnv + "=" + filepath.Join(broken, "pjrt"), "", "does not load"},
		"another kind":     {kernels.Env + "=sse9", "", "this processor has no such instructions"},
		"no compiler":      {"CC=/nowhere/cc", "XDG_CACHE_HOME=" + t.TempDir(), "/nowhere/cc"},
	} {
		value, n, said := program(test.env, test.more)
		require.Zero(t, n, name)
		require.InEpsilon(t, want, value, 1e-5, name)
		require.Contains(t, said, test.says, name)
		if test.says == "" {
			require.Empty(t, said, name)
		} else {
			require.Equal(t, 1, strings.Count(said, "\n"), "%s: one line: %s", name, said)
			require.Contains(t, said, "no kernels, XLA's own operations are used", name)
		}
	}
}
