package search

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
)

// Bench is what a tabular method searches on: decisions with their numbers of choices, and queries of architectures.
type Bench interface {
	// Groups are the numbers of choices of all decisions, those into one node together: {{5}, {5, 5}, {5, 5, 5}} for
	// NAS-Bench-201. An architecture is the choices of all groups in a row.
	Groups() [][]int
	// Query returns the validation accuracy of an architecture in percent and the simulated seconds of its training and
	// evaluation.
	Query(arch []int) (accuracy, seconds float64, err error)
}

// Tabular is a method that queries a benchmark until a simulated time is used up. It draws all its randomness from rng,
// and returns ctx's error if ctx ends.
type Tabular func(ctx context.Context, bench Bench, s TabularSettings, rng *rand.Rand) (Trajectory, error)

// TabularMethods are the tabular methods by name, to which a reader may add.
var TabularMethods = map[string]Tabular{
	"rs":        tabular(randomSearch),
	"rea":       tabular(regularizedEvolution),
	"reinforce": tabular(reinforce),
	"bohb":      tabular(bohb),
}

// TabularStep is one query of a run.
type TabularStep struct {
	Arch     []int   `json:"arch"`
	Accuracy float64 `json:"accuracy"` // of validation, in percent
	Seconds  float64 `json:"seconds"`  // simulated, from the start to the end of this query
	Best     int     `json:"best"`     // the step with the highest accuracy so far, the first of equals
}

// Trajectory is a run of a tabular method.
type Trajectory struct {
	Steps []TabularStep `json:"steps"`
	Final []int         `json:"final"` // the architecture that the method returns
}

// TabularSettings are all that a tabular method depends on besides benchmark and seed. They are JSON and part of a
// trial's key; a method leaves the fields of the others at zero.
type TabularSettings struct {
	Method string  `json:"method"`         // a name of TabularMethods
	Budget float64 `json:"budget_seconds"` // simulated time

	Epochs int `json:"epochs"` // of training behind a query's accuracy and time: 12 or 200
	// time of one evaluation of the validation images, in epochs of training
	EvalEpochs float64 `json:"eval_epochs"`
	SeedNoise  float64 `json:"seed_noise,omitempty"` // deviation of a normal error added to every accuracy, in points

	// REA.
	Population int    `json:"population,omitempty"`
	Sample     int    `json:"sample,omitempty"` // drawn with replacement, of which the best becomes a parent
	Mutate     string `json:"mutate,omitempty"` // what is drawn uniformly: MutateNode or MutateEdge

	// REINFORCE.
	Rate     float64 `json:"rate,omitempty"`     // of Adam
	Baseline float64 `json:"baseline,omitempty"` // momentum of the reward's moving average, corrected for its start
	Pick     string  `json:"pick,omitempty"`     // what is returned: PickBest or PickPolicy

	// BOHB. candidates of which the one with the highest ratio of densities is tried
	Samples        int     `json:"samples,omitempty"`
	RandomFraction float64 `json:"random_fraction,omitempty"` // of architectures that are drawn uniformly
	MinBandwidth   float64 `json:"min_bandwidth,omitempty"`
	TopPercent     int     `json:"top_percent,omitempty"` // of what was seen that counts as good
	Rungs          int     `json:"rungs,omitempty"`       // of Hyperband's longest bracket
	Eta            int     `json:"eta,omitempty"`         // of Hyperband: one of Eta is kept
	Brackets       int     `json:"brackets,omitempty"`    // at most
}

// How REA draws the operation that it changes: first a node and then one of the edges into it, as in the authors' code,
// so that the edge into node 1 changes as often as all three into node 3 together; or every edge alike.
const (
	MutateNode = "node, then edge"
	MutateEdge = "edge"
)

// What REINFORCE returns: the best it has queried, or the most probable architecture of its policy, as in the first
// version of the authors' code.
const (
	PickBest   = "best"
	PickPolicy = "policy"
)

// evalEpochs is the time of one evaluation on the 25,000 validation images, in epochs on the 25,000 training images,
// which the table lacks. For two architectures of which public code quotes the benchmark's interface it is 2.549/7.221
// = 0.353 and 3.754/10.848 = 0.346.
const evalEpochs = 0.35

// TabularAsCode are the settings of AutoDL-Projects by method. Sample size and learning rate are arguments there, with
// the values of its documentation (docs/NAS-Bench-201.md: "R-EA.sh cifar10 3", "REINFORCE.sh 0.5"). Its BOHB asks for
// the accuracy, and pays the time, of 200 epochs.
var TabularAsCode = map[string]TabularSettings{
	"rs": {Method: "rs", Budget: 12000, Epochs: 12, EvalEpochs: evalEpochs},
	"rea": {Method: "rea", Budget: 12000, Epochs: 12, EvalEpochs: evalEpochs, Population: 10, Sample: 3,
		Mutate: MutateNode},
	"reinforce": {Method: "reinforce", Budget: 12000, Epochs: 12, EvalEpochs: evalEpochs, Rate: 0.5, Baseline: 0.9,
		Pick: PickBest},
	"bohb": {Method: "bohb", Budget: 12000, Epochs: 200, EvalEpochs: evalEpochs,
		Samples: 4, MinBandwidth: 0.3, TopPercent: 15, Rungs: 3, Eta: 3, Brackets: 50},
}

// TabularAsPaper are the settings of Dong & Yang 2020 by method, or of their code where the paper is silent. Their
// appendix chooses REA's sample size among 3, 5, 10 and REINFORCE's learning rate among 0.01, 0.02, 0.05, 0.1, 0.2,
// 0.5; which ones (10 and 0.2) could not be checked against its text. Means over trials do not give the paper's numbers
// with 10, nor does a rate of 0.5 with anything; with the noise of one trial a query REA with 10 does, and REINFORCE
// with 0.1 (see Table 2 of package li2021). TabularVariants has all of them.
var TabularAsPaper = map[string]TabularSettings{
	"rs":        TabularAsCode["rs"],
	"rea":       with(TabularAsCode["rea"], func(s *TabularSettings) { s.Sample = 10 }),
	"reinforce": with(TabularAsCode["reinforce"], func(s *TabularSettings) { s.Rate = 0.2 }),
	"bohb":      with(TabularAsCode["bohb"], func(s *TabularSettings) { s.Epochs = 12 }),
}

// OneTrialNoise is the deviation of a 12-epoch accuracy of one of two trials from their mean, in points, which is also
// the deviation of such means from each other: 0.32 among the table's cells that compute the same function with more
// than 80 % (674 degrees of freedom).
const OneTrialNoise = 0.32

// TabularVariants are the settings as in the paper with one thing changed that
// the sources leave open or choose from, by names such as "rea/sample-3":
//
//	METHOD/one-trial        a query has the noise of a single trial
//	METHOD/evaluation-free  only training costs time
//	rea/sample-K            another sample size
//	rea/every-edge          MutateEdge
//	reinforce/rate-R        another learning rate
//	reinforce/mode          PickPolicy
//	bohb/defaults           HpBandSter's own settings of the sampler
var TabularVariants = tabularVariants()

func tabularVariants() map[string]TabularSettings {
	out := map[string]TabularSettings{}
	for method, s := range TabularAsPaper {
		out[method+"/one-trial"] = with(s, func(s *TabularSettings) { s.SeedNoise = OneTrialNoise })
		out[method+"/evaluation-free"] = with(s, func(s *TabularSettings) { s.EvalEpochs = 0 })
	}
	for _, sample := range []int{3, 5} {
		out[fmt.Sprintf("rea/sample-%d", sample)] = with(TabularAsPaper["rea"],
			func(s *TabularSettings) { s.Sample = sample })
	}
	out["rea/every-edge"] = with(TabularAsPaper["rea"], func(s *TabularSettings) { s.Mutate = MutateEdge })
	for _, rate := range []float64{0.001, 0.01, 0.02, 0.05, 0.1, 0.5} {
		out[fmt.Sprintf("reinforce/rate-%g", rate)] = with(TabularAsPaper["reinforce"],
			func(s *TabularSettings) { s.Rate = rate })
	}
	out["reinforce/mode"] = with(TabularAsPaper["reinforce"], func(s *TabularSettings) { s.Pick = PickPolicy })
	out["bohb/defaults"] = with(TabularAsPaper["bohb"], func(s *TabularSettings) {
		s.Samples, s.RandomFraction, s.MinBandwidth = 64, 1./3, 1e-3
	})
	return out
}

// TabularDifferences lists the settings in which paper and code differ: "rea sample: paper 10, code 3".
func TabularDifferences() []string {
	var out []string
	for _, method := range slices.Sorted(maps.Keys(TabularAsPaper)) {
		paper, code := reflect.ValueOf(TabularAsPaper[method]), reflect.ValueOf(TabularAsCode[method])
		for i := range paper.NumField() {
			if a, b := paper.Field(i).Interface(), code.Field(i).Interface(); a != b {
				name, _, _ := strings.Cut(paper.Type().Field(i).Tag.Get("json"), ",")
				out = append(out, fmt.Sprintf("%s %s: paper %v, code %v", method, name, a, b))
			}
		}
	}
	return out
}

// Check returns every invalid setting.
func (s TabularSettings) Check() error {
	var wrong expectation
	wrong.that(TabularMethods[s.Method] != nil, "Method must be one of %v, got %q",
		slices.Sorted(maps.Keys(TabularMethods)), s.Method)
	wrong.that(s.Budget > 0 && s.Budget < 1e12, "Budget must be positive, got %v s", s.Budget)
	wrong.that(s.Epochs > 0, "Epochs must be 12 or 200, got %d", s.Epochs)
	wrong.that(s.EvalEpochs >= 0 && s.SeedNoise >= 0, "EvalEpochs and SeedNoise must be at least 0, got %v and %v",
		s.EvalEpochs, s.SeedNoise)
	switch s.Method {
	case "rea":
		wrong.that(s.Population >= 1 && s.Sample >= 1, "Population and Sample must be at least 1, got %d and %d",
			s.Population, s.Sample)
		wrong.that(s.Mutate == MutateNode || s.Mutate == MutateEdge, "Mutate must be %q or %q, got %q",
			MutateNode, MutateEdge, s.Mutate)
	case "reinforce":
		wrong.that(s.Rate > 0, "Rate must be positive, got %v", s.Rate)
		wrong.that(s.Baseline >= 0 && s.Baseline < 1, "Baseline must be at least 0 and less than 1, got %v", s.Baseline)
		wrong.that(s.Pick == PickBest || s.Pick == PickPolicy, "Pick must be %q or %q, got %q", PickBest, PickPolicy,
			s.Pick)
	case "bohb":
		s.checkBOHB(&wrong)
	}
	return errors.Join(wrong...)
}

func (s TabularSettings) checkBOHB(wrong *expectation) {
	wrong.that(s.Samples >= 1 && s.TopPercent >= 1 && s.TopPercent <= 99,
		"Samples must be at least 1, got %d, and TopPercent between 1 and 99, got %d", s.Samples, s.TopPercent)
	wrong.that(s.RandomFraction >= 0 && s.RandomFraction <= 1, "RandomFraction must be between 0 and 1, got %v",
		s.RandomFraction)
	wrong.that(s.MinBandwidth > 0 && s.MinBandwidth < 1, "MinBandwidth must be greater than 0 and less than 1, got %v",
		s.MinBandwidth)
	wrong.that(s.Rungs >= 1 && s.Rungs <= 8 && s.Eta >= 2 && s.Eta <= 8 && s.Brackets >= 1,
		"Rungs must be between 1 and 8, Eta between 2 and 8 and Brackets at least 1, got %d, %d and %d", s.Rungs,
		s.Eta, s.Brackets)
}

// RunTabular runs the method of the settings once. The same seed of rng gives the same trajectory.
func RunTabular(ctx context.Context, bench Bench, s TabularSettings, rng *rand.Rand) (Trajectory, error) {
	if err := s.Check(); err != nil {
		raw, _ := json.Marshal(s) // plain numbers and strings
		return Trajectory{}, fmt.Errorf("settings %s: %w", raw, err)
	}
	return TabularMethods[s.Method](ctx, bench, s, rng)
}

// Table is a benchmark whose architectures are numbered.
type Table interface {
	// Searched returns, by number, the validation accuracy in percent of each architecture after a number of epochs on
	// half of CIFAR-10's training images, and the seconds of an epoch.
	Searched(epochs int) (accuracy, epochSeconds []float64, err error)
	// Number is that of an architecture, the operations of its edges.
	Number(arch []int) (int, error)
}

// NASBench201 is a Bench on the real table: validation accuracy on CIFAR-10, trained on half of the training images,
// and the simulated time of that training and one evaluation.
type NASBench201 struct {
	table    Table
	accuracy []float64 // by number
	seconds  []float64
}

// NewNASBench201 prepares the table, data.NASBench201, for the settings. Accuracies are means over trials, two at 12
// epochs, where the authors' code draws one of two trials at every query; the table lacks single ones, which SeedNoise
// imitates. It returns an error if the table has no accuracy for the settings' Epochs, or no times.
func NewNASBench201(table Table, s TabularSettings) (*NASBench201, error) {
	accuracy, seconds, err := table.Searched(s.Epochs)
	if err != nil {
		return nil, fmt.Errorf("a search with %d epochs a query: %w", s.Epochs, err)
	}
	for n, epoch := range seconds {
		seconds[n] = epoch * (float64(s.Epochs) + s.EvalEpochs)
	}
	return &NASBench201{table, accuracy, seconds}, nil
}

// Groups returns one, two and three edges with five operations each.
func (b *NASBench201) Groups() [][]int { return [][]int{{5}, {5, 5}, {5, 5, 5}} }

// Query looks an architecture up.
func (b *NASBench201) Query(arch []int) (accuracy, seconds float64, err error) {
	n, err := b.table.Number(arch)
	if err != nil {
		return 0, 0, err
	}
	return b.accuracy[n], b.seconds[n], nil
}
