package khodak2020

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/plots"
)

// column is one number of a series over the records of a part, a seed each.
func (r *Corollary31Result) column(part, series string, at int) []float64 {
	var out []float64
	for _, record := range r.parts[part] {
		if s := record.Series[series]; at < len(s) {
			out = append(out, s[at])
		}
	}
	return out
}

// value is one value over the records of a part.
func (r *Corollary31Result) value(part, name string) []float64 {
	var out []float64
	for _, record := range r.parts[part] {
		out = append(out, record.Values[name])
	}
	return out
}

// at is the place of |V| number v and |C| number k in a selection's series.
func (r *Corollary31Result) at(v, k int) int { return v*len(r.Params.Counts) + k }

// curve is a mean over the seeds at every x, with its interval, as drawn: on a
// logarithmic axis a lower end at or below 0 is cut off at a tenth of the mean.
func (r *Corollary31Result) curve(label string, xs []float64, columns [][]float64, log bool) plots.Series {
	var x []float64
	var means []runs.Summary
	for i, column := range columns {
		s, err := runs.Summarize(column, r.Params.Confidence)
		if err != nil || (log && s.Mean <= 0) {
			continue
		}
		if log && s.Lo.Valid() && float64(s.Lo) <= s.Mean/10 {
			s.Lo = runs.Number(s.Mean / 10)
		}
		x, means = append(x, xs[i]), append(means, s)
	}
	return plots.Bars(label, x, means)
}

func floats(xs []int) []float64 {
	out := make([]float64, len(xs))
	for i, x := range xs {
		out[i] = float64(x)
	}
	return out
}

// Figure draws six panels: the excess risk of the best configuration over |T|;
// the cost of the choice over |V| with Theorem A.2's bound; the deviation over
// |C| where the theory is tight; random features of a kernel; bilevel against
// joint ERM; and the version entropy.
func (r *Corollary31Result) Figure() plots.Figure {
	return plots.Figure{
		Name: "khodak2020-corollary31", Style: plots.ICML.Text(),
		Caption: fmt.Sprintf("Means over %d seeds with %v %% intervals. Labels ±1, squared loss of predictions clipped to [−1, 1], population risks exact. (a) to (c): $d = %d$, $δ = %v$. (e), (f): $|T| = |V| = %d$, $d = %d$.",
			r.Params.Seeds, 100*r.Params.Confidence, r.Params.Dim, r.Params.Delta, r.Params.JointSize, r.Params.JointDim),
		Panels: [][]plots.Panel{
			{r.trainPanel(), r.validPanel(), r.tightPanel()},
			{r.kernelPanel(), r.jointPanel(), r.coverPanel()},
		},
		Meta: meta(corollary31Title, r.Scale, r.Params),
	}
}

func below(p plots.Panel) plots.Panel {
	p.Legend.Position = plots.LegendInside
	return p
}

var readings = map[string]string{"mean": "$λ$ of the mean loss", "sum": "$λ$ of the summed loss"}

// trainColumns is the excess risk of the trained c* at every |T|.
func (r *Corollary31Result) trainColumns(reading string) [][]float64 {
	var columns [][]float64
	for _, n := range r.Params.Train {
		columns = append(columns, r.value(selectionName(reading, n), "best"))
	}
	return columns
}

// rateA1 is √((‖w*‖²+1)/|T|·log(1/δ)) with the mean ‖w*‖² of the seeds.
func (r *Corollary31Result) rateA1(n int) float64 {
	norms := r.value(selectionName("mean", r.Params.At), "norm")
	if len(norms) == 0 {
		return math.NaN()
	}
	return math.Sqrt((stat.Mean(norms, nil) + 1) / float64(n) * math.Log(1/r.Params.Delta))
}

func (r *Corollary31Result) trainPanel() plots.Panel {
	p := plots.Panel{
		Title: "(a) training, Cor. A.1",
		X:     plots.Axis{Label: "$|T|$", Scale: plots.Log2}, Y: plots.Axis{Label: "excess risk of $c^*$", Scale: plots.Log10},
	}
	xs := floats(r.Params.Train)
	for _, reading := range []string{"mean", "sum"} {
		p.Series = append(p.Series, r.curve(readings[reading], xs, r.trainColumns(reading), true))
	}
	if rate := r.rateA1(1); !math.IsNaN(rate) {
		p.Series = append(p.Series, reference("the bound's rate, constant 1", xs, func(x float64) float64 { return rate / math.Sqrt(x) }))
	}
	return below(p)
}

// reference is a line that is not ours.
func reference(label string, xs []float64, f func(float64) float64) plots.Series {
	s := plots.Series{Label: label, X: xs, Reference: true}
	for _, x := range xs {
		s.Y = append(s.Y, f(x))
	}
	return s
}

// validColumns is a series of the selection at p.At and the largest |C|, by
// |V|, with λ of the summed loss.
func (r *Corollary31Result) validColumns(series string) [][]float64 {
	var columns [][]float64
	for v := range r.Params.Valid {
		columns = append(columns, r.column(selectionName("sum", r.Params.At), series, r.at(v, len(r.Params.Counts)-1)))
	}
	return columns
}

func (r *Corollary31Result) validPanel() plots.Panel {
	most := r.Params.Counts[len(r.Params.Counts)-1]
	p := plots.Panel{
		Title: fmt.Sprintf("(b) choice of %d", most),
		X:     plots.Axis{Label: "$|V|$", Scale: plots.Log2}, Y: plots.Axis{Label: "risk", Scale: plots.Log10},
	}
	xs := floats(r.Params.Valid)
	p.Series = append(p.Series,
		r.curve("excess over the best trained $c$", xs, r.validColumns("selection"), true),
		r.curve(`$\ell_D − \ell_V$ of the choice`, xs, r.validColumns("gap"), true))
	bound := plots.Series{Label: "bound of Theorem A.2", Reference: true}
	for i, column := range r.validColumns("bound") {
		if len(column) > 0 {
			bound.X, bound.Y = append(bound.X, xs[i]), append(bound.Y, stat.Mean(column, nil))
		}
	}
	p.Series = append(p.Series, bound)
	return below(p)
}

// tightRatios are gap·√(2|V|/log 2|C|), by |C|.
func (r *Corollary31Result) tightRatios() [][]float64 {
	var columns [][]float64
	for k, count := range r.Params.TightCounts {
		var column []float64
		for _, gap := range r.column("uniform", "gap", k) {
			column = append(column, gap*math.Sqrt(2*float64(r.Params.TightValid)/math.Log(2*float64(count))))
		}
		columns = append(columns, column)
	}
	return columns
}

func (r *Corollary31Result) tightPanel() plots.Panel {
	xs := floats(r.Params.TightCounts)
	p := plots.Panel{
		Title: "(c) tight case",
		X:     plots.Axis{Label: "$|C|$", Scale: plots.Log2}, Y: plots.Axis{Label: "gap over its bound", Min: 0, Max: 1.1},
	}
	p.Series = append(p.Series, r.curve("independent losses", xs, r.tightRatios(), false), plots.HLine(`$√(\log(2|C|)/2|V|)$`, 1))
	return below(p)
}

func (r *Corollary31Result) kernelColumns(factor int) [][]float64 {
	var columns [][]float64
	for _, n := range r.Params.KernelTrain {
		columns = append(columns, r.column(kernelName(n), "excess", factor))
	}
	return columns
}

func (r *Corollary31Result) kernelPanel() plots.Panel {
	xs := floats(r.Params.KernelTrain)
	p := plots.Panel{
		Title: "(d) kernels, Cor. A.3",
		X:     plots.Axis{Label: "$|T| = |V|$", Scale: plots.Log2}, Y: plots.Axis{Label: "excess risk", Scale: plots.Log10},
	}
	for i, kappa := range r.Params.KernelFactor {
		p.Series = append(p.Series, r.curve(fmt.Sprintf("$κ = %v$", kappa), xs, r.kernelColumns(i), true))
	}
	return below(p)
}

func (r *Corollary31Result) jointColumns(series string) [][]float64 {
	var columns [][]float64
	for i := range r.Params.JointLambda {
		columns = append(columns, r.column("joint", series, i))
	}
	return columns
}

func (r *Corollary31Result) jointPanel() plots.Panel {
	// λ = 0 has no place on a logarithmic axis: it stands a decade below the
	// smallest one.
	xs, smallest := slices.Clone(r.Params.JointLambda), math.Inf(1)
	for _, v := range xs {
		if v > 0 {
			smallest = min(smallest, v)
		}
	}
	label := "$λ$"
	for i, v := range xs {
		if v == 0 {
			label = "$λ$ (0 at the left end)"
			if math.IsInf(smallest, 1) {
				smallest = 1
			}
			xs[i] = smallest / 10
		}
	}
	p := plots.Panel{
		Title: "(e) bilevel and joint ERM",
		X:     plots.Axis{Label: label, Scale: plots.Log10}, Y: plots.Axis{Label: "excess risk", Scale: plots.Log10},
	}
	p.Series = append(p.Series,
		r.curve("joint ERM", xs, r.jointColumns("joint"), true),
		r.curve("bilevel", xs, r.jointColumns("bilevel"), true),
		r.curve("best trained $c$", xs, r.jointColumns("best"), true))
	return below(p)
}

func (r *Corollary31Result) coverPanel() plots.Panel {
	p := plots.Panel{
		Title: "(f) version entropy",
		X:     plots.Axis{Label: "$ε$", Scale: plots.Log10}, Y: plots.Axis{Label: "$Λ$ (nats)"},
	}
	for _, s := range []struct{ label, series string }{
		{"strongly convex, all of $C$", "upper"}, {"one $c$ without regularisation", "unregularised"},
	} {
		var columns [][]float64
		for i := range r.Params.Scales {
			columns = append(columns, r.column("cover", s.series, i))
		}
		p.Series = append(p.Series, r.curve(s.label, r.Params.Scales, columns, false))
	}
	p.Series = append(p.Series, plots.HLine(`$\log|C|$`, math.Log(float64(slices.Max(r.Params.Counts)))))
	return below(p)
}
