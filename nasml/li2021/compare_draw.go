package li2021

import (
	"fmt"
	"slices"

	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/plots"
)

// Table is the comparison with its table only, for LaTeX.
func (r *Comparison) Table() *Comparison { return r.seenAs("table") }

// Curves is the comparison with its curves only.
func (r *Comparison) Curves() *Comparison { return r.seenAs("curves") }

func (r *Comparison) seenAs(view string) *Comparison {
	of := *r
	of.view = view
	return &of
}

// Figure draws, after each epoch, the accuracy of the current architecture and the entropy of θ, as means with
// intervals over seeds, above a table of the final values.
func (r *Comparison) Figure() plots.Figure {
	f := plots.Figure{Name: "comparison", Style: plots.ICLR, Caption: r.caption()}
	title := "Own methods beside others"
	if r.Tabular {
		title += " on NAS-Bench-201"
	}
	f.Meta = study.Meta(title, r.Params.Preset, r.Params)
	if r.view != "table" {
		f.Panels = append(f.Panels, []plots.Panel{r.accuracies(), r.entropies()})
	}
	if r.view != "curves" {
		f.Panels = append(f.Panels, []plots.Panel{{Table: r.table()}})
	}
	if r.view != "" {
		f.Name += "-" + r.view
	}
	return f
}

func (r *Comparison) caption() string {
	text := "Accuracies are those of the shared weights under the architecture that was found, on the images of the " +
		"architecture: no table has this space."
	if r.Tabular {
		text = fmt.Sprintf("Accuracies on %s are the table's, after 200 epochs of training; regret is to its best, "+
			"%.2f %%.", lookupSets[r.Params.column()].title, r.Optimum)
	}
	p := r.Params
	return fmt.Sprintf("%s Means; %s. %s", text, lab.Interval("band", p.Seeds, "seed", p.Confidence),
		searchCaption(r.Params.SearchParams, r.searches, r.Params))
}

// accuracies are the curves of the searches, and the mean of what queries the table as a line.
func (r *Comparison) accuracies() plots.Panel {
	p := plots.Panel{X: plots.Axis{Label: "epochs"}, Y: plots.Axis{Label: "accuracy (%)"}}
	last := 0.
	for _, c := range r.Rows {
		if len(c.epochs) > 0 {
			last = max(last, c.epochs[len(c.epochs)-1])
			means := between(0, 100)(summaries(c.curves, r.Params.Confidence))
			p.Series = append(p.Series, plots.Band(c.Title, c.epochs[:len(means)], means))
		}
	}
	for _, c := range r.Rows {
		if c.curves == nil && len(c.Accuracy) > 0 {
			m := mean(c.Accuracy)
			p.Series = append(p.Series, plots.Series{
				Label: c.Title + ", at the end", X: []float64{1, last}, Y: []float64{m, m}, Reference: true,
			})
		}
	}
	return p
}

// entropies are those of θ, from the start on.
func (r *Comparison) entropies() plots.Panel {
	p := plots.Panel{
		X: plots.Axis{Label: "epochs"}, Y: plots.Axis{Label: "entropy of $θ$ (nats)"},
		Legend: plots.Legend{Position: plots.LegendNone},
	}
	for _, c := range r.Rows {
		if len(c.entropyPath) > 0 {
			means := atMostUniform(summaries(c.entropyPath, r.Params.Confidence))
			p.Series = append(p.Series, plots.Band(c.Title, epochsFrom(0, len(means)), means))
		}
	}
	return p
}

// table has a line for each row: mean and interval of the accuracy, regret, final entropy and cost.
func (r *Comparison) table() *plots.Table {
	t := &plots.Table{Columns: []plots.Column{
		{Header: "method"}, {Header: "runs"}, {Header: "accuracy (%)"},
		{Header: fmt.Sprintf("%.3g %% interval", 100*r.Params.Confidence)},
		{Header: "entropy"}, {Header: "cost (s)"},
	}}
	if r.Tabular {
		t.Columns = slices.Insert(t.Columns, regretColumn, plots.Column{Header: "regret"})
	}
	var mine, others plots.Block
	for _, c := range r.Rows {
		if c.Mine {
			mine.Rows = append(mine.Rows, r.entry(c))
		} else {
			others.Rows = append(others.Rows, r.entry(c))
		}
	}
	for _, b := range []plots.Block{mine, others} {
		if len(b.Rows) > 0 {
			t.Blocks = append(t.Blocks, b)
		}
	}
	return t
}

func (r *Comparison) entry(c Compared) []plots.Entry {
	accuracy, interval := "not run", ""
	if s, err := runs.Summarize(c.Accuracy, r.Params.Confidence); err == nil {
		s = s.Within(0, 100)
		accuracy = fmt.Sprintf("%.2f", s.Mean)
		if s.Lo.Valid() {
			interval = fmt.Sprintf("%.2f to %.2f", float64(s.Lo), float64(s.Hi))
		}
	}
	cost := thousands(mean(c.Seconds), "")
	if cost != "" && c.curves == nil && r.Tabular {
		cost += " (simulated)"
	}
	var out []plots.Entry
	for _, text := range []string{
		c.Title, fmt.Sprint(len(c.Accuracy)), accuracy, interval, twoDigits(c.Entropy), cost,
	} {
		out = append(out, plots.Entry{Text: text})
	}
	if r.Tabular {
		out = slices.Insert(out, regretColumn, plots.Entry{Text: twoDigits(r.Regret(c))})
	}
	return out
}

// regretColumn is the place of the regret, which needs a table of accuracies.
const regretColumn = 4

// twoDigits is a mean, or "–" without values.
func twoDigits(values []float64) string {
	if len(values) == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", mean(values))
}
