package excessrisk

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/nasml/lab/nasml/trial"
)

// Kernel is Corollary A.3: the target is in the RKHS of the best kernel,
// and the learner has d = κ·√|T|·log(√|T|/δ) random features of each kernel.
type Kernel struct {
	Part     string         `json:"part"` // "kernel"
	Instance InstanceParams `json:"world"`
	Range    [2]float64     `json:"range"`
	Count    int            `json:"count"` // |C|
	Train    int            `json:"train"` // |T| = |V|
	Factor   []float64      `json:"factor"`
	Delta    float64        `json:"delta"`
}

// features is d of a factor κ.
func (t Kernel) features(kappa float64) int {
	root := math.Sqrt(float64(t.Train))
	return max(1, int(math.Ceil(kappa*root*math.Log(root/t.Delta))))
}

// Run gives for every factor κ the excess risk of the configuration that the
// validation set chooses, with λ = 1/√|T| on the mean of the losses.
func (t Kernel) Run(seed uint64) (trial.Result, error) {
	var excess, dims []float64
	for _, kappa := range t.Factor {
		p := t.Instance
		p.Dim = t.features(kappa)
		p.Exact = true
		w := newInstance(p, seed)
		rng := trial.RNG(seed, "kernel")
		grid := gammas(t.Count, t.Range, p.Gamma, rng)
		train, valid := w.sample(t.Train, rng), w.sample(t.Train, rng)
		var risks, losses []float64
		for _, gamma := range grid {
			f, _, err := fit(w.features(w.x, gamma), train, math.Sqrt(float64(t.Train)))
			if err != nil {
				return trial.Result{}, fmt.Errorf("|T| = %d, γ = %v: %w", t.Train, gamma, err)
			}
			risks, losses = append(risks, w.excess(f)), append(losses, empirical(f, valid))
		}
		excess, dims = append(excess, risks[floats.MinIdx(losses)]), append(dims, float64(p.Dim))
	}
	return trial.Result{Series: map[string][]float64{"excess": excess, "dim": dims}}, nil
}
