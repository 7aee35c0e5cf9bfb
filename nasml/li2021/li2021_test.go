package li2021

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/stat"

	"github.com/nasml/lab/nasml/bilevel"
	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/data/datatest"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/search"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/supernet"
)

// isolated is a context with an empty store and no progress.
func isolated(t *testing.T) context.Context {
	t.Helper()
	store, err := runs.Open(t.TempDir())
	require.NoError(t, err)
	return runs.WithProgress(runs.WithStore(t.Context(), store), runs.Silent)
}

func TestPublishedCurvesEndAtTable2(t *testing.T) {
	p := publishedCurves()
	require.Len(t, p.Entropy["gaea-darts"], 50)
	for i, set := range lookupSets {
		want := publishedTables().Table2[bottomBlock]["gaea-darts"].Accuracy[i]
		var ends []float64
		for _, y := range p.GAEA[string(set.task)] {
			ends = append(ends, y[len(y)-1])
		}
		mean, std := stat.PopMeanStdDev(ends, nil)
		require.InDelta(t, want.Mean, mean, 0.005, set.title)
		require.InDelta(t, want.Std, std, 0.006, set.title)
	}
	require.InDelta(t, 15.32, p.XNAS["cifar100"][0][56], 1e-9, "all skip connections")
}

func TestRows(t *testing.T) {
	require.Equal(t, "GAEA DARTS (ERM)", row("gaea-darts/erm").title())
	require.Equal(t, "DARTS (bilevel)", row("darts").title())
	require.Equal(t, "GDAS", row("gdas").title())
	require.NoError(t, row("darts/benchmark").check())
	require.ErrorContains(t, row("gdas/benchmark").check(), "must be METHOD")
	require.ErrorContains(t, row("dart").check(), `"dart"`)

	w := row("darts/erm@darts")
	require.Equal(t, []string{"darts", "erm", "darts"}, []string{w.method(), w.variant(), w.space()})
	require.Equal(t, "DARTS (ERM), DARTS' space", w.named())
	for w, published := range map[row]row{
		"gaea-pc-darts/uncleared@1shot1-s2":        "gaea-pc-darts@1shot1-s2",
		"gaea-pc-darts/cleared@1shot1-s2":          "gaea-pc-darts@1shot1-s2",
		"gaea-pc-darts/uncleared-warmup@1shot1-s2": "gaea-pc-darts/uncleared-warmup@1shot1-s2", // was not plotted
		"pc-darts/erm@1shot1-s1":                   "pc-darts/erm@1shot1-s1",
		"gaea-pc-darts/uncleared@darts":            "gaea-pc-darts/uncleared@darts", // whose program clears
		"gaea-darts@nasbench201":                   "gaea-darts",
	} {
		require.Equal(t, published, w.published())
	}
	require.Equal(t, row("gaea-darts/erm@darts"), w.on("gaea-darts/erm"))
	require.NoError(t, w.check())
	require.ErrorContains(t, row("darts/benchmark@darts").check(), "must be METHOD")
	require.Equal(t, "PC-DARTS", row("pc-darts@darts").title())
}

// A panel a search space, with the paper's curves; numbers of the paper's scale are
// judged at that scale only.
func TestFigure1OnTwoSpaces(t *testing.T) {
	t.Setenv("GOMLX_BACKEND", "go")
	p := tiny()
	p.Channels, p.Cells, p.Seeds, p.Epochs = 4, 1, 1, 2
	p.Rows = []string{"gaea-darts", "pc-darts@darts", "gaea-pc-darts@darts"}
	ctx := isolated(t)
	r, err := Figure1(ctx, p)
	require.NoError(t, err)
	all := searched(r.Groups)
	f := r.Figure()
	require.NoError(t, f.Validate())
	require.Len(t, f.Panels[0], 2)
	require.Equal(t, "DARTS' space", f.Panels[0][1].Title)
	reference := f.Panels[0][1].Series[2]
	require.Equal(t, "the paper's PC-DARTS", reference.Label)
	require.Equal(t, []float64{1, 2}, reference.X)
	require.Equal(t, []float64{2.0794, 2.0793}, reference.Y)
	require.Contains(t, f.Caption, "paper's curves are of one seed")
	judged := map[string]runs.Claim{}
	for _, c := range r.Check() {
		judged[c.Name] = c
	}
	require.Equal(t, runs.Holds, judged["own: GAEA PC-DARTS, DARTS' space: entropy starts at ln 8"].Holds)
	audit := judged["PC-DARTS, DARTS' space: accuracy of the supernet before discretisation, percent"]
	require.Equal(t, runs.NotKnown, audit.Holds)
	require.Equal(t, runs.Number(72.17), audit.Paper)
	require.True(t, audit.Ours.Valid())
	require.Contains(t, judged, "GAEA PC-DARTS, DARTS' space loses less accuracy by discretisation than PC-DARTS, "+
		"percentage points")
	r.Params.Preset = "code" // with sizes of its own
	for _, whole := range []bool{false, true} {
		if whole {
			r.Params.Examples, r.Params.Epochs, r.Params.Batch = 0, 0, 0
			r.Params.Channels, r.Params.Cells, r.Params.Image = 0, 0, 0
		}
		for _, c := range r.Check() {
			if c.Name == audit.Name {
				require.Equal(t, whole, c.Note != ownScale)
			}
		}
	}
	r.Params = p
	r.Params.Preset = "code"
	for i := range all[1:] {
		m := search.Snapshot{Epochs: 2, Steps: 1, Curve: &search.Curve{}, Theta: all[1+i].records[0].Series["theta"]}
		view := liveFigure(&all[1+i], m, nil)
		require.NoError(t, view.Validate())
		require.Len(t, view.Panels[1], 2, "both cells")
		_, err := view.Render("svg")
		require.NoError(t, err)
	}

	q := p
	q.Rows = p.Rows[1:]
	left, err := Figure1Left(ctx, q)
	require.NoError(t, err)
	f = left.Figure()
	require.NoError(t, f.Validate())
	require.Len(t, f.Panels, 2)
	require.Equal(t, []int{4, 2, 4, 2}, []int{
		len(f.Panels[0][0].Series), len(f.Panels[0][1].Series), len(f.Panels[1][0].Series), len(f.Panels[1][1].Series),
	})
	edges := f.Panels[0][1].Series[1].Y // ln 2 to ln 5 at first
	require.InDelta(t, (math.Log(2)+math.Log(3)+math.Log(4)+math.Log(5))/4, edges[0], 1e-6)
	require.Len(t, edges, 3)
	require.Equal(t, []float64{1, 2}, f.Panels[1][0].Series[0].X)
	require.InDelta(t, 100*mean(all[1].column("supernet", 0)), f.Panels[1][0].Series[0].Y[0], 1e-9)
	_, of := collapsed(left)
	require.Equal(t, 2, of)
	require.Contains(t, left.Check()[len(left.Check())-1].Name, "own: no search ends with skip connections")
	_, err = Figure1Left(isolated(t), p)
	require.ErrorContains(t, err, `the space of row "gaea-darts" must be one of`)

	// The table of NAS-Bench-201 has no such cells.
	table := Table2Quick
	table.Rows = []string{"gaea-pc-darts@darts"}
	_, err = Table2(isolated(t), table)
	require.ErrorContains(t, err, `the space is "darts", whose architectures the table`)
	p.Rows = []string{"pc-darts"}
	_, err = Figure1(isolated(t), p)
	require.ErrorContains(t, err, "no settings are listed")
}

func TestParametersThatMakeNoSenseAreRefused(t *testing.T) {
	var usage *catalog.UsageError
	for name, change := range map[string]func(*Figure1Params){
		"row":    func(p *Figure1Params) { p.Rows = []string{"dart"} },
		"twice":  func(p *Figure1Params) { p.Rows = []string{"darts", "darts"} },
		"preset": func(p *Figure1Params) { p.Preset = "fast" },
		"seeds":  func(p *Figure1Params) { p.Seeds = 0 },
		"image":  func(p *Figure1Params) { p.Image = 9 },
		"update": func(p *Figure1Params) { p.Update = "adam" },
		"data":   func(p *Figure1Params) { p.Data = "cifar" },
		"share":  func(p *Figure1Params) { p.Devices = 3 },
		"bn":     func(p *Figure1Params) { p.Devices, p.Statistics = 2, "local" },
		"one":    func(p *Figure1Params) { p.Statistics = "device" },
		"step":   func(p *Figure1Params) { p.Gradients = []int{0, 4} },
		"order":  func(p *Figure1Params) { p.Gradients = []int{4, 1} },
	} {
		p := Figure1Quick
		change(&p)
		_, err := Figure1(isolated(t), p)
		require.ErrorAs(t, err, &usage, name)
	}
	_, err := Table2(isolated(t), Table2Params{SearchParams: quickSearch, Settings: "paper", Runs: 0})
	require.ErrorAs(t, err, &usage)
	unknown := Table2Quick
	unknown.Rows = []string{"dart"}
	t.Setenv("NASML_DATA", t.TempDir()) // it is refused before the table is looked for
	_, err = Table2(isolated(t), unknown)
	require.ErrorAs(t, err, &usage)
	_, err = Figure4(isolated(t), Figure4Params{SearchParams: quickSearch, Accuracy: "train"})
	require.ErrorAs(t, err, &usage)
}

// What is stored was computed on one device, and is asked for by its settings.
func TestOneDeviceIsNoSetting(t *testing.T) {
	p := quickSearch
	before, err := p.settings("darts")
	require.NoError(t, err)
	raw, err := json.Marshal(p)
	require.NoError(t, err)
	require.NotContains(t, string(raw), "Devices")
	require.NotContains(t, string(raw), "Statistics")

	p.Devices = 1
	one, err := p.settings("darts")
	require.NoError(t, err)
	require.Equal(t, before, one)

	p.Devices, p.Statistics = 2, "synchronised"
	two, err := p.settings("darts")
	require.NoError(t, err)
	require.Equal(t, []string{"devices: not set, 2"}, search.Differences(before, two))
	p.Statistics = "device"
	two, err = p.settings("darts")
	require.NoError(t, err)
	require.Equal(t, search.PerDevice, two.Statistics)
}

func TestSettingsOfARow(t *testing.T) {
	p := quickSearch
	p.Channels, p.Update, p.Without = 4, "projected", []string{""}
	s, err := p.settings("gaea-darts/erm")
	require.NoError(t, err)
	require.Equal(t, 4, s.Channels)
	require.Equal(t, "projected", s.Update)
	require.Empty(t, s.Without)
	require.Equal(t, "erm", s.Bilevel.Level)
	s, err = p.settings("darts")
	require.NoError(t, err)
	require.Empty(t, s.Update, "an update of the simplex is none of logits")
}

func TestArchitecturesOfASpaceWithoutNone(t *testing.T) {
	space := supernet.NASBench201.Without("none")
	a, err := arch(space, []int{0, 1, 2, 3, 0, 1})
	require.NoError(t, err)
	require.Equal(t, "|skip_connect~0|+|nor_conv_1x1~0|nor_conv_3x3~1|+|avg_pool_3x3~0|skip_connect~1|nor_conv_1x1~2|",
		a.String())
}

// The top block of Table 2 is at the paper's scale: every mean lies within the
// paper's mean ± standard deviation.
func TestTopBlockOfTable2IsThePapers(t *testing.T) {
	datatest.NASBench201(t)
	datatest.Dir(t, datatest.CIFAR10) // Table 2 names its images, also where none is searched on
	p := Table2Quick
	p.Rows, p.Direct = nil, nil
	r, err := Table2(isolated(t), p)
	require.NoError(t, err)
	// What holds and what does not, to the standard error of the difference: without the
	// noise of one trial REA is too good, and its reading with that noise is not.
	verdicts := map[runs.Verdict][]string{}
	for _, c := range r.Check() {
		if c.Ours.Valid() {
			verdicts[c.Holds] = append(verdicts[c.Holds], c.Name)
		}
	}
	require.Equal(t, []string{
		"CIFAR-10: REA, test accuracy in percent", "CIFAR-100: REA, test accuracy in percent",
	}, verdicts[runs.Fails])
	require.Equal(t, []string{"own: CIFAR-10: REA > REINFORCE > RS > BOHB, percentage points"}, verdicts[runs.NotKnown])
	require.Len(t, verdicts[runs.Holds], 10+2+len(p.Tabular)+len(lookupSets), "and the best architectures")
	require.NoError(t, r.Figure().Validate())
	require.NotEmpty(t, Table2Differences(p))
}

func TestStoredOnlyComputesNothing(t *testing.T) {
	datatest.NASBench201(t)
	datatest.Dir(t, datatest.CIFAR10) // Table 2 names its images, also where none is searched on
	p := Table2Quick
	p.Rows, p.Direct, p.StoredOnly, p.Runs = nil, nil, true, 7
	r, err := Table2(isolated(t), p)
	require.NoError(t, err)
	require.Empty(t, r.Records())
	require.Equal(t, "not run", lines(r, topBlock)[0].missing[0])
	require.NoError(t, r.Figure().Validate())
}

// Values at the same place are of the same seed only where none is missing.
func TestPairsNeedAllSeeds(t *testing.T) {
	p := SearchParams{Seeds: 3, Confidence: 0.95}
	claim := lab.Claim{Claim: verdict.Claim("a above b", "nowhere"), Confidence: p.Confidence}
	c := p.above(claim, []float64{2, 3, 4}, []float64{1, 2})
	require.Equal(t, runs.NotKnown, c.Holds)
	require.Contains(t, c.Note, "3 and 2 of 3 seeds")
	require.Equal(t, runs.Holds, p.above(claim, []float64{2, 3, 4.1}, []float64{1, 2, 3}).Holds)
	c = p.below(claim, []float64{2, 3, 4.1}, []float64{1, 2, 3})
	require.Equal(t, runs.Fails, c.Holds)
	require.InDelta(t, 1.033, float64(c.Ours), 1e-3, "the difference is a − b")
	require.Equal(t, runs.Fails, p.below(claim, []float64{1, 2, 3}, []float64{1, 2, 3}).Holds, "equal is not below")
}

// The table is part of the project: without data, every search that is shipped has its
// accuracies and its curve.
func TestTheTableIsThereWithoutData(t *testing.T) {
	t.Setenv("NASML_DATA", t.TempDir())
	table, err := Table2(isolated(t), Table2Quick)
	require.NoError(t, err)
	require.NoError(t, table.Figure().Validate())
	require.InDelta(t, 94.37, lineOf(lines(table, referenceBlock), "Optimal").accuracy[0][0], 0.01)
	for _, l := range append(lines(table, middleBlock), lines(table, topBlock)...) {
		require.Len(t, l.accuracy[0], len(l.accuracy[2]), l.title)
		require.NotEmpty(t, l.accuracy[0], l.title)
	}
	curves, err := Figure4(isolated(t), Figure4Quick)
	require.NoError(t, err)
	require.NoError(t, curves.Figure().Validate())
	for _, f := range curves.Groups.Trials() {
		require.Len(t, f.curves, len(lookupSets), f.row)
	}
	for _, c := range append(table.Check(), curves.Check()...) {
		require.NotContains(t, c.Note, "is not there", c.Name)
	}
}

// What is there and cannot be read is an error.
func TestABrokenTableIsAnError(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("NASML_DATA", dir)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "nasbench"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "nasbench", "nasbench201.csv.gz"), []byte("no table"), 0o644))
	_, err := Table2(isolated(t), Table2Quick)
	require.ErrorIs(t, err, data.ErrBroken)
	_, err = Figure4(isolated(t), Figure4Quick)
	require.ErrorIs(t, err, data.ErrBroken)
}

// Small searches on real images, on the pure Go backend.
func TestSmallSearchesDrawEveryFigure(t *testing.T) {
	datatest.NASBench201(t)
	datatest.Dir(t, datatest.CIFAR10)
	if os.Getenv("GOMLX_BACKEND") == "" {
		t.Setenv("GOMLX_BACKEND", "go")
	}
	ctx := isolated(t)
	p := Figure1Quick
	p.Channels, p.Image, p.Batch, p.Epochs, p.Seeds, p.Examples = 2, 8, 4, 2, 2, 16
	r, err := Figure1(ctx, p)
	require.NoError(t, err)
	require.Len(t, r.Records(), 4)
	require.NoError(t, r.Figure().Validate())
	require.Len(t, r.Check(), 6)

	benchmark, err := data.LoadNASBench201("")
	require.NoError(t, err)
	for _, m := range []search.Snapshot{
		{Epochs: 2, Steps: 1, Curve: &search.Curve{}, Theta: uniform(24)}, // before the first step
		{Epochs: 2, Step: 1, Steps: 2, Curve: &search.Curve{Theta: [][]float64{uniform(24)}},
			Theta: uniform(24), Loss: 2.3},
		{Epoch: 1, Epochs: 2, Step: 1, Steps: 2, Theta: uniform(24), Curve: &search.Curve{
			Theta: [][]float64{uniform(24), uniform(24)}, TrainLoss: []float64{2.3}, ValidLoss: []float64{2.3},
		}},
	} {
		view := liveFigure(&r.Groups[0].Trial, m, benchmark)
		require.NoError(t, view.Validate())
		require.Len(t, view.Panels[1], 2, "the cell, and the table's accuracy from the beginning on: nothing jumps")
		x := view.Panels[0][1].Series[0].X
		require.Equal(t, now(m), x[len(x)-1], "the entropy is that of now")
		_, err := view.Render("svg")
		require.NoError(t, err)
	}

	q := Figure4Quick
	q.SearchParams = p.SearchParams
	curves, err := Figure4(ctx, q)
	require.NoError(t, err)
	require.Equal(t, r.Records(), curves.Records(), "the searches are shared")
	require.NoError(t, curves.Figure().Validate())
	require.Len(t, curves.Groups[0].Trial.curves[data.TaskCIFAR10][0], 2)

	w := Table2Quick
	w.SearchParams, w.Rows, w.Direct, w.Runs = p.SearchParams, []string{"darts", "gaea-darts"}, []string{"darts"}, 5
	table, err := Table2(ctx, w)
	require.NoError(t, err)
	require.NoError(t, table.Figure().Validate())
	require.Equal(t, "no data", lines(table, bottomBlock)[0].missing[1])
	require.Len(t, searchedLine(table, "darts").accuracy[0], 2)
}

// Entropies are compared at the epoch where they are closest, with one search of each, which has no interval, too.
func TestEntropiesAreComparedAtTheLeastClearEpoch(t *testing.T) {
	r := &figure1{Params: Figure1Quick}
	of := func(w row, searches int, entropy ...float64) found {
		f := found{row: w, settings: search.Settings{Space: "nasbench201", Epochs: 4}}
		for i := range searches {
			moved := study.Map(entropy, func(x float64) float64 { return x + 0.01*float64(i) })
			f.records = append(f.records, &runs.Record{Values: map[string]float64{"epochs": 4},
				Series: map[string][]float64{"entropy": moved}})
		}
		return f
	}
	for _, searches := range []int{1, 3} {
		r.Params.Seeds = searches
		base, gaea := of("darts", searches, 2, 2, 2, 2, 2), of("gaea-darts", searches, 2, 2, 1.5, 1.9, 1.2)
		c := judgeBelow(r, base, gaea, 1)
		require.InDelta(t, -0.1, float64(c.Ours), 1e-12, "%d searches: epoch 3", searches)
		require.Equal(t, searches > 1, c.Hi.Valid())
		require.Equal(t, searches > 1, c.Holds == runs.Holds)
	}
}

// A search by hand: θ moves from skip_connect to nor_conv_3x3 on every edge, and
// the supernet is best after epochs 1 and 2 of 3.
func TestFinalByRule(t *testing.T) {
	space := supernet.Spaces["nasbench201"].Without("none")
	settings, err := search.AsQuick("gaea-darts")
	require.NoError(t, err)
	theta := append(slices.Repeat([]float64{0.25}, 24), slices.Repeat([]float64{0.7, 0.1, 0.1, 0.1}, 6)...)
	theta = append(theta, slices.Repeat([]float64{0.1, 0.7, 0.1, 0.1}, 6)...)
	theta = append(theta, slices.Repeat([]float64{0.1, 0.1, 0.7, 0.1}, 6)...)
	record := &runs.Record{Values: map[string]float64{"epochs": 3}, Series: map[string][]float64{
		"theta": theta, "final": {2, 2, 2, 2, 2, 2},
		"evaluated": {1, 2, 3}, "supernet": {0.4, 0.4, 0.3}, "valid_accuracy": {0.1, 0.3, 0.2},
	}}
	opened, err := settings.Open(10)
	require.NoError(t, err)
	f := found{row: "gaea-darts", settings: settings, space: space, opened: opened, blocks: space.Product()}
	for rule, op := range map[search.SelectionRule]int{"": 3, search.LastEpoch: 3, search.BestEpoch: 1,
		search.BestBatches: 2} {
		f.rule = rule
		a, err := f.final(record)
		require.NoError(t, err)
		require.Equal(t, slices.Repeat([]int{op}, 6), a.Choice(), rule)
	}
	f.rule, f.settings.Bilevel.Level = search.BestEpoch, bilevel.ERM
	a, err := f.final(record)
	require.NoError(t, err)
	require.Equal(t, 3, a.Choice()[0], "one level has no validation images")
	f.settings.Bilevel.Level = settings.Bilevel.Level
	record.Series["supernet"] = nil
	_, err = f.final(record)
	require.ErrorContains(t, err, "search with EvaluateEvery")
}

// Of the shipped searches, the architecture of the best epoch is one that the
// search went through, and lines of both rules stand in the table.
func TestShippedSearchesByBothRules(t *testing.T) {
	datatest.NASBench201(t)
	datatest.Dir(t, datatest.CIFAR10)
	p := Table2Quick
	p.StoredOnly, p.Tabular, p.AlsoPick = true, nil, "best"
	r, err := Table2(isolated(t), p)
	require.NoError(t, err)
	require.NoError(t, r.Figure().Validate())
	middle := lines(r, middleBlock)
	require.Len(t, middle, 7+3, "gdas, darts and gaea-darts have a second line: the others have no choice")
	different := 0
	for i, l := range middle {
		if l.title != "DARTS (bilevel), best validation epoch" && l.title != "GAEA DARTS (bilevel), best "+
			"validation epoch" {
			continue
		}
		require.Equal(t, middle[i-1].name, l.name)
		require.Len(t, l.accuracy[0], p.Seeds)
		for seed, x := range l.accuracy[0] {
			if x != middle[i-1].accuracy[0][seed] {
				different++
			}
		}
	}
	require.Positive(t, different, "or the rule changes nothing in any of ten searches")
	for _, f := range searched(r.Groups) {
		f.rule = search.BestEpoch
		if !f.selects() {
			continue
		}
		for _, record := range f.finished() {
			a, err := f.final(record)
			require.NoError(t, err)
			at := record.Series["supernet"]
			e := int(record.Series["evaluated"][slices.Index(at, slices.Max(at))])
			want, err := arch(f.space, f.space.Argmax(f.theta(record, e)))
			require.NoError(t, err)
			require.Equal(t, want, a)
		}
	}
	p.AlsoPick, p.Pick = "", "best"
	best, err := Table2(isolated(t), p)
	require.NoError(t, err)
	at := slices.IndexFunc(middle, func(l line) bool { return l.name == "darts" })
	require.Equal(t, middle[at+1].accuracy, searchedLine(best, "darts").accuracy)
	require.Contains(t, best.Figure().Caption, "best validation epoch")
	require.NotContains(t, r.Figure().Caption, "best validation epoch.")
	require.Contains(t, Table2Differences(p), "gaea-darts architecture: last epoch, best validation epoch")
	p.Pick = "first"
	_, err = Table2(isolated(t), p)
	require.ErrorContains(t, err, `found the rule "first"`)
}

func TestShippedSearchesAreOfThisCode(t *testing.T) {
	code, err := searchKind.Version()
	require.NoError(t, err)
	store, err := runs.FromContextWith(isolated(t), shippedRecords, "search")
	require.NoError(t, err)
	all, broken, err := store.List()
	require.NoError(t, err)
	require.Empty(t, broken)
	for _, record := range all {
		require.Equal(t, code, record.Trial.Code, "the code has changed: accept it, or compute the records again")
	}
}

// Table 2 at the paper's scale is days of searches beside a second of queries: what
// `nasml status` says is left is what a run forecasts, row by row.
func TestOneForecastOfSearches(t *testing.T) {
	t.Setenv("GOMLX_BACKEND", "")
	p := Table2Paper.SearchParams
	p.Data, p.Seeds = data.Synthetic, 2
	facts := data.Facts{Len: 50000, Fingerprint: "images"}
	images := searchImages{Facts: facts}
	gs, err := p.plan([]string{"gaea-gdas", "gdas"}) // of which no record is shipped that corrects it
	require.NoError(t, err)
	b := p.bench("searches", images, runPlain)
	sum := 0.0
	for i := range gs {
		gs[i].Trial = gs[i].Trial.on(facts.Len)
		seconds := b.Seconds(gs[i].Trial)
		require.Greater(t, seconds, 600.0, "no machine searches at the paper's scale in minutes")
		sum += float64(p.Seeds) * seconds
	}

	part := new(runs.Part)
	require.NoError(t, runSearches(runs.WithPart(isolated(t), part), b, gs, facts.Len))
	require.InEpsilon(t, sum, float64(part.Summary().Seconds), 1e-12)
	t.Setenv("GOMLX_BACKEND", "xla:cuda")
	require.Zero(t, gs[1].Trial.on(facts.Len).cost().Seconds, "nothing is known of a GPU")
}
