package data

import "embed"

// AugmentSources is the code that makes batches of images, for the code version
// of a trial that trains on them.
//
//go:embed augment.go images.go
var AugmentSources embed.FS
