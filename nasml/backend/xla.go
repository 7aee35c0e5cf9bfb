//go:build cgo && ((linux && (amd64 || arm64)) || (darwin && arm64)) && !noxla

package backend

import (
	"os"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/go-xla/compute/xla"
	"github.com/gomlx/go-xla/pjrt"
)

const (
	configs       = "xla:cpu, xla:cuda or go"
	defaultConfig = "xla"
	advice        = "in a checkout run `go tool nasml setup`, which installs XLA's plugin; elsewhere set " + setupEnv +
		" to the .nasml of a checkout that is set up, or " + pluginPathEnv + " to a folder with " +
		"pjrt_c_api_cpu_plugin.so (in the package xla-cpu-pjrt==0.0.1 of PyPI it is xla_plugins/xla_cpu_pjrt/" +
		"xla_cpu_pjrt.so); or set GOMLX_BACKEND=go for the pure-Go backend, which needs nothing and is slow"
)

// GoMLX would download a plugin by itself where it finds none. A user of this
// project gets the pinned, hash-checked one of the set-up, or an error.
func init() { xla.EnableAutoInstall(false) }

// defaultPlugins are the plugins to try where none is named: those that go-xla found in the folders of the environment,
// which leaves out CUDA if there is no GPU, else those that the set-up may have made.
func defaultPlugins() []string {
	if os.Getenv(pluginPathEnv) != "" {
		return xla.GetAvailablePlugins()
	}
	return []string{"cuda", "cpu"}
}

// openHostDevices opens the CPU plugin once more, with n devices; nil where b is not XLA on a CPU. XLA's flag
// --xla_force_host_platform_device_count is for programs that link XLA and does nothing in a plugin.
func openHostDevices(b compute.Backend, config string, n int) (compute.Backend, error) {
	if own, ok := b.(*xla.Backend); !ok || !own.IsCPU() {
		return nil, nil
	}
	_, options, _ := strings.Cut(config, ":")
	return xla.NewWithOptions(options, pjrt.NamedValuesMap{"cpu_device_count": int64(n)})
}

// platform is "xla:cpu" or "xla:cuda", or the name of another backend.
func platform(b compute.Backend) string {
	own, ok := b.(*xla.Backend)
	switch {
	case !ok:
		return b.Name()
	case own.IsCPU():
		return "xla:cpu"
	}
	return "xla:cuda"
}
