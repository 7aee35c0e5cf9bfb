package li2021

import (
	"fmt"

	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/plots"
)

// TrainingCurves are what the trainings behind a table have done, epoch by epoch.
type TrainingCurves struct{ of *table1 }

// Table1Curves are the errors of the table's trainings over epochs.
func Table1Curves(r *table1) *TrainingCurves { return &TrainingCurves{r} }

// Figure draws the errors of every epoch's training passes, with cutout and drop path, and on the test images, in
// percent: means over seeds.
func (c *TrainingCurves) Figure() plots.Figure {
	training := plots.Panel{X: plots.Axis{Label: "epochs"}, Y: plots.Axis{Label: "training error (%)"}}
	test := plots.Panel{X: plots.Axis{Label: "epochs"}, Y: plots.Axis{Label: "test error (%)"}}
	for _, g := range c.of.Groups {
		ran, name := finishedOf(g.Records), candidateTitle(g.Trial.name)
		if len(ran) == 0 {
			continue
		}
		passed := epochsFrom(1, len(ran[0].Series["train_error"]))
		training.Series = append(training.Series, c.mean(name, passed, ran, "train_error"))
		test.Series = append(test.Series, c.mean(name, ran[0].Series["evaluated"], ran, "test_error"))
	}
	p := c.of.Params.TrainParams
	f := plots.Figure{
		Name: "li2021-training-curves", Style: plots.ICLR.Text(), Panels: [][]plots.Panel{{training, test}},
		Caption: c.caption(p),
		Meta: study.Meta("DARTS space, CIFAR-10: parameters and test errors of cells that were found, over epochs",
			c.of.Scale, p),
	}
	if len(test.Series) == 0 {
		f.Panels = [][]plots.Panel{{{Table: &plots.Table{Columns: []plots.Column{{Header: "no training was run"}}}}}}
	}
	return f
}

func (c *TrainingCurves) mean(label string, x []float64, ran []*runs.Record, series string) plots.Series {
	var means []runs.Summary
	for _, values := range study.Columns(study.Rows(ran, series)) {
		means = append(means, c.of.Mean(values).Percent().Within(0, 100))
	}
	return plots.Band(label, x, means)
}

func (c *TrainingCurves) caption(p TrainParams) string {
	set := "the images"
	if p.Examples > 0 {
		set = fmt.Sprintf("%d images", p.Examples)
	}
	return "Training errors are of the passes of an epoch, with cutout and drop path; " +
		c.of.Interval("band", p.Seeds, "seed") + ". " + p.caption(examplesOf(c.of), set)
}

// Check judges nothing: what is claimed of errors is about the last epoch.
func (c *TrainingCurves) Check() []runs.Claim { return nil }

// Records are the keys of the trainings.
func (c *TrainingCurves) Records() []string { return c.of.Records() }
