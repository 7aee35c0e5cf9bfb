package bench

import (
	"context"
	_ "embed" // the peer's script
	"encoding/json"
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
// has it, in turn. Ours tokenizes anew in every round, as they do. Errors are
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
	runners := []*runner{p.ours(reviews)}
	if p.Python != "" {
		peers, stop, err := p.startPeers(ctx, reviews)
		if err != nil {
			return nil, err
		}
		defer stop()
		runners = append(runners, peers...)
	}
	timer := Params{Rounds: p.Rounds, Log: p.Log}
	timer.log("text: %d reviews, d = %d", reviews.Len(), p.Bins)
	if err := timer.warmUp(ctx, runners); err != nil {
		return nil, err
	}
	if err := timer.time(ctx, runners); err != nil {
		return nil, err
	}
	return &TextResult{
		Data:    p.Data,
		Texts:   reviews.Len(),
		Bins:    p.Bins,
		Order:   p.Order,
		Threads: runtime.GOMAXPROCS(0),
		Entries: entries(runners, 1),
	}, nil
}

// ours is the runner of this process.
func (p TextParams) ours(reviews *data.Reviews) *runner {
	c := features.NGramConfig{
		Tokenizer:  "custom",
		Lower:      true,
		Order:      p.Order,
		Weighting:  "nb",
		Alpha:      p.Alpha,
		Preprocess: "normalize",
	}
	return &runner{
		entry: Entry{Program: oursName},
		peak:  func() float64 { return peakMB("self") },
		train: func(ctx context.Context) (training, error) {
			begin := time.Now()
			texts := features.NewTexts(reviews.Texts)
			_, _, err := features.FitNGrams(
				ctx,
				texts,
				reviews.Signs(),
				nil,
				[]features.NGramConfig{c},
				nil,
				p.Bins,
				features.AsCode,
			)
			took := time.Since(begin)
			if err != nil {
				return training{}, err
			}
			counts, err := features.Bags(ctx, texts, nil, []features.NGramConfig{c}, nil, p.Bins)
			if err != nil {
				return training{}, err
			}
			t := training{Seconds: took.Seconds()}
			for block := range slices.Chunk(counts.RowSums(), textBlock) {
				sum := 0.0
				for _, n := range block {
					sum += n
				}
				t.Losses = append(t.Losses, sum)
			}
			return t, nil
		},
	}
}

// startPeers writes the reviews to a folder and starts both forms.
func (p TextParams) startPeers(ctx context.Context, reviews *data.Reviews) (runners []*runner, stop func(), err error) {
	dir, err := os.MkdirTemp("", "nasml-bench-")
	if err != nil {
		return nil, nil, fmt.Errorf("making a folder for the peers' inputs: %w", err)
	}
	var started []*peer
	stop = func() {
		for _, s := range started {
			s.stop()
		}
		_ = os.RemoveAll(dir)
	}
	inputs, err := json.Marshal(
		map[string]any{
			"texts":  reviews.Texts,
			"labels": reviews.Signs(),
			"order":  p.Order,
			"bins":   p.Bins,
			"alpha":  p.Alpha,
		},
	)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "reviews.json"), inputs, 0o644)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "text.py"), textScript, 0o644)
	}
	if err != nil {
		stop()
		return nil, nil, fmt.Errorf("writing the peers' inputs: %w", err)
	}
	for _, form := range []string{"HashingVectorizer", "loop"} {
		r := &runner{entry: Entry{Program: "scikit-learn", Form: form}}
		s, err := startPeer(ctx, p.Python, filepath.Join(dir, "text.py"), dir, form)
		if err != nil {
			r.train = func(context.Context) (training, error) { return training{}, err }
		} else {
			started = append(started, s)
			r.train, r.peak = s.train, s.peakMB
		}
		runners = append(runners, r)
	}
	return runners, stop, nil
}

// WriteTable writes the result for people.
func (r *TextResult) WriteTable(w io.Writer) error {
	_, _ = fmt.Fprintf(
		w,
		"Hashed n-grams up to order %d of %d reviews (%s), d = %d, Naive Bayes weights, %d threads\n",
		r.Order,
		r.Texts,
		r.Data,
		r.Bins,
		r.Threads,
	)
	return writeEntries(w, r.Entries)
}
