// Package lowrank computes the trials of Oymak+ 2021, Theorem 4: the spectral estimate of the architecture in low-rank
// learning with p > n, samples of its distribution, and other searches of the same architecture.
package lowrank

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/nasml/lab/nasml/oymak2021/spectral"
	"github.com/nasml/lab/nasml/trial"
)

// Trial is one of the kinds of trials below.
type Trial interface {
	Run(ctx context.Context, seed uint64) (trial.Result, error)
	Cost() float64 // of a seed, in numbers touched
	String() string
}

// Law samples the distribution of the algorithm's outcome for every pair of sizes: all of P with all of H.
type Law struct {
	Part  string  `json:"part"` // "law", "map", "boundary" or "sizes": what it is for
	N     int     `json:"n"`
	P     []int   `json:"p"`
	H     []int   `json:"h"`
	Noise float64 `json:"noise"`
}

func (t Law) String() string { return fmt.Sprintf("%s, n = %d", t.Part, t.N) }

// Cost is about how many numbers a seed touches.
func (t Law) Cost() float64 {
	sum := 0.0
	for _, h := range t.H {
		sum += 60 * float64(h) * float64(h)
	}
	return sum * float64(len(t.P))
}

// Run gives the series "rho2" and "risk", with the h of the first p first.
func (t Law) Run(ctx context.Context, seed uint64) (trial.Result, error) {
	series := map[string][]float64{}
	for _, p := range t.P {
		for _, h := range t.H {
			if err := ctx.Err(); err != nil {
				return trial.Result{}, err
			}
			// A stream for each pair of sizes: other pairs beside it change nothing.
			rng := trial.RNG(seed, "law", strconv.Itoa(p), strconv.Itoa(h))
			rho2, risk, err := spectral.RankOneLaw{N: t.N, P: p, H: h, Noise: t.Noise}.Draw(rng)
			if err != nil {
				return trial.Result{}, err
			}
			series["rho2"], series["risk"] = append(series["rho2"], rho2), append(series["risk"], risk)
		}
	}
	return trial.Result{Series: series}, nil
}

// Data runs the algorithm on features that are drawn one example at a time.
type Data struct {
	Part     string  `json:"part"` // "data"
	N        int     `json:"n"`    // of each of 𝒯 and 𝒱
	P        int     `json:"p"`
	H        int     `json:"h"`
	Noise    float64 `json:"noise"`    // σ of the labels
	Features string  `json:"features"` // a name of Features
	Same     bool    `json:"same"`     // 𝒱 = 𝒯, against the theorem's independence
	Whiten   bool    `json:"whiten"`   // the rows of X are made independent before M̂ is read
}

func (t Data) String() string {
	return fmt.Sprintf("features, n = %d, p = %d, h = %d", t.N, t.P, t.H)
}

// Cost is about how many numbers a seed touches.
func (t Data) Cost() float64 {
	n, p, h := float64(t.N), float64(t.P), float64(t.H)
	return n*p*(12*h) + n*n*p
}

type model struct {
	alpha, theta []float64
	cov          *mat.SymDense // A of the rows of X; nil: the identity
	root         *mat.Dense    // A^{1/2}
}

// Correlation is the correlation between two operations' features if they are "correlated".
const Correlation = 0.9

// Features fill a feature matrix with numbers of variance 1, independent unless the name says otherwise.
var Features = map[string]func(rng *rand.Rand, x []float64){
	"gaussian":   normal,
	"correlated": normal, // the model's root mixes the rows
	"rademacher": func(rng *rand.Rand, x []float64) {
		for i := range x {
			x[i] = float64(2*rng.IntN(2) - 1)
		}
	},
	// A common factor makes some examples much larger than others: multivariate t₃, without a fourth moment.
	"heavy": func(rng *rand.Rand, x []float64) {
		const dof = 3
		normal(rng, x)
		floats.Scale(math.Sqrt((dof-2)/distuv.ChiSquared{K: dof, Src: rng}.Rand()), x)
	},
}

func normal(rng *rand.Rand, x []float64) {
	for i := range x {
		x[i] = rng.NormFloat64()
	}
}

func (t Data) model(seed uint64) model {
	rng := trial.RNG(seed, "truth")
	m := model{alpha: unit(rng, t.H), theta: unit(rng, t.P)}
	if t.Features != "correlated" {
		return m
	}
	m.alpha = axis(t.H, 0) // one operation is right
	m.cov, m.root = mat.NewSymDense(t.H, nil), mat.NewDense(t.H, t.H, nil)
	// The eigenvalue of (1,…,1) is 1+(h−1)r, all others are 1−r.
	low, high := math.Sqrt(1-Correlation), math.Sqrt(1+float64(t.H-1)*Correlation)
	for i := range t.H {
		for j := range t.H {
			m.cov.SetSym(i, j, Correlation)
			m.root.Set(i, j, (high-low)/float64(t.H))
		}
		m.root.Set(i, i, m.root.At(i, i)+low)
	}
	for i := range t.H {
		m.cov.SetSym(i, i, 1)
	}
	return m
}

// axis is the unit vector along coordinate i of ℝⁿ.
func axis(n, i int) []float64 {
	e := make([]float64, n)
	e[i] = 1
	return e
}

func unit(rng *rand.Rand, n int) []float64 {
	v := trial.Normals(rng, n, 1)
	floats.Scale(1/floats.Norm(v, 2), v)
	return v
}

func (t Data) examples(seed uint64, set string, m model) spectral.Examples {
	fill := Features[t.Features]
	return spectral.Examples{N: t.N, H: t.H, P: t.P, Draw: func(i int, x []float64) float64 {
		rng := trial.RNG(seed, set, strconv.Itoa(i))
		fill(rng, x)
		if m.root != nil {
			mixed := mat.NewDense(t.H, t.P, nil)
			mixed.Mul(m.root, mat.NewDense(t.H, t.P, x))
			copy(x, mixed.RawMatrix().Data)
		}
		y := t.Noise * rng.NormFloat64()
		for a, w := range m.alpha {
			if w != 0 {
				y += w * floats.Dot(x[a*t.P:(a+1)*t.P], m.theta)
			}
		}
		return y
	}}
}

// Run has the values rho2 and risk of the algorithm, the risk of knowing α* (oracle_risk), and the largest residual on
// 𝒯.
func (t Data) Run(ctx context.Context, seed uint64) (trial.Result, error) {
	m := t.model(seed)
	train, valid := t.examples(seed, "train", m), t.examples(seed, "validation", m)
	if t.Same {
		valid = train
	}
	moment, err := spectral.Moment(ctx, valid)
	if err != nil {
		return trial.Result{}, err
	}
	alpha, err := m.direction(moment, t.Whiten)
	if err != nil {
		return trial.Result{}, err
	}
	z, y, err := spectral.Projected(ctx, train, alpha, m.alpha)
	if err != nil {
		return trial.Result{}, err
	}
	theta, err := spectral.MinNorm(z[0], y)
	if err != nil {
		return trial.Result{}, err
	}
	oracle, err := spectral.MinNorm(z[1], y)
	if err != nil {
		return trial.Result{}, err
	}
	noise := t.Noise * t.Noise
	return trial.Result{Values: map[string]float64{
		"rho2":        spectral.Correlation2(alpha, m.alpha),
		"risk":        noise + m.risk(alpha, theta),
		"oracle_risk": noise + m.risk(m.alpha, oracle),
		"residual":    spectral.Residual(z[0], theta, y),
	}}, nil
}

// risk is the population risk without the labels' noise.
func (m model) risk(alpha, theta []float64) float64 {
	if m.cov == nil { // a nil *SymDense in an interface is not nil
		return spectral.RankOneRisk(alpha, theta, m.alpha, m.theta, nil)
	}
	return spectral.RankOneRisk(alpha, theta, m.alpha, m.theta, m.cov)
}

// direction is α̂. Whitened, it is the algorithm for the independent features A^{-1/2}X and for A^{1/2}α*: α̂ =
// A^{-1/2}β̂ with β̂ the leading direction of A^{-1/2}M̂.
func (m model) direction(moment *mat.Dense, whiten bool) ([]float64, error) {
	if !whiten || m.root == nil {
		alpha, _, err := spectral.TopLeft(moment)
		return alpha, err
	}
	var white mat.Dense
	if err := white.Solve(m.root, moment); err != nil {
		return nil, fmt.Errorf("the covariance of the operations: %w", err)
	}
	beta, _, err := spectral.TopLeft(&white)
	if err != nil {
		return nil, err
	}
	var alpha mat.VecDense
	if err := alpha.SolveVec(m.root, mat.NewVecDense(len(beta), beta)); err != nil {
		return nil, fmt.Errorf("the covariance of the operations: %w", err)
	}
	return alpha.RawVector().Data, nil
}

// Search runs the spectral algorithm and searches by gradient on the same normal features.
type Search struct {
	Part  string  `json:"part"` // "search"
	N     int     `json:"n"`
	P     int     `json:"p"`
	H     int     `json:"h"`
	Ridge float64 `json:"ridge"` // λ/n of the searches with a ridge
	Steps int     `json:"steps"`
	Noise float64 `json:"noise"`
}

func (t Search) String() string {
	return fmt.Sprintf("searches, n = %d, p = %d, h = %d", t.N, t.P, t.H)
}

// Cost is about how many numbers a seed touches.
func (t Search) Cost() float64 {
	n, p, h := float64(t.N), float64(t.P), float64(t.H)
	return float64(1+t.Steps) * n * p * (20*h + 4*n)
}

// Run has rho2 and risk of every method and of the oracle. All but "ridge" solve the lower level by least squares of
// least norm on 𝒯.
func (t Search) Run(ctx context.Context, seed uint64) (trial.Result, error) {
	data := Data{N: t.N, P: t.P, H: t.H, Noise: t.Noise, Features: "gaussian"}
	m := data.model(seed)
	train, valid := data.examples(seed, "train", m), data.examples(seed, "validation", m)
	plain, err := spectral.Split{}, error(nil)
	if plain.Train, err = spectral.Store(ctx, train); err != nil {
		return trial.Result{}, err
	}
	if plain.Valid, err = spectral.Store(ctx, valid); err != nil {
		return trial.Result{}, err
	}
	ridge := plain
	ridge.Ridge = t.Ridge * float64(t.N)
	first, both, err := estimates(ctx, train, valid)
	if err != nil {
		return trial.Result{}, err
	}
	start := unit(trial.RNG(seed, "start"), t.H)
	values := map[string]float64{}
	for _, method := range []struct {
		key    string
		split  spectral.Split
		search func() ([]float64, error)
	}{
		{"oracle", plain, func() ([]float64, error) { return m.alpha, nil }},
		{"spectral", plain, func() ([]float64, error) { return first, nil }},
		{"both", plain, func() ([]float64, error) { return both, nil }},
		{"gradient", plain, func() ([]float64, error) { return descend(ctx, plain, start, t.Steps) }},
		{"refined", plain, func() ([]float64, error) { return descend(ctx, plain, first, t.Steps) }},
		{"ridge", ridge, func() ([]float64, error) { return descend(ctx, ridge, start, t.Steps) }},
		{"alternate", plain, func() ([]float64, error) { return plain.Alternate(ctx, start, t.Steps) }},
	} {
		if err := ctx.Err(); err != nil {
			return trial.Result{}, err
		}
		alpha, err := method.search()
		if err != nil {
			return trial.Result{}, fmt.Errorf("%s: %w", method.key, err)
		}
		theta, err := method.split.Theta(alpha)
		if err != nil {
			return trial.Result{}, fmt.Errorf("%s: %w", method.key, err)
		}
		values["rho2_"+method.key] = spectral.Correlation2(alpha, m.alpha)
		values["risk_"+method.key] = t.Noise*t.Noise + m.risk(alpha, theta)
	}
	return trial.Result{Values: values}, nil
}

func estimates(ctx context.Context, train, valid spectral.Examples) (first, both []float64, err error) {
	moment, err := spectral.Moment(ctx, valid)
	if err != nil {
		return nil, nil, err
	}
	if first, _, err = spectral.TopLeft(moment); err != nil {
		return nil, nil, err
	}
	other, err := spectral.Moment(ctx, train)
	if err != nil {
		return nil, nil, err
	}
	moment.Add(moment, other)
	both, _, err = spectral.TopLeft(moment)
	return first, both, err
}

func descend(ctx context.Context, s spectral.Split, start []float64, steps int) ([]float64, error) {
	alpha, _, err := s.Descend(ctx, start, steps)
	return alpha, err
}

// Fit measures how well least squares fits m examples, which bounds every algorithm.
type Fit struct {
	Part  string `json:"part"` // "fit"
	M     int    `json:"m"`    // 2n, even
	H     int    `json:"h"`
	Tries int    `json:"tries"` // directions α
}

func (t Fit) String() string { return fmt.Sprintf("merged sets, 2n = %d", t.M) }

// Cost is about how many numbers a seed touches.
func (t Fit) Cost() float64 { return 20 * float64(t.Tries) * math.Pow(float64(t.M), 3) }

// Run has, for p = 2n ("…_at"), 2n+h−1 ("…_above"), 4n ("…_double") and 3n/2 ("…_below"): the largest residual of the
// best θ over random directions α (residual_…) and the squared error of θ̂ if α* is known (error_…). At p = 2n it
// solves for a direction that does not fit the labels: found_at reports whether one exists, smallest_at is σ_min/σ_max
// of its Z_α and exceptional_at the share of the labels that no θ reaches.
func (t Fit) Run(ctx context.Context, seed uint64) (trial.Result, error) {
	values := map[string]float64{}
	for name, p := range map[string]int{"at": t.M, "above": t.M + t.H - 1, "double": 2 * t.M, "below": 3 * t.M / 4} {
		if err := t.measure(ctx, seed, name, p, values); err != nil {
			return trial.Result{}, err
		}
	}
	return trial.Result{Values: values}, nil
}

func (t Fit) measure(ctx context.Context, seed uint64, name string, p int, values map[string]float64) error {
	data := Data{N: t.M, P: p, H: t.H, Features: "gaussian"}
	m := data.model(seed)
	examples := data.examples(seed, "merged "+name, m)
	alphas := [][]float64{m.alpha}
	rng := trial.RNG(seed, "directions")
	for range t.Tries {
		alphas = append(alphas, unit(rng, t.H))
	}
	z, y, err := spectral.Projected(ctx, examples, alphas...)
	if err != nil {
		return err
	}
	for i := range z {
		theta, err := spectral.MinNorm(z[i], y)
		if err != nil {
			return err
		}
		if i == 0 {
			values["error_"+name] = math.Pow(floats.Distance(theta, m.theta, 2), 2)
			continue
		}
		values["residual_"+name] = max(values["residual_"+name], spectral.Residual(z[i], theta, y))
	}
	if name == "at" && t.H > 1 {
		return t.exceptional(ctx, examples, values)
	}
	return nil
}

// exceptional solves det(Z₁ + s·Z₂) = 0 for the square Z₁, Z₂ of the first two operations: at a real s, α ∝ (1, s, 0,
// …) has a singular Z_α, and no θ fits labels outside its range.
func (t Fit) exceptional(ctx context.Context, examples spectral.Examples, values map[string]float64) error {
	z, y, err := spectral.Projected(ctx, examples, axis(t.H, 0), axis(t.H, 1))
	if err != nil {
		return err
	}
	var ratio mat.Dense
	if err := ratio.Solve(z[1], z[0]); err != nil {
		return err
	}
	var eigen mat.Eigen
	if !eigen.Factorize(&ratio, mat.EigenNone) {
		return fmt.Errorf("the eigenvalues of a %d×%d matrix did not converge", t.M, t.M)
	}
	values["found_at"], values["exceptional_at"] = 0, 0
	best := math.Inf(1)
	for _, v := range eigen.Values(nil) {
		if imag(v) != 0 || math.Abs(real(v)) > best {
			continue
		}
		best = math.Abs(real(v))
		singular := mat.DenseCopyOf(z[1])
		singular.Scale(-real(v), singular)
		singular.Add(singular, z[0])
		var svd mat.SVD
		if !svd.Factorize(singular, mat.SVDThin) {
			return fmt.Errorf("the singular value decomposition of a %d×%d matrix did not converge", t.M, t.M)
		}
		// What the last left singular vector sees of y, no θ reaches.
		var u mat.Dense
		svd.UTo(&u)
		values["found_at"] = 1
		values["exceptional_at"] = math.Abs(floats.Dot(mat.Col(nil, t.M-1, &u), y)) / floats.Norm(y, 2)
		values["smallest_at"] = svd.Values(nil)[t.M-1] / svd.Values(nil)[0]
	}
	return nil
}
