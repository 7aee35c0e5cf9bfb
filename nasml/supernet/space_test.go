package supernet

import (
	"math"
	"testing"

	_ "github.com/nasml/lab/nasml/internal/steady"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestEdgesAndOperationsOfNASBench201(t *testing.T) {
	var edges []string
	for _, e := range NASBench201.Edges {
		edges = append(edges, e.String())
	}
	require.Equal(t, []string{"1<-0", "2<-0", "2<-1", "3<-0", "3<-1", "3<-2"}, edges)
	require.Equal(t, []string{"none", "skip_connect", "nor_conv_1x1", "nor_conv_3x3", "avg_pool_3x3"}, NASBench201.Ops)
	require.NoError(t, NASBench201.Check())
}

func TestEveryArchitectureIsReadBackFromItsString(t *testing.T) {
	s := NASBench201
	seen := map[string]bool{}
	for i := range 15625 {
		choice := make([]int, 6)
		for e, rest := 0, i; e < 6; e, rest = e+1, rest/5 {
			choice[e] = rest % 5
		}
		arch := s.Arch(choice)
		got, err := s.Parse(arch)
		require.NoError(t, err)
		require.Equal(t, choice, got)
		seen[arch] = true
	}
	require.Len(t, seen, 15625)
	require.Contains(t, seen, "|nor_conv_3x3~0|+|skip_connect~0|none~1|+|avg_pool_3x3~0|nor_conv_1x1~1|skip_connect~2|")
}

func TestParseRefusesWhatArchDoesNotPrint(t *testing.T) {
	good := NASBench201.Arch([]int{0, 1, 2, 3, 4, 0})
	require.Equal(t, "|none~0|+|skip_connect~0|nor_conv_1x1~1|+|nor_conv_3x3~0|avg_pool_3x3~1|none~2|", good)
	for _, bad := range []string{
		"", "|", good + "|", good[1:], good + "+|none~0|",
		"|none~0|+|skip_connect~0|nor_conv_1x1~1|",
		"|none~0|+|skip_connect~0|nor_conv_1x1~1|+|nor_conv_3x3~0|avg_pool_3x3~1|",
		"|none~0|+|skip_connect~1|nor_conv_1x1~0|+|nor_conv_3x3~0|avg_pool_3x3~1|none~2|",
		"|none~0|+|skip_connect~0|nor_conv_1x1~1|+|nor_conv_3x3~0|avg_pool_3x3~1|none~2|none~2|",
		"|none~0|+|skip_connect~0|nor_conv_5x5~1|+|nor_conv_3x3~0|avg_pool_3x3~1|none~2|",
		"|none~0|+|skip_connect~0|nor_conv_1x1~1|+|nor_conv_3x3~0|avg_pool_3x3~1|none~3|",
	} {
		_, err := NASBench201.Parse(bad)
		require.ErrorContains(t, err, "architecture", bad)
	}
	_, err := NASBench201.Without("none").Parse(good)
	require.ErrorContains(t, err, "edge 1<-0", "an operation that the space excludes")
}

func TestArgmaxTakesTheFirstOfTies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.Float64Range(-2, 2).Filter(func(x float64) bool { return !math.IsNaN(x) })
		theta := rapid.SliceOfN(rapid.SliceOfN(number, 4, 4), 6, 6).Draw(t, "theta")
		tie := rapid.IntRange(0, 2).Draw(t, "tie")
		theta[2][tie], theta[2][3] = 5, 5
		choice := NASBench201.Argmax(theta)
		require.Equal(t, tie, choice[2])
		for e, row := range theta {
			for o, x := range row {
				require.LessOrEqual(t, x, row[choice[e]])
				if o < choice[e] {
					require.Less(t, x, row[choice[e]])
				}
			}
		}
		require.Equal(t, choice, NASBench201.Argmax(NASBench201.OneHot(choice)))
	})
}

func TestWithoutLeavesTheSpaceItself(t *testing.T) {
	s := NASBench201.Without("none", "unheard_of")
	require.Equal(t, NASBench201.Ops[1:], s.Ops)
	require.Len(t, NASBench201.Ops, 5)
	require.Equal(t, NASBench201.Edges, s.Edges)
}

func TestSpacesThatAreNoCells(t *testing.T) {
	ops := []string{"skip_connect"}
	for want, s := range map[string]Space{
		"at least 2 nodes":       {Nodes: 1, Ops: ops},
		"1 operation":            {Nodes: 2, Edges: []Edge{{0, 1}}},
		"edge 0<-1":              {Nodes: 2, Edges: []Edge{{1, 0}}, Ops: ops},
		"edge 2<-0":              {Nodes: 2, Edges: []Edge{{0, 2}}, Ops: ops},
		"edge 1<-0 must go once": {Nodes: 2, Edges: []Edge{{0, 1}, {0, 1}}, Ops: ops},
		"no edge enters node 1":  {Nodes: 3, Edges: []Edge{{0, 2}}, Ops: ops},
		`operation "conv_9x9"`:   {Nodes: 2, Edges: []Edge{{0, 1}}, Ops: []string{"conv_9x9"}},
		`operation "skip_connect" is unk`: {Nodes: 2, Edges: []Edge{{0, 1}},
			Ops: []string{"skip_connect", "skip_connect"}},
	} {
		require.ErrorContains(t, s.Check(), want)
		_, err := New(Config{Space: s, Cells: 1})
		if s.Edges != nil {
			require.ErrorContains(t, err, want)
		}
	}
}
