package li2021

import (
	"context"
	"reflect"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/plots"
)

// UnclearedParams are the parameters of the effect of stale gradients (missing zero_grad): in the program behind Figure
// 2 and the middle of Figure 1 (liamcli/nasbench-1shot1@e369bd7) the architecture of GAEA moves by
//
//	∇_θ L_valid(wₜ, θₜ) + ∇_θ L_train(wₜ₋₁, θₜ) ,
//
// and after a warm-up by all training gradients of the warm-up at once. Pairs of rows differ in whether the gradient is
// cleared, without and with a warm-up. The last pair is the paper's text (cleared, no warm-up) and that program (not
// cleared, a warm-up of a fifth of the epochs, θ clamped, two validation passes).
type UnclearedParams struct {
	OneShotParams
	Lookups
	Cleared   []string // rows, see OneShotParams: one for each of Uncleared, with which it is compared
	Uncleared []string
}

// UnclearedQuick has GAEA PC-DARTS on the first space at quick scale, without and with a warm-up, and in both presets.
// The first row has the searches of Figure2Quick and two more seeds: three decided nothing about the end of a search,
// so there are five, and the first epoch that moves θ, which both begin with the same weights, is judged, too.
var UnclearedQuick = UnclearedParams{
	OneShotParams: lab.With(quickOneShot, func(p *OneShotParams) { p.Spaces, p.Seeds = p.Spaces[:1], 5 }),
	Lookups:       codeLookups,
	Cleared:       []string{"gaea-pc-darts/cleared", "gaea-pc-darts/warmup", "gaea-pc-darts/as-paper"},
	Uncleared:     []string{"gaea-pc-darts/uncleared", "gaea-pc-darts/uncleared-warmup", "gaea-pc-darts/as-code"},
}

// UnclearedPaper has the paper's searches on all spaces. Only the one that Figure 2 has, on S1, was run.
var UnclearedPaper = lab.With(UnclearedQuick, func(p *UnclearedParams) { p.OneShotParams = paperOneShot })

// UnclearedLarge is --scale large: the first pair on the first space, searched as in Figure2Large, which has "cleared".
var UnclearedLarge = lab.With(UnclearedQuick, func(p *UnclearedParams) {
	p.OneShotParams = largeOneShot
	p.Spaces, p.Cleared, p.Uncleared = p.Spaces[:1], p.Cleared[:1], p.Uncleared[:1]
})

// Uncleared searches both ways and looks up what is found.
var Uncleared = lab.Declare(lab.Entry[UnclearedParams, found]{
	Of: ofPaper, Name: "uncleared", Kind: lab.Figure, Source: "Section 4.3 and Figures 1 and 2",
	Title:    "GAEA on NAS-Bench-1Shot1: what a training gradient changes that nobody clears",
	Notebook: "uncleared_gradients",
	Cost: catalog.Cost{
		Quick: "about 12 minutes on two cores; the project ships the searches of the preset",
		Paper: oneShotCost.Paper,
	},
	Quick: UnclearedQuick, Paper: UnclearedPaper,
	Also: []catalog.Preset[UnclearedParams]{{Scale: catalog.Large, Params: UnclearedLarge}},
	Note: noteOfSearches,
	Rules: func(p UnclearedParams, c *study.Checks) {
		p.oneShotRules(p.rows(), c)
		p.lookupRules(p.Spaces, c)
		c.Expect(len(p.Cleared) == len(p.Uncleared),
			"Cleared and Uncleared must have as many rows, got %d and %d", len(p.Cleared), len(p.Uncleared))
	},
	Compute: func(ctx context.Context, r *uncleared) error {
		gs, err := r.Params.run(ctx, "li2021/uncleared", r.Params.rowsOn(r.Params.rows()))
		if err != nil {
			return err
		}
		err = r.Params.lookUp(ctx, gs, r.Params.StoredOnly)
		r.Groups = withLookups(gs)
		return err
	},
	Draw: drawUncleared, Claims: judgeUncleared,
})

type uncleared = lab.Result[UnclearedParams, found]

func (p UnclearedParams) rows() []string { return append(slices.Clone(p.Cleared), p.Uncleared...) }

// drawUncleared draws a row of panels for every pair of searches on every space: the entropies of operations and of
// inputs, and the regrets, without intervals, which would cover all of the panel.
func drawUncleared(r *uncleared, f *lab.Picture) {
	p, all := r.Params, r.Part(searchPart).Trials()
	two := Figure2Params{OneShotParams: p.OneShotParams, Lookups: p.Lookups, Band: "interval"}
	for _, pair := range unclearedPairs(r) {
		space, rows := pair[0].oneShot.Name, []string{pair[0].row.search(), pair[1].row.search()}
		row := []plots.Panel{
			partPanel(pair[:], "operations", r.Confidence), partPanel(pair[:], "inputs", r.Confidence),
			two.panel(all, space, rows),
		}
		row[0].Series = append(row[0].Series, pair[1].paperEntropy(pair[1].settings.Epochs)...)
		for i := range row[2].Series {
			row[2].Series[i].Lo, row[2].Series[i].Hi = nil, nil
		}
		shortenEntries(row)
		f.Row(row...)
	}
	f.Say("GAEA PC-DARTS, mean over seeds: each row compares a search that clears the gradient with one that does "+
		"not; entropies, %s.", r.Interval("band", p.Seeds, "seed"))
	f.Say("%s", searchCaption(p.SearchParams, all, p))
}

// shortenEntries leaves what all searches share out of the legend: "GAEA PC-DARTS (as the paper)" is "as the paper".
func shortenEntries(row []plots.Panel) {
	for _, panel := range row {
		for i, s := range panel.Series {
			if variant, ok := strings.CutPrefix(s.Label, "GAEA PC-DARTS ("); ok {
				panel.Series[i].Entry = strings.TrimSuffix(variant, ")")
			}
		}
	}
}

// judgeUncleared judges, seed by seed, the differences in the final entropies of operations, inputs and output, in the
// entropy lost by the first epoch that moves θ, and in the mean regret. The paper makes no such claim.
func judgeUncleared(r *uncleared) (claims []runs.Claim) {
	var alike [][2]found
	for _, pair := range unclearedPairs(r) {
		for _, part := range oneShotParts {
			claims = append(claims, judgeLastEntropy(r, pair[0], pair[1], part))
		}
		if !r.Params.reduced() {
			claims = slices.Concat(claims, pair[0].entropyClaims(r.Claim, true), pair[1].entropyClaims(r.Claim, true))
		}
		claims = append(claims, judgeMeanRegret(r, pair[0], pair[1]))
		if differInTheGradient(pair) {
			alike = append(alike, pair)
		}
	}
	for _, pair := range alike {
		for _, part := range oneShotParts {
			claims = append(claims, judgeFirstEpoch(r, pair[0], pair[1], part, len(alike)))
		}
	}
	return claims
}

func unclearedPairs(r *uncleared) (pairs [][2]found) {
	all := r.Part(searchPart).Trials()
	for _, space := range r.Params.Spaces {
		for i, name := range r.Params.Uncleared {
			base, _ := rowIn(all, oneShotRow(r.Params.Cleared[i], space))
			f, _ := rowIn(all, oneShotRow(name, space))
			pairs = append(pairs, [2]found{base, f})
		}
	}
	return pairs
}

// differInTheGradient reports whether a pair differs in nothing else, so that searches of one seed have the same
// weights when θ begins to move.
func differInTheGradient(pair [2]found) bool {
	same := pair[1].settings
	same.Bilevel.Uncleared = pair[0].settings.Bilevel.Uncleared
	return reflect.DeepEqual(same, pair[0].settings)
}

const onUncleared = "ours, on liamcli/nasbench-1shot1@e369bd7, which Li+ 2021, Section 4.3 and Figures 1 and 2 are from"

// judgeFirstEpoch judges the factor by which more entropy is lost in the first epoch that moves θ, for one of a number
// of pairs. A stale gradient doubles the first step, or more after a warm-up. From uniform θ the lost entropy grows
// with the square of the step, so factors are averaged on a log scale (chosen after a trial of ten epochs, whose
// differences were skew).
func judgeFirstEpoch(r *uncleared, base, f found, part string, pairs int) runs.Claim {
	c := r.Claim("own: %s: more entropy of %s is lost in the first epoch that moves θ, factor, %s",
		spaceTitle(base.row.space()), part, f.row.title()).From(onUncleared).Says(1).Family(pairs).
		Noting("ours is what is lost in parts of what %s loses, over seeds; both begin that epoch alike",
			base.row.title())
	a, b := f.lostFirst(part), base.lostFirst(part)
	return r.Params.judged(c.Claim, a, b, func(runs.Claim) runs.Claim {
		ratios := make([]float64, len(a))
		for i := range a {
			ratios[i] = a[i] / b[i]
		}
		return c.Of(verdict.Ratios(ratios, c.Confidence)).Above(1)
	})
}

// lostFirst is the entropy of a part of θ lost in the first epoch after the warm-up, for each finished search.
func (f found) lostFirst(part string) []float64 {
	warmup := f.settings.Bilevel.Warmup
	lost, after := f.entropyAfter(warmup, part), f.entropyAfter(warmup+1, part)
	for i := range lost {
		lost[i] -= after[i]
	}
	return lost
}

func (f found) entropyAfter(epoch int, part string) []float64 {
	return study.Map(f.finished(), func(r *runs.Record) float64 {
		x := f.entropyOf(r, part)
		return x[min(epoch, len(x)-1)]
	})
}

func judgeLastEntropy(r *uncleared, base, f found, part string) runs.Claim {
	c := r.Claim("own: %s: entropy of %s at the end is lower, %s", spaceTitle(base.row.space()), part, f.row.title()).
		From(onUncleared).Says(0).Noting("ours is the difference from %s over seeds, nats", base.row.title())
	end := f.settings.Epochs
	return r.Params.below(c.Family(r.Params.pairs()), f.entropyAfter(end, part), base.entropyAfter(end, part))
}

func judgeMeanRegret(r *uncleared, base, f found) runs.Claim {
	c := r.Claim("own: %s: mean regret is higher, %s", spaceTitle(base.row.space()), f.row.title()).
		From(onUncleared).Says(0).Family(r.Params.pairs()).
		Noting("ours is the difference from %s over seeds, of the means over the epochs whose cell the table has",
			base.row.title())
	x, y := pairsOf(f.meanRegrets(), base.meanRegrets())
	if len(x) == 0 {
		return c.NotRun("no pair of searches has a cell in a table that is there")
	}
	return verdict.Greater(c.Claim, x, y, c.Confidence)
}

// pairs is the number of pairs of searches, each of which gets every question.
func (p UnclearedParams) pairs() int { return len(p.Spaces) * len(p.Uncleared) }
