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
	for rule, want := range map[SelectionRule]int{
		LastEpoch:   6,
		BestEpoch:   4, // 6 is as good, and later
		BestBatches: 2, // so are 4 and 6
	} {
		epoch, err := SelectionRules[rule](c)
		require.NoError(t, err)
		require.Equal(t, want, epoch, rule)
		require.NoError(t, rule.Check())
		require.NotEmpty(t, RuleTitles[rule])
	}
	require.Len(t, SelectionRules, 3)

	for _, rule := range []SelectionRule{BestEpoch, BestBatches} {
		_, err := SelectionRules[rule](&Curve{TrainLoss: []float64{1}})
		require.ErrorContains(t, err, "expected one", rule)
	}
	require.ErrorContains(t, SelectionRule("first").Check(), "expected one of best, best-batches, last")
}

func TestRuleAsCode(t *testing.T) {
	for method, want := range map[string]SelectionRule{
		"darts": BestEpoch, "gaea-darts": BestEpoch, "gaea-gdas": BestEpoch, "gdas": LastEpoch, "setn": LastEpoch,
	} {
		require.Equal(t, want, RuleAsCode(method), method)
		s, err := AsCode(method)
		require.NoError(t, err)
		require.Equal(t, want == BestEpoch, s.EvaluateEvery == 1, "%s: what the rule reads is there after every epoch",
			method)
	}
	for method, want := range map[string]SelectionRule{
		"darts": LastEpoch, "gaea-darts": BestEpoch, "pc-darts": BestEpoch, "gaea-pc-darts": BestEpoch,
	} {
		require.Equal(t, want, RuleAsCodeOn("darts", method), method)
		s, err := AsCodeOn("darts", method)
		require.NoError(t, err)
		require.Equal(t, want == BestEpoch, s.EvaluateEvery == 1, method)
	}
	require.Equal(t, BestEpoch, RuleAsCodeOn("nasbench201", "darts"))
}
