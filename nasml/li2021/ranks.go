package li2021

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/internal/forecast"
	"github.com/nasml/lab/nasml/internal/rank"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/li2021/internal/ranking"
	"github.com/nasml/lab/nasml/li2021/internal/sharing"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/search"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/trial"
	"github.com/nasml/lab/plots"
)

// RanksParams are the parameters of the rank correlations between accuracies with shared weights and after separate
// training, of 1,000 cells of NAS-Bench-101 in each of the supernets of Pourchot+ 2020.
type RanksParams struct {
	Variants    []string   `validate:"min=1,unique"` // of training and evaluation of the shared weights
	Spaces      []string   `validate:"min=1,unique"` // of cells that shared them: "full", or a part of the benchmark
	Correlation string     `validate:"oneof=kendall spearman"`
	Split       data.Split `validate:"oneof=valid test"` // whose accuracy after 108 epochs is compared
	Confidence  float64    `validate:"gt=0.5,lt=1"`      // of the intervals
	StoredOnly  bool       // show what the run store has and compute nothing
}

// RanksQuick and RanksPaper are the same: all supernets of the file take seconds, precomputed. The order is kept better
// with the architecture's own statistics of batch norm.
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

// Ranks computes the correlations that are not in the store. It returns an error if the data are missing there and in
// the data folder.
var Ranks = lab.Declare(lab.Entry[RanksParams, ranking.Trial]{
	Of: ofPaper, Name: "ranks", Kind: lab.Table, Source: "Section 1", Notebook: "ranks_weight_sharing",
	Title: "Does a supernet rank cells as their own training does? NAS-Bench-101, six ways to share weights",
	Cost:  catalog.Cost{Quick: "5 s; precomputed", Paper: "the same"},
	Quick: RanksQuick, Paper: RanksPaper,
	Code: code.Define("li2021/ranks", "li2021/internal/ranking"),
	Note: func(any) string { return "" },
	Trials: func(p RanksParams) (gs lab.Groups[ranking.Trial]) {
		for _, variant := range p.Variants {
			for _, space := range p.Spaces {
				gs.Add(variant, 1, ranking.Trial{Variant: variant, Space: space, Split: p.Split})
			}
		}
		return gs
	},
	Bench: func(context.Context, RanksParams, string) (lab.Bench[ranking.Trial], error) {
		files, err := openRanked()
		return lab.Bench[ranking.Trial]{
			Study: study.Study{StoredOnly: files.table == nil},
			Data:  func(ranking.Trial) string { return files.fingerprint },
			Label: func(t ranking.Trial) string { return t.Variant + " on " + t.Space },
			Run:   files.run,
		}, err
	},
	Draw:   drawRanks,
	Claims: judgeSupernets,
})

type ranksResult = lab.Result[RanksParams, ranking.Trial]

// rankedFiles are the two files that are correlated, or their fingerprints in the precomputed trials.
type rankedFiles struct {
	table       *opened101[*data.NASBench101] // nil: not there
	shared      *opened101[[]data.Shared101]
	fingerprint string
}

func openRanked() (rankedFiles, error) {
	known := rankedFiles{fingerprint: data.NASBench101Fingerprint + " " + data.Shared101Fingerprint}
	table, err := table101()
	if err != nil || table == nil {
		return known, err
	}
	shared, err := openShared101("")
	if errors.Is(err, data.ErrMissing) {
		return known, nil
	}
	if err != nil {
		return known, err
	}
	return rankedFiles{table, shared, table.fingerprint + " " + shared.fingerprint}, nil
}

func (f rankedFiles) run(_ context.Context, t ranking.Trial, _ uint64, _ study.Step) (trial.Result, error) {
	table, err := f.table.content()
	if err != nil {
		return trial.Result{}, err
	}
	shared, err := f.shared.content()
	if err != nil {
		return trial.Result{}, err
	}
	return t.Run(table, shared)
}

func ranksOf(r *ranksResult, variant string) map[string]*runs.Record {
	of := map[string]*runs.Record{}
	for _, g := range r.Part(variant) {
		of[g.Trial.Space] = g.Records[0]
	}
	return of
}

// drawRanks draws the table of means over seeds with Student's intervals, and gives the interval of a single supernet.
func drawRanks(r *ranksResult, f *lab.Picture) {
	p, records := r.Params, r.Groups.Records()
	t := &plots.Table{Columns: []plots.Column{{Header: "shared weights"}}, Blocks: make([]plots.Block, 1)}
	for _, space := range p.Spaces {
		t.Columns = append(t.Columns, plots.Column{Header: space, Group: "space"})
	}
	for _, variant := range p.Variants {
		row := []plots.Entry{{Text: variant}}
		for _, g := range r.Part(variant) {
			rho := slices.Concat(study.Rows(g.Records, p.Correlation)...)
			row = append(row, correlationEntry(rho, p.Confidence))
		}
		t.Blocks[0].Rows = append(t.Blocks[0].Rows, row)
	}
	f.Style = plots.ICLR
	f.Row(plots.Panel{Table: t})
	f.Say("%s's rank correlation of the accuracy with shared weights and the mean %s accuracy of "+
		"three trainings of 108 epochs: mean over supernets ± half of its %v %% CI.",
		strings.ToUpper(p.Correlation[:1])+p.Correlation[1:], splitTitles[p.Split], 100*p.Confidence)
	f.Say("%s", singleSupernet(r))
	if constant := floats.Sum(r.Groups.Values(ranking.Constant)); constant > 0 {
		f.Say("Left out: %v supernets that give all cells the same accuracy.", constant)
	}
	if slices.Contains(records, nil) {
		f.Say(noTable101Caption)
	}
}

func correlationEntry(rho []float64, confidence float64) plots.Entry {
	s, err := runs.Summarize(rho, confidence)
	if err != nil {
		return plots.Entry{Text: "not run", Grey: true}
	}
	text := fmt.Sprintf("%.3f", s.Mean)
	if s.Hi.Valid() {
		text += fmt.Sprintf(" ± %.3f", float64(s.Hi)-s.Mean)
	}
	return plots.Entry{Text: text}
}

// singleSupernet says how wide Fisher's interval of the first supernet is.
func singleSupernet(r *ranksResult) string {
	rho, pairs := r.Groups.Rows(r.Params.Correlation), r.Groups.Rows(ranking.Pairs)
	for i, n := range pairs {
		a, err := rank.Fisher(r.Params.Correlation, rho[i][0], int(n[0]), r.Confidence)
		if err == nil && a.Lo.Valid() {
			return fmt.Sprintf("A single supernet's %.3f has [%.3f, %.3f] (Fisher's z, %d pairs).", a.Estimate,
				float64(a.Lo), float64(a.Hi), a.N)
		}
	}
	return ""
}

const onRanks = "ours, on supernets of Pourchot+ 2020, trainings of Ying+ 2019; Li+ 2021, Section 1"

// judgeSupernets judges that a supernet ranks better than chance, in the space where this is least clear over its
// seeds, and that what variants with "ft_bn" do after the training of the shared weights helps.
func judgeSupernets(r *ranksResult) []runs.Claim {
	claims := study.Map(r.Params.Variants, func(variant string) runs.Claim { return judgeChance(r, variant) })
	const plain, tuned = "baseline_no_ft", "baseline_ft_bn"
	if !slices.Contains(r.Params.Variants, plain) || !slices.Contains(r.Params.Variants, tuned) {
		return claims
	}
	for _, space := range r.Params.Spaces {
		c := r.Claim("own: %s keeps the order better than %s, space %s", tuned, plain, space).From(onRanks).
			Family(len(r.Params.Spaces))
		a, b := ranksOf(r, tuned)[space], ranksOf(r, plain)[space]
		if a == nil || b == nil {
			claims = append(claims, c.NotRun("%s", noTable101))
			continue
		}
		x, y := sameSupernets(r.Params.Correlation, a, b)
		claims = append(claims, verdict.Greater(c.Claim, x, y, c.Confidence))
	}
	return claims
}

// sameSupernets are the correlations of supernets that two records have, pair by pair.
func sameSupernets(correlation string, a, b *runs.Record) (x, y []float64) {
	for i, seed := range a.Series[ranking.Seeds] {
		if j := slices.Index(b.Series[ranking.Seeds], seed); j >= 0 {
			x, y = append(x, a.Series[correlation][i]), append(y, b.Series[correlation][j])
		}
	}
	return x, y
}

func judgeChance(r *ranksResult, variant string) runs.Claim {
	p := r.Params
	c := r.Claim("own: %s ranks cells better than chance", variant).From(onRanks).Says(0).
		Family(len(p.Variants) * len(p.Spaces))
	var worst runs.Claim
	for i, g := range r.Part(variant) {
		if g.Records[0] == nil {
			return c.NotRun("%s", noTable101)
		}
		s, err := runs.Summarize(g.Records[0].Series[p.Correlation], c.Confidence)
		one := c.Of(s, err).AtLeast(0)
		if err != nil || !one.Lo.Valid() {
			return one
		}
		if one.Note = "ours is the space " + g.Trial.Space; i == 0 || one.Lo < worst.Lo {
			worst = one
		}
	}
	return worst
}

// RankSearchesParams are the parameters of the rank correlations between accuracies with the weights that a search
// leaves and after separate training.
type RankSearchesParams struct {
	OneShotParams
	Rows  []string // searches: see Figure2Params
	Archs int      `validate:"gte=10"` // of the space and in the table, that are compared in each search

	// Statistics of batch norm with shared weights are the supernet's, "running", or the architecture's, "batch".
	Statistics   []string `validate:"min=1,unique,dive,oneof=running batch"`
	Correlations []string `validate:"min=1,unique,dive,oneof=kendall spearman"` // names of rank.Correlations

	// EvaluationBatch is how many images are evaluated at once with the search's weights, at most all; 0: as in a step
	// of the search.
	EvaluationBatch int `validate:"gte=0"`

	Split data.Split `validate:"oneof=valid test"` // whose accuracy after 108 epochs is compared
}

// RankSearchesQuick has 100 architectures in each of 18 searches on the three spaces, as in Figure2Quick but of ten
// epochs.
var RankSearchesQuick = RankSearchesParams{
	OneShotParams:   lab.With(quickOneShot, func(p *OneShotParams) { p.Epochs = 10 }),
	EvaluationBatch: 250, Archs: 100,
	Rows: []string{"rsps", "gaea-pc-darts"}, Statistics: []string{sharing.Running, sharing.Batch},
	Correlations: []string{"kendall", "spearman"}, Split: data.Valid,
}

// RankSearchesPaper has the paper's searches, and RankSearchesLarge (--scale large) those of Figure2Large. They were
// not run.
var (
	RankSearchesPaper = lab.With(RankSearchesQuick, func(p *RankSearchesParams) { p.OneShotParams = paperOneShot })
	RankSearchesLarge = lab.With(RankSearchesQuick, func(p *RankSearchesParams) { p.OneShotParams = largeOneShot })
)

// RankSearches compares the weights at the end of every search with separate trainings. Without a table it shows
// precomputed results.
var RankSearches = lab.Declare(lab.Entry[RankSearchesParams, found]{
	Of: ofPaper, Name: "ranks-searches", Kind: lab.Table, Source: "Section 1", Notebook: "ranks_searches",
	Title: "Does a search's supernet rank architectures as their own training does? NAS-Bench-1Shot1",
	Cost:  catalog.Cost{Quick: "about 8 minutes on two cores; precomputed", Paper: oneShotCost.Paper},
	Quick: RankSearchesQuick, Paper: RankSearchesPaper,
	Also: []catalog.Preset[RankSearchesParams]{{Scale: catalog.Large, Params: RankSearchesLarge}},
	Code: code.Define("li2021/ranks-searches", "li2021/internal/sharing"), Note: noteOfSearches,
	Rules: func(p RankSearchesParams, c *study.Checks) {
		p.oneShotRules(p.Rows, c)
		c.Expect(p.Folder == "", "Folder is %q: these searches are on images of Data", p.Folder)
	},
	Compute: computeRankSearches, Draw: drawRankSearches, Claims: judgeRankSearches,
})

type rankSearches = lab.Result[RankSearchesParams, found]

func computeRankSearches(ctx context.Context, r *rankSearches) error {
	p := r.Params
	table, fingerprint, err := oneShotTable(p.Spaces)
	if err != nil {
		return err
	}
	images, err := data.View{Name: p.Data, Split: data.Train, First: p.Examples}.Open(ctx)
	if err != nil {
		return err
	}
	if r.Groups, err = p.plan(p.rowsOn(p.Rows)); err != nil {
		return err
	}
	b := p.bench("", p.loaded(images.Facts, images.Images), func(
		ctx context.Context, f found, r *search.Runner, seed uint64, o search.Options,
	) (trial.Result, error) {
		content, err := table.content()
		if err != nil {
			return trial.Result{}, err
		}
		return p.trial(f).Run(ctx, r, f.blocks, content, seed, o)
	})
	device := b.Device
	b.Study = r.Study()
	b.Device, b.StoredOnly = device, b.StoredOnly || table == nil
	b.Amount = lab.Amount(func(t sharing.Trial) float64 {
		return p.withComparison(forecast.Search(t.Search.Settings, images.Len), t.Search.Settings, images.Len).Seconds
	})
	b.Key = func(f found) any { return p.trial(f) }
	b.Data = func(found) string { return images.Fingerprint + " " + fingerprint }
	cost := func(f found) forecast.Cost { return p.withComparison(f.cost(), f.settings, images.Len) }
	b.Seconds, b.Cost = func(f found) float64 { return cost(f).Seconds }, forecast.Title(cost)
	return runSearches(ctx, b, r.Groups, images.Len)
}

func (p RankSearchesParams) trial(f found) sharing.Trial {
	return sharing.Trial{Search: f.key, Space: f.oneShot, Archs: p.Archs, Batch: p.EvaluationBatch}
}

func (p RankSearchesParams) withComparison(cost forecast.Cost, s search.Settings, images int) forecast.Cost {
	if cost.Seconds > 0 { // nothing is known of a GPU
		judged := 2 * p.Archs * (images / 2) // by both statistics
		plan, _ := s.Plan(10)                // it was checked
		cost.Seconds += plan.ForecastEvaluations(judged, cmp.Or(p.EvaluationBatch, s.Batch)).Wall(runtime.NumCPU())
	}
	return cost
}

// rankCorrelations are those of a row's searches on some spaces, by space and seed; searches that do not rank have
// none.
func rankCorrelations(r *rankSearches, search, name, statistics string, spaces ...string) (all []float64) {
	for _, space := range spaces {
		f, _ := rowIn(r.Groups.Trials(), oneShotRow(search, space))
		for _, record := range f.finished() {
			if x, ok := record.Values[sharing.Value(name, statistics, r.Params.Split)]; ok {
				all = append(all, x)
			}
		}
	}
	return all
}

var splitTitles = map[data.Split]string{data.Valid: "validation", data.Test: "test"}

var correlationTitles = map[string]string{"kendall": "Kendall's τ", "spearman": "Spearman's ρ"}

// drawRankSearches is the table of means over seeds with intervals, and the interval of a single search below it.
func drawRankSearches(r *rankSearches, f *lab.Picture) {
	p := r.Params
	t := &plots.Table{Columns: []plots.Column{{Header: "weights of"}, {Header: "batch norm by"}}}
	for _, space := range p.Spaces {
		for _, name := range p.Correlations {
			t.Columns = append(t.Columns, plots.Column{Header: correlationTitles[name], Group: spaceTitle(space)})
		}
	}
	var block plots.Block
	for _, search := range p.Rows {
		for _, statistics := range p.Statistics {
			row := []plots.Entry{{Text: oneShotRow(search, p.Spaces[0]).title()}, {Text: statistics}}
			for _, space := range p.Spaces {
				for _, name := range p.Correlations {
					row = append(row, rankEntry(rankCorrelations(r, search, name, statistics, space), r.Confidence))
				}
			}
			block.Rows = append(block.Rows, row)
		}
	}
	t.Blocks = []plots.Block{block}
	f.Row(plots.Panel{Table: t})
	f.Say("Rank correlations of the accuracy with the weights that a search leaves and the mean %s accuracy of three "+
		"trainings of 108 epochs, over %d architectures: mean over searches and its %v %% CI, on Fisher's scale.",
		splitTitles[p.Split], p.Archs, 100*p.Confidence)
	sayOneSearch(r, f)
	f.Say("%s", searchCaption(p.SearchParams, r.Groups.Trials(), p))
	sayChanges(f, r.Groups.Trials())
}

func rankEntry(correlations []float64, confidence float64) plots.Entry {
	s, err := verdict.Correlations(correlations, confidence)
	if err != nil {
		return plots.Entry{Text: "not run", Grey: true}
	}
	text := fmt.Sprintf("%.2f", s.Mean)
	if s.Lo.Valid() {
		text += fmt.Sprintf(" [%.2f, %.2f]", float64(s.Lo), float64(s.Hi))
	}
	return plots.Entry{Text: strings.ReplaceAll(text, "-", "−")}
}

func sayOneSearch(r *rankSearches, f *lab.Picture) {
	p := r.Params
	var single []string
	for _, name := range p.Correlations {
		for _, row := range r.Groups.Trials() {
			x := rankCorrelations(r, row.row.search(), name, p.Statistics[0], row.row.space())
			if len(x) == 0 {
				continue
			}
			a, err := rank.Fisher(name, x[0], p.Archs, p.Confidence)
			if err == nil && a.Lo.Valid() {
				single = append(single, fmt.Sprintf("%s %.2f [%.2f, %.2f]", correlationTitles[name], a.Estimate,
					float64(a.Lo), float64(a.Hi)))
			}
			break
		}
	}
	if len(single) > 0 {
		f.Say("A single search's, for instance: %s.", strings.Join(single, ", "))
	}
}

// judgeRankSearches judges that a supernet ranks better than chance on every space and, if there are several, on all
// together. The latter was added after searches by two seeds had left the spaces inconclusive.
func judgeRankSearches(r *rankSearches) (claims []runs.Claim) {
	for _, space := range r.Params.Spaces {
		claims = append(claims, judgeRows(r, "on "+spaceTitle(space), space)...)
	}
	if len(r.Params.Spaces) > 1 {
		claims = append(claims, judgeRows(r, "on all spaces together", r.Params.Spaces...)...)
	}
	return claims
}

func judgeRows(r *rankSearches, where string, spaces ...string) (claims []runs.Claim) {
	for _, search := range r.Params.Rows {
		for _, statistics := range r.Params.Statistics {
			for _, name := range r.Params.Correlations {
				c := verdict.Claim(fmt.Sprintf("own: %s %s, batch norm by %s statistics: %s is above 0",
					oneShotRow(search, spaces[0]).title(), where, statistics, correlationTitles[name]),
					"trainings of Ying+ 2019, spaces of Zela+ 2020; Li+ 2021, Section 1")
				c.Paper = 0
				x := rankCorrelations(r, search, name, statistics, spaces...)
				if len(x) == 0 {
					claims = append(claims, verdict.NotRun(c, "no search was run, or "+noTable101))
					continue
				}
				s, err := verdict.Correlations(x, r.Confidence)
				claims = append(claims, verdict.AtLeast(c, s, err, 0))
			}
		}
	}
	return claims
}
