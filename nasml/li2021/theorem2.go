package li2021

import (
	"context"
	"embed"
	"math"
	"slices"
	"strconv"
	"sync"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/simplex"
)

// Theorem2Params are the parameters of Theorem 2: Algorithm 2 on the small
// supernet cut into b blocks, and the two-variable function on which Setting 1
// is not enough.
type Theorem2Params struct {
	NetParams
	Blocks    []int     // b: 1 (one block), 2 ({w, θ}) or 2|E| (every w_e and θ_e)
	Ratios    []float64 // γ̂/γ, above 1
	Schedules []string  // "constant" or "decreasing": ηₜ ∝ 1/√t
	Steps     []int     // T
	Runs      int       // independent runs on each problem
	Iterates  int       // random iterates of each run at which Δ is measured
	Seeds     int       // problems

	Gammas []float64 // γ of the function xy, whose blocks alone allow any γ > 0 and which needs 1
	Sigmas []float64 // noise of its oracle, ±σ a coordinate

	Confidence float64 // of the intervals
}

// Theorem2Quick and Theorem2Paper differ in T and in the number of runs.
var (
	Theorem2Quick = Theorem2Params{
		NetParams: smallNet, Blocks: []int{1, 2, 4}, Ratios: []float64{1.5, 3}, Schedules: []string{"constant", "decreasing"},
		Steps: []int{1000, 10000, 100000}, Runs: 4, Iterates: 8, Seeds: 4,
		Gammas: []float64{0.1, 0.4, 1}, Sigmas: []float64{0, 0.5}, Confidence: 0.95,
	}
	Theorem2Paper = Theorem2Params{
		NetParams: smallNet, Blocks: []int{1, 2, 4}, Ratios: []float64{1.1, 1.5, 2, 4}, Schedules: []string{"constant", "decreasing"},
		Steps: []int{1000, 10000, 100000, 1000000}, Runs: 12, Iterates: 24, Seeds: 8,
		Gammas: []float64{0.1, 0.25, 0.4, 1}, Sigmas: []float64{0, 0.1, 0.5}, Confidence: 0.95,
	}
)

const (
	theorem2ID     = "li2021/theorem2"
	theorem2Title  = "Algorithm 2 over b blocks: the bound on Bregman stationarity, and what Setting 1 lacks"
	theorem2Source = "Li+ 2021, Theorem 2"
)

func init() {
	catalog.Register(catalog.Entry{
		ID: theorem2ID, Paper: "Li+ 2021", Title: theorem2Title, Kind: "theorem",
		Notebook: "notebooks/li2021/theorem2_blocks.ipynb",
		Cost:     catalog.Cost{Quick: "about 15 s on two cores", Paper: "about 20 minutes on two cores"},
	}, Theorem2Quick, Theorem2Paper, Theorem2)
}

//go:embed theorem2.go theorem_supernet.go theorem_math.go
var theorem2Sources embed.FS

var theorem2Theory = theory{theorem2ID, theorem2Title, sync.OnceValues(func() (string, error) {
	return runs.CodeVersion(theorem2Sources, simplex.HostSources)
})}

// theorem2Trial is what the runs on one problem depend on; Kind says which of
// the other fields apply.
type theorem2Trial struct {
	Kind     string     `json:"kind"` // "net", "xy" or "norms"
	Net      *NetParams `json:"net,omitempty"`
	Blocks   int        `json:"blocks,omitempty"`
	Ratio    float64    `json:"ratio,omitempty"`
	Schedule string     `json:"schedule,omitempty"`
	Iterates int        `json:"iterates,omitempty"`
	Gamma    float64    `json:"gamma,omitempty"`
	Sigma    float64    `json:"sigma,omitempty"`
	Steps    int        `json:"steps,omitempty"`
	Runs     int        `json:"runs,omitempty"`
}

// Theorem2Case is a trial with a record for every problem.
type Theorem2Case struct {
	theorem2Trial
	records []*runs.Record
}

// Theorem2Result holds the runs of Algorithm 2.
type Theorem2Result struct {
	Params Theorem2Params
	Scale  string // "quick", "paper" or empty for own parameters
	Cases  []Theorem2Case
}

// Theorem2 runs Algorithm 2 and measures E Δ_{1/γ̂} at its random output, beside
// the bound of Theorem 2 with every term of it computed. Cancelling ctx keeps
// what is finished.
func Theorem2(ctx context.Context, p Theorem2Params) (*Theorem2Result, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	r := &Theorem2Result{Params: p, Scale: runs.Scale(ctx)}
	var trials []trialOf[theorem2Trial]
	for _, t := range p.cases() {
		for _, seed := range runs.Seeds(p.Seeds) {
			trials = append(trials, trialOf[theorem2Trial]{t, seed, 1 + t.Runs*(t.Steps/1000+t.Iterates)/10})
		}
		r.Cases = append(r.Cases, Theorem2Case{theorem2Trial: t})
	}
	problem := startsOf(p.NetParams)
	records, err := runTheory(ctx, theorem2Theory, trials, func(ctx context.Context, t theorem2Trial, seed uint64) (runs.Result, error) {
		switch t.Kind {
		case "xy":
			return t.saddle(ctx, seed)
		case "norms":
			return norms(seed), nil
		}
		s, err := problem(seed)
		if err != nil {
			return runs.Result{}, err
		}
		return t.compute(ctx, s, seed)
	})
	if err != nil {
		return nil, err
	}
	for i := range r.Cases {
		r.Cases[i].records = records[i*p.Seeds : (i+1)*p.Seeds]
	}
	return r, nil
}

func (p Theorem2Params) cases() []theorem2Trial {
	cases := []theorem2Trial{{Kind: "norms"}}
	for _, b := range p.Blocks {
		for _, ratio := range p.Ratios {
			for _, schedule := range p.Schedules {
				for _, steps := range p.Steps {
					cases = append(cases, theorem2Trial{
						Kind: "net", Net: &p.NetParams, Blocks: b, Ratio: ratio, Schedule: schedule,
						Steps: steps, Runs: p.Runs, Iterates: p.Iterates,
					})
				}
			}
		}
	}
	for _, sigma := range p.Sigmas {
		for _, gamma := range p.Gammas {
			for _, steps := range p.Steps {
				cases = append(cases, theorem2Trial{Kind: "xy", Gamma: gamma, Sigma: sigma, Steps: steps, Runs: p.Runs})
			}
		}
	}
	return cases
}

func (p Theorem2Params) check() error {
	var c checks
	p.NetParams.check(&c)
	ascending(&c, "Blocks", p.Blocks, 1, 0)
	for _, b := range p.Blocks {
		c.expect(b == 1 || b == 2 || b == 2*p.Edges, "Blocks has %d, want 1, 2 or 2·Edges = %d", b, 2*p.Edges)
	}
	ascending(&c, "Ratios", p.Ratios, 1, 1)
	ascending(&c, "Steps", p.Steps, 2, 1)
	ascending(&c, "Gammas", p.Gammas, 1, 0)
	ascending(&c, "Sigmas", p.Sigmas, 1, -1)
	c.expect(len(p.Sigmas) == 0 || p.Sigmas[0] >= 0, "Sigmas is %v, want 0 or more", p.Sigmas)
	c.expect(len(p.Schedules) > 0, "Schedules is empty")
	for i, s := range p.Schedules {
		c.expect((s == "constant" || s == "decreasing") && !slices.Contains(p.Schedules[:i], s), "Schedules has %q, want constant and decreasing at most once each", s)
	}
	c.expect(p.Runs >= 2 && p.Iterates >= 1, "Runs is %d and Iterates %d, want at least 2 and 1", p.Runs, p.Iterates)
	c.common(p.Seeds, p.Confidence)
	return c.err("theorem 2")
}

// compute runs one problem. With f* ≥ 0 replaced by 0 and L² = G_w²+G_θ², which
// is the same for all ways to cut the supernet, the bound is
//
//	(γ̂b/(γ̂−γ)) · (min_u f(u) + γ̂D(u‖x¹) + (γ̂L²/2b) Σηₜ²) / Σηₜ .
func (t theorem2Trial) compute(ctx context.Context, s *started, seed uint64) (runs.Result, error) {
	b, l2, hat := float64(t.Blocks), s.gw+s.gt, t.Ratio*s.gamma
	base := math.Sqrt(b * s.atStart / (s.gamma * l2)) // of Corollary 1, up to √(2/T)
	eta := func(int) float64 { return base * math.Sqrt(2/float64(t.Steps)) }
	if t.Schedule == "decreasing" {
		eta = func(step int) float64 { return base / math.Sqrt(float64(step+1)) }
	}
	var sum, squares float64
	for step := range t.Steps {
		sum, squares = sum+eta(step), squares+eta(step)*eta(step)
	}
	envelope, err := s.envelope(hat)
	if err != nil {
		return runs.Result{}, err
	}
	out := runs.Result{Values: map[string]float64{
		"bound":       hat * b / (hat - s.gamma) * (envelope + hat*l2/(2*b)*squares) / sum,
		"gamma":       s.gamma,
		"f_start":     s.atStart,
		"delta_start": s.delta,
	}, Series: map[string][]float64{}}
	for i := range t.Runs {
		delta, err := t.run(ctx, s, eta, hat, seed, strconv.Itoa(i))
		if err != nil {
			return runs.Result{}, err
		}
		out.Series["delta"] = append(out.Series["delta"], delta)
	}
	return out, nil
}

// envelope is min_u f(u) + γ̂ D(u‖x¹).
func (s *started) envelope(hat float64) (float64, error) {
	m, err := s.stationarity(s.at, hat/2)
	if err != nil {
		return 0, err
	}
	at := make([][]float64, 0, 2*s.Edges)
	divergence := simplex.BregmanOf(m.Prox.Theta, s.at[s.Edges:])
	for e := range s.Edges {
		at = append(at, m.Prox.W[e*s.Inputs:(e+1)*s.Inputs])
		divergence += simplex.Euclidean{}.Divergence(at[e], s.at[e])
	}
	return s.value(append(at, m.Prox.Theta...)) + hat*divergence, nil
}

// run is one run's Δ_{1/γ̂}, in expectation over the output's random time.
func (t theorem2Trial) run(ctx context.Context, s *started, eta func(int) float64, hat float64, seed uint64, name string) (float64, error) {
	blocks, err := s.blocks(t.Blocks)
	if err != nil {
		return 0, err
	}
	delta, examples := 0.0, runs.RNG(seed, "examples", name)
	take := drawTimes(runs.RNG(seed, "iterates", name), t.Steps, t.Iterates, eta)
	d := simplex.BlockDescent{Spaces: s.spaces(), Blocks: blocks}
	err = d.Run(cloneRows(s.at), t.Steps, eta, runs.RNG(seed, "blocks", name),
		func(_ int, _ []int, x, grad [][]float64) error {
			s.minibatch(x, grad, examples)
			return nil
		}, func(step int, x [][]float64) error {
			for ; len(take) > 0 && take[0].step == step; take = take[1:] {
				m, err := s.stationarity(x, hat/2)
				if err != nil {
					return err
				}
				delta += take[0].weight * m.Delta
			}
			return everySo(ctx, step)
		})
	return delta, err
}

// saddle runs Algorithm 2 on f(x, y) = xy over [−1, 1]² from (0, 0), with b = 2
// and Corollary 1's step, and measures Δ_{1/(2γ)} over all iterates. f is
// linear in x and in y, so that Setting 1 holds block-wise with every γ > 0;
// f* = −1 and L² = 2(1+σ²).
func (t theorem2Trial) saddle(ctx context.Context, seed uint64) (runs.Result, error) {
	const b, drop = 2, 1.0
	l2 := 2 * (1 + t.Sigma*t.Sigma)
	step := math.Sqrt(2 * b * drop / (t.Gamma * l2 * float64(t.Steps)))
	unit := math.Sqrt(l2 * 2 * b * t.Gamma * drop / float64(t.Steps)) // L√(2bγ(f¹−f*)/T)
	out := runs.Result{Values: map[string]float64{"unit": unit, "one": 1}, Series: map[string][]float64{}}
	box := simplex.Box{Lo: -1, Hi: 1}
	for i := range t.Runs {
		rng, delta := runs.RNG(seed, "saddle", strconv.Itoa(i)), 0.0
		d := simplex.BlockDescent{Spaces: []simplex.Space{box, box}}
		err := d.Run([][]float64{{0}, {0}}, t.Steps, func(int) float64 { return step }, rng,
			func(_ int, block []int, x, grad [][]float64) error {
				i := block[0]
				grad[i][0] = x[1-i][0] + t.Sigma*float64(2*rng.IntN(2)-1)
				return nil
			}, func(step int, x [][]float64) error {
				delta += saddleStationarity(x[0][0], x[1][0], 1/(2*t.Gamma)) / float64(t.Steps)
				return everySo(ctx, step)
			})
		if err != nil {
			return runs.Result{}, err
		}
		out.Series["delta"] = append(out.Series["delta"], delta)
	}
	return out, nil
}

// saddleStationarity is Δ_λ = ‖(x, y) − prox‖²/λ² for f = xy on [−1, 1]². The
// proximal point is the best of those that can be optimal: one inside, and one
// on each side.
func saddleStationarity(x, y, lambda float64) float64 {
	clamp := func(v float64) float64 { return math.Max(-1, math.Min(1, v)) }
	best, square := math.Inf(1), 0.0
	try := func(u, v float64) {
		distance := (u-x)*(u-x) + (v-y)*(v-y)
		if value := lambda*u*v + distance/2; value < best {
			best, square = value, distance
		}
	}
	if det := 1 - lambda*lambda; det > 0 { // else the point inside is no minimum
		u, v := (x-lambda*y)/det, (y-lambda*x)/det
		if math.Abs(u) <= 1 && math.Abs(v) <= 1 {
			try(u, v)
		}
	}
	for _, side := range []float64{-1, 1} {
		try(side, clamp(y-lambda*side))
		try(clamp(x-lambda*side), side)
	}
	return square / (lambda * lambda)
}

// norms tries Claims 1 and 2 on random points of ℝ³ × (ℝ³, ‖·‖₁): how far
// ‖x+y‖ exceeds ‖x‖+‖y‖ at most, how far ⟨u, x⟩ − ½‖x‖² exceeds ½‖u‖_*² at
// most, and how close the maximizer of the proof gets to it.
func norms(seed uint64) runs.Result {
	rng := runs.RNG(seed, "norms")
	parts := []simplex.Space{simplex.Euclidean{}, simplex.Entropic{}}
	draw := func() [][]float64 {
		x := [][]float64{make([]float64, 3), make([]float64, 3)}
		for _, row := range x {
			size := math.Exp(2 * rng.NormFloat64())
			for i := range row {
				row[i] = size * rng.NormFloat64()
			}
		}
		return x
	}
	triangle, above, attained := math.Inf(-1), math.Inf(-1), 0.0
	for range 5000 {
		x, y := draw(), draw()
		norm, dual := simplex.ProductNorm(parts, x), simplex.ProductDualNorm(parts, y)
		sum := [][]float64{slices.Clone(x[0]), slices.Clone(x[1])}
		for p := range sum {
			for i := range sum[p] {
				sum[p][i] += y[p][i]
			}
		}
		triangle = math.Max(triangle, simplex.ProductNorm(parts, sum)/(norm+simplex.ProductNorm(parts, y))-1)
		above = math.Max(above, (inner(y[0], x[0])+inner(y[1], x[1])-norm*norm/2)/(dual*dual/2)-1)
		attained = math.Max(attained, math.Abs(atMaximizer(y, parts)/(dual*dual/2)-1))
	}
	return runs.Result{Values: map[string]float64{"triangle": triangle, "above": above, "attained": attained}}
}

// atMaximizer is ⟨u, x⟩ − ½‖x‖² where each part of x is aligned with its part
// of u and as long as that part's dual norm.
func atMaximizer(u [][]float64, parts []simplex.Space) float64 {
	largest := 0
	for i, v := range u[1] {
		if math.Abs(v) > math.Abs(u[1][largest]) {
			largest = i
		}
	}
	x := [][]float64{u[0], make([]float64, len(u[1]))}
	x[1][largest] = u[1][largest] // ‖x‖₁ = ‖u‖_∞
	n := simplex.ProductNorm(parts, x)
	return inner(u[0], x[0]) + inner(u[1], x[1]) - n*n/2
}

// Records are the keys of the trials.
func (r *Theorem2Result) Records() []string {
	var keys []string
	for _, c := range r.Cases {
		for _, record := range c.records {
			keys = append(keys, record.Key)
		}
	}
	return keys
}
