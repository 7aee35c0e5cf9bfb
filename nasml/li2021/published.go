package li2021

import (
	"embed"
	"encoding/json"
	"fmt"
	"sync"

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

// number is a mean with its deviation as Table 2 prints it.
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
