package khodak2020

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/nasml/lab/nasml/halving"
	"github.com/nasml/lab/nasml/runs"
)

// The searches. Algorithm 1 and its fast variant share weights; the others
// train one configuration at a time.
const (
	weightSharing     = "ws"
	fastWeightSharing = "fast-ws"
	randomSearch      = "rs"
	successiveHalving = "sha"
	hyperband         = "hyperband"
)

// search runs one method on a problem and looks at it after every solver call.
type search struct {
	p       problem
	method  string
	n       int // |C|: configurations in the pool
	d       int // features
	rules   halving.Rules
	growth  float64          // of the dimension of Fast Weight-Sharing
	solves  int              // of random search
	ladders [][]halving.Rung // of successive halving and Hyperband
	seed    uint64
	step    func(note string)

	spent   cost            // of the search itself
	tested  float64         // seconds of the baselines' looking at test examples
	looking float64         // seconds of looking at oracles, and at test examples otherwise
	oracles map[int]float64 // by configuration
	series  map[string][]float64
}

// run returns, for every solver call: the best configuration so far ("best"),
// its validation score, the dimension, seconds and multiply-adds up to here
// ("seconds", "madds"; with the evaluations "seconds_total"), the test error of
// the classifier at hand under that configuration ("observed"), and that of one
// trained for it alone on all d features ("oracle"). A call before which no
// configuration is the best one has best −1 and errors of 1.
//
// The classifier at hand is the shared one until Algorithm 1 has a winner,
// whose own training is the last call; of the others it is that of the best
// try, at the dimension that it was tried with.
func (s *search) run(ctx context.Context) (runs.Result, error) {
	s.oracles, s.series = map[int]float64{}, map[string][]float64{}
	var err error
	if s.method == weightSharing || s.method == fastWeightSharing {
		err = s.share(ctx)
	} else {
		err = s.alone(ctx)
	}
	return runs.Result{Series: s.series, Values: map[string]float64{
		"calls": float64(len(s.series["best"])), "seconds": s.spent.seconds, "madds": s.spent.madds, "looking": s.tested + s.looking,
	}}, err
}

// drawSeed names the features of one solver call.
func (s *search) drawSeed(parts ...string) uint64 {
	return runs.RNG(s.seed, append([]string{"features"}, parts...)...).Uint64()
}

// moment is what is known when a solver call has been judged.
type moment struct {
	dim    int
	best   int
	score  float64
	spent  cost
	tested float64
}

// record looks at the test examples and the oracle and appends a call.
func (s *search) record(ctx context.Context, m moment, observed func() (float64, error)) error {
	begun := time.Now()
	seen, oracle := 1.0, 1.0
	if m.best >= 0 {
		var err error
		if seen, err = observed(); err != nil {
			return err
		}
		if oracle, err = s.oracle(ctx, m.best); err != nil {
			return err
		}
	}
	s.looking += time.Since(begun).Seconds()
	for name, v := range map[string]float64{
		"best": float64(m.best), "score": m.score, "dim": float64(m.dim), "observed": seen, "oracle": oracle,
		"seconds": m.spent.seconds, "madds": m.spent.madds, "seconds_total": m.spent.seconds + m.tested + s.looking,
	} {
		s.series[name] = append(s.series[name], v)
	}
	return nil
}

// oracle is the test error of a configuration trained by itself with all d
// features, from features of its own.
func (s *search) oracle(ctx context.Context, config int) (float64, error) {
	if known, ok := s.oracles[config]; ok {
		return known, nil
	}
	m, _, err := s.p.train(ctx, []int{config}, s.d, s.drawSeed("oracle", strconv.Itoa(config)), true)
	if err != nil {
		return 0, fmt.Errorf("oracle of configuration %d: %w", config, err)
	}
	_, errs, err := m.values(ctx, testSplit, []int{config})
	s.oracles[config] = mean(errs)
	return mean(errs), err
}

// share is Algorithm 1 or Fast Weight-Sharing, and the training of the winner.
func (s *search) share(ctx context.Context) error {
	growth := 1.0
	if s.method == fastWeightSharing {
		growth = s.growth
	}
	dims, err := halving.Dims(s.d, halving.Rounds(s.n), growth, s.rules.Full)
	if err != nil {
		return err
	}
	pool := make([]int, s.n)
	for i := range pool {
		pool[i] = i
	}
	var models []model
	var spent []cost
	trace, err := halving.WeightSharing(ctx, pool, halving.Points{Train: s.p.points(trainSplit), Valid: s.p.points(validSplit)}, dims, s.rules,
		runs.RNG(s.seed, s.method), func(ctx context.Context, round halving.Round[int]) ([]float64, error) {
			m, values, err := s.solve(ctx, round)
			models, spent = append(models, m), append(spent, s.spent)
			return values, err
		})
	if err != nil {
		return err
	}
	for t, o := range trace.Rounds {
		m := moment{dim: o.Dim, best: o.Best, score: o.Scores[slices.Index(o.Index, o.Best)], spent: spent[t]}
		if err := s.record(ctx, m, func() (float64, error) { return s.testError(ctx, models[t], o.Best) }); err != nil {
			return err
		}
	}
	return s.retrain(ctx, trace.Winner)
}

// solve is the shared solve of a round with its validation values.
func (s *search) solve(ctx context.Context, round halving.Round[int]) (model, []float64, error) {
	defer s.step(fmt.Sprintf("%s, round %d, seed %d", s.method, round.Number, s.seed))
	draw := s.drawSeed("shared")
	if s.method == fastWeightSharing { // another dimension, other features
		draw = s.drawSeed("shared", strconv.Itoa(round.Number))
	}
	m, spent, err := s.p.train(ctx, configsOf(round, round.Train), round.Dim, draw, false)
	if err != nil {
		return nil, nil, err
	}
	begun := time.Now()
	losses, errs, err := m.values(ctx, validSplit, configsOf(round, round.Valid))
	spent.seconds += time.Since(begun).Seconds()
	s.spent.add(spent)
	return m, s.scores(losses, errs), err
}

// scores are what validation examples are judged by.
func (s *search) scores(losses, errs []float64) []float64 {
	if s.rules.Score == "error" {
		return errs
	}
	return losses
}

// configsOf are the configurations of examples, by their place in the pool.
func configsOf(round halving.Round[int], of []int) []int {
	out := make([]int, len(of))
	for i, c := range of {
		out[i] = round.Arms[c]
	}
	return out
}

// testError is that of a classifier under one configuration.
func (s *search) testError(ctx context.Context, m model, config int) (float64, error) {
	_, errs, err := m.values(ctx, testSplit, []int{config})
	return mean(errs), err
}

// retrain trains the winner by itself with all features: one more call.
func (s *search) retrain(ctx context.Context, winner int) error {
	defer s.step(fmt.Sprintf("%s, winner, seed %d", s.method, s.seed))
	m, spent, err := s.p.train(ctx, []int{winner}, s.d, s.drawSeed("winner"), true)
	if err != nil {
		return err
	}
	s.spent.add(spent)
	losses, errs, err := m.values(ctx, validSplit, []int{winner})
	if err != nil {
		return err
	}
	return s.record(ctx, moment{dim: s.d, best: winner, score: mean(s.scores(losses, errs)), spent: s.spent}, func() (float64, error) { return s.testError(ctx, m, winner) })
}

// alone is random search, successive halving or Hyperband.
func (s *search) alone(ctx context.Context) error {
	ladders := s.ladders
	if s.method == randomSearch {
		ladders = [][]halving.Rung{{{Arms: s.solves, Resource: s.d}}}
	}
	arms := 0
	for _, rungs := range ladders {
		arms += rungs[0].Arms
	}
	pool := make([]int, arms)
	for i := range pool {
		pool[i] = i % s.n
	}
	var after []moment
	var errs []float64 // test error of every try
	tries, err := halving.Hyperband(ctx, pool, ladders, s.rules, func(ctx context.Context, config, d int) (float64, error) {
		defer s.step(fmt.Sprintf("%s, %d features, seed %d", s.method, d, s.seed))
		score, test, err := s.try(ctx, config, d, len(after))
		after, errs = append(after, moment{dim: d, best: -1, score: 1, spent: s.spent, tested: s.tested}), append(errs, test)
		return score, err
	})
	if err != nil {
		return err
	}
	for i, try := range tries {
		m, observed := after[i], 1.0
		if try.Best >= 0 {
			m.best, m.score, observed = pool[tries[try.Best].Arm], tries[try.Best].Score, errs[try.Best]
		}
		if s.method == randomSearch && m.best >= 0 {
			s.oracles[m.best] = observed // its own training is one with all d features
		}
		if err := s.record(ctx, m, func() (float64, error) { return observed, nil }); err != nil {
			return err
		}
	}
	return nil
}

// try trains one configuration by itself and returns its validation score and
// its test error.
func (s *search) try(ctx context.Context, config, d, number int) (score, test float64, err error) {
	m, spent, err := s.p.train(ctx, []int{config}, d, s.drawSeed(s.method, strconv.Itoa(number)), true)
	if err != nil {
		return 0, 0, err
	}
	begun := time.Now()
	losses, errs, err := m.values(ctx, validSplit, []int{config})
	if err != nil {
		return 0, 0, err
	}
	spent.seconds += time.Since(begun).Seconds()
	s.spent.add(spent)
	begun = time.Now()
	test, err = s.testError(ctx, m, config)
	s.tested += time.Since(begun).Seconds()
	return mean(s.scores(losses, errs)), test, err
}

// signal is Figure 1: the accuracy of every configuration with the shared
// weights of the first round, and by itself, on the whole validation set
// ("shared", "alone"), and the accuracy on the examples that were assigned to
// it ("cell", −1 where there were none).
func signal(ctx context.Context, p problem, n, d int, seed uint64, step func(string)) (runs.Result, error) {
	s := &search{p: p, seed: seed}
	rng := runs.RNG(seed, "signal")
	assign := func(points int) []int {
		out := make([]int, points)
		for i := range out {
			out[i] = rng.IntN(n)
		}
		return out
	}
	shared, together, err := p.train(ctx, assign(p.points(trainSplit)), d, s.drawSeed("shared"), false)
	if err != nil {
		return runs.Result{}, err
	}
	step(fmt.Sprintf("shared, d = %d", d))
	cells := assign(p.points(validSplit))
	_, errs, err := shared.values(ctx, validSplit, cells)
	if err != nil {
		return runs.Result{}, err
	}
	own, counts, err := halving.Means(cells, errs, n, "worst")
	if err != nil {
		return runs.Result{}, err
	}
	series := map[string][]float64{}
	var single cost
	for c := range n {
		if counts[c] == 0 {
			own[c] = 2
		}
		accuracy := func(m model) (float64, error) {
			_, errs, err := m.values(ctx, validSplit, []int{c})
			return 1 - mean(errs), err
		}
		with, err := accuracy(shared)
		if err != nil {
			return runs.Result{}, err
		}
		m, spent, err := p.train(ctx, []int{c}, d, s.drawSeed("alone", strconv.Itoa(c)), true)
		if err != nil {
			return runs.Result{}, err
		}
		by, err := accuracy(m)
		if err != nil {
			return runs.Result{}, err
		}
		single.add(spent)
		series["shared"], series["alone"], series["cell"] = append(series["shared"], with), append(series["alone"], by), append(series["cell"], 1-own[c])
		step(fmt.Sprintf("configuration %d of %d, d = %d", c+1, n, d))
	}
	return runs.Result{Series: series, Values: map[string]float64{
		"seconds_shared": together.seconds, "seconds_alone": single.seconds / float64(n),
		"madds_shared": together.madds, "madds_alone": single.madds / float64(n),
	}}, nil
}
