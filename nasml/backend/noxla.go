//go:build !(cgo && ((linux && (amd64 || arm64)) || (darwin && arm64)) && !noxla)

package backend

import "github.com/gomlx/compute"

const (
	defaultConfig = "go"
	advice        = "this program was built without XLA: install a C compiler (Debian: apt install gcc libc6-dev), set CGO_ENABLED=1 and build again"
)

// openHostDevices has nothing to open: the pure-Go backend has one device.
func openHostDevices(compute.Backend, string, int) (compute.Backend, error) { return nil, nil }
