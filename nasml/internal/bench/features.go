package bench

import (
	"context"
	"fmt"
	"io"
	"math"
	"runtime"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/mat"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/features"
)

// FeaturesParams are the timed linear models of Khodak+ 2020: ridge regression on random Fourier features of images,
// and an SVM on hashed n-grams of reviews.
type FeaturesParams struct {
	Images data.Name
	Count  int // images
	Dim    int // random Fourier features
	Tol    float64

	Reviews data.Name
	Texts   int // reviews
	Bins    int // hashed n-grams

	Only string // "ridge" or "svm"; empty: both
	Timing
}

// FeaturesFull is behind the README's claims. NumPy takes 7 GB for its part.
var FeaturesFull = FeaturesParams{
	Images: data.CIFAR10, Count: 40_000, Dim: 1 << 14, Tol: 1e-3,
	Reviews: data.IMDb, Texts: 25_000, Bins: 1 << 20, Timing: Timing{Rounds: 3},
}

// FeaturesQuick only shows that everything works.
var FeaturesQuick = FeaturesParams{
	Images: data.Synthetic, Count: 300, Dim: 64, Tol: 1e-3,
	Reviews: data.Synthetic, Texts: 200, Bins: 1 << 12, Timing: Timing{Rounds: 3},
}

// FeaturesResult is the result of [Features]. Entries[0] of a case is ours; its "step" is the whole fit.
type FeaturesResult struct {
	Machine
	Cases []FeaturesCase `json:"cases"`
}

// FeaturesCase is one fit with everyone who ran it.
type FeaturesCase struct {
	Title   string  `json:"title"`
	Entries []Entry `json:"entries"`
}

// fitter is a case before it is run: what ours does, and the peer's inputs.
type fitter struct {
	title    string
	peer     program
	inputs   map[string]*tensors.Tensor
	settings map[string]any
	fit      func(context.Context) (training, error)
	close    func()
}

// Features times both fits beside NumPy and scikit-learn, in turn. The peers get the same inputs, and the random matrix
// for free. Weight norms, errors on held-out images and the SVM's objective are compared. Errors are those of
// [Supernet].
func Features(ctx context.Context, b compute.Backend, p FeaturesParams) (*FeaturesResult, error) {
	r := &FeaturesResult{Machine: machineOf(b)}
	for _, one := range []struct {
		name    string
		prepare func(context.Context, compute.Backend) (*fitter, error)
	}{{"ridge", p.ridge}, {"svm", p.svm}} {
		if p.Only != "" && p.Only != one.name {
			continue
		}
		f, err := one.prepare(ctx, b)
		if err != nil {
			return r, err
		}
		c, err := p.run(ctx, f)
		if err != nil {
			return r, err
		}
		r.Cases = append(r.Cases, *c)
	}
	return r, nil
}

func (p FeaturesParams) run(ctx context.Context, f *fitter) (*FeaturesCase, error) {
	defer f.close()
	p.log("features: %s", f.title)
	resetPeak()
	all, err := p.measure(ctx, f.fit, 1, f.write, []program{f.peer})
	return &FeaturesCase{Title: f.title, Entries: all}, err
}

// write writes the peer's inputs, and drops them so that they do not count as our memory.
func (f *fitter) write(dir string) error {
	err := write(dir, f.settings, f.inputs)
	f.inputs = nil
	resetPeak()
	return err
}

// compareTol is LSQR's tolerance in the first fit, which is compared and not timed. At the timed fits' tolerance,
// rounding may change the number of iterations, and with it the fourth digit.
const compareTol = 1e-5

// heldOut is how many images the fits are compared on.
const heldOut = 200

// ridge prepares a trial of random search: Gaussian features of images with rows of norm 1, ten classes.
func (p FeaturesParams) ridge(ctx context.Context, b compute.Backend) (*fitter, error) {
	images, err := data.Load(ctx, p.Images, data.Train)
	if err != nil {
		return nil, err
	}
	n := min(p.Count, images.Len()-heldOut)
	classes := 0
	for _, l := range images.Labels {
		classes = max(classes, int(l)+1)
	}
	x, labels := pixels(images, 0, n)
	held, heldLabels := pixels(images, images.Len()-heldOut, images.Len())
	y, heldY := features.Targets(labels, classes), features.Targets(heldLabels, classes)
	engine := features.NewEngine(b)
	draw := features.Fourier{Dim: p.Dim, Seed: 1}
	config := []features.FourierConfig{{Kernel: features.Gaussian, Gamma: 2, Preprocess: features.UnitRows}}
	f := &fitter{
		title: fmt.Sprintf("ridge regression (LSQR, tol %v, λ = ½) on %d random Fourier features of %d images (%s)",
			p.Tol, p.Dim, n, p.Images),
		peer: program{"NumPy and scikit-learn", "features.py", []string{"float64", "float32"}},
		settings: map[string]any{
			"case": "ridge", "gamma": config[0].Gamma, "compare_tol": compareTol, "tol": p.Tol, "classes": classes,
		},
		close: engine.Close,
	}
	tol := compareTol
	f.fit = func(ctx context.Context) (training, error) {
		train, test := features.Rows{X: x, Configs: config}, features.Rows{X: held, Configs: config}
		t, err := fitRidge(ctx, engine, draw, train, test, y, heldY, tol)
		tol = p.Tol
		return t, err
	}
	if p.Python != "" {
		w, offsets, err := engine.Draws(draw, features.Gaussian, x.Cols)
		if err != nil {
			return nil, err
		}
		f.inputs = map[string]*tensors.Tensor{
			"x": tensors.FromFlatDataAndDimensions(x.Data, x.Rows, x.Cols), "labels": vector(int32s(labels)),
			"held":        tensors.FromFlatDataAndDimensions(held.Data, held.Rows, held.Cols),
			"held_labels": vector(int32s(heldLabels)),
			"w":           tensors.FromFlatDataAndDimensions(w, x.Cols, p.Dim), "offsets": vector(offsets),
		}
	}
	return f, nil
}

// fitRidge goes from pixels to errors on held-out images.
func fitRidge(
	ctx context.Context, e *features.Engine, f features.Fourier, rows, held features.Rows, y, heldY *mat.Dense,
	tol float64,
) (training, error) {
	begin := time.Now()
	phi, err := e.Features(ctx, f, rows, 4<<30)
	if err != nil {
		return training{}, err
	}
	defer phi.Close()
	m, err := features.FitRidge(ctx, phi, y, features.RidgeParams{Lambda: 0.5, Tol: tol})
	if err != nil {
		return training{}, err
	}
	heldPhi, err := e.Features(ctx, f, held, 0)
	if err != nil {
		return training{}, err
	}
	defer heldPhi.Close()
	scores, err := m.Scores(ctx, heldPhi)
	if err != nil {
		return training{}, err
	}
	_, k := y.Dims()
	t := training{Losses: make([]float64, 2*k)}
	for j := range k {
		t.Losses[j] = mat.Norm(m.Weights.ColView(j), 2)
		var d mat.VecDense
		d.SubVec(scores.ColView(j), heldY.ColView(j))
		t.Losses[k+j] = mat.Norm(&d, 2) / math.Sqrt(heldOut)
	}
	t.Seconds = time.Since(begin).Seconds()
	return t, nil
}

func pixels(images *data.Images, from, to int) (features.Table, []int) {
	size := images.Height * images.Width * images.Channels
	t := features.Table{Rows: to - from, Cols: size, Data: make([]float32, (to-from)*size)}
	for i := range t.Data {
		t.Data[i] = float32(images.Pixels[from*size+i]) / 255
	}
	labels := make([]int, to-from)
	for i := range labels {
		labels[i] = int(images.Labels[from+i])
	}
	return t, labels
}

func vector[T float32 | int32](x []T) *tensors.Tensor {
	return tensors.FromFlatDataAndDimensions(x, len(x))
}

func int32s[T int | int8](xs []T) []int32 {
	out := make([]int32, len(xs))
	for i, x := range xs {
		out[i] = int32(x)
	}
	return out
}

// svm prepares the inner problem of the search on reviews: hinge loss, C = 1, tolerance 1e-5, as in the code of Khodak+
// 2020.
func (p FeaturesParams) svm(ctx context.Context, _ compute.Backend) (*fitter, error) {
	reviews, err := someReviews(ctx, p.Reviews, p.Texts)
	if err != nil {
		return nil, err
	}
	config := features.NGramConfig{
		Tokenizer: "custom", Lower: true, Order: 2, Weighting: "none", Preprocess: "normalize",
	}
	labels, configs := reviews.Signs(), []features.NGramConfig{config}
	_, rows, err := features.FitNGrams(ctx, features.NewTexts(reviews.Texts), labels, nil, configs, nil, p.Bins,
		features.AsPaper)
	if err != nil {
		return nil, err
	}
	f := &fitter{
		title: fmt.Sprintf(
			"linear SVM (hinge, C = 1, tol 1e-5) on the n-grams of %d reviews (%s) in %d bins, %d of them not 0",
			reviews.Len(), p.Reviews, p.Bins, rows.NNZ()),
		peer: program{"scikit-learn", "features.py", []string{"LinearSVC"}}, close: func() {},
		settings: map[string]any{"case": "svm", "bins": p.Bins},
		fit: func(ctx context.Context) (training, error) {
			begin := time.Now()
			m, err := features.FitSVM(ctx, rows, labels, features.SVMParams{C: 1, Loss: "hinge", Tol: 1e-5, Seed: 1})
			if err != nil {
				return training{}, err
			}
			return training{Seconds: time.Since(begin).Seconds(), Losses: []float64{m.Primal}}, nil
		},
	}
	if p.Python != "" {
		f.inputs = map[string]*tensors.Tensor{
			"starts": vector(int32s(rows.RowPtr)), "columns": vector(rows.Col), "values": vector(rows.Val),
			"labels": vector(int32s(labels)),
		}
	}
	return f, nil
}

// WriteTable writes the result for people.
func (r *FeaturesResult) WriteTable(w io.Writer) error {
	for _, c := range r.Cases {
		if err := writeEntries(w, c.Title+", "+r.title(), c.Entries); err != nil {
			return err
		}
	}
	return nil
}

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
