package li2021

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/runs"
)

// secondOrderSearch is a real search, small enough for all second-order gradients (a few minutes on two cores in all),
// which shows that they diverge. The gradients themselves are compared at the listed steps, of 7 in each of 3 epochs.
var secondOrderSearch = []string{
	"Rows=darts,darts/second-order,darts/second-order-small,darts/unrolled", "Examples=1000", "Epochs=3", "Seeds=3",
	"Gradients=1,4,8,15,21",
}

const secondOrderSource = "Liu+ 2019, eq. 8, and their code"

// separated is the relative distance above which the ways of θ count as different.
const separated = 0.1

// judgeSecondOrder compares where second-order gradients, which the central difference of Liu+ 2019 approximates, lead
// from the same start on the same batches. These claims were fixed before the searches. The second one fails in the
// precomputed searches in float32; judgeGradients shows why.
func judgeSecondOrder(r *figure1) (claims []runs.Claim) {
	for _, exact := range searched(r.Groups) {
		if exact.row.variant() != "unrolled" {
			continue
		}
		base := exact.row.on(exact.row.method())
		for _, x := range []struct {
			behind, says string
			judge        side
		}{
			{"/second-order", "the difference with ε = 0.01/‖v‖ leads θ elsewhere than the exact gradient, distance " +
				"over its way", verdict.Above},
			{"/second-order-small", "with ε = 0.0001/‖v‖ it does not, distance over the way", verdict.Below},
			{"", "nor where first order does, distance over the way", verdict.Above},
		} {
			for _, f := range searched(r.Groups) {
				if f.row == exact.row.on(exact.row.method()+x.behind) {
					c := verdict.Claim(fmt.Sprintf("own: %s: %s", base.title(), x.says), secondOrderSource)
					c.Note = fmt.Sprintf("ours is ‖θ − θ*‖ over ‖θ* − θ¹‖ at the last epoch, θ* by the exact "+
						"gradient, of searches with the same start and batches; "+
						"what is below %v we call the same", separated)
					s, err := r.Params.separation(f, exact)
					claims = append(claims, x.judge(c, s, err, separated))
				}
			}
		}
	}
	return claims
}

// side is Above or Below of package verdict.
type side func(runs.Claim, runs.Summary, error, float64) runs.Claim

// separation summarizes over seeds the distance between the ends of exact and other searches, relative to the way of
// the exact ones.
func (p Figure1Params) separation(other, exact found) (runs.Summary, error) {
	if len(other.finished()) != p.Seeds || len(exact.finished()) != p.Seeds {
		return runs.Summary{}, fmt.Errorf("%d and %d of %d seeds", len(other.finished()), len(exact.finished()),
			p.Seeds)
	}
	s, err := verdict.OverSeeds(p.Seeds, p.Confidence, func(seed int) (float64, error) {
		a, b := other.records[seed], exact.records[seed]
		start, last := slices.Concat(exact.theta(b, 0)...), epochs(b)
		end := slices.Concat(exact.theta(b, last)...)
		reached := slices.Concat(other.theta(a, last)...)
		way := floats.Distance(end, start, 2)
		if way == 0 {
			return 0, fmt.Errorf("θ has not moved")
		}
		return floats.Distance(reached, end, 2) / way, nil
	})
	return s.Within(0, math.Inf(1)), err
}
