package spectral

import "embed"

// TangentSources are the files that compute tangent kernels, for the version
// of the code in a trial's key.
//
//go:embed activation.go gram.go ntk.go ntk_deep.go quadrature.go
var TangentSources embed.FS
