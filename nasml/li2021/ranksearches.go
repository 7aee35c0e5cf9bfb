package li2021

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"strings"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/internal/forecast"
	"github.com/nasml/lab/nasml/internal/rank"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/li2021/internal/sharing"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/search"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/trial"
	"github.com/nasml/lab/plots"
)

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
	Cost: catalog.Cost{
		Quick: "about 8 minutes on two cores; precomputed", Paper: oneShotCost.Paper,
	},
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
	f.Style = wide
	f.Row(plots.Panel{Table: t})
	f.Say("Rank correlations of the accuracy with the weights that a search leaves and the mean %s accuracy of three "+
		"trainings of 108 epochs, over %d architectures: mean over searches and its %v %% CI, on Fisher's scale.",
		splitTitles[p.Split], p.Archs, 100*p.Confidence)
	sayOneSearch(r, f)
	f.Say("%s", searchCaption(p.SearchParams, r.Groups.Trials(), p))
	sayChanges(f, r.Groups.Trials())
}

// rankEntry is the mean over searches with its interval, on Fisher's scale.
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

// sayOneSearch gives the interval of the first search, for every correlation.
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
func judgeRankSearches(r *rankSearches) []runs.Claim {
	var claims []runs.Claim
	for _, space := range r.Params.Spaces {
		claims = append(claims, judgeRows(r, "on "+spaceTitle(space), space)...)
	}
	if len(r.Params.Spaces) > 1 {
		claims = append(claims, judgeRows(r, "on all spaces together", r.Params.Spaces...)...)
	}
	return claims
}

// judgeRows judges the mean over the searches of each row on some spaces, on Fisher's scale.
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
