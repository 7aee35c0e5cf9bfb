package oymak2021

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/plots"
)

// thm3Names are the sources' names in pictures.
var thm3Names = map[string]string{
	thm3Cap: "margin", thm3Flipped: "margin, flipped labels", thm3Product: "product", thm3Images: "digits",
}

// Figure shows, row by row: the network against its kernel over the width, the
// training error of the worst α over the steps, and the steps taken over
// those that suffice; the data-dependent term and the risk of α̂ over n_T, and
// the validation gap over n_V; that gap over h, and the term and the test
// error for labels along the kernel's eigenvectors.
func (r *Theorem3Result) Figure() plots.Figure {
	return plots.Figure{
		Name: "oymak2021-theorem3", Caption: r.caption(), Style: plots.ICML.Text(),
		Meta: map[string]string{"title": theorem3Title, "params": thm3Hash(r.Params), "scale": thm3ScaleName(r.Scale)},
		Panels: [][]plots.Panel{
			{r.widthPanel(), r.stepPanel(), r.trainPanel("(c) steps to error $ε$, worst $α$", "taken / sufficient", plots.Log10, r.worstRatio)},
			{r.trainPanel("(d) data-dependent term", `$2B(y^⊤K_α^{-1}y/n_T)^{1/2}$, best $α$`, plots.Log10, r.bestTerm), r.trainPanel("(e) risk of $α̂$", "0-1 risk", plots.Linear, r.selectedRisk), r.validationPanel()},
			{r.sizePanel(), r.rankPanel("(h) alignment: term", `$2B(y^⊤K_α^{-1}y/n_T)^{1/2}$`, plots.Log10, "term"), r.rankPanel("(i) alignment: test error", "0-1 test error", plots.Linear, "error")},
		},
	}
}

func (r *Theorem3Result) caption() string {
	p := r.Params
	text := fmt.Sprintf("$σ_α$ over %s; means over %d seeds with %v %% intervals. "+
		"(a) and (b): $n_T = %d$ product examples; (c)–(e): $k = %d$; (f) and (g): kernels of infinite width, product, $n_T = %d$.",
		strings.Join(p.Activations, ", "), p.Seeds, 100*p.Confidence, p.WidthTrain, p.Width, p.SizeTrain)
	text += " $K_α$ is divided by $c_0$. Slopes: the rates of the theorem, whose constants are unknown."
	if r.synthetic {
		text += " SYNTHETIC DIGITS, not real ones."
	}
	return text
}

// logMean is a mean of logarithms with its interval, as a value on a log axis;
// where a value is not positive there is none.
type logMean struct{ y, lo, hi float64 }

func (m logMean) Bounds() (y, lo, hi float64) { return m.y, m.lo, m.hi }

func thm3LogMean(values []float64, confidence float64) (logMean, bool) {
	logs := make([]float64, len(values))
	for i, v := range values {
		if !(v > 0) {
			return logMean{}, false
		}
		logs[i] = math.Log(v)
	}
	s, err := runs.Summarize(logs, confidence)
	if err != nil {
		return logMean{}, false
	}
	m := logMean{math.Exp(s.Mean), math.NaN(), math.NaN()}
	if s.Lo.Valid() && s.Hi.Valid() {
		m.lo, m.hi = math.Exp(float64(s.Lo)), math.Exp(float64(s.Hi))
	}
	return m, true
}

// curve is a series of means over seeds, values[i] those at xs[i].
func thm3Curve(label string, xs []float64, values [][]float64, scale plots.Scale, confidence float64) plots.Series {
	var at []float64
	var means []logMean
	for i, x := range xs {
		m, ok := thm3LogMean(values[i], confidence)
		if scale == plots.Linear {
			s, err := runs.Summarize(values[i], confidence)
			m, ok = logMean{s.Mean, float64(s.Lo), float64(s.Hi)}, err == nil
		}
		if ok {
			at, means = append(at, x), append(means, m)
		}
	}
	return plots.Bars(label, at, means)
}

// thm3Power is the line through the first point of a series with a slope.
func thm3Power(label string, s plots.Series, slope float64) plots.Series {
	ref := plots.Series{Label: label, Reference: true}
	for _, x := range s.X {
		ref.X = append(ref.X, x)
		ref.Y = append(ref.Y, s.Y[0]*math.Pow(x/s.X[0], slope))
	}
	return ref
}

// overAlphas is the largest of a series, record by record.
func overAlphas(records []*runs.Record, series string) []float64 {
	var values []float64
	for _, r := range records {
		values = append(values, slices.Max(r.Series[series]))
	}
	return values
}

func (r *Theorem3Result) overWidths(series string) [][]float64 {
	var values [][]float64
	for _, records := range r.widths {
		values = append(values, overAlphas(records, series))
	}
	return values
}

func (r *Theorem3Result) widthPanel() plots.Panel {
	p := r.Params
	gap := thm3Curve(`largest $|f − f_{\mathrm{lin}}|$`, thm3Floats(p.Widths), r.overWidths("gap"), plots.Log10, p.Confidence)
	moved := thm3Curve(`largest $\|W_T − W_0\|/\|W_0\|$`, thm3Floats(p.Widths), r.overWidths("movement"), plots.Log10, p.Confidence)
	return plots.Panel{
		Title: "(a) network and kernel", X: plots.Axis{Label: "width $k$", Scale: plots.Log10}, Y: plots.Axis{Label: "worst $α$", Scale: plots.Log10},
		Series: []plots.Series{gap, moved, thm3Power("slope $∓1/2$", moved, -0.5)},
	}
}

// stepPanel draws the curves of at most four widths, the narrowest and the
// widest among them.
func (r *Theorem3Result) stepPanel() plots.Panel {
	p := r.Params
	panel := plots.Panel{
		Title: "(b) training, all $α$", X: plots.Axis{Label: "gradient step $τ$ + 1", Scale: plots.Log10},
		Y: plots.Axis{Label: "0-1 error, worst $α$", Min: -0.03, Max: 1},
	}
	for _, i := range spread(len(p.Widths), 4) {
		s := plots.Series{Label: fmt.Sprintf("$k = %d$", p.Widths[i])}
		for step := 0.0; step <= float64(p.Steps); step = max(step+1, math.Floor(1.25*step)) {
			var values []float64
			for _, record := range r.widths[i] {
				values = append(values, record.Series["errors"][int(step)])
			}
			s.X, s.Y = append(s.X, step+1), append(s.Y, stat.Mean(values, nil))
		}
		panel.Series = append(panel.Series, s)
	}
	return panel
}

// spread are at most m places of 0…n−1 with both ends.
func spread(n, m int) []int {
	var places []int
	for i := range min(n, m) {
		at := 0
		if m > 1 && n > 1 {
			at = i * (n - 1) / (min(n, m) - 1)
		}
		places = append(places, at)
	}
	return places
}

// worstRatio is the largest number of steps taken over those that suffice,
// record by record, of the runs that tell.
func (r *Theorem3Result) worstRatio(records []*runs.Record) []float64 {
	var values []float64
	for _, record := range records {
		ratios, _ := stepRatios([]*runs.Record{record}, r.Params.Steps)
		values = append(values, slices.Max(append(ratios, 0)))
	}
	return values
}

// bestTerm is min_α of the term, record by record.
func (r *Theorem3Result) bestTerm(records []*runs.Record) []float64 {
	var values []float64
	for _, record := range records {
		values = append(values, slices.Min(record.Series["term"]))
	}
	return values
}

// selectedRisk is the mean risk of α̂ with the largest validation set.
func (r *Theorem3Result) selectedRisk(records []*runs.Record) []float64 {
	var values []float64
	for _, record := range records {
		s := record.Series["selected"]
		values = append(values, s[len(s)-1])
	}
	return values
}

func (r *Theorem3Result) trainPanel(title, label string, scale plots.Scale, of func([]*runs.Record) []float64) plots.Panel {
	p := r.Params
	panel := plots.Panel{Title: title, X: plots.Axis{Label: "training examples $n_T$", Scale: plots.Log2}, Y: plots.Axis{Label: label, Scale: scale}}
	for _, n := range p.Trains {
		panel.X.Ticks = append(panel.X.Ticks, plots.Tick{Value: float64(n), Label: fmt.Sprint(n)})
	}
	for _, source := range p.sources() {
		var values [][]float64
		for _, records := range r.trains[source] {
			values = append(values, of(records))
		}
		s := thm3Curve(thm3Names[source], thm3Floats(p.Trains), values, scale, p.Confidence)
		panel.Series = append(panel.Series, s)
		if source == thm3Cap && strings.HasPrefix(title, "(d)") && len(s.X) > 0 {
			defer func() { panel.Series = append(panel.Series, thm3Power("slope $∓1/2$", s, -0.5)) }()
		}
	}
	return panel
}

// overValidations are a series over n_V, [n_V][seed].
func overValidations(records []*runs.Record, series string) [][]float64 {
	values := make([][]float64, len(records[0].Series[series]))
	for _, record := range records {
		for i, v := range record.Series[series] {
			values[i] = append(values[i], v)
		}
	}
	return values
}

func (r *Theorem3Result) validationPanel() plots.Panel {
	p := r.Params
	records := r.sizes[len(r.sizes)-1]
	sup := thm3Curve("$\\sup_α|L − L_V|$", thm3Floats(p.Validations), overValidations(records, "sup"), plots.Log10, p.Confidence)
	excess := thm3Curve("$L(α̂) − \\min_α L$", thm3Floats(p.Validations), overValidations(records, "excess"), plots.Log10, p.Confidence)
	return plots.Panel{
		Title: fmt.Sprintf("(f) validation, $h = %d$", p.Sizes[len(p.Sizes)-1]), X: plots.Axis{Label: "validation examples $n_V$", Scale: plots.Log10}, Y: plots.Axis{Label: "hinge loss", Scale: plots.Log10},
		Series: []plots.Series{sup, excess, thm3Power("slope $∓1/2$", sup, -0.5)},
	}
}

func (r *Theorem3Result) sizePanel() plots.Panel {
	p := r.Params
	panel := plots.Panel{Title: "(g) search spaces", X: plots.Axis{Label: "activations $h$", Scale: plots.Log2}, Y: plots.Axis{Label: `$\sup_α|L − L_V|$`, Scale: plots.Log10}}
	for _, at := range spread(len(p.Validations), 3) {
		var values [][]float64
		for _, records := range r.sizes {
			values = append(values, overValidations(records, "sup")[at])
		}
		s := thm3Curve(fmt.Sprintf("$n_V = %d$", p.Validations[at]), thm3Floats(p.Sizes), values, plots.Log10, p.Confidence)
		panel.Series = append(panel.Series, s)
		if at == 0 {
			defer func() { panel.Series = append(panel.Series, thm3Power("slope $∓1/2$", s, 0.5)) }()
		}
	}
	for _, h := range p.Sizes {
		panel.X.Ticks = append(panel.X.Ticks, plots.Tick{Value: float64(h), Label: fmt.Sprint(h)})
	}
	return panel
}

func (r *Theorem3Result) rankPanel(title, label string, scale plots.Scale, series string) plots.Panel {
	p := r.Params
	panel := plots.Panel{Title: title, X: plots.Axis{Label: "labels: sign of eigenvector", Scale: plots.Log10}, Y: plots.Axis{Label: label, Scale: scale}}
	for _, source := range p.RankWorld {
		records := r.ranks[source]
		panel.Series = append(panel.Series, thm3Curve(thm3Names[source], thm3Floats(p.Ranks), overValidations(records, series), scale, p.Confidence))
		panel.Series = append(panel.Series, plots.HLine("random labels", thm3Mean(records, "random_"+series)))
	}
	return panel
}
