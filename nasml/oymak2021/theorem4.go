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
	Cost:  catalog.Cost{Quick: "about 15 seconds on two cores", Paper: "about 22 minutes on two cores; precomputed"},
	Quick: Theorem4Quick, Paper: Theorem4Paper,
	Code:      code.Define("oymak2021/theorem4", "oymak2021/internal/lowrank"),
	Units:     func(t lowrank.Trial) int { return 1 + int(t.Cost()/1e7) }, // of some milliseconds
	Rules:     Theorem4Params.rules,
	Questions: theorem4Questions,
})

var theorem4Questions = []lab.Question[Theorem4Params, lowrank.Trial]{
	theorem4Bounds, theorem4Boundary, theorem4Searches, theorem4Assumptions, theorem4Merged,
}

type theorem4 = lab.Result[Theorem4Params, lowrank.Trial]

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

// Theorem4Params are the parameters of Theorem 4: the algorithm on features that are drawn one example at a time
// (Examples … Seeds), samples of its exact distribution (Law…, Map…, Boundary…, Size…), searches by gradient (Search…)
// and runs outside the assumptions (Cases). To skip a part, leave its list of sizes empty, or MapSide or FitExamples 0.
type Theorem4Params struct {
	Examples   int       `validate:"gte=2"`                            // n of each of 𝒯 and 𝒱, of the runs on features
	Ratios     []float64 `validate:"min=1,unique,dive,gt=1,lte=10000"` // p̄ = p/n
	Operations []int     `validate:"unique,dive,gt=0,lte=100000"`      // h
	Seeds      int       `validate:"gte=1"`
	Noise      float64   `validate:"gte=0"` // standard deviation σ of the labels' noise; 0 in the paper

	LawExamples   int       `validate:"gte=2"` // n; large, so that 64·p̄h̄ < 1, where (11) says something
	LawRatios     []float64 `validate:"min=1,unique,dive,gt=1,lte=10000"`
	LawOperations []int     `validate:"unique,dive,gt=0,lte=100000"`
	LawSeeds      int       `validate:"gte=1"`

	MapExamples int     `validate:"gte=2"`          // n of the map of ρ² over p̄ and h̄
	MapSide     int     `validate:"gte=0"`          // cells along each side
	MapRatio    float64 `validate:"gt=1,lte=10000"` // its largest p̄; h̄ goes from 1/(2·MapRatio) to 1
	MapSeeds    int     `validate:"gte=1"`

	BoundaryExamples   int       `validate:"gte=2"` // n of the draws that the boundary's exponent is fitted to
	BoundaryRatios     []float64 `validate:"unique,dive,gt=1,lte=10000"`
	BoundaryOperations []int     `validate:"ascending,dive,gt=0,lte=100000"` // h, the same for every ratio
	BoundarySeeds      int       `validate:"gte=1"`

	SizeExamples []int     `validate:"unique,dive,gt=1,lte=1000000"` // n of the curves over n
	SizeLevels   []float64 `validate:"unique,dive,gt=0"`             // their ph/n², at the first of Ratios
	SizeSeeds    int       `validate:"gte=1"`

	SearchExamples   int     `validate:"gte=2"`
	SearchRatio      float64 `validate:"gt=1"`
	SearchOperations []int   `validate:"unique,dive,gt=0,lte=100000"`
	SearchSeeds      int     `validate:"gte=1"`
	SearchSteps      int     `validate:"gte=0"`    // of L-BFGS, or rounds of the alternating search
	Ridge            float64 `validate:"positive"` // λ/n of the search with a ridge

	FitExamples   int `validate:"eq=0|gte=4"` // 2n of the merged sets
	FitOperations int `validate:"gte=1"`
	FitTries      int `validate:"gte=1"` // directions α drawn
	FitSeeds      int `validate:"gte=1"`

	Cases      []Theorem4Case `validate:"dive"`
	CaseSeeds  int            `validate:"gte=1"`
	Confidence float64        `validate:"gt=0.5,lt=1"` // of the intervals

	View string `json:",omitempty"` // one of Theorem4Views, empty: the first; it changes no trial
}

// Theorem4Views are the questions that Theorem 4 has a figure for: how close do ρ² and the risk come to the bounds (11)
// and (12); where does the estimate fail to find α*; do other searches find it; what happens outside the assumptions.
var Theorem4Views = []string{"bounds", "boundary", "searches", "assumptions"}

// Theorem4Paper has features up to p = 2000 and h = 500 and samples at n = 50,000; the paper gives no sizes. ρ² ≥ 1 −
// 64p̄h̄ and (12) hold with constants 1.8 and 2.2 instead of 64 and 200; 1 − ρ² grows as h^1.01 and p^1.00, and ρ² =
// 1/2 lies at h̄ ∝ p̄^−0.96. At 2n = p some α leave 9.7 % of the labels out of reach, although the paper says that
// every α fits.
var Theorem4Paper = Theorem4Params{
	Examples: 1000, Ratios: []float64{1.25, 2}, Operations: []int{2, 4, 8, 16, 32, 64, 125, 250, 500}, Seeds: 10,
	LawExamples: 50000, LawRatios: []float64{1.25, 2, 5, 20, 80},
	LawOperations: []int{4, 8, 16, 32, 64, 128, 256, 512}, LawSeeds: 100,
	MapExamples: 512, MapSide: 24, MapRatio: 64, MapSeeds: 20,
	BoundaryExamples: 4000, BoundaryRatios: []float64{4, 8, 16, 32, 64},
	BoundaryOperations: []int{8, 16, 23, 32, 45, 64, 91, 128, 181, 256, 362, 512, 724}, BoundarySeeds: 150,
	SizeExamples: []int{100, 200, 400, 800, 1600}, SizeLevels: []float64{0.5, 1, 2}, SizeSeeds: 60,
	SearchExamples: 250, SearchRatio: 2, SearchOperations: []int{2, 4, 8, 16, 32, 64, 125},
	SearchSeeds: 10, SearchSteps: 150, Ridge: 0.5,
	FitExamples: 60, FitOperations: 3, FitTries: 20, FitSeeds: 60,
	Cases: theorem4Cases, CaseSeeds: 30,
	Confidence: 0.95,
}

// Theorem4Quick is the same at n = 200 and p ≤ 1000 with 8 seeds. All verdicts are those of the paper's scale.
var Theorem4Quick = func() Theorem4Params {
	p := Theorem4Paper
	p.Examples, p.Ratios, p.Operations, p.Seeds = 200, []float64{1.25, 2, 5}, []int{2, 4, 8, 16, 32}, 8
	p.LawSeeds, p.LawOperations = 60, []int{4, 8, 16, 32, 64, 128}
	p.MapExamples, p.MapSide, p.MapSeeds = 192, 14, 10
	p.BoundaryExamples, p.BoundarySeeds = 2000, 80
	p.BoundaryOperations = []int{4, 8, 11, 16, 23, 32, 45, 64, 91, 128, 181, 256, 362}
	p.SizeExamples, p.SizeSeeds = []int{50, 100, 200, 400}, 24
	p.SearchExamples, p.SearchOperations, p.SearchSeeds, p.SearchSteps = 60, []int{2, 4, 8, 16, 30}, 8, 60
	p.FitExamples, p.FitSeeds, p.FitTries = 30, 60, 5
	p.CaseSeeds = 8
	return p
}()
