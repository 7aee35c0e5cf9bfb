package search

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"
)

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
		archs = gathered(archs, order)
	}
	return nil
}

// gathered are the elements at some places.
func gathered[T any](all []T, places []int) []T {
	out := make([]T, len(places))
	for i, at := range places {
		out[i] = all[at]
	}
	return out
}

// ascending returns the indices of the losses, the lowest first.
func ascending(losses []float64) []int {
	order := make([]int, len(losses))
	for i := range order {
		order[i] = i
	}
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
	d.good = newDensity(gathered(d.archs, order[:good]), h.MinBandwidth)
	d.bad = newDensity(gathered(d.archs, order[good:min(good+bad, n)]), h.MinBandwidth)
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

// density is a kernel density of architectures with Aitchison and Aitken's
// kernel for unordered choices,
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
