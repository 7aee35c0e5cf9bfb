package features

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/data/datatest"
)

// question is what testdata/oracle.py reads.
type question struct {
	Texts   []string      `json:"texts"`
	Labels  []int8        `json:"labels"`
	Train   int           `json:"train"` // the first so many are counted
	Configs []NGramConfig `json:"configs"`
	Of      []int         `json:"of"`
	Bins    int           `json:"bins"`
	Stops   []string      `json:"stops"`
	Punkt   *punkt        `json:"punkt"`
}

// answers are what it writes.
type answers struct {
	Texts []struct {
		Tokens  map[string][]string `json:"tokens"`
		Small   []string            `json:"small"`
		Hashes  []uint32            `json:"hashes"`
		Columns row                 `json:"columns"`
	} `json:"texts"`
	Features []row `json:"features"`
}

// row is columns and values.
type row struct {
	Cols []int32
	Vals []float64
}

func (r *row) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[]any{&r.Cols, &r.Vals})
}

const (
	oracleSeed  = 20200715
	oracleOrder = 3
)

// ask makes a question of texts, with the configurations that differ in each
// field, one after the other.
func ask(texts []string, bins int) question {
	q := question{
		Texts: texts,
		Train: (len(texts)*2 + 2) / 3,
		Bins:  bins,
		Stops: strings.Fields(stopList),
		Punkt: english(),
	}
	k := 0
	for _, tokenizer := range []string{"whitespace", "simple", "custom", "treebank", "nltk"} {
		for _, weighting := range Weightings {
			for _, preprocess := range Preprocessings {
				q.Configs = append(
					q.Configs,
					NGramConfig{
						Tokenizer:  tokenizer,
						StopWords:  k%2 == 0,
						Lower:      k%3 == 0,
						Order:      1 + k%oracleOrder,
						Binary:     k%5 < 2,
						Weighting:  weighting,
						Alpha:      []float64{1e-5, 0.3, 10}[k%3],
						Preprocess: preprocess,
						HashSeed:   uint32(7 * k),
					},
				)
				k++
			}
		}
	}
	for i := range texts {
		q.Labels, q.Of = append(q.Labels, int8(2*(i%2)-1)), append(q.Of, i%len(q.Configs))
	}
	return q
}

// compare compares all that the oracle says with what we have.
func compare(t *testing.T, q question, a answers) {
	t.Helper()
	require.Len(t, a.Texts, len(q.Texts))
	for i, text := range q.Texts {
		want := a.Texts[i]
		for name, tokens := range want.Tokens {
			require.Equal(
				t,
				append([]string{}, tokens...),
				tokenizers[name]([]string{}, text),
				"%s on text %d, %q",
				name,
				i,
				text,
			)
		}
		for k, token := range want.Tokens["whitespace"] {
			require.Equal(t, want.Small[k], string(lower(nil, token)))
		}
		custom := join(want.Tokens["custom"]).view(false, false, &view{})
		n := 0
		for order := 1; order <= oracleOrder; order++ {
			for k := 0; k+order <= len(custom.ends); k++ {
				require.Equal(
					t,
					want.Hashes[n],
					hash(custom.gram(k, order), oracleSeed),
					"text %d, n-gram %q",
					i,
					custom.gram(k, order),
				)
				n++
			}
		}
		require.Len(t, want.Hashes, n)
		require.Equal(t, want.Columns, columnsOf(join(want.Tokens["whitespace"]), q.Bins), "text %d", i)
	}
	texts := NewTexts(q.Texts)
	rows := make([]int, len(q.Texts))
	for i := range rows {
		rows[i] = i
	}
	m, train, err := FitNGrams(t.Context(), texts, q.Labels, rows[:q.Train], q.Configs, q.Of[:q.Train], q.Bins, AsCode)
	require.NoError(t, err)
	rest, err := m.Rows(t.Context(), rows[q.Train:], q.Of[q.Train:])
	require.NoError(t, err)
	for i, want := range a.Features {
		from, k := train, i
		if i >= q.Train {
			from, k = rest, i-q.Train
		}
		cols, vals := withoutZeros(from.Row(k))
		require.Equal(t, append([]int32{}, want.Cols...), cols, "text %d with %+v", i, q.Configs[q.Of[i]])
		for n, v := range want.Vals {
			require.InDelta(
				t,
				v,
				vals[n],
				1e-6*(math.Abs(v)+1e-3),
				"text %d, column %d with %+v",
				i,
				cols[n],
				q.Configs[q.Of[i]],
			)
		}
	}
}

// columnsOf has the columns of scikit-learn, which hashes with seed 0, and
// takes the remainder of the absolute value of a signed hash.
func columnsOf(t tokens, bins int) row {
	counts := make([]float64, bins)
	v := t.view(false, false, &view{})
	for order := 1; order <= oracleOrder; order++ {
		for k := 0; k+order <= len(v.ends); k++ {
			signed := int64(int32(hash(v.gram(k, order), 0)))
			counts[max(signed, -signed)%int64(bins)]++
		}
	}
	r := row{Cols: []int32{}, Vals: []float64{}}
	for c, n := range counts {
		if n > 0 {
			r.Cols, r.Vals = append(r.Cols, int32(c)), append(r.Vals, n)
		}
	}
	return r
}

func withoutZeros(cols []int32, vals []float32) ([]int32, []float32) {
	c, v := []int32{}, []float32{}
	for n := range cols {
		if vals[n] != 0 {
			c, v = append(c, cols[n]), append(v, vals[n])
		}
	}
	return c, v
}

// The sentences of testdata/sentences.json are ours; the answers are what
// oracle.py said to them (NLTK 3.10.4, mmh3 5.3.1, scikit-learn 1.9.1).
// NASML_ORACLE=python writes them again.
func TestTextAgainstOracle(t *testing.T) {
	var q question
	var a answers
	texts, err := os.ReadFile("testdata/sentences.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(texts, &q.Texts))
	q = ask(q.Texts, 64)
	if python := os.Getenv("NASML_ORACLE"); python != "" {
		require.NoError(t, os.WriteFile("testdata/answers.json", oracle(t, python, q), 0o644))
	}
	text, err := os.ReadFile("testdata/answers.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &a))
	compare(t, q, a)
}

func oracle(t *testing.T, python string, q question) []byte {
	t.Helper()
	text, err := json.Marshal(q)
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), python, "-B", "testdata/oracle.py")
	var complaints bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(text), &complaints
	out, err := cmd.Output()
	require.NoError(t, err, complaints.String())
	return out
}

// Where the peers' environment is, the oracle is asked about 1,000 reviews.
func TestTextAgainstLiveOracle(t *testing.T) {
	python, err := filepath.Abs("../../.nasml/venv-peers/bin/python")
	require.NoError(t, err)
	if err := exec.CommandContext(t.Context(), python, "-c", "import nltk, mmh3, sklearn").Run(); err != nil {
		t.Skip("needs NLTK, mmh3 and scikit-learn: run \"go tool nasml bench --peers\" once")
	}
	datatest.Dir(t, datatest.IMDb)
	train, _, _, err := data.LoadReviewSplits(t.Context(), data.IMDb)
	require.NoError(t, err)
	q := ask(train.Texts[:1000], 1<<12)
	var a answers
	require.NoError(t, json.Unmarshal(oracle(t, python, q), &a))
	compare(t, q, a)
}
