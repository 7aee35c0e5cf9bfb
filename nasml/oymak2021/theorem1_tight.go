package oymak2021

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/oymak2021/internal/convergence"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/plots"
)

// tightTrials are those of f_α = ⟨α, g⟩, whose suprema are exact.
func tightTrials(p Theorem1Params) curves {
	return p.included("tight", study.Map(p.TightMaps, func(h int) convergence.Case {
		return convergence.Case{Part: "tight", Maps: h, Repeats: p.Repeats, Validation: p.TightValidation}
	})...)
}

func judgeTight(r *theorem1) []runs.Claim {
	gs := r.Part("tight")
	if len(gs) == 0 {
		return nil
	}
	larger := gs.Where(func(c convergence.Case) bool { return c.Maps >= 8 })
	if len(larger) == 0 {
		larger = gs
	}
	const of = "slope on log–log axes where n_V ≥ 8h; exact suprema over the unit ball"
	return []runs.Claim{
		rate(r, "[thm1-eq2 oymak2021ext/abstract-near-minimal] exact family, gap over n_V", " (2)", of+", h ≥ 8",
			slopes(larger, stored("gap"), 8)).Between(-0.5, -0.6, -0.4),
		rate(r, "[thm1-eq2-h] exact family, gap over h", " (2)", of,
			growth(gs, stored("gap"), 8)).Between(0.5, 0.4, 0.6),
		rate(r, "[thm1-eq4 oymak2021ext/abstract-near-minimal] exact family, gradient gap over n_V", " (4)",
			of+", h ≥ 8", slopes(larger, stored("gradient"), 8)).Between(-0.5, -0.6, -0.4),
		rate(r, "[thm1-eq4] exact family, gradient gap over h", " (4)",
			of+"; at most √(h + h̄_eff), with a logarithm",
			growth(gs, stored("gradient"), 8)).Between(0.5, math.Inf(-1), 0.7),
		rate(r, "[thm1-heff] Δ of dimension 2 in R^h, gap over h", " (2)",
			"h_eff = 2 whatever h: the gap must not grow", growth(gs, stored("gap2"), 8)).Between(0, -0.1, 0.1),
		rate(r, "[thm1-grad-ambient] Δ of dimension 2 in R^h, gradient gap over h", ", Section 3.1",
			"the gradient needs the ambient dimension: it grows although h_eff = 2",
			growth(gs, stored("gradient2"), 8)).Between(0.5, 0.3, 0.7),
		rate(r, "own: cost of the supremum, sup / one fixed α, over h", "",
			"without it the checks above would say nothing about uniformity", ratioGrowth(gs)).Between(0.5, 0.2, 0.8),
		judgeTooFew(r, gs),
	}
}

// ratioGrowth is the slope over h of sup gap / gap at one α.
func ratioGrowth(gs curves) perSeed {
	return func(seed int) (float64, error) {
		var ratios points
		for _, g := range gs {
			series := g.Records[seed].Series
			ratios.add(float64(g.Trial.Maps), stat.Mean(series["gap"], nil)/stat.Mean(series["fixed"], nil))
		}
		return ratios.slope()
	}
}

// judgeTooFew breaks the condition n_V ≥ h̄_eff + τ: the gap exceeds the rate √(h/n_V) that holds for n_V ≥ 8h.
func judgeTooFew(r *theorem1, gs curves) runs.Claim {
	var ratios []float64
	for seed := range r.Params.Seeds {
		for _, g := range gs {
			low, high := math.NaN(), 0.0
			for i, n := range g.Trial.Validation {
				scaled := g.Records[seed].Series["gap"][i] * math.Sqrt(float64(n)/float64(g.Trial.Maps))
				if 4*n <= g.Trial.Maps {
					low = scaled
				}
				if n >= 8*g.Trial.Maps {
					high = max(high, scaled)
				}
			}
			if !math.IsNaN(low) && high > 0 {
				ratios = append(ratios, low/high)
			}
		}
	}
	return r.Claim("own: condition violated on purpose, n_V ≤ h/4").
		Noting("ours is sup·√(n_V/h) at n_V ≤ h/4 over its largest value at n_V ≥ 8h: "+
			"above 1 the rate does not hold without n_V ≥ h̄_eff").Mean(ratios).Between(1, 1, math.Inf(1))
}

// supremum is a series of a curve and seed.
type supremum func(g lab.Group[convergence.Case], seed int) []float64

func stored(name string) supremum {
	return func(g lab.Group[convergence.Case], seed int) []float64 { return g.Records[seed].Series[name] }
}

// slopes is the slope of a series in n_V, over n_V of at least so many times h, mean over curves.
func slopes(gs curves, of supremum, times int) perSeed {
	return func(seed int) (float64, error) {
		all := make([]points, len(gs))
		for k, g := range gs {
			series := of(g, seed)
			for i, n := range g.Trial.Validation {
				if n >= times*g.Trial.Maps {
					all[k].add(float64(n), series[i])
				}
			}
		}
		return meanSlope(all)
	}
}

// growth is the slope of a series in h, mean over n_V of at least so many times the largest h.
func growth(gs curves, of supremum, times int) perSeed {
	largest := slices.Max(gs.X(func(c convergence.Case) float64 { return float64(c.Maps) }))
	return func(seed int) (float64, error) {
		all := make([]points, len(gs[0].Trial.Validation))
		for _, g := range gs {
			series := of(g, seed)
			for i, n := range g.Trial.Validation {
				if float64(n) >= float64(times)*largest {
					all[i].add(float64(g.Trial.Maps), series[i])
				}
			}
		}
		return meanSlope(all)
	}
}

func supremumPanel(r *theorem1, gs curves, name, title, label string) plots.Panel {
	p := logLog(title, "validation samples $n_V$", label)
	for _, g := range gs {
		p.Series = append(p.Series, logBand(fmt.Sprintf("$h = %d$", g.Trial.Maps), study.Floats(g.Trial.Validation),
			columns(g.Records, name), r.Confidence))
	}
	p.Series = append(p.Series, halfRate(p.Series[len(p.Series)-1], true)...)
	return p
}

func (p Theorem1Params) included(part string, cases ...convergence.Case) (gs curves) {
	if slices.Contains(p.Parts, part) {
		gs.Add(part, p.Seeds, cases...)
	}
	return gs
}

// rate is a claim on a number that every seed has.
func rate(r *theorem1, name, place, note string, of perSeed) lab.Statistic {
	return r.Claim("%s", name).From("Theorem 1"+place).Noting("%s", note).OverSeeds(r.Params.Seeds, of)
}
