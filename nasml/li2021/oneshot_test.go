package li2021

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/bilevel"
	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/data/datatest"
	"github.com/nasml/lab/nasml/li2021/internal/regret"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/search"
	"github.com/nasml/lab/nasml/supernet"
)

// smallOneShot makes parameters as small as they can be.
func smallOneShot(p OneShotParams) OneShotParams {
	p.Channels, p.Cells, p.Image, p.Batch, p.Epochs, p.Seeds, p.Examples = 4, 1, 4, 4, 2, 2, 16
	p.Spaces = []string{"1shot1-s2"}
	return p
}

// Small searches on the pure Go backend: they are looked up, drawn
// and judged, and the figures share them.
func TestSmallOneShotSearches(t *testing.T) {
	datatest.NASBench101(t)
	datatest.Dir(t, datatest.CIFAR10)
	if os.Getenv("GOMLX_BACKEND") == "" {
		t.Setenv("GOMLX_BACKEND", "go")
	}
	ctx := isolated(t)
	p := Figure2Quick
	p.OneShotParams = smallOneShot(p.OneShotParams)
	p.Rows = append(p.Rows, "rsps", "gdas", "darts/second-order")
	r, err := Figure2(ctx, p)
	require.NoError(t, err)
	require.Len(t, r.Records(), 2*2*len(p.Rows)+1, "a search and its look-ups a seed, and the best cell")
	require.NoError(t, r.Figure().Validate())
	for _, f := range r.Part(searchPart).Trials() {
		for _, record := range f.lookups {
			require.Len(t, record.Series[regret.SeriesKnown], 3-f.firstLookup(), f.row.search())
		}
	}
	names := map[string]runs.Claim{}
	for _, c := range r.Check() {
		names[c.Name] = c
	}
	better := names["S2: GAEA PC-DARTS finds better architectures on average than PC-DARTS, test regret"]
	require.NotEmpty(t, better.Name)
	require.InDelta(t, -1e-4, float64(better.Paper), 1e-4, "means over all epochs of the published curves")

	q := Figure1MiddleQuick
	q.OneShotParams = p.OneShotParams
	m, err := Figure1Middle(ctx, q)
	require.NoError(t, err)
	require.Subset(t, r.Records(), m.Records())
	require.NoError(t, m.Figure().Validate())
	require.Len(t, m.Figure().Panels, 1)
	require.Len(t, m.Figure().Panels[0], 3, "the parts of θ, beside each other on one space")
	for _, c := range m.Check() {
		require.NotContains(t, c.Note, "not run", c.Name)
	}

	u := UnclearedQuick
	u.OneShotParams = p.OneShotParams
	u.Cleared, u.Uncleared = u.Cleared[:1], u.Uncleared[:1]
	x, err := Uncleared(ctx, u)
	require.NoError(t, err)
	require.NoError(t, x.Figure().Validate())
	require.Subset(t, r.Records(), x.Records()[:4], "what the paper has is cleared")
	cleared, uncleared := x.Part(searchPart)[0], x.Part(searchPart)[1]
	for seed := range p.Seeds {
		require.Equal(t, cleared.Records[seed].Series["theta"][:26], uncleared.Records[seed].Series["theta"][:26])
		require.NotEqual(t, cleared.Records[seed].Series["theta"], uncleared.Records[seed].Series["theta"])
	}
	require.Len(t, x.Check(), 7)
	require.True(t, differInTheGradient(unclearedPairs(x)[0]))

	u.Epochs, u.Cleared, u.Uncleared = 5, UnclearedQuick.Cleared[1:], UnclearedQuick.Uncleared[1:]
	x, err = Uncleared(ctx, u)
	require.NoError(t, err)
	require.False(t, differInTheGradient(unclearedPairs(x)[1]), "the presets differ in their warm-up, too")
	require.Len(t, x.Check(), 11)
	pair := unclearedPairs(x)[0]
	require.True(t, differInTheGradient(pair))
	require.Equal(t, 1, pair[0].settings.Bilevel.Warmup)
	for seed, r := range pair[0].records {
		a, b := r.Series["train_accuracy"], pair[1].records[seed].Series["train_accuracy"]
		require.Equal(t, a[:1], b[:1], "both move θ from the same weights on")
		require.NotEqual(t, pair[0].entropyAfter(2, "operations"), pair[1].entropyAfter(2, "operations"))
		require.Equal(t, pair[0].entropyAfter(1, "operations"), pair[1].entropyAfter(1, "operations"))
	}
	u.Cleared = nil
	_, err = Uncleared(ctx, u)
	require.ErrorContains(t, err, "as many rows, got 0 and 2")
}

// The part of NAS-Bench-101 that travels says what the table said from which the shipped
// look-ups are; of a reader's own space it knows nothing.
func TestTravellingTableSaysWhatTheTableSays(t *testing.T) {
	t.Setenv("NASML_DATA", t.TempDir())
	p := Figure2Large
	r, err := Figure2(isolated(t), p)
	require.NoError(t, err)
	part, err := shipped101.content()
	require.NoError(t, err)
	for _, f := range r.Part(searchPart).Trials() {
		record, lookup := f.records[0], f.lookups[0]
		require.NotNil(t, lookup, f.short())
		theta, err := f.thetas(record)
		require.NoError(t, err)
		again, err := regret.Lookup{
			Search: record.Key, Space: f.oneShot, Ties: supernet.Ties(p.Ties), Split: p.Split, Training: p.Training,
			Against: p.Against,
		}.Run(t.Context(), part, theta, 0)
		require.NoError(t, err)
		require.Equal(t, lookup.Series, again.Series, f.short())
		require.Equal(t, lookup.Values, again.Values, f.short())
	}

	own := supernet.OneShots["1shot1-s1"]
	own.Name = "mine"
	supernet.OneShots["mine"] = own
	t.Cleanup(func() { delete(supernet.OneShots, "mine") })
	table, fingerprint, err := oneShotTable([]string{"1shot1-s1", "mine"})
	require.NoError(t, err)
	require.Nil(t, table)
	require.Equal(t, data.NASBench101Fingerprint, fingerprint)
}

// Without a table searches are drawn, regrets are gaps, and one line names the
// missing file.
func TestOneShotWithoutTable(t *testing.T) {
	t.Setenv("NASML_DATA", t.TempDir())
	p := Figure2Quick
	p.OneShotParams = smallOneShot(p.OneShotParams)
	p.StoredOnly, p.Examples = true, 2000 // of which the project knows the facts
	r, err := Figure2(isolated(t), p)
	require.NoError(t, err)
	require.NoError(t, r.Figure().Validate())
	require.Contains(t, r.Figure().Caption, "0 of 2 searches were run")

	k := RanksQuick
	k.Split = data.Test // of which nothing is shipped
	ranks, err := Ranks(isolated(t), k)
	require.NoError(t, err)
	require.NoError(t, ranks.Figure().Validate())
	require.Contains(t, ranks.Figure().Caption, "The table of NAS-Bench-101 is not there")
	for _, c := range ranks.Check() {
		require.Contains(t, c.Note, `run "go tool nasml data nasbench101 --from DIR"`)
		require.NotContains(t, c.Note, "\n")
	}
}

// What is there and cannot be read is an error.
func TestABrokenTable101IsAnError(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("NASML_DATA", dir)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "nasbench"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "nasbench", "nasbench101.csv.gz"), []byte("no table"), 0o644))
	p := Figure2Quick
	p.StoredOnly = true
	_, err := Figure2(isolated(t), p)
	require.ErrorIs(t, err, data.ErrBroken)
	_, err = Ranks(isolated(t), RanksQuick)
	require.ErrorIs(t, err, data.ErrBroken)
}

func TestOneShotRefuses(t *testing.T) {
	for want, change := range map[string]func(p *Figure2Params){
		`Spaces must be one of 1shot1-s1, 1shot1-s2, 1shot1-s3, got "1shot1-s4"`: func(p *Figure2Params) {
			p.Spaces = []string{"1shot1-s4"}
		},
		`Space must be empty, got "1shot1-s1"`:     func(p *Figure2Params) { p.Space = "1shot1-s1" },
		"ENAS is not defined on the space 1shot1-": func(p *Figure2Params) { p.Rows = []string{"enas"} },
		`row "darts/x@1shot1-s1" must be METHOD`:   func(p *Figure2Params) { p.Rows = []string{"darts/x"} },
		`Ties must be one of first, numpy`:         func(p *Figure2Params) { p.Ties = "last" },
		`Training must`:                            func(p *Figure2Params) { p.Training = "4" },
		`Against must`:                             func(p *Figure2Params) { p.Against = "me" },
		`Band must`: func(p *Figure2Params) {
			p.Band = "wide"
		},
		"Seeds must":                func(p *Figure2Params) { p.Seeds = 0 },
		"Rows must have at least 1": func(p *Figure2Params) { p.Rows = nil },
	} {
		p := Figure2Quick
		p.StoredOnly = true
		change(&p)
		_, err := Figure2(isolated(t), p)
		var usage *catalog.UsageError
		require.ErrorAs(t, err, &usage, want)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "\n")
	}
}

// A reader's space is one entry; it has no published curves and no published best.
func TestAnOwnOneShotSpace(t *testing.T) {
	datatest.NASBench101(t)
	datatest.Dir(t, datatest.CIFAR10)
	if os.Getenv("GOMLX_BACKEND") == "" {
		t.Setenv("GOMLX_BACKEND", "go")
	}
	supernet.OneShots["mine"] = supernet.OneShot{
		Name: "mine", Ops: supernet.OneShot1.Ops, Parents: []int{1, 1}, Output: 1,
	}
	defer delete(supernet.OneShots, "mine")
	p := Figure2Quick
	p.OneShotParams = smallOneShot(p.OneShotParams)
	p.Spaces, p.Rows, p.Epochs, p.Seeds = []string{"mine"}, []string{"gaea-darts"}, 1, 1
	_, err := Figure2(isolated(t), p)
	require.ErrorContains(t, err, `Against must be "table" for the space "mine", got "published"`)
	p.Against = "table"
	r, err := Figure2(isolated(t), p)
	require.NoError(t, err)
	require.NoError(t, r.Figure().Validate())

	supernet.OneShots["mine"] = supernet.OneShots["mine"].With("sep_conv_3x3") // of which no table knows anything
	r, err = Figure2(isolated(t), p)
	require.NoError(t, err)
	require.NoError(t, r.Figure().Validate())
}

// Appendix C.2's settings, and those of the programs.
func TestOneShotPresets(t *testing.T) {
	for _, space := range paperOneShot.Spaces {
		for _, method := range []string{"darts", "gaea-darts", "pc-darts", "gaea-pc-darts", "gdas", "rsps"} {
			for scale, of := range map[string]func(space, method string) (search.Settings, error){
				"paper": search.AsPaperOn, "code": search.AsCodeOn, "quick": search.AsQuickOn,
			} {
				s, err := of(space, method)
				require.NoError(t, err)
				require.NoError(t, s.Check(), "%s %s", scale, method)
				require.Equal(t, strings.Contains(method, "pc-"), s.Partial == 4)
				require.Equal(t, strings.HasPrefix(method, "gaea") && scale == "code", s.Bilevel.Uncleared)
			}
		}
	}
	s, err := search.AsPaperOn("1shot1-s1", "gaea-pc-darts")
	require.NoError(t, err)
	require.Equal(t, []float64{0.1, 0.025, 0.001, 3e-4, 0.9, 5},
		[]float64{s.ArchRate, s.LearningRate, s.LearningRateMin, s.WeightDecay, s.Momentum, s.Bilevel.Clip})
	require.Equal(t, []int{16, 9, 32, 50, 96, 0},
		[]int{s.Channels, s.Cells, s.Image, s.Epochs, s.Batch, s.Bilevel.Warmup})
	require.Equal(t, bilevel.WithoutReplacement, s.Bilevel.Pairing)
	code, err := search.AsCodeOn("1shot1-s1", "gaea-pc-darts")
	require.NoError(t, err)
	require.Equal(t, 10, code.Bilevel.Warmup)
	require.Equal(t, search.OuterTwice, code.Running)
}

// Searches that clear gradients and those that do not have one published regret, drawn once.
func TestPublishedRegretIsDrawnOnce(t *testing.T) {
	rows := []string{"gaea-pc-darts/cleared", "pc-darts", "gaea-pc-darts/uncleared", "gaea-pc-darts/as-code"}
	var labels []string
	for _, s := range Figure2Quick.published("1shot1-s1", rows, 20) {
		labels = append(labels, s.Label)
	}
	require.Equal(t, []string{"the paper's GAEA PC-DARTS", "the paper's PC-DARTS", "best of Zela+ 2020"}, labels)
}
