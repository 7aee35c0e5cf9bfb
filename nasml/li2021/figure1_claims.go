package li2021

import (
	"math"
	"slices"

	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/supernet"
)

// figure1Claim is a claim about a row, with its source in the paper.
func figure1Claim(r *figure1, w row, format string, args ...any) lab.Claim {
	c := r.Claim(format, args...)
	panel := map[string]string{"": "right", "nasbench201": "right", "darts": "left", "1shot1-s1": "middle"}[w.space()]
	if panel == "" {
		return c.From("Section 4.1")
	}
	return c.From("Section 4.1 and Figure 1 (" + panel + ")")
}

// judgeFigure1 judges that entropy starts at ln |O|, that GAEA's is below its base method's from epoch 2 on, and that
// its supernet loses less accuracy by discretisation (Section 4.1, DARTS space). Accuracies and distances from the
// paper's curves are judged at the paper's scale only.
func judgeFigure1(r *figure1) []runs.Claim {
	rows := searched(r.Groups)
	claims := judgeStarts(r)
	pairs := pairs(rows)
	for _, p := range pairs {
		claims = append(claims, judgeBelow(r, p[0], p[1], len(pairs)), judgeDrop(r, p[0], p[1], len(pairs)))
	}
	for _, f := range rows {
		if x, _ := f.publishedEntropy(1); len(x) == 0 {
			continue
		}
		claims = append(claims, f.distance().Claim(figure1Claim(r, f.row,
			"own: %s: distance of our mean entropy from the paper's curve, nats", f.row.named()).Claim, "epoch"))
		claims = append(claims, judgeAudit(r, f)...)
	}
	return slices.Concat(claims, judgeSecondOrder(r), judgeGradients(r))
}

func judgeStarts(r *figure1) (claims []runs.Claim) {
	for _, f := range searched(r.Groups) {
		n := f.blocks[0].Options
		c := figure1Claim(r, f.row, "own: %s: entropy starts at ln %d", f.row.named(), n)
		claims = append(claims, f.judgeStart(c, n))
	}
	return claims
}

// judgeStart compares the first entropy of operations with ln n, on the seed furthest from it.
func (f found) judgeStart(c lab.Claim, n int) runs.Claim {
	want := math.Log(float64(n))
	c.Paper, c.Tolerance = runs.Number(want), 1e-4
	starts := f.column("entropy", 0)
	if len(starts) == 0 {
		return c.NotRun("no search was run")
	}
	furthest := starts[0]
	for _, x := range starts {
		if math.Abs(x-want) > math.Abs(furthest-want) {
			furthest = x
		}
	}
	return verdict.Exactly(c.Noting("ours is the seed furthest from it").Claim, furthest, want, 1e-4)
}

// pairs are the compared rows: a method and GAEA with it.
func pairs(rows []found) (all [][2]found) {
	for _, f := range rows {
		for _, g := range rows {
			if f.row.on("gaea-"+f.row.search()) == g.row {
				all = append(all, [2]found{f, g})
			}
		}
	}
	return all
}

// publishedAudit are the validation accuracies of supernets before and after discretisation, in percent (Section 4.1),
// with the ids of their claims.
var publishedAudit = map[row][2]struct {
	id       string
	accuracy float64
}{
	"pc-darts@darts": {{"LI035", 72.17}, {"LI036", 15.27}}, "gaea-pc-darts@darts": {{"LI037", 75.07}, {"LI038", 33.23}},
}

// ownScale is why a number of the paper is not judged at another scale.
const ownScale = "another scale than the paper's: not judged"

// judgeAudit compares the accuracy of the supernet at the last epoch, before and after discretisation, at the paper's
// settings or its code's.
func judgeAudit(r *figure1, f found) (claims []runs.Claim) {
	for i, of := range []struct{ what, series string }{{"before", "supernet"}, {"after", "discrete"}} {
		paper, ok := publishedAudit[f.row]
		if !ok {
			return nil
		}
		c := r.Claim("[%s] %s: accuracy of the supernet %s discretisation, percent", paper[i].id, f.row.named(),
			of.what).Family(2 * len(publishedAudit))
		judged := c.Of(runs.Summarize(percents(f.column(of.series, -1)), c.Confidence)).Near(paper[i].accuracy, 5)
		if r.Params.reduced() {
			judged.Holds, judged.Note = runs.NotKnown, ownScale
		}
		claims = append(claims, judged)
	}
	return claims
}

// judgeBelow compares the entropies of a pair epoch by epoch; the least clear epoch decides the claim.
func judgeBelow(r *figure1, base, gaea found, pairs int) runs.Claim {
	ids := map[string]string{supernet.NASBench201.Name: "LI034 RO019", supernet.DARTS.Name: "LI032"}
	c := figure1Claim(r, base.row, "%s", listed(ids[base.settings.Space],
		"entropy of "+gaea.row.named()+" below "+base.row.title()+" from epoch 2 on")).Says(0).
		Noting("ours is the difference at the epoch where it is least clear").
		Family(pairs * max(1, min(base.settings.Epochs, gaea.settings.Epochs)-1))
	var worst runs.Claim
	for e := 2; ; e++ {
		a, b := gaea.column("entropy", e), base.column("entropy", e)
		switch {
		case (len(a) == 0 || len(b) == 0) && e == 2:
			return c.NotRun("needs two epochs of both")
		case len(a) == 0 || len(b) == 0:
			return worst
		}
		d := r.Params.below(c, a, b)
		if !d.Hi.Valid() {
			return d
		}
		if e == 2 || d.Hi > worst.Hi {
			worst = d
		}
	}
}

// judgeDrop compares the loss of accuracy by discretisation at the last epoch.
func judgeDrop(r *figure1, base, gaea found, pairs int) runs.Claim {
	other := "another space and scale than the paper's"
	if base.row.space() == "darts" {
		other = "at the scale of the parameters"
	}
	c := r.Claim("[LI039] %s loses less accuracy by discretisation than %s, percentage points", gaea.row.named(),
		base.row.title()).From("Section 4.1 (DARTS space: 41.84 against 56.90 points)").Says(41.84-56.90).
		Noting("ours is the difference of the drops at the last epoch, %s; only its sign is judged", other)
	return r.Params.below(c.Family(pairs), gaea.drops(), base.drops())
}

func (f found) drops() []float64 {
	drops := f.column("supernet", -1)
	for i, after := range f.column("discrete", -1) {
		drops[i] = 100 * (drops[i] - after)
	}
	return drops
}
