package supernet

import "embed"

// Sources is the code of this package's operations, for the code version of a
// trial that uses them.
//
//go:embed activations.go
var Sources embed.FS
