// Package excessrisk tries the theorems of Khodak+ 2020, Section 3 and Appendix A,
// where every population risk is known exactly.
package excessrisk

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/nasml/lab/nasml/trial"
)

// instance is a feature-map selection problem of which every population risk is known exactly: 𝒟 has finitely many
// atoms x of equal probability, labels y = ±1 with E[y|x] = f*(x), and the configurations are bandwidths of random
// Fourier features φ_c(x) = √(2/d)·cos(√(2γ_c)·Wx + b).
type instance struct {
	x      *mat.Dense // [N, inputs] atoms
	target []float64  // f*(x) in [−top, top], top < 1
	w, b   *mat.Dense // [d, inputs] and [1, d], shared by all configurations
	norm   float64    // ‖w*‖² where f* is ⟨w*, φ_{c*}⟩, or its norm in the RKHS
}

// InstanceParams say how a problem is drawn.
type InstanceParams struct {
	Inputs  int     `json:"inputs"`  // dimension of x ~ N(0, I)
	Support int     `json:"support"` // atoms of 𝒟
	Dim     int     `json:"dim"`     // d
	Gamma   float64 `json:"gamma"`   // γ of the best configuration c*
	Centers int     `json:"centers"` // f* is a sum of so many kernel functions with random signs
	Top     float64 `json:"top"`     // max |f*|
	Exact   bool    `json:"exact"`   // f* of the kernel itself, and not of its random features
}

// newInstance draws an instance. With p.Exact the target is Σⱼ ±k(x, zⱼ) of the Gaussian kernel, else ⟨w*, φ_{c*}(x)⟩
// with w* = Σⱼ ±φ_{c*}(zⱼ), so that w* is the population's minimiser; both are scaled to max |f*| = Top.
func newInstance(p InstanceParams, seed uint64) *instance {
	rng := trial.RNG(seed, "world")
	w := &instance{x: gaussian(rng, p.Support, p.Inputs), w: gaussian(rng, p.Dim, p.Inputs),
		b: mat.NewDense(1, p.Dim, nil)}
	for j := range p.Dim {
		w.b.Set(0, j, 2*math.Pi*rng.Float64())
	}
	z := gaussian(rng, p.Centers, p.Inputs)
	signs := trial.Signs(rng, p.Centers)
	var f, gram mat.Dense
	if p.Exact {
		f.CloneFrom(gaussKernel(w.x, z, p.Gamma))
		gram.CloneFrom(gaussKernel(z, z, p.Gamma))
	} else {
		phi, at := w.features(w.x, p.Gamma), w.features(z, p.Gamma)
		f.Mul(phi, at.T())
		gram.Mul(at, at.T())
	}
	a := mat.NewVecDense(p.Centers, signs)
	values := mat.NewVecDense(p.Support, nil)
	values.MulVec(&f, a)
	w.target = values.RawVector().Data
	scale := p.Top / floats.Norm(w.target, math.Inf(1))
	floats.Scale(scale, w.target)
	w.norm = scale * scale * mat.Inner(a, &gram, a)
	return w
}

func gaussian(rng *rand.Rand, rows, cols int) *mat.Dense {
	return mat.NewDense(rows, cols, trial.Normals(rng, rows*cols, 1))
}

// gaussKernel is exp(−γ‖x−z‖²), [rows of x, rows of z].
func gaussKernel(x, z *mat.Dense, gamma float64) *mat.Dense {
	n, _ := x.Dims()
	m, _ := z.Dims()
	k := mat.NewDense(n, m, nil)
	for i := range n {
		for j := range m {
			d2 := 0.0
			for l, v := range x.RawRowView(i) {
				d2 += (v - z.At(j, l)) * (v - z.At(j, l))
			}
			k.Set(i, j, math.Exp(-gamma*d2))
		}
	}
	return k
}

// features are √(2/d)·cos(√(2γ)·Wx + b) of the rows of x.
func (w *instance) features(x *mat.Dense, gamma float64) *mat.Dense {
	n, _ := x.Dims()
	d, _ := w.w.Dims()
	phi := mat.NewDense(n, d, nil)
	phi.Mul(x, w.w.T())
	scale, width, offsets := math.Sqrt(2/float64(d)), math.Sqrt(2*gamma), w.b.RawRowView(0)
	for i := range n {
		row := phi.RawRowView(i)
		for j, v := range row {
			row[j] = scale * math.Cos(width*v+offsets[j])
		}
	}
	return phi
}

type sample struct {
	at []int
	y  []float64
}

func (w *instance) sample(n int, rng *rand.Rand) sample {
	s := sample{make([]int, n), make([]float64, n)}
	for i := range n {
		x := rng.IntN(len(w.target))
		s.at[i], s.y[i] = x, -1
		if rng.Float64() < (1+w.target[x])/2 {
			s.y[i] = 1
		}
	}
	return s
}

func (s sample) rows(phi *mat.Dense) *mat.Dense {
	_, d := phi.Dims()
	rows := mat.NewDense(len(s.at), d, nil)
	for i, x := range s.at {
		rows.SetRow(i, phi.RawRowView(x))
	}
	return rows
}

// fit is argmin_w λ‖w‖² + Σ(⟨w, φ(x)⟩ − y)² over a sample, evaluated at all atoms, and its objective. It solves with
// the smaller of ΦᵀΦ + λI and ΦΦᵀ + λI; λ = 0 takes the solution of least norm.
func fit(phi *mat.Dense, s sample, lambda float64) (f []float64, objective float64, err error) {
	atoms, d := phi.Dims()
	n := len(s.at)
	rows := s.rows(phi)
	y := mat.NewVecDense(n, s.y)
	w := mat.NewVecDense(d, nil)
	if d <= n {
		var b mat.VecDense
		b.MulVec(rows.T(), y)
		err = solveShifted(w, rows.T(), lambda, &b)
	} else {
		dual := mat.NewVecDense(n, nil)
		if err = solveShifted(dual, rows, lambda, y); err == nil {
			w.MulVec(rows.T(), dual)
		}
	}
	if err != nil {
		return nil, 0, err
	}
	values := mat.NewVecDense(atoms, nil)
	values.MulVec(phi, w)
	f = values.RawVector().Data
	objective = lambda * mat.Dot(w, w)
	for i, x := range s.at {
		objective += (f[x] - s.y[i]) * (f[x] - s.y[i])
	}
	return f, objective, nil
}

// solveShifted solves (AAᵀ + λI)·out = b, by the pseudoinverse where λ = 0.
func solveShifted(out *mat.VecDense, a mat.Matrix, lambda float64, b *mat.VecDense) error {
	n, _ := a.Dims()
	gram := mat.NewSymDense(n, nil)
	gram.SymOuterK(1, a)
	if lambda > 0 {
		for i := range n {
			gram.SetSym(i, i, gram.At(i, i)+lambda)
		}
		var chol mat.Cholesky
		if !chol.Factorize(gram) {
			return fmt.Errorf("the %d×%d ridge system with λ = %v is not positive definite: "+
				"take a larger λ, or λ = 0 for the solution of least norm", n, n, lambda)
		}
		return chol.SolveVecTo(out, b)
	}
	var eig mat.EigenSym
	if !eig.Factorize(gram, true) {
		return errors.New("the eigenvalues of the Gram matrix were not found: are all features finite?")
	}
	values := eig.Values(nil)
	var q mat.Dense
	eig.VectorsTo(&q)
	var c mat.VecDense
	c.MulVec(q.T(), b)
	smallest := 1e-12 * float64(n) * values[n-1]
	for i, v := range values {
		if v > smallest {
			c.SetVec(i, c.AtVec(i)/v)
		} else {
			c.SetVec(i, 0)
		}
	}
	out.MulVec(&q, &c)
	return nil
}

// clip bounds a prediction by the range of the labels, so that the squared loss is at most B = 4.
func clip(v float64) float64 { return max(-1, min(1, v)) }

const lossBound = 4 // B of the squared loss of predictions in [−1, 1] and labels ±1

// excess is ℓ_𝒟(f) − ℓ_𝒟(f*) = E(f(x) − f*(x))² of clipped predictions, exact:
// the noise of the labels is the same in both.
func (w *instance) excess(f []float64) float64 {
	sum := 0.0
	for x, v := range f {
		d := clip(v) - w.target[x]
		sum += d * d
	}
	return sum / float64(len(f))
}

// noise is ℓ_𝒟(f*) = E(1 − f*(x)²).
func (w *instance) noise() float64 {
	sum := 0.0
	for _, v := range w.target {
		sum += 1 - v*v
	}
	return sum / float64(len(w.target))
}

// empirical is the mean clipped squared loss over a sample.
func empirical(f []float64, s sample) float64 {
	sum := 0.0
	for i, x := range s.at {
		d := clip(f[x]) - s.y[i]
		sum += d * d
	}
	return sum / float64(len(s.at))
}

// gammas is a logarithmic grid over a range that has best in the place of its nearest point, which is moved to the
// front; the others follow in an order drawn from rng, so that the first k are |C| = k configurations with c*.
func gammas(n int, ends [2]float64, best float64, rng *rand.Rand) []float64 {
	lo, hi := ends[0], ends[1]
	g := make([]float64, n)
	for i := range g {
		g[i] = lo
		if n > 1 {
			g[i] = lo * math.Pow(hi/lo, float64(i)/float64(n-1))
		}
	}
	near := 0
	for i, v := range g {
		if math.Abs(math.Log(v/best)) < math.Abs(math.Log(g[near]/best)) {
			near = i
		}
	}
	g[near] = best
	g[0], g[near] = g[near], g[0]
	if rng != nil {
		rng.Shuffle(n-1, func(i, j int) { g[i+1], g[j+1] = g[j+1], g[i+1] })
	}
	return g
}

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

// Run gives, for every ε, an upper and a lower bound of Λ for the regularised problem, of which every version space is
// one function, and a lower bound of Λ without regularisation, from so many members of one version space: the solution
// of least norm plus random steps of the same length in the null space of the training features.
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

// cliqueCover covers all points by sets of diameter at most the given one, greedily. In the sup norm a set lies in a
// ball of radius ε exactly where its diameter is at most 2ε (its midrange is a centre), so that this is an upper bound
// of N(·, ε).
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

// packing is the size of a greedy set of points farther apart than the given distance. No two of them fit into one ball
// of half of it, so that this is a lower bound of the covering number.
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

// Run gives for every |C| the mean over draws of max_c (ℓ_𝒟 − ℓ_V) and the share of draws beyond the deviation term
// √((2/|V|)(log|C| + log(1/δ))) and beyond Hoeffding's √((log|C| + log(1/δ))/(2|V|)).
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

// Ball is Theorem A.1 on the class of all functions with |h| ≤ ε, one ball, under the L-Lipschitz loss min(1, L·|h|).
type Ball struct {
	Part      string    `json:"part"` // "ball"
	Lipschitz []float64 `json:"lipschitz"`
	Epsilon   float64   `json:"epsilon"`
	Sample    int       `json:"sample"` // m
	Atoms     int       `json:"atoms"`  // of 𝒟
	Draws     int       `json:"draws"`
}

// Run gives for every L the share of samples with sup_h |ℓ_𝒟 − ℓ_S| ≥ 3ε. The supremum is known: the empirical and the
// population risk are as far apart as can be for h = ε on the sampled atoms and 0 elsewhere.
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
