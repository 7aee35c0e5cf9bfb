package bench

import (
	"context"
	_ "embed" // the peer's script
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/features"
)

// TextParams say which reviews become features, and how.
type TextParams struct {
	Data   data.Name
	Texts  int // of its training part
	Bins   int
	Order  int
	Alpha  float64
	Rounds int
	Python string            // interpreter with Requirements installed; empty: no peers
	Log    func(line string) // progress; nil: none
}

// TextFull is behind the README's claims: all training reviews, n-grams of up
// to three tokens, d = 2²⁰, with Naive Bayes weights.
var TextFull = TextParams{Data: data.IMDb, Texts: 25_000, Bins: 1 << 20, Order: 3, Alpha: 1, Rounds: 3}

// TextQuick only shows that everything works.
var TextQuick = TextParams{Data: data.Synthetic, Texts: 500, Bins: 1 << 16, Order: 2, Alpha: 1, Rounds: 3}

// TextResult is what [Text] finds. Entries[0] is ours; a "step" is all reviews,
// and what is compared is how many n-grams each block of reviews has.
type TextResult struct {
	Data    data.Name `json:"data"`
	Texts   int       `json:"texts"`
	Bins    int       `json:"bins"`
	Order   int       `json:"order"`
	Threads int       `json:"threads"`
	Entries []Entry   `json:"entries"`
}

//go:embed text.py
var textScript []byte

// textBlock is BLOCK of the script.
const textBlock = 1000

// Text times reviews becoming features, from strings to rows, beside
// scikit-learn's vectorizer and a loop in Python as the code of Khodak+ 2020
// has it, in turn. Ours tokenizes again in every round, as they do. Errors are
// those of [Supernet].
func Text(ctx context.Context, p TextParams) (*TextResult, error) {
	reviews, err := data.LoadReviews(ctx, p.Data, data.Train)
	if err != nil {
		return nil, err
	}
	order := data.PythonShuffle(reviews.Len(), 0) // so that a part has both labels
	if reviews, err = reviews.Select(order[:min(p.Texts, len(order))]); err != nil {
		return nil, err
	}
	runtime.GC() // what reading the archive took is not part of the peak
	resetPeak()
	runners := []*runner{ours(func(ctx context.Context) (training, error) { return p.train(ctx, reviews) })}
	if p.Python != "" {
		peers, err := newTeam(func(dir string) error { return p.writeInputs(dir, reviews) })
		if err != nil {
			return nil, err
		}
		defer peers.stop()
		for _, form := range []string{"HashingVectorizer", "loop"} {
			peers.start(ctx, p.Python, "scikit-learn", form, "text.py", peers.dir, form)
		}
		runners = append(runners, peers.runners...)
	}
	timer := Params{Rounds: p.Rounds, Log: p.Log}
	timer.log("text: %d reviews, d = %d", reviews.Len(), p.Bins)
	all, err := timer.measure(ctx, runners, 1)
	if err != nil {
		return nil, err
	}
	return &TextResult{
		Data: p.Data, Texts: reviews.Len(), Bins: p.Bins, Order: p.Order, Threads: runtime.GOMAXPROCS(0), Entries: all,
	}, nil
}

// train makes features of the reviews, and counts the n-grams of every block.
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
	for block := range slices.Chunk(counts.RowSums(), textBlock) {
		sum := 0.0
		for _, n := range block {
			sum += n
		}
		t.Losses = append(t.Losses, sum)
	}
	return t, nil
}

// writeInputs writes the script and the reviews.
func (p TextParams) writeInputs(dir string, reviews *data.Reviews) error {
	if err := os.WriteFile(filepath.Join(dir, "text.py"), textScript, 0o644); err != nil {
		return err
	}
	return writeJSON(dir, "reviews.json", map[string]any{
		"texts": reviews.Texts, "labels": reviews.Signs(), "order": p.Order, "bins": p.Bins, "alpha": p.Alpha,
	})
}

// WriteTable writes the result for people.
func (r *TextResult) WriteTable(w io.Writer) error {
	_, _ = fmt.Fprintf(w, "Hashed n-grams up to order %d of %d reviews (%s), d = %d, Naive Bayes weights, %d threads\n",
		r.Order, r.Texts, r.Data, r.Bins, r.Threads)
	return writeEntries(w, r.Entries)
}
