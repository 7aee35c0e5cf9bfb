package li2021

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/internal/forecast"
	"github.com/nasml/lab/nasml/li2021/internal/searching"
	"github.com/nasml/lab/nasml/li2021/internal/sharing"
	"github.com/nasml/lab/nasml/rank"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/search"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/supernet"
	"github.com/nasml/lab/nasml/trial"
	"github.com/nasml/lab/nasml/verdict"
	"github.com/nasml/lab/plots"
)

// RankSearchesParams are the parameters of the rank correlations between the
// accuracies of architectures with the weights that a search leaves and after a
// training of their own.
type RankSearchesParams struct {
	OneShotParams
	Rows         []string // searches: see Figure2Params
	Archs        int      // of the space and in the table, that are compared in each search
	Statistics   []string // of batch norm with shared weights: "running", the supernet's; "batch", the architecture's
	Correlations []string // names of rank.Correlations

	// EvaluationBatch is how many images are evaluated at once with the weights that
	// the search leaves, at most all; 0: as many as in a step of the search.
	EvaluationBatch int

	Split data.Split // whose accuracy after 108 epochs is compared: "valid" or "test"
}

// RankSearchesQuick has 100 architectures in each of 18 searches on the three
// spaces, as Figure2Quick has them but of ten epochs.
var RankSearchesQuick = RankSearchesParams{
	OneShotParams: func() OneShotParams {
		p := quickOneShot
		p.Epochs = 10
		return p
	}(),
	EvaluationBatch: 250, Archs: 100,
	Rows: []string{"rsps", "gaea-pc-darts"}, Statistics: []string{sharing.Running, sharing.Batch},
	Correlations: []string{"kendall", "spearman"}, Split: data.Valid,
}

// RankSearchesPaper has the paper's searches, and RankSearchesLarge, at --scale
// large, those of Figure2Large. They were not run.
var (
	RankSearchesPaper = RankSearchesQuick.with(paperOneShot)
	RankSearchesLarge = RankSearchesQuick.with(largeOneShot)
)

func (p RankSearchesParams) with(searches OneShotParams) RankSearchesParams {
	p.OneShotParams = searches
	return p
}

const (
	rankSearchesID     = "li2021/ranks-searches"
	rankSearchesTitle  = "Does a search's supernet rank architectures as their own training does? NAS-Bench-1Shot1"
	rankSearchesSource = "trainings of Ying+ 2019, spaces of Zela+ 2020; Li+ 2021, Section 1"
)

var rankSearchesStudy = study.Study{
	ID: rankSearchesID, Title: rankSearchesTitle, Shipped: shippedRecords,
	Code: code.Define(rankSearchesID, "li2021/internal/sharing"),
}

func init() {
	catalog.Register(catalog.Entry{
		ID: rankSearchesID, Paper: paper, Title: rankSearchesTitle, Kind: "table",
		Notebook: "notebooks/li2021/ranks_searches.ipynb",
		Cost: catalog.Cost{
			Quick: "about 8 minutes on two cores; the project ships its trials", Paper: oneShotCost.Paper,
		},
	}, RankSearchesQuick, RankSearchesPaper, RankSearches,
		catalog.Preset[RankSearchesParams]{Scale: catalog.Large, Params: RankSearchesLarge})
}

// RankSearchesResult holds the searches.
type RankSearchesResult struct {
	Params RankSearchesParams
	Scale  string // "quick", "large", "paper" or empty for own parameters
	all    []oneShotFound
}

// RankSearches runs what the run store lacks of the searches, each with the
// comparison at its end. It has Figure2's errors. Without a table it shows what
// the project ships.
func RankSearches(ctx context.Context, p RankSearchesParams) (*RankSearchesResult, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	table, fingerprint, err := oneShotTable(p.Spaces)
	if err != nil {
		return nil, err
	}
	if p.Folder != "" {
		return nil, catalog.Usagef("Folder is %q: these searches are on images of Data", p.Folder)
	}
	images, err := data.View{Name: p.Data, Split: data.Train, First: p.Examples}.Open(ctx)
	if err != nil {
		return nil, err
	}
	all, cases, err := p.searchCases(images.Facts, fingerprint)
	if err != nil {
		return nil, err
	}
	s := rankSearchesStudy
	s.StoredOnly = p.StoredOnly || table == nil
	run := func(
		ctx context.Context, f *found, r search.Runner, seed uint64, o search.Options,
	) (trial.Result, error) {
		content, err := table.content()
		if err != nil {
			return trial.Result{}, err
		}
		return p.trial(searching.Trial{}, f.row.space()).Run(ctx, r, f.blocks, content, seed, o)
	}
	records, err := p.searchesOf(ctx, s, run, all, cases, images.Len, inMemory(images.Images, p.Examples > 0))
	if err != nil {
		return nil, err
	}
	out := &RankSearchesResult{Params: p, Scale: runs.Scale(ctx)}
	for i, row := range rowsOf(records, p.Seeds) {
		f := all[i]
		f.records = row
		out.all = append(out.all, oneShotFound{f, f.row.search(), supernet.OneShots[f.row.space()], nil})
	}
	return out, nil
}

// searchCases are the searches of all rows on all spaces, a case a seed.
func (p RankSearchesParams) searchCases(
	images data.Facts, table string,
) (all []found, cases []study.Case, err error) {
	for _, space := range p.Spaces {
		for _, name := range p.Rows {
			f, err := p.find(oneShotRow(name, space))
			if err != nil {
				return nil, nil, err
			}
			of, err := p.cases(f, images)
			if err != nil {
				return nil, nil, err
			}
			seconds := sync.OnceValue(func() float64 { return p.forecastOf(f.settings, images.Len) })
			for i := range of {
				of[i].Params = p.trial(of[i].Params.(searching.Trial), space)
				of[i].Forecast = seconds
				of[i].Data += " " + table
			}
			all, cases = append(all, f), append(cases, of...)
		}
	}
	return all, cases, nil
}

// trial is a search on a space with the comparison at its end.
func (p RankSearchesParams) trial(s searching.Trial, space string) sharing.Trial {
	return sharing.Trial{Search: s, Space: supernet.OneShots[space], Archs: p.Archs, Batch: p.EvaluationBatch}
}

// forecastOf is what a search with its comparison will take on this machine's
// processors, s; 0: nothing is known.
func (p RankSearchesParams) forecastOf(s search.Settings, images int) float64 {
	search := forecast.Search(s, images).Seconds
	if search == 0 { // nothing is known of a GPU
		return 0
	}
	judged := 2 * p.Archs * (images / 2) // by both statistics
	more := s.ForecastEvaluations(judged, cmp.Or(p.EvaluationBatch, s.Batch))
	return search + more.Wall(runtime.NumCPU())
}

func (p RankSearchesParams) check() error {
	if err := p.checkOneShot(p.Rows); err != nil {
		return err
	}
	var c study.Checks
	c.AtLeast("Archs", p.Archs, 10)
	c.AtLeast("EvaluationBatch", p.EvaluationBatch, 0)
	checkChoice(&c, "Statistics", p.Statistics, sharing.Running, sharing.Batch)
	checkChoice(&c, "Correlations", p.Correlations, "kendall", "spearman")
	c.OneOf("Split", string(p.Split), string(data.Valid), string(data.Test))
	if err := c.Err("the rank correlations of searches"); err != nil {
		return err
	}
	var rows []row
	for _, space := range p.Spaces {
		for _, name := range p.Rows {
			rows = append(rows, oneShotRow(name, space))
		}
	}
	return p.OneShotParams.check(rows)
}

// Records are the keys of the searches.
func (r *RankSearchesResult) Records() []string { return oneShotKeys(r.all) }

// correlations are those of the searches that rank at all, by seed.
func (r *RankSearchesResult) correlations(f oneShotFound, name, statistics string) (all []float64) {
	for _, record := range f.ran() {
		if x, ok := record.Values[sharing.Value(name, statistics, r.Params.Split)]; ok {
			all = append(all, x)
		}
	}
	return all
}

// Figure is the table of means over seeds with intervals, and below it
// what one search alone leaves open.
func (r *RankSearchesResult) Figure() plots.Figure {
	t := &plots.Table{Columns: []plots.Column{{Header: "weights of"}, {Header: "batch norm by"}}}
	for _, space := range r.Params.Spaces {
		for _, name := range r.Params.Correlations {
			t.Columns = append(t.Columns, plots.Column{Header: correlationTitles[name], Group: spaceTitle(space)})
		}
	}
	var block plots.Block
	for _, name := range r.Params.Rows {
		for _, statistics := range r.Params.Statistics {
			row := []plots.Entry{{Text: oneShotRow(name, r.Params.Spaces[0]).title()}, {Text: statistics}}
			for _, space := range r.Params.Spaces {
				f, _ := findOneShot(r.all, space, name)
				for _, correlation := range r.Params.Correlations {
					row = append(row, r.entry(f, correlation, statistics))
				}
			}
			block.Rows = append(block.Rows, row)
		}
	}
	t.Blocks = []plots.Block{block}
	caption := fmt.Sprintf("Rank correlations of the accuracy with the weights that a search leaves and the mean %s "+
		"accuracy of three trainings of 108 epochs, of %d architectures that the table has: mean over searches with "+
		"Student's interval at %v, both on Fisher's scale. %s %s", splitTitles[r.Params.Split], r.Params.Archs,
		r.Params.Confidence, r.single(), oneShotCaption(r.Params.OneShotParams, r.all, r.Params))
	return plots.Figure{
		Name: "li2021-ranks-searches", Style: wide, Caption: caption, Panels: [][]plots.Panel{{{Table: t}}},
		Meta: study.Meta(rankSearchesTitle, r.Scale, r.Params),
	}
}

var splitTitles = map[data.Split]string{data.Valid: "validation", data.Test: "test"}

var correlationTitles = map[string]string{"kendall": "Kendall's τ", "spearman": "Spearman's ρ"}

// entry is the mean over searches with its interval, on Fisher's scale.
func (r *RankSearchesResult) entry(f oneShotFound, name, statistics string) plots.Entry {
	x := r.correlations(f, name, statistics)
	s, err := verdict.Correlations(x, r.Params.Confidence)
	if err != nil {
		return plots.Entry{Text: "not run", Grey: true}
	}
	text := fmt.Sprintf("%.2f", s.Mean)
	if s.Lo.Valid() {
		text += fmt.Sprintf(" [%.2f, %.2f]", float64(s.Lo), float64(s.Hi))
	}
	return plots.Entry{Text: strings.ReplaceAll(text, "-", "−")}
}

// single says how wide the interval of one search is, of every correlation at the
// first that there is.
func (r *RankSearchesResult) single() string {
	var texts []string
	for _, name := range r.Params.Correlations {
		for _, f := range r.all {
			x := r.correlations(f, name, r.Params.Statistics[0])
			if len(x) == 0 {
				continue
			}
			a, err := rank.Fisher(name, x[0], r.Params.Archs, r.Params.Confidence)
			if err == nil && a.Lo.Valid() {
				texts = append(texts, fmt.Sprintf(
					"%s of %d pairs in one search, %s of %.2f for instance, is from %.2f to %.2f.",
					a.Interval, a.N, correlationTitles[name], a.Estimate, float64(a.Lo), float64(a.Hi)))
			}
			break
		}
	}
	return strings.Join(texts, " ")
}

// Check judges what a supernet is used for: that it ranks better than a coin, on
// every space, and on all of them together, where there are more searches. The
// latter was added after searches by two seeds had left the spaces inconclusive.
func (r *RankSearchesResult) Check() []runs.Claim {
	var claims []runs.Claim
	for _, space := range r.Params.Spaces {
		claims = append(claims, r.checkRows(" on "+spaceTitle(space), space)...)
	}
	if len(r.Params.Spaces) > 1 {
		claims = append(claims, r.checkRows(" on all spaces together", r.Params.Spaces...)...)
	}
	return claims
}

// checkRows judges each row by its searches on some spaces.
func (r *RankSearchesResult) checkRows(where string, spaces ...string) (claims []runs.Claim) {
	for _, row := range r.Params.Rows {
		for _, statistics := range r.Params.Statistics {
			for _, name := range r.Params.Correlations {
				var x []float64
				for _, space := range spaces {
					f, _ := findOneShot(r.all, space, row)
					x = append(x, r.correlations(f, name, statistics)...)
				}
				c := verdict.Claim(fmt.Sprintf("own: %s%s, batch norm by %s statistics: %s is above 0",
					oneShotRow(row, spaces[0]).title(), where, statistics, correlationTitles[name]), rankSearchesSource)
				claims = append(claims, r.checkAbove(c, x))
			}
		}
	}
	return claims
}

// checkAbove judges the mean over searches, on Fisher's scale.
func (r *RankSearchesResult) checkAbove(c runs.Claim, correlations []float64) runs.Claim {
	c.Paper = 0
	if len(correlations) == 0 {
		return verdict.NotRun(c, "no search was run, or "+noTable101)
	}
	s, err := verdict.Correlations(correlations, r.Params.Confidence)
	return verdict.AtLeast(c, s, err, 0)
}
