package features

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/floats"
	"pgregory.net/rapid"

	"github.com/nasml/lab/nasml/data"
)

// tiny has two texts of each label over the words a, b, c. With a hash that
// keeps them apart the counts are p = (3, 1, 0) and q = (0, 1, 2).
var (
	tiny   = []string{"a a b", "a", "b c", "c"}
	labels = []int8{1, 1, -1, -1}
)

const tinyD = 1 << 20

func binOf(word string) int32 { return int32(hash([]byte(word), 0) % tinyD) }

func fitTiny(t *testing.T, c NGramConfig, reading Reading) *Sparse {
	t.Helper()
	_, s, err := FitNGrams(t.Context(), NewTexts(tiny), labels, nil, []NGramConfig{c}, nil, tinyD, reading)
	require.NoError(t, err)
	return s
}

func TestNaiveBayesByHand(t *testing.T) {
	const alpha = 0.5
	c := with(plain, func(c *NGramConfig) { c.Weighting, c.Alpha = "nb", alpha })
	p, q := 4+alpha*tinyD, 3+alpha*tinyD
	a, b := math.Log((3+alpha)/p*q/alpha), math.Log(q/p)
	for reading, unit := range map[Reading]float64{AsPaper: 1, AsCode: math.Log2E} {
		s := fitTiny(t, c, reading)
		got := asMap(s.Row(0))
		require.InDelta(t, unit*2*a, got[binOf("a")], 1e-6)
		require.InDelta(t, unit*b, got[binOf("b")], 1e-8)
		require.InDelta(t, unit*math.Log(alpha/p*q/(2+alpha)), asMap(s.Row(3))[binOf("c")], 1e-6)
	}
}

func TestSIFByHand(t *testing.T) {
	const alpha = 0.1
	c := with(plain, func(c *NGramConfig) { c.Weighting, c.Alpha, c.Preprocess = "sif", alpha, "average" })
	for _, reading := range []Reading{AsPaper, AsCode} {
		got := asMap(fitTiny(t, c, reading).Row(0))
		require.InDelta(
			t,
			2.0/3*alpha/(alpha+3.0/7),
			got[binOf("a")],
			1e-7,
			"α/(α + frequency), a third for each of three tokens",
		)
		require.InDelta(t, 1.0/3*alpha/(alpha+2.0/7), got[binOf("b")], 1e-7)
	}
}

// Counts see what is binary as binary, and "average" divides by what the
// binary bag has.
func TestBinaryCounts(t *testing.T) {
	c := with(plain, func(c *NGramConfig) { c.Weighting, c.Alpha, c.Preprocess, c.Binary = "sif", 1, "average", true })
	got := asMap(fitTiny(t, c, AsCode).Row(0))
	require.InDelta(t, 0.5*6/(6+2.0), got[binOf("a")], 1e-7, "a is in two texts, six entries in all")
}

func TestTextPreprocessing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := drawConfig(rt)
		texts := []string{"good film", "bad film", drawText(rt), drawText(rt), ""}
		_, s, err := FitNGrams(
			t.Context(),
			NewTexts(texts),
			[]int8{1, -1, 1, -1, 1},
			nil,
			[]NGramConfig{c},
			nil,
			997,
			AsCode,
		)
		require.NoError(rt, err)
		raw, err := Bags(t.Context(), NewTexts(texts), nil, []NGramConfig{c}, nil, 997)
		require.NoError(rt, err)
		for i, norm := range rowNorms(s) {
			require.False(rt, math.IsNaN(norm) || math.IsInf(norm, 0))
			if c.Preprocess == "normalize" && norm > 0 {
				require.InDelta(rt, 1, norm, 1e-6)
			}
			if c.Weighting == "none" && c.Preprocess == "average" && rowSums(raw)[i] > 0 {
				require.InDelta(rt, 1, rowSums(s)[i], 1e-6)
			}
			_, vals := s.Row(i)
			for n, v := range vals {
				if c.Weighting == "sif" && c.Preprocess == "none" {
					_, counts := raw.Row(i)
					require.Positive(rt, v)
					require.LessOrEqual(rt, v, counts[n])
				}
			}
		}
		require.Zero(rt, rowNorms(s)[4])
	})
}

// Turning all labels turns the sign of Naive Bayes features.
func TestNaiveBayesIsAntisymmetric(t *testing.T) {
	texts, turned := NewTexts(someTexts(t, 50)), make([]int8, 50)
	signs := make([]int8, 50)
	for i := range signs {
		signs[i] = int8(2*(i%2) - 1)
		turned[i] = -signs[i]
	}
	c := []NGramConfig{with(plain, func(c *NGramConfig) { c.Weighting, c.Alpha, c.Order = "nb", 1e-5, 2 })}
	_, a, err := FitNGrams(t.Context(), texts, signs, nil, c, nil, 512, AsPaper)
	require.NoError(t, err)
	_, b, err := FitNGrams(t.Context(), texts, turned, nil, c, nil, 512, AsPaper)
	require.NoError(t, err)
	for n := range a.Val {
		require.InDelta(t, a.Val[n], -b.Val[n], 1e-5)
	}
}

// Where all texts have one configuration the readings differ in the logarithm
// only. Where they have several, what the code makes of a text depends on the
// configurations of the others; the paper's fixed map does not.
func TestReadings(t *testing.T) {
	texts, signs := NewTexts(someTexts(t, 40)), make([]int8, 40)
	one, other := make([]int, 40), make([]int, 40)
	for i := range signs {
		signs[i], one[i], other[i] = int8(2*(i%2)-1), i%3, (i+i/2)%3
	}
	other[0] = one[0]
	nb := with(plain, func(c *NGramConfig) { c.Weighting, c.Alpha, c.HashSeed = "nb", 0.3, 9 })
	configs := []NGramConfig{
		nb,
		with(nb, func(c *NGramConfig) { c.Lower, c.Order = true, 2 }),
		with(nb, func(c *NGramConfig) { c.Weighting = "sif" }),
	}

	first := map[Reading][2]*Sparse{}
	for _, reading := range []Reading{AsPaper, AsCode} {
		_, alone, err := FitNGrams(t.Context(), texts, signs, nil, configs, nil, 256, reading)
		require.NoError(t, err)
		var rows [2]*Sparse
		for k, of := range [][]int{one, other} {
			m, mixed, err := FitNGrams(t.Context(), texts, signs, nil, configs, of, 256, reading)
			require.NoError(t, err)
			again, err := m.Rows(t.Context(), nil, of)
			require.NoError(t, err)
			require.Equal(t, mixed, again, "training texts again are what they were")
			rows[k] = firstRow(mixed)
		}
		if reading == AsPaper {
			require.Equal(t, firstRow(alone), rows[0])
			require.Equal(t, rows[0], rows[1])
		} else {
			require.NotEqual(t, rows[0].Val, rows[1].Val)
		}
		first[reading] = [2]*Sparse{alone}
	}
	for n, v := range first[AsCode][0].Val {
		require.InDelta(t, v, math.Log2E*float64(first[AsPaper][0].Val[n]), 1e-5)
	}
}

func firstRow(s *Sparse) *Sparse {
	cols, vals := s.Row(0)
	return &Sparse{Rows: 1, Cols: s.Cols, RowPtr: []int{0, len(cols)}, Col: cols, Val: vals}
}

// The sum of a text's Naive Bayes features is the log odds of its label where
// words are drawn one by one: it tells the labels of texts that were not
// counted.
func TestNaiveBayesTellsLabels(t *testing.T) {
	r, err := data.SyntheticReviews(11, 1200, data.ReviewSpec{Words: 80, Signal: 0.2, Noise: 0.2})
	require.NoError(t, err)
	train, rest := make([]int, 600), make([]int, 600)
	for i := range train {
		train[i], rest[i] = i, 600+i
	}
	c := with(plain, func(c *NGramConfig) { c.Tokenizer, c.Lower, c.Weighting, c.Alpha = "custom", true, "nb", 1 })
	for _, d := range []int{1, 1 << 16} {
		m, _, err := FitNGrams(t.Context(), NewTexts(r.Texts), r.Signs(), train, []NGramConfig{c}, nil, d, AsPaper)
		require.NoError(t, err)
		s, err := m.Rows(t.Context(), rest, nil)
		require.NoError(t, err)
		right := 0
		for i, score := range rowSums(s) {
			if score*float64(r.Signs()[600+i]) > 0 {
				right++
			}
		}
		if d == 1 {
			require.Zero(t, floats.Sum(rowNorms(s)), "one bin tells nothing")
		} else {
			require.Greater(t, right, 540, "of 600")
		}
	}
}

func TestFitRefuses(t *testing.T) {
	texts := NewTexts(tiny)
	nb := []NGramConfig{with(plain, func(c *NGramConfig) { c.Weighting, c.Alpha = "nb", 1 })}
	fit := func(signs []int8, c []NGramConfig, reading Reading) error {
		_, _, err := FitNGrams(t.Context(), texts, signs, nil, c, nil, 8, reading)
		return err
	}
	for _, reading := range []Reading{AsPaper, AsCode} {
		require.ErrorContains(
			t,
			fit([]int8{1, 1, 1, 1}, nb, reading),
			`the weighting "nb" needs texts of both classes, got 4 positive and 0 negative ones`,
		)
		require.ErrorContains(t, fit([]int8{1, 1, 0, 1}, nb, reading), "labels must be −1 or 1, got 0 for bag 2")
		require.ErrorContains(t, fit([]int8{1}, nb, reading), "each of 4 texts must have a label, got 1")
		sif := []NGramConfig{with(nb[0], func(c *NGramConfig) { c.Weighting = "sif" })}
		require.NoError(t, fit([]int8{1, 1, 1, 1}, sif, reading), "one class is enough for SIF")
	}
	require.ErrorContains(t, fit(labels, nb, "code+"), `got "code+"`)
	_, err := Count(&Sparse{Rows: 1, Cols: 1, RowPtr: []int{0, 1}, Col: []int32{0}, Val: []float32{3e9}}, []int8{1})
	require.ErrorContains(t, err, "n-grams in bin 0 of 1")
	_, err = Count(&Sparse{RowPtr: []int{0}}, []int8{1})
	require.ErrorContains(t, err, "each of 0 bags must have a label, got 1")
}

// Nothing but empty texts: weights do nothing.
func TestNothingToCount(t *testing.T) {
	for _, weighting := range Weightings {
		c := with(plain, func(c *NGramConfig) { c.Weighting, c.Alpha = weighting, 1e-5 })
		m, _, err := FitNGrams(
			t.Context(),
			NewTexts([]string{"", "", "word"}),
			[]int8{1, -1, 1},
			[]int{0, 1},
			[]NGramConfig{c},
			nil,
			4,
			AsCode,
		)
		require.NoError(t, err)
		s, err := m.Rows(t.Context(), []int{2}, nil)
		require.NoError(t, err)
		require.False(t, math.IsNaN(rowSums(s)[0]))
		if weighting == "nb" {
			require.Zero(t, rowSums(s)[0])
		} else {
			require.Equal(t, 1.0, rowSums(s)[0])
		}
	}
}
