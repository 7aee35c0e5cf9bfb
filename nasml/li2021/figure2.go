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
	"github.com/nasml/lab/nasml/lab/verdict"
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

// Figure2Paper has the settings of Appendix C.2 and four searches of each; see paperOneShot.
var Figure2Paper = lab.With(Figure2Quick, func(p *Figure2Params) { p.OneShotParams = paperOneShot })

// Figure2Large is --scale large, one night on two cores; see largeOneShot.
var Figure2Large = lab.With(Figure2Quick, func(p *Figure2Params) { p.OneShotParams = largeOneShot })

// Figure2 looks up the architectures of searches in the table of NAS-Bench-101. Without a table, regrets are the
// precomputed ones, or gaps.
var Figure2 = lab.Declare(lab.Entry[Figure2Params, found]{
	Of: ofPaper, Name: "figure2", Kind: lab.Figure, Source: "Section 4.3 and Figure 2",
	Title:    "NAS-Bench-1Shot1: test regret of PC-DARTS and GAEA PC-DARTS during the search",
	Notebook: "figure2_nasbench1shot1", Cost: oneShotCost, Quick: Figure2Quick, Paper: Figure2Paper,
	Also: []catalog.Preset[Figure2Params]{{Scale: catalog.Large, Params: Figure2Large}}, Shipped: shippedOneShot,
	Note: noteOfSearches,
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
	if len(p.Spaces) == 1 {
		f.Style = f.Style.Column()
	}
	for _, space := range p.Spaces {
		f.Add(p.panel(rows, space, p.Rows))
	}
	band := strings.Replace(r.Interval("interval", p.Seeds, "seed"), "interval:", "band:", 1)
	if p.Band == "std" && p.Seeds > 1 {
		band = "band: ± one standard deviation of " + study.Counted(p.Seeds, "seed")
	}
	f.Say("Mean %s regret over %s, by the accuracy of %s; %s; %s.",
		p.Split, map[string]string{
			"published": "the lowest published error", "table": "the best cell of the table",
		}[p.Against], map[string]string{
			"mean": "the mean of three trainings", "one": "one training of three", "1": "training 1", "2": "training 2",
			"3": "training 3",
		}[p.Training], band, known(rows))
	f.Say("%s", searchCaption(p.SearchParams, rows, p))
	sayChanges(f, rows)
	if noTable(rows) {
		f.Say("%s", noTable101Caption)
	}
}

func (p Figure2Params) panel(all []found, space string, rows []string) plots.Panel {
	panel := plots.Panel{
		Title: spaceTitle(space), X: plots.Axis{Label: "epochs"},
		Y:      plots.Axis{Label: string(p.Split) + " regret", Scale: plots.Log10},
		Legend: plots.Legend{Hollow: map[bool]string{true: "the table lacks some seeds' cells"}[p.Seeds > 1]},
	}
	last := 0
	for _, name := range rows {
		f, _ := rowIn(all, oneShotRow(name, space))
		panel.Series = append(panel.Series, p.curve(f)...)
		last = max(last, f.settings.Epochs)
	}
	panel.Series = append(panel.Series, p.published(space, rows, last)...)
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
		values := study.Map(slices.Sorted(maps.Keys(known)), func(seed int) float64 { return known[seed] })
		y, lo, hi := p.band(values)
		piece.X, piece.Y = append(piece.X, float64(epoch)), append(piece.Y, max(y, regretFloor))
		if p.Seeds > 1 { // one has no band
			piece.Lo, piece.Hi = append(piece.Lo, max(lo, regretFloor)), append(piece.Hi, max(hi, regretFloor))
		}
		piece.Hollow = append(piece.Hollow, len(known) < p.Seeds)
	}
	if len(piece.X) > 0 || len(pieces) == 0 { // an empty one is listed as not run
		pieces = append(pieces, piece)
	}
	return pieces
}

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

// published are the paper's means of rows up to an epoch, each once, and the dashed line.
func (p Figure2Params) published(space string, rows []string, last int) []plots.Series {
	if p.Split != data.Test {
		return nil
	}
	var out []plots.Series
	for _, name := range rows {
		w := oneShotRow(name, space)
		s := publishedSeries("the paper's "+w.published().title(), w.publishedRegret().Mean, last)
		if len(s.X) > 0 && !slices.ContainsFunc(out, func(o plots.Series) bool { return o.Label == s.Label }) {
			out = append(out, s)
		}
	}
	if y, ok := publishedOneShotCurves().Before[space]; ok {
		out = append(out, plots.HLine("best of Zela+ 2020", y))
	}
	return out
}

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

// deviation is the distance from the published curve at the epochs that both have, if they are comparable.
func (p Figure2Params) deviation(f found) (d verdict.Distance, ok bool) {
	var x, y, theirs []float64
	published := f.row.publishedRegret().Mean // from epoch 1 on
	for _, piece := range p.curve(f) {
		for i, epoch := range piece.X {
			if epoch >= 1 && int(epoch) <= len(published) {
				x, y, theirs = append(x, epoch), append(y, piece.Y[i]), append(theirs, published[int(epoch)-1])
			}
		}
	}
	return verdict.CurveDistance(x, y, theirs), published != nil && p.Split == data.Test && !f.isBound()
}

func (w row) publishedRegret() regretCurve {
	return publishedOneShotCurves().Regret[w.space()][w.published().search()]
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

func pairsOf(a, b map[int]float64) (x, y []float64) {
	for _, seed := range slices.Sorted(maps.Keys(a)) {
		if other, ok := b[seed]; ok {
			x, y = append(x, a[seed]), append(y, other)
		}
	}
	return x, y
}

func judgeFigure2(r *figure2) (claims []runs.Claim) {
	p, rows := r.Params, r.Part(searchPart).Trials()
	for _, space := range p.Spaces {
		base, ok := rowIn(rows, oneShotRow("pc-darts", space))
		gaea, also := rowIn(rows, oneShotRow("gaea-pc-darts", space))
		if ok && also {
			claims = append(claims, judgeBetter(r, base, gaea))
		}
	}
	for _, space := range p.Spaces {
		if best, ok := bestBefore[space]; ok {
			claims = append(claims, judgeBestBefore(r, space, best))
		}
	}
	for _, f := range rows {
		if d, ok := p.deviation(f); ok {
			claims = append(claims, deviationClaims(r.Claim, f.short()+", test regret", d, publishedBand(f),
				"the published spread", !p.reduced())...)
		}
	}
	for _, g := range r.Part("spread") {
		if paper, ok := publishedSpreads[g.Trial.oneShot.Name]; ok && p.Split == data.Test {
			claims = append(claims, paper.judge(r, g.Trial.oneShot, g.Records[0]))
		}
	}
	return slices.Concat(claims, judgePublishedRegrets(r), judgeAppendixC2(r))
}

// publishedSpreads are the spreads of the best network's test error over trainings, in points, with the ids of their
// claims. The paper does not say which kind of spread it is.
var publishedSpreads = map[string]publishedSpread{
	"1shot1-s1": {"LI054", 0.37}, "1shot1-s2": {"LI055", 0.23}, "1shot1-s3": {"LI056", 0.19},
}

type publishedSpread struct {
	id     string
	points float64
}

// judge compares the population standard deviation of the best cell, if the table has the best training that the
// space's authors print.
func (p publishedSpread) judge(r *figure2, space supernet.OneShot, found *runs.Record) runs.Claim {
	c := r.Claim("[%s] %s: spread over trainings of the best network's test error, points", p.id,
		spaceTitle(space.Name)).From("Section 4.3")
	if found == nil {
		return c.Says(p.points).NotRun("%s", noTable101)
	}
	v, best := found.Values, 100*space.Known.TestError
	if math.Abs(v[regret.ValueSingle]-best) > 1e-5 {
		return c.Says(p.points).NotRun("the table has %v of %v cells, and not the best training, of %.4g %% error",
			v[regret.ValueFound], v[regret.ValueAsked], best)
	}
	claim := verdict.Exactly(c.Claim, v[regret.ValueStd], p.points, 0.005)
	claim.Note = fmt.Sprintf("standard deviation of three trainings with divisor n; %.2f with n−1; of the best mean "+
		"among %v of %v cells", v[regret.ValueSample], v[regret.ValueFound], v[regret.ValueAsked])
	return claim
}

func judgeBetter(r *figure2, base, gaea found) runs.Claim {
	c := r.Claim("[LI049] %s: %s finds better architectures on average than %s, test regret",
		spaceTitle(base.settings.Space), gaea.row.title(), base.row.title()).
		Says(mean(gaea.row.publishedRegret().Mean) - mean(base.row.publishedRegret().Mean)).
		Noting("ours is the difference of the means over the epochs whose cell the table has; only its sign is judged").
		Family(len(r.Params.Spaces))
	if noTable(r.Part(searchPart).Trials()) {
		return c.NotRun("%s", noTable101)
	}
	x, y := pairsOf(gaea.meanRegrets(), base.meanRegrets())
	if len(x) == 0 {
		return c.NotRun("no pair of searches was run, or the table has no cell of one")
	}
	return c.Difference(x, y).Below(0)
}

// beforeGAEA are the gradient and random searches of Zela+ 2020, and bestBefore the one that the paper calls the best
// of them on a space.
var (
	beforeGAEA = []string{"darts", "gdas", "pc-darts", "rsps"}
	bestBefore = map[string]string{"1shot1-s1": "pc-darts", "1shot1-s2": "gdas", "1shot1-s3": "pc-darts"}
)

// judgeBestBefore compares a search with the best of the others by mean regret, over pairs of seeds, if all were run.
func judgeBestBefore(r *figure2, space, best string) runs.Claim {
	c := r.Claim("[LI052] %s: the best method before GAEA is %s, test regret", spaceTitle(space), row(best).title()).
		Says(0)
	var missing []string
	var own, other map[int]float64
	least := math.Inf(1)
	for _, name := range beforeGAEA {
		f, ok := rowIn(r.Part(searchPart).Trials(), oneShotRow(name, space))
		if !ok {
			missing = append(missing, name)
			continue
		}
		found := f.meanRegrets()
		if name == best {
			own = found
			continue
		}
		if m := mean(slices.Sorted(maps.Values(found))); len(found) > 0 && m < least {
			least, other = m, found
			c = c.Noting("ours is the difference from %s, the best of the others, over seeds, of the means over the "+
				"epochs whose cell the table has; only its sign is judged", f.row.title())
		}
	}
	x, y := pairsOf(own, other)
	switch {
	case len(missing) > 0:
		return c.NotRun("Rows has no search by %s: add them", strings.Join(missing, ", "))
	case len(x) == 0:
		return c.NotRun("no pair of searches has a cell in a table that is there")
	}
	return c.Difference(x, y).Below(0)
}

// publishedBand is the mean over epochs of the published standard deviation of a search.
func publishedBand(f found) (band float64) {
	c := f.row.publishedRegret()
	for i := range c.Mean {
		band += (c.Hi[i] - c.Lo[i]) / 2 / float64(len(c.Mean))
	}
	return band
}

// deviationClaims are the mean and the largest distance from a published curve. If judge is set, the mean must lie
// within tolerance; the note says where that is from.
func deviationClaims(claim func(format string, args ...any) lab.Claim, what string, d verdict.Distance,
	tolerance float64, origin string, judge bool) []runs.Claim {
	claims := []runs.Claim{
		claim("own: %s: mean distance from the published curve", what).Claim,
		claim("own: %s: largest distance from the published curve", what).Claim,
	}
	for i, x := range []float64{d.Mean, d.Most} {
		c := &claims[i]
		if d.Points == 0 {
			*c = verdict.NotRun(*c, "no epoch in common")
			continue
		}
		c.Paper, c.Ours = 0, runs.Number(x)
		c.Note = fmt.Sprintf("over %d epochs that both have; not judged: another setting than the paper's", d.Points)
		if judge && i == 0 {
			*c = verdict.Exactly(*c, x, 0, tolerance)
			c.Note = fmt.Sprintf("over %d epochs that both have; the tolerance is %s", d.Points, origin)
		} else if judge {
			c.Note = fmt.Sprintf("at epoch %.0f; not judged", d.At)
		}
	}
	return claims
}

// judgePublishedRegrets judges the paper's text by its own curves.
func judgePublishedRegrets(r *figure2) (claims []runs.Claim) {
	p := publishedOneShotCurves()
	judged := func(c lab.Claim, says, ours float64, holds bool) {
		c.Ours, c.Holds = runs.Number(ours), runs.Judge(holds)
		claims = append(claims, c.Says(says).Claim)
	}
	beaten, worst, behind := 0, 0., math.Inf(-1)
	for _, space := range slices.Sorted(maps.Keys(p.Before)) {
		gaea, before := p.Regret[space]["gaea-pc-darts"], p.Before[space]
		ours, base := last(gaea.Mean), last(p.Regret[space]["pc-darts"].Mean)
		judged(r.Claim("own: the published curves: GAEA PC-DARTS below PC-DARTS at the end, %s", spaceTitle(space)),
			0, ours-base, ours < base)
		if space != supernet.OneShot2.Name {
			judged(r.Claim("[LI050] the published curves: PC-DARTS ends below the best of Zela+ 2020, %s",
				spaceTitle(space)), 0, base-before, base < before)
		}
		if ours < before {
			beaten++
		}
		worst = max(worst, 100*before)
		behind = max(behind, (ours-min(before, base))/((last(gaea.Hi)-last(gaea.Lo))/2))
	}
	c := r.Claim("[LI051] the published curves: spaces on which GAEA PC-DARTS ends below the best of Zela+ 2020")
	claims = append(claims, verdict.Exactly(c.Claim, float64(beaten), 2, 0))
	judged(r.Claim("[LI005] the published curves: GAEA PC-DARTS ends above the best of all methods by less than its "+
		"band, worst space, bands"), 1, behind, behind <= 1)
	judged(r.Claim("[LI053] the published curves: the best of Zela+ 2020 within 1 %% test error of the best network, "+
		"worst space"), 1, worst, worst <= 1)
	return claims
}

func last[T any](x []T) T { return x[len(x)-1] }

func judgeAppendixC2(r *figure2) []runs.Claim {
	claim := func(format string, args ...any) lab.Claim { return r.Claim(format, args...).From("Appendix C.2") }
	c := claim("[LI240] step size of EG on NAS-Bench-1Shot1")
	s, err := paperOneShot.settings(oneShotRow("gaea-pc-darts", supernet.OneShot1.Name))
	if err != nil {
		return []runs.Claim{c.NotRun("%v", err)}
	}
	claims := []runs.Claim{verdict.Exactly(c.Claim, s.ArchRate, 0.1, 0)}
	for _, space := range paperOneShot.Spaces {
		claims = append(claims, judgeCandidates(claim(
			"[LI241] operations of a cell grow with nodes, not edges: candidates in a cell of %s", spaceTitle(space)),
			supernet.OneShots[space]))
	}
	return claims
}

// judgeCandidates counts the convolutions of a cell's candidates in a supernet: two per node, whatever its edges.
func judgeCandidates(c lab.Claim, space supernet.OneShot) runs.Claim {
	net, err := supernet.NewOneShot(supernet.OneShotConfig{
		Space: space, Skeleton: supernet.Skeleton{Cells: 1, Channels: 4, Image: 8, Classes: 10},
	})
	if err != nil {
		return c.NotRun("%v", err)
	}
	convolutions := 0
	for _, w := range net.Weights() {
		var cell, node int
		var rest string
		if n, _ := fmt.Sscanf(w.Path, "cells/%d/node_%d/%s", &cell, &node, &rest); n == 3 && len(w.Dims) == 4 {
			convolutions++
		}
	}
	nodes, edges := len(space.Parents), space.Output
	for i := range space.Parents {
		edges += i + 1
	}
	c = c.Noting("convolutions of candidates; %d nodes with two each, and %d edges in the supernet", nodes, edges)
	return verdict.Exactly(c.Claim, float64(convolutions), float64(2*nodes), 0)
}
