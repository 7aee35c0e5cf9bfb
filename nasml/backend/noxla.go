//go:build !(cgo && ((linux && (amd64 || arm64)) || (darwin && arm64)) && !noxla)

package backend

import "github.com/gomlx/compute"

const (
	configs       = "go; " + advice
	defaultConfig = "go"
	advice        = "this program was built without XLA: install a C compiler (Debian: apt install gcc libc6-dev), set CGO_ENABLED=1 and build again" //nolint:lll // one sentence
)

// openHostDevices has nothing to open: the pure-Go backend has one device.
func openHostDevices(compute.Backend, string, int) (compute.Backend, error) { return nil, nil }

// platform is the name of the backend: without XLA there is one a name.
func platform(b compute.Backend) string { return b.Name() }

func defaultPlugins() []string { return nil }

// hookPlugin has nothing to hook.
func hookPlugin(string) {}

// Foresee has nothing to load.
func Foresee(compute.Backend, any) (end func()) { return func() {} }

// Compiling reports whether XLA compiles a program just now: never.
func Compiling() bool { return false }

// Kernels names the C kernels that programs of this process call: none.
func Kernels() []string { return nil }
