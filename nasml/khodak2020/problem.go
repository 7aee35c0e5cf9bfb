package khodak2020

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/nasml/lab/nasml/features"
	"github.com/nasml/lab/nasml/runs"
)

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

// problem is feature map selection on one data set, with a drawn pool of
// configurations.
type problem interface {
	// points are the examples of each split.
	points(s split) int
	// train fits one classifier on the training examples, example i under
	// configuration of[i] of the pool (one for all: a list of length 1), on d
	// features. The draws of the features are those of seed.
	train(ctx context.Context, of []int, d int, seed uint64, alone bool) (model, cost, error)
}

// model is a trained classifier.
type model interface {
	// values are the loss and the error (0 or 1) of every example of a split
	// under configuration of[i], or of[0] for all.
	values(ctx context.Context, s split, of []int) (losses, errs []float64, err error)
}

// mean is the mean of values; NaN where there are none.
func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// logUniform draws from [lo, hi] evenly on a logarithmic scale.
func logUniform(rng *rand.Rand, lo, hi float64) float64 {
	return lo * math.Exp(rng.Float64()*math.Log(hi/lo))
}

// The ranges of Appendix B.2: of γ and of α.
const smallestScale, largestScale = 1e-5, 10

// imageConfigs draws n configurations of Appendix B.2.1: preprocessing, kernel
// and bandwidth. The first ones are the same whatever n is.
func imageConfigs(n int, seed uint64) []features.FourierConfig {
	rng := runs.RNG(seed, "image configurations")
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

// reviewConfigs draws n configurations of Appendix B.2.2. As the code reads
// it, tokenizing on spaces takes punctuation away, and every configuration
// has a hash of its own where fresh asks for that.
func reviewConfigs(n int, seed uint64, reading string, fresh bool) []features.NGramConfig {
	rng := runs.RNG(seed, "review configurations")
	spaces := "whitespace"
	if reading == "code" {
		spaces = "simple"
	}
	hash := rng.Uint32()
	out := make([]features.NGramConfig, n)
	for i := range out {
		out[i] = features.NGramConfig{
			Tokenizer: pick(rng, spaces, "custom", "treebank"),
			StopWords: pick(rng, false, true), Lower: pick(rng, false, true),
			Order: 1 + rng.IntN(3), Binary: pick(rng, false, true),
			Weighting: pick(rng, "nb", "sif"), Alpha: logUniform(rng, smallestScale, largestScale),
			Preprocess: pick(rng, "none", "normalize", "average"), HashSeed: hash,
		}
		if fresh {
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
		label, loss, wrong := m.p.labels[s][i], 0.0, 0.0
		for j, v := range scores.RawRowView(i) {
			y := -1.0
			if j == label {
				y = 1
			}
			loss += (v - y) * (v - y)
		}
		if class != label {
			wrong = 1
		}
		losses, errs = append(losses, loss), append(errs, wrong)
	}
	return losses, errs, nil
}

// reviewProblem is a linear SVM on hashed bags of n-grams of reviews.
type reviewProblem struct {
	texts   *features.Texts
	rows    [3][]int // texts of each split
	labels  []int8   // of all texts, ±1
	configs []features.NGramConfig
	reading features.Reading
	svm     features.SVMParams // of weight sharing
	alone   features.SVMParams // of one configuration by itself
}

func (p *reviewProblem) points(s split) int { return len(p.rows[s]) }

// broadcast is a configuration for each of n examples.
func broadcast(of []int, n int) []int {
	if len(of) == 1 {
		return slices.Repeat(of, n)
	}
	return of
}

func (p *reviewProblem) labelsOf(s split) []int8 {
	out := make([]int8, len(p.rows[s]))
	for i, r := range p.rows[s] {
		out[i] = p.labels[r]
	}
	return out
}

func (p *reviewProblem) train(ctx context.Context, of []int, d int, seed uint64, alone bool) (model, cost, error) {
	begun := time.Now()
	m, x, err := features.FitNGrams(ctx, p.texts, p.labels, p.rows[trainSplit], p.configs, broadcast(of, p.points(trainSplit)), d, p.reading)
	if err != nil {
		return nil, cost{}, err
	}
	params := p.svm
	if alone {
		params = p.alone
	}
	params.Seed = seed
	fit, err := features.FitSVM(ctx, x, p.labelsOf(trainSplit), params)
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
	labels := m.p.labelsOf(s)
	for i, score := range m.fit.Scores(x) {
		margin := float64(labels[i]) * score
		loss, wrong := max(0, 1-margin), 0.0
		if m.squared {
			loss *= loss
		}
		if margin <= 0 {
			wrong = 1
		}
		losses, errs = append(losses, loss), append(errs, wrong)
	}
	return losses, errs, nil
}
