package halving

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/nasml/lab/nasml/trial"
)

// Points is how many examples are assigned to arms.
type Points struct {
	Train, Valid int
}

// Round is what one shared solve works on: every example has its own arm,
// c_x ~ Unif(C) independently, drawn again in every round.
type Round[A any] struct {
	Number int   // t = 1, 2, …
	Arms   []A   // those that are left
	Index  []int // of each in the initial arms
	Dim    int   // feature dimension of this round
	Train  []int // for every training example the position of its arm in Arms
	Valid  []int // for every validation example
}

// Solve trains the shared weights of a round and returns for every validation
// example its loss, or 0 and 1 for right and wrong, as Rules.Score says.
type Solve[A any] func(ctx context.Context, round Round[A]) ([]float64, error)

// Outcome is what a round found.
type Outcome struct {
	Dim    int       // feature dimension
	Index  []int     // arms of the round, by their place in the initial arms
	Scores []float64 // s_c of each; +∞ where the cell is empty and the rule says worst
	Cells  []int     // |V_c| of each
	Kept   []int     // those that go on, by their place in the initial arms
	Best   int       // the arm with the lowest score, likewise
}

// Trace is a run of Algorithm 1.
type Trace struct {
	Rounds []Outcome // one a solve
	Winner int       // by its place in the initial arms
}

// WeightSharing is Algorithm 1 of Khodak+ 2020 with a feature dimension a
// round (see [Dims]): in round t every example is assigned an arm, one solve
// trains the shared weights, s_c is the mean of the arm's own validation
// examples,
//
//	s_c = (1/|V_c|) Σ_{V_c} ℓ ,  C ← {c ∈ C : s_c ≤ Median(s)} .
//
// One arm is its own winner without a solve. Where ties leave more than one
// arm, the lowest score of the last round wins. All draws come from rng; solve
// may keep what is in the round.
//
// It returns an error if there is no arm or no validation example, a rule is not
// known, dims has not one dimension a round, a score is NaN, and where solve
// fails; then, and where ctx ends, the trace has the rounds before.
func WeightSharing[A any](
	ctx context.Context, arms []A, points Points, dims []int, rules Rules, rng *rand.Rand, solve Solve[A],
) (*Trace, error) {
	if err := checkSharing(len(arms), points, dims, rules); err != nil {
		return nil, err
	}
	index := trial.Indices(0, len(arms))
	trace := &Trace{Winner: index[0]}
	for t, dim := range dims {
		if err := ctx.Err(); err != nil {
			return trace, err
		}
		round := Round[A]{
			Number: t + 1, Index: slices.Clone(index), Dim: dim,
			Train: Assign(points.Train, len(index), rng), Valid: Assign(points.Valid, len(index), rng),
		}
		for _, i := range index {
			round.Arms = append(round.Arms, arms[i])
		}
		values, err := solve(ctx, round)
		if err != nil {
			return trace, fmt.Errorf("round %d, %d arms: %w", t+1, len(index), err)
		}
		o, err := judge(round.Index, dim, round.Valid, values, rules, len(arms), rng)
		if err != nil {
			return trace, fmt.Errorf("round %d: %w", t+1, err)
		}
		trace.Rounds = append(trace.Rounds, o)
		trace.Winner, index = o.Best, o.Kept
	}
	return trace, nil
}

func checkSharing(arms int, points Points, dims []int, rules Rules) error {
	switch {
	case arms < 1:
		return errors.New("at least one arm is needed")
	case points.Train < 1 || points.Valid < 1:
		return fmt.Errorf("%d training and %d validation examples, expected at least one of each", points.Train,
			points.Valid)
	case len(dims) != Rounds(arms):
		return fmt.Errorf("%d dimensions for %d arms, expected one a round: %d", len(dims), arms, Rounds(arms))
	}
	return rules.Check()
}

// Assign draws an arm for each of n examples.
func Assign(n, arms int, rng *rand.Rand) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = rng.IntN(arms)
	}
	return out
}

func judge(
	index []int, dim int, cells []int, values []float64, rules Rules, initial int, rng *rand.Rand,
) (Outcome, error) {
	if len(values) != len(cells) {
		return Outcome{}, fmt.Errorf("%d values for %d validation examples", len(values), len(cells))
	}
	o := Outcome{Dim: dim, Index: index}
	var err error
	if o.Scores, o.Cells, err = Means(cells, values, len(index), rules.Empty); err != nil {
		return o, err
	}
	order := ranking(o.Scores, rules.Ties, rng)
	o.Best = index[order[0]]
	keep := survivors(o.Scores, order, rules.Ties, initial)
	slices.Sort(keep)
	for _, i := range keep {
		o.Kept = append(o.Kept, index[i])
	}
	return o, nil
}

// Means is the mean value of each of n cells and how many values it has: cells
// says which cell a value belongs to. The mean of an empty cell is +∞, or 1
// where empty is "wrong". It returns an error if a value is NaN or a cell is
// outside 0…n−1.
func Means(cells []int, values []float64, n int, empty string) (means []float64, counts []int, err error) {
	means, counts = make([]float64, n), make([]int, n)
	for i, c := range cells {
		switch {
		case c < 0 || c >= n:
			return nil, nil, fmt.Errorf("example %d is in cell %d of %d", i, c, n)
		case math.IsNaN(values[i]):
			return nil, nil, fmt.Errorf("the loss of validation example %d is NaN", i)
		}
		means[c] += values[i]
		counts[c]++
	}
	for c := range means {
		switch {
		case counts[c] > 0:
			means[c] /= float64(counts[c])
		case empty == "wrong":
			means[c] = 1
		default:
			means[c] = math.Inf(1)
		}
	}
	return means, counts, nil
}

// ranking sorts the arms by score. Equal ones are in random order where the
// rule trims them to half, so that the best arm always stays; else the first
// one comes first.
func ranking(scores []float64, ties string, rng *rand.Rand) []int {
	order := trial.Indices(0, len(scores))
	if ties == "half" {
		rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(scores[a], scores[b]) })
	if ties == "first-round" { // the first one is the best, who is trimmed below it is drawn
		shuffleTied(order[1:], scores, rng)
	}
	return order
}

func shuffleTied(order []int, scores []float64, rng *rand.Rand) {
	for from := 0; from < len(order); {
		to := from + 1
		for to < len(order) && scores[order[to]] == scores[order[from]] {
			to++
		}
		run := order[from:to]
		rng.Shuffle(len(run), func(i, j int) { run[i], run[j] = run[j], run[i] })
		from = to
	}
}

// survivors are those of the ranked arms that go on.
func survivors(scores []float64, order []int, ties string, initial int) []int {
	half := func(n int) int { return (n + 1) / 2 }
	if ties == "half" {
		return slices.Clone(order[:half(len(order))])
	}
	median := Median(scores)
	var keep []int
	for _, i := range order {
		if scores[i] <= median {
			keep = append(keep, i)
		}
	}
	if most := half(initial); ties == "first-round" && len(keep) > most {
		keep = keep[:most]
	}
	return keep
}

// Median is the middle one of the values, or the mean of the two in the
// middle, as NumPy's quantile(½) has it. It is NaN if there are none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(values))
	low, high := s[(len(s)-1)/2], s[len(s)/2]
	if low == high { // also where both are +∞
		return low
	}
	return low + (high-low)/2
}
