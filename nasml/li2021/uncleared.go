package li2021

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/verdict"
	"github.com/nasml/lab/plots"
)

// UnclearedParams are the parameters of what a gradient changes that nobody
// clears: in the program behind Figure 2 and the middle of Figure 1
// (liamcli/nasbench-1shot1@e369bd7) the architecture of GAEA moves by
//
//	∇_θ L_valid(wₜ, θₜ) + ∇_θ L_train(wₜ₋₁, θₜ) ,
//
// because the training pass leaves its gradient behind, and after a warm-up by all
// training gradients of the warm-up at once. Rows are the same method with the
// gradient cleared and not, of the same warm-up, and as the paper's text and as
// that program have it altogether: the first clears, and has no warm-up; the second
// does not, after a warm-up of a fifth of the epochs, clamps θ, and makes its
// validation pass twice.
type UnclearedParams struct {
	OneShotParams
	Lookups
	Cleared   []string // rows, see OneShotParams: one for each of Uncleared, with which it is compared
	Uncleared []string
}

// UnclearedQuick has GAEA PC-DARTS on the first space at quick scale, without and
// with a warm-up, and in both presets; the searches of its first row, which are
// those of the paper's text, are those of Figure2Quick and two more seeds. Three seeds
// decided nothing about the end of a search, where two that part early are as far
// apart as two seeds. So five are taken, and the first epoch that moves θ is judged,
// too: both ways begin it with the same weights.
var UnclearedQuick = UnclearedParams{
	OneShotParams: func() OneShotParams {
		p := quickOneShot
		p.Spaces, p.Seeds = p.Spaces[:1], 5
		return p
	}(),
	Lookups:   codeLookups,
	Cleared:   []string{"gaea-pc-darts/cleared", "gaea-pc-darts/warmup", "gaea-pc-darts/as-paper"},
	Uncleared: []string{"gaea-pc-darts/uncleared", "gaea-pc-darts/uncleared-warmup", "gaea-pc-darts/as-code"},
}

// UnclearedPaper has the paper's searches on all spaces. It was not run.
var UnclearedPaper = UnclearedParams{
	OneShotParams: paperOneShot, Lookups: codeLookups, Cleared: UnclearedQuick.Cleared,
	Uncleared: UnclearedQuick.Uncleared,
}

// UnclearedLarge is --scale large and has all rows on the first space as Figure2Large
// searches. It was not run.
var UnclearedLarge = func() UnclearedParams {
	p := UnclearedQuick
	p.OneShotParams = largeOneShot
	p.Spaces = p.Spaces[:1]
	return p
}()

const (
	unclearedID     = "li2021/uncleared"
	unclearedTitle  = "GAEA on NAS-Bench-1Shot1: what a training gradient changes that nobody clears"
	unclearedSource = "liamcli/nasbench-1shot1@e369bd7, which Li+ 2021, Section 4.3 and Figures 1 and 2 are from"
)

func init() {
	catalog.Register(catalog.Entry{
		ID: unclearedID, Paper: paper, Title: unclearedTitle, Kind: "figure",
		Notebook: "notebooks/li2021/uncleared_gradients.ipynb",
		Cost: catalog.Cost{
			Quick: "about 12 minutes on two cores; the project ships the searches of the preset",
			Paper: oneShotCost.Paper,
		},
	}, UnclearedQuick, UnclearedPaper, Uncleared,
		catalog.Preset[UnclearedParams]{Scale: catalog.Large, Params: UnclearedLarge})
}

// UnclearedResult holds the searches of both ways.
type UnclearedResult struct {
	Params UnclearedParams
	Scale  string // "quick", "paper" or empty for own parameters
	all    []oneShotFound
}

// Uncleared runs what the run store lacks of the searches and looks them up.
// Cancelling ctx ends it after the step under way, with finished searches stored
// and the one under way at its checkpoint. It has Figure2's errors.
func Uncleared(ctx context.Context, p UnclearedParams) (*UnclearedResult, error) {
	var c study.Checks
	c.Limits(p)
	p.lookupRules(p.Spaces, &c)
	c.Expect(len(p.Cleared) == len(p.Uncleared), "Cleared has %d rows and Uncleared %d, want one of each to compare",
		len(p.Cleared), len(p.Uncleared))
	if err := c.Err("uncleared gradients"); err != nil {
		return nil, err
	}
	all, err := p.runOneShot(ctx, unclearedID, p.rows())
	if err != nil {
		return nil, err
	}
	if err := p.lookUp(ctx, all, p.StoredOnly); err != nil {
		return nil, err
	}
	return &UnclearedResult{p, runs.Scale(ctx), all}, nil
}

func (p UnclearedParams) rows() []string { return append(slices.Clone(p.Cleared), p.Uncleared...) }

// Records are the keys of the searches and of their look-ups.
func (r *UnclearedResult) Records() []string { return oneShotKeys(r.all) }

// Figure draws entropies of operations and of inputs, and regrets: a row of panels
// a space.
func (r *UnclearedResult) Figure() plots.Figure {
	var panels [][]plots.Panel
	for _, space := range r.Params.Spaces {
		row := []plots.Panel{r.entropies("operations", space), r.entropies("inputs", space)}
		panels = append(panels, append(row, r.regrets(space)))
	}
	shortenEntries(panels)
	return plots.Figure{
		Name: "li2021-uncleared", Style: wide, Panels: panels,
		Caption: "GAEA PC-DARTS. " + oneShotCaption(r.Params.OneShotParams, r.all, r.Params) +
			" Bands of entropies: interval of the mean over seeds; regrets without.",
		Meta: study.Meta(unclearedTitle, r.Scale, r.Params),
	}
}

// shortenEntries leaves out of the legend what all searches have in common, which
// the caption says: "GAEA PC-DARTS (as the paper)" is "as the paper".
func shortenEntries(panels [][]plots.Panel) {
	for _, row := range panels {
		for _, panel := range row {
			for i, s := range panel.Series {
				if variant, ok := strings.CutPrefix(s.Label, "GAEA PC-DARTS ("); ok {
					panel.Series[i].Entry = strings.TrimSuffix(variant, ")")
				}
			}
		}
	}
}

func (r *UnclearedResult) entropies(part, space string) plots.Panel {
	panel := plots.Panel{
		Title: spaceTitle(space) + ", " + part, X: plots.Axis{Label: "epochs"}, Y: plots.Axis{Label: "entropy (nats)"},
	}
	for _, name := range r.Params.rows() {
		f, _ := findOneShot(r.all, space, name)
		x, means := f.entropies(part, r.Params.Confidence)
		panel.Series = append(panel.Series, plots.Band(f.row.title(), x, means))
	}
	return panel
}

// regrets are drawn as Figure 2 does, without intervals: those of six methods by few
// seeds cover all of the panel.
func (r *UnclearedResult) regrets(space string) plots.Panel {
	p := Figure2Params{OneShotParams: r.Params.OneShotParams, Lookups: r.Params.Lookups, Band: "interval"}
	panel := p.panel(r.all, space, r.Params.rows())
	panel.Title += ", " + string(r.Params.Split) + " regret"
	for i := range panel.Series {
		panel.Series[i].Lo, panel.Series[i].Hi = nil, nil
	}
	return panel
}

// Check says what it changes, search by search of the same seed: in the entropy of
// operations, inputs and output at the end, in what the first epoch that moves θ takes
// of it, and in the mean regret. No claim of the paper's is about it, so that what is judged is
// whether there is a difference at all.
func (r *UnclearedResult) Check() []runs.Claim {
	var claims []runs.Claim
	for _, space := range r.Params.Spaces {
		for i, name := range r.Params.Uncleared {
			base, _ := findOneShot(r.all, space, r.Params.Cleared[i])
			f, _ := findOneShot(r.all, space, name)
			for _, part := range oneShotParts {
				claims = append(claims, r.checkEntropy(base, f, part))
			}
			claims = append(claims, r.checkRegret(base, f))
		}
	}
	pairs := r.alike()
	for _, p := range pairs {
		for _, part := range oneShotParts {
			claims = append(claims, r.checkFirst(p[0], p[1], part, len(pairs)))
		}
	}
	return claims
}

// alike are the pairs of searches that differ in the gradient only, so that those of
// one seed have the same weights where θ begins to move.
func (r *UnclearedResult) alike() (pairs [][2]oneShotFound) {
	for _, space := range r.Params.Spaces {
		for i, name := range r.Params.Uncleared {
			base, _ := findOneShot(r.all, space, r.Params.Cleared[i])
			f, _ := findOneShot(r.all, space, name)
			same := f.settings
			same.Bilevel.Uncleared = base.settings.Bilevel.Uncleared
			if reflect.DeepEqual(same, base.settings) {
				pairs = append(pairs, [2]oneShotFound{base, f})
			}
		}
	}
	return pairs
}

// checkFirst judges that more entropy is lost in the first epoch that moves θ, as a
// factor, one of so many pairs. There the gradient that is left makes the step twice
// as long at first, and after a warm-up longer by all of its gradients; from uniform θ
// the entropy that is lost grows with the square of the step, which is why factors are
// averaged, on the logarithm's scale. (That scale was chosen after a trial of ten
// epochs, in which differences were skew.)
func (r *UnclearedResult) checkFirst(base, f oneShotFound, part string, pairs int) runs.Claim {
	c := verdict.Claim(fmt.Sprintf("own: %s: more entropy of %s is lost in the first epoch that moves θ, factor, %s",
		spaceTitle(base.row.space()), part, f.row.title()), unclearedSource)
	c.Paper = 1
	c.Note = "ours is what is lost in parts of what " + base.row.title() + " loses, over seeds; both begin that " +
		"epoch alike"
	a, b := f.lostFirst(part), base.lostFirst(part)
	return r.Params.judged(c, a, b, func(c runs.Claim) runs.Claim {
		ratios := make([]float64, len(a))
		for i := range a {
			ratios[i] = a[i] / b[i]
		}
		s, err := verdict.Ratios(ratios, r.Params.among(pairs).Confidence)
		return verdict.Above(c, s, err, 1)
	})
}

// lostFirst is the entropy of a part of θ that the first epoch after the warm-up
// takes, of each search that ran.
func (f oneShotFound) lostFirst(part string) []float64 {
	warmup := f.settings.Bilevel.Warmup
	lost, after := f.entropyAfter(warmup, part), f.entropyAfter(warmup+1, part)
	for i := range lost {
		lost[i] -= after[i]
	}
	return lost
}

// entropyAfter is the entropy of a part of θ after an epoch, of each search that ran.
func (f oneShotFound) entropyAfter(epoch int, part string) (out []float64) {
	for _, record := range f.ran() {
		x := f.entropyOf(record, part)
		out = append(out, x[min(epoch, len(x)-1)])
	}
	return out
}

// cases are those of each claim: a search of every space.
func (r *UnclearedResult) cases() int { return len(r.Params.Spaces) * len(r.Params.Uncleared) }

// checkEntropy judges that the entropy at the end is another.
func (r *UnclearedResult) checkEntropy(base, f oneShotFound, part string) runs.Claim {
	c := verdict.Claim(fmt.Sprintf("own: %s: entropy of %s at the end is lower, %s", spaceTitle(base.row.space()), part,
		f.row.title()), unclearedSource)
	c.Paper = 0
	c.Note = "ours is the difference from " + base.row.title() + " over seeds, nats"
	end := f.settings.Epochs
	return r.Params.among(r.cases()).below(c, f.entropyAfter(end, part), base.entropyAfter(end, part))
}

// checkRegret judges that the regret is another.
func (r *UnclearedResult) checkRegret(base, f oneShotFound) runs.Claim {
	c := verdict.Claim(fmt.Sprintf("own: %s: mean regret is higher, %s", spaceTitle(base.row.space()), f.row.title()),
		unclearedSource)
	c.Paper = 0
	c.Note = "ours is the difference from " + base.row.title() + " over seeds, of the means over the epochs whose " +
		"cell the table has"
	x, y := pairsOf(f.meanRegrets(), base.meanRegrets())
	if len(x) == 0 {
		return verdict.NotRun(c, "no pair of searches has a cell in a table that is there")
	}
	return verdict.Greater(c, x, y, r.Params.among(r.cases()).Confidence)
}
