package study

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/plots"
)

func TestTitlesOfNames(t *testing.T) {
	for name, want := range map[string]string{
		"nor_conv_3x3":        "conv 3×3",
		"gaea-darts/erm":      "GAEA DARTS (ERM)",
		"gaea-pc-darts@darts": "GAEA PC-DARTS, DARTS' space",
		"baseline_no_ft":      "baseline",
		"anything else":       "anything else",
		"|avg_pool_3x3~0|+|none~0|skip_connect~1|+|nor_conv_1x1~0|none~1|none~2|": "mean pool 3×3 | none, skip | " +
			"conv 1×1, none, none",
		"|$f$|": "|$f$|",
	} {
		require.Equal(t, want, Title(name))
		require.Equal(t, want, Title(want), "a title stays")
	}
}

// Things that are compared in a figure differ in colour and, for grey, in marker and dash.
func TestLooksDiffer(t *testing.T) {
	for _, together := range [][]string{
		{"DARTS (bilevel)", "DARTS (ERM)", "GAEA DARTS (bilevel)", "GAEA DARTS (ERM)", "XNAS"},
		{"PC-DARTS", "GAEA PC-DARTS"}, {"training", "validation", "test"},
		{"random search", "weight sharing", "fast weight sharing", "successive halving", "Hyperband"},
		{"EG", "projected SGD", "SGD on logits"}, {"EG (GAEA)", "SGD on logits", "Adam on logits (DARTS)"},
	} {
		colors, markers, lines := map[string]bool{}, map[plots.Marker]bool{}, map[plots.Line]bool{}
		for _, name := range together {
			look, ok := plots.Named[name]
			require.True(t, ok, name)
			colors[look.Color], markers[look.Marker], lines[look.Line] = true, true, true
		}
		require.Len(t, colors, len(together))
		require.Len(t, markers, len(together))
		require.Len(t, lines, len(together))
	}
}
