// Package algorithm1 runs Algorithm 1 of Li+ 2021 on small supernets, with the steps and step size of Theorem 1.
package algorithm1

import (
	"context"
	"math"
	"strconv"

	"github.com/nasml/lab/nasml/li2021/internal/smoothnet"
	"github.com/nasml/lab/nasml/trial"
)

// Trial is what the runs on one problem depend on.
type Trial struct {
	smoothnet.Params
	Target   float64 `json:"target"`   // ε over Δ at the start
	Order    string  `json:"order"`    // "random" or "cyclic"
	Constant float64 `json:"constant"` // of T
	Runs     int     `json:"runs"`
	Iterates int     `json:"iterates"` // random ones of each run at which Δ is measured
}

// Run runs one problem at one ε, with
//
//	T = ⌈cγF(G_w²+G_θ²)/ε²⌉ ,   η = √(4F/(γ(G_w²+G_θ²)T)) .
func (t Trial) Run(ctx context.Context, s *smoothnet.Problem, seed uint64) (trial.Result, error) {
	epsilon, g2 := t.Target*s.Delta, s.Gw+s.Gt
	steps := int(math.Ceil(t.Constant * s.Gamma * s.AtStart * g2 / (epsilon * epsilon)))
	eta := math.Sqrt(4 * s.AtStart / (s.Gamma * g2 * float64(steps)))
	out := trial.Result{
		Values: map[string]float64{
			"steps": float64(steps), "eta": eta, "epsilon": epsilon, "delta_start": s.Delta, "f_start": s.AtStart,
			"gamma": s.Gamma, "gw": s.Gw, "gt": s.Gt, "gt_flat": s.Flat, "weakness": s.Weakness, "one": 1,
		},
		Series: map[string][]float64{},
	}
	for i := range t.Runs {
		m, err := t.run(ctx, s, steps, eta, seed, strconv.Itoa(i))
		if err != nil {
			return trial.Result{}, err
		}
		for name, value := range m {
			out.Series[name] = append(out.Series[name], value)
		}
	}
	return out, nil
}

// run returns Δ and the gap of one run at random iterates (weighted means) and at the end, and the largest second
// moments of the gradients.
func (t Trial) run(
	ctx context.Context, s *smoothnet.Problem, steps int, eta float64, seed uint64, name string,
) (map[string]float64, error) {
	sum := map[string]float64{"gw": 0, "gt": 0}
	r := smoothnet.Run{Blocks: 2, Cyclic: t.Order == "cyclic", Steps: steps, Eta: func(int) float64 { return eta }}
	r.Times = smoothnet.DrawTimes(trial.RNG(seed, "iterates", name), steps, t.Iterates, nil)
	at, err := s.Descend(ctx, r, seed, name, func(x [][]float64, weight float64) error {
		return measure(s, sum, "random", x, weight)
	})
	if err == nil {
		err = measure(s, sum, "last", at, 1)
	}
	return sum, err
}

// measure adds Δ and the gap at a point, times a weight, and updates the largest second moments.
func measure(s *smoothnet.Problem, sum map[string]float64, name string, at [][]float64, weight float64) error {
	m, err := s.Stationarity(at, s.Gamma)
	if err != nil {
		return err
	}
	sum[name] += weight * m.Delta
	sum[name+"_gap"] += weight * m.Gap
	gw, gt := s.Moments(at)
	sum["gw"], sum["gt"] = math.Max(sum["gw"], gw), math.Max(sum["gt"], gt)
	return nil
}
