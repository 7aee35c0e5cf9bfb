package khodak2020

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/nasml/lab/nasml/runs"
)

// slopeTolerance is how far a measured exponent may be from a rate's.
const slopeTolerance = 0.05

// jackknife is the summary of a statistic of means over seeds: columns[i] has
// the values of point i, a seed each, and f maps the means of all points to a
// number. Its mean and interval come from the pseudovalues
// n·f(all) − (n−1)·f(without seed j).
func jackknife(columns [][]float64, confidence float64, f func(means []float64) float64) (runs.Summary, error) {
	if len(columns) == 0 || len(columns[0]) < 2 {
		return runs.Summary{}, errors.New("needs two seeds or more")
	}
	n := len(columns[0])
	means := make([]float64, len(columns))
	for i, column := range columns {
		if len(column) != n {
			return runs.Summary{}, fmt.Errorf("point %d has %d of %d seeds", i, len(column), n)
		}
		means[i] = stat.Mean(column, nil)
	}
	whole := f(means)
	if math.IsNaN(whole) { // a slope over one point
		return runs.Summary{}, errors.New("a slope needs two different sizes or more")
	}
	pseudo, without := make([]float64, n), make([]float64, len(columns))
	for j := range n {
		for i, column := range columns {
			without[i] = (means[i]*float64(n) - column[j]) / float64(n-1)
		}
		pseudo[j] = float64(n)*whole - float64(n-1)*f(without)
	}
	return runs.Summarize(pseudo, confidence)
}

// slope is the exponent of means over x by least squares on logarithms.
func slope(xs []float64) func([]float64) float64 {
	return func(means []float64) float64 {
		lx, ly := make([]float64, len(xs)), make([]float64, len(xs))
		for i := range xs {
			lx[i], ly[i] = math.Log(xs[i]), math.Log(max(means[i], 1e-300))
		}
		_, b := stat.LinearRegression(lx, ly, nil, false)
		return b
	}
}

// judged fills a claim with a summary and judges it by where its interval
// lies: holds and fails say when the interval decides; else it is undecided.
func judged(c runs.Claim, s runs.Summary, err error, holds, fails func(lo, hi float64) bool) runs.Claim {
	if err != nil {
		c.Note = joined("not run: "+err.Error(), c.Note)
		return c
	}
	c.Ours, c.Lo, c.Hi = runs.Number(s.Mean), s.Lo, s.Hi
	lo, hi := float64(s.Lo), float64(s.Hi)
	switch {
	case !s.Lo.Valid() || !s.Hi.Valid():
		c.Note = joined(c.Note, "undecided: too few seeds for an interval")
	case holds(lo, hi):
		c.Holds = runs.Holds
	case fails(lo, hi):
		c.Holds = runs.Fails
	default:
		c.Note = joined(c.Note, "undecided: the interval holds the border")
	}
	return c
}

// joined are two notes, of which one may be empty.
func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

// atMost and atLeast judge an interval against a border.
func atMost(border float64) (holds, fails func(lo, hi float64) bool) {
	return func(_, hi float64) bool { return hi <= border }, func(lo, _ float64) bool { return lo > border }
}

func atLeast(border float64) (holds, fails func(lo, hi float64) bool) {
	return func(lo, _ float64) bool { return lo >= border }, func(_, hi float64) bool { return hi < border }
}

// Check works through the claims of Section 3 and Appendix A. Names begin with
// what the claim is about; a name that ends in "(assumption broken)" is a case
// in which the theorem promises nothing and which is expected to come out the
// other way, so that the check can tell.
func (r *Corollary31Result) Check() []runs.Claim {
	claims := []runs.Claim{r.checkEntropy(), r.checkBrokenEntropy()}
	claims = append(claims, r.checkBall()...)
	claims = append(claims,
		r.checkCoverage("thmA2: excess risk beyond the bound, share of validation sets", "Theorem A.2", "sum", "broken_a2", 3),
		r.checkCoverage("thm31: excess risk beyond the bound, share of validation sets", "Theorem 3.1", "sum", "broken_31", 3),
		r.checkCoverage("corA4: excess risk beyond the bound without regularisation, share", "Corollary A.4", "none", "broken_a4", 4),
		r.checkTrain("mean"), r.checkTrainConstant(), r.checkTrain("sum"), r.checkLambda(),
		r.checkValid(), r.checkTight(), r.checkTightEnd(), r.checkDeviation(),
	)
	claims = append(claims, r.checkKernel()...)
	return append(append(claims, r.checkJoint()...), checkNASCount())
}

func claim31(name, place string) runs.Claim { return runs.NewClaim(name, "Khodak+ 2020, "+place) }

// checkEntropy compares the version entropy of singletons with log|C|.
func (r *Corollary31Result) checkEntropy() runs.Claim {
	c := claim31("def31-singleton: Λ of a strongly convex problem at most log|C|, all ε", "Sec. 3 and Corollary A.2")
	limit := math.Log(float64(slices.Max(r.Params.Counts)))
	c.Paper, c.Tolerance = runs.Number(limit), 0
	var largest []float64
	for _, record := range r.parts["cover"] {
		largest = append(largest, slices.Max(record.Series["upper"]))
	}
	c.Note = "ours is the largest upper bound (greedy cover in the sup norm over all atoms) over ε and seeds"
	if len(largest) == 0 {
		c.Note = "not run"
		return c
	}
	c.Ours, c.Holds = runs.Number(slices.Max(largest)), runs.Judge(slices.Max(largest) <= limit+1e-12)
	return c
}

// checkBrokenEntropy looks at an objective that is not strongly convex.
func (r *Corollary31Result) checkBrokenEntropy() runs.Claim {
	c := claim31("def31-finite: without regularisation one configuration alone has Λ > log|C| (assumption broken)", "Sec. 3")
	limit := math.Log(float64(slices.Max(r.Params.Counts)))
	c.Paper = runs.Number(limit)
	c.Note = fmt.Sprintf("ours is a lower bound of log N(H_c, ε) at ε = %v from %d members of a version space: the term max_c log N that the paper adds is not 0 here", r.Params.Scales[0], r.Params.Members)
	s, err := runs.Summarize(r.column("cover", "unregularised", 0), r.Params.Confidence)
	if r.Params.JointDim <= r.Params.JointSize || math.Log(float64(r.Params.Members)) <= limit {
		c.Note += "; not decidable with these parameters: needs JointDim above JointSize and Members above |C|"
		return c
	}
	holds, fails := atLeast(limit)
	return judged(c, s, err, holds, fails)
}

// checkBall judges Theorem A.1 for every Lipschitz constant on a ball.
func (r *Corollary31Result) checkBall() []runs.Claim {
	var claims []runs.Claim
	const m = 2000
	bound := 2 * math.Exp(-m*epsilonA1*epsilonA1/2)
	for i, l := range r.Params.Lipschitz {
		c := claim31(fmt.Sprintf("thmA1: P(sup gap ≥ 3ε) at most the bound, L = %v", l), "Theorem A.1")
		c.Paper = runs.Number(bound)
		c.Note = fmt.Sprintf("functions with |h| ≤ ε = %v: one ball; loss min(1, L|h|), m = %d", epsilonA1, m)
		if l > 3 {
			c.Name = fmt.Sprintf("thmA1: P(sup gap ≥ 3ε) above the printed bound for L = %v (our finding)", l)
			c.Note += "; the printed bound does not contain L: it needs N(H, ε/L), or L ≤ 5/4 as our derivation in the notebook has it"
		}
		shares := r.column("ball", "broken", i)
		if len(shares) == 0 {
			c.Note = "not run"
			claims = append(claims, c)
			continue
		}
		// Samples that are all on one side leave no interval of Student's.
		c.Ours = runs.Number(stat.Mean(shares, nil))
		beyond := stat.Mean(shares, nil) > bound
		c.Holds = runs.Judge(beyond == (l > 3))
		claims = append(claims, c)
	}
	return claims
}

// checkCoverage judges how often a bound was broken, over all |V|, |C|, draws
// and seeds. The seeds are the independent units: P ≤ kδ for each.
func (r *Corollary31Result) checkCoverage(name, place, reading, series string, k float64) runs.Claim {
	c := claim31(name, place)
	border := k * r.Params.Delta
	c.Paper, c.Tolerance = runs.Number(border), 0
	var shares, slack []float64
	for _, record := range r.parts[selectionName(reading, r.Params.At)] {
		shares = append(shares, slices.Max(record.Series[series]))
		for i, e := range record.Series["excess"] {
			slack = append(slack, e/record.Series["bound"][i])
		}
	}
	s, err := runs.Summarize(shares, r.Params.Confidence)
	c.Note = fmt.Sprintf("ours is the share at the worst |V| and |C| of each seed, ε* measured on c*; at most %gδ = %.3g promised", k, border)
	if len(slack) > 0 {
		c.Note += fmt.Sprintf("; the excess risk is %.2g of Theorem A.2's bound on average, so that only a constant far too small would be seen", stat.Mean(slack, nil))
	}
	holds, fails := atMost(border)
	return judged(c, s, err, holds, fails)
}

// checkTrain judges the slope of c*'s excess risk over |T| for a reading of λ.
func (r *Corollary31Result) checkTrain(reading string) runs.Claim {
	name := "corA1: slope of c*'s excess risk over |T| at most −1/2, λ of the mean loss"
	if reading == "sum" {
		name = "corA1: the same with λ of the summed loss, as printed"
	}
	c := claim31(name, "Corollary A.1")
	c.Paper, c.Tolerance = -0.5, slopeTolerance
	c.Note = "ours is the log–log slope with a jackknife interval over seeds; a bound O(|T|^−1/2) asks for no more than −1/2"
	s, err := jackknife(r.trainColumns(reading), r.Params.Confidence, slope(floats(r.Params.Train)))
	holds, fails := atMost(-0.5 + slopeTolerance)
	return judged(c, s, err, holds, fails)
}

// checkTrainConstant is the constant that Corollary A.1 needs.
func (r *Corollary31Result) checkTrainConstant() runs.Claim {
	c := claim31("corA1: constant of √((‖w*‖²+1)/|T|·log 1/δ) that the data need, at most 1, λ of the mean loss", "Corollary A.1")
	c.Paper, c.Note = 1, "the paper has O(·): the constant 1 is ours; ours is the largest ratio over |T|"
	s, err := jackknife(r.trainColumns("mean"), r.Params.Confidence, func(means []float64) float64 {
		worst := 0.0
		for i, m := range means {
			worst = max(worst, m/r.rateA1(r.Params.Train[i]))
		}
		return worst
	})
	holds, fails := atMost(1)
	return judged(c, s, err, holds, fails)
}

// checkLambda compares the two readings of λ where |T| is nearest to d.
func (r *Corollary31Result) checkLambda() runs.Claim {
	c := claim31("corA1-lambda: at |T| ≈ d the printed λ on the summed loss has more excess risk than on the mean", "Corollary A.1 with Setting A.2")
	c.Paper = 0
	near := r.Params.Train[0]
	for _, n := range r.Params.Train {
		if math.Abs(math.Log(float64(n)/float64(r.Params.Dim))) < math.Abs(math.Log(float64(near)/float64(r.Params.Dim))) {
			near = n
		}
	}
	c.Note = fmt.Sprintf("our reading: λ belongs to the mean loss; ours is the difference of the excess risks of c*, sum less mean, at |T| = %d, d = %d", near, r.Params.Dim)
	s, err := runs.MeanDiff(r.value(selectionName("sum", near), "best"), r.value(selectionName("mean", near), "best"), r.Params.Confidence)
	holds, fails := atLeast(0)
	return judged(c, s, err, holds, fails)
}

// checkValid judges the slope of the choice's cost over |V|.
func (r *Corollary31Result) checkValid() runs.Claim {
	c := claim31("corA2: slope of the choice's excess over the best trained c in |V| at most −1/2", "Corollaries 3.1 and A.2")
	c.Paper, c.Tolerance = -0.5, slopeTolerance
	c.Note = fmt.Sprintf("|C| = %d, |T| = %d, jackknife interval over seeds", r.Params.Counts[len(r.Params.Counts)-1], r.Params.At)
	s, err := jackknife(r.validColumns("selection"), r.Params.Confidence, slope(floats(r.Params.Valid)))
	holds, fails := atMost(-0.5 + slopeTolerance)
	return judged(c, s, err, holds, fails)
}

// checkTight is the dependence on |C| where it is largest.
func (r *Corollary31Result) checkTight() runs.Claim {
	c := claim31("corA2-C: max gap at most √(log(2|C|)/2|V|) at every |C|, independent losses", "Corollaries 3.1 and A.2")
	c.Paper, c.Note = 1, "ours is the largest ratio over |C| with its interval"
	ratios := r.tightRatios()
	var worst runs.Summary
	var err error
	for _, column := range ratios {
		s, e := runs.Summarize(column, r.Params.Confidence)
		if e != nil {
			err = e
		} else if s.Mean > worst.Mean {
			worst = s
		}
	}
	holds, fails := atMost(1)
	return judged(c, worst, err, holds, fails)
}

// checkTightEnd says that the logarithm is needed: the ratio stays near 1.
func (r *Corollary31Result) checkTightEnd() runs.Claim {
	last := len(r.Params.TightCounts) - 1
	c := claim31(fmt.Sprintf("corA2-C: the root of the logarithm is reached: ratio at |C| = %d at least 0.8", r.Params.TightCounts[last]), "Corollaries 3.1 and A.2")
	c.Paper, c.Note = 1, "the bound 0.8 is ours; without log|C| the ratio would go to 0"
	s, err := runs.Summarize(r.tightRatios()[last], r.Params.Confidence)
	holds, fails := atLeast(0.8)
	return judged(c, s, err, holds, fails)
}

// checkDeviation is the probability of the deviation term on the tight case.
func (r *Corollary31Result) checkDeviation() runs.Claim {
	c := claim31("thmA2: deviation beyond √((log|C| + log 1/δ)/2|V|), share, tight case", "Theorem A.2, step 1")
	c.Paper = runs.Number(r.Params.Delta)
	var worst []float64
	for _, record := range r.parts["uniform"] {
		worst = append(worst, stat.Mean(record.Series["beyond_hoeffding"], nil))
	}
	c.Note = "the paper's term is twice this one; ours is the mean share over |C|, at most δ promised"
	s, err := runs.Summarize(worst, r.Params.Confidence)
	holds, fails := atMost(r.Params.Delta)
	return judged(c, s, err, holds, fails)
}

// checkKernel judges Corollary A.3: the slope with enough features, and that
// fewer features than √|T|·log|T| cost risk.
func (r *Corollary31Result) checkKernel() []runs.Claim {
	factors := r.Params.KernelFactor
	full := slices.Index(factors, 1)
	rate := claim31("corA3: slope of the excess risk over the best RKHS in |T| = |V| at most −1/2, d = √|T|·log(√|T|/δ)", "Corollaries 3.2 and A.3")
	rate.Paper, rate.Tolerance, rate.Note = -0.5, slopeTolerance, "λ = 1/√|T| on the mean loss; jackknife interval over seeds"
	few := claim31("corA3-d: fewer random features have more excess risk", "Corollary A.3")
	few.Paper = 0
	if full < 0 {
		rate.Note, few.Note = "not run: KernelFactor lacks 1", "not run: KernelFactor lacks 1"
		return []runs.Claim{rate, few}
	}
	s, err := jackknife(r.kernelColumns(full), r.Params.Confidence, slope(floats(r.Params.KernelTrain)))
	holds, fails := atMost(-0.5 + slopeTolerance)
	rate = judged(rate, s, err, holds, fails)
	fewest := argmin(factors)
	last := len(r.Params.KernelTrain) - 1
	few.Note = fmt.Sprintf("ours is the difference at κ = %v and κ = 1, |T| = %d", factors[fewest], r.Params.KernelTrain[last])
	s, err = runs.MeanDiff(r.kernelColumns(fewest)[last], r.kernelColumns(full)[last], r.Params.Confidence)
	holds, fails = atLeast(0)
	return []runs.Claim{rate, judged(few, s, err, holds, fails)}
}

// checkJoint compares joint ERM and the bilevel choice at every λ. With much
// regularisation the penalty itself holds joint ERM back.
func (r *Corollary31Result) checkJoint() []runs.Claim {
	var claims []runs.Claim
	for i, lambda := range r.Params.JointLambda {
		joint, bilevel := r.column("joint", "joint", i), r.column("joint", "bilevel", i)
		s, err := runs.MeanDiff(joint, bilevel, r.Params.Confidence)
		gammas := ""
		if len(joint) > 0 {
			gammas = fmt.Sprintf("; mean log₁₀ γ chosen: joint %.2f, bilevel %.2f, of c* %.2f", stat.Mean(r.column("joint", "joint_gamma", i), nil), stat.Mean(r.column("joint", "bilevel_gamma", i), nil), math.Log10(r.Params.Gamma))
		}
		if lambda <= 1 {
			c := claim31(fmt.Sprintf("bilevel-vs-erm: joint ERM has more excess risk than bilevel, λ = %v", lambda), "Sec. 3")
			c.Paper, c.Note = 0, "argued in the paper, not measured; ours is the difference"+gammas
			holds, fails := atLeast(0)
			claims = append(claims, judged(c, s, err, holds, fails))
			continue
		}
		small, e := runs.MeanDiff(r.column("joint", "joint", 0), r.column("joint", "bilevel", 0), r.Params.Confidence)
		c := claim31(fmt.Sprintf("bilevel-vs-erm: the advantage is smaller at λ = %v than at λ = %v (assumption broken)", lambda, r.Params.JointLambda[0]), "Sec. 3")
		c.Paper, c.Note = runs.Number(small.Mean), "a large penalty restrains joint ERM too; ours is the difference of the excess risks at this λ"+gammas
		holds, fails := atMost(float64(small.Lo))
		claims = append(claims, judged(c, s, errors.Join(err, e), holds, fails))
	}
	return claims
}

// checkNASCount counts the configurations of Setting A.3: a DAG of N nodes has
// N(N−1)/2 possible edges, each absent or with one of K operations.
func checkNASCount() runs.Claim {
	c := claim31("nas-configs: (K+1)^(N(N−1)/2) at most K^(N²), N ≤ 20, 2 ≤ K ≤ 20", "Setting A.3")
	c.Paper = 1
	worst := math.Inf(-1)
	for n := 1.0; n <= 20; n++ {
		for k := 2.0; k <= 20; k++ {
			worst = max(worst, n*(n-1)/2*math.Log(k+1)/(n*n*math.Log(k)))
		}
	}
	c.Ours, c.Holds = runs.Number(worst), runs.Judge(worst <= 1)
	c.Note = "ours is the largest ratio of the logarithms; K = 1 is an exception (our finding): one operation or none on each edge are 2^(N(N−1)/2) graphs, more than 1"
	return c
}
