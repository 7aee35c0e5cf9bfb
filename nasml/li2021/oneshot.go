package li2021

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/li2021/internal/regret"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/search"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/supernet"
	"github.com/nasml/lab/nasml/trial"
	"github.com/nasml/lab/plots"
)

// OneShotParams are the parameters of searches on NAS-Bench-1Shot1.
type OneShotParams struct {
	SearchParams          // whose Space is empty: see Spaces
	Spaces       []string `validate:"min=1,unique"` // names of supernet.OneShots
}

// quickOneShot takes two cores a quarter of an hour: 2,000 images of CIFAR-10 at 8×8, 18 searches of 25 epochs.
var quickOneShot = OneShotParams{
	SearchParams: SearchParams{Preset: "quick", Data: data.CIFAR10, Examples: 2000, Seeds: 3, Confidence: 0.95},
	Spaces:       []string{"1shot1-s1", "1shot1-s2", "1shot1-s3"},
}

// paperOneShot is the paper's setting: four searches of 50 epochs, all images. It was not run.
var paperOneShot = OneShotParams{
	SearchParams: SearchParams{Preset: "paper", Data: data.CIFAR10, Seeds: 4, Confidence: 0.95},
	Spaces:       quickOneShot.Spaces,
}

// largeOneShot takes two cores a night: 10,000 images at 16×16, 50 epochs, four searches. It was not run.
var largeOneShot = lab.With(quickOneShot, func(p *OneShotParams) {
	p.Image, p.Examples, p.Epochs, p.Seeds = 16, 10000, 50, 4
})

var oneShotCost = catalog.Cost{
	Quick: "about 15 minutes on two cores for all three spaces; those of the presets are precomputed",
	Paper: "3 to 5 hours a search on two cores (forecast)",
}

// wide is a style in which three panels fit beside each other, a space each.
var wide = plots.ICML

func oneShotRow(name, space string) row { return row(name + "@" + space) }

func (p OneShotParams) rowsOn(searches []string) (rows []string) {
	for _, space := range p.Spaces {
		for _, name := range searches {
			rows = append(rows, string(oneShotRow(name, space)))
		}
	}
	return rows
}

func (p OneShotParams) oneShotRules(searches []string, c *study.Checks) {
	c.Expect(p.Space == "", "Space must be empty, got %q: name spaces of NAS-Bench-1Shot1 in Spaces", p.Space)
	study.Distinct(c, "Rows", searches, 1)
	for _, space := range p.Spaces {
		c.OneOf("Spaces", space, slices.Sorted(maps.Keys(supernet.OneShots))...)
	}
	p.rules(p.rowsOn(searches), c)
}

// withLookups are searches, each followed by its look-ups, as in an entry.
func withLookups(searches lab.Groups[found]) (gs lab.Groups[found]) {
	for _, g := range searches {
		gs = append(gs, g, lab.Group[found]{Part: "look-up", Trial: g.Trial, Records: g.Trial.lookups})
	}
	return gs
}

// spaceTitle is a space in panels: "S1" for those of the benchmark.
func spaceTitle(name string) string {
	if short, ok := strings.CutPrefix(name, "1shot1-s"); ok {
		return "S" + short
	}
	return name
}

// short names a search, "GAEA PC-DARTS on S1".
func (f found) short() string {
	if f.oneShot.Name == "" {
		return f.row.title()
	}
	return f.row.title() + " on " + spaceTitle(f.row.space())
}

// thetas are the weights after each epoch that are looked up; of a search without θ, those of its final architecture.
func (f found) thetas(r *runs.Record) (theta [][]float64, err error) {
	if search.Methods[f.settings.Method].Hold != search.Nothing {
		return slices.Collect(slices.Chunk(r.Series["theta"], f.numbers())), nil
	}
	arch, err := f.architecture(r)
	if err != nil {
		return nil, err
	}
	return [][]float64{slices.Concat(slices.Concat(arch.Theta...)...)}, nil
}

func (f found) firstLookup() int {
	if search.Methods[f.settings.Method].Hold == search.Nothing {
		return f.settings.Epochs
	}
	return 0
}

// Lookups are how the architecture of a search is looked up after every epoch.
type Lookups struct {
	Ties     string     // which of equally weighted parents: "numpy", as the authors' code, or "first"
	Training string     `validate:"oneof=mean one 1 2 3"`  // of a cell: mean of three, or "one" by chance (their code)
	Against  string     `validate:"oneof=published table"` // the best of the space's authors, or the best in the table
	Split    data.Split `validate:"oneof=valid test"`
}

var codeLookups = Lookups{
	Ties: string(supernet.TiesNumPy), Training: regret.OneTraining, Against: regret.AgainstPublished, Split: data.Test,
}

const lookupsID = "li2021/lookups"

var lookupsStudy = study.Study{
	ID: lookupsID, Title: "look-ups in NAS-Bench-101", Shipped: shippedRecords,
	Code: code.Define(lookupsID, "li2021/internal/regret"),
}

func (l Lookups) lookupRules(spaces []string, c *study.Checks) {
	ties := study.Map(slices.Sorted(maps.Keys(supernet.TieRules)), func(t supernet.Ties) string { return string(t) })
	c.OneOf("Ties", l.Ties, ties...)
	for _, space := range spaces {
		s, ok := supernet.OneShots[space]
		c.Expect(!ok || l.Against != regret.AgainstPublished || s.Known.TestError > 0, "Against must be %q for the "+
			"space %q, got %q: no best error of it is published", regret.AgainstTable, space, l.Against)
	}
}

// lookupBench opens the table for some spaces, and the study of look-ups in it. Without a table the study reads the
// precomputed ones.
func lookupBench[T any](
	spaces []string, storedOnly bool,
	run func(ctx context.Context, t T, table *data.NASBench101, seed uint64) (trial.Result, error),
) (lab.Bench[T], error) {
	table, fingerprint, err := oneShotTable(spaces)
	b := lab.Bench[T]{Study: lookupsStudy, Data: func(T) string { return fingerprint }}
	b.StoredOnly = storedOnly || table == nil
	b.Run = func(ctx context.Context, t T, seed uint64, _ study.Step) (trial.Result, error) {
		content, err := table.content()
		if err != nil {
			return trial.Result{}, err
		}
		return run(ctx, t, content, seed)
	}
	return b, err
}

type lookupTrial struct {
	regret.Lookup
	label string
	theta [][]float64
	to    **runs.Record
}

func (l Lookups) lookUp(ctx context.Context, searches lab.Groups[found], storedOnly bool) error {
	var spaces []string
	var gs lab.Groups[lookupTrial]
	for i := range searches {
		f := &searches[i].Trial
		spaces, f.lookups = append(spaces, f.row.space()), make([]*runs.Record, len(f.records))
		for seed, record := range f.records {
			if record == nil || len(record.Values) == 0 {
				continue
			}
			theta, err := f.thetas(record)
			if err != nil {
				return fmt.Errorf("%s: %w", f.short(), err)
			}
			gs = append(gs, lab.Group[lookupTrial]{Seeds: 1, First: uint64(seed), Trial: lookupTrial{regret.Lookup{
				Search: record.Key, Space: f.oneShot, Ties: supernet.Ties(l.Ties), Split: l.Split, Training: l.Training,
				Against: l.Against,
			}, f.short(), theta, &f.lookups[seed]}})
		}
	}
	b, err := lookupBench(spaces, storedOnly,
		func(ctx context.Context, l lookupTrial, table *data.NASBench101, seed uint64) (trial.Result, error) {
			return l.Run(ctx, table, l.theta, seed)
		})
	if err != nil {
		return err
	}
	b.Label = func(l lookupTrial) string { return l.label }
	b.Key = func(l lookupTrial) any { return l.Lookup }
	if err := b.Compute(ctx, gs); err != nil {
		return err
	}
	for _, g := range gs {
		*g.Trial.to = g.Records[0]
	}
	return nil
}

// regretAt are the known regrets after an epoch, by seed.
func (f found) regretAt(epoch int) map[int]float64 {
	known := map[int]float64{}
	for seed, r := range f.lookups {
		i := epoch - f.firstLookup()
		if r == nil || i < 0 || i >= len(r.Series[regret.SeriesKnown]) {
			continue
		}
		if r.Series[regret.SeriesKnown][i] == 1 {
			known[seed] = r.Series[regret.SeriesRegret][i]
		}
	}
	return known
}

// isBound reports whether regrets are lower bounds, since the table may lack the best.
func (f found) isBound() bool {
	return slices.ContainsFunc(f.lookups, func(r *runs.Record) bool {
		return r != nil && r.Values[regret.ValueFound] < r.Values[regret.ValueAsked]
	})
}

var oneShotParts = []string{"operations", "inputs", "output"}

// entropyOf is the mean entropy of the rows of a part of θ after every epoch.
func (f found) entropyOf(r *runs.Record, part string) (sum []float64) {
	rows := 0.
	for i, b := range f.blocks {
		if []string{"operations", "output", "inputs"}[min(i, 2)] != part { // as OneShot.Product has the blocks
			continue
		}
		series := "entropy"
		if i > 0 {
			series = "entropy of " + b.Name
		}
		if sum == nil {
			sum = make([]float64, len(r.Series[series]))
		}
		for e, x := range r.Series[series] {
			sum[e] += float64(b.Rows) * x
		}
		rows += float64(b.Rows)
	}
	for e := range sum {
		sum[e] /= rows
	}
	return sum
}

func (f found) entropies(part string, confidence float64) plots.Series {
	of := func(r *runs.Record) []float64 { return f.entropyOf(r, part) }
	return f.band(confidence, f.row.title(), nil, of, atMostUniform)
}

// Figure1MiddleParams are the parameters of Figure 1 (middle), on all three spaces of NAS-Bench-1Shot1; the paper shows
// the first.
type Figure1MiddleParams struct {
	OneShotParams
	Rows []string // searches by method, see Figure2Params

	// Parts of θ have a row of panels each: "operations" (the paper's), "inputs", "output".
	Parts []string `validate:"min=1,unique,dive,oneof=operations inputs output"`
}

// Figure1MiddleQuick has the searches of Figure2Quick. GAEA's entropy of operations falls faster on the first two
// spaces; on the third the interval contains 0. All of this is small beside the published curves, of thirty times as
// many steps.
var Figure1MiddleQuick = Figure1MiddleParams{
	OneShotParams: quickOneShot, Rows: []string{"pc-darts", "gaea-pc-darts"},
	Parts: []string{"operations", "inputs", "output"},
}

// Figure1MiddlePaper has the searches of Figure2Paper; the published curves are of one search each. It was not run.
var Figure1MiddlePaper = lab.With(Figure1MiddleQuick, func(p *Figure1MiddleParams) { p.OneShotParams = paperOneShot })

// Figure1MiddleLarge is --scale large and has those of Figure2Large.
var Figure1MiddleLarge = lab.With(Figure1MiddleQuick, func(p *Figure1MiddleParams) { p.OneShotParams = largeOneShot })

// Figure1Middle draws how the entropy of searches falls on NAS-Bench-1Shot1.
var Figure1Middle = lab.Declare(lab.Entry[Figure1MiddleParams, found]{
	Of: ofPaper, Name: "figure1-middle", Kind: lab.Figure, Source: "Section 4.1 and Figure 1 (middle)",
	Title:    "Sparsity on NAS-Bench-1Shot1: entropy of operations, inputs and output during a search",
	Notebook: "figure1_middle_entropy", Cost: oneShotCost, Quick: Figure1MiddleQuick, Paper: Figure1MiddlePaper,
	Also:    []catalog.Preset[Figure1MiddleParams]{{Scale: catalog.Large, Params: Figure1MiddleLarge}},
	Shipped: []catalog.Setting{{Scale: catalog.Large}, {Scale: catalog.Quick}},
	Note:    noteOfSearches,
	Rules:   func(p Figure1MiddleParams, c *study.Checks) { p.oneShotRules(p.Rows, c) },
	Compute: func(ctx context.Context, r *figure1Middle) error {
		gs, err := r.Params.run(ctx, "li2021/figure1-middle", r.Params.rowsOn(r.Params.Rows))
		r.Groups = withLookups(gs)
		return err
	},
	Draw: drawFigure1Middle, Claims: judgeFigure1Middle,
})

type figure1Middle = lab.Result[Figure1MiddleParams, found]

// drawFigure1Middle draws the mean entropy over the nodes after each epoch, a row of panels per part of θ and a panel
// per space, with the published curves of operations.
func drawFigure1Middle(r *figure1Middle, f *lab.Picture) {
	f.Style = wide
	rows := r.Part(searchPart).Trials()
	for _, part := range r.Params.Parts {
		f.Row()
		for _, space := range r.Params.Spaces {
			on := slices.DeleteFunc(slices.Clone(rows), func(f found) bool { return f.oneShot.Name != space })
			panel := partPanel(on, part, r.Confidence)
			for _, f := range on {
				if part == "operations" {
					panel.Series = append(panel.Series, f.paperEntropy(f.settings.Epochs)...)
				}
			}
			f.Add(panel)
		}
	}
	published := "; the paper's curves (operations) are of one seed, 50 epochs"
	if r.Params.synthetic() {
		published = ""
	}
	f.Say("Mean entropy over the nodes after each epoch; %s%s.", r.Interval("band", r.Params.Seeds, "seed"), published)
	f.Say("%s", searchCaption(r.Params.SearchParams, rows, r.Params))
	sayChanges(f, rows)
}

func partPanel(rows []found, part string, confidence float64) plots.Panel {
	panel := plots.Panel{
		Title: spaceTitle(rows[0].oneShot.Name), X: plots.Axis{Label: "epochs"},
		Y: plots.Axis{Label: "entropy of " + part + " (nats)"},
	}
	for _, f := range rows {
		panel.Series = append(panel.Series, f.entropies(part, confidence))
	}
	return panel
}

func (f found) deviation(confidence float64) (deviation, bool) {
	_, theirs := f.publishedEntropy(f.settings.Epochs)
	ours := f.entropies("operations", confidence)
	if len(theirs) == 0 || len(ours.X) == 0 {
		return deviation{}, false
	}
	return deviate(ours.X, ours.Y, theirs, 0), true
}

// judgeFigure1Middle judges every space and every part of θ; the paper has operations on the first. The distance from
// the published curves is judged at the paper's scale only.
func judgeFigure1Middle(r *figure1Middle) (claims []runs.Claim) {
	rows := r.Part(searchPart).Trials()
	for _, space := range r.Params.Spaces {
		for _, name := range r.Params.Rows {
			f, _ := rowIn(rows, oneShotRow(name, space))
			n := len(f.oneShot.Ops)
			claims = append(claims, f.judgeStart(
				r.Claim("own: %s: entropy of operations starts at ln %d", f.short(), n), n))
			if g, ok := rowIn(rows, oneShotRow("gaea-"+name, space)); ok {
				for _, part := range r.Params.Parts {
					claims = append(claims, judgeFaster(r, f, g, part))
				}
			}
		}
	}
	for _, f := range rows {
		if d, ok := f.deviation(r.Confidence); ok {
			claims = append(claims,
				deviationClaims(r.Claim, f.short()+", entropy of operations", d, 0.05, !r.Params.reduced())...)
		}
	}
	return claims
}

// judgeFaster compares the mean entropy over all epochs but the start, which is lower if entropy falls faster.
func judgeFaster(r *figure1Middle, base, gaea found, part string) runs.Claim {
	name := fmt.Sprintf("%s: entropy of %s falls faster with %s than with %s", spaceTitle(base.settings.Space), part,
		gaea.row.title(), base.row.title())
	ids, paper := "", 0.
	if part == "operations" {
		ids = "LI033"
		if a, b := base.publishedEntropyMean(), gaea.publishedEntropyMean(); a > 0 && b > 0 {
			paper = b - a
		}
	}
	c := r.Claim("%s", listed(ids, name)).Says(paper).
		Noting("ours is the difference of the means over all epochs, nats; only its sign is judged")
	return r.Params.below(c.Family(len(r.Params.Spaces)), gaea.entropyMeans(part), base.entropyMeans(part))
}

func (f found) publishedEntropyMean() float64 {
	_, y := f.publishedEntropy(f.settings.Epochs)
	if len(y) < 2 {
		return 0
	}
	return mean(y[1:])
}

func (f found) entropyMeans(part string) []float64 {
	return study.Map(f.finished(), func(r *runs.Record) float64 { return mean(f.entropyOf(r, part)[1:]) })
}
