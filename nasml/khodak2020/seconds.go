package khodak2020

import (
	"slices"

	"github.com/nasml/lab/nasml/khodak2020/internal/mapsearch"
)

// seconds forecasts a trial by what its solves took in 2026 on two cores, at quick scale and at the paper's number of
// examples. A search on images that does not train its best configurations alone does so to judge them: about four.
func (e *examples) seconds(trial any) float64 {
	solve := func(s mapsearch.Setting, d int) float64 {
		entries := float64(e.sizes[0]) * float64(d) // of the matrix of features
		if e.task == mapsearch.ImageTask {
			if 4*entries > e.params.KeepGB*(1<<30) {
				entries *= 30 // made again in each of about 37 passes
			}
			return 0.03 + 8e-8*entries
		}
		return 9e-12 * entries * float64(s.Epochs)
	}
	switch t := trial.(type) {
	case mapsearch.Signal:
		return float64(t.Calls()) * solve(t.Setting, t.Dim)
	case mapsearch.Search:
		calls, seconds := float64(t.Calls()), 0.0 // with all features; on the ladders, with fewer
		for _, rung := range slices.Concat(t.Ladders...) {
			calls, seconds = 0, seconds+float64(rung.Arms)*solve(t.Setting, rung.Resource)
		}
		if t.Solves == 0 && e.task == mapsearch.ImageTask {
			calls += 4
		}
		return seconds + calls*solve(t.Setting, t.Dim)
	}
	return 0
}
