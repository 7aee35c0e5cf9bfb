package li2021

import (
	"fmt"
	"math"
	"math/big"
	"slices"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/supernet"
)

// judgeTable1 judges the numbers of parameters of Table 4, the size of the space (Appendix C.1), the errors of Table 1
// at the paper's scale and, at every scale, which cell is better.
func judgeTable1(r *table1) []runs.Claim {
	genotypes := study.Map(r.Groups.Trials(), func(c cell) named { return c.named })
	claims := slices.Concat(judgeCounts(r), judgeSpace(claimsFrom(r, "Appendix C.1"), genotypes), judgeErrors(r))
	for _, base := range table1Rivals {
		claims = append(claims, judgeRival(r, "GAEA PC-DARTS", base))
	}
	return claims
}

var table1Rivals = []string{"PC-DARTS", "DARTS (2nd order)", "DARTS (1st order)"}

func judgeCounts(r *table1) (claims []runs.Claim) {
	p, quick, why := r.Params, Table1Quick, ""
	if p.CountedChannels != quick.CountedChannels || p.CountedCells != quick.CountedCells ||
		p.CountedClasses != quick.CountedClasses {
		why = "counted in another network than the paper's of 36 channels, 20 cells and 10 classes"
	}
	for _, l := range linesOf(publishedCIFAR, r.Groups) {
		claims = append(claims, l.judgeParameters(claimsFrom(r, "Table 4"), l.parameters(), why)...)
	}
	return claims
}

func claimsFrom[P, T any](r *lab.Result[P, T], source string) func(name string) lab.Claim {
	return func(name string) lab.Claim { return r.Claim("%s", name).From(source) }
}

// judgeParameters judges a printed number of parameters to its last digit; 0 means that it is unknown.
func (row cellRow) judgeParameters(claim func(name string) lab.Claim, parameters int, why string) []runs.Claim {
	if row.params == 0 {
		return nil
	}
	c := claim(listed(row.ids.params, row.method+": parameters, M")).Says(row.params)
	c.Tolerance = 0.05
	if parameters == 0 {
		why = "the paper does not say which cell it is"
	}
	if why != "" {
		return []runs.Claim{c.NotRun("%s", why)}
	}
	c = c.Noting("the tolerance is half of the last printed digit")
	if row.genotype == "DARTS_V1" {
		c.Note += "; Liu+ 2019 gave this cell away as their result of first order, and print 3.3 M for it"
	}
	return []runs.Claim{verdict.Exactly(c.Claim, millions(parameters), row.params, 0.05)}
}

func millions(count int) float64 { return float64(count) / 1e6 }

// The DARTS space in Appendix C.1 and in Liu+ 2019, Section 2.3.
const (
	dartsEdges      = 14
	dartsOperations = 8
	dartsMagnitude  = 18 // of the number of architectures
)

// judgeSpace judges the size of the space, and that the cells lie in it.
func judgeSpace(claim func(name string) lab.Claim, genotypes []named) []runs.Claim {
	space := supernet.DARTS
	count, _ := new(big.Float).SetInt(space.Architectures()).Float64()
	outside := 0
	for _, g := range genotypes {
		if space.CheckGenotype(g.genotype) != nil {
			outside++
		}
	}
	return []runs.Claim{
		verdict.Exactly(claim("[LI225] edges of a cell of the space").Claim, float64(len(space.Edges())),
			dartsEdges, 0),
		verdict.Exactly(claim("[LI226] operations of an edge, with zero").Claim, float64(space.Options()),
			dartsOperations, 0),
		verdict.Exactly(claim("own: architectures of the space, power of ten").
			From("ours, on Liu+ 2019, Section 2.3").Noting("the logarithm, with tolerance ½").Claim,
			math.Log10(count), dartsMagnitude, 0.5),
		verdict.None(claim("own: cells that lie outside of the space").Claim, outside, len(genotypes)),
	}
}

// judgeErrors judges the average and the best test errors of the paper's rows.
func judgeErrors(r *table1) (claims []runs.Claim) {
	lines := linesOf(publishedCIFAR, r.Groups)
	for _, l := range lines {
		claim := func(ids, which string) lab.Claim {
			name := fmt.Sprintf("%s: %s test error on CIFAR-10, %%", l.method, which)
			c := claimsFrom(r, "Table 1")(listed(ids, name))
			c.Tolerance = paperNumber(l.average.std)
			return c
		}
		average, best := claim(l.ids.average, "average").Says(l.average.mean), claim(l.ids.best, "best").Says(l.best)
		judged := []runs.Claim{average.Claim, best.Claim}
		if why := whyNotJudged(r, l); why != "" {
			judged = []runs.Claim{average.NotRun("%s", why), best.NotRun("%s", why)}
		} else {
			errors := l.errors("test_error")
			judged[0] = average.Family(len(lines)).Mean(errors).Near(l.average.mean, l.average.std)
			judged[1] = verdict.Exactly(best.Claim, slices.Min(errors), l.best, max(l.average.std, 0.005))
		}
		for i, printed := range []float64{l.average.mean, l.best} {
			if !l.extra && printed > 0 {
				claims = append(claims, judged[i])
			}
		}
	}
	return claims
}

// whyNotJudged is why the errors of a line are not compared with the paper's.
func whyNotJudged(r *table1, l cellLine) string {
	switch {
	case l.cell == nil:
		return "the paper does not say which cell it is"
	case r.Params.Data != data.CIFAR10:
		return fmt.Sprintf("errors are on %s", r.Params.Data)
	case r.Params.reduced("cifar-10"):
		return "errors at a reduced scale are not the paper's; --scale paper has its 600 epochs"
	case slices.Contains(r.Groups.Records(), nil):
		return "not all trainings were run"
	}
	return ""
}

// judgeRival judges that one cell has a lower error than another, seed by seed.
func judgeRival(r *table1, better, worse string) runs.Claim {
	c := r.Claim("[LI004] %s: lower average test error than %s", better, worse).From("Table 1").
		Family(len(table1Rivals))
	find := func(method string) (cellLine, []float64) {
		for _, l := range linesOf(publishedCIFAR, r.Groups) {
			if l.method == method && l.cell != nil {
				return l, l.errors("test_error")
			}
		}
		return cellLine{}, nil
	}
	a, ours := find(better)
	b, theirs := find(worse)
	if a.cell == nil || b.cell == nil {
		return c.NotRun("one of the two is not among Genotypes")
	}
	c = c.Says(a.average.mean - b.average.mean)
	if len(ours) != r.Params.Seeds || len(theirs) != r.Params.Seeds {
		return c.NotRun("%d and %d of %d seeds", len(ours), len(theirs), r.Params.Seeds)
	}
	if r.Params.reduced("cifar-10") {
		c = c.Noting("at a reduced scale, of which only the sign is judged")
	}
	return c.Difference(ours, theirs).Below(0)
}
