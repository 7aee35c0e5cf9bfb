package halving

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The rungs that the authors ran, and those of the table of Li et al. 2018 (η = 3,
// R = 81).
func TestLaddersOfTheLiterature(t *testing.T) {
	ladder := func(n int, r float64, eta, largest int) []Rung {
		rungs, err := Ladder(n, r, eta, largest)
		require.NoError(t, err)
		return rungs
	}
	assert.Equal(t, []Rung{{64, 1562}, {16, 6250}, {4, 25000}, {1, 100000}}, ladder(64, 1562.5, 4, 100000))
	assert.Equal(t, []Rung{{18, 1 << 21}, {9, 1 << 22}, {4, 1 << 23}, {2, 1 << 24}}, ladder(18, 1<<21, 2, 1<<24))
	assert.Equal(t, []Rung{{81, 1}, {27, 3}, {9, 9}, {3, 27}, {1, 81}}, ladder(81, 1, 3, 81))
	assert.Equal(t, []Rung{{34, 3}, {11, 9}, {3, 27}, {1, 81}}, ladder(34, 3, 3, 81))
	assert.Equal(t, []Rung{{5, 81}}, ladder(5, 81, 3, 81))
	_, err := Ladder(0, 1, 2, 8)
	assert.Error(t, err)
}

// alone is successive halving.
func alone[A any](arms []A, rungs []Rung, rules Rules, evaluate Evaluate[A]) ([]Try, error) {
	return Hyperband(context.Background(), arms, [][]Rung{rungs}, rules, evaluate)
}

// Every rung of every bracket costs about the same and ends at the largest
// resource or one arm.
func TestLadderProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, r := rapid.IntRange(1, 300).Draw(t, "n"), rapid.IntRange(1, 50).Draw(t, "r")
		eta, most := rapid.IntRange(2, 5).Draw(t, "eta"), rapid.IntRange(50, 5000).Draw(t, "largest")
		rungs, err := Ladder(n, float64(r), eta, most)
		require.NoError(t, err)
		require.Equal(t, Rung{Arms: n, Resource: r}, rungs[0])
		for i, rung := range rungs[1:] {
			require.Equal(t, rungs[i].Arms/eta, rung.Arms)
			require.Equal(t, rungs[i].Resource*eta, rung.Resource)
		}
		last := rungs[len(rungs)-1]
		require.True(t, last.Arms/eta == 0 || last.Resource*eta > most)
	})
}

// Arm i has the loss i: the rungs must take the smallest to the top.
func TestSuccessiveHalvingByHand(t *testing.T) {
	arms := []float64{5, 2, 7, 0, 3, 6, 1, 4}
	rungs := []Rung{{8, 10}, {4, 20}, {2, 40}}
	var asked [][2]int
	evaluate := func(_ context.Context, arm float64, resource int) (float64, error) {
		asked = append(asked, [2]int{int(arm), resource})
		return arm, nil
	}
	tries, err := alone(arms, rungs, AsPaper(), evaluate)
	require.NoError(t, err)
	assert.Equal(
		t,
		[][2]int{
			{5, 10},
			{2, 10},
			{7, 10},
			{0, 10},
			{3, 10},
			{6, 10},
			{1, 10},
			{4, 10},
			{0, 20},
			{1, 20},
			{2, 20},
			{3, 20},
			{0, 40},
			{1, 40},
		},
		asked,
	)
	var best []int
	for _, try := range tries {
		best = append(best, tries[try.Best].Arm)
	}
	assert.Equal(t, []int{0, 1, 1, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3}, best)
}

// As the code has it, only what is promoted becomes the incumbent, so that the
// last rung, which promotes none of its one arm, changes nothing; and the
// later of two equal arms is promoted.
func TestSuccessiveHalvingAsTheCode(t *testing.T) {
	scores := map[int]float64{1: 0.5, 2: 0.1} // by resource: better with more
	evaluate := func(_ context.Context, _ int, resource int) (float64, error) { return scores[resource], nil }
	tries, err := alone(numbered(4), []Rung{{4, 1}, {1, 2}}, AsCode(), evaluate)
	require.NoError(t, err)
	require.Len(t, tries, 5)
	assert.Equal(t, -1, tries[2].Best, "nothing was promoted yet")
	assert.Equal(t, 3, tries[3].Best, "the last of the equal arms")
	assert.Equal(t, 3, tries[4].Arm)
	assert.Equal(t, 3, tries[4].Best, "the top rung does not count")
	paper, err := alone(numbered(4), []Rung{{4, 1}, {1, 2}}, AsPaper(), evaluate)
	require.NoError(t, err)
	assert.Equal(t, 0, paper[4].Arm)
	assert.Equal(t, 4, paper[4].Best)
}

// Random search's best is the running minimum, and Hyperband's last bracket is
// random search with the arms that are left.
func TestRandomSearchAndHyperband(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		losses := random(rapid.Uint64().Draw(t, "seed")).Perm(rapid.IntRange(1, 40).Draw(t, "n"))
		evaluate := func(_ context.Context, arm, _ int) (float64, error) { return float64(losses[arm]), nil }
		tries, err := alone(numbered(len(losses)), []Rung{{len(losses), 3}}, AsPaper(), evaluate)
		require.NoError(t, err)
		for i, try := range tries {
			require.Equal(t, float64(slices.Min(losses[:i+1])), tries[try.Best].Score)
			require.Equal(t, 3, try.Resource)
		}
	})
	evaluate := func(_ context.Context, arm, _ int) (float64, error) { return float64(arm), nil }
	tries, err := Hyperband(
		context.Background(),
		numbered(7),
		[][]Rung{{{4, 1}, {2, 2}}, {{3, 2}}},
		AsPaper(),
		evaluate,
	)
	require.NoError(t, err)
	var arms []int
	for _, try := range tries {
		arms = append(arms, try.Arm)
	}
	assert.Equal(t, []int{0, 1, 2, 3, 0, 1, 4, 5, 6}, arms)
	assert.Zero(t, tries[tries[8].Best].Arm)
}

func TestAloneErrors(t *testing.T) {
	ctx := context.Background()
	nan := func(context.Context, int, int) (float64, error) { return math.NaN(), nil }
	_, err := alone(numbered(2), []Rung{{2, 1}}, AsPaper(), nan)
	assert.ErrorContains(t, err, "NaN")
	broken := errors.New("broken")
	tries, err := alone(numbered(3), []Rung{{3, 1}}, AsPaper(), func(_ context.Context, arm, _ int) (float64, error) {
		if arm == 2 {
			return 0, broken
		}
		return 1, nil
	})
	require.ErrorIs(t, err, broken)
	assert.Len(t, tries, 2)
	_, err = alone([]int{}, []Rung{{1, 1}}, AsPaper(), nan)
	assert.Error(t, err)
	_, err = alone(numbered(2), []Rung{{1, 1}, {2, 2}}, AsPaper(), nan)
	assert.ErrorContains(t, err, "rung 2")
	_, err = alone(numbered(2), nil, AsPaper(), nan)
	assert.Error(t, err)
	_, err = Hyperband(
		ctx,
		numbered(2),
		[][]Rung{{{2, 1}}, {{1, 1}}},
		AsPaper(),
		func(context.Context, int, int) (float64, error) { return 0, nil },
	)
	assert.ErrorContains(t, err, "ladder 2 of 2")
	stopped, cancel := context.WithCancel(ctx)
	cancel()
	_, err = Hyperband(stopped, numbered(2), [][]Rung{{{2, 1}}}, AsPaper(), nan)
	assert.ErrorIs(t, err, context.Canceled)
}
