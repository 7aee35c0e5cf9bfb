package mapsearch

import (
	"context"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/nasml/lab/nasml/features"
	"github.com/nasml/lab/nasml/trial"
)

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

// Images are the examples of a split: labels, and the pixels of each image, 0
// to 255.
type Images struct {
	Labels []uint8
	Pixels func(i int) []uint8 // there is at least one image
}

// ValidFrom is the first validation image of n, of which the training images
// are in front of it: 40,000 of 50,000 (Appendix B.2.1).
func ValidFrom(n int) int { return min(40000, n*4/5) }

// NewImages makes the training, validation and test images a task. Its features
// are computed by the engine, where up to keep bytes of them stay. It is an
// error if the scaling of the features cannot be fitted.
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
