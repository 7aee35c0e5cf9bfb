package khodak2020

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/khodak2020/internal/mapsearch"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/plots"
)

// drawSignal draws a panel a dimension with one point a configuration (the first
// seed, as the paper's), its colour the kernel and its marker the bandwidth, and one
// with the rank correlations.
func drawSignal(r *figure1, f *lab.Picture) {
	f.Style.Aspect = 1 // both axes are accuracies
	f.Say("Validation accuracy of %d configurations with shared weights and alone (seed 0; dashed: equal), and their "+
		"rank correlations: of all maps, of all on their own part of the validation set, and of those above "+
		"chance; %s.",
		r.Params.Configs, r.Interval("bars", r.Params.Seeds, "seed"))
	var setting []string
	var panels []plots.Panel
	for _, task := range r.Params.Tasks {
		setting = append(setting, examplesOf(r, task).caption("", slices.Max(r.Params.Dims),
			slices.Max(Figure1Paper.Dims)))
		for _, g := range r.Part(task) {
			if at := slices.IndexFunc(g.Records, func(r *runs.Record) bool { return r != nil }); at >= 0 {
				first := g.Records[at]
				p := scatter(task, first, g.Trial.Maps(first.Trial.Seed))
				p.Title = fmt.Sprintf("%s, $d = %d$", r.Params.title(task), g.Trial.Dim)
				panels = append(panels, p)
			}
		}
	}
	f.Say("%s.", strings.Join(setting, "; "))
	for row := range slices.Chunk(append(panels, correlationPanel(r)), 3) {
		if row[0].Y.Label == "" {
			row[0].Y.Label = "accuracy, standalone"
		}
		f.Row(row...)
	}
}

// kindLooks are the kinds of maps of a task, in the order of the legend, scaleNames
// what the number of [mapsearch.Map] is.
var (
	kindLooks = map[string][]struct{ kind, label, color string }{
		mapsearch.ImageTask:  {{"gaussian", "Gaussian", "#0072B2"}, {"laplacian", "Laplacian", "#D55E00"}},
		mapsearch.ReviewTask: {{"nb", "NB", "#009E73"}, {"sif", "SIF", "#CC79A7"}},
	}
	scaleNames = map[string]string{mapsearch.ImageTask: "γ", mapsearch.ReviewTask: "α"}
)

// scaleRanges are equal thirds of the range that the scale is drawn from, on its
// logarithmic axis: 10⁻⁵ to 10⁻³, to 10⁻¹, to 10.
var scaleRanges = []struct {
	label  string // behind the name of the scale
	below  float64
	marker plots.Marker
}{
	{"< 10^{-3}", 1e-3, plots.TriangleDown}, {"< 10^{-1}", 1e-1, plots.Circle},
	{"≤ 10", math.Inf(1), plots.TriangleUp},
}

// scatter is one dimension's configurations.
func scatter(task string, record *runs.Record, maps []mapsearch.Map) plots.Panel {
	p := plots.Panel{X: plots.Axis{Label: "accuracy, shared weights"}}
	x, y := record.Series["shared"], record.Series["alone"]
	p.X.Max = 1.05 * max(slices.Max(x), slices.Max(y))
	p.Y.Max = p.X.Max // the same scale on both, so that the diagonal is one
	for _, look := range kindLooks[task] {
		from := 0.
		for _, scale := range scaleRanges {
			s := plots.Series{
				Label: fmt.Sprintf("%s, $%s %s$", look.label, scaleNames[task], scale.label), Color: look.color,
				Line: plots.NoLine, Marker: scale.marker,
			}
			for i, m := range maps {
				if m.Kind == look.kind && from <= m.Scale && m.Scale < scale.below {
					s.X, s.Y = append(s.X, x[i]), append(s.Y, y[i])
				}
			}
			if from = scale.below; len(s.X) > 0 {
				p.Series = append(p.Series, s)
			}
		}
	}
	p.Series = append(p.Series, plots.Series{
		X: []float64{0, p.X.Max}, Y: []float64{0, p.X.Max}, Reference: true, Line: plots.Dashed,
	})
	return p
}

// correlationPanel is the rank correlation over the dimension.
func correlationPanel(r *figure1) plots.Panel {
	p := plots.Panel{
		Title: "rank correlation", X: plots.Axis{Label: "features $d$", Scale: plots.Log2},
		Y:      plots.Axis{Label: "Spearman's $ρ$", Min: -1, Max: 1}, // with room for a legend
		Legend: plots.Legend{Position: plots.LegendInside},
	}
	for _, task := range r.Params.Tasks {
		for _, kind := range []struct{ label, series string }{
			{"all maps", "shared"}, {"own part", "cell"}, {"above chance", "above"},
		} {
			x, means := means(study.Floats(r.Params.Dims), func(i int) (runs.Summary, error) {
				return verdict.Correlations(present(correlations(r, task, r.Params.Dims[i], kind.series)), r.Confidence)
			})
			label := kind.label
			if len(r.Params.Tasks) > 1 {
				label = r.Params.title(task) + ", " + label
			}
			p.Series = append(p.Series, plots.Bars(label, x, means))
		}
	}
	return p
}
