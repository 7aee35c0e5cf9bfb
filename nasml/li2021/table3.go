package li2021

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/supernet"
	"github.com/nasml/lab/nasml/trial"
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
