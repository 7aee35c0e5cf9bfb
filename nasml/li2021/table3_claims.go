package li2021

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/internal/rank"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/training"
)

// The protocol of Appendix C.1.3.
const (
	protocolCandidates, protocolFull = 10, 3
	protocolEpochs, protocolShort    = 600, 20
	protocolSaved, protocolSeeds     = 75, 10 // percent; of stage 3
)

const stage2Source = "Appendix C.1.3"

// judgeTable3 judges whether poor candidates are known after a few epochs, what that saves, and the errors of Table 3
// at the paper's scale.
func judgeTable3(r *table3) []runs.Claim {
	claims := []runs.Claim{judgeRanks(r, "spearman"), judgeRanks(r, "kendall"), judgeKept(r), judgeSaved(r)}
	for set := range publishedSets {
		claims = append(claims, judgeSet(r, set))
	}
	return append(claims, judgeEvaluationSettings(r))
}

// judgeRanks judges, by one of two rank correlations, that errors after the short part rank candidates as at the end.
func judgeRanks(r *table3, name string) runs.Claim {
	c := r.Claim("own: poor candidates are known after a few epochs: %s's rank correlation above 0",
		strings.ToUpper(name[:1])+name[1:]).From(stage2Source).Says(0).Family(2)
	var short, final []float64
	for _, x := range candidatesOf(r, 0) {
		short, final = append(short, x.short), append(final, x.final)
	}
	a, err := rank.Correlate(name, short, final, c.Confidence)
	if err != nil {
		return c.NotRun("%v", err)
	}
	c.Ours, c.Lo, c.Hi = runs.Number(a.Estimate), a.Lo, a.Hi
	c = c.Noting("%s", strings.Join(append([]string{fmt.Sprintf("errors after %d epochs against those after %d, %d "+
		"candidates", r.Params.Short, epochs3(r), a.N)}, a.Warnings...), "; "))
	if !a.Lo.Valid() || !a.Hi.Valid() {
		return c.Claim
	}
	return verdict.Interval(c.Claim, 0, 1)
}

// judgeKept judges that the best candidate at the end is not dropped early.
func judgeKept(r *table3) runs.Claim {
	c := r.Claim("own: the best candidate at the end is among those that go on").From(stage2Source)
	candidates := candidatesOf(r, 0)
	if len(candidates) == 0 {
		return c.NotRun("not all candidates were trained")
	}
	best := slices.MinFunc(candidates, func(a, b candidate) int { return cmp.Compare(a.final, b.final) })
	lost := 0
	if !best.kept {
		lost = 1
	}
	return verdict.None(c.Noting("%d of %d go on after %d epochs; one run of the protocol, the first", r.Params.Kept,
		len(candidates), r.Params.Short).Claim, lost, 1)
}

// judgeSaved judges the saved share of the cost by the paper's own numbers: three of ten candidates are trained for 600
// epochs, the others for 20.
func judgeSaved(r *table3) runs.Claim {
	c := r.Claim("[LI237] share of the cost of stage 2 that is saved, %%").From(stage2Source).Says(protocolSaved).
		Noting("by the paper's own numbers: 3 of 10 candidates for 600 epochs, the others for 20")
	used := protocolFull*protocolEpochs + (protocolCandidates-protocolFull)*protocolShort
	c.Ours, c.Tolerance = runs.Number(100*(1-float64(used)/float64(protocolCandidates*protocolEpochs))), 0
	c.Holds = runs.Judge(c.Ours > protocolSaved)
	return c.Claim
}

func judgeSet(r *table3, set int) runs.Claim {
	paper := publishedSets[set]
	c := r.Claim("[LI%d] average test error on CIFAR-10 of the best, set %d, %%", 182+set, set+1).Says(paper.mean).
		Family(len(publishedSets))
	c.Tolerance = runs.Number(paper.std)
	ours := errorsOf(againOf(r, set), "test_error")
	switch {
	case set >= r.Params.Sets:
		return c.NotRun("so many sets of seeds were run: %d (Sets)", r.Params.Sets)
	case r.Params.reduced("cifar-10") || r.Params.Data != data.CIFAR10:
		return c.NotRun("errors at a reduced scale are not the paper's; --scale paper has its 600 epochs")
	case slices.ContainsFunc(candidatesOf(r, set), func(x candidate) bool { return x.best && !x.ours }):
		return c.NotRun("the best candidate is none that a search of ours found, as the paper's sets are")
	case len(ours) < r.Params.Seeds:
		return c.NotRun("%d of %d trainings of the best candidate", len(ours), r.Params.Seeds)
	}
	return c.Mean(ours).Near(paper.mean, paper.std)
}

// judgeEvaluationSettings compares the settings at the paper's scale with Appendix C.1.2.
func judgeEvaluationSettings(r *table3) runs.Claim {
	c := r.Claim("[LI228 LI234] settings of stages 2 and 3 that are not those printed").From("Appendix C.1.2")
	s := training.AsPaper["cifar-10"]
	printed := []struct{ ours, paper float64 }{
		{float64(s.Epochs), protocolEpochs}, {float64(s.Batch), 128}, {s.LearningRate, 0.025}, {s.LearningRateMin, 0},
		{s.Rate(s.Epochs / 2), 0.0125}, // the cosine
		{s.Momentum, 0.9}, {s.WeightDecay, 3e-4}, {float64(s.Channels), 36}, {float64(s.Cells), 20},
		{float64(s.Augment.Cutout), 16}, {s.Auxiliary, 0.4}, {s.DropPath, 0.3}, {s.Clip, 5}, {s.Smoothing, 0},
		{float64(Table3Paper.Seeds), protocolSeeds}, {float64(Table3Paper.Short), protocolShort},
	}
	differ := 0
	for _, f := range printed {
		if math.Abs(f.ours-f.paper) > 1e-9 {
			differ++
		}
	}
	return verdict.None(c.Noting("paper and authors' code: %s",
		strings.Join(training.Differences(s, training.AsCode["cifar-10"]), "; ")).Claim, differ, len(printed))
}
