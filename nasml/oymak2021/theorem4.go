package oymak2021

import (
	"maps"
	"runtime"
	"slices"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/oymak2021/internal/lowrank"
	"github.com/nasml/lab/nasml/study"
)

// Theorem4 runs the two-stage algorithm of Section 5: the spectral estimate of α*, and the ridgeless θ that follows.
var Theorem4 = lab.Declare(lab.Entry[Theorem4Params, lowrank.Trial]{
	Of: ofPaper, Name: "theorem4", Kind: lab.Theorem, Source: "Theorem 4", Notebook: "theorem4_spectral",
	Title: "Low-rank learning with p > n: the spectral estimate of the architecture and its risk",
	Cost: catalog.Cost{
		Quick: "about 15 seconds on two cores",
		Paper: "about 22 minutes on two cores; precomputed",
	},
	Quick: Theorem4Quick, Paper: Theorem4Paper,
	Code:      theorem4Kind,
	Units:     func(t lowrank.Trial) int { return 1 + int(t.Cost()/1e7) }, // of some milliseconds
	Rules:     Theorem4Params.rules,
	Questions: theorem4Questions,
})

// theorem4Questions are what the theorem is asked, a file each.
var theorem4Questions = []lab.Question[Theorem4Params, lowrank.Trial]{
	theorem4Bounds, theorem4Boundary, theorem4Searches, theorem4Assumptions, theorem4Merged,
}

type theorem4 = lab.Result[Theorem4Params, lowrank.Trial]

var theorem4Kind = code.Define("oymak2021/theorem4", "oymak2021/internal/lowrank")

// rules require known features, searches that fit into memory, and a part with a picture.
func (p Theorem4Params) rules(c *study.Checks) {
	for _, k := range p.Cases {
		c.OneOf("Features of a case", k.Features, slices.Sorted(maps.Keys(lowrank.Features))...)
	}
	const most = 2 << 30
	for _, h := range p.SearchOperations {
		size := 16 * float64(p.SearchExamples) * float64(p.SearchExamples) * p.SearchRatio * float64(h)
		c.Expect(size*float64(runtime.GOMAXPROCS(0)) <= most, "SearchOperations %d: each search keeps %.1f GB of "+
			"features, all together must keep at most %.1f GB; take fewer SearchExamples",
			h, size/(1<<30), float64(most)/(1<<30))
	}
	if len(*c) == 0 { // else the sizes may not even be numbers
		c.Expect(slices.ContainsFunc(theorem4Questions, func(q lab.Question[Theorem4Params, lowrank.Trial]) bool {
			return q.Draw != nil && len(q.Trials(p)) > 0
		}), "at least one part with a picture must be included")
	}
}

const notInPaper = "ours, not in the paper"
