package search

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// tabularRun is a run that goes on.
type tabularRun struct {
	TabularSettings
	bench  Bench
	groups [][]int
	counts []int // choices of every decision
	rng    *rand.Rand
	Trajectory
}

// tabular is a method whose search adds to the steps of a run; it may choose the final architecture.
func tabular(search func(ctx context.Context, r *tabularRun) error) Tabular {
	return func(ctx context.Context, bench Bench, s TabularSettings, rng *rand.Rand) (Trajectory, error) {
		r, err := startTabular(bench, s, rng)
		if err == nil {
			err = search(ctx, r)
		}
		if err != nil {
			return Trajectory{}, err
		}
		return r.finish()
	}
}

func startTabular(bench Bench, s TabularSettings, rng *rand.Rand) (*tabularRun, error) {
	r := &tabularRun{TabularSettings: s, bench: bench, groups: bench.Groups(), rng: rng}
	for _, group := range r.groups {
		r.counts = append(r.counts, group...)
	}
	if len(r.counts) == 0 || slices.Min(r.counts) < 2 ||
		slices.ContainsFunc(r.groups, func(g []int) bool { return len(g) == 0 }) {
		return nil, fmt.Errorf("found a benchmark with the decisions %v, expected at least one in every group and "+
			"at least two choices in each", r.groups)
	}
	return r, nil
}

func (r *tabularRun) random() []int {
	arch := make([]int, len(r.counts))
	for i, n := range r.counts {
		arch[i] = r.rng.IntN(n)
	}
	return arch
}

// query asks for an architecture without noting it.
func (r *tabularRun) query(ctx context.Context, arch []int) (accuracy, seconds float64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, 0, err
	}
	accuracy, seconds, err = r.bench.Query(arch)
	switch {
	case err != nil:
		return 0, 0, err
	case math.IsNaN(accuracy) || math.IsInf(accuracy, 0):
		return 0, 0, fmt.Errorf("the benchmark says that %v has accuracy %v, expected a number", arch, accuracy)
	case !(seconds > 0) || math.IsInf(seconds, 0):
		return 0, 0, fmt.Errorf("the benchmark says that trying %v takes %v s, expected a time greater than 0: "+
			"else no budget is ever used up", arch, seconds)
	}
	if r.SeedNoise > 0 {
		accuracy += r.SeedNoise * r.rng.NormFloat64()
	}
	return accuracy, seconds, nil
}

func (r *tabularRun) spent() float64 {
	if len(r.Steps) == 0 {
		return 0
	}
	return r.Steps[len(r.Steps)-1].Seconds
}

func (r *tabularRun) note(arch []int, accuracy, seconds float64) {
	step := TabularStep{Arch: slices.Clone(arch), Accuracy: accuracy, Seconds: r.spent() + seconds, Best: len(r.Steps)}
	if len(r.Steps) > 0 {
		if best := r.Steps[len(r.Steps)-1].Best; r.Steps[best].Accuracy >= accuracy {
			step.Best = best
		}
	}
	r.Steps = append(r.Steps, step)
}

// fill queries architectures until one does not fit into the budget, and notes the others.
func (r *tabularRun) fill(ctx context.Context, next func() []int) error {
	for r.spent() < r.Budget {
		arch := next()
		accuracy, seconds, err := r.query(ctx, arch)
		if err != nil || r.spent()+seconds > r.Budget {
			return err
		}
		r.note(arch, accuracy, seconds)
	}
	return nil
}

// finish returns the trajectory with the best architecture of all, unless the method has chosen another.
func (r *tabularRun) finish() (Trajectory, error) {
	if len(r.Steps) == 0 {
		return Trajectory{}, fmt.Errorf("found no query within the budget of %v simulated seconds, expected room "+
			"for one: raise Budget or lower Epochs (%d)", r.Budget, r.Epochs)
	}
	if r.Final == nil {
		r.Final = r.Steps[r.Steps[len(r.Steps)-1].Best].Arch
	}
	return r.Trajectory, nil
}

// randomSearch draws architectures uniformly, with replacement, until one does not fit into the budget; the best wins.
func randomSearch(ctx context.Context, r *tabularRun) error {
	return r.fill(ctx, r.random)
}

// regularizedEvolution is aging evolution (Real+ 2019, algorithm 1): the best of Sample members of the population,
// drawn with replacement, gets a child with one operation changed, which replaces the oldest member. The first
// population is drawn uniformly and paid for whatever the budget; a child that does not fit into it is dropped. The
// best architecture of the whole history wins.
func regularizedEvolution(ctx context.Context, r *tabularRun) error {
	for len(r.Steps) < r.Population {
		arch := r.random()
		accuracy, seconds, err := r.query(ctx, arch)
		if err != nil {
			return err
		}
		r.note(arch, accuracy, seconds)
	}
	return r.fill(ctx, func() []int {
		return r.mutate(r.parent(r.Steps[len(r.Steps)-r.Population:])) // the youngest are the population
	})
}

// parent is the best of Sample members.
func (r *tabularRun) parent(population []TabularStep) []int {
	best := population[r.rng.IntN(len(population))]
	for range r.Sample - 1 {
		if m := population[r.rng.IntN(len(population))]; m.Accuracy > best.Accuracy {
			best = m
		}
	}
	return best.Arch
}

func (r *tabularRun) mutate(arch []int) []int {
	at := r.rng.IntN(len(arch))
	if r.Mutate == MutateNode {
		group := r.rng.IntN(len(r.groups))
		at = r.rng.IntN(len(r.groups[group]))
		for _, g := range r.groups[:group] {
			at += len(g)
		}
	}
	child := slices.Clone(arch)
	child[at] = r.rng.IntN(r.counts[at] - 1)
	if child[at] >= arch[at] {
		child[at]++
	}
	return child
}

// reinforce draws every decision from a softmax of its own and moves the
// logits by Adam along the policy gradient (Williams 1992),
//
//	∇ = −(R − b) ∇ Σₑ log πₑ(aₑ) ,
//
// with reward R, the accuracy in percent, and baseline b, the moving average of all rewards including this one. It ends
// with the query that does not fit into the budget; as in the authors' code that one still counts for the best, which
// Pick returns.
func reinforce(ctx context.Context, r *tabularRun) error {
	p := newPolicy(r.counts, r.Rate, r.rng)
	var sum, weight float64 // of the moving average
	for r.spent() < r.Budget {
		arch := p.draw(r.rng)
		accuracy, seconds, err := r.query(ctx, arch)
		if err != nil {
			return err
		}
		r.note(arch, accuracy, seconds)
		if r.spent() >= r.Budget {
			break
		}
		sum = r.Baseline*sum + (1-r.Baseline)*accuracy
		weight = r.Baseline*weight + (1 - r.Baseline)
		p.step(arch, accuracy-sum/weight)
	}
	if r.Pick == PickPolicy {
		r.Final = p.mode()
	}
	return nil
}

// policy is a softmax for every decision and Adam on its logits.
type policy struct {
	logits, m, v [][]float64
	rate         float64
	steps        int
}

// newPolicy starts with logits from 10⁻³·N(0, 1).
func newPolicy(counts []int, rate float64, rng *rand.Rand) *policy {
	p := &policy{rate: rate}
	for _, n := range counts {
		row := make([]float64, n)
		for i := range row {
			row[i] = 1e-3 * rng.NormFloat64()
		}
		p.logits, p.m, p.v = append(p.logits, row), append(p.m, make([]float64, n)), append(p.v, make([]float64, n))
	}
	return p
}

func (p *policy) probabilities(e int) []float64 {
	most, sum := slices.Max(p.logits[e]), 0.0
	out := make([]float64, len(p.logits[e]))
	for i, x := range p.logits[e] {
		out[i] = math.Exp(x - most)
		sum += out[i]
	}
	for i := range out {
		out[i] /= sum
	}
	return out
}

func (p *policy) draw(rng *rand.Rand) []int {
	arch := make([]int, len(p.logits))
	for e := range arch {
		u := rng.Float64()
		probabilities := p.probabilities(e)
		for arch[e] = 0; arch[e] < len(probabilities)-1 && u >= probabilities[arch[e]]; arch[e]++ {
			u -= probabilities[arch[e]]
		}
	}
	return arch
}

// mode is the most probable choice of every decision.
func (p *policy) mode() []int {
	arch := make([]int, len(p.logits))
	for e, row := range p.logits {
		arch[e] = slices.Index(row, slices.Max(row))
	}
	return arch
}

// step is a step of Adam (β = 0.9, 0.999, ε = 10⁻⁸) on −advantage·Σₑ log πₑ(aₑ), whose gradient is advantage·(πₑ −
// onehot(aₑ)).
func (p *policy) step(arch []int, advantage float64) {
	p.steps++
	bias1, bias2 := 1-math.Pow(0.9, float64(p.steps)), 1-math.Pow(0.999, float64(p.steps))
	for e, row := range p.logits {
		for i, g := range p.probabilities(e) {
			if i == arch[e] {
				g--
			}
			g *= advantage
			p.m[e][i] = 0.9*p.m[e][i] + 0.1*g
			p.v[e][i] = 0.999*p.v[e][i] + 0.001*g*g
			row[i] -= p.rate * (p.m[e][i] / bias1) / (math.Sqrt(p.v[e][i]/bias2) + 1e-8)
		}
	}
}
