package excessrisk

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/nasml/lab/nasml/trial"
)

// Joint compares the bilevel choice with joint ERM over T ∪ V.
type Joint struct {
	Part     string         `json:"part"` // "joint"
	Instance InstanceParams `json:"world"`
	Range    [2]float64     `json:"range"`
	Count    int            `json:"count"`
	Size     int            `json:"size"` // |T| = |V|
	Lambda   []float64      `json:"lambda"`
}

// Run gives for every λ (of λ‖w‖² + Σℓ) the excess risk and log₁₀ γ of the
// bilevel choice and of joint ERM, and the smallest excess risk of a
// configuration trained on T. The losses of the objectives are not clipped, as
// in (2).
func (t Joint) Run(seed uint64) (trial.Result, error) {
	w := newInstance(t.Instance, seed)
	rng := trial.RNG(seed, "joint")
	grid := gammas(t.Count, t.Range, t.Instance.Gamma, nil)
	train, valid := w.sample(t.Size, rng), w.sample(t.Size, rng)
	all := train.join(valid)
	var maps []*mat.Dense
	for _, gamma := range grid {
		maps = append(maps, w.features(w.x, gamma))
	}
	series := map[string][]float64{}
	add := func(name string, v float64) { series[name] = append(series[name], v) }
	for _, lambda := range t.Lambda {
		var risks, losses, jointRisks, objectives []float64
		for _, phi := range maps {
			f, _, err := fit(phi, train, lambda)
			if err != nil {
				return trial.Result{}, err
			}
			joint, objective, err := fit(phi, all, lambda)
			if err != nil {
				return trial.Result{}, err
			}
			loss := 0.0
			for i, x := range valid.at {
				loss += (f[x] - valid.y[i]) * (f[x] - valid.y[i])
			}
			risks, losses = append(risks, w.excess(f)), append(losses, loss)
			jointRisks, objectives = append(jointRisks, w.excess(joint)), append(objectives, objective)
		}
		chosen, joint := floats.MinIdx(losses), floats.MinIdx(objectives)
		add("bilevel", risks[chosen])
		add("bilevel_gamma", math.Log10(grid[chosen]))
		add("joint", jointRisks[joint])
		add("joint_gamma", math.Log10(grid[joint]))
		add("best", slices.Min(risks))
	}
	return trial.Result{Series: series}, nil
}
