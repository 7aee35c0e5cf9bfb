package oymak2021

import (
	"fmt"
	"math"

	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/oymak2021/internal/convergence"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/plots"
)

func coverPanel(r *theorem1) plots.Panel {
	p := plots.Panel{X: logAxis("$1/ε$"), Y: logAxis("size of an $ε$-cover")}
	for _, name := range []string{"ball1", "ball2", "ball3", "circle"} {
		p.Series = append(p.Series,
			logBand(name, inverseRadii(), study.Columns(r.Part("cover").Rows(name)), r.Confidence))
	}
	return p
}

func inverseRadii() []float64 {
	return study.Map(convergence.CoverRadii, func(eps float64) float64 { return 1 / eps })
}

func judgeCovers(r *theorem1) []runs.Claim {
	gs, inverse := r.Part("cover"), inverseRadii()
	if len(gs) == 0 {
		return nil
	}
	const balls = 3
	growth := func(c lab.Claim, name string) lab.Statistic {
		return c.Of(verdict.Slopes(inverse, gs.Rows(name), c.Confidence))
	}
	violations, cases := 0, 0
	var sizes []runs.Claim
	for h := 1; h <= balls; h++ {
		name := fmt.Sprintf("ball%d", h)
		for _, covers := range gs.Rows(name) {
			for i, n := range covers {
				if cases++; n > math.Pow(3*inverse[i], float64(h)) {
					violations++
				}
			}
		}
		c := r.Claim("[def1-ball] h_eff of the ball of R^%d", h).From("Definition 1").Family(balls).
			Noting("log–log slope of the greedy cover; it reaches h for small ε only")
		sizes = append(sizes, growth(c, name).Between(float64(h), float64(h)-0.6, float64(h)+0.05))
	}
	claims := []runs.Claim{verdict.None(r.Claim("[def1-ball] size of a cover ≤ (3R/ε)^h").From("Definition 1").
		Noting("unit balls of R¹, R², R³ and ε ≤ R; for ε > 3R the bound is below 1, so that ε ≤ R has to be read").
		Claim, violations, cases)}
	circle := r.Claim("[def1-ball] h_eff of a circle in R^10").From("Definition 1").
		Noting("h_eff is smaller than the number of hyperparameters")
	return append(append(claims, sizes...), growth(circle, "circle").Between(1, 0.85, 1.1))
}
