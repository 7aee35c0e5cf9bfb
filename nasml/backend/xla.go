//go:build cgo && ((linux && (amd64 || arm64)) || (darwin && arm64)) && !noxla

package backend

import "github.com/gomlx/go-xla/compute/xla"

const (
	defaultConfig = "xla"
	advice        = "run `go tool nasml setup` to install the XLA plugin, or set GOMLX_BACKEND=go for the slow pure-Go backend"
)

// GoMLX would download a plugin by itself where it finds none. A user of this
// project gets the pinned, hash-checked one of the set-up, or an error.
func init() { xla.EnableAutoInstall(false) }
