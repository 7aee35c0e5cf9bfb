package excessrisk

import (
	"cmp"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/nasml/lab/nasml/trial"
)

// Cover measures version entropies.
type Cover struct {
	Part     string         `json:"part"` // "cover"
	Instance InstanceParams `json:"world"`
	Range    [2]float64     `json:"range"`
	Count    int            `json:"count"`
	Train    int            `json:"train"`
	Lambda   float64        `json:"lambda"` // of the strongly convex objective; the other one has none
	Scales   []float64      `json:"scales"` // ε
	Members  int            `json:"members"`
}

// Run gives, for every ε, an upper and a lower bound of Λ for the regularised
// problem, of which every version space is one function, and a lower bound of
// Λ without regularisation, from so many members of one version space: the
// solution of least norm plus random steps of the same length in the null
// space of the training features.
func (t Cover) Run(seed uint64) (trial.Result, error) {
	w := newInstance(t.Instance, seed)
	rng := trial.RNG(seed, "cover")
	grid := gammas(t.Count, t.Range, t.Instance.Gamma, nil)
	train := w.sample(t.Train, rng)
	var single [][]float64
	for _, gamma := range grid {
		f, _, err := fit(w.features(w.x, gamma), train, t.Lambda)
		if err != nil {
			return trial.Result{}, err
		}
		single = append(single, f)
	}
	space, err := versionSpace(w.features(w.x, t.Instance.Gamma), train, t.Members, rng)
	if err != nil {
		return trial.Result{}, err
	}
	near, far := supDistances(single), supDistances(space)
	series := map[string][]float64{}
	for _, eps := range t.Scales {
		series["upper"] = append(series["upper"], math.Log(float64(cliqueCover(near, 2*eps))))
		series["lower"] = append(series["lower"], math.Log(float64(packing(near, 2*eps))))
		series["unregularised"] = append(series["unregularised"], math.Log(float64(packing(far, 2*eps))))
	}
	return trial.Result{Series: series}, nil
}

// versionSpace are members of argmin_w Σ_T(⟨w, φ(x)⟩ − y)², at all atoms.
func versionSpace(phi *mat.Dense, s sample, members int, rng *rand.Rand) ([][]float64, error) {
	atoms, d := phi.Dims()
	least, _, err := fit(phi, s, 0)
	if err != nil {
		return nil, err
	}
	rows := s.rows(phi)
	out := [][]float64{least}
	for len(out) < members {
		step := mat.NewVecDense(d, trial.Normals(rng, d, 1))
		// step − Φ⁺Φ·step is in the null space of Φ.
		var image, dual, back mat.VecDense
		image.MulVec(rows, step)
		dual = *mat.NewVecDense(len(s.at), nil)
		if err := solveShifted(&dual, rows, 0, &image); err != nil {
			return nil, err
		}
		back.MulVec(rows.T(), &dual)
		step.SubVec(step, &back)
		values := mat.NewVecDense(atoms, nil)
		values.MulVec(phi, step)
		out = append(out, floats.AddTo(make([]float64, atoms), least, values.RawVector().Data))
	}
	return out, nil
}

// supDistances are max_x |f(x) − g(x)| of all pairs.
func supDistances(functions [][]float64) [][]float64 {
	d := make([][]float64, len(functions))
	for i := range d {
		d[i] = make([]float64, len(functions))
		for j := range i {
			for x, v := range functions[i] {
				d[i][j] = max(d[i][j], math.Abs(v-functions[j][x]))
			}
			d[j][i] = d[i][j]
		}
	}
	return d
}

// cliqueCover covers all points by sets of diameter at most the given one,
// greedily. In the sup norm a set lies in a ball of radius ε exactly where its
// diameter is at most 2ε (its midrange is a centre), so that this is an upper
// bound of N(·, ε).
func cliqueCover(d [][]float64, diameter float64) int {
	left := trial.Indices(0, len(d))
	sets := 0
	for len(left) > 0 {
		// Start with the point that has most neighbours among those left.
		start := slices.MaxFunc(left, func(a, b int) int {
			return cmp.Compare(neighbours(d, a, left, diameter), neighbours(d, b, left, diameter))
		})
		set := []int{start}
		byDistance := slices.Clone(left)
		slices.SortStableFunc(byDistance, func(a, b int) int { return cmp.Compare(d[start][a], d[start][b]) })
		for _, i := range byDistance {
			if i != start && !slices.ContainsFunc(set, func(j int) bool { return d[i][j] > diameter }) {
				set = append(set, i)
			}
		}
		left = slices.DeleteFunc(left, func(i int) bool { return slices.Contains(set, i) })
		sets++
	}
	return sets
}

func neighbours(d [][]float64, i int, among []int, within float64) int {
	n := 0
	for _, j := range among {
		if d[i][j] <= within {
			n++
		}
	}
	return n
}

// packing is the size of a greedy set of points farther apart than the given
// distance. No two of them fit into one ball of half of it, so that this is a
// lower bound of the covering number.
func packing(d [][]float64, apart float64) int {
	var set []int
	for i := range d {
		if !slices.ContainsFunc(set, func(j int) bool { return d[i][j] <= apart }) {
			set = append(set, i)
		}
	}
	return len(set)
}

// Tight is the case in which the deviation term is tight: |C|
// configurations with independent losses that are 0 or 1 with probability ½.
type Tight struct {
	Part   string  `json:"part"` // "uniform"
	Valid  int     `json:"valid"`
	Counts []int   `json:"counts"`
	Draws  int     `json:"draws"`
	Delta  float64 `json:"delta"`
}

// Run gives for every |C| the mean over draws of max_c (ℓ_𝒟 − ℓ_V) and the
// share of draws beyond the deviation term √((2/|V|)(log|C| + log(1/δ))) and
// beyond Hoeffding's √((log|C| + log(1/δ))/(2|V|)).
func (t Tight) Run(seed uint64) (trial.Result, error) {
	rng := trial.RNG(seed, "uniform")
	most := slices.Max(t.Counts)
	mean := make([]float64, len(t.Counts))
	stated, hoeffding := make([]float64, len(t.Counts)), make([]float64, len(t.Counts))
	for range t.Draws {
		largest, at := math.Inf(-1), 0
		gaps := make([]float64, len(t.Counts)) // running maximum at each count
		for c := 1; c <= most; c++ {
			largest = max(largest, 0.5-float64(coins(t.Valid, rng))/float64(t.Valid))
			for at < len(t.Counts) && t.Counts[at] == c {
				gaps[at] = largest
				at++
			}
		}
		for i, k := range t.Counts {
			logs := math.Log(float64(k)) + math.Log(1/t.Delta)
			mean[i] += gaps[i] / float64(t.Draws)
			stated[i] += trial.Indicator(gaps[i] > math.Sqrt(2*logs/float64(t.Valid))) / float64(t.Draws)
			hoeffding[i] += trial.Indicator(gaps[i] > math.Sqrt(logs/(2*float64(t.Valid)))) / float64(t.Draws)
		}
	}
	series := map[string][]float64{"gap": mean, "beyond_stated": stated, "beyond_hoeffding": hoeffding}
	return trial.Result{Series: series}, nil
}

// coins is the number of heads of n fair coins.
func coins(n int, rng *rand.Rand) int {
	heads := 0
	for ; n >= 64; n -= 64 {
		heads += bits.OnesCount64(rng.Uint64())
	}
	return heads + bits.OnesCount64(rng.Uint64()&(1<<n-1))
}

// Ball is Theorem A.1 on the class of all functions with |h| ≤ ε, one
// ball, under the L-Lipschitz loss min(1, L·|h|).
type Ball struct {
	Part      string    `json:"part"` // "ball"
	Lipschitz []float64 `json:"lipschitz"`
	Epsilon   float64   `json:"epsilon"`
	Sample    int       `json:"sample"` // m
	Atoms     int       `json:"atoms"`  // of 𝒟
	Draws     int       `json:"draws"`
}

// Run gives for every L the share of samples with sup_h |ℓ_𝒟 − ℓ_S| ≥ 3ε. The
// supremum is known: the empirical and the population risk are as far apart as
// can be for h = ε on the sampled atoms and 0 elsewhere.
func (t Ball) Run(seed uint64) (trial.Result, error) {
	rng := trial.RNG(seed, "ball")
	broken := make([]float64, len(t.Lipschitz))
	for range t.Draws {
		seen := map[int]bool{}
		for range t.Sample {
			seen[rng.IntN(t.Atoms)] = true
		}
		for i, l := range t.Lipschitz {
			gap := min(1, l*t.Epsilon) * (1 - float64(len(seen))/float64(t.Atoms))
			broken[i] += trial.Indicator(gap >= 3*t.Epsilon) / float64(t.Draws)
		}
	}
	return trial.Result{Series: map[string][]float64{"broken": broken}}, nil
}
