package mapsearch

import (
	"context"
	"slices"
	"time"

	"github.com/nasml/lab/nasml/features"
	"github.com/nasml/lab/nasml/trial"
)

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
