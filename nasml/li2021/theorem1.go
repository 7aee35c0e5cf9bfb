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

// Theorem1Params are the parameters of Theorem 1: a small smooth supernet whose
// constants are proved, see NetParams, and the accuracies to be reached.
type Theorem1Params struct {
	NetParams
	Targets  []float64 // ε over Δ at the start, below 1, or there would be nothing to reach
	Orders   []string  // "random": Algorithm 1; "cyclic": w and θ in turn, as in practice
	Short    float64   // a control: a constant so far below the theorem's 16 in T that the conclusion should fail; 0: no such case
	Runs     int       // independent runs on each problem
	Iterates int       // random iterates of each run at which Δ is measured
	Seeds    int       // problems: data, teacher and start

	Confidence float64 // of the intervals
}

// smallNet is the supernet of the theorems: two edges of three operations.
var smallNet = NetParams{Edges: 2, Inputs: 3, Ops: []string{"tanh", "sin", "bump"}, Examples: 24, Noise: 0.3, Batch: 1}

// Theorem1Quick and Theorem1Paper differ in how small ε gets and how often the
// algorithm is run; the theorem itself names no problem.
var (
	Theorem1Quick = Theorem1Params{
		NetParams: smallNet, Targets: []float64{0.15, 0.3, 0.6}, Orders: []string{"random", "cyclic"}, Short: 0.0625,
		Runs: 6, Iterates: 16, Seeds: 4, Confidence: 0.95,
	}
	Theorem1Paper = Theorem1Params{
		NetParams: smallNet, Targets: []float64{0.03, 0.06, 0.12, 0.25, 0.5}, Orders: []string{"random", "cyclic"}, Short: 0.0625,
		Runs: 12, Iterates: 32, Seeds: 8, Confidence: 0.95,
	}
)

const (
	theorem1ID     = "li2021/theorem1"
	theorem1Title  = "Block-stochastic mirror descent reaches ε-stationarity in O(1/ε²) steps"
	theorem1Source = "Li+ 2021, Theorem 1"
)

// theorem1Constant is the constant of T.
const theorem1Constant = 16.0

func init() {
	catalog.Register(catalog.Entry{
		ID: theorem1ID, Paper: "Li+ 2021", Title: theorem1Title, Kind: "theorem",
		Notebook: "notebooks/li2021/theorem1_convergence.ipynb",
		Cost:     catalog.Cost{Quick: "about 15 s on two cores", Paper: "about a quarter of an hour on two cores; the project ships its trials"},
	}, Theorem1Quick, Theorem1Paper, Theorem1)
}

//go:embed theorem1.go theorem_supernet.go theorem_math.go
var theorem1Sources embed.FS

var theorem1Theory = theory{theorem1ID, theorem1Title, sync.OnceValues(func() (string, error) {
	return runs.CodeVersion(theorem1Sources, simplex.HostSources)
})}

// theorem1Trial is what the runs on one problem depend on.
type theorem1Trial struct {
	NetParams
	Target   float64 `json:"target"`
	Order    string  `json:"order"`
	Constant float64 `json:"constant"`
	Runs     int     `json:"runs"`
	Iterates int     `json:"iterates"`
}

// Theorem1Case is a row of records that differ in the problem only.
type Theorem1Case struct {
	Order    string
	Constant float64 // 16, or the control's, in T = ⌈16γF(G_w²+G_θ²)/ε²⌉
	Target   float64 // ε over Δ at the start
	records  []*runs.Record
}

// Theorem1Result holds the runs of Algorithm 1.
type Theorem1Result struct {
	Params Theorem1Params
	Scale  string // "quick", "paper" or empty for own parameters
	Cases  []Theorem1Case
}

// Theorem1 runs Algorithm 1 on small supernets with the theorem's own T and η,
//
//	T = ⌈16γF(G_w²+G_θ²)/ε²⌉ ,   η = √(4F/(γ(G_w²+G_θ²)T)) ,
//
// and measures Δ_{1/(2γ)} at random iterates and at the last one. γ, G_w and
// G_θ are proved bounds, not estimates. Cancelling ctx keeps what is finished.
func Theorem1(ctx context.Context, p Theorem1Params) (*Theorem1Result, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	r := &Theorem1Result{Params: p, Scale: runs.Scale(ctx)}
	var trials []trialOf[theorem1Trial]
	for _, c := range p.cases() {
		for _, seed := range runs.Seeds(p.Seeds) {
			t := theorem1Trial{p.NetParams, c.Target, c.Order, c.Constant, p.Runs, p.Iterates}
			trials = append(trials, trialOf[theorem1Trial]{t, seed, 1 + int(c.Constant*float64(p.Runs)/(c.Target*c.Target))})
		}
		r.Cases = append(r.Cases, c)
	}
	memo := startsOf(p.NetParams)
	records, err := runTheory(ctx, theorem1Theory, trials, func(ctx context.Context, t theorem1Trial, seed uint64) (runs.Result, error) {
		s, err := memo(seed)
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

// cases lists what is run: every order at every ε, and the control.
func (p Theorem1Params) cases() []Theorem1Case {
	var cases []Theorem1Case
	for _, order := range p.Orders {
		for _, target := range p.Targets {
			cases = append(cases, Theorem1Case{Order: order, Constant: theorem1Constant, Target: target})
		}
	}
	if p.Short > 0 {
		for _, target := range p.Targets {
			cases = append(cases, Theorem1Case{Order: "random", Constant: p.Short, Target: target})
		}
	}
	return cases
}

func (p Theorem1Params) check() error {
	var c checks
	p.NetParams.check(&c)
	ascending(&c, "Targets", p.Targets, 2, 0)
	c.expect(len(p.Targets) == 0 || slices.Max(p.Targets) < 1, "Targets is %v, want below 1: at 1 the start is good enough", p.Targets)
	c.expect(slices.Contains(p.Orders, "random"), "Orders is %v, want random among them: the theorem is about it", p.Orders)
	for i, order := range p.Orders {
		c.expect((order == "random" || order == "cyclic") && !slices.Contains(p.Orders[:i], order), "Orders has %q, want random and cyclic at most once each", order)
	}
	c.expect(p.Short >= 0 && p.Short < theorem1Constant, "Short is %v, want 0 or more and less than the theorem's %v", p.Short, theorem1Constant)
	c.expect(p.Runs >= 1 && p.Iterates >= 1, "Runs is %d and Iterates %d, want at least 1", p.Runs, p.Iterates)
	c.common(p.Seeds, p.Confidence)
	return c.err("theorem 1")
}

// compute runs one problem at one ε.
func (t theorem1Trial) compute(ctx context.Context, s *started, seed uint64) (runs.Result, error) {
	epsilon, g2 := t.Target*s.delta, s.gw+s.gt
	steps := int(math.Ceil(t.Constant * s.gamma * s.atStart * g2 / (epsilon * epsilon)))
	eta := math.Sqrt(4 * s.atStart / (s.gamma * g2 * float64(steps)))
	out := runs.Result{
		Values: map[string]float64{
			"steps": float64(steps), "eta": eta, "epsilon": epsilon, "delta_start": s.delta, "f_start": s.atStart,
			"gamma": s.gamma, "gw": s.gw, "gt": s.gt, "gt_flat": s.flat, "weakness": s.weakness, "one": 1,
		},
		Series: map[string][]float64{},
	}
	for i := range t.Runs {
		m, err := t.run(ctx, s, steps, eta, seed, strconv.Itoa(i))
		if err != nil {
			return runs.Result{}, err
		}
		for name, value := range m {
			out.Series[name] = append(out.Series[name], value)
		}
	}
	return out, nil
}

// run is one run: Δ and the gap at random iterates (means over them) and at
// the end, and the largest second moments of the gradients on the way.
func (t theorem1Trial) run(ctx context.Context, s *started, steps int, eta float64, seed uint64, name string) (map[string]float64, error) {
	blocks, err := s.blocks(2)
	if err != nil {
		return nil, err
	}
	d := simplex.BlockDescent{Spaces: s.spaces(), Blocks: blocks, Cyclic: t.Order == "cyclic"}
	at, examples := cloneRows(s.at), runs.RNG(seed, "examples", name)
	sum := map[string]float64{"gw": 0, "gt": 0}
	take := drawTimes(runs.RNG(seed, "iterates", name), steps, t.Iterates, nil)
	err = d.Run(at, steps, func(int) float64 { return eta }, runs.RNG(seed, "blocks", name),
		func(_ int, _ []int, x, grad [][]float64) error {
			s.minibatch(x, grad, examples)
			return nil
		}, func(step int, x [][]float64) error {
			for ; len(take) > 0 && take[0].step == step; take = take[1:] {
				if err := s.measure(sum, "random", x, take[0].weight); err != nil {
					return err
				}
			}
			return everySo(ctx, step)
		})
	if err == nil {
		err = s.measure(sum, "last", at, 1)
	}
	return sum, err
}

// measure adds Δ and the gap at a point, times a weight, and notes the second
// moments there.
func (s *started) measure(sum map[string]float64, name string, at [][]float64, weight float64) error {
	m, err := s.stationarity(at, s.gamma)
	if err != nil {
		return err
	}
	sum[name] += weight * m.Delta
	sum[name+"_gap"] += weight * m.Gap
	gw, gt := s.moments(at)
	sum["gw"], sum["gt"] = math.Max(sum["gw"], gw), math.Max(sum["gt"], gt)
	return nil
}

// Records are the keys of the trials.
func (r *Theorem1Result) Records() []string {
	var keys []string
	for _, c := range r.Cases {
		for _, record := range c.records {
			keys = append(keys, record.Key)
		}
	}
	return keys
}
