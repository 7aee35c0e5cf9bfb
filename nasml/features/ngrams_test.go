package features

import (
	"context"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/nasml/lab/nasml/data"
)

var plain = NGramConfig{Tokenizer: "whitespace", Order: 1, Weighting: "none", Preprocess: "none"}

func with(c NGramConfig, change func(*NGramConfig)) NGramConfig {
	change(&c)
	return c
}

func someTexts(t testing.TB, n int) []string {
	r, err := data.SyntheticReviews(5, n, data.ReviewSpec{Words: 40})
	require.NoError(t, err)
	return r.Texts
}

func drawConfig(t *rapid.T) NGramConfig {
	return NGramConfig{
		Tokenizer: rapid.SampledFrom(slices.Sorted(maps.Keys(tokenizers))).Draw(t, "tokenizer"),
		StopWords: rapid.Bool().
			Draw(t, "stop"),
		Lower: rapid.Bool().Draw(t, "lower"), Binary: rapid.Bool().Draw(t, "binary"),
		Order: rapid.IntRange(1, 4).Draw(t, "order"), HashSeed: rapid.Uint32().Draw(t, "seed"),
		Weighting: rapid.SampledFrom(Weightings).
			Draw(t, "weighting"),
		Preprocess: rapid.SampledFrom(Preprocessings).Draw(t, "preprocess"),
		Alpha:      math.Pow(10, rapid.Float64Range(-5, 1).Draw(t, "log alpha")),
	}
}

// slowBag counts n-grams word by word in a map.
func slowBag(text string, c NGramConfig, d int) map[int32]float32 {
	var words []string
	for _, w := range tokenizers[c.Tokenizer](nil, text) {
		if c.StopWords && stopWords[w] {
			continue
		}
		if c.Lower {
			w = lowerUnicode(w)
		}
		words = append(words, w)
	}
	bag := map[int32]float32{}
	for i := range words {
		for n := 1; n <= c.Order && i+n <= len(words); n++ {
			bin := int32(hash([]byte(strings.Join(words[i:i+n], " ")), c.HashSeed) % uint32(d))
			bag[bin]++
			if c.Binary {
				bag[bin] = 1
			}
		}
	}
	return bag
}

func asMap(cols []int32, vals []float32) map[int32]float32 {
	m := map[int32]float32{}
	for n, c := range cols {
		m[c] = vals[n]
	}
	return m
}

func TestBagsAgainstMaps(t *testing.T) {
	made := someTexts(t, 30)
	rapid.Check(t, func(t *rapid.T) {
		raw := []string{drawText(t), drawText(t), rapid.SampledFrom(made).Draw(t, "text"), ""}
		configs := []NGramConfig{drawConfig(t), drawConfig(t)}
		d := rapid.SampledFrom([]int{1, 2, 7, 1000, 1 << 20, math.MaxInt32}).Draw(t, "d")
		rows := rapid.SliceOfN(rapid.IntRange(0, 3), 1, 6).Draw(t, "rows")
		of := rapid.SliceOfN(rapid.IntRange(0, 1), len(rows), len(rows)).Draw(t, "of")
		b, err := Bags(context.Background(), NewTexts(raw), rows, configs, of, d)
		require.NoError(t, err)
		requireSparse(t, b)
		for i, r := range rows {
			require.Equal(t, slowBag(raw[r], configs[of[i]], d), asMap(b.Row(i)))
		}
	})
}

func TestLongTextsAreSortedAsShortOnes(t *testing.T) {
	text := strings.Join(someTexts(t, 60), " ")
	for _, d := range []int{1, 2, 1000, 1 << 10, 1<<10 + 1, 1 << 20, 1 << 24, math.MaxInt32} {
		c := with(plain, func(c *NGramConfig) { c.Order = 2 })
		b, err := Bags(t.Context(), NewTexts([]string{text}), nil, []NGramConfig{c}, nil, d)
		require.NoError(t, err)
		requireSparse(t, b)
		require.Equal(t, slowBag(text, c, d), asMap(b.Row(0)))
	}
}

func TestBagsDoNotDependOnProcessors(t *testing.T) {
	raw := someTexts(t, 500)
	configs := []NGramConfig{
		plain,
		with(plain, func(c *NGramConfig) { c.Tokenizer, c.Order, c.Lower = "treebank", 3, true }),
	}
	of := make([]int, len(raw))
	for i := range of {
		of[i] = i % 2
	}
	var first *Sparse
	for _, processors := range []int{1, 2, 5} {
		old := runtime.GOMAXPROCS(processors)
		b, err := Bags(t.Context(), NewTexts(raw), nil, configs, of, 1<<12)
		runtime.GOMAXPROCS(old)
		require.NoError(t, err)
		if first == nil {
			first = b
		}
		require.Equal(t, first, b)
	}
}

func TestStrangeTexts(t *testing.T) {
	texts := NewTexts([]string{"", " \n\t", "?!", "a \xff\xfe b\xc3", "\x00", "The the"})
	for name := range tokenizers {
		c := with(plain, func(c *NGramConfig) { c.Tokenizer, c.Order = name, 3 })
		b, err := Bags(t.Context(), texts, nil, []NGramConfig{c}, nil, 1<<16)
		require.NoError(t, err)
		require.Zero(t, rowSums(b)[0], "an empty text is an empty row")
		require.Zero(t, rowSums(b)[1])
		require.Equal(t, name == "simple", rowSums(b)[2] == 0, "%s: a text without letters", name)
		require.Positive(t, rowSums(b)[4])
	}
	require.Equal(t, []string{"a", "\uFFFD", "b\uFFFD"}, tokensOf(t, texts, 3, plain),
		"what is not UTF-8 becomes one replacement character")
	small := with(plain, func(c *NGramConfig) { c.Lower = true })
	require.Equal(t, []string{"the", "the"}, tokensOf(t, texts, 5, small))
	require.Empty(t, tokensOf(t, texts, 5, with(plain, func(c *NGramConfig) { c.StopWords = true })))
}

// tokensOf are the tokens of a text, with stop words and capital letters as c wants them.
func tokensOf(t *testing.T, texts *Texts, i int, c NGramConfig) (words []string) {
	t.Helper()
	v := texts.tokens(c.Tokenizer)[i].view(c.StopWords, c.Lower, &view{})
	for n := range v.ends {
		words = append(words, string(v.gram(n, 1)))
	}
	return words
}

// Valid texts are not copied, and those of the caller stay as they are.
func TestTextsLeaveWhatIsTheirs(t *testing.T) {
	raw := []string{"good", "b\xff"}
	texts := NewTexts(raw)
	require.Equal(t, []string{"good", "b\xff"}, raw)
	require.Equal(t, []string{"good", "b\uFFFD"}, texts.raw)
	require.Equal(t, 2, texts.Len())
	require.Zero(t, NewTexts(nil).Len())
}

// Ten megabytes in one review: every token is counted, with memory that is a
// small multiple of the text.
func TestLongText(t *testing.T) {
	const words = 10_000_000 / 8
	texts := NewTexts([]string{strings.Repeat("can't, X", words)})
	for name, tokens := range map[string]float64{"custom": 4*words + 1, "treebank": 4*words + 1, "nltk": 4*words + 1} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		b, err := Bags(t.Context(), texts, nil, []NGramConfig{with(plain, func(c *NGramConfig) { c.Tokenizer = name })},
			nil, 1<<10)
		runtime.ReadMemStats(&after)
		require.NoError(t, err)
		require.InDelta(t, tokens, rowSums(b)[0], words, name)
		require.Less(t, float64(after.TotalAlloc-before.TotalAlloc), 100*8.0*words, name)
	}
}

func TestBagsRefuse(t *testing.T) {
	texts := NewTexts([]string{"a", "b"})
	good := []NGramConfig{plain}
	bad := func(change func(*NGramConfig)) []NGramConfig { return []NGramConfig{with(plain, change)} }
	for says, call := range map[string]func() (*Sparse, error){
		"2147483647, got 0": func() (*Sparse, error) {
			return Bags(t.Context(), texts, nil, good, nil, 0)
		},
		"2147483647, got 2147483648": func() (*Sparse, error) {
			return Bags(t.Context(), texts, nil, good, nil, 1<<31)
		},
		"found 0 configurations": func() (*Sparse, error) {
			return Bags(t.Context(), texts, nil, nil, nil, 4)
		},
		"2 texts and a configuration for 1 of them": func() (*Sparse, error) {
			return Bags(t.Context(), texts, nil, good, []int{0}, 4)
		},
		"found text 2 with configuration 0": func() (*Sparse, error) {
			return Bags(t.Context(), texts, []int{2}, good, nil, 4)
		},
		"found text 0 with configuration 1": func() (*Sparse, error) {
			return Bags(t.Context(), texts, []int{0}, good, []int{1}, 4)
		},
		`configuration 0: tokenizer must be one of [`: func() (*Sparse, error) {
			return Bags(t.Context(), texts, nil, bad(func(c *NGramConfig) { c.Tokenizer = "words" }), nil, 4)
		},
		"order must be at least 1, got 0": func() (*Sparse, error) {
			return Bags(t.Context(), texts, nil, bad(func(c *NGramConfig) { c.Order = 0 }), nil, 4)
		},
		`got "tfidf"`: func() (*Sparse, error) {
			return Bags(t.Context(), texts, nil, bad(func(c *NGramConfig) { c.Weighting = "tfidf" }), nil, 4)
		},
		`got "l1"`: func() (*Sparse, error) {
			return Bags(t.Context(), texts, nil, bad(func(c *NGramConfig) { c.Preprocess = "l1" }), nil, 4)
		},
		`α must be positive for the weighting "nb", got 0`: func() (*Sparse, error) {
			return Bags(t.Context(), texts, nil, bad(func(c *NGramConfig) { c.Weighting = "nb" }), nil, 4)
		},
		`α must be positive for the weighting "sif", got NaN`: func() (*Sparse, error) {
			unknown := bad(func(c *NGramConfig) { c.Weighting, c.Alpha = "sif", math.NaN() })
			return Bags(t.Context(), texts, nil, unknown, nil, 4)
		},
		`α must be positive for the weighting "sif", got +Inf`: func() (*Sparse, error) {
			infinite := bad(func(c *NGramConfig) { c.Weighting, c.Alpha = "sif", math.Inf(1) })
			return Bags(t.Context(), texts, nil, infinite, nil, 4)
		},
	} {
		_, err := call()
		require.ErrorContains(t, err, says)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Bags(ctx, texts, nil, good, nil, 4)
	require.ErrorIs(t, err, context.Canceled)
}
