package halving

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "github.com/nasml/lab/nasml/internal/steady"
)

func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 7)) }

func numbered(n int) []int {
	arms := make([]int, n)
	for i := range arms {
		arms[i] = i
	}
	return arms
}

// byArm scores a validation point with what f says of its arm.
func byArm(f func(arm int) float64) Solve[int] {
	return func(_ context.Context, round Round[int]) ([]float64, error) {
		var out []float64
		for _, c := range round.Valid {
			out = append(out, f(round.Arms[c]))
		}
		return out, nil
	}
}

func TestDimsAreThoseOfPaperAndCode(t *testing.T) {
	paper, err := Dims(100000, 8, math.Sqrt2, "last-round")
	require.NoError(t, err)
	assert.Equal(t, []int{8839, 12500, 17678, 25000, 35356, 50000, 70711, 100000}, paper)
	code, err := Dims(100000, 8, math.Sqrt2, "retraining")
	require.NoError(t, err)
	assert.Equal(t, []int{6250, 8839, 12500, 17678, 25000, 35356, 50000, 70711}, code)
	for _, full := range []string{"last-round", "retraining"} {
		plain, err := Dims(100, 3, 1, full)
		require.NoError(t, err)
		assert.Equal(t, []int{100, 100, 100}, plain, "Algorithm 1 has one dimension")
	}
	small, err := Dims(1, 4, 2, "retraining")
	require.NoError(t, err)
	assert.Equal(t, []int{1, 1, 1, 1}, small, "no round is without a feature")
	none, err := Dims(10, 0, 2, "last-round")
	require.NoError(t, err)
	assert.Empty(t, none)
	for _, bad := range []struct {
		d, rounds int
		growth    float64
		full      string
	}{
		{0, 1, 2, "last-round"}, {1, -1, 2, "last-round"}, {1, 1, 0.5, "last-round"},
		{1, 1, math.NaN(), "last-round"}, {1, 1, 2, "never"},
	} {
		_, err := Dims(bad.d, bad.rounds, bad.growth, bad.full)
		assert.Error(t, err, "%v", bad)
	}
}

func TestRoundsIsTheLogarithmRoundedUp(t *testing.T) {
	for n := 1; n <= 1025; n++ {
		assert.Equal(t, int(math.Ceil(math.Log2(float64(n)))), Rounds(n), "%d arms", n)
	}
}

func TestMedian(t *testing.T) {
	assert.Equal(t, 2.0, Median([]float64{3, 1, 2}))
	assert.Equal(t, 2.5, Median([]float64{4, 3, 2, 1}))
	inf := math.Inf(1)
	assert.Equal(t, inf, Median([]float64{1, inf, inf}))
	assert.Equal(t, inf, Median([]float64{1, inf}), "between a number and none")
	assert.True(t, math.IsNaN(Median(nil)))
}

// Four arms with the losses 3, 1, 2, 0: {1, 3} survive the first round, 3 the
// second.
func TestFourArmsByHand(t *testing.T) {
	losses := []float64{3, 1, 2, 0}
	for _, rules := range []Rules{AsPaper(), AsCode()} {
		dims, err := Dims(8, 2, 2, rules.Full)
		require.NoError(t, err)
		trace, err := WeightSharing(
			context.Background(),
			[]string{"a", "b", "c", "d"},
			Points{Train: 5, Valid: 400},
			dims,
			rules,
			random(1),
			func(_ context.Context, round Round[string]) ([]float64, error) {
				assert.Len(t, round.Train, 5)
				var out []float64
				for _, c := range round.Valid {
					assert.Equal(t, []string{"a", "b", "c", "d"}[round.Index[c]], round.Arms[c])
					out = append(out, losses[round.Index[c]])
				}
				return out, nil
			},
		)
		require.NoError(t, err)
		require.Len(t, trace.Rounds, 2)
		assert.Equal(t, losses, trace.Rounds[0].Scores)
		assert.Equal(t, []int{1, 3}, trace.Rounds[0].Kept)
		assert.Equal(t, []int{1, 3}, trace.Rounds[1].Index)
		assert.Equal(t, []int{3}, trace.Rounds[1].Kept)
		assert.Equal(t, 3, trace.Winner)
		assert.Equal(t, dims[1], trace.Rounds[1].Dim)
	}
}

func TestDistinctScoresHalveEverySetAndKeepTheBest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 70).Draw(t, "arms")
		rules := rapid.SampledFrom([]Rules{AsPaper(), AsCode()}).Draw(t, "rules")
		seed := rapid.Uint64().Draw(t, "seed")
		losses := random(seed).Perm(n)
		dims, err := Dims(10, Rounds(n), 1, rules.Full)
		require.NoError(t, err)
		trace, err := WeightSharing(context.Background(), numbered(n), Points{Train: 1, Valid: 60 * n}, dims, rules,
			random(seed+1), byArm(func(arm int) float64 { return float64(losses[arm]) }))
		require.NoError(t, err)
		left := n
		for _, o := range trace.Rounds {
			require.Len(t, o.Index, left)
			left = (left + 1) / 2
			require.Len(t, o.Kept, left)
			require.Contains(t, o.Kept, o.Best)
		}
		require.Equal(t, 1, left)
		require.Equal(t, slices.Index(losses, 0), trace.Winner)
	})
}

// All arms tie: the rule "half" still ends with one, the literal "all" keeps
// everyone, and the code trims to half in the first round only.
func TestTies(t *testing.T) {
	sizes := func(ties string) (kept []int) {
		rules := AsPaper()
		rules.Ties = ties
		trace, err := WeightSharing(context.Background(), numbered(8), Points{Train: 1, Valid: 800}, []int{1, 1, 1},
			rules, random(3), byArm(func(int) float64 { return 0.5 }))
		require.NoError(t, err)
		for _, o := range trace.Rounds {
			kept = append(kept, len(o.Kept))
		}
		return kept
	}
	assert.Equal(t, []int{4, 2, 1}, sizes("half"))
	assert.Equal(t, []int{8, 8, 8}, sizes("all"))
	assert.Equal(t, []int{4, 4, 4}, sizes("first-round"))
}

// Where everything ties, each arm must win as often as any other.
func TestTiesAreBrokenAtRandom(t *testing.T) {
	won := make([]float64, 4)
	const runs = 2000
	for seed := range uint64(runs) {
		trace, err := WeightSharing(context.Background(), numbered(4), Points{Train: 1, Valid: 40}, []int{1, 1},
			AsPaper(), random(seed), byArm(func(int) float64 { return 0 }))
		require.NoError(t, err)
		won[trace.Winner]++
	}
	for arm, n := range won { // five standard deviations of a binomial
		assert.InDelta(t, runs/4, n, 5*math.Sqrt(runs*0.25*0.75), "arm %d", arm)
	}
}

func TestEmptyCells(t *testing.T) {
	means, counts, err := Means([]int{0, 0, 2}, []float64{1, 0, 0.25}, 3, "worst")
	require.NoError(t, err)
	assert.Equal(t, []float64{0.5, math.Inf(1), 0.25}, means)
	assert.Equal(t, []int{2, 0, 1}, counts)
	means, _, err = Means([]int{0, 0, 2}, []float64{1, 0, 0.25}, 3, "wrong")
	require.NoError(t, err)
	assert.Equal(t, 1.0, means[1])
	_, _, err = Means([]int{0}, []float64{math.NaN()}, 1, "worst")
	assert.ErrorContains(t, err, "NaN")
	// One validation point for 64 arms: its arm is the only one that was seen.
	trace, err := WeightSharing(context.Background(), numbered(64), Points{Train: 1, Valid: 1}, make([]int, 6),
		AsPaper(), random(5), byArm(func(int) float64 { return 9 }))
	require.NoError(t, err)
	first := trace.Rounds[0]
	assert.Equal(t, 9.0, first.Scores[first.Best])
	assert.Len(t, first.Kept, 32)
	assert.Contains(t, first.Kept, first.Best)
}

func TestOneArmWinsWithoutASolve(t *testing.T) {
	trace, err := WeightSharing(context.Background(), []int{7}, Points{Train: 1, Valid: 1}, nil, AsPaper(), random(0),
		func(context.Context, Round[int]) ([]float64, error) { return nil, errors.New("called") })
	require.NoError(t, err)
	assert.Empty(t, trace.Rounds)
	assert.Zero(t, trace.Winner)
}

// The assignment is uniform over the arms and independent between training and
// validation examples.
func TestAssignmentIsUniform(t *testing.T) {
	const arms, n = 4, 40000
	_, err := WeightSharing(
		context.Background(),
		numbered(arms),
		Points{Train: n, Valid: n},
		[]int{1, 1},
		AsPaper(),
		random(11),
		func(_ context.Context, round Round[int]) ([]float64, error) {
			k := len(round.Arms)
			pairs := make([]float64, k*k)
			for i := range n {
				pairs[round.Train[i]*k+round.Valid[i]]++
			}
			chi2, want := 0.0, float64(n)/float64(k*k)
			for _, seen := range pairs {
				chi2 += (seen - want) * (seen - want) / want
			}
			assert.Less(t, chi2, 45.0, "χ² with %d degrees of freedom", k*k-1) // 1 − 1e-4 quantile for 15: 44.3
			return make([]float64, n), nil
		},
	)
	require.NoError(t, err)
}

func TestWeightSharingErrors(t *testing.T) {
	ok := byArm(func(int) float64 { return 0 })
	ctx, points, rules := context.Background(), Points{Train: 1, Valid: 1}, AsPaper()
	run := func(arms int, p Points, dims []int, r Rules, solve Solve[int]) error {
		_, err := WeightSharing(ctx, numbered(arms), p, dims, r, random(0), solve)
		return err
	}
	assert.ErrorContains(t, run(0, points, nil, rules, ok), "at least one arm")
	assert.ErrorContains(t, run(2, Points{Train: 1}, []int{1}, rules, ok), "0 validation")
	assert.ErrorContains(t, run(4, points, []int{1}, rules, ok), "one a round: 2")
	bad := rules
	bad.Ties = "coin"
	assert.ErrorContains(t, run(2, points, []int{1}, bad, ok), "coin")
	assert.ErrorContains(
		t,
		run(2, points, []int{1}, rules, func(context.Context, Round[int]) ([]float64, error) { return nil, nil }),
		"0 values for 1",
	)
	assert.ErrorContains(t, run(2, points, []int{1}, rules, func(context.Context, Round[int]) ([]float64, error) {
		return nil, errors.New("singular")
	}), "round 1, 2 arms: singular")
	stopped, cancel := context.WithCancel(ctx)
	trace, err := WeightSharing(
		stopped,
		numbered(4),
		Points{Train: 1, Valid: 9},
		[]int{1, 1},
		rules,
		random(0),
		func(c context.Context, r Round[int]) ([]float64, error) {
			cancel()
			return ok(c, r)
		},
	)
	assert.ErrorIs(t, err, context.Canceled)
	assert.Len(t, trace.Rounds, 1, "the round before stays")
}

func TestDifferences(t *testing.T) {
	assert.Empty(t, Differences(AsPaper(), AsPaper()))
	assert.Equal(t, []string{
		"empty: worst, wrong", "full: last-round, retraining", "incumbent: any, promoted",
		"score: loss, error", "tied: first, last", "ties: half, first-round",
	}, Differences(AsPaper(), AsCode()))
	assert.NoError(t, AsPaper().Check())
	assert.NoError(t, AsCode().Check())
}
