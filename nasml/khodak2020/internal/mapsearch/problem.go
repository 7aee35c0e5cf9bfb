// Package mapsearch selects feature maps, as the experiments of Khodak+ 2020 do:
// ridge regression on random Fourier features of images, a linear SVM on hashed
// n-grams of reviews, weight sharing and the searches that it is compared with.
package mapsearch

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/nasml/lab/nasml/features"
	"github.com/nasml/lab/nasml/khodak2020/halving"
	"github.com/nasml/lab/nasml/trial"
)

// The two tasks of the paper.
const (
	ImageTask  = "cifar-10"
	ReviewTask = "imdb"
)

// Setting is what a trial of a task depends on besides its search.
type Setting struct {
	Task    string  `json:"task"`
	Reading string  `json:"reading"`          // "paper" or "code"
	Fresh   bool    `json:"fresh"`            // every configuration has random features or a hash of its own
	Lambda  float64 `json:"lambda"`           // λ of λ‖w‖² + Σℓ
	Tol     float64 `json:"tol"`              // of the solver: LSQR or the SVM
	Epochs  int     `json:"epochs,omitempty"` // of the SVM at most
	// Tokenizer is the third one of reviews, which the two readings differ in; empty: "treebank".
	Tokenizer string `json:"tokenizer,omitempty"`
}

// Data are the examples of a task, of which every trial makes a problem with its own pool of configurations.
type Data interface {
	problem(s Setting, configs int, seed uint64) problem
}

// split names the examples that something is done with.
type split int

const (
	trainSplit split = iota
	validSplit
	testSplit
)

// cost is what a step took: seconds of wall time, and multiply-adds of the
// products (features and solver), which do not depend on the machine.
type cost struct{ seconds, madds float64 }

func (c *cost) add(d cost) { c.seconds += d.seconds; c.madds += d.madds }

// problem is feature map selection on one data set, with a drawn pool of configurations.
type problem interface {
	// points are the examples of each split.
	points(s split) int
	// train fits one classifier on the training examples, example i under configuration of[i] of the pool (one for all:
	// a list of length 1), on d features. The draws of the features are those of seed.
	train(ctx context.Context, of []int, d int, seed uint64, alone bool) (model, cost, error)
}

// model is a trained classifier.
type model interface {
	// values are the loss and the error (0 or 1) of every example of a split
	// under configuration of[i], or of[0] for all.
	values(ctx context.Context, s split, of []int) (losses, errs []float64, err error)
}

func logUniform(rng *rand.Rand, lo, hi float64) float64 {
	return lo * math.Exp(rng.Float64()*math.Log(hi/lo))
}

// The ranges of Appendix B.2: of γ and of α.
const smallestScale, largestScale = 1e-5, 10

// imageConfigs draws n configurations of Appendix B.2.1: preprocessing, kernel
// and bandwidth. The first ones are the same whatever n is.
func imageConfigs(n int, seed uint64) []features.FourierConfig {
	rng := trial.RNG(seed, "image configurations")
	out := make([]features.FourierConfig, n)
	for i := range out {
		out[i] = features.FourierConfig{
			Kernel:     pick(rng, features.Gaussian, features.Laplacian),
			Preprocess: pick(rng, features.Raw, features.MinMax, features.Standard, features.UnitRows),
			Gamma:      logUniform(rng, smallestScale, largestScale),
		}
	}
	return out
}

// reviewConfigs draws n configurations of Appendix B.2.2. As the code reads it, tokenizing on spaces takes punctuation
// away, the third tokenizer is NLTK's, and every configuration has a hash of its own where s.Fresh asks for that.
func reviewConfigs(n int, seed uint64, s Setting) []features.NGramConfig {
	rng := trial.RNG(seed, "review configurations")
	spaces := "whitespace"
	if s.Reading == "code" {
		spaces = "simple"
	}
	words := cmp.Or(s.Tokenizer, "treebank")
	hash := rng.Uint32()
	out := make([]features.NGramConfig, n)
	for i := range out {
		out[i] = features.NGramConfig{
			Tokenizer: pick(rng, spaces, "custom", words),
			StopWords: pick(rng, false, true), Lower: pick(rng, false, true),
			Order: 1 + rng.IntN(3), Binary: pick(rng, false, true),
			Weighting: pick(rng, "nb", "sif"), Alpha: logUniform(rng, smallestScale, largestScale),
			Preprocess: pick(rng, "none", "normalize", "average"), HashSeed: hash,
		}
		if s.Fresh {
			out[i].HashSeed += uint32(i)
		}
	}
	return out
}

func pick[T any](rng *rand.Rand, choices ...T) T { return choices[rng.IntN(len(choices))] }

// imageProblem is ridge regression on random Fourier features of images.
type imageProblem struct {
	engine  *features.Engine
	tables  [3]features.Table // by split
	labels  [3][]int
	targets *mat.Dense // of the training images, ±1
	scaling *features.Scaling
	configs []features.FourierConfig
	fresh   bool // every configuration has features of its own
	ridge   features.RidgeParams
	keep    int64 // bytes of features that stay on the device
}

// Images are the examples of a split: labels, and the pixels of each image, 0 to 255.
type Images struct {
	Labels []uint8
	Pixels func(i int) []uint8 // there is at least one image
}

// ValidFrom is the first validation image of n, of which the training images
// are in front of it: 40,000 of 50,000 (Appendix B.2.1).
func ValidFrom(n int) int { return min(40000, n*4/5) }

// NewImages makes the training, validation and test images a task. Its features are computed by the engine, where up to
// keep bytes of them stay. It is an error if the scaling of the features cannot be fitted.
func NewImages(engine *features.Engine, splits [3]Images, keep int64) (Data, error) {
	p := &imageProblem{engine: engine, keep: keep}
	for s, part := range splits {
		p.tables[s], p.labels[s] = part.table()
	}
	p.targets = features.Targets(p.labels[trainSplit], 10)
	var err error
	p.scaling, err = features.FitScaling(p.tables[trainSplit])
	return p, err
}

// table are the images in [0, 1], a row each, and their labels.
func (im Images) table() (features.Table, []int) {
	n, size := len(im.Labels), len(im.Pixels(0))
	t := features.Table{Rows: n, Cols: size, Data: make([]float32, n*size)}
	labels := make([]int, n)
	for i := range n {
		labels[i] = int(im.Labels[i])
		for j, v := range im.Pixels(i) {
			t.Data[i*size+j] = float32(v) / 255
		}
	}
	return t, labels
}

func (p *imageProblem) problem(s Setting, configs int, seed uint64) problem {
	q := *p
	q.configs, q.fresh = imageConfigs(configs, seed), s.Fresh
	q.ridge = features.RidgeParams{Lambda: s.Lambda, Tol: s.Tol}
	return &q
}

func (p *imageProblem) points(s split) int { return p.tables[s].Rows }

func (p *imageProblem) rows(s split, of []int) features.Rows {
	r := features.Rows{X: p.tables[s], Scaling: p.scaling, Configs: p.configs, Config: of}
	if len(of) == 1 && r.X.Rows != 1 {
		r.Configs, r.Config = p.configs[of[0]:of[0]+1], nil
	}
	return r
}

func (p *imageProblem) train(ctx context.Context, of []int, d int, seed uint64, _ bool) (model, cost, error) {
	begun := time.Now()
	f := features.Fourier{Dim: d, Seed: seed, Fresh: p.fresh && len(of) > 1}
	phi, err := p.engine.Features(ctx, f, p.rows(trainSplit, of), p.keep)
	if err != nil {
		return nil, cost{}, err
	}
	defer phi.Close()
	fit, err := features.FitRidge(ctx, phi, p.targets, p.ridge)
	if err != nil {
		return nil, cost{}, err
	}
	_, classes := p.targets.Dims()
	n, made := float64(p.points(trainSplit)), 1
	if !phi.Kept() {
		made = fit.Solve.Passes
	}
	madds := n * float64(d) * (float64(made*p.tables[trainSplit].Cols) + 2*float64(fit.Solve.Passes*classes))
	return &imageModel{p, f, fit}, cost{time.Since(begun).Seconds(), madds}, nil
}

type imageModel struct {
	p   *imageProblem
	f   features.Fourier
	fit *features.LinearModel
}

func (m *imageModel) values(ctx context.Context, s split, of []int) (losses, errs []float64, err error) {
	phi, err := m.p.engine.Features(ctx, m.f, m.p.rows(s, of), 0)
	if err != nil {
		return nil, nil, err
	}
	defer phi.Close()
	scores, err := m.fit.Scores(ctx, phi)
	if err != nil {
		return nil, nil, err
	}
	for i, class := range features.Classes(scores) {
		label, loss := m.p.labels[s][i], 0.0
		for j, v := range scores.RawRowView(i) {
			y := -1.0
			if j == label {
				y = 1
			}
			loss += (v - y) * (v - y)
		}
		losses, errs = append(losses, loss), append(errs, trial.Indicator(class != label))
	}
	return losses, errs, nil
}

// reviewProblem is a linear SVM on hashed bags of n-grams of reviews.
type reviewProblem struct {
	texts   *features.Texts
	rows    [3][]int  // texts of each split
	labels  []int8    // of all texts, ±1
	signs   [3][]int8 // of each split
	configs []features.NGramConfig
	reading features.Reading
	svm     features.SVMParams // of weight sharing
	alone   features.SVMParams // of one configuration by itself
}

// Reviews are the examples of a split: texts, and ±1 for each.
type Reviews struct {
	Texts []string
	Signs []int8
}

// NewReviews makes the training, validation and test reviews a task.
func NewReviews(splits [3]Reviews) Data {
	p := new(reviewProblem)
	var texts []string
	for s, part := range splits {
		for i := range part.Texts {
			p.rows[s] = append(p.rows[s], len(texts)+i)
		}
		p.signs[s], p.labels = part.Signs, append(p.labels, part.Signs...)
		texts = append(texts, part.Texts...)
	}
	p.texts = features.NewTexts(texts)
	return p
}

func (p *reviewProblem) problem(s Setting, configs int, seed uint64) problem {
	q := *p
	q.configs, q.reading = reviewConfigs(configs, seed, s), features.Reading(s.Reading)
	q.svm = features.SVMParams{C: 1 / (2 * s.Lambda), Loss: "hinge", Tol: s.Tol, MaxEpochs: s.Epochs}
	q.alone = q.svm
	if s.Reading == "code" { // what the baselines' LinearSVC defaults to
		q.alone.Loss, q.alone.Tol = "squared-hinge", max(1e-4, s.Tol)
	}
	return &q
}

func (p *reviewProblem) points(s split) int { return len(p.rows[s]) }

// broadcast is a configuration for each of n examples.
func broadcast(of []int, n int) []int {
	if len(of) == 1 {
		return slices.Repeat(of, n)
	}
	return of
}

func (p *reviewProblem) train(ctx context.Context, of []int, d int, seed uint64, alone bool) (model, cost, error) {
	begun := time.Now()
	configs := broadcast(of, p.points(trainSplit))
	m, x, err := features.FitNGrams(ctx, p.texts, p.labels, p.rows[trainSplit], p.configs, configs, d, p.reading)
	if err != nil {
		return nil, cost{}, err
	}
	params := p.svm
	if alone {
		params = p.alone
	}
	params.Seed = seed
	fit, err := features.FitSVM(ctx, x, p.signs[trainSplit], params)
	if err != nil {
		return nil, cost{}, err
	}
	// An epoch takes a product with every row and adds every row.
	madds := 2 * float64(fit.Epochs) * float64(x.NNZ())
	return &reviewModel{p, m, fit, params.Loss == "squared-hinge"}, cost{time.Since(begun).Seconds(), madds}, nil
}

type reviewModel struct {
	p       *reviewProblem
	m       *features.NGramMap
	fit     *features.SVMModel
	squared bool
}

func (m *reviewModel) values(ctx context.Context, s split, of []int) (losses, errs []float64, err error) {
	x, err := m.m.Rows(ctx, m.p.rows[s], broadcast(of, m.p.points(s)))
	if err != nil {
		return nil, nil, err
	}
	labels := m.p.signs[s]
	for i, score := range m.fit.Scores(x) {
		margin := float64(labels[i]) * score
		loss := max(0, 1-margin)
		if m.squared {
			loss *= loss
		}
		losses, errs = append(losses, loss), append(errs, trial.Indicator(margin <= 0))
	}
	return losses, errs, nil
}

// Signal is Figure 1 of a task: configurations with shared weights and by themselves.
type Signal struct {
	Setting
	Configs int `json:"configs"`
	Dim     int `json:"dim"` // d
}

// Run trains with the random streams of a seed and calls step after every solve, [Signal.Calls] of them. It returns the
// accuracy of every configuration with the shared weights of the first round, and by itself, on the whole validation
// set ("shared", "alone"), the accuracy on the examples that were assigned to it ("cell", −1 where there were none),
// and what the shared solve and the mean one by itself took.
func (t Signal) Run(ctx context.Context, data Data, seed uint64, step func(note string)) (trial.Result, error) {
	return signal(ctx, data.problem(t.Setting, t.Configs, seed), t.Configs, t.Dim, seed, step)
}

// Calls is how many solves there are: the shared one and one a configuration.
func (t Signal) Calls() int { return t.Configs + 1 }

func signal(ctx context.Context, p problem, n, d int, seed uint64, step func(string)) (trial.Result, error) {
	s := &search{p: p, seed: seed}
	rng := trial.RNG(seed, "signal")
	all := halving.Assign(p.points(trainSplit), n, rng)
	shared, together, err := p.train(ctx, all, d, s.drawSeed("shared"), false)
	if err != nil {
		return trial.Result{}, err
	}
	step(fmt.Sprintf("shared, d = %d", d))
	cells := halving.Assign(p.points(validSplit), n, rng)
	_, errs, err := shared.values(ctx, validSplit, cells)
	if err != nil {
		return trial.Result{}, err
	}
	own, counts, err := halving.Means(cells, errs, n, "worst")
	if err != nil {
		return trial.Result{}, err
	}
	series := map[string][]float64{}
	var single cost
	for c := range n {
		if counts[c] == 0 {
			own[c] = 2
		}
		accuracy := func(m model) (float64, error) {
			_, errs, err := m.values(ctx, validSplit, []int{c})
			return 1 - trial.Mean(errs), err
		}
		with, err := accuracy(shared)
		if err != nil {
			return trial.Result{}, err
		}
		m, spent, err := p.train(ctx, []int{c}, d, s.drawSeed("alone", strconv.Itoa(c)), true)
		if err != nil {
			return trial.Result{}, err
		}
		by, err := accuracy(m)
		if err != nil {
			return trial.Result{}, err
		}
		single.add(spent)
		for name, v := range map[string]float64{"shared": with, "alone": by, "cell": 1 - own[c]} {
			series[name] = append(series[name], v)
		}
		step(fmt.Sprintf("configuration %d of %d, d = %d", c+1, n, d))
	}
	return trial.Result{Series: series, Values: map[string]float64{
		"seconds_shared": together.seconds, "seconds_alone": single.seconds / float64(n),
		"madds_shared": together.madds, "madds_alone": single.madds / float64(n),
	}}, nil
}

// Map is what tells configurations apart at a glance: of images the kernel and its
// bandwidth γ, of reviews the weighting and its α.
type Map struct {
	Kind  string
	Scale float64
}

// Maps are the configurations that [Signal.Run] trains, in their order.
func (t Signal) Maps(seed uint64) []Map {
	var maps []Map
	if t.Task == ReviewTask {
		for _, c := range reviewConfigs(t.Configs, seed, t.Setting) {
			maps = append(maps, Map{c.Weighting, c.Alpha})
		}
		return maps
	}
	for _, c := range imageConfigs(t.Configs, seed) {
		maps = append(maps, Map{string(c.Kernel), c.Gamma})
	}
	return maps
}
