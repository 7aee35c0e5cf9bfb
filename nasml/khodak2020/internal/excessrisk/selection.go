package excessrisk

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"

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

// regularisation is λ of λ‖w‖² + Σ_T ℓ. Corollary A.1's λ = √(log(1/δ)/|T|)
// belongs to the mean of the losses, that is |T|·λ to their sum; "sum" takes
// it literally, "none" is 0.
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

// Run computes, for every |V| and |C| (in this order, |C| fastest), means over
// the validation sets of: the excess risk of the chosen configuration, its
// excess over the best trained one ("selection"), its generalisation gap
// ℓ_𝒟 − ℓ_V, the share of validation sets where Theorem A.2's, Theorem 3.1's
// or Corollary A.4's bound is broken, and A.2's bound.
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

func (b bounds) deviation(valid, configs int) float64 {
	return lossBound * math.Sqrt(2/float64(valid)*(math.Log(float64(configs))+math.Log(1/b.delta)))
}

func (b bounds) hoeffding(n int) float64 {
	return lossBound * math.Sqrt(math.Log(1/b.delta)/(2*float64(n)))
}

func (b bounds) theoremA2(valid, configs int) float64 {
	return b.epsilon + b.hoeffding(valid) + b.deviation(valid, configs)
}

func (b bounds) theorem31(valid, configs int) float64 {
	return b.epsilon + 1.5*b.deviation(valid, configs)
}

func (b bounds) corollaryA4(valid, configs int) float64 {
	return b.generalisation + b.hoeffding(valid) + b.hoeffding(b.train) + b.deviation(valid, configs)
}

// choose draws validation sets of one size and lets each choose among the
// first k configurations, for every k.
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
			add("broken_a2", indicator(risks[c] > star.theoremA2(n, k)))
			add("broken_31", indicator(risks[c] > star.theorem31(n, k)))
			add("broken_a4", indicator(risks[c] > star.corollaryA4(n, k)))
			add("bound", star.theoremA2(n, k))
		}
	}
	return out
}

func indicator(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
