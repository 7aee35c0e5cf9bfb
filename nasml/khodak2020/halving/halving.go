// Package halving has the elimination schedules of hyperparameter search: Algorithm 1 of Khodak+ 2020 (one solve with
// shared weights a round, arms halved at the median of their validation scores), its fast variant with a growing
// feature dimension, random search, successive halving and Hyperband.
//
// What an arm is and how it is scored is the caller's: an arm is any type, and a score is a number of which the lower
// is better. The package decides who is tried, with what, and who stays. It knows no other package of ours.
package halving

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"

	"github.com/nasml/lab/nasml/trial"
)

// Rules are the readings of Algorithm 1, of Fast Weight-Sharing and of the baselines in which the paper and its
// authors' code differ, or which the paper leaves open. [Differences] lists those of two rules.
type Rules struct {
	// Score is what the caller's solve should return of a validation point: "loss" or "error" (0 or 1).
	Score string `json:"score"`

	// Ties says who stays where scores at the median are equal: "half" keeps ⌈n/2⌉ of the n arms, the tied ones at
	// random; "all" keeps every arm with a score at or below the median; "first-round" keeps them all too, but trims at
	// random to half of the initial arms, which acts in round 1 only.
	Ties string `json:"ties"`

	// Empty is the score of an arm that no validation point was assigned to:
	// "worst" (+∞), or "wrong", that of an arm that is always wrong: 1.
	Empty string `json:"empty"`

	// Full says which shared solve of Fast Weight-Sharing has all d features: the "last-round", or none, so that only
	// the "retraining" of the winner has them.
	Full string `json:"full"`

	// Incumbent says which scores count for the best arm of successive halving and Hyperband: "any" score, at whatever
	// resource it was found, or only those that were "promoted" to the next rung.
	Incumbent string `json:"incumbent"`

	// Tied says which of two arms with the same score a rung of successive
	// halving prefers: the one that came "first" or "last".
	Tied string `json:"tied"`
}

// AsPaper are the rules as Algorithm 1 and Appendix B.1 print them; where they
// leave ties and empty cells open, the reading that ends with one arm.
func AsPaper() Rules {
	return Rules{Score: "loss", Ties: "half", Empty: "worst", Full: "last-round", Incumbent: "any", Tied: "first"}
}

// AsCode are the rules of the authors' code.
func AsCode() Rules {
	return Rules{
		Score: "error", Ties: "first-round", Empty: "wrong", Full: "retraining", Incumbent: "promoted", Tied: "last",
	}
}

// Check returns an error for a rule that is not known.
func (r Rules) Check() error {
	for _, rule := range []struct {
		name, got string
		known     []string
	}{
		{"Score", r.Score, []string{"loss", "error"}},
		{"Ties", r.Ties, []string{"half", "all", "first-round"}},
		{"Empty", r.Empty, []string{"worst", "wrong"}},
		{"Full", r.Full, []string{"last-round", "retraining"}},
		{"Incumbent", r.Incumbent, []string{"any", "promoted"}},
		{"Tied", r.Tied, []string{"first", "last"}},
	} {
		if !slices.Contains(rule.known, rule.got) {
			return fmt.Errorf("rule %s must be one of %q, got %q", rule.name, rule.known, rule.got)
		}
	}
	return nil
}

// Differences lists the rules in which a and b differ: "ties: half, all".
func Differences(a, b Rules) (all []string) {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range x.NumField() {
		if x.Field(i).String() != y.Field(i).String() {
			all = append(all, fmt.Sprintf("%s: %v, %v", x.Type().Field(i).Tag.Get("json"), x.Field(i), y.Field(i)))
		}
	}
	slices.Sort(all)
	return all
}

// Rounds is the number of rounds that leave one of n arms, ⌈log₂ n⌉: 0 for one arm, 8 for 256.
func Rounds(n int) int {
	rounds := 0
	for left := n; left > 1; left = (left + 1) / 2 {
		rounds++
	}
	return rounds
}

// Dims is the feature dimension of each of so many rounds,
//
//	dₜ = ⌈d·growth^−(rounds−t)⌉,  t = 1 … rounds ,
//
// so that the last one has all d; where full is "retraining" every round has one power less, and only the training of
// the winner has d. Growth 1 is Algorithm 1 itself; Fast Weight-Sharing has √2.
func Dims(d, rounds int, growth float64, full string) ([]int, error) {
	switch {
	case d < 1 || rounds < 0:
		return nil, fmt.Errorf("dimension %d over %d rounds, expected at least 1 over at least 0", d, rounds)
	case !(growth >= 1) || math.IsInf(growth, 1):
		return nil, fmt.Errorf("growth must be at least 1, such as √2, got %v", growth)
	case full != "last-round" && full != "retraining":
		return nil, fmt.Errorf("all features must come at last-round or retraining, got %q", full)
	}
	dims := make([]int, rounds)
	for t := range dims {
		power := float64(rounds - 1 - t)
		if full == "retraining" && growth > 1 {
			power++
		}
		// The small number keeps 100000·√2⁻⁸ = 6250 from becoming 6251.
		dims[t] = max(1, int(math.Ceil(float64(d)*math.Pow(growth, -power)-1e-6)))
	}
	return dims, nil
}

// Evaluate trains one arm by itself with a resource, such as a number of
// features, and returns its validation score: the lower the better.
type Evaluate[A any] func(ctx context.Context, arm A, resource int) (float64, error)

// Rung is one stage of successive halving: so many arms, each with so much.
type Rung struct {
	Arms     int `json:"arms"`
	Resource int `json:"resource"`
}

// Ladder is the rungs of one bracket of successive halving from n arms with the resource r each: ⌊n/ηⁱ⌋ arms with
// ⌊r·ηⁱ⌋, at most the largest resource, while there are arms and resource is left to grow.
func Ladder(n int, r float64, eta, largest int) ([]Rung, error) {
	if n < 1 || !(r >= 1) || eta < 2 || float64(largest) < r {
		return nil, fmt.Errorf(
			"%d arms with %v of %d, factor %d: expected at least one arm, 1 ≤ resource ≤ largest, factor at least 2", n,
			r, largest, eta)
	}
	var rungs []Rung
	const rounding = 1e-9 // of r·ηⁱ
	for arms, at := n, r; arms > 0 && at <= float64(largest)*(1+rounding); arms, at = arms/eta, at*float64(eta) {
		rungs = append(rungs, Rung{arms, min(largest, int(at*(1+rounding)))})
	}
	return rungs, nil
}

// Try is one evaluation of an arm by itself.
type Try struct {
	Arm      int     // by its place in the arms
	Resource int     // what it was trained with
	Score    float64 // the lower the better
	Best     int     // place in the tries of the best one so far, by Rules.Incumbent; −1: none yet
}

// Hyperband runs ladders one after the other, each with arms of its own from the front of those that are left (Li et
// al. 2018, Algorithm 1): the first arms of its first rung are evaluated, and the best of each rung go on to the next
// one. One ladder is successive halving, and one of a single rung random search.
//
// It returns an error if rungs want more arms than are left or than the one before has, if a score is NaN or evaluate
// fails, or if ctx ends; the tries before are returned.
func Hyperband[A any](
	ctx context.Context, arms []A, ladders [][]Rung, rules Rules, evaluate Evaluate[A],
) (tries []Try, err error) {
	first := 0
	for s, rungs := range ladders {
		if tries, err = climb(ctx, tries, arms, first, rungs, rules, evaluate); err != nil {
			return tries, fmt.Errorf("ladder %d of %d: %w", s+1, len(ladders), err)
		}
		first += rungs[0].Arms
	}
	return tries, nil
}

func climb[A any](
	ctx context.Context, tries []Try, arms []A, first int, rungs []Rung, rules Rules, evaluate Evaluate[A],
) ([]Try, error) {
	if err := checkLadder(len(arms)-first, rungs, rules); err != nil {
		return tries, err
	}
	standing := trial.Indices(first, rungs[0].Arms)
	for i, rung := range rungs {
		from := len(tries)
		for _, arm := range standing {
			if err := ctx.Err(); err != nil {
				return tries, err
			}
			score, err := evaluate(ctx, arms[arm], rung.Resource)
			if err == nil && math.IsNaN(score) {
				err = errors.New("its score is NaN")
			}
			if err != nil {
				return tries, fmt.Errorf("arm %d with %d: %w", arm, rung.Resource, err)
			}
			best := -1
			if len(tries) > 0 {
				best = tries[len(tries)-1].Best
			}
			if rules.Incumbent == "any" && (best < 0 || score < tries[best].Score) {
				best = len(tries)
			}
			tries = append(tries, Try{arm, rung.Resource, score, best})
		}
		next := 0
		if i+1 < len(rungs) {
			next = rungs[i+1].Arms
		}
		standing = promote(tries, from, next, rules)
	}
	return tries, nil
}

// promote takes the best so many tries of a rung that starts at from, and
// makes the best of them the incumbent where the rule waits for that.
func promote(tries []Try, from, next int, rules Rules) []int {
	order := trial.Indices(from, len(tries)-from)
	if rules.Tied == "last" {
		slices.Reverse(order)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(tries[a].Score, tries[b].Score) })
	var standing []int
	for _, i := range order[:next] {
		standing = append(standing, tries[i].Arm)
	}
	if last := &tries[len(tries)-1]; rules.Incumbent == "promoted" && next > 0 {
		if last.Best < 0 || tries[order[0]].Score < tries[last.Best].Score {
			last.Best = order[0]
		}
	}
	return standing
}

func checkLadder(arms int, rungs []Rung, rules Rules) error {
	if len(rungs) == 0 {
		return errors.New("at least one rung is needed")
	}
	for i, rung := range rungs {
		if rung.Arms < 1 || rung.Arms > arms || rung.Resource < 1 {
			return fmt.Errorf("rung %d has %d arms with %d each, expected 1 to %d arms with at least 1", i+1, rung.Arms,
				rung.Resource, arms)
		}
		arms = rung.Arms
	}
	return rules.Check()
}

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

// WeightSharing is Algorithm 1 of Khodak+ 2020 with a feature dimension a round (see [Dims]): in round t every example
// is assigned an arm, one solve trains the shared weights, s_c is the mean of the arm's own validation examples,
//
//	s_c = (1/|V_c|) Σ_{V_c} ℓ ,  C ← {c ∈ C : s_c ≤ Median(s)} .
//
// One arm is its own winner without a solve. Where ties leave more than one arm, the lowest score of the last round
// wins. All draws come from rng; solve may keep what is in the round.
//
// It returns an error if there is no arm or no validation example, a rule is not known, dims has not one dimension a
// round, a score is NaN, and where solve fails; then, and where ctx ends, the trace has the rounds before.
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

// Means is the mean value of each of n cells and how many values it has: cells says which cell a value belongs to. The
// mean of an empty cell is +∞, or 1 where empty is "wrong". It returns an error if a value is NaN or a cell is outside
// 0…n−1.
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

// ranking sorts the arms by score. Equal ones are in random order where the rule trims them to half, so that the best
// arm always stays; else the first one comes first.
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
