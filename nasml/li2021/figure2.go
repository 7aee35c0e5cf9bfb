package li2021

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/li2021/internal/regret"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/supernet"
	"github.com/nasml/lab/nasml/trial"
	"github.com/nasml/lab/plots"
)

// Figure2Params are the parameters of Figure 2: searches whose architectures are looked up after every epoch.
type Figure2Params struct {
	OneShotParams
	Lookups
	Rows []string // searches: see OneShotParams

	// Band is "std", one standard deviation (divisor n), as in the paper, or "interval", of the mean.
	Band string `validate:"oneof=std interval"`
}

// Figure2Quick has 18 precomputed searches of 25 epochs on 2,000 images at 8×8, about a quarter of an hour on two
// cores. Which method finds better architectures is inconclusive: the table has 171 of the 468 cells, and intervals
// over three seeds contain 0.
var Figure2Quick = Figure2Params{
	OneShotParams: quickOneShot, Lookups: codeLookups, Rows: []string{"pc-darts", "gaea-pc-darts"}, Band: "std",
}

// Figure2Paper has the settings of Appendix C.2 and four searches of each. It was not run.
var Figure2Paper = lab.With(Figure2Quick, func(p *Figure2Params) { p.OneShotParams = paperOneShot })

// Figure2Large is --scale large, one night on two cores; see largeOneShot.
var Figure2Large = lab.With(Figure2Quick, func(p *Figure2Params) { p.OneShotParams = largeOneShot })

// Figure2 looks up the architectures of searches in the table of NAS-Bench-101. Without a table, regrets are the
// precomputed ones, or gaps.
var Figure2 = lab.Declare(lab.Entry[Figure2Params, found]{
	Of: ofPaper, Name: "figure2", Kind: lab.Figure, Source: "Section 4.3 and Figure 2",
	Title:    "NAS-Bench-1Shot1: test regret of PC-DARTS and GAEA PC-DARTS during the search",
	Notebook: "figure2_nasbench1shot1", Cost: oneShotCost, Quick: Figure2Quick, Paper: Figure2Paper,
	Also:    []catalog.Preset[Figure2Params]{{Scale: catalog.Large, Params: Figure2Large}},
	Shipped: []catalog.Setting{{Scale: catalog.Large}, {Scale: catalog.Quick}},
	Note:    noteOfSearches,
	Rules: func(p Figure2Params, c *study.Checks) {
		p.oneShotRules(p.Rows, c)
		p.lookupRules(p.Spaces, c)
	},
	Compute: func(ctx context.Context, r *figure2) error {
		gs, err := r.Params.run(ctx, "li2021/figure2", r.Params.rowsOn(r.Params.Rows))
		if err != nil {
			return err
		}
		if err := r.Params.lookUp(ctx, gs, r.Params.StoredOnly); err != nil {
			return err
		}
		spreads, err := r.Params.spreads(ctx)
		r.Groups = append(withLookups(gs), spreads...)
		return err
	},
	Draw: drawFigure2, Claims: judgeFigure2,
})

type figure2 = lab.Result[Figure2Params, found]

// spreads are those of the best cells over their trainings, by space.
func (p Figure2Params) spreads(ctx context.Context) (lab.Groups[found], error) {
	b, err := lookupBench(p.Spaces, p.StoredOnly,
		func(_ context.Context, t regret.Spread, table *data.NASBench101, _ uint64) (trial.Result, error) {
			return t.Run(table)
		})
	if err != nil {
		return nil, err
	}
	b.Label = func(t regret.Spread) string { return "the best of " + spaceTitle(t.Space.Name) }
	var gs lab.Groups[regret.Spread]
	for _, space := range p.Spaces {
		gs.Add("spread", 1, regret.Spread{Space: supernet.OneShots[space], Of: "spread of the best", Split: p.Split})
	}
	err = b.Compute(ctx, gs)
	return lab.As("spread", gs, func(t regret.Spread) found { return found{oneShot: t.Space} }), err
}

// regretFloor is the lowest regret that the log axis shows.
const regretFloor = 5e-4

// drawFigure2 draws, after each epoch, the mean regret over the searches whose cell is in the table, hollow if some are
// missing, over the published means.
func drawFigure2(r *figure2, f *lab.Picture) {
	p, rows := r.Params, r.Part(searchPart).Trials()
	f.Style = wide
	for _, space := range p.Spaces {
		f.Add(p.panel(rows, space, p.Rows))
	}
	f.Say("Mean %s regret over %s, by the accuracy of %s; band: %s; %s.",
		p.Split, map[string]string{
			"published": "the lowest published error", "table": "the best cell of the table",
		}[p.Against], map[string]string{
			"mean": "the mean of three trainings", "one": "one training of three", "1": "training 1", "2": "training 2",
			"3": "training 3",
		}[p.Training], map[string]string{
			"std":      fmt.Sprintf("± one standard deviation of %s", study.Counted(p.Seeds, "seed")),
			"interval": strings.TrimPrefix(r.Interval("interval", p.Seeds, "seed"), "interval: "),
		}[p.Band], known(rows))
	f.Say("%s", searchCaption(p.SearchParams, rows, p))
	sayChanges(f, rows)
	if noTable(rows) {
		f.Say("%s", noTable101Caption)
	}
}

// panel has the searches of a space.
func (p Figure2Params) panel(all []found, space string, rows []string) plots.Panel {
	panel := plots.Panel{
		Title: spaceTitle(space), X: plots.Axis{Label: "epochs"},
		Y:      plots.Axis{Label: string(p.Split) + " regret", Scale: plots.Log10},
		Legend: plots.Legend{Hollow: "the table lacks some seeds' cells"},
	}
	last := 0
	for _, name := range rows {
		f, _ := rowIn(all, oneShotRow(name, space))
		panel.Series = append(panel.Series, p.curve(f)...)
		last = max(last, f.settings.Epochs)
	}
	panel.Series = append(panel.Series, p.published(space, last)...)
	return panel
}

// curve is the mean regret of a search with its band, in pieces between the gaps.
func (p Figure2Params) curve(f found) []plots.Series {
	whole := plots.Series{Label: f.row.title()}
	if f.isBound() {
		whole.Label += ", at least" // the table may lack the best
		whole.Line = plots.Dotted
	}
	var pieces []plots.Series
	piece := whole
	for epoch := f.firstLookup(); epoch <= f.settings.Epochs; epoch++ {
		known := f.regretAt(epoch)
		if len(known) == 0 {
			if len(piece.X) > 0 {
				pieces = append(pieces, piece)
			}
			piece = whole
			continue
		}
		values := make([]float64, 0, len(known))
		for _, seed := range slices.Sorted(maps.Keys(known)) {
			values = append(values, known[seed])
		}
		y, lo, hi := p.band(values)
		piece.X, piece.Y = append(piece.X, float64(epoch)), append(piece.Y, max(y, regretFloor))
		piece.Lo, piece.Hi = append(piece.Lo, max(lo, regretFloor)), append(piece.Hi, max(hi, regretFloor))
		piece.Hollow = append(piece.Hollow, len(known) < p.Seeds)
	}
	if len(piece.X) > 0 || len(pieces) == 0 { // an empty one is listed as not run
		pieces = append(pieces, piece)
	}
	return pieces
}

// band is a mean with its band.
func (p Figure2Params) band(values []float64) (y, lo, hi float64) {
	s, err := runs.Summarize(values, p.Confidence)
	if err != nil {
		panic(err) // the records hold finite numbers
	}
	if p.Band == "std" {
		std := float64(s.StdPopulation().Std)
		return s.Mean, s.Mean - std, s.Mean + std
	}
	y, lo, hi = s.Bounds()
	if math.IsNaN(lo) || math.IsNaN(hi) {
		return y, y, y
	}
	return y, lo, hi
}

// published are the paper's means up to an epoch, and the dashed line.
func (p Figure2Params) published(space string, last int) []plots.Series {
	if p.Split != data.Test {
		return nil
	}
	curves := publishedOneShotCurves()
	var out []plots.Series
	for _, name := range p.Rows {
		if c, ok := curves.Regret[space][name]; ok {
			out = append(out, publishedSeries("the paper's "+row(name).title(), c.Mean, last))
		}
	}
	if y, ok := curves.Before[space]; ok {
		out = append(out, plots.HLine("best of Zela+ 2020", y))
	}
	return out
}

// known counts the look-ups that the table can answer.
func known(rows []found) string {
	known, all := 0, 0
	for _, f := range rows {
		for e := f.firstLookup(); e <= f.settings.Epochs; e++ {
			known += len(f.regretAt(e))
			all += len(f.finished())
		}
	}
	return fmt.Sprintf("gaps: cells that the table lacks (it has %d of %d)", known, all)
}

// noTable reports whether a search was not looked up.
func noTable(rows []found) bool {
	return slices.ContainsFunc(rows, func(f found) bool {
		for i, s := range f.records {
			if s != nil && len(s.Values) > 0 && f.lookups[i] == nil {
				return true
			}
		}
		return false
	})
}

func (p Figure2Params) deviation(f found) (deviation, bool) {
	c := f.publishedRegret()
	if c.Mean == nil || p.Split != data.Test || f.isBound() {
		return deviation{}, false
	}
	var x, y []float64
	for _, piece := range p.curve(f) {
		x, y = append(x, piece.X...), append(y, piece.Y...)
	}
	return deviate(x, y, c.Mean, 1), true
}

// publishedRegret is the paper's curve of a search; empty if there is none.
func (f found) publishedRegret() regretCurve {
	return publishedOneShotCurves().Regret[f.oneShot.Name][f.row.search()]
}

// meanRegrets are the mean regrets of each search over the epochs, from the first, whose cell is in the table; searches
// without any are left out.
func (f found) meanRegrets() map[int]float64 {
	sum, n := map[int]float64{}, map[int]float64{}
	for e := max(1, f.firstLookup()); e <= f.settings.Epochs; e++ {
		for seed, x := range f.regretAt(e) {
			sum[seed] += x
			n[seed]++
		}
	}
	for seed := range sum {
		sum[seed] /= n[seed]
	}
	return sum
}

// pairsOf are the values of the seeds that both have.
func pairsOf(a, b map[int]float64) (x, y []float64) {
	for _, seed := range slices.Sorted(maps.Keys(a)) {
		if other, ok := b[seed]; ok {
			x, y = append(x, a[seed]), append(y, other)
		}
	}
	return x, y
}
