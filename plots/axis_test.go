package plots

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/plot/vg"
	"pgregory.net/rapid"
)

func labels(ticks []Tick) []string {
	var all []string
	for _, t := range ticks {
		if t.Label != "" {
			all = append(all, t.Label)
		}
	}
	return all
}

func TestAutomaticTicks(t *testing.T) {
	for _, c := range []struct {
		axis axis
		want []string
	}{
		{axis{min: 0, max: 1}, []string{"0", "0.2", "0.4", "0.6", "0.8", "1.0"}},
		{axis{min: -1.1, max: 1.1}, []string{"−1.0", "−0.5", "0", "0.5", "1.0"}},
		{axis{min: 0, max: 4000}, []string{"0", "1000", "2000", "3000", "4000"}},
		{axis{min: 0, max: 2.2e-6},
			[]string{"0", "$5{·}10^{-7}$", "$1.0{·}10^{-6}$", "$1.5{·}10^{-6}$", "$2.0{·}10^{-6}$"}},
		{axis{scale: Log2, min: 64, max: 4096}, []string{"64", "128", "256", "512", "1024", "2048", "4096"}},
		{axis{scale: Log2, min: 0.25, max: 1}, []string{"$2^{-2}$", "$2^{-1}$", "1"}},
		{axis{scale: Log10, min: 0.9, max: 110}, []string{"$10^{0}$", "$10^{1}$", "$10^{2}$"}},
		{axis{scale: Log10, min: 2, max: 8}, []string{"2", "3", "4", "5", "6", "7", "8"}},
		{axis{scale: Log10, min: 1.2, max: 95}, []string{"2", "5", "10", "20", "50"}},
		{axis{scale: Log10, min: 0.008, max: 0.12}, []string{"0.01", "0.02", "0.05", "0.1"}},
		{axis{scale: Log10, min: 1e-7, max: 5e-6},
			[]string{"$1{·}10^{-7}$", "$2{·}10^{-7}$", "$5{·}10^{-7}$",
				"$1{·}10^{-6}$", "$2{·}10^{-6}$", "$5{·}10^{-6}$"}},
		{axis{scale: Log10, min: 1, max: 100}, []string{"$10^{0}$", "$10^{1}$", "$10^{2}$"}},
	} {
		require.Equal(t, c.want, labels(autoTicks(c.axis)), "%+v", c.axis)
	}
	require.Less(t, len(labels(autoTicks(axis{scale: Log10, min: 1e-200, max: 1e200}))), 12)
}

func TestAutomaticEnds(t *testing.T) {
	low, high := ends([]float64{0.1, 1}, Linear)
	require.Zero(t, low, "positive data that come near 0 start there")
	require.InDelta(t, 1.045, high, 1e-12)
	low, _ = ends([]float64{9, 10}, Linear)
	require.InDelta(t, 8.95, low, 1e-12)
	low, high = ends([]float64{64, 4096}, Log2)
	require.InDelta(t, 64, low, 15)
	require.Less(t, low, 64.0)
	require.InDelta(t, 64*4096, low*high, 1e-6, "the margins of a log axis are even")
}

// Whatever the numbers, an axis has an extent and places them on it in order.
func TestAxisHoldsItsValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		scale := rapid.SampledFrom([]Scale{Linear, Log2, Log10}).Draw(t, "scale")
		values := rapid.SliceOfN(number64(scale), 0, 8).Draw(t, "values")
		a := newAxis(Axis{Scale: scale}, values, LatinModern, 8)
		require.Less(t, a.min, a.max)
		for _, v := range values {
			n := a.norm(v)
			require.True(t, -1e-9 <= n && n <= 1+1e-9, "%g is at %g of %g … %g", v, n, a.min, a.max)
		}
		require.LessOrEqual(t, len(a.ticks), 100)
	})
}

// number64 draws finite numbers of all sizes that have a place on the scale.
func number64(scale Scale) *rapid.Generator[float64] {
	if scale == Linear {
		return rapid.Float64()
	}
	return rapid.Float64Range(1e-300, 1.7e308)
}

func TestThinKeepsLabelsApart(t *testing.T) {
	var ticks []Tick
	for k := 64.0; k <= 4096; k *= 2 {
		ticks = append(ticks, Tick{k, formatTick(k, 1)})
	}
	a := newAxis(Axis{Scale: Log2, Min: 64, Max: 4096, Ticks: ticks}, nil, LatinModern, 8)
	extent := func(l textLine) vg.Length { return l.width }
	a.thin(400, 4, extent)
	for _, k := range a.ticks {
		require.False(t, k.hidden)
	}
	a.thin(90, 4, extent)
	var shown []float64
	for _, k := range a.ticks {
		if !k.hidden {
			shown = append(shown, k.value)
		}
	}
	require.Equal(t, []float64{64, 256, 1024, 4096}, shown)
	a.thin(400, 4, extent)
	require.False(t, a.ticks[1].hidden, "thinning looks at all labels again")
}

// Whatever the range, the labels of an axis are short and no two the same, and
// with what the axis' label says they are the ticks' values.
func TestLabelsOfNarrowAxes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		middle := rapid.Float64Range(-1e4, 1e4).Draw(t, "middle")
		half := math.Max(1, math.Abs(middle)) * math.Pow(10, rapid.Float64Range(-10, 2).Draw(t, "half"))
		ticks := linearTicks(middle-half, middle+half)
		from, seen := 0.0, map[string]bool{}
		if tooFine(math.Abs(middle)+half, ticks[1].Value-ticks[0].Value) {
			from = offset(ticks)
		}
		for _, k := range ticks {
			require.False(t, seen[k.Label], "%q comes twice in %v", k.Label, labels(ticks))
			seen[k.Label] = true
			require.LessOrEqual(t, utf8.RuneCountInString(plain(k.Label)), 11, "%v", labels(ticks))
			v, exponent, _ := strings.Cut(strings.NewReplacer("$", "", "−", "-", "}", "").Replace(k.Label), "{·10^{")
			if exponent == "" {
				exponent = "0"
			}
			number, err := strconv.ParseFloat(v+"e"+exponent, 64)
			require.NoError(t, err)
			require.InDelta(t, k.Value, from+number, 0.05*(ticks[1].Value-ticks[0].Value))
		}
	})
	a := newAxis(Axis{Label: "entropy (nats)", Min: 1.38629412, Max: 1.38629436}, nil, LatinModern, 8)
	require.Equal(t, `entropy (nats) $−\,1.38629415$`, a.label)
	require.Equal(t, []string{"1.38628", "1.38629", "1.38630", "1.38631"}, labels(linearTicks(1.386275, 1.386312)))
}
