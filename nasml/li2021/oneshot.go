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

// paperOneShot is the paper's setting: four searches of 50 epochs, all images. Only shippedOneShot was run.
var paperOneShot = OneShotParams{
	SearchParams: SearchParams{Preset: "paper", Data: data.CIFAR10, Seeds: 4, Confidence: 0.95},
	Spaces:       quickOneShot.Spaces,
}

var shippedOneShot = []catalog.Setting{{Scale: catalog.Paper, Set: []string{"Spaces=1shot1-s1", "Seeds=1"}}}

// largeOneShot takes two cores a night: 10,000 images at 16×16, 50 epochs, four searches.
var largeOneShot = lab.With(quickOneShot, func(p *OneShotParams) {
	p.Image, p.Examples, p.Epochs, p.Seeds = 16, 10000, 50, 4
})

var oneShotCost = catalog.Cost{
	Quick: "about 15 minutes on two cores for all three spaces; those of the presets are precomputed",
	Paper: "4 to 5 hours a search on two cores",
}

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
