package search

import "embed"

// Sources is the code of the weight-sharing methods, for the code version of a
// search. Settings are not part of it: they are in a trial's parameters.
//
//go:embed enas.go feed.go final.go graph.go methods.go search.go state.go
var Sources embed.FS

// DeviceSources is what a search on several devices runs besides.
//
//go:embed devices.go
var DeviceSources embed.FS

// TabularSources is the code of the tabular methods, for the code version of
// their runs.
//
//go:embed tabular.go tabular_methods.go tabular_bohb.go
var TabularSources embed.FS
