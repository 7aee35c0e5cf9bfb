package search

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPicks(t *testing.T) {
	c := &Curve{
		TrainLoss:     []float64{5, 4, 3, 2, 1, 0},
		ValidAccuracy: []float64{0.1, 0.3, 0.2, 0.3, 0.25, 0.3},
		Evaluated:     []float64{2, 4, 6},
		Supernet:      []float64{0.2, 0.5, 0.5},
	}
	for rule, want := range map[Pick]int{
		LastEpoch:   6,
		BestEpoch:   4, // 6 is as good, and later
		BestBatches: 2, // so are 4 and 6
	} {
		epoch, err := Picks[rule](c)
		require.NoError(t, err)
		require.Equal(t, want, epoch, rule)
		require.NoError(t, rule.Check())
		require.NotEmpty(t, PickTitles[rule])
	}
	require.Len(t, Picks, 3)

	for _, rule := range []Pick{BestEpoch, BestBatches} {
		_, err := Picks[rule](&Curve{TrainLoss: []float64{1}})
		require.ErrorContains(t, err, "expected one", rule)
	}
	require.ErrorContains(t, Pick("first").Check(), "expected one of best, best-batches, last")
}

func TestPickAsCode(t *testing.T) {
	for method, want := range map[string]Pick{
		"darts": BestEpoch, "gaea-darts": BestEpoch, "gaea-gdas": BestEpoch, "gdas": LastEpoch, "setn": LastEpoch,
	} {
		require.Equal(t, want, PickAsCode(method), method)
		s, err := AsCode(method)
		require.NoError(t, err)
		require.Equal(t, want == BestEpoch, s.EvaluateEvery == 1, "%s: what the rule reads is there after every epoch",
			method)
	}
	for method, want := range map[string]Pick{
		"darts": LastEpoch, "gaea-darts": BestEpoch, "pc-darts": BestEpoch, "gaea-pc-darts": BestEpoch,
	} {
		require.Equal(t, want, PickAsCodeOn("darts", method), method)
		s, err := AsCodeOn("darts", method)
		require.NoError(t, err)
		require.Equal(t, want == BestEpoch, s.EvaluateEvery == 1, method)
	}
	require.Equal(t, BestEpoch, PickAsCodeOn("nasbench201", "darts"))
}
