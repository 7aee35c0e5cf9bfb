// Package separable runs Algorithm 2 of Li+ 2021 on sums of functions of one real block each, with a closed form of Δ.
package separable

import (
	"context"
	"math"
	"math/rand/v2"
	"strconv"

	"github.com/nasml/lab/nasml/li2021/internal/descent"
	"github.com/nasml/lab/nasml/trial"
)

// Trial is what some runs depend on.
type Trial struct {
	Shape  string  `json:"shape"` // "sharp": f = Σ s|xᵢ|; "cosine": f = Σ s(1−cos xᵢ)
	Slope  float64 `json:"slope"` // s
	Blocks int     `json:"blocks"`
	Steps  int     `json:"steps"`
	Start  float64 `json:"start"`
	Gamma  float64 `json:"gamma"`
	Runs   int     `json:"runs"`
}

// drop is f¹ − f*.
func (t Trial) drop() float64 {
	if t.Shape == "sharp" {
		return float64(t.Blocks) * t.Slope * t.Start
	}
	return float64(t.Blocks) * t.Slope * (1 - math.Cos(t.Start))
}

// unit is L√(2bγ(f¹−f*)/T), with L² = b.
func (t Trial) unit() float64 {
	b := float64(t.Blocks)
	return math.Sqrt(b * 2 * b * t.Gamma * t.drop() / float64(t.Steps))
}

// printed is the step of Corollary 1.
func (t Trial) printed() float64 {
	return math.Sqrt(2 * t.drop() / (t.Gamma * float64(t.Steps))) // b/L² = 1
}

// gradient is f′ of one coordinate; at the kink of the sharp function it is 0.
func (t Trial) gradient(x float64) float64 {
	if t.Shape == "cosine" {
		return t.Slope * math.Sin(x)
	}
	switch {
	case x > 0:
		return t.Slope
	case x < 0:
		return -t.Slope
	}
	return 0
}

// stationarity is Δ_λ of one coordinate, (x − prox_λ(x))²/λ² with λ = 1/(2γ): min(s, |x|/λ)² for the sharp function;
// f′(p)² with p + λs·sin p = x for the cosine, solved by Newton's method at λs = ½.
func (t Trial) stationarity(x float64) float64 {
	lambda := 1 / (2 * t.Gamma)
	if t.Shape == "sharp" {
		least := math.Min(t.Slope, math.Abs(x)/lambda)
		return least * least
	}
	x = math.Remainder(x, 2*math.Pi)
	p := x
	for range 50 {
		sin, cos := math.Sincos(p)
		move := (p + lambda*t.Slope*sin - x) / (1 + lambda*t.Slope*cos)
		p -= move
		if math.Abs(move) < 1e-14 {
			break
		}
	}
	g := t.Slope * math.Sin(p)
	return g * g
}

// Run is the mean of Δ over iterates and runs.
func (t Trial) Run(ctx context.Context, seed uint64) (trial.Result, error) {
	total := 0.0
	for i := range t.Runs {
		delta, err := t.run(ctx, trial.RNG(seed, "corollary 1", strconv.Itoa(i)))
		if err != nil {
			return trial.Result{}, err
		}
		total += delta / float64(t.Runs)
	}
	return trial.Result{Values: map[string]float64{"delta": total, "constant": total / t.unit()}}, nil
}

// run is Algorithm 2 over real blocks; only the block that moves changes its part of Δ.
func (t Trial) run(ctx context.Context, rng *rand.Rand) (float64, error) {
	eta, noise := t.printed(), math.Sqrt(1-t.Slope*t.Slope)
	x, parts := make([]float64, t.Blocks), make([]float64, t.Blocks)
	now, sum := 0.0, 0.0
	for i := range x {
		x[i] = t.Start
		parts[i] = t.stationarity(x[i])
		now += parts[i]
	}
	for step := range t.Steps {
		if err := descent.EverySo(ctx, step); err != nil {
			return 0, err
		}
		sum += now
		bits := rng.Uint64()
		i := int(bits >> 32 % uint64(t.Blocks))
		x[i] -= eta * (t.gradient(x[i]) + noise*float64(2*int(bits&1)-1))
		delta := t.stationarity(x[i])
		now += delta - parts[i]
		parts[i] = delta
	}
	return sum / float64(t.Steps), nil
}
