package li2021

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/li2021/internal/ranking"
	"github.com/nasml/lab/nasml/rank"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/trial"
	"github.com/nasml/lab/nasml/verdict"
	"github.com/nasml/lab/plots"
)

// RanksParams are the parameters of the rank correlations between accuracies with
// shared weights and after a training of one's own, of 1,000 cells of
// NAS-Bench-101 in each of the supernets of Pourchot+ 2020.
type RanksParams struct {
	Variants    []string   // of training and evaluation of the shared weights
	Spaces      []string   // of cells that shared them: "full", or a part of the benchmark
	Correlation string     // a name of rank.Correlations
	Split       data.Split // whose accuracy after 108 epochs is compared: "valid" or "test"
	Confidence  float64    // of the intervals
	StoredOnly  bool       // show what the run store has and compute nothing
}

// RanksQuick and RanksPaper are the same: all supernets of the file take seconds.
// Its trials are shipped. What comes out: with statistics of batch norm of the
// architecture's own the order is kept better.
var (
	RanksQuick = RanksParams{
		Variants: []string{
			"baseline_no_ft", "baseline_ft_bn", "avg-3_ft_bn", "pro-rata_ft_bn", "single-k_ft_bn", "s-k+p-r_ft_bn",
		},
		Spaces:      []string{"full", "full_0", "full_1", "1", "2", "3", "4"},
		Correlation: "kendall", Split: data.Valid, Confidence: 0.95,
	}
	RanksPaper = RanksQuick
)

const (
	ranksID     = "li2021/ranks"
	ranksTitle  = "Does a supernet rank cells as their own training does? NAS-Bench-101, six ways to share weights"
	ranksSource = "supernets of Pourchot+ 2020, trainings of Ying+ 2019; Li+ 2021, Section 1"
)

var ranksStudy = study.Study{
	ID: ranksID, Title: ranksTitle, Shipped: shippedRecords, Code: code.Define(ranksID, "li2021/internal/ranking"),
}

func init() {
	catalog.Register(catalog.Entry{
		ID: ranksID, Paper: paper, Title: ranksTitle, Kind: "table",
		Notebook: "notebooks/li2021/ranks_weight_sharing.ipynb",
		Cost:     catalog.Cost{Quick: "5 s; the project ships its trials", Paper: "the same"},
	}, RanksQuick, RanksPaper, Ranks)
}

// RanksResult holds the correlations of each supernet.
type RanksResult struct {
	Params  RanksParams
	Scale   string         // "quick", "paper" or empty for own parameters
	records []*runs.Record // by variant, then space; nil where there is none
}

// Ranks correlates what the run store lacks. It is an error where a parameter
// makes no sense, and where neither the store nor the folder of the data sets
// has what is asked for.
func Ranks(ctx context.Context, p RanksParams) (*RanksResult, error) {
	var c study.Checks
	study.Distinct(&c, "Variants", p.Variants, 1)
	study.Distinct(&c, "Spaces", p.Spaces, 1)
	c.OneOf("Correlation", p.Correlation, "kendall", "spearman")
	c.OneOf("Split", string(p.Split), string(data.Valid), string(data.Test))
	c.Confidence(p.Confidence)
	if err := c.Err("the rank correlations"); err != nil {
		return nil, err
	}
	files, err := openRanked()
	if err != nil {
		return nil, err
	}
	var cases []study.Case
	for _, variant := range p.Variants {
		for _, space := range p.Spaces {
			t := ranking.Trial{Variant: variant, Space: space, Split: p.Split}
			cases = append(cases, study.Case{
				Params: t, Data: files.fingerprint, Label: variant + " on " + space,
				Run: func(context.Context, study.Step) (trial.Result, error) {
					table, err := files.table.Content()
					if err != nil {
						return trial.Result{}, err
					}
					shared, err := files.shared.Content()
					if err != nil {
						return trial.Result{}, err
					}
					return t.Run(table, shared)
				},
			})
		}
	}
	s := ranksStudy
	s.StoredOnly = p.StoredOnly || files.table == nil
	records, err := s.Run(ctx, cases)
	return &RanksResult{p, runs.Scale(ctx), records}, err
}

// rankedFiles are the two files that are correlated, or what the project's trials
// know of them.
type rankedFiles struct {
	table       *opened101 // nil: not there
	shared      *data.Opened101[[]data.Shared101]
	fingerprint string
}

func openRanked() (rankedFiles, error) {
	known := rankedFiles{fingerprint: data.NASBench101Fingerprint + " " + data.Shared101Fingerprint}
	table, err := table101()
	if err != nil || table == nil {
		return known, err
	}
	shared, err := data.OpenShared101("")
	if errors.Is(err, data.ErrMissing) {
		return known, nil
	}
	if err != nil {
		return known, err
	}
	return rankedFiles{table, shared, table.Fingerprint + " " + shared.Fingerprint}, nil
}

// Records are the keys of the trials.
func (r *RanksResult) Records() []string { return study.Keys(r.records) }

// of is the record of a variant and space, nil where there is none.
func (r *RanksResult) of(variant, space string) *runs.Record {
	i := slices.Index(r.Params.Variants, variant)*len(r.Params.Spaces) + slices.Index(r.Params.Spaces, space)
	return r.records[i]
}

// Figure is the table of means over seeds with Student's intervals, and below it
// what one supernet alone leaves open.
func (r *RanksResult) Figure() plots.Figure {
	t := &plots.Table{Columns: []plots.Column{{Header: "shared weights"}}}
	for _, space := range r.Params.Spaces {
		t.Columns = append(t.Columns, plots.Column{Header: space, Group: "space"})
	}
	var block plots.Block
	for _, variant := range r.Params.Variants {
		row := []plots.Entry{{Text: variant}}
		for _, space := range r.Params.Spaces {
			row = append(row, r.entry(variant, space))
		}
		block.Rows = append(block.Rows, row)
	}
	t.Blocks = []plots.Block{block}
	name := strings.ToUpper(r.Params.Correlation[:1]) + r.Params.Correlation[1:]
	caption := fmt.Sprintf("%s's rank correlation of the accuracy with shared weights and the mean %s accuracy of "+
		"three trainings of 108 epochs: mean over supernets ± half of Student's interval at %v. %s",
		name, r.Params.Split, r.Params.Confidence, r.single())
	if n := r.constant(); n > 0 {
		caption += fmt.Sprintf(" Left out: %v supernets that give all cells the same accuracy.", n)
	}
	if len(r.Records()) < len(r.records) {
		caption += " " + noTable101Caption
	}
	return plots.Figure{
		Name: "li2021-ranks", Style: plots.ICLR, Caption: caption, Panels: [][]plots.Panel{{{Table: t}}},
		Meta: study.Meta(ranksTitle, r.Scale, r.Params),
	}
}

func (r *RanksResult) entry(variant, space string) plots.Entry {
	record := r.of(variant, space)
	if record == nil {
		return plots.Entry{Text: "not run", Grey: true}
	}
	return correlationEntry(record.Series[r.Params.Correlation], 3, r.Params.Confidence)
}

// correlationEntry is the mean of correlations with half of its interval, in so many
// digits.
func correlationEntry(rho []float64, digits int, confidence float64) plots.Entry {
	s, err := runs.Summarize(rho, confidence)
	if err != nil {
		return plots.Entry{Text: "not run", Grey: true}
	}
	text := fmt.Sprintf("%.*f", digits, s.Mean)
	if s.Hi.Valid() {
		text += fmt.Sprintf(" ± %.*f", digits, float64(s.Hi)-s.Mean)
	}
	return plots.Entry{Text: text}
}

// single says how wide Fisher's interval of one supernet is, at the first that
// there is.
func (r *RanksResult) single() string {
	for _, record := range r.records {
		if record == nil || len(record.Series[ranking.Pairs]) == 0 {
			continue
		}
		x, n := record.Series[r.Params.Correlation], record.Series[ranking.Pairs]
		a, err := rank.Fisher(r.Params.Correlation, x[0], int(n[0]), r.Params.Confidence)
		if err == nil && a.Lo.Valid() {
			return fmt.Sprintf("%s of %d pairs in one supernet, %.3f for instance, is from %.3f to %.3f.", a.Interval,
				a.N, a.Estimate, float64(a.Lo), float64(a.Hi))
		}
	}
	return ""
}

// sameSeeds are the correlations of supernets that two records have, pair by pair.
func (r *RanksResult) sameSeeds(a, b *runs.Record) (x, y []float64) {
	for i, seed := range a.Series[ranking.Seeds] {
		if j := slices.Index(b.Series[ranking.Seeds], seed); j >= 0 {
			x = append(x, a.Series[r.Params.Correlation][i])
			y = append(y, b.Series[r.Params.Correlation][j])
		}
	}
	return x, y
}

// constant counts the supernets that do not rank at all.
func (r *RanksResult) constant() (n float64) {
	for _, x := range study.Values(r.records, ranking.Constant) {
		n += x
	}
	return n
}

// Check judges what a supernet is used for: that it ranks better than a coin, in
// the space where this is least clear over its seeds, and that what variants with
// "ft_bn" do after the training of the shared weights helps.
func (r *RanksResult) Check() []runs.Claim {
	var claims []runs.Claim
	for _, variant := range r.Params.Variants {
		claims = append(claims, r.checkChance(variant))
	}
	const plain, tuned = "baseline_no_ft", "baseline_ft_bn"
	if !slices.Contains(r.Params.Variants, plain) || !slices.Contains(r.Params.Variants, tuned) {
		return claims
	}
	for _, space := range r.Params.Spaces {
		c := verdict.Claim(fmt.Sprintf("own: %s keeps the order better than %s, space %s", tuned, plain, space),
			ranksSource)
		a, b := r.of(tuned, space), r.of(plain, space)
		if a == nil || b == nil {
			claims = append(claims, verdict.NotRun(c, noTable101))
			continue
		}
		x, y := r.sameSeeds(a, b)
		claims = append(claims, verdict.Greater(c, x, y, verdict.Family(r.Params.Confidence, len(r.Params.Spaces))))
	}
	return claims
}

// checkChance is as good as the worst space, of one variant of many.
func (r *RanksResult) checkChance(variant string) runs.Claim {
	confidence := verdict.Family(r.Params.Confidence, len(r.Params.Variants)*len(r.Params.Spaces))
	c := verdict.Claim(fmt.Sprintf("own: %s ranks cells better than chance", variant), ranksSource)
	c.Paper = 0
	var worst *runs.Claim
	for _, space := range r.Params.Spaces {
		record := r.of(variant, space)
		if record == nil {
			return verdict.NotRun(c, noTable101)
		}
		s, err := runs.Summarize(record.Series[r.Params.Correlation], confidence)
		one := verdict.AtLeast(c, s, err, 0)
		if err != nil || !one.Lo.Valid() {
			return one
		}
		if one.Note = "ours is the space " + space; worst == nil || one.Lo < worst.Lo {
			worst = &one
		}
	}
	return *worst
}
