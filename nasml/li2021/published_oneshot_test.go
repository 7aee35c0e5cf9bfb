package li2021

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The decoded curves: entropy begins at ln 3, GAEA's is below its base's from
// epoch 1 on and ends where the reference table has it, though it may rise;
// regrets are between the deviations, and the means of four trials end as printed
// in that table.
func TestPublishedOneShotCurves(t *testing.T) {
	p, entropy := publishedOneShotCurves(), publishedCurves().Entropy
	require.Len(t, p.Before, 3)
	for space, ends := range map[string][4]float64{
		"1shot1-s1": {1.0307, .6930, .01001, .00876},
		"1shot1-s2": {1.0563, .8351, .01066, .00916},
		"1shot1-s3": {1.0675, .7837, .01061, .00886},
	} {
		base, gaea := entropy["pc-darts@"+space], entropy["gaea-pc-darts@"+space]
		require.Len(t, base, 50)
		require.Len(t, gaea, 50)
		require.InDelta(t, 1.0986, base[0], 1e-4)
		require.InDelta(t, 1.0986, gaea[0], 1e-4)
		for e := 1; e < 50; e++ {
			require.Less(t, gaea[e], base[e])
		}
		require.InDelta(t, ends[0], base[49], 1e-4)
		require.InDelta(t, ends[1], gaea[49], 1e-4)
		for row, end := range map[string]float64{"pc-darts": ends[2], "gaea-pc-darts": ends[3]} {
			c := p.Regret[space][row]
			require.Len(t, c.Mean, 49)
			require.InDelta(t, end, c.Mean[48], 1e-5)
			for i := range c.Mean {
				require.LessOrEqual(t, c.Lo[i], c.Mean[i])
				require.LessOrEqual(t, c.Mean[i], c.Hi[i])
				require.InDelta(t, c.Mean[i], (c.Hi[i]+c.Lo[i])/2, 1e-4)
			}
		}
	}
}
