package search

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/nasml/lab/nasml/trial"
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

// bohb is Hyperband with architectures drawn from a kernel density model of good ones (Falkner+ 2018,
// https://arxiv.org/abs/1807.01774), as in HpBandSter, called by AutoDL-Projects. Brackets of Rungs, Rungs−1, …, 1
// rungs take turns; one of Eta architectures is kept from rung to rung, and the models are built for the highest rung
// that has seen enough.
//
// As in the authors' code, the rung changes neither accuracy nor time of a query: an architecture that is kept is
// queried, and paid for, again. Accuracy counts as 0 from the first query that does not fit into the budget. It returns
// the best architecture of the last rung.
func bohb(ctx context.Context, r *tabularRun) error {
	h := &hyperband{tabularRun: r, seen: make([]rungData, r.Rungs)}
	for bracket := 0; bracket < r.Brackets && (!h.over || h.best == nil); bracket++ {
		if err := h.bracket(ctx, r.Rungs-1-bracket%r.Rungs); err != nil {
			return err
		}
	}
	r.Final = h.best
	return nil
}

// hyperband is BOHB's state.
type hyperband struct {
	*tabularRun
	seen []rungData
	over bool // the budget is used up

	best     []int // on the last rung
	bestLoss float64
}

type rungData struct {
	archs     [][]int
	losses    []float64
	good, bad *density
}

// bracket runs successive halving over the last s+1 rungs.
func (h *hyperband) bracket(ctx context.Context, s int) error {
	power := 1
	for range s {
		power *= h.Eta
	}
	n := h.Rungs / (s + 1) * power // ⌈⌊rungs/(s+1)⌋·ηˢ⌉
	var archs [][]int
	for rung := h.Rungs - 1 - s; rung < h.Rungs; rung++ {
		losses := make([]float64, n)
		for i := range n {
			if len(archs) < n {
				archs = append(archs, h.propose())
			}
			var err error
			if losses[i], err = h.try(ctx, rung, archs[i]); err != nil {
				return err
			}
		}
		n = max(n/h.Eta, 1)
		order := ascending(losses)[:n]
		slices.Sort(order)
		archs = trial.At(archs, order)
	}
	return nil
}

// ascending returns the indices of the losses, the lowest first.
func ascending(losses []float64) []int {
	order := trial.Indices(0, len(losses))
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(losses[a], losses[b]) })
	return order
}

// try queries an architecture on a rung and returns its loss, 100 − accuracy.
func (h *hyperband) try(ctx context.Context, rung int, arch []int) (float64, error) {
	loss := 100.0
	if !h.over {
		accuracy, seconds, err := h.query(ctx, arch)
		if err != nil {
			return 0, err
		}
		if h.over = h.spent()+seconds > h.Budget; !h.over {
			loss = 100 - accuracy
			h.note(arch, accuracy, seconds)
		}
	}
	if rung == h.Rungs-1 && (h.best == nil || loss < h.bestLoss) {
		h.best, h.bestLoss = slices.Clone(arch), loss
	}
	h.learn(rung, arch, loss)
	return loss, nil
}

// learn builds the models of a rung again, unless a higher rung has models: the TopPercent best count as good and the
// rest as bad, each at least one more than there are decisions; with fewer there are no models.
func (h *hyperband) learn(rung int, arch []int, loss float64) {
	for _, higher := range h.seen[rung+1:] {
		if higher.good != nil {
			return
		}
	}
	d := &h.seen[rung]
	d.archs, d.losses = append(d.archs, arch), append(d.losses, loss)
	least, n := len(h.counts)+1, len(d.archs)
	good := max(least, h.TopPercent*n/100)
	bad := max(least, (100-h.TopPercent)*n/100)
	if n < good+least {
		return
	}
	order := ascending(d.losses)
	d.good = newDensity(trial.At(d.archs, order[:good]), h.MinBandwidth)
	d.bad = newDensity(trial.At(d.archs, order[good:min(good+bad, n)]), h.MinBandwidth)
}

// propose draws Samples architectures around good ones and returns the one with the lowest ratio of the bad density to
// the good one; without models, and in a RandomFraction of cases, a uniform draw.
func (h *hyperband) propose() []int {
	var d *rungData
	for i := range h.seen {
		if h.seen[i].good != nil {
			d = &h.seen[i]
		}
	}
	if d == nil || h.rng.Float64() < h.RandomFraction {
		return h.random()
	}
	var best []int
	lowest := math.Inf(1)
	for range h.Samples {
		arch := d.good.draw(h.counts, h.rng)
		bad, good := d.bad.at(arch), d.good.at(arch)
		ratio := floor(bad) / floor(good)
		if math.IsNaN(good) {
			ratio = math.NaN()
		}
		if ratio < lowest {
			best, lowest = arch, ratio
		}
		if (math.IsNaN(ratio) || math.IsInf(ratio, 0)) && !math.IsNaN(good) && !math.IsInf(good, 0) {
			best = arch // the bad model knows only one choice of some decision, and this is another
			break
		}
	}
	if best == nil {
		return h.random()
	}
	return best
}

// floor bounds a density from below; NaN counts as none.
func floor(density float64) float64 {
	if density > 1e-32 {
		return density
	}
	return 1e-32
}

// density is a kernel density of architectures with Aitchison and Aitken's kernel for unordered choices,
//
//	p(x) = 1/n Σᵢ Πₑ k(xₑ, Xᵢₑ) ,  k = 1 − hₑ if equal, else hₑ/(cₑ − 1) ,
//
// where cₑ is the number of choices in the data, and bandwidths follow the normal rule hₑ = 1.06 σₑ n^(−1/(4+|E|)), at
// least a minimum. That rule, meant for numbers, can give more than 1, and k is then negative; if only one choice
// occurs, another one's k is infinite. Both hold in statsmodels, which HpBandSter uses.
type density struct {
	data      [][]int
	bandwidth []float64
	levels    []int // cₑ
}

func newDensity(data [][]int, least float64) *density {
	d := &density{data: data}
	n := float64(len(data))
	for e := range data[0] {
		var sum, squares float64
		seen := map[int]bool{}
		for _, x := range data {
			v := float64(x[e])
			sum, squares = sum+v, squares+v*v
			seen[x[e]] = true
		}
		sigma := math.Sqrt(max(squares/n-sum*sum/n/n, 0))
		h := 1.06 * sigma * math.Pow(n, -1/float64(4+len(data[0])))
		d.bandwidth, d.levels = append(d.bandwidth, max(h, least)), append(d.levels, len(seen))
	}
	return d
}

// at is the density of an architecture.
func (d *density) at(arch []int) float64 {
	sum := 0.0
	for _, x := range d.data {
		product := 1.0
		for e, h := range d.bandwidth {
			if x[e] == arch[e] {
				product *= 1 - h
			} else {
				product *= h / float64(d.levels[e]-1)
			}
		}
		sum += product
	}
	return sum / float64(len(d.data))
}

// draw takes one of the data and redraws each of its choices uniformly with probability hₑ.
func (d *density) draw(counts []int, rng *rand.Rand) []int {
	arch := slices.Clone(d.data[rng.IntN(len(d.data))])
	for e, h := range d.bandwidth {
		if rng.Float64() >= 1-h {
			arch[e] = rng.IntN(counts[e])
		}
	}
	return arch
}
