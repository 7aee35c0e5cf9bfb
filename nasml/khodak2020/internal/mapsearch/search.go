package mapsearch

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/nasml/lab/nasml/khodak2020/halving"
	"github.com/nasml/lab/nasml/trial"
)

// The searches. Algorithm 1 and its fast variant share weights; the others train one configuration at a time.
// RandomSearchLambda is random search that tunes λ, too (Appendix B.2): its tries are those of random search, with the
// same features, but for λ, so that the two differ in nothing else.
const (
	WeightSharing      = "ws"
	FastWeightSharing  = "fast-ws"
	RandomSearch       = "rs"
	RandomSearchLambda = "rs-lambda"
	SuccessiveHalving  = "sha"
	Hyperband          = "hyperband"
)

// Search is a search on a task. A field that does not apply to its method is zero, so that it is in no key.
type Search struct {
	Setting
	Method  string           `json:"method"`
	Configs int              `json:"configs"`           // |C|: configurations in the pool
	Dim     int              `json:"dim"`               // d
	Growth  float64          `json:"growth,omitempty"`  // of the dimension of Fast Weight-Sharing
	Solves  int              `json:"solves,omitempty"`  // of random search
	Ladders [][]halving.Rung `json:"ladders,omitempty"` // of successive halving and Hyperband
	Lambdas []float64        `json:"lambdas,omitempty"` // ends of the range of λ
	Eta     int              `json:"eta,omitempty"`     // of the ladders, which Reading "code" depends on
}

// Calls is about how many solver calls the search makes.
func (t Search) Calls() int {
	n := t.Solves
	for _, rungs := range t.Ladders {
		for _, rung := range rungs {
			n += rung.Arms
		}
	}
	if n == 0 {
		n = halving.Rounds(t.Configs) + 1
	}
	return n
}

// rules are those of the reading. The authors' code takes the incumbent from the ⌊n/η⌋ arms that a rung of n keeps,
// also of the last one: where that is none, as for one arm, its score never counts; where it is some, and in random
// search, which is one rung, the last scores count as the paper has it.
func (t Search) rules() halving.Rules {
	rules := halving.AsPaper()
	if t.Reading == "code" {
		rules = halving.AsCode()
	}
	switch t.Method {
	case RandomSearch, RandomSearchLambda:
		rules.Incumbent = "any"
	case SuccessiveHalving, Hyperband:
		last := t.Ladders[len(t.Ladders)-1]
		if last[len(last)-1].Arms >= t.Eta {
			rules.Incumbent = "any"
		}
	}
	return rules
}

// Run searches with the random streams of a seed and calls step after every solver call. It returns, for every one of
// them: the best configuration so far ("best"), its validation score, the dimension, seconds and multiply-adds up to
// here ("seconds", "madds"; with the evaluations "seconds_total"), the test error of the classifier at hand under that
// configuration ("observed"), and that of one trained for it alone on all d features ("oracle"). A call before which no
// configuration is the best one has best −1 and errors of 1.
//
// The classifier at hand is the shared one until Algorithm 1 has a winner, whose own training is the last call; of the
// others it is that of the best try, at the dimension that it was tried with.
func (t Search) Run(ctx context.Context, data Data, seed uint64, step func(note string)) (trial.Result, error) {
	s := &search{Search: t, p: data.problem(t.Setting, t.Configs, seed), rules: t.rules(), seed: seed, step: step}
	if t.Method == RandomSearchLambda {
		s.Method, s.step = RandomSearch, func(note string) { step("λ too: " + note) }
		s.p = withLambdas(t.Setting, data, t.Configs, t.Lambdas[0], t.Lambdas[1], seed)
	}
	return s.run(ctx)
}

// search runs one method on a problem and looks at it after every solver call.
type search struct {
	Search
	p     problem
	rules halving.Rules
	seed  uint64
	step  func(note string)

	spent   cost            // of the search itself
	tested  float64         // seconds of the baselines' looking at test examples
	looking float64         // seconds of looking at oracles, and at test examples otherwise
	oracles map[int]float64 // by configuration
	series  map[string][]float64
}

func (s *search) run(ctx context.Context) (trial.Result, error) {
	s.oracles, s.series = map[int]float64{}, map[string][]float64{}
	var err error
	if s.Method == WeightSharing || s.Method == FastWeightSharing {
		err = s.share(ctx)
	} else {
		err = s.alone(ctx)
	}
	return trial.Result{Series: s.series, Values: map[string]float64{
		"calls": float64(len(s.series["best"])), "seconds": s.spent.seconds, "madds": s.spent.madds,
		"looking": s.tested + s.looking,
	}}, err
}

func (s *search) drawSeed(parts ...string) uint64 {
	return trial.RNG(s.seed, append([]string{"features"}, parts...)...).Uint64()
}

// snapshot is what is known when a solver call has been judged.
type snapshot struct {
	dim    int
	best   int
	score  float64
	spent  cost
	tested float64
}

func (s *search) record(ctx context.Context, m snapshot, observed func() (float64, error)) error {
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

// oracle is the test error of a configuration trained by itself with all d features, from features of its own.
func (s *search) oracle(ctx context.Context, config int) (float64, error) {
	if known, ok := s.oracles[config]; ok {
		return known, nil
	}
	m, _, err := s.p.train(ctx, []int{config}, s.Dim, s.drawSeed("oracle", strconv.Itoa(config)), true)
	if err != nil {
		return 0, fmt.Errorf("oracle of configuration %d: %w", config, err)
	}
	s.oracles[config], err = testError(ctx, m, config)
	return s.oracles[config], err
}

func (s *search) share(ctx context.Context) error {
	growth := 1.0
	if s.Method == FastWeightSharing {
		growth = s.Growth
	}
	dims, err := halving.Dims(s.Dim, halving.Rounds(s.Configs), growth, s.rules.Full)
	if err != nil {
		return err
	}
	pool := trial.Indices(0, s.Configs)
	var models []model
	var spent []cost
	points := halving.Points{Train: s.p.points(trainSplit), Valid: s.p.points(validSplit)}
	trace, err := halving.WeightSharing(ctx, pool, points, dims, s.rules,
		trial.RNG(s.seed, s.Method), func(ctx context.Context, round halving.Round[int]) ([]float64, error) {
			m, values, err := s.solve(ctx, round)
			models, spent = append(models, m), append(spent, s.spent)
			return values, err
		})
	if err != nil {
		return err
	}
	for t, o := range trace.Rounds {
		m := snapshot{dim: o.Dim, best: o.Best, score: o.Scores[slices.Index(o.Index, o.Best)], spent: spent[t]}
		if err := s.record(ctx, m, func() (float64, error) { return testError(ctx, models[t], o.Best) }); err != nil {
			return err
		}
	}
	return s.retrain(ctx, trace.Winner)
}

// solve is the shared solve of a round with its validation values.
func (s *search) solve(ctx context.Context, round halving.Round[int]) (model, []float64, error) {
	defer s.step(fmt.Sprintf("%s, round %d, seed %d", s.Method, round.Number, s.seed))
	draw := s.drawSeed("shared")
	if s.Method == FastWeightSharing { // another dimension, other features
		draw = s.drawSeed("shared", strconv.Itoa(round.Number))
	}
	return s.fit(ctx, trial.At(round.Arms, round.Train), trial.At(round.Arms, round.Valid), round.Dim, draw, false)
}

// fit trains a classifier and scores the validation examples with it; both count as the search's cost.
func (s *search) fit(
	ctx context.Context, train, valid []int, d int, draw uint64, alone bool,
) (model, []float64, error) {
	m, spent, err := s.p.train(ctx, train, d, draw, alone)
	if err != nil {
		return nil, nil, err
	}
	begun := time.Now()
	losses, errs, err := m.values(ctx, validSplit, valid)
	spent.seconds += time.Since(begun).Seconds()
	s.spent.add(spent)
	return m, s.scores(losses, errs), err
}

func (s *search) scores(losses, errs []float64) []float64 {
	if s.rules.Score == "error" {
		return errs
	}
	return losses
}

func testError(ctx context.Context, m model, config int) (float64, error) {
	_, errs, err := m.values(ctx, testSplit, []int{config})
	return trial.Mean(errs), err
}

// retrain trains the winner by itself with all features: one more call.
func (s *search) retrain(ctx context.Context, winner int) error {
	defer s.step(fmt.Sprintf("%s, winner, seed %d", s.Method, s.seed))
	m, spent, err := s.p.train(ctx, []int{winner}, s.Dim, s.drawSeed("winner"), true)
	if err != nil {
		return err
	}
	s.spent.add(spent)
	losses, errs, err := m.values(ctx, validSplit, []int{winner})
	if err != nil {
		return err
	}
	end := snapshot{dim: s.Dim, best: winner, score: trial.Mean(s.scores(losses, errs)), spent: s.spent}
	return s.record(ctx, end, func() (float64, error) { return testError(ctx, m, winner) })
}

// alone is random search, successive halving or Hyperband.
func (s *search) alone(ctx context.Context) error {
	ladders := s.Ladders
	if s.Method == RandomSearch {
		ladders = [][]halving.Rung{{{Arms: s.Solves, Resource: s.Dim}}}
	}
	arms := 0
	for _, rungs := range ladders {
		arms += rungs[0].Arms
	}
	pool := make([]int, arms)
	for i := range pool {
		pool[i] = i % s.Configs
	}
	var after []snapshot
	var errs []float64 // test error of every try
	evaluate := func(ctx context.Context, config, d int) (float64, error) {
		defer s.step(fmt.Sprintf("%s, %d features, seed %d", s.Method, d, s.seed))
		score, test, err := s.try(ctx, config, d, len(after))
		after = append(after, snapshot{dim: d, best: -1, score: 1, spent: s.spent, tested: s.tested})
		errs = append(errs, test)
		return score, err
	}
	tries, err := halving.Hyperband(ctx, pool, ladders, s.rules, evaluate)
	if err != nil {
		return err
	}
	for i, try := range tries {
		m, observed := after[i], 1.0
		if try.Best >= 0 {
			m.best, m.score, observed = pool[tries[try.Best].Arm], tries[try.Best].Score, errs[try.Best]
		}
		if s.Method == RandomSearch && m.best >= 0 {
			s.oracles[m.best] = observed // its own training is one with all d features
		}
		if err := s.record(ctx, m, func() (float64, error) { return observed, nil }); err != nil {
			return err
		}
	}
	return nil
}

// try trains one configuration by itself and returns its validation score and its test error.
func (s *search) try(ctx context.Context, config, d, number int) (score, test float64, err error) {
	only, draw := []int{config}, s.drawSeed(s.Method, strconv.Itoa(number))
	m, scores, err := s.fit(ctx, only, only, d, draw, true)
	if err != nil {
		return 0, 0, err
	}
	begun := time.Now()
	test, err = testError(ctx, m, config)
	s.tested += time.Since(begun).Seconds()
	return trial.Mean(scores), test, err
}

type lambdaProblem struct {
	problem
	with    func(lambda float64) problem
	lambdas []float64 // of each configuration
}

// withLambdas draws the λ of n configurations from [lo, hi], evenly on a logarithmic scale.
func withLambdas(s Setting, data Data, n int, lo, hi float64, seed uint64) lambdaProblem {
	rng := trial.RNG(seed, "λ of random search")
	with := func(lambda float64) problem {
		s.Lambda = lambda
		return data.problem(s, n, seed)
	}
	p := lambdaProblem{problem: with(lo), with: with}
	for range n {
		p.lambdas = append(p.lambdas, logUniform(rng, lo, hi))
	}
	return p
}

func (p lambdaProblem) train(ctx context.Context, of []int, d int, seed uint64, alone bool) (model, cost, error) {
	return p.with(p.lambdas[of[0]]).train(ctx, of, d, seed, alone)
}
