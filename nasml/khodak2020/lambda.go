package khodak2020

import (
	"context"
	"embed"
	"sync"

	"github.com/nasml/lab/nasml/features"
	"github.com/nasml/lab/nasml/halving"
	"github.com/nasml/lab/nasml/runs"
)

// randomSearchLambda is random search that tunes λ, too (Appendix B.2). Its
// tries are those of random search, with the same features, but for λ, so that
// the two differ in nothing else.
const randomSearchLambda = "rs-lambda"

//go:embed lambda.go
var lambdaSource embed.FS

// lambdaCode is the version of what computes random search with λ.
var lambdaCode = sync.OnceValues(func() (string, error) {
	return runs.CodeVersion(lambdaSource, searchSources, halving.Sources, features.TextSources, features.LinearSources)
})

// lambdaProblem trains every configuration with a λ of its own.
type lambdaProblem struct {
	problem
	with    func(lambda float64) problem
	lambdas []float64 // of each configuration
}

// withLambdas draws the λ of n configurations from [lo, hi], evenly on a
// logarithmic scale; with is the problem with one λ.
func withLambdas(with func(lambda float64) problem, n int, lo, hi float64, seed uint64) lambdaProblem {
	rng := runs.RNG(seed, "λ of random search")
	p := lambdaProblem{problem: with(lo), with: with}
	for range n {
		p.lambdas = append(p.lambdas, logUniform(rng, lo, hi))
	}
	return p
}

func (p lambdaProblem) train(ctx context.Context, of []int, d int, seed uint64, alone bool) (model, cost, error) {
	return p.with(p.lambdas[of[0]]).train(ctx, of, d, seed, alone)
}
