package li2021

import (
	"context"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/supernet"
	"github.com/nasml/lab/nasml/training"
	"github.com/nasml/lab/nasml/trial"
)

// cheap is a genotype that compiles in seconds.
const cheap = "Genotype(normal=[('skip_connect', 0), ('skip_connect', 1)], normal_concat=[2], " +
	"reduce=[('max_pool_3x3', 0), ('avg_pool_3x3', 1)], reduce_concat=[2])"

// photoFolder makes a folder of photographs in two classes, red and blue.
func photoFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, part := range []string{"train", "val"} {
		for class, shade := range map[string]color.RGBA{"n01": {R: 250, A: 255}, "n02": {B: 250, A: 255}} {
			require.NoError(t, os.MkdirAll(filepath.Join(dir, part, class), 0o755))
			for i := range 8 {
				photo := image.NewRGBA(image.Rect(0, 0, 50+i, 60))
				for at := range photo.Pix {
					photo.Pix[at] = []uint8{shade.R, shade.G, shade.B, 255}[at%4]
				}
				file, err := os.Create(filepath.Join(dir, part, class, string(rune('a'+i))+".JPEG"))
				require.NoError(t, err)
				require.NoError(t, jpeg.Encode(file, photo, nil))
				require.NoError(t, file.Close())
			}
		}
	}
	return dir
}

// Table 5 trains on a folder of photographs, and reads what it has trained.
func TestTable5OfAFolder(t *testing.T) {
	store, err := runs.Open(t.TempDir())
	require.NoError(t, err)
	ctx := runs.WithProgress(runs.WithStore(t.Context(), store), runs.Silent)
	p := Table5Quick
	p.Genotypes, p.Folder = []string{cheap}, photoFolder(t)
	p.Channels, p.Cells, p.Image, p.Epochs, p.Batch = 4, 3, 32, 8, 8
	r, err := Table5(ctx, p)
	require.NoError(t, err)
	require.Len(t, r.Records(), 1)
	require.Less(t, r.Groups[0].Records[0].Values["test_error"], 0.3, "red is not blue")
	require.NoError(t, r.Figure().Validate())
	require.Contains(t, r.Figure().Caption, "16 photographs of 2 classes")
	p.StoredOnly = true
	again, err := Table5(ctx, p)
	require.NoError(t, err)
	require.Equal(t, r.Groups[0].Records[0].Series, again.Groups[0].Records[0].Series)
}

func TestTable5OfAFolderThatIsWrong(t *testing.T) {
	ctx := runs.WithProgress(t.Context(), runs.Silent)
	p := Table5Quick
	p.Folder = photoFolder(t)
	require.NoError(t, os.RemoveAll(filepath.Join(p.Folder, "val", "n02")))
	_, err := Table5(ctx, p)
	require.ErrorContains(t, err, "train has 2 classes and val 1")
	require.NoError(t, os.RemoveAll(filepath.Join(p.Folder, "val")))
	_, err = Table5(ctx, p)
	require.ErrorContains(t, err, "val: no such file or directory")
	p.Folder = filepath.Join(p.Folder, "missing")
	_, err = Table5(ctx, p)
	require.ErrorContains(t, err, "missing does not exist")
}

func TestGenotypesThatAreWrong(t *testing.T) {
	ctx := runs.WithProgress(t.Context(), runs.Silent)
	var usage *catalog.UsageError
	for genotype, want := range map[string]string{
		"DARTS_V3": "expected a published name or Genotype(",
		strings.Replace(cheap, "max_pool_3x3", "max_9x9", 1): "unknown operation " +
			"\"max_9x9\"",
		strings.Replace(cheap, "('skip_connect', 1)", "('skip_connect', 2)", 1):          "0 to 1, got 2",
		strings.Replace(cheap, "('skip_connect', 0), ", "", 1):                           "one is missing or too many",
		strings.Replace(cheap, "reduce_concat=[2]", "reduce_concat=[2], what=[1, 2]", 1): "got what",
	} {
		for _, run := range []func() error{
			func() error { _, err := Figure3(ctx, Figure3Params{Genotypes: []string{genotype}}); return err },
			func() error {
				p := Table1Quick
				p.Genotypes = []string{genotype}
				_, err := Table1(ctx, p)
				return err
			},
			func() error {
				p := Table5Quick
				p.Genotypes = []string{genotype}
				_, err := Table5(ctx, p)
				return err
			},
		} {
			err := run()
			require.ErrorContains(t, err, want)
			require.ErrorAs(t, err, &usage)
			require.NotContains(t, err.Error(), "\n")
		}
	}
}

func TestParametersOfTablesThatMakeNoSense(t *testing.T) {
	ctx := runs.WithProgress(t.Context(), runs.Silent)
	for want, change := range map[string]func(p *Table3Params){
		"Kept must be between 1 and 10, fewer than the candidates, got 11": func(p *Table3Params) { p.Kept = 11 },
		"Short must be less than Epochs, 6, got 6":                         func(p *Table3Params) { p.Short = 6 },
		"at least 2 candidates, got 1": func(p *Table3Params) {
			p.Genotypes, p.Random, p.Searches = nil, 1, nil
		},
		"Preset must be quick, paper or code, got \"slow\"": func(p *Table3Params) { p.Preset = "slow" },
		"DropPath and Smoothing must be":                    func(p *Table3Params) { p.Vary = withoutRegularizers(1) },
		"got \"cifar\"":                                     func(p *Table3Params) { p.Data = "cifar" },
		"Genotypes must": func(p *Table3Params) {
			p.Genotypes = []string{"PDARTS", "PDARTS"}
		},
	} {
		p := Table3Quick
		change(&p)
		_, err := Table3(ctx, p)
		require.ErrorContains(t, err, want)
		var usage *catalog.UsageError
		require.ErrorAs(t, err, &usage)
	}
}

// Every setting of a training is a parameter, in Go and on the command line, 0 included;
// what is left alone stays as the preset has it.
func TestSettingsOfTrainings(t *testing.T) {
	e, err := catalog.Lookup("li2021/table1")
	require.NoError(t, err)
	of := func(set ...string) training.Settings {
		p, err := e.Params(catalog.Paper, set)
		require.NoError(t, err)
		s, err := p.(Table1Params).settings("cifar-10")
		require.NoError(t, err)
		return s
	}
	want := training.AsPaper["cifar-10"]
	require.Equal(t, want, of())
	want.WeightDecay, want.Schedule, want.DropPath, want.Augment.Cutout = 1e-4, "linear", 0, 0
	require.Equal(t, want, of("WeightDecay=1e-4", "Schedule=linear", "DropPath=0", "Augment.Cutout=0"))
	p := Table1Paper
	p.Vary = withoutRegularizers(0)
	got, err := p.settings("cifar-10")
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Equal(t, []string{
		"DropPath: 0.3, 0", `Schedule: "cosine", "linear"`, "WeightDecay: 0.0003, 0.0001", "Augment.Cutout: 16, 0",
	}, p.changes("cifar-10"))
}

func withoutRegularizers(dropPath float64) func(set string, s *training.Settings) {
	return func(_ string, s *training.Settings) {
		s.WeightDecay, s.Schedule, s.DropPath, s.Augment.Cutout = 1e-4, "linear", dropPath, 0
	}
}

// A cell is drawn with its states, an edge an operation, and its concatenation.
func TestDrawnCell(t *testing.T) {
	g, err := supernet.ParseGenotype("Genotype(normal=[('skip_connect', 0), ('sep_conv_3x3', 0)], normal_concat=[2], " +
		"reduce=[('none', 0), ('avg_pool_3x3', 1)], reduce_concat=[2])")
	require.NoError(t, err)
	ops := []string{"skip_connect", "sep_conv_3x3"}
	cell := drawnCell(g.Normal, ops, true)
	require.Equal(t, []string{"$c_{k-2}$", "$c_{k-1}$", "0", "$c_k$"}, cell.Nodes)
	require.Len(t, cell.Edges, 2, "two operations between the same states are one edge")
	require.Equal(t, []float64{1, 1}, cell.Edges[0].Weights)
	require.Equal(t, "skip\nsep 3×3", cell.Edges[0].Label)
	require.Equal(t, [2]int{2, 3}, [2]int{cell.Edges[1].From, cell.Edges[1].To})
	require.Empty(t, cell.Edges[1].Weights)

	r, err := Figure3(t.Context(), Figure3Params{Genotypes: []string{g.String(), "PDARTS"}})
	require.NoError(t, err)
	require.NoError(t, r.Figure().Validate())
	_, err = r.Figure().Render("svg")
	require.NoError(t, err)
	require.Equal(t, runs.Fails, r.Check()[4].Holds, "its nodes are not DARTS'")
}

// The protocol: of five candidates the three that are best after two epochs go on,
// and the best of these at the end is taken, though another would be better.
func TestProtocolChooses(t *testing.T) {
	short, final := []float64{0.5, 0.2, 0.9, 0.4, 0.3}, []float64{0.3, 0.25, 0.1, 0.2, 0.2}
	p := Table3Params{Short: 2, Kept: 3, TrainParams: TrainParams{Preset: "quick"}}
	of := func(change func(records []*runs.Record)) *table3 {
		var records []*runs.Record
		for i := range short {
			errors := map[string][]float64{"test_error": {0.9, short[i], final[i]}}
			records = append(records, &runs.Record{Series: errors})
		}
		change(records)
		r := &table3{Params: p, Confidence: 0.95}
		for _, record := range records {
			r.Groups = append(r.Groups, lab.Group[candidate]{Part: "candidate", Records: []*runs.Record{record}})
		}
		p.choose(r.Groups)
		return r
	}
	r := of(func([]*runs.Record) {})
	var kept []bool
	for i, c := range candidatesOf(r, 0) {
		kept = append(kept, c.kept)
		require.Equal(t, i == 4, c.best, "of equals the one that was ahead")
	}
	require.Equal(t, []bool{false, true, false, true, true}, kept)
	require.Equal(t, runs.Fails, judgeKept(r).Holds)
	ranks := judgeRanks(r, "spearman")
	require.InDelta(t, -3.5/math.Sqrt(95), float64(ranks.Ours), 1e-9, "by hand: ranks 4 1 5 3 2 and 5 4 1 2.5 2.5")
	for name, change := range map[string]func(records []*runs.Record){
		"not run":       func(records []*runs.Record) { records[2] = nil },
		"run elsewhere": func(records []*runs.Record) { records[2] = &runs.Record{} },
	} {
		r := of(change)
		require.Empty(t, candidatesOf(r, 0), name)
		require.Equal(t, runs.NotKnown, judgeKept(r).Holds, name)
	}
}

// What is asked for the trials of the protocol, and computes none, gets no panic: the errors of a candidate that
// another process trains are not known yet, and what comes after them waits.
func TestProtocolOfTrialsThatAreElsewhere(t *testing.T) {
	e, err := catalog.Lookup("li2021/table3")
	require.NoError(t, err)
	ctx := runs.WithProgress(runs.WithStore(t.Context(), emptyStore(t)), runs.Silent)
	for set, missing := range map[string]int{"Short=2": 0, "WeightDecay=0.1": 11, "Search.LearningRate=0.5": 3} {
		part := new(runs.Part)
		require.NoError(t, e.RunPart(ctx, part, catalog.Quick, []string{set}), set)
		found, _ := part.Elsewhere()
		require.Equal(t, missing, found, set)
	}
}

// Every set of seeds goes through the protocol by itself: the second and third are not
// shipped, and the first is what it is alone.
func TestSetsOfSeeds(t *testing.T) {
	ctx := runs.WithProgress(runs.WithStore(t.Context(), emptyStore(t)), runs.Silent)
	p := Table3Quick
	one, err := Table3(ctx, p)
	require.NoError(t, err)
	p.Sets, p.StoredOnly = 3, true
	r, err := Table3(ctx, p)
	require.NoError(t, err)
	require.Equal(t, one.Records(), r.Records())
	require.Equal(t, candidatesOf(one, 0), candidatesOf(r, 0))
	for _, g := range r.Part("candidate") {
		require.EqualValues(t, g.Trial.set*(p.Seeds+1), g.First)
		require.Equal(t, 1, g.Seeds)
	}
	require.Empty(t, candidatesOf(r, 2))
	require.Equal(t, "li2021/table3, stage 2, set 3", p.stage(2, 2))
	require.NoError(t, r.Figure().Validate())
	require.Len(t, r.Check(), len(one.Check()))
	p.Searches, p.Search, p.Search.Seeds = []string{"gaea-pc-darts@darts"}, Figure1LeftQuick.SearchParams, 1
	for set := range 3 { // of the searches that are shipped
		genotypes, searches, err := p.stage1(ctx, set)
		require.NoError(t, err)
		require.Len(t, genotypes, 1)
		require.Equal(t, []uint64{uint64(set)}, []uint64{searches[0].Trial.Seed})
		require.Contains(t, genotypes[0].name, fmt.Sprintf("seed %d", set))
	}
	p.Sets = 0
	_, err = Table3(ctx, p)
	require.ErrorContains(t, err, "Sets must")
}

// The paper's own numbers do not make "over 75 %".
func TestSavedShare(t *testing.T) {
	r := &table3{}
	c := judgeSaved(r)
	require.InDelta(t, 100*(1-(3.*600+7*20)/6000), float64(c.Ours), 1e-9)
	require.Equal(t, runs.Fails, c.Holds)
	require.Equal(t, runs.Holds, judgeEvaluationSettings(r).Holds)
}

// Table 1 at the paper's scale counts, and says what it would train.
func TestTable1WithoutTrainings(t *testing.T) {
	store, err := runs.Open(t.TempDir())
	require.NoError(t, err)
	ctx := runs.WithProgress(runs.WithStore(t.Context(), store), runs.Silent)
	p := Table1Paper
	p.StoredOnly, p.Data = true, data.CIFAR10
	p.Examples, p.TestExamples = 1000, 1000 // of which the facts are known
	p.Genotypes = append(slices.Clone(p.Genotypes), cheap)
	r, err := Table1(ctx, p)
	require.NoError(t, err)
	require.NoError(t, r.Figure().Validate())
	require.Empty(t, r.Records())
	cells := r.Groups.Trials()
	require.Equal(t, "own 1", last(linesOf(publishedTables().CIFAR, r.Groups)).Method)
	b := p.bench("", &examples{train: 50000, test: 10000})
	require.Contains(t, b.Cost(cells[:2], 0), " GB on this machine's processors, or 3 days on a GTX 1080 Ti")
	p.CountedChannels = 8
	small, err := Table1(ctx, p)
	require.NoError(t, err)
	require.Less(t, small.Groups[0].Trial.parameters, cells[0].parameters/10)
	for _, c := range small.Check()[:6] {
		require.Equal(t, runs.NotKnown, c.Holds)
	}
}

// Table 4 has every line that the paper prints, our counts beside those of published
// cells, and the trainings of Table 1.
func TestTable4(t *testing.T) {
	ctx := runs.WithProgress(runs.WithStore(t.Context(), emptyStore(t)), runs.Silent)
	r, err := Table4(ctx, Table1Quick)
	require.NoError(t, err)
	one, err := Table1(ctx, Table1Quick)
	require.NoError(t, err)
	require.Equal(t, one.Records(), r.Records())
	f := r.Figure()
	require.NoError(t, f.Validate())
	lines := 0
	for _, block := range f.Panels[0][0].Table.Blocks {
		lines += len(block.Rows)
	}
	require.Equal(t, 14, lines)
	judged := map[string]runs.Verdict{}
	for _, c := range one.Check() {
		judged[c.Name] = c.Holds
	}
	for _, c := range r.Check() {
		require.Equal(t, judged[c.Name], c.Holds, c.Name)
	}
}

// Errors over epochs end where the table has them, and nothing is drawn of nothing.
func TestTrainingCurves(t *testing.T) {
	ctx := runs.WithProgress(runs.WithStore(t.Context(), emptyStore(t)), runs.Silent)
	r, err := Table1(ctx, Table1Quick)
	require.NoError(t, err)
	f := Table1Curves(r).Figure()
	require.NoError(t, f.Validate())
	require.Len(t, f.Panels[0], 2)
	for i, s := range f.Panels[0][1].Series {
		require.Len(t, s.Y, r.Params.Epochs)
		mean, _ := moments(errorsOf(r.Groups[i].Records, "test_error"))
		require.InDelta(t, mean, s.Y[len(s.Y)-1], 1e-9)
		require.Empty(t, s.Lo, "of two seeds")
		require.Len(t, s.Runs, 2)
	}
	require.Equal(t, r.Records(), Table1Curves(r).Records())
	p := Table1Quick
	p.StoredOnly, p.Epochs = true, 3
	none, err := Table1(ctx, p)
	require.NoError(t, err)
	require.NoError(t, Table1Curves(none).Figure().Validate())
}

// emptyStore is a store without a record of its own.
func emptyStore(t *testing.T) *runs.Store {
	store, err := runs.Open(t.TempDir())
	require.NoError(t, err)
	return store
}

// Cells of searches of ours are drawn where the run store has them, and nothing is
// searched.
func TestCellsOfOurSearches(t *testing.T) {
	store, err := runs.Open(t.TempDir())
	require.NoError(t, err)
	ctx := runs.WithProgress(runs.WithStore(t.Context(), store), runs.Silent)
	p := Figure3Params{Genotypes: []string{"PDARTS"}, Searches: []string{"gaea-pc-darts@darts"}, Search: quickSearch}
	p.Search.Examples, p.Search.Seeds = 1000, 2 // of which the facts are known
	none, err := Figure3(ctx, p)
	require.NoError(t, err)
	require.Len(t, none.Groups, 1)

	want := supernet.Published["PC_DARTS_cifar"].Genotype
	gs, err := p.Search.plan(p.Searches)
	require.NoError(t, err)
	images, err := data.View{Name: data.CIFAR10, Split: data.Train, First: 1000}.Open(ctx)
	require.NoError(t, err)
	b := p.Search.bench("", searchImages{Facts: images.Facts}, runPlain)
	b.Batch, b.MaxBatch = nil, 0
	b.Run = func(context.Context, found, uint64, study.Step) (trial.Result, error) {
		return trial.Result{
			Values: map[string]float64{"epochs": 1}, Series: map[string][]float64{"final": codeOf(want)},
		}, nil
	}
	gs[0].First, gs[0].Seeds = 1, 1
	require.NoError(t, runSearches(ctx, b, gs, images.Len))
	r, err := Figure3(ctx, p)
	require.NoError(t, err)
	require.Len(t, r.Groups, 2)
	require.Equal(t, want.String(), r.Groups[1].Trial.genotype.String())
	require.Contains(t, r.Groups[1].Trial.title(), "ours, seed 1")
	require.Len(t, r.Records(), 1)
	require.NoError(t, r.Figure().Validate())

	p.Search.Preset = "slow"
	_, err = Figure3(ctx, p)
	require.ErrorContains(t, err, "there are no settings \"slow\" on the space ")
}

// codeOf is a genotype of the DARTS space as a search's record has it: operation
// and state of every gene.
func codeOf(g supernet.Genotype) (code []float64) {
	for _, t := range supernet.CellTypes {
		for _, gene := range g.Cell(t).Genes {
			code = append(code, float64(slices.Index(supernet.DARTS.Ops, gene.Op)), float64(gene.From))
		}
	}
	return code
}
