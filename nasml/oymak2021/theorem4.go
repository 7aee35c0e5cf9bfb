package oymak2021

import (
	"context"
	"embed"
	"fmt"
	"maps"
	"math"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/spectral"
)

// Theorem4Params are the parameters of Theorem 4: the algorithm on features that
// are drawn one example at a time (Examples … Seeds), its outcome drawn in law,
// which needs no features and reaches any size (Law…, Map…, Size…), beside
// searches by gradient (Search…), and outside the assumptions (Cases). A part
// whose list of sizes is empty, or MapSide or FitExamples 0, is left out.
type Theorem4Params struct {
	Examples   int       // n of each of 𝒯 and 𝒱, of the runs on features
	Ratios     []float64 // p̄ = p/n > 1
	Operations []int     // h
	Seeds      int
	Noise      float64 // standard deviation σ of the labels' noise; 0 in the paper

	LawExamples   int // n; large, so that 64·p̄h̄ < 1, where (11) says something
	LawRatios     []float64
	LawOperations []int
	LawSeeds      int

	MapExamples int     // n of the map of ρ² over p̄ and h̄
	MapSide     int     // cells along each side
	MapRatio    float64 // its largest p̄; h̄ goes from 1/(2·MapRatio) to 1
	MapSeeds    int

	BoundaryExamples   int // n of the draws that the boundary's exponent is fitted to
	BoundaryRatios     []float64
	BoundaryOperations []int // h, the same for every ratio, increasing
	BoundarySeeds      int

	SizeExamples []int     // n of the curves that show how sharp the boundary is
	SizeLevels   []float64 // their ph/n², at the first of Ratios
	SizeSeeds    int

	SearchExamples   int
	SearchRatio      float64
	SearchOperations []int
	SearchSeeds      int
	SearchSteps      int     // of L-BFGS, or rounds of the alternating search
	Ridge            float64 // λ/n of the search with a ridge

	FitExamples   int // 2n of the merged sets
	FitOperations int
	FitTries      int // directions α drawn
	FitSeeds      int

	Cases      []Theorem4Case
	CaseSeeds  int
	Confidence float64 // of the intervals
}

// Theorem4Case is a run with an assumption changed.
type Theorem4Case struct {
	Name     string
	Examples int     // n
	Ratio    float64 // p̄
	H        int
	Features string  // "gaussian", "rademacher", "heavy" (multivariate t₃) or "correlated" (0.9 between two operations)
	Noise    float64 // σ
	Same     bool    // 𝒱 = 𝒯
	Whiten   bool    // make the operations' features independent first, with their true covariance
}

// theorem4Cases break one assumption each; the first breaks none.
var theorem4Cases = []Theorem4Case{
	{Name: "as assumed", Examples: 500, Ratio: 1.2, H: 3, Features: "gaussian"},
	{Name: "$±1$ features", Examples: 500, Ratio: 1.2, H: 3, Features: "rademacher"},
	{Name: "label noise $σ = 1$", Examples: 500, Ratio: 1.2, H: 3, Features: "gaussian", Noise: 1},
	{Name: "$V = T$", Examples: 500, Ratio: 1.2, H: 3, Features: "gaussian", Same: true},
	{Name: "heavy-tailed examples", Examples: 500, Ratio: 1.2, H: 3, Features: "heavy"},
	{Name: "correlated operations", Examples: 500, Ratio: 1.2, H: 3, Features: "correlated"},
	{Name: "correlated, whitened", Examples: 500, Ratio: 1.2, H: 3, Features: "correlated", Whiten: true},
	{Name: "$ph = 2n^2$", Examples: 100, Ratio: 5, H: 40, Features: "gaussian"},
}

// Theorem4Paper has features up to p = 2000 and h = 500; the paper gives no
// sizes.
var Theorem4Paper = Theorem4Params{
	Examples: 1000, Ratios: []float64{1.25, 2}, Operations: []int{2, 4, 8, 16, 32, 64, 125, 250, 500}, Seeds: 10,
	LawExamples: 50000, LawRatios: []float64{1.25, 2, 5, 20, 80}, LawOperations: []int{4, 8, 16, 32, 64, 128, 256, 512}, LawSeeds: 100,
	MapExamples: 512, MapSide: 24, MapRatio: 64, MapSeeds: 20,
	BoundaryExamples: 4000, BoundaryRatios: []float64{4, 8, 16, 32, 64}, BoundaryOperations: []int{8, 16, 23, 32, 45, 64, 91, 128, 181, 256, 362, 512, 724}, BoundarySeeds: 150,
	SizeExamples: []int{100, 200, 400, 800, 1600}, SizeLevels: []float64{0.5, 1, 2}, SizeSeeds: 60,
	SearchExamples: 250, SearchRatio: 2, SearchOperations: []int{2, 4, 8, 16, 32, 64, 125}, SearchSeeds: 10, SearchSteps: 150, Ridge: 0.5,
	FitExamples: 60, FitOperations: 3, FitTries: 20, FitSeeds: 60,
	Cases: theorem4Cases, CaseSeeds: 30,
	Confidence: 0.95,
}

// Theorem4Quick is the same at sizes that take seconds.
var Theorem4Quick = func() Theorem4Params {
	p := Theorem4Paper
	p.Examples, p.Ratios, p.Operations, p.Seeds = 200, []float64{1.25, 2, 5}, []int{2, 4, 8, 16, 32}, 8
	p.LawSeeds, p.LawOperations = 60, []int{4, 8, 16, 32, 64, 128}
	p.MapExamples, p.MapSide, p.MapSeeds = 192, 14, 10
	p.BoundaryExamples, p.BoundarySeeds, p.BoundaryOperations = 2000, 80, []int{4, 8, 11, 16, 23, 32, 45, 64, 91, 128, 181, 256, 362}
	p.SizeExamples, p.SizeSeeds = []int{50, 100, 200, 400}, 24
	p.SearchExamples, p.SearchOperations, p.SearchSeeds, p.SearchSteps = 60, []int{2, 4, 8, 16, 30}, 8, 60
	p.FitExamples, p.FitSeeds, p.FitTries = 30, 60, 5
	p.CaseSeeds = 8
	return p
}()

const (
	theorem4ID    = "oymak2021/theorem4"
	theorem4Title = "Low-rank learning with p > n: the spectral estimate of the architecture and its risk"
)

func init() {
	catalog.Register(catalog.Entry{
		ID: theorem4ID, Paper: "Oymak+ 2021", Title: theorem4Title, Kind: "theorem",
		Notebook: "notebooks/oymak2021/theorem4_spectral.ipynb",
		Cost:     catalog.Cost{Quick: "about 15 seconds on two cores", Paper: "about 15 minutes on two cores; the project ships its trials"},
	}, Theorem4Quick, Theorem4Paper, Theorem4)
}

// Theorem4Result holds the records of Theorem 4, part by part.
type Theorem4Result struct {
	Params Theorem4Params
	Scale  string // "quick", "paper" or empty for own parameters
	groups []*thm4Group
}

// thm4Group is one trial's parameters with the record of every seed.
type thm4Group struct {
	kind    string // "law", "map", "boundary", "sizes", "data", "case", "search" or "fit"
	trial   thm4Trial
	seeds   int
	records []*runs.Record
}

//go:embed theorem4_run.go
var theorem4Sources embed.FS

var theorem4Code = sync.OnceValues(func() (string, error) {
	return runs.CodeVersion(theorem4Sources, spectral.RankOneSources)
})

// Records are the keys of the trials.
func (r *Theorem4Result) Records() []string {
	var keys []string
	for _, g := range r.groups {
		for _, record := range g.records {
			keys = append(keys, record.Key)
		}
	}
	return keys
}

// Theorem4 computes what the run store lacks. Cancelling ctx ends it at the next
// example or search, with the finished trials stored. It is an error where a
// parameter makes no sense (a *catalog.UsageError).
func Theorem4(ctx context.Context, p Theorem4Params) (*Theorem4Result, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	store, err := runs.FromContextWith(ctx, shippedRecords, path.Base(theorem4ID))
	if err != nil {
		return nil, err
	}
	code, err := theorem4Code()
	if err != nil {
		return nil, err
	}
	r := &Theorem4Result{Params: p, Scale: runs.Scale(ctx), groups: p.groups()}
	total := 0
	for _, g := range r.groups {
		total += g.seeds * g.units()
	}
	progress := runs.ProgressFrom(ctx)
	progress.Start(total, theorem4ID)
	defer progress.Done()
	for _, g := range r.groups {
		if err := g.compute(ctx, store, progress, code); err != nil {
			return nil, fmt.Errorf("theorem 4 (%v): %w", g.trial, err)
		}
	}
	return r, nil
}

// units is what a seed costs in units of some milliseconds.
func (g *thm4Group) units() int { return 1 + int(g.trial.cost()/1e7) }

// compute reads or runs the seeds of a group, as many at a time as there are
// processors.
func (g *thm4Group) compute(ctx context.Context, store *runs.Store, progress runs.Progress, code string) error {
	var trials []runs.Trial
	for _, seed := range runs.Seeds(g.seeds) {
		trials = append(trials, runs.Trial{Figure: theorem4ID, Params: g.trial, Seed: seed, Code: code})
	}
	done := 0
	var err error
	g.records, err = store.Compute(ctx, trials, runs.Options{}, func(ctx context.Context, job *runs.Job) error {
		job.Backend, job.Device = "go", "cpu"
		done += len(job.Trials)
		return thm4Each(len(job.Trials), func(i int) error {
			result, err := g.trial.run(ctx, job.Trials[i].Seed)
			if err != nil {
				return err
			}
			progress.Step(g.units(), g.trial.String())
			return job.Done(i, result)
		})
	})
	progress.Skip((g.seeds - done) * g.units())
	return err
}

// thm4Each runs fn(0) … fn(n−1) in as many goroutines as there are processors
// and returns the error of the smallest index; after an error it starts no more.
func thm4Each(n int, fn func(i int) error) error {
	failed := make([]error, n)
	var next, stopped int
	var mu sync.Mutex
	take := func() (int, bool) {
		mu.Lock()
		defer mu.Unlock()
		next++
		return next - 1, next <= n && stopped == 0
	}
	var wg sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for i, ok := take(); ok; i, ok = take() {
				if failed[i] = fn(i); failed[i] != nil {
					mu.Lock()
					stopped++
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	for _, err := range failed {
		if err != nil {
			return err
		}
	}
	return nil
}

// groups lists what there is to compute.
func (p Theorem4Params) groups() []*thm4Group {
	var all []*thm4Group
	add := func(kind string, seeds int, t thm4Trial) {
		all = append(all, &thm4Group{kind: kind, trial: t, seeds: seeds})
	}
	if len(p.LawOperations) > 0 {
		add("law", p.LawSeeds, thm4Law{"law", p.LawExamples, thm4Sizes(p.LawExamples, p.LawRatios), p.LawOperations, p.Noise})
	}
	if p.MapSide > 0 {
		ratios, shares := p.mapCentres()
		add("map", p.MapSeeds, thm4Law{"map", p.MapExamples, thm4Sizes(p.MapExamples, ratios), thm4Sizes(p.MapExamples, shares), p.Noise})
	}
	if n := p.BoundaryExamples; len(p.BoundaryOperations) > 0 {
		add("boundary", p.BoundarySeeds, thm4Law{"boundary", n, thm4Sizes(n, p.BoundaryRatios), p.BoundaryOperations, p.Noise})
	}
	for _, n := range p.SizeExamples {
		if len(p.SizeLevels) > 0 {
			add("sizes", p.SizeSeeds, p.sizes(n))
		}
	}
	for _, ratio := range p.Ratios {
		for _, h := range p.Operations {
			add("data", p.Seeds, thm4Data{Part: "data", N: p.Examples, P: thm4Size(p.Examples, ratio), H: h, Noise: p.Noise, Features: "gaussian"})
		}
	}
	for _, c := range p.Cases {
		add("case", p.CaseSeeds, c.trial())
	}
	for _, h := range p.SearchOperations {
		add("search", p.SearchSeeds, thm4Search{"search", p.SearchExamples, thm4Size(p.SearchExamples, p.SearchRatio), h, p.Ridge, p.SearchSteps, p.Noise})
	}
	if p.FitExamples > 0 {
		add("fit", p.FitSeeds, thm4Fit{"fit", p.FitExamples, p.FitOperations, p.FitTries})
	}
	return all
}

func (c Theorem4Case) trial() thm4Data {
	return thm4Data{"data", c.Examples, thm4Size(c.Examples, c.Ratio), c.H, c.Noise, c.Features, c.Same, c.Whiten}
}

// sizes are the draws of n examples at the levels of ph/n².
func (p Theorem4Params) sizes(n int) thm4Law {
	t := thm4Law{Part: "sizes", N: n, P: []int{thm4Size(n, p.Ratios[0])}, Noise: p.Noise}
	for _, level := range p.SizeLevels {
		t.H = append(t.H, thm4Size(n, level*float64(n)/float64(t.P[0])))
	}
	return t
}

// thm4Size is the whole number nearest to ratio·n, at least 1.
func thm4Size(n int, ratio float64) int { return max(1, int(math.Round(ratio*float64(n)))) }

func thm4Sizes(n int, ratios []float64) []int {
	var sizes []int
	for _, r := range ratios {
		sizes = append(sizes, thm4Size(n, r))
	}
	return sizes
}

// mapEdges are the ends of the map's cells: p̄ from 1 up and h̄ up to 1, even in
// the logarithm.
func (p Theorem4Params) mapEdges() (ratios, shares []float64) {
	for i := range p.MapSide + 1 {
		at := float64(i) / float64(p.MapSide)
		ratios = append(ratios, math.Pow(p.MapRatio, at))
		shares = append(shares, math.Pow(2*p.MapRatio, at-1))
	}
	return ratios, shares
}

// mapCentres are the cells' middles.
func (p Theorem4Params) mapCentres() (ratios, shares []float64) {
	x, y := p.mapEdges()
	for i := range p.MapSide {
		ratios = append(ratios, math.Sqrt(x[i]*x[i+1]))
		shares = append(shares, math.Sqrt(y[i]*y[i+1]))
	}
	return ratios, shares
}

// check returns a *catalog.UsageError that names all that makes no sense.
func (p Theorem4Params) check() error {
	c := &checker{}
	p.checkCounts(c)
	p.checkSizes(c)
	for _, k := range p.Cases {
		c.expect(k.Name != "" && k.Examples >= 2 && k.H >= 1 && k.Ratio > 1 && k.Noise >= 0, "case %+v: want a Name, Examples ≥ 2, H ≥ 1, Ratio > 1 and Noise ≥ 0", k)
		c.oneOf("Features of a case", k.Features, slices.Sorted(maps.Keys(thm4Features))...)
	}
	if len(*c) == 0 { // else the sizes may not even be numbers
		drawn := slices.ContainsFunc(p.groups(), func(g *thm4Group) bool { return g.kind != "fit" })
		c.expect(drawn, "every part with a picture is left out, want at least one")
	}
	if len(*c) > 0 {
		return catalog.Usagef("%s", strings.Join(*c, "; "))
	}
	return nil
}

// checkCounts looks at single numbers.
func (p Theorem4Params) checkCounts(c *checker) {
	for _, v := range []struct {
		name       string
		got, least int
	}{
		{"Examples", p.Examples, 2}, {"Seeds", p.Seeds, 1}, {"LawExamples", p.LawExamples, 2}, {"LawSeeds", p.LawSeeds, 1},
		{"MapExamples", p.MapExamples, 2}, {"MapSide", p.MapSide, 0}, {"MapSeeds", p.MapSeeds, 1},
		{"BoundaryExamples", p.BoundaryExamples, 2}, {"BoundarySeeds", p.BoundarySeeds, 1}, {"SizeSeeds", p.SizeSeeds, 1},
		{"SearchExamples", p.SearchExamples, 2}, {"SearchSeeds", p.SearchSeeds, 1}, {"SearchSteps", p.SearchSteps, 0},
		{"FitExamples", p.FitExamples, 0}, {"FitOperations", p.FitOperations, 1}, {"FitTries", p.FitTries, 1}, {"FitSeeds", p.FitSeeds, 1},
		{"CaseSeeds", p.CaseSeeds, 1},
	} {
		c.expect(v.got >= v.least, "%s is %d, want at least %d", v.name, v.got, v.least)
	}
	c.expect(p.FitExamples == 0 || p.FitExamples >= 4, "FitExamples is %d, want 0 or at least 4", p.FitExamples)
	c.expect(p.MapRatio > 1 && p.MapRatio <= 1e4, "MapRatio is %v, want between 1 and 10000", p.MapRatio)
	c.expect(p.SearchRatio > 1, "SearchRatio is %v, want p/n > 1", p.SearchRatio)
	c.expect(p.Noise >= 0 && !math.IsInf(p.Noise, 0), "Noise is %v, want a standard deviation σ ≥ 0", p.Noise)
	c.expect(p.Ridge > 0 && !math.IsInf(p.Ridge, 0), "Ridge is %v, want λ/n > 0", p.Ridge)
	c.expect(p.Confidence > 0.5 && p.Confidence < 1, "Confidence is %v, want between 0.5 and 1, such as 0.95", p.Confidence)
}

// checkSizes looks at lists.
func (p Theorem4Params) checkSizes(c *checker) {
	c.expect(len(p.Ratios) > 0 && len(p.LawRatios) > 0, "Ratios is %v and LawRatios %v, want at least one p/n each", p.Ratios, p.LawRatios)
	thm4CheckList(c, "Ratios", p.Ratios, 1, 1e4)
	thm4CheckList(c, "LawRatios", p.LawRatios, 1, 1e4)
	thm4CheckList(c, "BoundaryRatios", p.BoundaryRatios, 1, 1e4)
	thm4CheckList(c, "BoundaryOperations", p.BoundaryOperations, 0, 1e5)
	c.expect(slices.IsSorted(p.BoundaryOperations), "BoundaryOperations is %v, want increasing numbers", p.BoundaryOperations)
	thm4CheckList(c, "Operations", p.Operations, 0, 1e5)
	thm4CheckList(c, "LawOperations", p.LawOperations, 0, 1e5)
	thm4CheckList(c, "SearchOperations", p.SearchOperations, 0, 1e5)
	thm4CheckList(c, "SizeExamples", p.SizeExamples, 1, 1e6)
	c.expect(distinct(p.SizeLevels), "SizeLevels is %v, want none twice", p.SizeLevels)
	for _, level := range p.SizeLevels {
		c.expect(level > 0, "SizeLevels has %v, want ph/n² > 0", level)
	}
	const most = 2 << 30
	for _, h := range p.SearchOperations {
		size := 16 * float64(p.SearchExamples) * float64(p.SearchExamples) * p.SearchRatio * float64(h)
		c.expect(size*float64(runtime.GOMAXPROCS(0)) <= most, "SearchOperations has %d: its searches keep %.1f GB of features each, want at most %.1f GB in all; take fewer SearchExamples",
			h, size/(1<<30), float64(most)/(1<<30))
	}
}

// thm4CheckList wants values in (above, most], none twice.
func thm4CheckList[T int | float64](c *checker, name string, values []T, above, most T) {
	c.expect(distinct(values), "%s is %v, want no value twice", name, values)
	for _, v := range values {
		c.expect(v > above && v <= most, "%s has %v, want more than %v and at most %v", name, v, above, most)
	}
}
