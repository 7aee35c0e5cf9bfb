package bench

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/features"
)

// TextParams say which reviews become features, and how.
type TextParams struct {
	Timing
	Data  data.Name
	Texts int // of its training part
	Bins  int
	Order int
	Alpha float64
}

// TextFull is behind the README's claims: all training reviews, n-grams up to order 3, d = 2²⁰, Naive Bayes weights.
var TextFull = TextParams{Timing{Rounds: 3}, data.IMDb, 25_000, 1 << 20, 3, 1}

// TextQuick only shows that everything works.
var TextQuick = TextParams{Timing{Rounds: 3}, data.Synthetic, 500, 1 << 16, 2, 1}

// TextResult is the result of [Text]. Entries[0] is ours; a "step" is all reviews. The number of n-grams in each block
// is compared.
type TextResult struct {
	Data    data.Name `json:"data"`
	Texts   int       `json:"texts"`
	Bins    int       `json:"bins"`
	Order   int       `json:"order"`
	Threads int       `json:"threads"`
	Entries []Entry   `json:"entries"`
}

// textBlock is BLOCK of the script.
const textBlock = 1000

// Text times turning reviews into features, beside scikit-learn's vectorizer and a Python loop as in the code of
// Khodak+ 2020, in turn. Every round tokenizes again. Errors are those of [Supernet].
func Text(ctx context.Context, p TextParams) (*TextResult, error) {
	reviews, err := someReviews(ctx, p.Data, p.Texts)
	if err != nil {
		return nil, err
	}
	runtime.GC() // what reading the archive took is not part of the peak
	resetPeak()
	p.log("text: %d reviews, d = %d", reviews.Len(), p.Bins)
	train := func(ctx context.Context) (training, error) { return p.train(ctx, reviews) }
	inputs := func(dir string) error {
		return write(dir, map[string]any{
			"texts": reviews.Texts, "labels": reviews.Signs(), "order": p.Order, "bins": p.Bins, "alpha": p.Alpha,
		}, nil)
	}
	peer := program{"scikit-learn", "text.py", []string{"HashingVectorizer", "loop"}}
	all, err := p.measure(ctx, train, 1, inputs, []program{peer})
	return &TextResult{
		Data: p.Data, Texts: reviews.Len(), Bins: p.Bins, Order: p.Order, Threads: runtime.GOMAXPROCS(0), Entries: all,
	}, err
}

// someReviews are shuffled training reviews, so that both labels occur.
func someReviews(ctx context.Context, name data.Name, n int) (*data.Reviews, error) {
	reviews, err := data.LoadReviews(ctx, name, data.Train)
	if err != nil {
		return nil, err
	}
	order := data.PythonShuffle(reviews.Len(), 0)
	return reviews.Select(order[:min(n, len(order))])
}

func (p TextParams) train(ctx context.Context, reviews *data.Reviews) (t training, err error) {
	configs := []features.NGramConfig{{
		Tokenizer: "custom", Lower: true, Order: p.Order, Weighting: "nb", Alpha: p.Alpha, Preprocess: "normalize",
	}}
	begin := time.Now()
	texts := features.NewTexts(reviews.Texts)
	_, _, err = features.FitNGrams(ctx, texts, reviews.Signs(), nil, configs, nil, p.Bins, features.AsCode)
	t.Seconds = time.Since(begin).Seconds()
	if err != nil {
		return t, err
	}
	counts, err := features.Bags(ctx, texts, nil, configs, nil, p.Bins)
	if err != nil {
		return t, err
	}
	for first := 0; first < counts.Rows; first += textBlock {
		sum := 0.0
		for _, n := range counts.Val[counts.RowPtr[first]:counts.RowPtr[min(first+textBlock, counts.Rows)]] {
			sum += float64(n)
		}
		t.Losses = append(t.Losses, sum)
	}
	return t, nil
}

// WriteTable writes the result for people.
func (r *TextResult) WriteTable(w io.Writer) error {
	return writeEntries(w, fmt.Sprintf("Hashed n-grams up to order %d of %d reviews (%s), d = %d, Naive Bayes "+
		"weights, %d threads", r.Order, r.Texts, r.Data, r.Bins, r.Threads), r.Entries)
}
