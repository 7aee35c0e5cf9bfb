package oymak2021

import (
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/oymak2021/internal/lowrank"
	"github.com/nasml/lab/nasml/oymak2021/spectral"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/plots"
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

// theorem4Point has the results of all seeds at one set of sizes.
type theorem4Point struct {
	n, p, h    int
	noise      float64
	rho2, risk []float64
	oracle     []float64 // risk of knowing α*; of runs on features only
}

func (q theorem4Point) pBar() float64    { return float64(q.p) / float64(q.n) }
func (q theorem4Point) hBar() float64    { return float64(q.h) / float64(q.n) }
func (q theorem4Point) product() float64 { return q.pBar() * q.hBar() } // p̄h̄ = ph/n²

func (q theorem4Point) limit() float64 { return spectral.CorrelationLimit(q.pBar(), q.hBar(), q.noise) }

// bound11 and bound12 are the right sides of (11) and (12).
func (q theorem4Point) bound11() float64 { return 1 - 64*q.product() }
func (q theorem4Point) bound12() float64 { return 1 - 1/q.pBar() + 200*q.hBar()/(1-1/q.pBar()) }

// excess is the risk beyond 1 − n/p that a direction of squared correlation ρ² costs, in the exact mean over 𝒯.
func (q theorem4Point) excess(rho2 float64) float64 {
	return spectral.ExpectedRisk(q.n, q.p, rho2, 0) - spectral.ExpectedRisk(q.n, q.p, 1, 0)
}

func (q theorem4Point) String() string { return fmt.Sprintf("n = %d, p = %d, h = %d", q.n, q.p, q.h) }

func theorem4Points(r *theorem4, part string) (all []theorem4Point) {
	gs := r.Part(part)
	for i := range gs {
		switch g := gs[i : i+1]; t := gs[i].Trial.(type) {
		case lowrank.Data:
			all = append(all, theorem4Point{
				t.N, t.P, t.H, t.Noise, g.Values("rho2"), g.Values("risk"), g.Values("oracle_risk"),
			})
		case lowrank.Law:
			risk := study.Columns(g.Rows("risk"))
			for at, rho2 := range study.Columns(g.Rows("rho2")) {
				p, h := t.P[at/len(t.H)], t.H[at%len(t.H)]
				all = append(all, theorem4Point{n: t.N, p: p, h: h, noise: t.Noise, rho2: rho2, risk: risk[at]})
			}
		}
	}
	return all
}

func ofRatio(points []theorem4Point, ratio float64) []theorem4Point {
	return only(points, func(q theorem4Point) bool { return q.p == sizeOf(q.n, ratio) })
}

func rho2Of(q theorem4Point) []float64 { return q.rho2 }

var rho2Axis = plots.Axis{Label: "$ρ^2$", Min: -0.02, Max: 1.05}

func jackknife(c lab.Claim, points []theorem4Point, f func(means []float64) (float64, error)) lab.Statistic {
	return c.Of(verdict.Jackknife(study.Columns(study.Map(points, rho2Of)), c.Confidence, f))
}

// common is the picture of a view with the sentence that all of them share.
func common(draw func(*theorem4, *lab.Picture)) func(*theorem4, *lab.Picture) {
	return func(r *theorem4, f *lab.Picture) {
		if draw(r, f); r.Params.Noise > 0 {
			f.Say("Label noise $σ$ = %v.", r.Params.Noise)
		}
	}
}

// addLaw adds samples of the limiting distribution for every pair of sizes, if there are any.
func addLaw(gs *lab.Groups[lowrank.Trial], part string, seeds, n int, sizes, h []int, noise float64) {
	if len(sizes)*len(h) > 0 {
		gs.Add(part, seeds, lowrank.Law{Part: part, N: n, P: sizes, H: h, Noise: noise})
	}
}

// sizeOf is the whole number nearest to ratio·n, at least 1.
func sizeOf(n int, ratio float64) int { return max(1, int(math.Round(ratio*float64(n)))) }

func sizesOf(n int, ratios []float64) []int {
	return study.Map(ratios, func(ratio float64) int { return sizeOf(n, ratio) })
}

// theorem4Merged asks which labels both sets together fit. It has no picture.
var theorem4Merged = lab.Question[Theorem4Params, lowrank.Trial]{
	Trials: func(p Theorem4Params) (gs lab.Groups[lowrank.Trial]) {
		if p.FitExamples > 0 {
			gs.Add("fit", p.FitSeeds, lowrank.Fit{
				Part: "fit", M: p.FitExamples, H: p.FitOperations, Tries: p.FitTries,
			})
		}
		return gs
	},
	Claims: judgeFit,
}

func judgeFit(r *theorem4) (claims []runs.Claim) {
	for _, one := range []struct {
		says  float64
		judge func(r *theorem4, c lab.Claim, g lab.Groups[lowrank.Trial]) runs.Claim
		name  string
	}{
		{0, judgeMerged, "[sec5-merged] with both sets merged and 2n ≤ p, drawn α fit all labels exactly: " +
			"largest residual"},
		{0, judgeEvery, "[sec5-merged] at 2n = p this is so for every α, as the paper says: " +
			"share of the labels that no θ fits"},
		{0.5, judgeLeft, "[sec5-recon] no algorithm reconstructs M* from fewer than about p+h examples: " +
			"squared error left to who knows α*, at p = 4n"},
	} {
		c := r.Claim("%s", one.name).From("Section 5").Says(one.says)
		if g := r.Part("fit"); len(g) > 0 {
			claims = append(claims, one.judge(r, c, g))
		} else {
			claims = append(claims, c.NotRun("FitExamples is 0"))
		}
	}
	return claims
}

func judgeMerged(r *theorem4, c lab.Claim, g lab.Groups[lowrank.Trial]) runs.Claim {
	const exact = 1e-6
	largest := slices.Max(slices.Concat(
		g.Values("residual_at"), g.Values("residual_above"), g.Values("residual_double")))
	below := slices.Min(g.Values("residual_below"))
	c.Ours, c.Tolerance = runs.Number(largest), exact
	return verdict.Decided(c.Noting("p = 2n, 2n+h−1 and 4n, %d directions a seed; for p = 3n/2 the smallest of the "+
		"largest residuals is %.2g", r.Params.FitTries, below).Claim,
		largest <= exact && (below > exact || r.Params.FitOperations == 1), largest > exact)
}

func judgeEvery(r *theorem4, c lab.Claim, g lab.Groups[lowrank.Trial]) runs.Claim {
	var shares []float64
	singular := 0.0
	for _, record := range g.Records() {
		if record.Values["found_at"] == 1 {
			shares = append(shares, record.Values["exceptional_at"])
			singular = max(singular, record.Values["smallest_at"])
		}
	}
	if len(shares) < 2 {
		return c.NotRun("no direction with a singular Z_α was found in two seeds; FitOperations has to be 2 or more")
	}
	return c.Noting("in %d of %d seeds Z_α of α ∝ (1, s, 0, …) is singular (σ_min/σ_max ≤ %.0e) for a real eigenvalue "+
		"−s; such α have measure 0, and there are none for p ≥ 2n+h−1, almost surely", len(shares), r.Params.FitSeeds,
		singular).Mean(shares).AtMost(1e-6)
}

func judgeLeft(_ *theorem4, c lab.Claim, g lab.Groups[lowrank.Trial]) runs.Claim {
	enough := slices.Max(g.Values("error_below"))
	judged := c.Noting("1 − 2n/p is the Bayes risk of θ* given α*; for p = 3n/2 < 2n the largest error is %.0e; "+
		"and h unknowns of α* need 2n ≥ h; max(p, h) ≥ (p+h)/2", enough).
		Mean(g.Values("error_double")).Near(0.5, 0.05)
	if enough > 1e-6 {
		judged.Holds = runs.Fails
	}
	return judged
}
