package li2021

import (
	"embed"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sync"

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
	Source  string                 `json:"source"`
	Entropy map[string][]float64   `json:"entropy"`    // by row, nats
	GAEA    map[string][][]float64 `json:"gaea_darts"` // by data set, four searches, test accuracy in percent
	XNAS    map[string][][]float64 `json:"xnas"`       // likewise; constant stretches are filled in
}

//go:embed published.json published_oneshot.json
var publishedFiles embed.FS

var publishedCurves = sync.OnceValue(readPublished[published]("published.json"))

func readPublished[T any](name string) func() T {
	return func() (of T) {
		text, err := publishedFiles.ReadFile(name)
		if err == nil {
			err = json.Unmarshal(text, &of)
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

type number struct{ mean, std float64 }

type table2Row struct {
	seconds  float64   // search cost on CIFAR-10; 0: not given
	accuracy [3]number // test accuracy in percent: CIFAR-10, CIFAR-100, ImageNet16-120
	first    int       // number of its first row, that of the search cost, in the list of the paper's claims
}

// row is the id of the claim about the accuracy in a column, counted from 0; row(-1) is that about the search cost.
func (r table2Row) row(column int) string { return fmt.Sprintf("LI%03d", r.first+1+column) }

// publishedTable2 is Table 2, by block and row. Some copies of the paper shift GAEA DARTS (ERM), ResNet and Optimal by
// a column.
var publishedTable2 = map[string]map[string]table2Row{
	topBlock: {
		"rea":       {0, [3]number{{93.92, 0.30}, {71.84, 0.99}, {45.54, 1.03}}, 99},
		"rs":        {0, [3]number{{93.70, 0.36}, {71.04, 1.08}, {44.57, 1.25}}, 103},
		"reinforce": {0, [3]number{{93.85, 0.37}, {71.71, 1.09}, {45.25, 1.18}}, 107},
		"bohb":      {0, [3]number{{93.61, 0.52}, {70.85, 1.28}, {44.42, 1.49}}, 111},
	},
	middleBlock: {
		"rsps":            {7587, [3]number{{87.66, 1.69}, {58.33, 4.34}, {31.14, 3.88}}, 115},
		"darts/benchmark": {35781, [3]number{{54.30, 0}, {15.61, 0}, {16.32, 0}}, 119},
		"setn":            {34139, [3]number{{87.64, 0}, {59.05, 0.24}, {32.52, 0.21}}, 123},
		"gdas":            {31609, [3]number{{93.61, 0.09}, {70.70, 0.30}, {41.71, 0.98}}, 127},
		"darts":           {10683, [3]number{{54.30, 0}, {15.32, 0}, {16.38, 0}}, 131},
		"gaea-darts":      {7930, [3]number{{91.63, 2.57}, {68.39, 4.47}, {41.59, 4.20}}, 135},
		"darts/erm":       {18112, [3]number{{84.39, 3.82}, {54.81, 7.08}, {31.82, 4.78}}, 139},
		"gaea-darts/erm":  {9061, [3]number{{94.10, 0.29}, {72.60, 0.89}, {45.81, 0.51}}, 143},
	},
	bottomBlock: {
		"gdas":           {27923, [3]number{{93.52, 0.15}, {67.52, 0.15}, {40.91, 0.12}}, 147},
		"gaea-gdas":      {16754, [3]number{{93.55, 0.13}, {70.47, 0.47}, {40.91, 0.12}}, 151},
		"darts":          {10683, [3]number{{54.30, 0}, {15.32, 0}, {28.96, 10.22}}, 155},
		"gaea-darts":     {7930, [3]number{{91.63, 2.57}, {71.87, 0.57}, {45.69, 0.56}}, 159},
		"darts/erm":      {18112, [3]number{{84.39, 3.82}, {51.26, 6.14}, {31.35, 7.46}}, 163},
		"gaea-darts/erm": {9061, [3]number{{94.10, 0.29}, {73.43, 0.13}, {46.36, 0}}, 167},
	},
	referenceBlock: {
		"ResNet":  {0, [3]number{{93.97, 0}, {70.86, 0}, {43.63, 0}}, 171},
		"Optimal": {0, [3]number{{94.37, 0}, {73.51, 0}, {47.31, 0}}, 175},
	},
}

// cellRow is a line of Tables 1, 4 and 5 whose cell lies in the DARTS space.
type cellRow struct {
	method   string
	genotype string  // a name of supernet.Published; empty: not published
	params   float64 // millions, as printed
	cost     string  // GPU days

	// Test errors in percent, 0 if not printed: best and average with deviation on CIFAR-10, top-1 and top-5 on
	// ImageNet.
	best       float64
	average    number
	top1, top5 float64
	extra      bool // it is not in the paper's table

	ids rowIDs
}

// rowIDs are the ids of the claims about a line, in the form of verdict.Claim. There are none about P-DARTS.
type rowIDs struct{ params, best, average, top1, top5 string }

// listed puts ids before the name of a claim; without ids it is marked as ours.
func listed(ids, name string) string {
	if ids == "" {
		return "own: " + name
	}
	return "[" + ids + "] " + name
}

// publishedCIFAR are the lines of Table 4, whose errors are Table 1's.
var publishedCIFAR = []cellRow{
	{method: "RS-WS", params: 3.8, cost: "0.7", best: 2.71, average: number{2.85, 0.08},
		ids: rowIDs{params: "LI187", best: "LI063 LI185", average: "LI064 LI186"}},
	{method: "DARTS (1st order)", genotype: "DARTS_V1", params: 3.3, cost: "0.4", average: number{3.00, 0.14},
		ids: rowIDs{params: "LI191", average: "LI070 LI190"}},
	{method: "DARTS (2nd order)", genotype: "DARTS_V2", params: 3.3, cost: "1", average: number{2.76, 0.09},
		ids: rowIDs{params: "LI195", average: "LI076 LI194"}},
	{method: "PDARTS", genotype: "PDARTS", params: 3.4, cost: "0.3", best: 2.50},
	{method: "PC-DARTS", genotype: "PC_DARTS_cifar", params: 3.6, cost: "0.1", average: number{2.57, 0.07},
		ids: rowIDs{params: "LI199", average: "LI082 LI198"}},
	{method: "GAEA PC-DARTS", genotype: "GAEA_PC_DARTS_cifar", params: 3.7, cost: "0.1", best: 2.39,
		average: number{2.50, 0.06},
		ids:     rowIDs{params: "LI203", best: "LI087 LI201", average: "LI008 LI088 LI202"}},
}

// publishedImageNet are the lines of Table 5, whose errors are Table 1's.
var publishedImageNet = []cellRow{
	{method: "DARTS (2nd order)", genotype: "DARTS_V2", params: 4.7, cost: "4.0", top1: 26.7, top5: 8.7,
		ids: rowIDs{params: "LI207", top1: "LI078 LI205", top5: "LI079 LI206"}},
	{method: "PDARTS", genotype: "PDARTS", params: 4.9, cost: "0.3", top1: 24.4, top5: 7.4},
	{method: "PC-DARTS (CIFAR-10)", genotype: "PC_DARTS_cifar", params: 5.3, cost: "0.1", top1: 25.1, top5: 7.8,
		ids: rowIDs{params: "LI211", top1: "LI093 LI209", top5: "LI094 LI210"}},
	{method: "PC-DARTS (ImageNet)", genotype: "PC_DARTS_image", params: 5.3, cost: "3.8", top1: 24.2, top5: 7.3,
		ids: rowIDs{params: "LI215", top1: "LI048 LI084 LI213", top5: "LI085 LI214"}},
	{method: "GAEA PC-DARTS (CIFAR-10)", genotype: "GAEA_PC_DARTS_cifar", params: 5.3, cost: "0.1", top1: 24.3,
		top5: 7.3, ids: rowIDs{params: "LI219", top1: "LI096 LI217", top5: "LI097 LI218"}},
	{method: "GAEA PC-DARTS (ImageNet)", genotype: "GAEA_PC_DARTS_image", params: 5.6, cost: "3.8", top1: 24.0,
		top5: 7.3, ids: rowIDs{params: "LI223", top1: "LI046 LI090 LI221", top5: "LI091 LI222"}},
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
		known[row.genotype] = true
		at := slices.IndexFunc(cells, func(g lab.Group[cell]) bool { return g.Trial.name == row.genotype })
		if at >= 0 {
			lines = append(lines, cellLine{row, &cells[at]})
		} else if row.genotype == "" {
			lines = append(lines, cellLine{row, nil})
		}
	}
	for i, g := range cells {
		name := g.Trial.name
		if known[name] {
			continue
		}
		row := cellRow{method: name, genotype: name, extra: true}
		if p, ok := supernet.Published[name]; ok {
			row.method = p.Method + " (" + p.Searched + ")"
		}
		lines = append(lines, cellLine{row, &cells[i]})
	}
	return lines
}

// publishedOneShot are the curves of Figure 2 as numbers, by space and search; see its field source. They were not
// compared with the printed figure.
type publishedOneShot struct {
	Source string                            `json:"source"`
	Before map[string]float64                `json:"before"` // dashed: regret of the best search of Zela+ 2020
	Regret map[string]map[string]regretCurve `json:"regret"`
}

// regretCurve is a test regret, as a fraction, from epoch 1: the mean of four searches ± one standard deviation
// (divisor n).
type regretCurve struct {
	Mean []float64 `json:"mean"`
	Hi   []float64 `json:"hi"`
	Lo   []float64 `json:"lo"`
}

var publishedOneShotCurves = sync.OnceValue(readPublished[publishedOneShot]("published_oneshot.json"))

type deviation struct {
	Largest float64 // absolute difference
	At      float64 // its epoch
	Mean    float64 // absolute difference
	Epochs  int
}

// deviate compares a curve with another, whose first point is of the epoch first.
func deviate(x, y []float64, theirs []float64, first int) deviation {
	var d deviation
	for i, epoch := range x {
		j := int(epoch) - first
		if j < 0 || j >= len(theirs) {
			continue
		}
		apart := math.Abs(y[i] - theirs[j])
		if d.Epochs == 0 || apart > d.Largest {
			d.Largest, d.At = apart, epoch
		}
		d.Mean += apart
		d.Epochs++
	}
	if d.Epochs > 0 {
		d.Mean /= float64(d.Epochs)
	}
	return d
}

func table2Settings() []runs.Claim {
	const c3, section44 = "Li+ 2021, Appendix C.3", "Li+ 2021, Section 4.4"
	of := func(w row) search.Settings {
		s, err := Table2Paper.settings(w)
		if err != nil {
			panic(err) // of a preset that a test runs
		}
		return s
	}
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
	s, err := search.AsPaperOn(supernet.DARTS.Name, "gaea-pc-darts")
	if err != nil {
		panic(err) // of a preset that is shipped
	}
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
	s, err := search.Preset(supernet.DARTS.Name, "gaea-pc-darts", "imagenet")
	if err != nil {
		panic(err) // of a preset that is shipped
	}
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
