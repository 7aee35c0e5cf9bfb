package search

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	_ "github.com/nasml/lab/nasml/internal/steady"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/data/datatest"
)

// toy is a benchmark of one's own: an architecture is as good as the sum of its
// choices, 10 points each, and a query takes 100 s and a bit.
type toy struct {
	groups  [][]int
	queries [][]int
	answer  func(arch []int) (float64, float64, error)
}

func (b *toy) Groups() [][]int {
	if b.groups == nil {
		return [][]int{{3}, {3, 2}, {4}}
	}
	return b.groups
}

func (b *toy) Query(arch []int) (float64, float64, error) {
	b.queries = append(b.queries, slices.Clone(arch))
	if b.answer != nil {
		return b.answer(arch)
	}
	sum := 0
	for _, c := range arch {
		sum += c
	}
	return float64(10 * sum), 100 + float64(sum), nil
}

func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// What holds for every tabular method, whatever settings: time only goes up by
// what queries cost, best is the first best, the same seed gives the same run,
// and the budget is kept up to what the method's documentation excepts.
func TestTabularCommon(t *testing.T) {
	all := maps.Clone(TabularVariants)
	for method := range TabularMethods {
		all[method+" paper"], all[method+" code"] = TabularAsPaper[method], TabularAsCode[method]
	}
	for name, s := range all {
		t.Run(name, func(t *testing.T) {
			bench := &toy{}
			run, err := RunTabular(t.Context(), bench, s, seeded(5))
			require.NoError(t, err)
			again, err := RunTabular(t.Context(), &toy{}, s, seeded(5))
			require.NoError(t, err)
			require.Equal(t, run, again)
			other, err := RunTabular(t.Context(), &toy{}, s, seeded(6))
			require.NoError(t, err)
			require.NotEqual(t, run, other)

			spent, best := 0.0, 0
			for i, step := range run.Steps {
				require.Equal(t, bench.queries[i], step.Arch)
				_, seconds, _ := (&toy{}).Query(step.Arch)
				require.InDelta(t, spent+seconds, step.Seconds, 1e-9)
				if spent = step.Seconds; step.Accuracy > run.Steps[best].Accuracy {
					best = i
				}
				require.Equal(t, best, step.Best)
			}
			if s.Method == "reinforce" {
				require.GreaterOrEqual(t, spent, s.Budget, "the last query counts")
				run.Steps = run.Steps[:len(run.Steps)-1]
			}
			require.LessOrEqual(t, run.Steps[len(run.Steps)-1].Seconds, s.Budget)
			require.Greater(t, run.Steps[len(run.Steps)-1].Seconds, s.Budget-120, "another one would not have fitted")
			if s.Method == "rs" || s.Method == "rea" || s.Pick == PickBest {
				require.Equal(t, again.Steps[best].Arch, run.Final)
			}
			require.Len(t, run.Final, 4)
		})
	}
}

// All methods but random search find the best of a benchmark that is easy.
func TestTabularMethodsLearn(t *testing.T) {
	for _, method := range []string{"rea", "reinforce", "bohb"} {
		late := 0.0
		for seed := range uint64(20) {
			run, err := RunTabular(t.Context(), &toy{groups: [][]int{{5}, {5, 5}, {5, 5, 5}}}, TabularAsPaper[method],
				seeded(seed))
			require.NoError(t, err)
			for _, step := range run.Steps[len(run.Steps)-20:] {
				late += step.Accuracy / 20 / 20
			}
		}
		require.Greater(t, late, 140.0, "%s: uniform queries have a mean of 120 ± 35/√400", method)
	}
}

// A member of the population is at most Population steps old, and a child
// differs from one of them in one choice.
func TestRegularizedEvolutionFamily(t *testing.T) {
	for _, mutate := range []string{MutateNode, MutateEdge} {
		s := TabularAsPaper["rea"]
		s.Population, s.Sample, s.Mutate = 6, 3, mutate
		run, err := RunTabular(t.Context(), &toy{}, s, seeded(3))
		require.NoError(t, err)
		for i := s.Population; i < len(run.Steps); i++ {
			require.True(t, slices.ContainsFunc(run.Steps[i-s.Population:i], func(p TabularStep) bool {
				differ := 0
				for e := range p.Arch {
					if p.Arch[e] != run.Steps[i].Arch[e] {
						differ++
					}
				}
				return differ == 1
			}), "step %d", i)
		}
	}
}

// By node, the edges of NAS-Bench-201 change with probabilities 1/3, 1/6, 1/6,
// 1/9, 1/9, 1/9; by edge, all alike. The other choices are equally likely.
func TestMutateFrequencies(t *testing.T) {
	for mutate, want := range map[string][]float64{
		MutateNode: {1. / 3, 1. / 6, 1. / 6, 1. / 9, 1. / 9, 1. / 9},
		MutateEdge: {1. / 6, 1. / 6, 1. / 6, 1. / 6, 1. / 6, 1. / 6},
	} {
		r, err := startTabular(&toy{groups: [][]int{{5}, {5, 5}, {5, 5, 5}}}, TabularSettings{Mutate: mutate},
			seeded(1))
		require.NoError(t, err)
		const n = 20000
		var edges [6]float64
		var ops [5]float64
		for range n {
			child := r.mutate([]int{2, 2, 2, 2, 2, 2})
			for e, op := range child {
				if op != 2 {
					edges[e] += 1. / n
					ops[op] += 1. / n
				}
			}
		}
		require.InDeltaSlice(t, want, edges[:], 0.012)
		require.InDeltaSlice(t, []float64{.25, .25, 0, .25, .25}, ops[:], 0.012)
	}
}

// The gradient of −A Σ log π is what step takes: against finite differences,
// through the first step of Adam, which has length rate whatever the gradient.
func TestPolicyGradient(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPolicy([]int{2, 4, 3}, 0.01, seeded(rapid.Uint64().Draw(t, "seed")))
		for e := range p.logits {
			for i := range p.logits[e] {
				p.logits[e][i] += rapid.Float64Range(-2, 2).Draw(t, "logit")
			}
		}
		arch := []int{1, 3, rapid.IntRange(0, 2).Draw(t, "choice")}
		advantage := rapid.Float64Range(-5, 5).Filter(func(x float64) bool { return math.Abs(x) > 0.1 }).Draw(t,
			"advantage")
		loss := func() (sum float64) {
			for e, c := range arch {
				sum -= advantage * math.Log(p.probabilities(e)[c])
			}
			return sum
		}
		want := make([][]float64, len(p.logits))
		for e := range p.logits {
			for i, x := range p.logits[e] {
				p.logits[e][i] = x + 1e-5
				up := loss()
				p.logits[e][i] = x - 1e-5
				want[e] = append(want[e], (up-loss())/2e-5)
				p.logits[e][i] = x
			}
		}
		before := [][]float64{slices.Clone(p.logits[0]), slices.Clone(p.logits[1]), slices.Clone(p.logits[2])}
		p.step(arch, advantage)
		for e := range want {
			require.InDeltaSlice(t, want[e], scaled(p.m[e], 10), 1e-6, "β₁ = 0.9")
			for i, g := range want[e] {
				require.InDelta(t, before[e][i]-0.01*math.Copysign(1, g), p.logits[e][i], 1e-4)
			}
		}
	})
}

func scaled(x []float64, by float64) []float64 {
	out := slices.Clone(x)
	for i := range out {
		out[i] *= by
	}
	return out
}

// The kernel density by hand: n = 3, one decision of levels {0, 1, 2}, and one
// with two of the three equal.
func TestDensity(t *testing.T) {
	d := newDensity([][]int{{0, 1}, {1, 1}, {2, 3}}, 0.3)
	scale := 1.06 * math.Pow(3, -1./6)
	h0, h1 := scale*math.Sqrt(2./3), scale*math.Sqrt(8./9)
	require.InDeltaSlice(t, []float64{h0, h1}, d.bandwidth, 1e-12)
	require.Equal(t, []int{3, 2}, d.levels)
	want := ((1-h0)*(1-h1) + h0/2*(1-h1) + h0/2*h1) / 3
	require.InDelta(t, want, d.at([]int{0, 1}), 1e-12)

	same := newDensity([][]int{{4}, {4}, {4}}, 0.3)
	require.Equal(t, []float64{0.3}, same.bandwidth, "the minimum")
	require.InDelta(t, 0.7, same.at([]int{4}), 1e-12)
	require.True(t, math.IsInf(same.at([]int{0}), 1), "as in statsmodels")

	changed := 0
	rng := seeded(2)
	for range 10000 {
		if same.draw([]int{5}, rng)[0] != 4 {
			changed++
		}
	}
	require.InDelta(t, 0.3*4/5, float64(changed)/10000, 0.015, "drawn anew among all five")
}

// Over all accuracies of one decision, density sums to 1 where all levels occur.
func TestDensitySumsToOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		archs := [][]int{{0}, {1}, {2}, {3}}
		for range rapid.IntRange(0, 10).Draw(t, "more") {
			archs = append(archs, []int{rapid.IntRange(0, 3).Draw(t, "choice")})
		}
		d := newDensity(archs, 0.3)
		require.InDelta(t, 1, d.at([]int{0})+d.at([]int{1})+d.at([]int{2})+d.at([]int{3}), 1e-12)
	})
}

// Three rungs, η = 3: brackets of 9, 3, 1, then 3, 1, then 3 queries, where a
// rung after the first queries the best of the one before, in their order.
func TestBOHBBrackets(t *testing.T) {
	s := TabularAsPaper["bohb"]
	s.Brackets = 3
	bench := &toy{}
	run, err := RunTabular(t.Context(), bench, s, seeded(4))
	require.NoError(t, err)
	require.Len(t, run.Steps, 9+3+1+3+1+3)
	var losses []float64
	for _, step := range run.Steps {
		losses = append(losses, -step.Accuracy)
	}
	check := func(from, n, keep, at int) {
		order := ascending(losses[from : from+n])[:keep]
		slices.Sort(order)
		for i, o := range order {
			require.Equal(t, run.Steps[from+o].Arch, run.Steps[at+i].Arch)
		}
	}
	check(0, 9, 3, 9)
	check(9, 3, 1, 12)
	check(13, 3, 1, 16)
	last := []int{12, 16, 17, 18, 19}
	best := slices.MaxFunc(last, func(a, b int) int { return int(run.Steps[a].Accuracy - run.Steps[b].Accuracy) })
	require.Equal(t, run.Steps[best].Accuracy, accuracyOf(run.Final))
}

func accuracyOf(arch []int) float64 {
	accuracy, _, _ := (&toy{}).Query(arch)
	return accuracy
}

// With room for five queries only, what BOHB returns is one of them, promoted
// through rungs that were no longer paid for.
func TestBOHBBudgetBelowABracket(t *testing.T) {
	s := TabularAsPaper["bohb"]
	s.Budget = 550
	run, err := RunTabular(t.Context(), &toy{}, s, seeded(9))
	require.NoError(t, err)
	require.LessOrEqual(t, len(run.Steps), 5)
	require.True(t, slices.ContainsFunc(run.Steps,
		func(step TabularStep) bool { return slices.Equal(step.Arch, run.Final) }))
}

func TestTabularErrors(t *testing.T) {
	good := TabularAsPaper["rs"]
	for name, c := range map[string]struct {
		bench Bench
		s     TabularSettings
		want  string
	}{
		"method": {&toy{}, TabularSettings{Method: "sr", Budget: 1, Epochs: 12},
			`Method must be one of [bohb rea reinforce rs], got "sr"`},
		"budget": {&toy{}, with(good, func(s *TabularSettings) { s.Budget = math.NaN() }),
			"Budget must be positive, got NaN"},
		"small": {&toy{}, with(good, func(s *TabularSettings) { s.Budget = 50 }), "raise Budget"},
		"sample": {&toy{}, with(TabularAsPaper["rea"], func(s *TabularSettings) { s.Sample = 0 }),
			"Population and Sample must be at least 1, got 10 and 0"},
		"mutate": {&toy{}, with(TabularAsPaper["rea"], func(s *TabularSettings) { s.Mutate = "" }),
			`"edge", got ""`},
		"rate": {&toy{}, with(TabularAsPaper["reinforce"], func(s *TabularSettings) { s.Rate = -1 }),
			"Rate must be positive, got -1"},
		"bandwidth": {&toy{}, with(TabularAsPaper["bohb"], func(s *TabularSettings) { s.MinBandwidth = 1 }),
			"less than 1, got 1"},
		"no decision": {&toy{groups: [][]int{{}}}, good, "at least one in every group"},
		"no choice":   {&toy{groups: [][]int{{1}}}, good, "at least two choices"},
		"NaN": {&toy{answer: func([]int) (float64, float64, error) { return math.NaN(), 1, nil }}, good,
			"accuracy NaN"},
		"no time": {&toy{answer: func([]int) (float64, float64, error) { return 1, 0, nil }}, good,
			"no budget is ever used up"},
		"its own": {&toy{answer: func([]int) (float64, float64, error) { return 0, 0, fmt.Errorf("out of order") }},
			good, "out of order"},
	} {
		_, err := RunTabular(t.Context(), c.bench, c.s, seeded(1))
		require.ErrorContains(t, err, c.want, name)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for method, s := range TabularAsPaper {
		_, err := RunTabular(ctx, &toy{}, s, seeded(1))
		require.ErrorIs(t, err, context.Canceled, method)
	}
}

func TestTabularDifferences(t *testing.T) {
	require.Equal(t, []string{
		"bohb epochs: paper 12, code 200",
		"rea sample: paper 10, code 3",
		"reinforce rate: paper 0.2, code 0.5",
	}, TabularDifferences())
}

func TestNASBench201Errors(t *testing.T) {
	table := datatest.NASBench201(t)
	_, err := NewNASBench201(table, with(TabularAsPaper["rs"], func(s *TabularSettings) { s.Epochs = 50 }))
	require.ErrorContains(t, err, "cifar10-valid valid after 12 epochs")
	bench, err := NewNASBench201(table, TabularAsPaper["rs"])
	require.NoError(t, err)
	_, _, err = bench.Query([]int{0, 0, 0, 0, 0, 5})
	require.ErrorContains(t, err, "edge 3<-2")
	// Architecture 0 takes 1444.2186 s for 200 epochs and has 63.364 % after 12.
	accuracy, seconds, err := bench.Query(table.Arch(0).Choice())
	require.NoError(t, err)
	require.InDelta(t, 63.364, accuracy, 1e-3)
	require.InDelta(t, 1444.2186/200*12.35, seconds, 1e-3)
}

// The top block of GAEA's Table 2, 500 runs each, as Dong & Yang 2020 give it:
// all twelve means lie within the deviation that the paper prints.
func TestTabularTable2(t *testing.T) {
	table := datatest.NASBench201(t)
	for method, paper := range map[string][3][2]float64{
		"rea":       {{93.92, .30}, {71.84, .99}, {45.54, 1.03}},
		"rs":        {{93.70, .36}, {71.04, 1.08}, {44.57, 1.25}},
		"reinforce": {{93.85, .37}, {71.71, 1.09}, {45.25, 1.18}},
		"bohb":      {{93.61, .52}, {70.85, 1.28}, {44.42, 1.49}},
	} {
		bench, err := NewNASBench201(table, TabularAsPaper[method])
		require.NoError(t, err)
		const runs = 500
		var mean [3]float64
		for seed := range uint64(runs) {
			run, err := RunTabular(t.Context(), bench, TabularAsPaper[method], seeded(seed))
			require.NoError(t, err)
			arch, err := data.NewArch201(run.Final)
			require.NoError(t, err)
			for i, q := range data.Reported201 {
				x, err := table.Accuracy(arch, q)
				require.NoError(t, err)
				mean[i] += x / runs
			}
		}
		for i := range mean {
			require.InDelta(t, paper[i][0], mean[i], paper[i][1], "%s, %s", method, data.Reported201[i])
		}
		t.Logf("%s: %.2f %.2f %.2f", method, mean[0], mean[1], mean[2])
	}
}
