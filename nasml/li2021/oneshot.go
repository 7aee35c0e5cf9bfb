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
	Spaces       []string // names of supernet.OneShots
}

// quickOneShot is what two cores can show in a quarter of an hour: 2,000 images of
// CIFAR-10 at 8×8, 18 searches of 25 epochs.
var quickOneShot = OneShotParams{
	SearchParams: SearchParams{
		Preset: "quick", Data: data.CIFAR10, Examples: 2000, Seeds: 3, Confidence: 0.95,
	},
	Spaces: []string{"1shot1-s1", "1shot1-s2", "1shot1-s3"},
}

// paperOneShot is the paper's setting: four searches of 50 epochs, all images. It
// was not run.
var paperOneShot = OneShotParams{
	SearchParams: SearchParams{Preset: "paper", Data: data.CIFAR10, Seeds: 4, Confidence: 0.95},
	Spaces:       quickOneShot.Spaces,
}

// largeOneShot fits into one night on two cores: 10,000 images at 16×16, 50 epochs,
// four searches. It was not run.
var largeOneShot = func() OneShotParams {
	p := quickOneShot
	p.Image, p.Examples, p.Epochs, p.Seeds = 16, 10000, 50, 4
	return p
}()

// oneShotCost says what the searches of a figure cost.
var oneShotCost = catalog.Cost{
	Quick: "about 15 minutes on two cores for all three spaces; the project ships those of the presets",
	Paper: "hours a search on a GPU, days on two cores",
}

// wide is a style in which three panels fit beside each other, a space each.
var wide = plots.ICML

// oneShotRow is a search of a figure on a space as a row.
func oneShotRow(name, space string) row { return row(name + "@" + space) }

// settingsOn are those of a search on a space.
func (p OneShotParams) settingsOn(name, space string) (search.Settings, error) {
	return p.settings(oneShotRow(name, space))
}

// oneShotRules are what neither tags nor the settings of a row say.
func (p OneShotParams) oneShotRules(rows []string, c *study.Checks) {
	c.Expect(p.Space == "", "Space is %q, want none: Spaces are the spaces of NAS-Bench-1Shot1", p.Space)
	study.Distinct(c, "Rows", rows, 1)
	study.Distinct(c, "Spaces", p.Spaces, 1)
	for _, space := range p.Spaces {
		c.OneOf("Spaces", space, slices.Sorted(maps.Keys(supernet.OneShots))...)
	}
}

// checkOneShot looks at what the settings do not.
func (p OneShotParams) checkOneShot(rows []string) error {
	var c study.Checks
	p.oneShotRules(rows, &c)
	return c.Err("the searches")
}

// findAll are the searches of all rows on all spaces before they are looked for, space by space.
func (p OneShotParams) findAll(rows []string) (all []found, err error) {
	var names []string
	for _, space := range p.Spaces {
		for _, name := range rows {
			names = append(names, string(oneShotRow(name, space)))
		}
	}
	if err := p.check(rowsNamed(names)); err != nil {
		return nil, err
	}
	for _, w := range rowsNamed(names) {
		f, err := p.find(w)
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}

// oneShotFound is a search on a space, with its records.
type oneShotFound struct {
	found
	search  string // of the figure's rows
	space   supernet.OneShot
	lookups []*runs.Record // what the table says of each seed's search; nil where it does not
}

// runOneShot reads or runs the searches of all rows on all spaces, space by space.
func (p OneShotParams) runOneShot(ctx context.Context, title string, rows []string) ([]oneShotFound, error) {
	if err := p.checkOneShot(rows); err != nil {
		return nil, err
	}
	var names []string
	for _, space := range p.Spaces {
		for _, name := range rows {
			names = append(names, string(oneShotRow(name, space)))
		}
	}
	all, err := p.run(ctx, title, names)
	if err != nil {
		return nil, err
	}
	var of []oneShotFound
	for _, f := range all {
		of = append(of, oneShotFound{f, f.row.search(), supernet.OneShots[f.row.space()], nil})
	}
	return of, nil
}

// spaceTitle is how panels call a space: "S1" for those of the benchmark.
func spaceTitle(name string) string {
	if short, ok := strings.CutPrefix(name, "1shot1-s"); ok {
		return "S" + short
	}
	return name
}

// short names a search, "GAEA PC-DARTS on S1".
func (f oneShotFound) short() string { return f.row.title() + " on " + spaceTitle(f.row.space()) }

// thetas are the weights after each epoch as a table is asked for them, from the
// given epoch on: of a search without θ the architecture that it found in the end.
func (f oneShotFound) thetas(r *runs.Record) (theta [][]float64, err error) {
	if search.Methods[f.settings.Method].Hold != search.Nothing {
		size := 0
		for _, b := range f.space.Product() {
			size += b.Rows * b.Options
		}
		return slices.Collect(slices.Chunk(r.Series["theta"], size)), nil
	}
	space, err := f.settings.Open(10)
	if err != nil {
		return nil, err
	}
	var code []int
	for _, c := range r.Series["final"] {
		code = append(code, int(c))
	}
	arch, err := space.Arch(code)
	if err != nil {
		return nil, err
	}
	var flat []float64
	for _, row := range slices.Concat(arch.Theta...) {
		flat = append(flat, row...)
	}
	return [][]float64{flat}, nil
}

// firstLookup is the epoch of the first look-up.
func (f oneShotFound) firstLookup() int {
	if search.Methods[f.settings.Method].Hold == search.Nothing {
		return f.settings.Epochs
	}
	return 0
}

// Lookups are how the architecture of a search is looked up after every epoch.
type Lookups struct {
	Ties     string // which of equally weighted parents: "numpy", as the authors' code, or "first"
	Training string // of a cell: "mean" of three, "one" of them by chance (the paper's code), or "1", "2", "3"
	Against  string // the best: "published" by the space's authors, or the best that the "table" has
	Split    data.Split
}

// codeLookups are those of the paper's code.
var codeLookups = Lookups{
	Ties: string(supernet.TiesNumPy), Training: regret.OneTraining, Against: regret.AgainstPublished, Split: data.Test,
}

const lookupsID = "li2021/lookups"

var lookupsStudy = study.Study{
	ID: lookupsID, Title: "look-ups in NAS-Bench-101", Shipped: shippedRecords,
	Code: code.Define(lookupsID, "li2021/internal/regret"),
}

func (l Lookups) checkLookups(c *study.Checks, spaces []string) {
	var ties []string
	for name := range supernet.TieRules {
		ties = append(ties, string(name))
	}
	slices.Sort(ties)
	c.OneOf("Ties", l.Ties, ties...)
	c.OneOf("Training", l.Training, regret.Trainings...)
	c.OneOf("Against", l.Against, regret.AgainstPublished, regret.AgainstTable)
	c.OneOf("Split", string(l.Split), string(data.Valid), string(data.Test))
	for _, space := range spaces {
		s, ok := supernet.OneShots[space]
		c.Expect(!ok || l.Against != regret.AgainstPublished || s.Known.TestError > 0, "Against is %q, and nothing is "+
			"published of the space %q: take %q", l.Against, space, regret.AgainstTable)
	}
}

// openLookups is the table for some spaces with the study of look-ups in it. Without a
// table the study reads what the project ships.
func openLookups(spaces []string, storedOnly bool) (*opened101[*data.NASBench101], study.Study, string, error) {
	table, fingerprint, err := oneShotTable(spaces)
	s := lookupsStudy
	s.StoredOnly = storedOnly || table == nil
	return table, s, fingerprint, err
}

// lookUp looks up what the run store lacks.
func (l Lookups) lookUp(ctx context.Context, all []oneShotFound, storedOnly bool) error {
	var spaces []string
	for _, f := range all {
		spaces = append(spaces, f.row.space())
	}
	table, s, fingerprint, err := openLookups(spaces, storedOnly)
	if err != nil {
		return err
	}
	var cases []study.Case
	var places [][2]int
	for i, f := range all {
		all[i].lookups = make([]*runs.Record, len(f.records))
		for j, record := range f.records {
			if record == nil || len(record.Values) == 0 {
				continue
			}
			theta, err := f.thetas(record)
			if err != nil {
				return fmt.Errorf("%s: %w", f.short(), err)
			}
			t := regret.Lookup{
				Search: record.Key, Space: f.space, Ties: supernet.Ties(l.Ties), Split: l.Split, Training: l.Training,
				Against: l.Against,
			}
			cases = append(cases, study.Case{
				Params: t, Seed: uint64(j), Data: fingerprint, Label: f.short(),
				Run: func(ctx context.Context, _ study.Step) (trial.Result, error) {
					content, err := table.content()
					if err != nil {
						return trial.Result{}, err
					}
					return t.Run(ctx, content, theta, uint64(j))
				},
			})
			places = append(places, [2]int{i, j})
		}
	}
	records, err := s.Run(ctx, cases)
	if err != nil {
		return err
	}
	for k, at := range places {
		all[at[0]].lookups[at[1]] = records[k]
	}
	return nil
}

// regretAt are the regrets after an epoch that are known, by seed.
func (f oneShotFound) regretAt(epoch int) map[int]float64 {
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

// isBound says that regrets are lower bounds: the table may lack the best.
func (f oneShotFound) isBound() bool {
	return slices.ContainsFunc(f.lookups, func(r *runs.Record) bool {
		return r != nil && r.Values[regret.ValueFound] < r.Values[regret.ValueAsked]
	})
}

// oneShotParts are the parts of θ whose entropy is drawn.
var oneShotParts = []string{"operations", "inputs", "output"}

// partOf is the part of θ that a block of OneShot.Product is of.
func partOf(block int) string {
	switch block {
	case 0:
		return "operations"
	case 1:
		return "output"
	}
	return "inputs"
}

// entropyOf is the mean entropy of the rows of a part of θ after every epoch.
func (f oneShotFound) entropyOf(r *runs.Record, part string) []float64 {
	var sum []float64
	rows := 0.
	for i, b := range f.blocks {
		if partOf(i) != part {
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

// entropies are the mean entropies of a part of θ over the searches, from the
// start on.
func (f oneShotFound) entropies(part string, confidence float64) (x []float64, means []runs.Summary, err error) {
	var curves [][]float64
	for _, r := range f.ran() {
		curves = append(curves, f.entropyOf(r, part))
	}
	if len(curves) == 0 {
		return nil, nil, nil
	}
	for e := range curves[0] {
		s, err := runs.Summarize(study.Column(curves, e), confidence)
		if err != nil {
			return nil, nil, err
		}
		x, means = append(x, float64(e)), append(means, s)
	}
	return x, atMostUniform(means), nil
}

// oneShotCaption says at which scale searches were run; params are the figure's.
func oneShotCaption(p OneShotParams, all []oneShotFound, params any) string {
	s := all[0].settings
	parts := []string{fmt.Sprintf(
		"Searches on %s: $C$ = %d, %d cells, %d×%d pixels, batch %d, %d epochs, %s.",
		p.searchedOn(), s.Channels, s.Cells, s.Image, s.Image, s.Batch, s.Epochs,
		study.Counted(p.Seeds, "seed"))}
	if p.Data == data.Synthetic {
		parts = append(parts, "SYNTHETIC DATA, not the paper's.")
	}
	if p.Preset == "code" {
		parts = append(parts, "Settings of the authors' code.")
	} else {
		parts = append(parts, strings.TrimSpace(study.SettingNote(params)))
	}
	for _, f := range all {
		if n := len(f.ran()); n < p.Seeds {
			parts = append(parts, fmt.Sprintf("%s: %d of %d searches were run.", f.short(), n, p.Seeds))
		}
	}
	return strings.Join(parts, " ")
}

// oneShotKeys are the records of searches and look-ups.
func oneShotKeys(all []oneShotFound) []string {
	var out []string
	for _, f := range all {
		out = append(append(out, study.Keys(f.records)...), study.Keys(f.lookups)...)
	}
	return out
}

// findOneShot is a search on a space; false where it was not asked for.
func findOneShot(all []oneShotFound, space, name string) (oneShotFound, bool) {
	for _, f := range all {
		if f.space.Name == supernet.OneShots[space].Name && f.search == name {
			return f, true
		}
	}
	return oneShotFound{}, false
}
