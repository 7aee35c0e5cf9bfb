package plots

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStylesByName(t *testing.T) {
	for name, width := range map[string]float64{
		"icml": 6.75, "icml/column": 3.25, "ICML/text": 6.75, "iclr": 5.5, "neurips/text": 5.5,
		"jmlr": 6, "tmlr": 6.5, "aaai/column": 3.3, "cvpr/column": 3.25, "cvpr": 6.875,
		"width=3.25in": 3.25, "width=127mm": 5, "width=12.7cm,height=0.5": 5, "icml,width=72.27pt": 1,
	} {
		s, err := StyleNamed(name)
		require.NoError(t, err, name)
		require.InDelta(t, width, s.Width, 1e-12, name)
	}
	s, err := StyleNamed("jmlr,height=0.5")
	require.NoError(t, err)
	require.Equal(t, 0.5, s.Aspect)
	require.Equal(t, 11.0, s.Body)
	for name, want := range map[string]string{
		"":                   "expected one of aaai, cvpr, iclr, icml, jmlr, neurips, tmlr, with /column or /text",
		"icml/page":          "with /column or /text, or width=3.25in",
		"width=3.25":         "expected a number with a unit: in, cm, mm or pt",
		"icml,depth=3":       `"depth=3": expected width=3.25in or height=0.6`,
		"width=99in":         "style: Width is 99: expected 1 to 20",
		"icml/column,height": `"height": expected one of aaai`,
	} {
		_, err := StyleNamed(name)
		require.ErrorContains(t, err, want, name)
	}
}
