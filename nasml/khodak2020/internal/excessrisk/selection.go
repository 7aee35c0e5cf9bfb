package excessrisk

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/nasml/lab/nasml/trial"
)

// Selection is one training set, on which every configuration is trained,
// and many validation sets that choose among them.
type Selection struct {
	Part     string         `json:"part"` // "selection"
	Instance InstanceParams `json:"world"`
	Range    [2]float64     `json:"range"` // of γ
	Train    int            `json:"train"` // |T|
	Valid    []int          `json:"valid"` // |V|
	Counts   []int          `json:"counts"`
	Draws    int            `json:"draws"`  // validation sets of each size
	Delta    float64        `json:"delta"`  // δ
	Lambda   string         `json:"lambda"` // "mean", "sum" or "none": how λ = √(log(1/δ)/|T|) is meant
}

// regularisation is λ of λ‖w‖² + Σ_T ℓ. Corollary A.1's λ = √(log(1/δ)/|T|) belongs to the mean of the losses, that is
// |T|·λ to their sum; "sum" takes it literally, "none" is 0.
func regularisation(reading string, n int, delta float64) float64 {
	lambda := math.Sqrt(math.Log(1/delta) / float64(n))
	switch reading {
	case "mean":
		return float64(n) * lambda
	case "sum":
		return lambda
	}
	return 0
}

// Run computes, for every |V| and |C| (in this order, |C| fastest), means over the validation sets of: the excess risk
// of the chosen configuration, its excess over the best trained one ("selection"), its generalisation gap ℓ_𝒟 − ℓ_V,
// the share of validation sets where Theorem A.2's, Theorem 3.1's or Corollary A.4's bound is broken, and A.2's bound.
func (t Selection) Run(seed uint64) (trial.Result, error) {
	w := newInstance(t.Instance, seed)
	rng := trial.RNG(seed, "selection")
	most := slices.Max(t.Counts)
	grid := gammas(most, t.Range, t.Instance.Gamma, rng)
	train := w.sample(t.Train, rng)
	fits, risks := make([][]float64, most), make([]float64, most)
	for c, gamma := range grid {
		f, _, err := fit(w.features(w.x, gamma), train, regularisation(t.Lambda, t.Train, t.Delta))
		if err != nil {
			return trial.Result{}, fmt.Errorf("|T| = %d, γ = %v: %w", t.Train, gamma, err)
		}
		fits[c], risks[c] = f, w.excess(f)
	}
	star := bounds{
		epsilon: risks[0], delta: t.Delta, train: t.Train,
		generalisation: max(0, risks[0]+w.noise()-empirical(fits[0], train)),
	}
	series := map[string][]float64{}
	for _, n := range t.Valid {
		for name, column := range t.choose(w, fits, risks, star, n, trial.RNG(seed, "valid", fmt.Sprint(n))) {
			series[name] = append(series[name], column...)
		}
	}
	values := map[string]float64{"best": risks[0], "norm": w.norm, "star": star.generalisation}
	return trial.Result{Series: series, Values: values}, nil
}

// bounds are the right-hand sides of the theorems, less ℓ_𝒟(w*, c*), for
// singleton version spaces: the infimum over ε is at 0, where Λ ≤ log|C|.
type bounds struct {
	epsilon        float64 // ε*: excess risk of the trained c*
	generalisation float64 // ε* of Corollary A.4: its ℓ_𝒟 − ℓ_T
	delta          float64
	train          int
}

// rightSides are those of Theorem A.2, Theorem 3.1 and Corollary A.4.
func (b bounds) rightSides(valid, configs int) (theoremA2, theorem31, corollaryA4 float64) {
	hoeffding := func(n int) float64 { return lossBound * math.Sqrt(math.Log(1/b.delta)/(2*float64(n))) }
	deviation := lossBound * math.Sqrt(2/float64(valid)*(math.Log(float64(configs))+math.Log(1/b.delta)))
	return b.epsilon + hoeffding(valid) + deviation, b.epsilon + 1.5*deviation,
		b.generalisation + hoeffding(valid) + hoeffding(b.train) + deviation
}

// choose draws validation sets of one size and lets each choose among the first k configurations, for every k.
func (t Selection) choose(
	w *instance, fits [][]float64, risks []float64, star bounds, n int, rng *rand.Rand,
) map[string][]float64 {
	out := map[string][]float64{}
	for _, name := range []string{"excess", "selection", "gap", "broken_a2", "broken_31", "broken_a4", "bound"} {
		out[name] = make([]float64, len(t.Counts))
	}
	noise, losses := w.noise(), make([]float64, len(fits))
	for range t.Draws {
		s := w.sample(n, rng)
		for c, f := range fits {
			losses[c] = empirical(f, s)
		}
		for i, k := range t.Counts {
			c := floats.MinIdx(losses[:k])
			add := func(name string, v float64) { out[name][i] += v / float64(t.Draws) }
			add("excess", risks[c])
			add("selection", risks[c]-slices.Min(risks[:k]))
			add("gap", risks[c]+noise-losses[c])
			a2, t31, a4 := star.rightSides(n, k)
			add("broken_a2", trial.Indicator(risks[c] > a2))
			add("broken_31", trial.Indicator(risks[c] > t31))
			add("broken_a4", trial.Indicator(risks[c] > a4))
			add("bound", a2)
		}
	}
	return out
}

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

// Run gives for every factor κ the excess risk of the configuration that the
// validation set chooses, with λ = 1/√|T| on the mean of the losses.
func (t Kernel) Run(seed uint64) (trial.Result, error) {
	var excess, dims []float64
	for _, kappa := range t.Factor {
		p, root := t.Instance, math.Sqrt(float64(t.Train))
		p.Dim, p.Exact = max(1, int(math.Ceil(kappa*root*math.Log(root/t.Delta)))), true
		w := newInstance(p, seed)
		rng := trial.RNG(seed, "kernel")
		grid := gammas(t.Count, t.Range, p.Gamma, rng)
		train, valid := w.sample(t.Train, rng), w.sample(t.Train, rng)
		var risks, losses []float64
		for _, gamma := range grid {
			f, _, err := fit(w.features(w.x, gamma), train, root)
			if err != nil {
				return trial.Result{}, fmt.Errorf("|T| = %d, γ = %v: %w", t.Train, gamma, err)
			}
			risks, losses = append(risks, w.excess(f)), append(losses, empirical(f, valid))
		}
		excess, dims = append(excess, risks[floats.MinIdx(losses)]), append(dims, float64(p.Dim))
	}
	return trial.Result{Series: map[string][]float64{"excess": excess, "dim": dims}}, nil
}

// Joint compares the bilevel choice with joint ERM over T ∪ V.
type Joint struct {
	Part     string         `json:"part"` // "joint"
	Instance InstanceParams `json:"world"`
	Range    [2]float64     `json:"range"`
	Count    int            `json:"count"`
	Size     int            `json:"size"` // |T| = |V|
	Lambda   []float64      `json:"lambda"`
}

// Run gives for every λ (of λ‖w‖² + Σℓ) the excess risk and log₁₀ γ of the bilevel choice and of joint ERM, and the
// smallest excess risk of a configuration trained on T. The losses of the objectives are not clipped, as in (2).
func (t Joint) Run(seed uint64) (trial.Result, error) {
	w := newInstance(t.Instance, seed)
	rng := trial.RNG(seed, "joint")
	grid := gammas(t.Count, t.Range, t.Instance.Gamma, nil)
	train, valid := w.sample(t.Size, rng), w.sample(t.Size, rng)
	all := sample{slices.Concat(train.at, valid.at), slices.Concat(train.y, valid.y)}
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
