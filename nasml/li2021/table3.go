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
	"github.com/nasml/lab/nasml/rank"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/supernet"
	"github.com/nasml/lab/nasml/training"
	"github.com/nasml/lab/nasml/trial"
	"github.com/nasml/lab/nasml/verdict"
	"github.com/nasml/lab/plots"
)

// Table3Params are the parameters of the protocol of Appendix C.1 and its
// repetition, Table 3: several candidates, one training each, of which the poor
// ones are known after a few epochs, and the best again from other seeds.
type Table3Params struct {
	// Candidates, the architectures that searches have found, and so many that are
	// drawn from the DARTS space, uniformly over Genotypes.
	Genotypes []string
	Random    int

	// Searches are the first stage: rows of Figure 1 such as "gaea-pc-darts@darts", of
	// which Search.Seeds are run as Search says; what they found are candidates, too.
	// With Search.StoredOnly those that the run store has.
	Searches []string
	Search   SearchParams

	Sets  int // of seeds, of which each goes through all of the protocol
	Short int // epochs after which candidates are first compared
	Kept  int // candidates that then go on

	TrainParams           // Seeds: of the best, besides the one that it was chosen by
	Data        data.Name // the images that are trained on
}

// Table3Quick is all of the protocol at a reduced scale: the cells of the three searches
// by GAEA PC-DARTS of Figure 1, left, and beside them the five published ones of Table 1
// and three random ones. The project ships these searches and trainings.
var Table3Quick = func() Table3Params {
	p := Table3Params{
		Genotypes: Table1Quick.Genotypes, Random: 3, Short: 2, Kept: 3,
		Searches: []string{"gaea-pc-darts@darts"}, Search: Figure1LeftQuick.SearchParams,
		TrainParams: quickTraining, Data: data.CIFAR10, Sets: 1,
	}
	return p
}()

// Table3Paper is all of the protocol, three times: five searches by GAEA PC-DARTS, which
// with the published cells are ten candidates, 20 epochs of 600, and ten seeds. It was
// not run.
var Table3Paper = func() Table3Params {
	p := Table3Quick
	p.Random, p.Searches, p.Search = 0, []string{"gaea-pc-darts@darts"}, paperSearch
	p.Search.Seeds, p.Sets = 5, 3
	p.Short, p.TrainParams = 20, paperTraining
	return p
}()

// Table3Large is all of the protocol for a night on two cores: searches of Figure 1,
// left, and trainings of Table 1 at that scale, of fewer published cells. It was not
// run.
var Table3Large = func() Table3Params {
	p := Table3Paper
	p.Search, p.TrainParams = Figure1LeftLarge.SearchParams, Table1Large.TrainParams
	p.Genotypes = []string{"DARTS_V2", "PC_DARTS_cifar", "GAEA_PC_DARTS_cifar"}
	p.Search.Seeds, p.Sets, p.Short = 5, 1, 3
	return p
}()

const (
	table3ID     = "li2021/table3"
	table3Title  = "DARTS space, CIFAR-10: candidates after a few epochs, and the best of them again"
	table3Source = "Li+ 2021, Table 3"
	stage2Source = "Li+ 2021, Appendix C.1.3"
)

func init() {
	catalog.Register(catalog.Entry{
		ID: table3ID, Paper: paper, Title: table3Title, Kind: "table",
		Notebook: "notebooks/li2021/table3_protocol.ipynb",
		Cost: catalog.Cost{
			Quick: "three searches and 14 trainings at a reduced scale: " + quickTrainingCost + "; they are shipped",
			Paper: "15 searches and 60 trainings, each of these 1.5 days on a GTX 1080 Ti (Liu+ 2019, Appendix A), " +
				"80 on two cores",
		},
		Settings: table3Settings,
	}, Table3Quick, Table3Paper, Table3, catalog.Preset[Table3Params]{Scale: catalog.Large, Params: Table3Large})
}

// Table3Result is the protocol with what it has found by one set of seeds.
type Table3Result struct {
	Params     Table3Params
	set        int             // from 0
	others     []*Table3Result // by further sets
	Scale      string          // "quick", "paper" or empty for own parameters
	evaluation evaluation
	candidates []candidate
	best       int            // candidate that is trained again, −1 where not all candidates were trained
	again      []*runs.Record // its further trainings
	first      []*runs.Record // one of each candidate
	searches   []*runs.Record // stage 1
}

// candidate is an architecture with the test errors of one training, in percent.
type candidate struct {
	named
	short, final float64
	kept         bool // it is among the best after the short part
}

// Table3 runs what the run store lacks of the trainings. See [Table1] for
// cancelling and errors.
func Table3(ctx context.Context, p Table3Params) (*Table3Result, error) {
	if _, err := p.check(); err != nil {
		return nil, err
	}
	r, err := p.run(ctx, 0)
	for set := 1; set < p.Sets && err == nil; set++ {
		var other *Table3Result
		other, err = p.run(ctx, set)
		r.others = append(r.others, other)
	}
	return r, err
}

// stage1 are the genotypes that the searches of a set have found, and their records.
// Set s, from 0, has the seeds from s·Search.Seeds on.
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

// stage is the title of a stage's work.
func (p Table3Params) stage(number, set int) string {
	title := fmt.Sprintf("%s, stage %d", table3ID, number)
	if p.Sets > 1 {
		title += fmt.Sprintf(", set %d", set+1)
	}
	return title
}

// run is the protocol by one set of seeds, from 0. Set s trains with the seeds from
// s·(Seeds + 1) on.
func (p Table3Params) run(ctx context.Context, set int) (*Table3Result, error) {
	genotypes, err := p.check()
	if err != nil {
		return nil, err
	}
	ours, searches, err := p.stage1(ctx, set)
	if err != nil {
		return nil, err
	}
	genotypes = append(genotypes, ours...)
	settings, err := p.settings("cifar-10")
	if err != nil {
		return nil, err
	}
	if p.Short >= settings.Epochs {
		return nil, catalog.Usagef("parameters of Table 3: Short is %d, want less than Epochs, %d", p.Short,
			settings.Epochs)
	}
	if settings.EvaluateEvery != 1 {
		return nil, catalog.Usagef("parameters of Table 3: EvaluateEvery is %d, want 1: candidates are compared after "+
			"any epoch", settings.EvaluateEvery)
	}
	if p.Kept >= len(genotypes) && !p.Search.StoredOnly && !p.StoredOnly {
		return nil, catalog.Usagef("parameters of Table 3: Kept is %d, want fewer than the %d candidates", p.Kept,
			len(genotypes))
	}
	r := &Table3Result{Params: p, set: set, Scale: runs.Scale(ctx), best: -1, searches: searches}
	once := p.TrainParams
	once.Seeds = 1
	r.evaluation = evaluation{once, p.stage(2, set), settings, genotypes, nil, set * (p.Seeds + 1)}
	if r.evaluation.examples, err = p.inMemory(ctx, p.Data); err != nil {
		return nil, err
	}
	rows, err := r.evaluation.run(ctx)
	if err != nil {
		return nil, err
	}
	r.first = slices.Concat(rows...)
	if r.choose(); r.best < 0 {
		return r, nil
	}
	more := r.evaluation
	more.title, more.genotypes = p.stage(3, set), []named{r.candidates[r.best].named}
	more.Seeds, more.from = p.Seeds, more.from+1 // after the one that it was chosen by
	if rows, err = more.run(ctx); err != nil {
		return nil, err
	}
	r.again = rows[0]
	return r, nil
}

// check looks at the parameters, reads the genotypes and draws others.
func (p Table3Params) check() ([]named, error) {
	var c study.Checks
	study.Distinct(&c, "Genotypes", p.Genotypes, 0)
	c.AtLeast("Random", p.Random, 0)
	c.AtLeast("Sets", p.Sets, 1)
	c.AtLeast("Short", p.Short, 1)
	candidates := p.Random + len(p.Genotypes) + len(p.Searches)*max(0, p.Search.Seeds)
	c.Expect(candidates >= 2, "Genotypes, Random and Searches are %d candidates, want at least 2", candidates)
	c.Expect(1 <= p.Kept && p.Kept < candidates, "Kept is %d, want 1 to %d, fewer than the candidates", p.Kept,
		candidates-1)
	p.TrainParams.check(&c)
	if err := c.Err("Table 3"); err != nil {
		return nil, err
	}
	genotypes, err := parseGenotypes(p.Genotypes)
	for i := range p.Random {
		rng := trial.RNG(uint64(i), "a genotype of the DARTS space")
		genotypes = append(genotypes, named{fmt.Sprintf("random %d", i+1), supernet.DARTS.Random(rng)})
	}
	return genotypes, err
}

// choose reads the candidates' errors, and takes of those that are kept after the
// short part the one that is best at the end, and of equals the one that was ahead.
func (r *Table3Result) choose() {
	for i, g := range r.evaluation.genotypes {
		if r.first[i] == nil {
			r.candidates = nil
			return
		}
		errs := r.first[i].Series["test_error"]
		r.candidates = append(r.candidates, candidate{named: g, short: 100 * errs[r.Params.Short-1],
			final: 100 * errs[len(errs)-1]})
	}
	order := make([]int, len(r.candidates))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(r.candidates[a].short, r.candidates[b].short)
	})
	for _, i := range order[:r.Params.Kept] {
		r.candidates[i].kept = true
		if r.best < 0 || r.candidates[i].final < r.candidates[r.best].final {
			r.best = i
		}
	}
}

// Records are the keys of the trainings.
func (r *Table3Result) Records() (all []string) {
	for _, s := range r.sets() {
		all = slices.Concat(all, study.Keys(s.searches), study.Keys(s.first), study.Keys(s.again))
	}
	return all
}

// sets are the results of all sets of seeds.
func (r *Table3Result) sets() []*Table3Result { return append([]*Table3Result{r}, r.others...) }

// Figure draws the candidates' errors after the short part and at the end, and the
// protocol as a table.
func (r *Table3Result) Figure() plots.Figure {
	panel := plots.Panel{
		X: plots.Axis{Label: fmt.Sprintf("test error after %d epochs (%%)", r.Params.Short)},
		Y: plots.Axis{Label: fmt.Sprintf("after %d epochs (%%)", r.evaluation.settings.Epochs)},
	}
	for _, kept := range []bool{true, false} {
		s := plots.Series{Label: map[bool]string{true: "goes on", false: "given up"}[kept], Line: plots.NoLine}
		for _, set := range r.sets() {
			for _, c := range set.candidates {
				if c.kept == kept {
					s.X, s.Y = append(s.X, c.short), append(s.Y, c.final)
				}
			}
		}
		panel.Series = append(panel.Series, s)
	}
	return plots.Figure{
		Name: "li2021-table3", Style: plots.ICLR.Text(), Panels: [][]plots.Panel{{panel, {Table: r.table()}}},
		Caption: r.caption(), Meta: study.Meta(table3Title, r.Scale, r.Params),
	}
}

// publishedSets are the means of Table 3.
var publishedSets = []number{{2.50, 0.07}, {2.50, 0.09}, {2.60, 0.09}}

// table has a row a candidate of every set, and the best again.
func (r *Table3Result) table() *plots.Table {
	t := &plots.Table{Columns: []plots.Column{
		{Header: "candidate"}, {Header: fmt.Sprintf("epoch %d", r.Params.Short), Group: "test error (%)"},
		{Header: fmt.Sprintf("epoch %d", r.evaluation.settings.Epochs), Group: "test error (%)"},
	}}
	var last plots.Block
	for _, s := range r.sets() {
		if len(s.candidates) > 0 {
			t.Blocks = append(t.Blocks, plots.Block{Title: s.title(), Rows: s.candidateRows()})
		}
		mean, _ := errorEntries(s.again, "test_error")
		text := "the best, other seeds"
		if title := s.title(); title != "" {
			text += ", " + title
		}
		last.Rows = append(last.Rows, []plots.Entry{{Text: text}, {}, mean})
	}
	for i, set := range publishedSets {
		last.Rows = append(last.Rows, []plots.Entry{
			{Text: fmt.Sprintf("the paper's, set %d", i+1), Grey: true}, {}, printedError(set),
		})
	}
	t.Blocks = append(t.Blocks, last)
	return t
}

// title is the set's, where there are several.
func (r *Table3Result) title() string {
	if r.Params.Sets == 1 {
		return ""
	}
	return fmt.Sprintf("set %d", r.set+1)
}

// candidateRows are a set's candidates with their errors.
func (r *Table3Result) candidateRows() (rows [][]plots.Entry) {
	for i, c := range r.candidates {
		rows = append(rows, []plots.Entry{
			{Text: candidateTitle(c.name)}, {Text: fmt.Sprintf("%.1f", c.short), Bold: c.kept},
			{Text: fmt.Sprintf("%.1f", c.final), Bold: i == r.best},
		})
	}
	return rows
}

// candidateTitle is how a table calls a candidate.
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

func (r *Table3Result) caption() string {
	stage1 := "Stage 1 was not run: candidates are published cells and random ones. "
	if n := len(r.searches); n > 0 {
		stage1 = fmt.Sprintf("Stage 1: %d searches of ours. ", n)
	}
	text := stage1 + r.evaluation.caption(r.evaluation.imagesOf(r.Params.Data))
	if r.best >= 0 {
		text += fmt.Sprintf(" Bold: the %d best after %d epochs, and of these the best at the end. Random candidates "+
			"are drawn from the space.", r.Params.Kept, r.Params.Short)
	}
	return text
}

// The protocol of Appendix C.1.3.
const (
	protocolCandidates, protocolFull = 10, 3
	protocolEpochs, protocolShort    = 600, 20
	protocolSaved, protocolSeeds     = 75, 10 // percent; of stage 3
)

// Check judges whether poor candidates are known after a few epochs, what that
// saves, and the errors of Table 3 at the paper's scale.
func (r *Table3Result) Check() []runs.Claim {
	claims := []runs.Claim{r.checkRanks("spearman"), r.checkRanks("kendall"), r.checkKept(), checkSaved()}
	for i, set := range publishedSets {
		c := verdict.Claim(fmt.Sprintf("[LI%d] average test error on CIFAR-10 of the best, set %d, %%", 182+i, i+1),
			table3Source)
		c.Paper, c.Tolerance = runs.Number(set.mean), runs.Number(set.std)
		if sets := r.sets(); i < len(sets) {
			claims = append(claims, sets[i].checkSet(c, set))
		} else {
			why := fmt.Sprintf("so many sets of seeds were run: %d (Sets)", len(sets))
			claims = append(claims, verdict.NotRun(c, why))
		}
	}
	return append(claims, checkEvaluationSettings())
}

// ranks is the number of rank correlations that are judged.
const ranks = 2

// checkRanks judges that errors after the short part rank candidates as those at
// the end do.
func (r *Table3Result) checkRanks(name string) runs.Claim {
	c := verdict.Claim(fmt.Sprintf("own: poor candidates are known after a few epochs: %s's rank correlation above 0",
		strings.ToUpper(name[:1])+name[1:]), stage2Source)
	c.Paper = 0
	var short, final []float64
	for _, x := range r.candidates {
		short, final = append(short, x.short), append(final, x.final)
	}
	a, err := rank.Correlate(name, short, final, verdict.Family(r.Params.Confidence, ranks))
	if err != nil {
		return verdict.NotRun(c, err.Error())
	}
	c.Ours, c.Lo, c.Hi = runs.Number(a.Estimate), a.Lo, a.Hi
	c.Note = strings.Join(append([]string{fmt.Sprintf("errors after %d epochs against those after %d, %d candidates",
		r.Params.Short, r.evaluation.settings.Epochs, a.N)}, a.Warnings...), "; ")
	if !a.Lo.Valid() || !a.Hi.Valid() {
		return c
	}
	return verdict.Interval(c, 0, 1)
}

// checkKept judges that the best candidate at the end is not given up early.
func (r *Table3Result) checkKept() runs.Claim {
	c := verdict.Claim("own: the best candidate at the end is among those that go on", stage2Source)
	if len(r.candidates) == 0 {
		return verdict.NotRun(c, "not all candidates were trained")
	}
	best := slices.MinFunc(r.candidates, func(a, b candidate) int { return cmp.Compare(a.final, b.final) })
	lost := 0
	if !best.kept {
		lost = 1
	}
	c.Note = fmt.Sprintf("%d of %d go on after %d epochs; one run of the protocol, the first", r.Params.Kept,
		len(r.candidates), r.Params.Short)
	return verdict.None(c, lost, 1)
}

// checkSaved judges the share of the cost that the paper says is saved, by its own
// numbers: three of ten candidates are trained for all of 600 epochs, the others
// for 20.
func checkSaved() runs.Claim {
	c := verdict.Claim("[LI237] share of the cost of stage 2 that is saved, %", stage2Source)
	c.Paper, c.Tolerance = protocolSaved, 0
	used := protocolFull*protocolEpochs + (protocolCandidates-protocolFull)*protocolShort
	c.Ours = runs.Number(100 * (1 - float64(used)/float64(protocolCandidates*protocolEpochs)))
	c.Note = "by the paper's own numbers: 3 of 10 candidates for 600 epochs, the others for 20"
	c.Holds = runs.Judge(c.Ours > protocolSaved)
	return c
}

// checkSet judges a mean of Table 3.
func (r *Table3Result) checkSet(c runs.Claim, set number) runs.Claim {
	ours := errorsOf(r.again, "test_error")
	switch {
	case r.Params.reduced("cifar-10") || r.Params.Data != data.CIFAR10:
		return verdict.NotRun(c, "errors at a reduced scale are not the paper's; --scale paper has its 600 epochs")
	case r.best >= 0 && r.best < len(r.candidates)-len(r.searches):
		return verdict.NotRun(c, "the best candidate is none that a search of ours found, as the paper's sets are")
	case len(ours) < r.Params.Seeds:
		return verdict.NotRun(c, fmt.Sprintf("%d of %d trainings of the best candidate", len(ours), r.Params.Seeds))
	}
	s, err := runs.Summarize(ours, verdict.Family(r.Params.Confidence, len(publishedSets)))
	return verdict.Near(c, s, err, set.mean, set.std)
}

// checkEvaluationSettings holds the settings at the paper's scale to what Appendix
// C.1.2 prints.
func checkEvaluationSettings() runs.Claim {
	c := verdict.Claim("[LI228 LI234] settings of stages 2 and 3 that are not those printed",
		"Li+ 2021, Appendix C.1.2")
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
	c.Note = "paper and authors' code: " + strings.Join(training.Differences(s, training.AsCode["cifar-10"]), "; ")
	return verdict.None(c, differ, len(printed))
}
