package supernet

import "embed"

// Sources is the code of this package's activations, for the code version of a
// trial that uses them.
//
//go:embed activations.go
var Sources embed.FS

// NetSources is the code of this package's networks, for the code version of a
// trial that uses them.
//
//go:embed space.go net.go forward.go ops.go
var NetSources embed.FS
