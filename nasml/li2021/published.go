package li2021

import (
	"embed"
	"fmt"
	"math"
	"slices"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/search"
	"github.com/nasml/lab/nasml/supernet"
	"github.com/nasml/lab/nasml/training"
	"github.com/nasml/lab/plots"
)

// published are curves of the paper as numbers; see its field source. They end at the values of Table 2: the last
// points of the four searches of GAEA DARTS (bilevel) average 91.63 on CIFAR-10 and 71.87 on CIFAR-100.
type published struct {
	Source  string
	Entropy map[string][]float64   // by row, nats
	GAEA    map[string][][]float64 `yaml:"gaea_darts"` // by data set, four searches, test accuracy in percent
	XNAS    map[string][][]float64 // likewise; constant stretches are filled in
}

//go:embed published.yaml published.json published_oneshot.json
var publishedFiles embed.FS

var publishedCurves = sync.OnceValue(readPublished[published]("published.json"))

func readPublished[T any](name string) func() T {
	return func() (of T) {
		text, err := publishedFiles.ReadFile(name)
		if err == nil {
			err = yaml.Unmarshal(text, &of)
		}
		if err != nil {
			panic(fmt.Errorf("%s: %w", name, err)) // a test sees it
		}
		return of
	}
}

// publishedSeries is a published curve, whose first point is of epoch 1, up to the epoch last.
func publishedSeries(label string, y []float64, last int) plots.Series {
	y = y[:min(len(y), last)]
	return plots.Series{Label: label, X: epochsFrom(1, len(y)), Y: y, Reference: true}
}

// tables are what the paper's tables print; published.yaml says of each what it is.
type tables struct {
	Table2          map[string]map[string]table2Row // by block and row
	CIFAR, ImageNet []cellRow                       // Tables 4 and 5, whose errors are Table 1's
	Others          struct{ Manual, Trained, Shared []otherRow }
	Sets            []number // Table 3
}

var publishedTables = sync.OnceValue(readPublished[tables]("published.yaml"))

// number is a mean and its standard deviation, 0 if not printed; in files a list of the two.
type number struct{ Mean, Std float64 }

func (n *number) UnmarshalYAML(node *yaml.Node) error {
	var of [2]float64
	err := node.Decode(&of)
	*n = number{of[0], of[1]}
	return err
}

type table2Row struct {
	Seconds  float64   // search cost on CIFAR-10; 0: not given
	Accuracy [3]number // test accuracy in percent: CIFAR-10, CIFAR-100, ImageNet16-120
	First    int       // number of its first row, that of the search cost, in the list of the paper's claims
}

// row is the id of the claim about the accuracy in a column, counted from 0; row(-1) is that about the search cost.
func (r table2Row) row(column int) string { return fmt.Sprintf("LI%03d", r.First+1+column) }

// cellRow is a line of Tables 1, 4 and 5 whose cell lies in the DARTS space.
type cellRow struct {
	Method   string
	Genotype string  // a name of supernet.Published; empty: not published
	Params   float64 // millions, as printed
	Cost     string  // GPU days

	// Test errors in percent, 0 if not printed: best and average with deviation on CIFAR-10, top-1 and top-5 on
	// ImageNet.
	Best       float64
	Average    number
	Top1, Top5 float64
	extra      bool // it is not in the paper's table

	IDs rowIDs
}

// rowIDs are the ids of the claims about a line, in the form of verdict.Claim. There are none about P-DARTS.
type rowIDs struct{ Params, Best, Average, Top1, Top5 string }

// listed puts ids before the name of a claim; without ids it is marked as ours.
func listed(ids, name string) string {
	if ids == "" {
		return "own: " + name
	}
	return "[" + ids + "] " + name
}

// otherRow is a line of Table 4 whose network is not of the DARTS space, or whose cell is not published.
type otherRow struct {
	Network    string
	Best       float64 // test errors in percent, 0 where none is printed
	Average    number
	Params     float64 // millions
	Cost       string  // GPU days
	Comparable string  // whether its search space is DARTS': "Y", "N", or "–" where nothing was searched
	Method     string
}

type cellLine struct {
	cellRow
	cell *lab.Group[cell]
}

func (l cellLine) errors(value string) []float64 {
	if l.cell == nil {
		return nil
	}
	return errorsOf(l.cell.Records, value)
}

// parameters are those of a line's network; 0: its cell is not known.
func (l cellLine) parameters() int {
	if l.cell == nil {
		return 0
	}
	return l.cell.Trial.parameters
}

// linesOf are the rows of a table: the published ones of the given cells in the table's order, then the reader's own.
func linesOf(table []cellRow, cells lab.Groups[cell]) (lines []cellLine) {
	known := map[string]bool{"": true}
	for _, row := range table {
		known[row.Genotype] = true
		at := slices.IndexFunc(cells, func(g lab.Group[cell]) bool { return g.Trial.name == row.Genotype })
		if at >= 0 {
			lines = append(lines, cellLine{row, &cells[at]})
		} else if row.Genotype == "" {
			lines = append(lines, cellLine{row, nil})
		}
	}
	for i, g := range cells {
		name := g.Trial.name
		if known[name] {
			continue
		}
		row := cellRow{Method: name, Genotype: name, extra: true}
		if p, ok := supernet.Published[name]; ok {
			row.Method = p.Method + " (" + p.Searched + ")"
		}
		lines = append(lines, cellLine{row, &cells[i]})
	}
	return lines
}

// publishedOneShot are the curves of Figure 2 as numbers, by space and search; see its field source. They were not
// compared with the printed figure.
type publishedOneShot struct {
	Source string
	Before map[string]float64 // dashed: regret of the best search of Zela+ 2020
	Regret map[string]map[string]regretCurve
}

// regretCurve is a test regret, as a fraction, from epoch 1: the mean of four searches ± one standard deviation
// (divisor n).
type regretCurve struct {
	Mean []float64
	Hi   []float64
	Lo   []float64
}

var publishedOneShotCurves = sync.OnceValue(readPublished[publishedOneShot]("published_oneshot.json"))

// tested are the settings of a preset, which fail in a test if at all.
func tested(s search.Settings, err error) search.Settings {
	if err != nil {
		panic(err)
	}
	return s
}

func table2Settings() []runs.Claim {
	const c3, section44 = "Li+ 2021, Appendix C.3", "Li+ 2021, Section 4.4"
	of := func(w row) search.Settings { return tested(Table2Paper.settings(w)) }
	gaea, gdas, published := of("gaea-darts"), of("gaea-gdas"), of("gdas")
	claims := []runs.Claim{
		verdict.Setting("[LI057] NAS-Bench-201: architectures", section44, data.Archs201, 15625),
		verdict.Setting("[LI239] GAEA DARTS: step size of the architecture", "Li+ 2021, Section 4", gaea.ArchRate, 0.1),
		verdict.Setting("[LI239] GAEA DARTS: weight decay of the architecture", "Li+ 2021, Section 4",
			gaea.ArchWeightDecay, 0.),
		verdict.Setting("[LI243] GAEA GDAS: step size of the architecture", c3, gdas.ArchRate, 0.1),
		verdict.Setting("[LI244] GAEA GDAS: epochs", c3, gdas.Epochs, 150),
		verdict.Setting("[LI244] GDAS: epochs", c3, published.Epochs, 250),
		verdict.Setting("[LI246] GAEA DARTS: step size of the architecture", c3, gaea.ArchRate, 0.1),
		verdict.Setting("[LI246] GAEA DARTS: epochs", c3, gaea.Epochs, 25),
	}
	for _, w := range []row{"gaea-darts", "gaea-darts/erm", "darts", "darts/erm"} {
		claims = append(claims, verdict.Setting("[LI247] "+w.title()+": operations of an edge", c3,
			len(supernet.Spaces[of(w).Space].Without(of(w).Without...).Ops), 4))
	}
	claims = append(claims, weightSettings(gaea, c3)...)
	return append(claims,
		verdict.Setting("[LI009] RSPS holds an architecture that it moves", "Li+ 2021, Section 2.2",
			search.Methods["rsps"].Hold != search.Nothing, false))
}

func weightSettings(s search.Settings, source string) []runs.Claim {
	return []runs.Claim{
		verdict.Setting("[LI248] batch", source, s.Batch, 64),
		verdict.Setting("[LI248] learning rate at the start", source, s.LearningRate, 0.025),
		verdict.Setting("[LI248] learning rate at the end of the cosine", source, s.LearningRateMin, 0.001),
		verdict.Setting("[LI248] momentum", source, s.Momentum, 0.9),
		verdict.Setting("[LI248] weight decay", source, s.WeightDecay, 3e-4),
		verdict.Setting("[LI248] initial channels", source, s.Channels, 16),
		verdict.Setting("[LI248] cells of each stage", source, s.Cells, 5),
		verdict.Setting("[LI248] largest gradient norm", source, s.Bilevel.Clip, 5),
	}
}

func table1Settings() []runs.Claim {
	const source = "Li+ 2021, Appendix C.1.1"
	s := tested(search.AsPaperOn(supernet.DARTS.Name, "gaea-pc-darts"))
	return []runs.Claim{
		verdict.Setting("[LI229] cells of the search", source, s.Cells, 8),
		verdict.Setting("[LI229] initial channels of the search", source, s.Channels, 16),
		verdict.Setting("[LI230] batch of the search", source, s.Batch, 256),
		verdict.Setting("[LI230] learning rate at the start", source, s.LearningRate, 0.1),
		verdict.Setting("[LI230] learning rate at the end of the cosine", source, s.LearningRateMin, 0.),
		verdict.Setting("[LI230] momentum", source, s.Momentum, 0.9),
		verdict.Setting("[LI230] weight decay", source, s.WeightDecay, 3e-4),
		verdict.Setting("[LI230] largest gradient norm", source, s.Bilevel.Clip, 5),
		verdict.Setting("[LI230] side of the cutout", source, s.Augment.Cutout, 0),
		verdict.Setting("[LI231] epochs before the architecture moves", source, s.Bilevel.Warmup, 10),
		verdict.Setting("[LI232] step size of EG", source, s.ArchRate, 0.1),
		verdict.Setting("[LI233] the architecture begins", source, s.Start, "uniform"),
	}
}

func table3Settings() []runs.Claim {
	const source = "Li+ 2021, Appendix C.1.3"
	return []runs.Claim{
		verdict.Setting("[LI227] searches of the first stage", "Li+ 2021, Appendix C.1", Table3Paper.Search.Seeds, 5),
		verdict.Setting("[LI236] epochs after which bad candidates are known", source, Table3Paper.Short, 20),
		verdict.Setting("[LI238] candidates that are trained to the end", source, Table3Paper.Kept, 3),
	}
}

func table5Settings() []runs.Claim {
	const source, images = "Li+ 2021, Section 4.2", 1281167. // of ILSVRC-2012, for training
	s := tested(search.Preset(supernet.DARTS.Name, "gaea-pc-darts", "imagenet"))
	share := func(n int) float64 { return math.Round(1000*float64(n)/images) / 10 } // %, as printed
	return []runs.Claim{
		verdict.Setting("[LI042] share of the images for the weights of the search on ImageNet, %", source,
			share(s.Parts.Train), 10.),
		verdict.Setting("[LI042] share for the architecture, %", source, share(s.Parts.Validation), 2.5),
		verdict.Setting("[LI043] epochs before the architecture moves on ImageNet", source, s.Bilevel.Warmup, 35),
		verdict.Setting("[LI044] step size of EG on ImageNet", source, s.ArchRate, 0.1),
		verdict.Setting("[LI045] epochs of the evaluation on ImageNet", source, training.AsPaper["imagenet"].Epochs,
			250),
	}
}
