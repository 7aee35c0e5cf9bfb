package li2021

import (
	"fmt"

	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/plots"
)

// TrainingCurves are what the trainings behind a table have done, epoch by epoch.
type TrainingCurves struct {
	of    evaluation
	names []string         // of the rows
	rows  [][]*runs.Record // trainings, nil: not run
	title string
	scale string
}

// Curves are the errors of the table's trainings over epochs.
func (r *Table1Result) Curves() *TrainingCurves {
	c := &TrainingCurves{of: r.evaluation, rows: r.records, title: table1Title + ", over epochs", scale: r.Scale}
	for _, g := range r.evaluation.genotypes {
		c.names = append(c.names, candidateTitle(g.name))
	}
	return c
}

// Figure has the errors of the passes of every epoch themselves, with cutout and drop
// path, and on the test images, in percent: means over seeds with their intervals,
// which of two seeds would cover the panels and are left out.
func (c *TrainingCurves) Figure() plots.Figure {
	training := plots.Panel{X: plots.Axis{Label: "epochs"}, Y: plots.Axis{Label: "training error (%)"}}
	test := plots.Panel{X: plots.Axis{Label: "epochs"}, Y: plots.Axis{Label: "test error (%)"}}
	for i, name := range c.names {
		ran := ranOf(c.rows[i])
		if len(ran) == 0 {
			continue
		}
		var passed []float64
		for e := range ran[0].Series["train_error"] {
			passed = append(passed, float64(e+1))
		}
		training.Series = append(training.Series, c.mean(name, passed, ran, "train_error"))
		test.Series = append(test.Series, c.mean(name, ran[0].Series["evaluated"], ran, "test_error"))
	}
	f := plots.Figure{
		Name: "li2021-training-curves", Style: plots.ICLR.Text(), Panels: [][]plots.Panel{{training, test}},
		Caption: c.caption(), Meta: study.Meta(c.title, c.scale, c.of.TrainParams),
	}
	if len(test.Series) == 0 {
		f.Panels = [][]plots.Panel{{{Table: &plots.Table{Columns: []plots.Column{{Header: "no training was run"}}}}}}
	}
	return f
}

// mean is that of a series of trainings in percent, with its interval over seeds.
func (c *TrainingCurves) mean(label string, x []float64, ran []*runs.Record, series string) plots.Series {
	var means []runs.Summary
	for at := range x {
		var values []float64
		for _, r := range ran {
			values = append(values, r.Series[series][at])
		}
		s, err := runs.Summarize(values, c.of.Confidence)
		if err != nil {
			panic(err) // records hold finite numbers
		}
		means = append(means, percent(s).Within(0, 100))
	}
	band := plots.Band(label, x, means)
	if len(ran) < leastForBands {
		band.Lo, band.Hi = nil, nil
	}
	return band
}

// leastForBands is how many trainings there are to be for an interval.
const leastForBands = 3

func (c *TrainingCurves) caption() string {
	set := "the images"
	if c.of.Examples > 0 {
		set = fmt.Sprintf("%d images", c.of.Examples)
	}
	text := "Training errors are of the passes of an epoch, with cutout and drop path. " + c.of.caption(set)
	if c.of.Seeds < leastForBands {
		return text + " Means over seeds, without intervals."
	}
	return text + fmt.Sprintf(" Means over seeds with %v %% intervals.", 100*c.of.Confidence)
}

// Check judges nothing: what is claimed of errors is about the last epoch.
func (c *TrainingCurves) Check() []runs.Claim { return nil }

// Records are the keys of the trainings.
func (c *TrainingCurves) Records() []string { return keysOf(c.rows) }
