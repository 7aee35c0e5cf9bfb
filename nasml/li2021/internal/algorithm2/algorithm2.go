// Package algorithm2 runs Algorithm 2 of Li+ 2021 over b blocks and computes every term of Theorem 2's bound.
package algorithm2

import (
	"context"
	"math"
	"strconv"

	"github.com/nasml/lab/nasml/li2021/internal/smoothnet"
	"github.com/nasml/lab/nasml/simplex"
	"github.com/nasml/lab/nasml/trial"
)

// Trial is what the runs on one problem depend on; Kind says which other fields apply.
type Trial struct {
	Kind     string            `json:"kind"` // "net", "xy" or "norms"
	Net      *smoothnet.Params `json:"net,omitempty"`
	Blocks   int               `json:"blocks,omitempty"`
	Ratio    float64           `json:"ratio,omitempty"` // γ̂/γ
	Schedule string            `json:"schedule,omitempty"`
	Iterates int               `json:"iterates,omitempty"`
	Gamma    float64           `json:"gamma,omitempty"`
	Sigma    float64           `json:"sigma,omitempty"`
	Steps    int               `json:"steps,omitempty"`
	Runs     int               `json:"runs,omitempty"`
}

// Run computes the trial; problem gives the supernet of a seed.
func (t Trial) Run(
	ctx context.Context, problem func(seed uint64) (*smoothnet.Problem, error), seed uint64,
) (trial.Result, error) {
	switch t.Kind {
	case "xy":
		return t.saddle(ctx, seed)
	case "norms":
		return norms(seed), nil
	}
	s, err := problem(seed)
	if err != nil {
		return trial.Result{}, err
	}
	return t.supernet(ctx, s, seed)
}

// supernet runs one problem. With f* ≥ 0 replaced by 0 and L² = G_w²+G_θ², which does not depend on the blocks, the
// bound is
//
//	(γ̂b/(γ̂−γ)) · (min_u f(u) + γ̂D(u‖x¹) + (γ̂L²/2b) Σηₜ²) / Σηₜ .
func (t Trial) supernet(ctx context.Context, s *smoothnet.Problem, seed uint64) (trial.Result, error) {
	b, l2, hat := float64(t.Blocks), s.Gw+s.Gt, t.Ratio*s.Gamma
	base := math.Sqrt(b * s.AtStart / (s.Gamma * l2)) // of Corollary 1, up to √(2/T)
	eta := func(int) float64 { return base * math.Sqrt(2/float64(t.Steps)) }
	if t.Schedule == "decreasing" {
		eta = func(step int) float64 { return base / math.Sqrt(float64(step+1)) }
	}
	var sum, squares float64
	for step := range t.Steps {
		sum, squares = sum+eta(step), squares+eta(step)*eta(step)
	}
	least, err := envelope(s, hat)
	if err != nil {
		return trial.Result{}, err
	}
	out := trial.Result{Values: map[string]float64{
		"bound":       hat * b / (hat - s.Gamma) * (least + hat*l2/(2*b)*squares) / sum,
		"gamma":       s.Gamma,
		"f_start":     s.AtStart,
		"delta_start": s.Delta,
	}, Series: map[string][]float64{}}
	for i := range t.Runs {
		delta, err := t.run(ctx, s, eta, hat, seed, strconv.Itoa(i))
		if err != nil {
			return trial.Result{}, err
		}
		out.Series["delta"] = append(out.Series["delta"], delta)
	}
	return out, nil
}

// envelope is min_u f(u) + γ̂ D(u‖x¹).
func envelope(s *smoothnet.Problem, hat float64) (float64, error) {
	m, err := s.Stationarity(s.At, hat/2)
	if err != nil {
		return 0, err
	}
	at := make([][]float64, 0, 2*s.Edges)
	divergence := simplex.BregmanOf(m.Prox.Theta, s.At[s.Edges:])
	for e := range s.Edges {
		at = append(at, m.Prox.W[e*s.Inputs:(e+1)*s.Inputs])
		divergence += simplex.Euclidean{}.Divergence(at[e], s.At[e])
	}
	return s.Value(append(at, m.Prox.Theta...)) + hat*divergence, nil
}

// run is one run's Δ_{1/γ̂}, in expectation over the output's random time.
func (t Trial) run(
	ctx context.Context, s *smoothnet.Problem, eta func(int) float64, hat float64, seed uint64, name string,
) (float64, error) {
	delta, r := 0.0, smoothnet.Run{Blocks: t.Blocks, Steps: t.Steps, Eta: eta}
	r.Times = smoothnet.DrawTimes(trial.RNG(seed, "iterates", name), t.Steps, t.Iterates, eta)
	_, err := s.Descend(ctx, r, seed, name, func(x [][]float64, weight float64) error {
		m, err := s.Stationarity(x, hat/2)
		if err == nil {
			delta += weight * m.Delta
		}
		return err
	})
	return delta, err
}
