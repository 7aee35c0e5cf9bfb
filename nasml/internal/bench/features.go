package bench

import (
	"context"
	"embed"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/mat"

	"github.com/nasml/lab/nasml/backend"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/features"
)

// FeaturesParams say which linear models of Khodak+ 2020 are timed: ridge
// regression on random Fourier features of images, and a support vector
// machine on hashed n-grams of reviews.
type FeaturesParams struct {
	Images data.Name
	Count  int // images
	Dim    int // random Fourier features
	Tol    float64

	Reviews data.Name
	Texts   int // reviews
	Bins    int // hashed n-grams

	Only   string // "ridge" or "svm"; empty: both
	Rounds int
	Python string            // interpreter with Requirements installed; empty: no peers
	Log    func(line string) // progress; nil: none
}

// FeaturesFull is behind the README's claims. NumPy takes 7 GB for its part.
var FeaturesFull = FeaturesParams{
	Images: data.CIFAR10, Count: 40_000, Dim: 1 << 14, Tol: 1e-3,
	Reviews: data.IMDb, Texts: 25_000, Bins: 1 << 20, Rounds: 3,
}

// FeaturesQuick only shows that everything works.
var FeaturesQuick = FeaturesParams{
	Images: data.Synthetic, Count: 300, Dim: 64, Tol: 1e-3,
	Reviews: data.Synthetic, Texts: 200, Bins: 1 << 12, Rounds: 3,
}

// FeaturesResult is what [Features] finds. Entries[0] of a case is ours; its
// one "step" is the whole fit.
type FeaturesResult struct {
	Backend string         `json:"backend"`
	Device  string         `json:"device"`
	Threads int            `json:"threads"`
	Cases   []FeaturesCase `json:"cases"`
}

// FeaturesCase is one fit with everyone who ran it.
type FeaturesCase struct {
	Title   string  `json:"title"`
	Entries []Entry `json:"entries"`
}

//go:embed peer.py features.py
var featuresScripts embed.FS

// fitter is a case before it is run: what ours does, and the peer's inputs.
type fitter struct {
	title, program string
	forms          []string
	inputs         map[string]*tensors.Tensor
	settings       map[string]any
	fit            func(context.Context) (training, error)
}

// Features times both fits beside NumPy's and scikit-learn's, in turn. The
// peers get the same inputs, and the random matrix for nothing. What is
// compared are norms of the weights and errors on held-out images, and the
// objective of the support vector machine. Errors are those of [Supernet].
func Features(ctx context.Context, b compute.Backend, p FeaturesParams) (*FeaturesResult, error) {
	r := &FeaturesResult{Threads: runtime.GOMAXPROCS(0)}
	r.Backend, r.Device = backend.Describe(b)
	for _, one := range []struct {
		name    string
		prepare func(context.Context, compute.Backend) (*fitter, func(), error)
	}{{"ridge", p.ridge}, {"svm", p.svm}} {
		if p.Only != "" && p.Only != one.name {
			continue
		}
		c, err := p.run(ctx, b, one.prepare)
		if err != nil {
			return r, err
		}
		r.Cases = append(r.Cases, *c)
	}
	return r, nil
}

func (p FeaturesParams) run(
	ctx context.Context,
	b compute.Backend,
	prepare func(context.Context, compute.Backend) (*fitter, func(), error),
) (*FeaturesCase, error) {
	f, done, err := prepare(ctx, b)
	if err != nil {
		return nil, err
	}
	defer done()
	timer := Params{Rounds: p.Rounds, Log: p.Log}
	timer.log("features: %s", f.title)
	runners := []*runner{ours(f.fit)}
	if p.Python != "" {
		peers, err := newTeam(f.writeInputs)
		if err != nil {
			return nil, err
		}
		defer peers.stop()
		for _, form := range f.forms {
			peers.start(ctx, p.Python, f.program, form, "features.py", peers.dir, form)
		}
		runners = append(runners, peers.runners...)
	}
	f.inputs = nil // written by now: not part of our peak
	resetPeak()
	all, err := timer.measure(ctx, runners, 1)
	if err != nil {
		return nil, err
	}
	return &FeaturesCase{Title: f.title, Entries: all}, nil
}

func (f *fitter) writeInputs(dir string) error {
	if err := writeArrays(dir, f.inputs); err != nil {
		return err
	}
	f.settings["threads"] = runtime.NumCPU()
	if err := writeJSON(dir, "settings.json", f.settings); err != nil {
		return err
	}
	return os.CopyFS(dir, featuresScripts)
}

// compareTol is LSQR's tolerance in the first fit, which is compared and not
// timed. At the one of the timed fits rounding may decide about an iteration
// more or less, which shows in the fourth digit.
const compareTol = 1e-5

// heldOut is how many images the fits are compared on.
const heldOut = 200

// ridge prepares one trial of random search: Gaussian features of images
// whose rows have norm 1, and the weights and intercepts of ten classes.
func (p FeaturesParams) ridge(ctx context.Context, b compute.Backend) (*fitter, func(), error) {
	images, err := data.Load(ctx, p.Images, data.Train)
	if err != nil {
		return nil, nil, err
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
		program: "NumPy and scikit-learn",
		forms:   []string{"float64", "float32"},
		settings: map[string]any{
			"case":        "ridge",
			"gamma":       config[0].Gamma,
			"compare_tol": compareTol,
			"tol":         p.Tol,
			"classes":     classes,
		},
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
			return nil, nil, err
		}
		f.inputs = ridgeInputs(x, held, labels, heldLabels)
		f.inputs["w"] = tensors.FromFlatDataAndDimensions(w, x.Cols, p.Dim)
		f.inputs["offsets"] = tensors.FromFlatDataAndDimensions(offsets, p.Dim)
	}
	return f, engine.Close, nil
}

// ridgeInputs are the images of both parts for the peers.
func ridgeInputs(x, held features.Table, labels, heldLabels []int) map[string]*tensors.Tensor {
	return map[string]*tensors.Tensor{
		"x":           tensors.FromFlatDataAndDimensions(x.Data, x.Rows, x.Cols),
		"labels":      tensors.FromFlatDataAndDimensions(int32s(labels), len(labels)),
		"held":        tensors.FromFlatDataAndDimensions(held.Data, held.Rows, held.Cols),
		"held_labels": tensors.FromFlatDataAndDimensions(int32s(heldLabels), len(heldLabels)),
	}
}

// fitRidge is our fit, from pixels to errors on held-out images.
func fitRidge(
	ctx context.Context,
	e *features.Engine,
	f features.Fourier,
	rows, held features.Rows,
	y, heldY *mat.Dense,
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

// pixels are images from..to as a table of numbers in [0, 1].
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

func int32s(xs []int) []int32 {
	out := make([]int32, len(xs))
	for i, x := range xs {
		out[i] = int32(x)
	}
	return out
}

// svm prepares the inner problem of the search on reviews: hinge, C = 1 and a
// tolerance of 1e-5 as in the code of Khodak+ 2020.
func (p FeaturesParams) svm(ctx context.Context, _ compute.Backend) (*fitter, func(), error) {
	reviews, err := data.LoadReviews(ctx, p.Reviews, data.Train)
	if err != nil {
		return nil, nil, err
	}
	order := data.PythonShuffle(reviews.Len(), 0) // so that a part has both labels
	if reviews, err = reviews.Select(order[:min(p.Texts, len(order))]); err != nil {
		return nil, nil, err
	}
	config := features.NGramConfig{
		Tokenizer:  "custom",
		Lower:      true,
		Order:      2,
		Weighting:  "none",
		Preprocess: "normalize",
	}
	rows, err := features.Bags(ctx, features.NewTexts(reviews.Texts), nil, []features.NGramConfig{config}, nil, p.Bins)
	if err != nil {
		return nil, nil, err
	}
	unitRows(rows)
	labels := reviews.Signs()
	f := &fitter{
		title: fmt.Sprintf(
			"linear SVM (hinge, C = 1, tol 1e-5) on the n-grams of %d reviews (%s) in %d bins, %d of them not 0",
			reviews.Len(),
			p.Reviews,
			p.Bins,
			rows.NNZ(),
		),
		program: "scikit-learn", forms: []string{"LinearSVC"},
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
		wide := make([]int, len(labels))
		for i, y := range labels {
			wide[i] = int(y)
		}
		f.inputs = map[string]*tensors.Tensor{
			"starts": tensors.FromFlatDataAndDimensions(
				int32s(rows.RowPtr),
				len(rows.RowPtr),
			), "columns": tensors.FromFlatDataAndDimensions(rows.Col, len(rows.Col)),
			"values": tensors.FromFlatDataAndDimensions(
				rows.Val,
				len(rows.Val),
			), "labels": tensors.FromFlatDataAndDimensions(int32s(wide), len(wide)),
		}
	}
	return f, func() {}, nil
}

// unitRows divides every row by its norm.
func unitRows(s *features.Sparse) {
	factors := s.RowNorms()
	for i, norm := range factors {
		factors[i] = 1
		if norm > 0 {
			factors[i] = 1 / norm
		}
	}
	s.ScaleRows(factors)
}

// WriteTable writes the result for people.
func (r *FeaturesResult) WriteTable(w io.Writer) error {
	for _, c := range r.Cases {
		_, _ = fmt.Fprintf(w, "%s, %s (%s), %d threads\n", c.Title, r.Backend, r.Device, r.Threads)
		if err := writeEntries(w, c.Entries); err != nil {
			return err
		}
	}
	return nil
}
