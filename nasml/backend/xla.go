//go:build cgo && ((linux && (amd64 || arm64)) || (darwin && arm64)) && !noxla

package backend

import (
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/go-xla/compute/xla"
	"github.com/gomlx/go-xla/pjrt"
)

const (
	defaultConfig = "xla"
	advice        = "run `go tool nasml setup` to install the XLA plugin, or set GOMLX_BACKEND=go for the slow pure-Go backend"
)

// GoMLX would download a plugin by itself where it finds none. A user of this
// project gets the pinned, hash-checked one of the set-up, or an error.
func init() { xla.EnableAutoInstall(false) }

// openHostDevices opens the CPU plugin once more, with n devices; nil where b
// is not XLA on a CPU. XLA's flag --xla_force_host_platform_device_count is for
// programs that link XLA and does nothing in a plugin.
func openHostDevices(b compute.Backend, config string, n int) (compute.Backend, error) {
	if own, ok := b.(*xla.Backend); !ok || !own.IsCPU() {
		return nil, nil
	}
	_, options, _ := strings.Cut(config, ":")
	return xla.NewWithOptions(options, pjrt.NamedValuesMap{"cpu_device_count": int64(n)})
}
