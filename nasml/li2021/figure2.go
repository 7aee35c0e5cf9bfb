package li2021

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/li2021/internal/regret"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/supernet"
	"github.com/nasml/lab/nasml/trial"
	"github.com/nasml/lab/nasml/verdict"
	"github.com/nasml/lab/plots"
)

// Figure2Params are the parameters of Figure 2: the searches whose architectures
// are looked up after every epoch.
type Figure2Params struct {
	OneShotParams
	Lookups
	Rows []string // searches: see OneShotParams
	Band string   // "std": one standard deviation (divisor n), as in the paper, or "interval": of the mean
}

// Figure2Quick has 18 searches of 25 epochs on 2,000 images at 8×8, in about a
// quarter of an hour on two cores; they are shipped. Which of the two finds better
// architectures is inconclusive at this scale: the table has 171 of the 468 cells that
// are looked up, and differences over three seeds hold 0.
var Figure2Quick = Figure2Params{
	OneShotParams: quickOneShot, Lookups: codeLookups, Rows: []string{"pc-darts", "gaea-pc-darts"}, Band: "std",
}

// Figure2Paper has the settings of Appendix C.2 and four searches of each. It was
// not run.
var Figure2Paper = Figure2Params{
	OneShotParams: paperOneShot, Lookups: codeLookups, Rows: []string{"pc-darts", "gaea-pc-darts"}, Band: "std",
}

// Figure2Large is --scale large and fits into one night on two cores; see
// largeOneShot.
var Figure2Large = func() Figure2Params {
	p := Figure2Quick
	p.OneShotParams = largeOneShot
	return p
}()

const (
	figure2ID     = "li2021/figure2"
	figure2Title  = "NAS-Bench-1Shot1: test regret of PC-DARTS and GAEA PC-DARTS during the search"
	figure2Source = "Li+ 2021, Section 4.3 and Figure 2"
)

func init() {
	catalog.Register(catalog.Entry{
		ID: figure2ID, Paper: paper, Title: figure2Title, Kind: "figure",
		Notebook: "notebooks/li2021/figure2_nasbench1shot1.ipynb",
		Cost:     catalog.Cost{Quick: oneShotCost.Quick, Paper: oneShotCost.Paper},
		Shipped:  []catalog.Setting{{Scale: catalog.Large}, {Scale: catalog.Quick}},
	}, Figure2Quick, Figure2Paper, Figure2, catalog.Preset[Figure2Params]{Scale: catalog.Large, Params: Figure2Large})
}

// Figure2Result is Figure 2.
type Figure2Result struct {
	Params Figure2Params
	Scale  string // "quick", "paper" or empty for own parameters
	all    []oneShotFound

	spreads []*runs.Record // of the best cell, by space; nil where there is none
}

// Figure2 runs what the run store lacks of the searches, and looks each
// architecture up in the table of NAS-Bench-101. Cancelling ctx ends it after the
// step under way, with finished searches stored and the one under way at its
// checkpoint.
//
// It is an error where a parameter makes no sense (a *catalog.UsageError), where
// the images cannot be had, where a table is broken, and where a search diverges.
// Without a table regrets are those that the project ships, or gaps.
func Figure2(ctx context.Context, p Figure2Params) (*Figure2Result, error) {
	var c study.Checks
	p.checkLookups(&c, p.Spaces)
	c.OneOf("Band", p.Band, "std", "interval")
	if err := c.Err("figure 2"); err != nil {
		return nil, err
	}
	all, err := p.runOneShot(ctx, figure2ID, p.Rows)
	if err != nil {
		return nil, err
	}
	if err := p.lookUp(ctx, all, p.StoredOnly); err != nil {
		return nil, err
	}
	spreads, err := p.spreads(ctx)
	return &Figure2Result{p, runs.Scale(ctx), all, spreads}, err
}

// spreads are those of the best cells over their trainings.
func (p Figure2Params) spreads(ctx context.Context) ([]*runs.Record, error) {
	table, s, fingerprint, err := openLookups(p.Spaces, p.StoredOnly)
	if err != nil {
		return nil, err
	}
	var cases []study.Case
	for _, space := range p.Spaces {
		t := regret.Spread{Space: supernet.OneShots[space], Of: "spread of the best", Split: p.Split}
		cases = append(cases, study.Case{
			Params: t, Data: fingerprint, Label: "the best of " + spaceTitle(space),
			Run: func(context.Context, study.Step) (trial.Result, error) {
				content, err := table.content()
				if err != nil {
					return trial.Result{}, err
				}
				return t.Run(content)
			},
		})
	}
	return s.Run(ctx, cases)
}

// Records are the keys of the searches and of their look-ups.
func (r *Figure2Result) Records() []string {
	return append(oneShotKeys(r.all), study.Keys(r.spreads)...)
}

// regretFloor is the lowest regret that the log axis shows.
const regretFloor = 5e-4

// Figure draws the mean regret after each epoch over the searches whose cell the
// table has, hollow where it lacks some, over the published means.
func (r *Figure2Result) Figure() plots.Figure {
	var panels []plots.Panel
	for _, space := range r.Params.Spaces {
		panels = append(panels, r.panel(space, r.Params.Rows))
	}
	return plots.Figure{
		Name: "li2021-figure2", Style: wide, Panels: [][]plots.Panel{panels},
		Caption: r.caption(), Meta: study.Meta(figure2Title, r.Scale, r.Params),
	}
}

// panel has the searches of a space.
func (r *Figure2Result) panel(space string, rows []string) plots.Panel {
	panel := plots.Panel{
		Title: spaceTitle(space), X: plots.Axis{Label: "epochs"},
		Y:      plots.Axis{Label: r.split() + " regret", Scale: plots.Log10},
		Legend: plots.Legend{Hollow: "the table lacks some seeds' cells"},
	}
	last := 0
	for _, name := range rows {
		f, _ := findOneShot(r.all, space, name)
		panel.Series = append(panel.Series, r.curve(f)...)
		last = max(last, f.settings.Epochs)
	}
	panel.Series = append(panel.Series, r.published(space, last)...)
	return panel
}

func (r *Figure2Result) split() string { return string(r.Params.Split) }

// curve is the mean regret of a search with its band, in pieces between the gaps.
func (r *Figure2Result) curve(f oneShotFound) []plots.Series {
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
		y, lo, hi := r.band(values)
		piece.X, piece.Y = append(piece.X, float64(epoch)), append(piece.Y, max(y, regretFloor))
		piece.Lo, piece.Hi = append(piece.Lo, max(lo, regretFloor)), append(piece.Hi, max(hi, regretFloor))
		piece.Hollow = append(piece.Hollow, len(known) < r.Params.Seeds)
	}
	if len(piece.X) > 0 || len(pieces) == 0 { // an empty one is listed as not run
		pieces = append(pieces, piece)
	}
	return pieces
}

// band is a mean, and what lies around it.
func (r *Figure2Result) band(values []float64) (y, lo, hi float64) {
	s, err := runs.Summarize(values, r.Params.Confidence)
	if err != nil {
		panic(err) // the records hold finite numbers
	}
	if r.Params.Band == "std" {
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
func (r *Figure2Result) published(space string, last int) []plots.Series {
	if r.split() != "test" {
		return nil
	}
	p := publishedOneShotCurves()
	var out []plots.Series
	for _, name := range r.Params.Rows {
		if c, ok := p.Regret[space][name]; ok {
			out = append(out, referenceFrom("the paper's "+row(name).title(), c.Mean, 1, last))
		}
	}
	if y, ok := p.Before[space]; ok {
		out = append(out, plots.HLine("best of Zela+ 2020", y))
	}
	return out
}

func (r *Figure2Result) caption() string {
	p := r.Params
	against := "the lowest error that the space's authors print"
	if p.Against == "table" {
		against = "the best cell that the table has"
	}
	accuracy := map[string]string{"mean": "the mean of three trainings", "one": "one training of three"}[p.Training]
	if accuracy == "" {
		accuracy = "training " + p.Training
	}
	band := map[string]string{"std": "one standard deviation (divisor n)", "interval": "interval of the mean"}[p.Band]
	text := oneShotCaption(p.OneShotParams, r.all, r.Params)
	text += fmt.Sprintf(" Mean %s regret against %s, accuracy of a cell: %s; "+
		"band: %s. Equal weights as the rule %q has them. %s", r.split(), against, accuracy, band, p.Ties, r.known())
	for _, f := range r.all {
		if d, ok := r.deviation(f); ok && d.Epochs > 0 {
			text += fmt.Sprintf(" %s, distance from the published mean: %s.", f.short(), d)
		}
	}
	if r.noTable() {
		text += " " + noTable101Caption
	}
	return text
}

// known says how much of the look-ups the table has.
func (r *Figure2Result) known() string {
	known, all := 0, 0
	for _, f := range r.all {
		for e := f.firstLookup(); e <= f.settings.Epochs; e++ {
			known += len(f.regretAt(e))
			all += len(f.ran())
		}
	}
	return fmt.Sprintf("The table has %d of %d architectures; the others are gaps.", known, all)
}

// noTable says that a search was not looked up.
func (r *Figure2Result) noTable() bool {
	return slices.ContainsFunc(r.all, func(f oneShotFound) bool {
		for i, s := range f.records {
			if s != nil && len(s.Values) > 0 && f.lookups[i] == nil {
				return true
			}
		}
		return false
	})
}

// deviation is that of the mean from the published one; false where there is
// none.
func (r *Figure2Result) deviation(f oneShotFound) (deviation, bool) {
	c, ok := publishedOneShotCurves().Regret[f.space.Name][f.search]
	if !ok || r.split() != "test" || f.isBound() {
		return deviation{}, false
	}
	var x, y []float64
	for _, piece := range r.curve(f) {
		x, y = append(x, piece.X...), append(y, piece.Y...)
	}
	return deviate(x, y, c.Mean, 1), true
}

// meanRegrets are the mean regrets of each search over the epochs from the first
// on whose cell the table has; searches with none are left out.
func (f oneShotFound) meanRegrets() map[int]float64 {
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

// Check judges the claims about regret, those about our searches and those about
// the paper's own curves, and Appendix C.2's settings.
func (r *Figure2Result) Check() []runs.Claim {
	var claims []runs.Claim
	for _, space := range r.Params.Spaces {
		base, ok := findOneShot(r.all, space, "pc-darts")
		gaea, also := findOneShot(r.all, space, "gaea-pc-darts")
		if ok && also {
			claims = append(claims, r.checkBetter(base, gaea))
		}
	}
	for _, space := range r.Params.Spaces {
		if best, ok := bestBefore[space]; ok {
			claims = append(claims, r.checkBestBefore(space, best))
		}
	}
	for _, f := range r.all {
		if d, ok := r.deviation(f); ok {
			claims = append(claims, r.checkDeviation(f, d)...)
		}
	}
	for i, space := range r.Params.Spaces {
		if paper, ok := publishedSpreads[space]; ok && r.split() == "test" {
			claims = append(claims, checkSpread(space, paper, r.spreads[i]))
		}
	}
	return append(append(claims, checkPublishedRegrets()...), checkAppendixC2()...)
}

// publishedSpreads are those of the best network's test error over trainings, in
// points, without a word on which kind of spread it is.
var publishedSpreads = map[string]float64{"1shot1-s1": 0.37, "1shot1-s2": 0.23, "1shot1-s3": 0.19}

var publishedSpreadIDs = map[string]string{"1shot1-s1": "LI054", "1shot1-s2": "LI055", "1shot1-s3": "LI056"}

// checkSpread compares the spread of the best cell, the population's standard
// deviation, where the table has the best training that the space's authors print.
func checkSpread(space string, paper float64, r *runs.Record) runs.Claim {
	c := verdict.Claim(fmt.Sprintf("[%s] %s: spread over trainings of the best network's test error, points",
		publishedSpreadIDs[space], spaceTitle(space)), "Li+ 2021, Section 4.3")
	if r == nil {
		c.Paper = runs.Number(paper)
		return verdict.NotRun(c, noTable101)
	}
	best := 100 * supernet.OneShots[space].Known.TestError
	if math.Abs(r.Values[regret.ValueSingle]-best) > 1e-5 {
		c.Paper = runs.Number(paper)
		return verdict.NotRun(c, fmt.Sprintf("the table has %v of %v cells, and not the best training, of %.4g %% "+
			"error", r.Values[regret.ValueFound], r.Values[regret.ValueAsked], best))
	}
	c = verdict.Exactly(c, r.Values[regret.ValueStd], paper, 0.005)
	c.Note = fmt.Sprintf("standard deviation of three trainings with divisor n; %.2f with n−1; of the best mean "+
		"among %v of %v cells", r.Values[regret.ValueSample], r.Values[regret.ValueFound], r.Values[regret.ValueAsked])
	return c
}

// checkBetter compares two searches over pairs of seeds.
func (r *Figure2Result) checkBetter(base, gaea oneShotFound) runs.Claim {
	c := verdict.Claim(fmt.Sprintf("[LI049] %s: %s finds better architectures on average than %s, test regret",
		spaceTitle(base.settings.Space), gaea.row.title(), base.row.title()), figure2Source)
	p := publishedOneShotCurves().Regret[base.space.Name]
	c.Paper = runs.Number(mean(p[gaea.search].Mean) - mean(p[base.search].Mean))
	c.Note = "ours is the difference of the means over the epochs whose cell the table has; only its sign is judged"
	if r.noTable() {
		return verdict.NotRun(c, noTable101)
	}
	x, y := pairsOf(gaea.meanRegrets(), base.meanRegrets())
	if len(x) == 0 {
		return verdict.NotRun(c, "the table has no cell of a pair of searches")
	}
	s, err := runs.MeanDiff(x, y, r.Params.among(len(r.Params.Spaces)).Confidence)
	return verdict.Below(c, s, err, 0)
}

// beforeGAEA are the searches of Zela+ 2020 by gradients and by chance, and
// bestBefore the one that the paper calls the best of them on a space.
var (
	beforeGAEA = []string{"darts", "gdas", "pc-darts", "rsps"}
	bestBefore = map[string]string{"1shot1-s1": "pc-darts", "1shot1-s2": "gdas", "1shot1-s3": "pc-darts"}
)

// checkBestBefore compares a search with the one of the others whose mean regret is
// the lowest, over pairs of seeds, where all were run.
func (r *Figure2Result) checkBestBefore(space, best string) runs.Claim {
	c := verdict.Claim(fmt.Sprintf("[LI052] %s: the best method before GAEA is %s, test regret", spaceTitle(space),
		row(best).title()), figure2Source)
	c.Paper = 0
	var missing []string
	var own, other map[int]float64
	least := math.Inf(1)
	for _, name := range beforeGAEA {
		f, ok := findOneShot(r.all, space, name)
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
			c.Note = "ours is the difference from " + f.row.title() + ", the best of the others, over seeds, of the " +
				"means over the epochs whose cell the table has; only its sign is judged"
		}
	}
	x, y := pairsOf(own, other)
	switch {
	case len(missing) > 0:
		return verdict.NotRun(c, fmt.Sprintf("Rows has no search by %s: add them", strings.Join(missing, ", ")))
	case len(x) == 0:
		return verdict.NotRun(c, "no pair of searches has a cell in a table that is there")
	}
	s, err := runs.MeanDiff(x, y, r.Params.Confidence)
	return verdict.Below(c, s, err, 0)
}

// checkDeviation tells how far a mean curve is from the published one. At the
// paper's scale it is to lie within the published standard deviation.
func (r *Figure2Result) checkDeviation(f oneShotFound, d deviation) []runs.Claim {
	c := publishedOneShotCurves().Regret[f.space.Name][f.search]
	spread := 0.
	for i := range c.Mean {
		spread += (c.Hi[i] - c.Lo[i]) / 2 / float64(len(c.Mean))
	}
	return deviationClaims(f.short()+", test regret", figure2Source, d, spread, !r.Params.reduced())
}

// deviationClaims are the mean and the largest distance from a published curve,
// of which the first is judged where judge is set.
func deviationClaims(what, source string, d deviation, tolerance float64, judge bool) []runs.Claim {
	claims := []runs.Claim{
		verdict.Claim("own: "+what+": mean distance from the published curve", source),
		verdict.Claim("own: "+what+": largest distance from the published curve", source),
	}
	for i, x := range []float64{d.Mean, d.Largest} {
		c := &claims[i]
		if d.Epochs == 0 {
			*c = verdict.NotRun(*c, "no epoch in common")
			continue
		}
		c.Paper, c.Ours = 0, runs.Number(x)
		c.Note = fmt.Sprintf("over %d epochs that both have; not judged: another setting than the paper's", d.Epochs)
		if judge && i == 0 {
			*c = verdict.Exactly(*c, x, 0, tolerance)
			c.Note = fmt.Sprintf("over %d epochs that both have; the tolerance is the published spread", d.Epochs)
		} else if judge {
			c.Note = fmt.Sprintf("at epoch %.0f; not judged", d.At)
		}
	}
	return claims
}

// checkPublishedRegrets judges what the text says of the curves by the curves.
func checkPublishedRegrets() []runs.Claim {
	p := publishedOneShotCurves()
	var claims []runs.Claim
	beaten, worst, behind := 0, 0., math.Inf(-1)
	for _, space := range slices.Sorted(maps.Keys(p.Before)) {
		base, gaea, before := p.Regret[space]["pc-darts"].Mean, p.Regret[space]["gaea-pc-darts"].Mean, p.Before[space]
		c := verdict.Claim(fmt.Sprintf("own: the published curves: GAEA PC-DARTS below PC-DARTS at the end, %s",
			spaceTitle(space)), figure2Source)
		c.Paper, c.Ours = 0, runs.Number(last(gaea)-last(base))
		c.Holds = runs.Judge(last(gaea) < last(base))
		claims = append(claims, c)
		if space != supernet.OneShot2.Name {
			c = verdict.Claim(fmt.Sprintf("[LI050] the published curves: PC-DARTS ends below the best of "+
				"Zela+ 2020, %s",
				spaceTitle(space)), figure2Source)
			c.Paper, c.Ours = 0, runs.Number(last(base)-before)
			c.Holds = runs.Judge(last(base) < before)
			claims = append(claims, c)
		}
		if last(gaea) < before {
			beaten++
		}
		worst = max(worst, 100*before)
		ends := p.Regret[space]["gaea-pc-darts"]
		spread := (last(ends.Hi) - last(ends.Lo)) / 2
		behind = max(behind, (last(gaea)-min(before, last(base)))/spread)
	}
	c := verdict.Claim("[LI051] the published curves: spaces on which GAEA PC-DARTS ends below the best of Zela+ 2020",
		figure2Source)
	claims = append(claims, verdict.Exactly(c, float64(beaten), 2, 0))
	c = verdict.Claim("[LI005] the published curves: GAEA PC-DARTS ends above the best of all methods by less than "+
		"its band, worst space, bands", figure2Source)
	c.Paper, c.Ours, c.Holds = 1, runs.Number(behind), runs.Judge(behind <= 1)
	claims = append(claims, c)
	c = verdict.Claim("[LI053] the published curves: the best of Zela+ 2020 within 1 % test error of the best "+
		"network, worst space", figure2Source)
	c.Paper, c.Ours, c.Holds = 1, runs.Number(worst), runs.Judge(worst <= 1)
	return append(claims, c)
}

func last[T any](x []T) T { return x[len(x)-1] }

// checkAppendixC2 looks at the settings and the supernets as Appendix C.2 has
// them.
func checkAppendixC2() []runs.Claim {
	const source = "Li+ 2021, Appendix C.2"
	c := verdict.Claim("[LI240] step size of EG on NAS-Bench-1Shot1", source)
	s, err := paperOneShot.settingsOn("gaea-pc-darts", supernet.OneShot1.Name)
	if err != nil {
		return []runs.Claim{verdict.NotRun(c, err.Error())}
	}
	claims := []runs.Claim{verdict.Exactly(c, s.ArchRate, 0.1, 0)}
	for _, space := range paperOneShot.Spaces {
		c := verdict.Claim(fmt.Sprintf("[LI241] operations of a cell grow with nodes, not edges: candidates in a "+
			"cell of %s",
			spaceTitle(space)), source)
		claims = append(claims, checkCandidates(c, supernet.OneShots[space]))
	}
	return claims
}

// checkCandidates counts the convolutions of a cell's candidates in a supernet:
// two for each node, whatever its edges.
func checkCandidates(c runs.Claim, space supernet.OneShot) runs.Claim {
	net, err := supernet.NewOneShot(supernet.OneShotConfig{
		Space: space, Skeleton: supernet.Skeleton{Cells: 1, Channels: 4, Image: 8, Classes: 10},
	})
	if err != nil {
		return verdict.NotRun(c, err.Error())
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
	c.Note = fmt.Sprintf("convolutions of candidates; %d nodes with two each, and %d edges in the supernet", nodes,
		edges)
	return verdict.Exactly(c, float64(convolutions), float64(2*nodes), 0)
}
