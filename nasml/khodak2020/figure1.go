package khodak2020

import (
	"context"
	"fmt"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/khodak2020/internal/mapsearch"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
)

// Figure1Params are the parameters of Figure 1: accuracy of configurations
// with shared weights against their accuracy when trained by themselves.
type Figure1Params struct {
	TaskParams
	Configs int   `validate:"gte=2"`                   // configurations: a correlation needs some
	Dims    []int `validate:"min=1,unique,dive,gte=1"` // feature dimensions
}

// Figure1Paper is the setting of Appendix B.1 on CIFAR-10: 32 configurations and 3,125
// to 100,000 features, as in the authors' code, and ten seeds, of which they ran one. It
// takes weeks on two cores and was not run.
var Figure1Paper = func() Figure1Params {
	p := Figure1Params{paperTasks, 32, []int{3125, 6250, 12500, 25000, 50000, 100000}}
	p.Tasks = []string{mapsearch.ImageTask}
	return p
}()

// Figure1Quick has 2,048 training images, 32 to 1,024 features and four seeds:
// half a minute on two cores.
var Figure1Quick = func() Figure1Params {
	p := Figure1Params{quickTasks, 32, []int{32, 64, 128, 256, 512, 1024}}
	p.Tasks = []string{mapsearch.ImageTask}
	p.ImageTrain, p.ImageValid, p.Seeds = 2048, 1024, 4
	return p
}()

// Figure1Large has all training and validation images and five seeds, with 391 to 6,250
// features, of which the last two are the paper's first two: 25 minutes on two cores.
var Figure1Large = func() Figure1Params {
	p := Figure1Paper
	p.Dims, p.Seeds, p.ImageTest = []int{391, 781, 1563, 3125, 6250}, 5, 1000
	return p
}()

// Figure1 trains configurations with shared weights and by themselves: one trial a task, dimension and seed.
var Figure1 = lab.Declare(lab.Entry[Figure1Params, mapsearch.Signal]{
	Of: paper, Name: "figure1", Kind: lab.Figure, Source: figure1Source, Notebook: "figure1_signal",
	Title: "Validation accuracy of feature maps with shared weights and by themselves",
	Cost: catalog.Cost{
		Quick: "half a minute on two cores; precomputed",
		Paper: "weeks on two cores at 100,000 features: a GPU; --scale large, all images with up to 6,250 " +
			"features, 25 minutes on two cores; precomputed",
	},
	Quick: Figure1Quick, Paper: Figure1Paper,
	Also:    []catalog.Preset[Figure1Params]{{Scale: catalog.Large, Params: Figure1Large}},
	Shipped: []catalog.Setting{{Scale: catalog.Quick}, {Scale: catalog.Large}}, Settings: figure1Settings,
	Note:  study.SettingNote,
	Rules: func(p Figure1Params, c *study.Checks) { p.rules(c) },
	Trials: func(p Figure1Params) (gs lab.Groups[mapsearch.Signal]) {
		for _, task := range p.Tasks {
			for _, d := range p.Dims {
				gs.Add(task, p.Seeds, mapsearch.Signal{Setting: p.setting(task), Configs: p.Configs, Dim: d})
			}
		}
		return gs
	},
	By: taskOf[mapsearch.Signal],
	Bench: func(ctx context.Context, p Figure1Params, task string) (lab.Bench[mapsearch.Signal], error) {
		size := func(t mapsearch.Signal) string { return fmt.Sprintf("d = %d", t.Dim) }
		return taskBench(ctx, p.TaskParams, task, size)
	},
	Draw:   drawSignal,
	Claims: judgeSignals,
})

const figure1Source = "Figure 1 and Sec. 2"

type figure1 = lab.Result[Figure1Params, mapsearch.Signal]

// signalRecords are the records of a task at d features, one a seed, nil if there is none.
func signalRecords(r *figure1, task string, d int) []*runs.Record {
	return r.Part(task).Where(func(t mapsearch.Signal) bool { return t.Dim == d }).Records()
}
