// Package minimizer measures the Lipschitz constant of θ_α, the minimizer over θ of a loss L̄(α, θ), and the bound of
// Oymak+ 2021, Lemma 2.
package minimizer

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/nasml/lab/nasml/features"
	"github.com/nasml/lab/nasml/oymak2021/internal/world"
	"github.com/nasml/lab/nasml/trial"
)

// Kinds are the random functions: quadratics that are jointly convex, or convex in θ only, and a log-sum-exp.
var Kinds = []string{"joint", "separate", "log-sum-exp"}

// Shares are the quantiles that are kept of the sorted ratios.
var Shares = []float64{0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1}

// Case is what a trial depends on but its seed.
type Case struct {
	Kind       string       `json:"kind"`
	Maps       []int        `json:"maps,omitempty"`
	Weights    []int        `json:"weights,omitempty"`
	Cases      int          `json:"cases,omitempty"`
	Lambda     float64      `json:"lambda,omitempty"`
	Train      int          `json:"train,omitempty"`
	Candidates int          `json:"candidates,omitempty"`
	World      *world.World `json:"world,omitempty"`
}

// Bounds are the Lipschitz constant of α ↦ θ_α and what should bound it.
type Bounds struct {
	Lipschitz float64
	Smooth    float64 // √(L̄/μ), L̄ the smoothness in α alone
	Joint     float64 // √(L̄/μ), L̄ the smoothness in (α, θ)
	Cross     float64 // ‖H_θα‖/μ
}

// Run draws and measures random functions or, of the kind "ridge", the ridge problem. The values of random functions
// are their number ("cases"), how many have a Lipschitz constant above each bound ("over_smooth", …) and the largest
// ratio to √(L̄/μ); the series are quantiles of the ratios, at Shares.
func (c Case) Run(ctx context.Context, seed uint64) (trial.Result, error) {
	if c.Kind == "ridge" {
		return c.runRidge(ctx, seed)
	}
	var all []Bounds
	for _, h := range c.Maps {
		for _, p := range c.Weights {
			for i := range c.Cases {
				if err := ctx.Err(); err != nil {
					return trial.Result{}, err
				}
				b, err := draw(trial.RNG(seed, c.Kind, fmt.Sprint(h, p, i)), c.Kind, h, p)
				if err != nil {
					return trial.Result{}, err
				}
				all = append(all, b)
			}
		}
	}
	return ratios(all), nil
}

// ratios are what Run says of random functions.
func ratios(all []Bounds) trial.Result {
	var smooth, joint []float64
	values := map[string]float64{"cases": float64(len(all)), "over_smooth": 0, "over_joint": 0, "over_cross": 0}
	for _, b := range all {
		smooth, joint = append(smooth, b.Lipschitz/b.Smooth), append(joint, b.Lipschitz/b.Joint)
		over := map[string]float64{"over_smooth": b.Smooth, "over_joint": b.Joint, "over_cross": b.Cross}
		for name, bound := range over {
			if b.Lipschitz > bound*(1+1e-9) {
				values[name]++
			}
		}
	}
	slices.Sort(smooth)
	slices.Sort(joint)
	values["largest"] = smooth[len(smooth)-1]
	series := map[string][]float64{}
	for _, share := range Shares {
		at := int(math.Round(share * float64(len(smooth)-1)))
		series["smooth"], series["joint"] = append(series["smooth"], smooth[at]), append(series["joint"], joint[at])
	}
	return trial.Result{Values: values, Series: series}
}

func draw(rng *rand.Rand, kind string, h, p int) (Bounds, error) {
	switch kind {
	case "joint":
		return quadratic(joint(rng, h, p), h)
	case "separate":
		return quadratic(separate(rng, h, p), h)
	}
	return logSumExp(rng, h, p)
}

// runRidge takes suprema over α in the simplex for ‖y − Φ_αθ‖² + λ‖θ‖², whose
// second derivatives are
//
//	H_αα = 2 (θᵀΦᵢᵀΦⱼθ)ᵢⱼ ,  H_θαᵢ = 2 (Φ_αᵀΦᵢθ − Φᵢᵀr) ,  H_θθ = 2 (Φ_αᵀΦ_α + λI) .
func (c Case) runRidge(ctx context.Context, seed uint64) (trial.Result, error) {
	t := world.NewTeacher(seed, *c.World)
	x, y := t.Sample(trial.RNG(seed, "train"), c.Train)
	train, err := t.Mixture(x, y)
	if err != nil {
		return trial.Result{}, err
	}
	var lipschitz, outer, cross float64
	weakest := math.Inf(1)
	for _, alpha := range world.Candidates(trial.RNG(seed, "candidates"), c.World.Maps, c.Candidates) {
		if err := ctx.Err(); err != nil {
			return trial.Result{}, err
		}
		fit, err := train.Fit(alpha, c.Lambda)
		if err != nil {
			return trial.Result{}, err
		}
		jacobian, err := fit.Jacobian()
		if err != nil {
			return trial.Result{}, err
		}
		outerHere, crossHere := hessianNorms(train, fit)
		lipschitz = max(lipschitz, singular(jacobian.Slice(0, c.World.Features, 0, len(alpha)).(*mat.Dense)))
		outer, cross = max(outer, outerHere), max(cross, crossHere)
		least := 0.0
		if c.World.Features <= c.Train {
			if least, err = train.MinSingular(alpha); err != nil {
				return trial.Result{}, err
			}
		}
		weakest = min(weakest, 2*(c.Lambda+least*least))
	}
	return trial.Result{Values: map[string]float64{
		"lipschitz": lipschitz, "smooth": math.Sqrt(outer / weakest), "cross": cross / weakest,
	}}, nil
}

// hessianNorms are ‖H_αα‖ and ‖H_θα‖ at the minimizer of one α.
func hessianNorms(train *features.Mixture, fit *features.MixtureFit) (outer, cross float64) {
	h, n, p := len(fit.Alpha), len(fit.Residual), len(fit.Theta)
	images, mixed := mat.NewDense(n, h, nil), mat.NewDense(p, h, nil)
	phi, theta := train.At(fit.Alpha), mat.NewVecDense(p, fit.Theta)
	for i, m := range train.Maps {
		var image, back, rest mat.VecDense
		image.MulVec(m, theta)
		back.MulVec(phi.T(), &image)
		rest.MulVec(m.T(), mat.NewVecDense(n, fit.Residual))
		back.SubVec(&back, &rest)
		images.SetCol(i, image.RawVector().Data)
		mixed.SetCol(i, back.RawVector().Data)
	}
	return 2 * singular(images) * singular(images), 2 * singular(mixed)
}
