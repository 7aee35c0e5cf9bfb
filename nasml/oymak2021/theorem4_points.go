package oymak2021

import (
	"fmt"
	"math"

	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/oymak2021/internal/lowrank"
	"github.com/nasml/lab/nasml/oymak2021/spectral"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/plots"
)

// theorem4Point has the results of all seeds at one set of sizes.
type theorem4Point struct {
	n, p, h    int
	noise      float64
	rho2, risk []float64
	oracle     []float64 // risk of knowing α*; of runs on features only
}

func (q theorem4Point) pBar() float64    { return float64(q.p) / float64(q.n) }
func (q theorem4Point) hBar() float64    { return float64(q.h) / float64(q.n) }
func (q theorem4Point) product() float64 { return q.pBar() * q.hBar() } // p̄h̄ = ph/n²

func (q theorem4Point) limit() float64 { return spectral.CorrelationLimit(q.pBar(), q.hBar(), q.noise) }

// bound11 and bound12 are the right sides of (11) and (12).
func (q theorem4Point) bound11() float64 { return 1 - 64*q.product() }
func (q theorem4Point) bound12() float64 { return 1 - 1/q.pBar() + 200*q.hBar()/(1-1/q.pBar()) }

// excess is the risk beyond 1 − n/p that a direction of squared correlation ρ² costs, in the exact mean over 𝒯.
func (q theorem4Point) excess(rho2 float64) float64 {
	return spectral.ExpectedRisk(q.n, q.p, rho2, 0) - spectral.ExpectedRisk(q.n, q.p, 1, 0)
}

func (q theorem4Point) String() string { return fmt.Sprintf("n = %d, p = %d, h = %d", q.n, q.p, q.h) }

func theorem4Points(r *theorem4, part string) (all []theorem4Point) {
	gs := r.Part(part)
	for i := range gs {
		switch g := gs[i : i+1]; t := gs[i].Trial.(type) {
		case lowrank.Data:
			all = append(all, theorem4Point{
				t.N, t.P, t.H, t.Noise, g.Values("rho2"), g.Values("risk"), g.Values("oracle_risk"),
			})
		case lowrank.Law:
			risk := study.Columns(g.Rows("risk"))
			for at, rho2 := range study.Columns(g.Rows("rho2")) {
				p, h := t.P[at/len(t.H)], t.H[at%len(t.H)]
				all = append(all, theorem4Point{n: t.N, p: p, h: h, noise: t.Noise, rho2: rho2, risk: risk[at]})
			}
		}
	}
	return all
}

func ofRatio(points []theorem4Point, ratio float64) []theorem4Point {
	return only(points, func(q theorem4Point) bool { return q.p == sizeOf(q.n, ratio) })
}

func rho2Of(q theorem4Point) []float64 { return q.rho2 }

var rho2Axis = plots.Axis{Label: "$ρ^2$", Min: -0.02, Max: 1.05}

func jackknife(c lab.Claim, points []theorem4Point, f func(means []float64) (float64, error)) lab.Statistic {
	return c.Of(verdict.Jackknife(study.Columns(study.Map(points, rho2Of)), c.Confidence, f))
}

// common is the picture of a view with the sentence that all of them share.
func common(draw func(*theorem4, *lab.Picture)) func(*theorem4, *lab.Picture) {
	return func(r *theorem4, f *lab.Picture) {
		if draw(r, f); r.Params.Noise > 0 {
			f.Say("Label noise $σ$ = %v.", r.Params.Noise)
		}
	}
}

// addLaw adds samples of the limiting distribution for every pair of sizes, if there are any.
func addLaw(gs *lab.Groups[lowrank.Trial], part string, seeds, n int, sizes, h []int, noise float64) {
	if len(sizes)*len(h) > 0 {
		gs.Add(part, seeds, lowrank.Law{Part: part, N: n, P: sizes, H: h, Noise: noise})
	}
}

// sizeOf is the whole number nearest to ratio·n, at least 1.
func sizeOf(n int, ratio float64) int { return max(1, int(math.Round(ratio*float64(n)))) }

func sizesOf(n int, ratios []float64) []int {
	return study.Map(ratios, func(ratio float64) int { return sizeOf(n, ratio) })
}
