package khodak2020

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/nasml/lab/nasml/khodak2020/internal/excessrisk"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/plots"
)

// kernelQuestion asks how many random features of a kernel are enough.
var kernelQuestion = lab.Question[Corollary31Params, risk]{
	Trials: func(p Corollary31Params) (gs risks) {
		for _, n := range p.KernelTrain {
			gs.Add(kernelName(n), p.Seeds, excessrisk.Kernel{
				Part: "kernel", Instance: p.instance(p.Dim), Range: p.Range, Count: min(8, slices.Max(p.Counts)),
				Train: n, Factor: p.KernelFactor, Delta: p.Delta,
			})
		}
		return gs
	},
	Claims: func(r *corollary31) []runs.Claim { return []runs.Claim{judgeKernelRate(r), judgeKernelFeatures(r)} },
}

func kernelName(train int) string { return fmt.Sprintf("kernel/%d", train) }

// kernel is the excess risk with a factor of features, by |T|.
func kernel(r *corollary31, factor int) [][]float64 {
	return columns(len(r.Params.KernelTrain), func(i int) []float64 {
		return series(r, kernelName(r.Params.KernelTrain[i]), "excess", factor)
	})
}

func kernelPanel(r *corollary31) plots.Panel {
	p := panel("(d) kernels, Cor. A.3",
		plots.Axis{Label: "$|T| = |V|$", Scale: plots.Log2}, plots.Axis{Label: "excess risk", Scale: plots.Log10})
	xs := study.Floats(r.Params.KernelTrain)
	for i, kappa := range r.Params.KernelFactor {
		p.Series = append(p.Series, curve(r, fmt.Sprintf("$κ = %v$", kappa), xs, kernel(r, i), true))
	}
	return p
}

func judgeKernelRate(r *corollary31) runs.Claim {
	c := r.Claim("[corA3 corA3-lambda] slope of the excess risk over the best RKHS in |T| = |V| at most −1/2, " +
		"d = √|T|·log(√|T|/δ)").From("Corollaries 3.2 and A.3")
	full := slices.Index(r.Params.KernelFactor, 1)
	if full < 0 {
		return c.NotRun("KernelFactor lacks 1")
	}
	return halfRate(r, c.Noting("λ = 1/√|T| on the mean loss; jackknife interval over seeds"),
		r.Params.KernelTrain, kernel(r, full))
}

func judgeKernelFeatures(r *corollary31) runs.Claim {
	c := r.Claim("[corA3-d] fewer random features have more excess risk").From("Corollary A.3")
	factors, last := r.Params.KernelFactor, len(r.Params.KernelTrain)-1
	full, fewest := slices.Index(factors, 1), floats.MinIdx(factors)
	if full < 0 {
		return c.NotRun("KernelFactor lacks 1")
	}
	return greater(c.Noting("ours is the difference at κ = %v and κ = 1, |T| = %d", factors[fewest],
		r.Params.KernelTrain[last]), kernel(r, fewest)[last], kernel(r, full)[last])
}

// jointQuestion asks what joint ERM on all data loses against the bilevel choice.
var jointQuestion = lab.Question[Corollary31Params, risk]{
	Trials: func(p Corollary31Params) (gs risks) {
		gs.Add("joint", p.Seeds, excessrisk.Joint{
			Part: "joint", Instance: p.instance(p.JointDim), Range: p.Range, Count: p.JointCount, Size: p.JointSize,
			Lambda: p.JointLambda,
		})
		return gs
	},
	Claims: func(r *corollary31) []runs.Claim {
		return columns(len(r.Params.JointLambda), func(i int) runs.Claim { return judgeJoint(r, i) })
	},
}

func joint(r *corollary31, name string) [][]float64 {
	return columns(len(r.Params.JointLambda), func(i int) []float64 { return series(r, "joint", name, i) })
}

func jointPanel(r *corollary31) plots.Panel {
	xs, label := besideZero(r.Params.JointLambda)
	return panel("(e) bilevel and joint ERM",
		plots.Axis{Label: label, Scale: plots.Log10}, plots.Axis{Label: "excess risk", Scale: plots.Log10},
		curve(r, "joint ERM", xs, joint(r, "joint"), true),
		curve(r, "bilevel", xs, joint(r, "bilevel"), true),
		curve(r, "best trained $c$", xs, joint(r, "best"), true))
}

// besideZero are λ on a logarithmic axis, where 0 has no place: it stands a decade below the smallest one.
func besideZero(lambdas []float64) (xs []float64, label string) {
	smallest := 1.0
	if positive := slices.DeleteFunc(slices.Clone(lambdas), func(v float64) bool { return v == 0 }); len(positive) > 0 {
		smallest = slices.Min(positive)
	}
	label = "$λ$"
	for _, v := range lambdas {
		if v == 0 {
			v, label = smallest/10, "$λ$ (0 at the left end)"
		}
		xs = append(xs, v)
	}
	return xs, label
}

// judgeJoint compares joint ERM and the bilevel choice at a λ. With much
// regularisation the penalty itself holds joint ERM back.
func judgeJoint(r *corollary31, i int) runs.Claim {
	all := func(name string, i int) []float64 { return present(series(r, "joint", name, i)) }
	joint, bilevel := all("joint", i), all("bilevel", i)
	gammas := ""
	if len(joint) > 0 {
		mean := func(name string) float64 { return stat.Mean(all(name, i), nil) }
		gammas = fmt.Sprintf("; mean log₁₀ γ chosen: joint %.2f, bilevel %.2f, of c* %.2f",
			mean("joint_gamma"), mean("bilevel_gamma"), math.Log10(r.Params.Gamma))
	}
	lambda := r.Params.JointLambda[i]
	n := r.Params.familySize(lambda)
	if lambda <= restraining {
		return greater(r.Claim("[bilevel-vs-erm RO017] joint ERM has more excess risk than bilevel, λ = %v", lambda).
			From("Sec. 3").Noting("argued in the paper, not measured; ours is the difference%s", gammas).Family(n),
			joint, bilevel)
	}
	c := r.Claim("[bilevel-vs-erm] the advantage is smaller at λ = %v than at λ = %v (assumption broken)", lambda,
		r.Params.JointLambda[0]).From("Sec. 3").Family(n).Noting("a large penalty restrains joint ERM too; ours is "+
		"the difference of the excess risks at this λ%s", gammas)
	first, err := runs.MeanDiff(all("joint", 0), all("bilevel", 0), c.Confidence)
	larger, also := runs.MeanDiff(joint, bilevel, c.Confidence)
	return c.Says(first.Mean).Of(larger, errors.Join(err, also)).AtMost(float64(first.Lo))
}

// restraining is the λ above which the penalty restrains joint ERM too.
const restraining = 1

// familySize is the number of λ with the same claim as this one: those up to
// restraining have one, those above it another.
func (p Corollary31Params) familySize(lambda float64) (n int) {
	for _, other := range p.JointLambda {
		if (other <= restraining) == (lambda <= restraining) {
			n++
		}
	}
	return n
}
