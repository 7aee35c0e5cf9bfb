package spectral

import "embed"

// RankOneSources is the code behind the rank-one estimators, for the version of
// the code in the key of a trial that uses them.
//
//go:embed rankone.go lanczos.go law.go descent.go
var RankOneSources embed.FS
