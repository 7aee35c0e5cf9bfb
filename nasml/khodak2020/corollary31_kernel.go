package khodak2020

import (
	"fmt"
	"slices"

	"gonum.org/v1/gonum/floats"

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

// judgeKernelRate judges Corollary A.3's slope with enough features.
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

// judgeKernelFeatures judges that fewer features than √|T|·log|T| cost risk.
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
