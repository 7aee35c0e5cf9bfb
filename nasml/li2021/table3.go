package li2021

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/internal/rank"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/supernet"
	"github.com/nasml/lab/nasml/training"
	"github.com/nasml/lab/nasml/trial"
	"github.com/nasml/lab/plots"
)

// Table3Params are the parameters of the protocol of Appendix C.1 and its repetition, Table 3: several candidates are
// trained once, the poor ones are dropped after a few epochs, and the best is trained again from other seeds.
type Table3Params struct {
	// Candidates: Genotypes, and Random genotypes drawn uniformly from the DARTS space.
	Genotypes []string `validate:"unique"`
	Random    int      `validate:"gte=0"`

	// Searches are the first stage: rows of Figure 1 such as "gaea-pc-darts@darts", run as Search says; what they find
	// are candidates, too. With Search.StoredOnly only those in the store.
	Searches []string
	Search   SearchParams `validate:"-"`

	Sets  int `validate:"gte=1"` // of seeds, of which each goes through all of the protocol
	Short int `validate:"gte=1"` // epochs after which candidates are first compared
	Kept  int `validate:"gte=1"` // candidates that then go on

	TrainParams           // Seeds: of the best, besides the one that it was chosen by
	Data        data.Name // the images that are trained on
}

// Table3Quick is the whole protocol at a reduced scale: the cells of the three searches by GAEA PC-DARTS of Figure 1
// (left), the five published ones of Table 1 and three random ones. These searches and trainings are precomputed.
var Table3Quick = Table3Params{
	Genotypes: Table1Quick.Genotypes, Random: 3, Short: 2, Kept: 3,
	Searches: []string{"gaea-pc-darts@darts"}, Search: Figure1LeftQuick.SearchParams,
	TrainParams: quickTraining, Data: data.CIFAR10, Sets: 1,
}

// Table3Paper is the whole protocol, three times: five searches by GAEA PC-DARTS and five published cells, 20 epochs of
// 600, and ten seeds. It was not run.
var Table3Paper = lab.With(Table3Quick, func(p *Table3Params) {
	p.Random, p.Search = 0, paperSearch
	p.Search.Seeds, p.Sets = 5, 3
	p.Short, p.TrainParams = 20, paperTraining
})

// Table3Large is the whole protocol for a night on two cores: searches and trainings as in Figure1LeftLarge and
// Table1Large, with fewer published cells. It was not run.
var Table3Large = lab.With(Table3Paper, func(p *Table3Params) {
	p.Search, p.TrainParams = Figure1LeftLarge.SearchParams, Table1Large.TrainParams
	p.Genotypes = []string{"DARTS_V2", "PC_DARTS_cifar", "GAEA_PC_DARTS_cifar"}
	p.Search.Seeds, p.Sets, p.Short = 5, 1, 3
})

// Table3 runs the protocol of Appendix C.1, by each set of seeds.
var Table3 = lab.Declare(lab.Entry[Table3Params, candidate]{
	Of: ofPaper, Name: "table3", Kind: lab.Table, Source: "Table 3", Notebook: "table3_protocol",
	Title: "DARTS space, CIFAR-10: candidates after a few epochs, and the best of them again",
	Cost: catalog.Cost{
		Quick: "three searches and 14 trainings at a reduced scale: " + quickTrainingCost + "; they are shipped",
		Paper: "15 searches and 60 trainings, each of these 1.5 days on a GTX 1080 Ti (Liu+ 2019, Appendix A), " +
			"80 on two cores",
	},
	Quick: Table3Quick, Paper: Table3Paper, Settings: table3Settings, Note: noteOfSearches,
	Also:    []catalog.Preset[Table3Params]{{Scale: catalog.Large, Params: Table3Large}},
	Rules:   Table3Params.rules,
	Compute: computeTable3, Draw: drawTable3, Claims: judgeTable3,
})

// table3 has, set by set, the searches, the candidates with one training each, and the best of them again.
type table3 = lab.Result[Table3Params, candidate]

type candidate struct {
	cell
	set          int  // of seeds, from 0
	ours         bool // a search of ours has found it
	short, final float64
	kept         bool // it is among the best after the short part
	best         bool // and of these at the end
}

// rules checks that some candidates are dropped, after an epoch of the training.
func (p Table3Params) rules(c *study.Checks) {
	n := p.Random + len(p.Genotypes) + len(p.Searches)*max(0, p.Search.Seeds)
	c.Expect(n >= 2, "Genotypes, Random and Searches must give at least 2 candidates, got %d", n)
	c.Expect(p.Kept < n, "Kept must be between 1 and %d, fewer than the candidates, got %d", n-1, p.Kept)
	if len(p.Searches) > 0 {
		c.Limits(p.Search)
		p.Search.rules(p.Searches, c)
	}
	_, err := p.listed()
	c.Expect(err == nil, "%v", err)
	if s, err := p.settings("cifar-10"); err != nil {
		c.Expect(false, "%v", err)
	} else {
		c.Expect(p.Short < s.Epochs, "Short must be less than Epochs, %d, got %d", s.Epochs, p.Short)
		c.Expect(s.EvaluateEvery == 1, "EvaluateEvery must be 1, since candidates are compared after any epoch, got %d",
			s.EvaluateEvery)
	}
}

// listed are the genotypes that need no search: Genotypes, and random ones.
func (p Table3Params) listed() ([]named, error) {
	genotypes, err := parseGenotypes(p.Genotypes)
	for i := range p.Random {
		rng := trial.RNG(uint64(i), "a genotype of the DARTS space")
		genotypes = append(genotypes, named{fmt.Sprintf("random %d", i+1), supernet.DARTS.Random(rng)})
	}
	return genotypes, err
}

func computeTable3(ctx context.Context, r *table3) error {
	for set := range r.Params.Sets {
		if err := runProtocol(ctx, r, set); err != nil {
			return err
		}
	}
	return nil
}

// runProtocol runs the protocol by one set of seeds, from 0. Set s trains with the seeds from s·(Seeds + 1) on.
func runProtocol(ctx context.Context, r *table3, set int) error {
	p := r.Params
	genotypes, err := p.listed()
	if err != nil {
		return err
	}
	ours, searches, err := p.stage1(ctx, set)
	if err != nil {
		return err
	}
	r.Groups = append(r.Groups, lab.Group[candidate]{Part: searchPart, Trial: candidate{set: set}, Records: searches})
	cells, err := p.cells("cifar-10", append(genotypes, ours...))
	if err != nil {
		return err
	}
	x, err := p.inMemory(ctx, p.Data)
	if err != nil {
		return err
	}
	r.Facts[""] = x
	b, first := p.bench(p.stage(2, set), x), uint64(set*(p.Seeds+1))
	defer b.Close()
	once := lab.Groups[cell](study.Map(cells, func(c cell) lab.Group[cell] {
		return lab.Group[cell]{Seeds: 1, First: first, Trial: c}
	}))
	if err := b.Compute(ctx, once); err != nil {
		return err
	}
	candidates := lab.As("candidate", once, func(c cell) candidate { return candidate{cell: c, set: set} })
	for i := range candidates {
		candidates[i].Trial.ours = i >= len(genotypes)
	}
	storedOnly := p.StoredOnly || p.Search.StoredOnly
	if storedOnly || len(searches) == len(p.Searches)*p.Search.Seeds { // else some are run elsewhere
		p.choose(candidates)
	}
	r.Groups = append(r.Groups, candidates...)
	best := candidates.Where(func(c candidate) bool { return c.best })
	if len(best) == 0 {
		return nil
	}
	again := lab.Groups[cell]{{Seeds: p.Seeds, First: first + 1, Trial: best[0].Trial.cell}} // first chose it
	b.Title = p.stage(3, set)
	if err := b.Compute(ctx, again); err != nil {
		return err
	}
	r.Groups = append(r.Groups, lab.As("again", again, func(cell) candidate { return best[0].Trial })...)
	return nil
}

// stage1 returns the genotypes that the searches of a set found, with their records. Set s searches with the seeds from
// s·Search.Seeds on.
func (p Table3Params) stage1(ctx context.Context, set int) (genotypes []named, searches []*runs.Record, err error) {
	first := set * p.Search.Seeds
	p.Search.Seeds += first
	p.Search.StoredOnly = p.Search.StoredOnly || p.StoredOnly
	all, records, err := foundBy(ctx, p.Search, p.stage(1, set), p.Searches)
	for i, r := range records {
		if int(r.Trial.Seed) >= first {
			genotypes, searches = append(genotypes, all[i]), append(searches, r)
		}
	}
	return genotypes, searches, err
}

func (p Table3Params) stage(number, set int) string {
	title := fmt.Sprintf("li2021/table3, stage %d", number)
	if p.Sets > 1 {
		title += fmt.Sprintf(", set %d", set+1)
	}
	return title
}

// choose reads the candidates' errors and picks, of those kept after the short part, the best at the end; of equals,
// the one that was ahead. It picks none before all are trained.
func (p Table3Params) choose(candidates lab.Groups[candidate]) {
	var order []*candidate
	for i, g := range candidates {
		r, c := g.Records[0], &candidates[i].Trial
		if r == nil || len(r.Series["test_error"]) < p.Short { // the latter is run elsewhere
			return
		}
		c.short, c.final = 100*r.Series["test_error"][p.Short-1], 100*last(r.Series["test_error"])
		order = append(order, c)
	}
	slices.SortStableFunc(order, func(a, b *candidate) int { return cmp.Compare(a.short, b.short) })
	order = order[:min(p.Kept, len(order))]
	for _, c := range order {
		c.kept = true
	}
	if len(order) > 0 {
		slices.MinFunc(order, func(a, b *candidate) int { return cmp.Compare(a.final, b.final) }).best = true
	}
}

// candidatesOf are the candidates of a set; none before one is chosen.
func candidatesOf(r *table3, set int) []candidate {
	all := r.Part("candidate").Where(func(c candidate) bool { return c.set == set }).Trials()
	if !slices.ContainsFunc(all, func(c candidate) bool { return c.best }) {
		return nil
	}
	return all
}

func againOf(r *table3, set int) []*runs.Record {
	return r.Part("again").Where(func(c candidate) bool { return c.set == set }).Records()
}

func epochs3(r *table3) int {
	s, _ := r.Params.settings("cifar-10") // whose error is one of the rules'
	return s.Epochs
}

func drawTable3(r *table3, f *lab.Picture) {
	p := r.Params
	panel := plots.Panel{
		X: plots.Axis{Label: fmt.Sprintf("test error after %d epochs (%%)", p.Short)},
		Y: plots.Axis{Label: fmt.Sprintf("after %d epochs (%%)", epochs3(r))},
	}
	goesOn := plots.Series{Label: "goes on", Line: plots.NoLine}
	givenUp := plots.Series{Label: "given up", Line: plots.NoLine}
	for set := range p.Sets {
		for _, c := range candidatesOf(r, set) {
			s := &givenUp
			if c.kept {
				s = &goesOn
			}
			s.X, s.Y = append(s.X, c.short), append(s.Y, c.final)
		}
	}
	panel.Series = []plots.Series{goesOn, givenUp}
	f.Style = plots.ICLR.Text()
	f.Row(panel, plots.Panel{Table: protocolTable(r)})
	once := p.TrainParams
	once.Seeds = 1
	bold := ""
	if len(candidatesOf(r, 0)) > 0 {
		bold = fmt.Sprintf("; bold: the %d best after %d epochs, and of these the best at the end", p.Kept, p.Short)
	}
	f.Say("%s%s.", stage1Note(r), bold)
	once.say(f, examplesOf(r), imagesOf(p.Examples, strings.ToUpper(string(p.Data))))
}

func stage1Note(r *table3) string {
	if n := len(r.Part(searchPart)[0].Records); n > 0 {
		return fmt.Sprintf("Stage 1: %d searches of ours", n)
	}
	return "Stage 1 was not run: candidates are published cells and random ones"
}

func protocolTable(r *table3) *plots.Table {
	t := &plots.Table{Columns: []plots.Column{
		{Header: "candidate"}, {Header: fmt.Sprintf("epoch %d", r.Params.Short), Group: "test error (%)"},
		{Header: fmt.Sprintf("epoch %d", epochs3(r)), Group: "test error (%)"},
		{Header: "the paper's,\nepoch 600"},
	}}
	var end plots.Block
	for set := range r.Params.Sets {
		title, text := "", "the best, other seeds"
		if r.Params.Sets > 1 {
			title = fmt.Sprintf("set %d", set+1)
			text += ", " + title
		}
		block := plots.Block{Title: title}
		for _, c := range candidatesOf(r, set) {
			block.Rows = append(block.Rows, []plots.Entry{
				{Text: candidateTitle(c.name)}, {Text: fmt.Sprintf("%.1f", c.short), Bold: c.kept},
				{Text: fmt.Sprintf("%.1f", c.final), Bold: c.best}, {},
			})
		}
		if len(block.Rows) > 0 {
			t.Blocks = append(t.Blocks, block)
		}
		mean, _ := errorEntries(againOf(r, set), "test_error")
		end.Rows = append(end.Rows, []plots.Entry{{Text: text}, {}, mean, {}})
	}
	for i, set := range publishedTables().Sets {
		end.Rows = append(end.Rows, []plots.Entry{
			{Text: fmt.Sprintf("the paper's, set %d", i+1), Grey: true}, {}, {}, printedError(set),
		})
	}
	t.Blocks = append(t.Blocks, end)
	return t
}

func candidateTitle(name string) string {
	p, ok := supernet.Published[name]
	switch {
	case !ok:
		return name
	case p.Searched == "CIFAR-10":
		return p.Method
	}
	return fmt.Sprintf("%s (%s)", p.Method, p.Searched)
}

// The protocol of Appendix C.1.3.
const (
	protocolCandidates, protocolFull = 10, 3
	protocolEpochs, protocolShort    = 600, 20
	protocolSaved, protocolSeeds     = 75, 10 // percent; of stage 3
)

const stage2Source = "Appendix C.1.3"

func judgeTable3(r *table3) []runs.Claim {
	claims := []runs.Claim{judgeRanks(r, "spearman"), judgeRanks(r, "kendall"), judgeKept(r), judgeSaved(r)}
	for set := range publishedTables().Sets {
		claims = append(claims, judgeSet(r, set))
	}
	return append(claims, judgeEvaluationSettings(r))
}

// judgeRanks judges, by one of two rank correlations, that errors after the short part rank candidates as at the end.
func judgeRanks(r *table3, name string) runs.Claim {
	c := r.Claim("own: poor candidates are known after a few epochs: %s's rank correlation above 0",
		strings.ToUpper(name[:1])+name[1:]).From(stage2Source).Says(0).Family(2)
	var short, final []float64
	for _, x := range candidatesOf(r, 0) {
		short, final = append(short, x.short), append(final, x.final)
	}
	a, err := rank.Correlate(name, short, final, c.Confidence)
	if err != nil {
		return c.NotRun("%v", err)
	}
	c.Ours, c.Lo, c.Hi = runs.Number(a.Estimate), a.Lo, a.Hi
	c = c.Noting("%s", strings.Join(append([]string{fmt.Sprintf("errors after %d epochs against those after %d, %d "+
		"candidates", r.Params.Short, epochs3(r), a.N)}, a.Warnings...), "; "))
	if !a.Lo.Valid() || !a.Hi.Valid() {
		return c.Claim
	}
	return verdict.Interval(c.Claim, 0, 1)
}

func judgeKept(r *table3) runs.Claim {
	c := r.Claim("own: the best candidate at the end is among those that go on").From(stage2Source)
	candidates := candidatesOf(r, 0)
	if len(candidates) == 0 {
		return c.NotRun("not all candidates were trained")
	}
	best := slices.MinFunc(candidates, func(a, b candidate) int { return cmp.Compare(a.final, b.final) })
	lost := 0
	if !best.kept {
		lost = 1
	}
	return verdict.None(c.Noting("%d of %d go on after %d epochs; one run of the protocol, the first", r.Params.Kept,
		len(candidates), r.Params.Short).Claim, lost, 1)
}

// judgeSaved judges the saved share of the cost by the paper's own numbers: three of ten candidates are trained for 600
// epochs, the others for 20.
func judgeSaved(r *table3) runs.Claim {
	c := r.Claim("[LI237] share of the cost of stage 2 that is saved, %%").From(stage2Source).Says(protocolSaved).
		Noting("by the paper's own numbers: 3 of 10 candidates for 600 epochs, the others for 20")
	used := protocolFull*protocolEpochs + (protocolCandidates-protocolFull)*protocolShort
	c.Ours, c.Tolerance = runs.Number(100*(1-float64(used)/float64(protocolCandidates*protocolEpochs))), 0
	c.Holds = runs.Judge(c.Ours > protocolSaved)
	return c.Claim
}

func judgeSet(r *table3, set int) runs.Claim {
	paper := publishedTables().Sets[set]
	c := r.Claim("[LI%d] average test error on CIFAR-10 of the best, set %d, %%", 182+set, set+1).Says(paper.Mean).
		Family(len(publishedTables().Sets))
	c.Tolerance = runs.Number(paper.Std)
	ours := errorsOf(againOf(r, set), "test_error")
	switch {
	case set >= r.Params.Sets:
		return c.NotRun("so many sets of seeds were run: %d (Sets)", r.Params.Sets)
	case r.Params.reduced("cifar-10") || r.Params.Data != data.CIFAR10:
		return c.NotRun("errors at a reduced scale are not the paper's; --scale paper has its 600 epochs")
	case slices.ContainsFunc(candidatesOf(r, set), func(x candidate) bool { return x.best && !x.ours }):
		return c.NotRun("the best candidate is none that a search of ours found, as the paper's sets are")
	case len(ours) < r.Params.Seeds:
		return c.NotRun("%d of %d trainings of the best candidate", len(ours), r.Params.Seeds)
	}
	return c.Mean(ours).Near(paper.Mean, paper.Std)
}

func judgeEvaluationSettings(r *table3) runs.Claim {
	c := r.Claim("[LI228 LI234] settings of stages 2 and 3 that are not those printed").From("Appendix C.1.2")
	s := training.AsPaper["cifar-10"]
	printed := []struct{ ours, paper float64 }{
		{float64(s.Epochs), protocolEpochs}, {float64(s.Batch), 128}, {s.LearningRate, 0.025}, {s.LearningRateMin, 0},
		{s.Rate(s.Epochs / 2), 0.0125}, // the cosine
		{s.Momentum, 0.9}, {s.WeightDecay, 3e-4}, {float64(s.Channels), 36}, {float64(s.Cells), 20},
		{float64(s.Augment.Cutout), 16}, {s.Auxiliary, 0.4}, {s.DropPath, 0.3}, {s.Clip, 5}, {s.Smoothing, 0},
		{float64(Table3Paper.Seeds), protocolSeeds}, {float64(Table3Paper.Short), protocolShort},
	}
	differ := 0
	for _, f := range printed {
		if math.Abs(f.ours-f.paper) > 1e-9 {
			differ++
		}
	}
	return verdict.None(c.Noting("paper and authors' code: %s",
		strings.Join(training.Differences(s, training.AsCode["cifar-10"]), "; ")).Claim, differ, len(printed))
}
