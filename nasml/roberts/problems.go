package roberts

import (
	"context"

	"github.com/nasml/lab/nasml/backend"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/roberts/internal/mixture"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/trial"
)

// paper is what the entries of the paper have in common.
var paper = lab.Paper{ID: "roberts", Name: "Roberts+", Shipped: shippedRecords}

// problems and problemGroups are what the theorems compute: random problems of one kind, a record a seed.
type (
	problems      = mixture.Problems
	problemGroups = lab.Groups[problems]
)

// problemBench opens the backend. What the activations of the pool compute is part of the keys: own ones are welcome.
func problemBench[P interface{ own() ProblemParams }](_ context.Context, p P, _ string) (lab.Bench[problems], error) {
	b, err := backend.Open()
	if err != nil {
		return lab.Bench[problems]{}, err
	}
	probe, err := mixture.Probe(b, p.own().Activations)
	es := mixture.NewEvaluators(b)
	keyed := func(q problems) problems { q.Probe = probe; return q }
	return lab.Bench[problems]{
		Key: func(q problems) any { return keyed(q) },
		Run: func(ctx context.Context, q problems, seed uint64, step study.Step) (trial.Result, error) {
			return keyed(q).Simulate(ctx, es, seed, func(n int) { step(n, "") })
		},
		Study: study.Study{Workers: 1, Device: openDevice}, // each uses all cores
		Close: es.Close,
	}, err
}

func (p ProblemParams) own() ProblemParams { return p }

// problemUnits are a trial's: its problems.
func problemUnits(q problems) int { return q.Count }
