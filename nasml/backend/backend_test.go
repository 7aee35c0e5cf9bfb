package backend

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/gomlx/compute"
	"github.com/stretchr/testify/require"
)

func TestPluginOfTheCheckoutIsTaken(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	plugins := filepath.Join(root, ".nasml", "pjrt")
	deep := filepath.Join(root, "notebooks", "oymak2021")
	require.NoError(t, os.MkdirAll(plugins, 0o755))
	require.NoError(t, os.MkdirAll(deep, 0o755))
	cpu := filepath.Join(plugins, "pjrt_c_api_cpu_plugin.so")
	require.NoError(t, os.WriteFile(cpu, nil, 0o644))
	t.Chdir(deep)
	t.Setenv(pluginPathEnv, "")
	t.Setenv(setupEnv, "")

	require.Equal(t, "xla:"+cpu, withPlugin("xla"))
	require.Equal(t, "xla:"+cpu, withPlugin("xla:cpu"))
	require.Equal(t, "xla:"+cpu+",tf32=false", withPlugin("xla:cpu,tf32=false"))
	require.Equal(t, "xla:cuda", withPlugin("xla:cuda"), "there is none")
	require.Equal(t, "xla:/own.so", withPlugin("xla:/own.so"))
	require.Equal(t, "go", withPlugin("go"))

	cuda := filepath.Join(plugins, "pjrt_c_api_cuda_plugin.so")
	require.NoError(t, os.WriteFile(cuda, nil, 0o644))
	require.Equal(t, "xla:"+cuda, withPlugin("xla"), "the GPU first")

	made := filepath.Join(root, "made")
	require.NoError(t, os.MkdirAll(filepath.Join(made, "pjrt"), 0o755))
	t.Setenv(setupEnv, made)
	require.Equal(t, "xla", withPlugin("xla"), "the set-up's folder is named, and holds none")
	other := filepath.Join(made, "pjrt", "pjrt_c_api_cpu_plugin.so")
	require.NoError(t, os.WriteFile(other, nil, 0o644))
	require.Equal(t, "xla:"+other, withPlugin("xla"))

	t.Setenv(pluginPathEnv, "/somewhere/else")
	require.Equal(t, "xla", withPlugin("xla"), "the environment comes first")
}

// described is a backend that has nothing but a description.
type described struct {
	compute.Backend
	text string
}

func (described) Name() string          { return "xla" }
func (d described) Description() string { return d.text }

func TestDescribeNamesNoPath(t *testing.T) {
	for _, text := range []string{
		`xla:cpu - PJRT "cpu" plugin (/home/me/.nasml/pjrt/pjrt_c_api_cpu_plugin.so) v0.81 [StableHLO] [4 device(s)]`,
		`xla:/home/me/.nasml/pjrt/pjrt_c_api_cpu_plugin.so - ` +
			`PJRT "/home/me/.nasml/pjrt/pjrt_c_api_cpu_plugin.so" plugin ` +
			`(/home/me/.nasml/pjrt/pjrt_c_api_cpu_plugin.so) v0.81 [StableHLO] [4 device(s)]`,
	} {
		_, device := Describe(described{text: text})
		require.Equal(t, `xla:cpu - PJRT "cpu" plugin v0.81`, device)
	}
}

func TestOpenGivesOneBackendForTheProcess(t *testing.T) {
	t.Setenv("GOMLX_BACKEND", "go")
	first, err := Open()
	require.NoError(t, err)
	second, err := Open()
	require.NoError(t, err)
	require.Equal(t, first, second)
	name, device := Describe(first)
	require.NotEmpty(t, name)
	require.NotEmpty(t, device)
	require.NotContains(t, device, "/", "a record must not name a path of the machine")
}

func TestDevicesThatAreNotThereAreAnError(t *testing.T) {
	t.Setenv("GOMLX_BACKEND", "go")
	own, err := Open()
	require.NoError(t, err)
	for _, n := range []int{0, 1, own.NumDevices()} {
		b, err := OpenDevices(n)
		require.NoError(t, err)
		require.Equal(t, own, b, "%d devices", n)
	}
	wide, err := openHostDevices(own, pluginConfig(), 2)
	if own.Name() != "Go Backend" || err != nil || wide != nil {
		t.Skipf("the process has opened %q before", own.Name())
	}
	_, err = OpenDevices(2)
	require.ErrorContains(t, err,
		`2 devices are asked for, the backend "Go Backend" has 1: take at most as many, or XLA on a CPU`)
}

func TestAnUnknownBackendIsAnError(t *testing.T) {
	for _, config := range []string{"cuda", "cuda:0", "XLA"} {
		_, err := openWith(config)
		require.ErrorContains(t, err, `$GOMLX_BACKEND is "`+config+`": take xla:cpu, xla:cuda or go`)
	}
}

func TestOptionsOfXLA(t *testing.T) {
	file := filepath.Join(t.TempDir(), "flags")
	require.NoError(t, os.WriteFile(file, []byte("--a=1\n--b=2\n"), 0o600))
	for given, want := range map[string]string{
		"":                            "--xla_cpu_use_xnnpack=false",
		" --a=1":                      "--a=1 --xla_cpu_use_xnnpack=false",
		"--xla_cpu_use_xnnpack=true ": "--xla_cpu_use_xnnpack=true",
		file:                          "--a=1 --b=2 --xla_cpu_use_xnnpack=false",
	} {
		t.Setenv(flagsEnv, given)
		require.NoError(t, avoidXNNPACK())
		require.Equal(t, want, os.Getenv(flagsEnv))
	}
	t.Setenv(flagsEnv, file+" --a=1")
	require.ErrorContains(t, avoidXNNPACK(), "$XLA_FLAGS is neither options nor a file of them")
}
