package oymak2021

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/oymak2021/internal/instance"
	"github.com/nasml/lab/nasml/oymak2021/internal/selection"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/plots"
)

func propositionTrials(p Theorem2Params) (gs selections) {
	for _, h := range p.PropMaps {
		gs.Add("prop1", p.Seeds, selection.Case{
			Part:       "prop1",
			Instance:   instance.Params{Inputs: p.PropInputs, Features: p.PropRank, Maps: h, Flips: p.PropFlips},
			Validation: p.Sizes, Fixed: p.FixedTrain, Candidates: p.Candidates, Repeats: p.Repeats,
		})
	}
	return gs
}

func propositionPanel(r *theorem2) plots.Panel {
	first := r.Part("prop1")[0]
	of := func(label, name string) plots.Series {
		return logBand(label, study.Floats(r.Params.Sizes), columns(first.Records, name), r.Confidence)
	}
	end := of("the chosen $α$", "end")
	c := logLog(fmt.Sprintf("(c) Proposition 1, $h = %d$", first.Trial.Instance.Maps), "$n_T = n_V$",
		"risk above $\\min_α L(f_α^D)$", end, of("one fixed $α$, eq. (5)", "train"), of("uniform gap", "gap"))
	c.Legend, c.Series = inside, append(c.Series, halfRate(end, false)...)
	return c
}

func extraPanel(r *theorem2) plots.Panel {
	d := logLog(fmt.Sprintf("(d) loss by choosing, $n_T = %d$", r.Params.FixedTrain), "validation samples $n_V$",
		"risk above $\\min_α L(f_α)$")
	for _, g := range r.Part("prop1") {
		d.Series = append(d.Series, logBand(fmt.Sprintf("$h = %d$", g.Trial.Instance.Maps),
			study.Floats(r.Params.Sizes), columns(g.Records, "extra"), r.Confidence))
	}
	d.Legend, d.Series = inside, append(d.Series, halfRate(d.Series[0], false)...)
	return d
}

func judgeProposition(r *theorem2) []runs.Claim {
	gs := r.Part("prop1")
	growth := func(seed int) (float64, error) {
		var extra points
		for _, g := range gs {
			extra.add(float64(g.Trial.Instance.Maps), stat.Mean(g.Records[seed].Series["extra"], nil))
		}
		return extra.slope()
	}
	over := func(name string) perSeed {
		return func(seed int) (float64, error) { return slopeOfSums(r.Params.Sizes, ofSeed(gs, seed), name) }
	}
	claim := func(name, source, note string, of perSeed) lab.Statistic {
		return r.Claim("%s", name).From(source).Noting("%s", note).OverSeeds(r.Params.Seeds, of)
	}
	const prop1, extra = "Proposition 1", "Proposition 1, Section 3.2"
	inf := math.Inf(-1)
	return []runs.Claim{
		claim("[eq5] L(f_α^T) − L(f_α^D) over n_T, one α", "eq. (5)",
			"log–log slope; squared loss is faster than the bound, about −1", over("train")).Between(-0.5, inf, -0.4),
		claim("[prop1] risk of α̂ − min L(f_α^D) over n_T = n_V", prop1,
			"log–log slope; squared loss is faster than the bound", over("end")).Between(-0.5, inf, -0.4),
		claim("[prop1] uniform gap over n_V", prop1, "log–log slope; n_T grows with n_V, and f_α settles",
			over("gap")).Between(-0.5, inf, -0.4),
		verdict.None(r.Claim("[prop1] risk of α̂ ≤ min (L(f_α^D) + C_α/√n_T) + 2 sup gap").From(prop1).
			Noting("C_α the smallest that (5) allows; follows from (3), so that one violation is an error of ours").
			Claim, int(floats.Sum(gs.Values("violations"))), len(gs.Records())*len(r.Params.Sizes)*r.Params.Repeats),
		claim("[prop1-extra] loss by choosing α over n_V", extra,
			fmt.Sprintf("log–log slope of L(f_α̂^T) − min L(f_α^T) at n_T = %d", r.Params.FixedTrain),
			over("extra")).Between(-0.5, inf, -0.4),
		claim("[prop1-extra] loss by choosing α over h", extra, "log–log slope of the mean over n_V",
			growth).Between(0.5, inf, 0.7),
	}
}
