package li2021

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/li2021/internal/regret"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/supernet"
)

// judgeFigure2 judges the claims about the regret of nasml's searches and of the paper's curves, and the settings of
// Appendix C.2.
func judgeFigure2(r *figure2) []runs.Claim {
	var claims []runs.Claim
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
			claims = append(claims,
				deviationClaims(r.Claim, f.short()+", test regret", d, publishedBand(f), !p.reduced())...)
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
		Says(mean(gaea.publishedRegret().Mean) - mean(base.publishedRegret().Mean)).
		Noting("ours is the difference of the means over the epochs whose cell the table has; only its sign is judged").
		Family(len(r.Params.Spaces))
	if noTable(r.Part(searchPart).Trials()) {
		return c.NotRun("%s", noTable101)
	}
	x, y := pairsOf(gaea.meanRegrets(), base.meanRegrets())
	if len(x) == 0 {
		return c.NotRun("the table has no cell of a pair of searches")
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
	c := f.publishedRegret()
	for i := range c.Mean {
		band += (c.Hi[i] - c.Lo[i]) / 2 / float64(len(c.Mean))
	}
	return band
}

// deviationClaims are the mean and the largest distance from a published curve; with judge the mean must lie within the
// published band.
func deviationClaims(
	claim func(format string, args ...any) lab.Claim, what string, d deviation, tolerance float64, judge bool,
) []runs.Claim {
	claims := []runs.Claim{
		claim("own: %s: mean distance from the published curve", what).Claim,
		claim("own: %s: largest distance from the published curve", what).Claim,
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

// judgePublishedRegrets judges the paper's text by its own curves.
func judgePublishedRegrets(r *figure2) []runs.Claim {
	p := publishedOneShotCurves()
	var claims []runs.Claim
	below := func(c lab.Claim, y, bound float64) {
		c.Ours, c.Holds = runs.Number(y-bound), runs.Judge(y < bound)
		claims = append(claims, c.Says(0).Claim)
	}
	within1 := func(c lab.Claim, ours float64) {
		c.Ours, c.Holds = runs.Number(ours), runs.Judge(ours <= 1)
		claims = append(claims, c.Says(1).Claim)
	}
	beaten, worst, behind := 0, 0., math.Inf(-1)
	for _, space := range slices.Sorted(maps.Keys(p.Before)) {
		gaea, before := p.Regret[space]["gaea-pc-darts"], p.Before[space]
		ours, base := last(gaea.Mean), last(p.Regret[space]["pc-darts"].Mean)
		below(r.Claim("own: the published curves: GAEA PC-DARTS below PC-DARTS at the end, %s", spaceTitle(space)),
			ours, base)
		if space != supernet.OneShot2.Name {
			below(r.Claim("[LI050] the published curves: PC-DARTS ends below the best of Zela+ 2020, %s",
				spaceTitle(space)), base, before)
		}
		if ours < before {
			beaten++
		}
		worst = max(worst, 100*before)
		behind = max(behind, (ours-min(before, base))/((last(gaea.Hi)-last(gaea.Lo))/2))
	}
	c := r.Claim("[LI051] the published curves: spaces on which GAEA PC-DARTS ends below the best of Zela+ 2020")
	claims = append(claims, verdict.Exactly(c.Claim, float64(beaten), 2, 0))
	within1(r.Claim("[LI005] the published curves: GAEA PC-DARTS ends above the best of all methods by less than its "+
		"band, worst space, bands"), behind)
	within1(r.Claim("[LI053] the published curves: the best of Zela+ 2020 within 1 %% test error of the best network, "+
		"worst space"), worst)
	return claims
}

func last[T any](x []T) T { return x[len(x)-1] }

// judgeAppendixC2 judges the settings and the supernets against Appendix C.2.
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
	c = c.Noting("convolutions of candidates; %d nodes with two each, and %d edges in the supernet", nodes,
		edges)
	return verdict.Exactly(c.Claim, float64(convolutions), float64(2*nodes), 0)
}
