package oymak2021

import (
	"math"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/oymak2021/internal/activationsearch"
	"github.com/nasml/lab/nasml/oymak2021/internal/neural"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/plots"
)

// drawBound shows, row by row, the data-dependent term and the risk of α̂ over n_T; the validation gap over n_V and
// over h; and the term and the test error for labels along the kernel's eigenvectors.
func drawBound(r *theorem3, f *lab.Picture) {
	const term = `$2B\sqrt{y^⊤K_α^{-1}y/n_T}$`
	p := r.Params
	f.Style.Aspect = 0.5
	f.Row(trainPanel(r, "(a) data-dependent term", term+", best $α$", plots.Log10, bestTerm),
		trainPanel(r, "(b) risk of $α̂$", "0-1 risk", plots.Linear, selectedRisk))
	f.Row(validationPanel(r), sizePanel(r))
	f.Row(rankPanel(r, "(e) alignment: term", term, plots.Log10, "term"),
		rankPanel(r, "(f) alignment: test error", "0-1 test error", plots.Linear, "error"))
	f.Say("$σ_α$ over %s; $K_α$ is divided by $c_0$; %s; slope: the theorem's rate, whose constant is unknown.",
		strings.Join(p.Activations, ", "), r.Interval("bars", p.Seeds, "seed"))
	f.Say("(a) and (b): $k = %d$; (c) and (d): kernels of infinite width, product, $n_T = %d$.", p.Width, p.SizeTrain)
}

func trainPanel(r *theorem3, title, label string, scale plots.Scale, of func(*runs.Record) float64) plots.Panel {
	panel := plots.Panel{
		Title: title, X: plots.Axis{Label: "training examples $n_T$", Scale: plots.Log2, Ticks: ticks(r.Params.Trains)},
		Y: plots.Axis{Label: label, Scale: scale},
	}
	for _, source := range theorem3Sources {
		panel.Series = append(panel.Series, curve(sourceNames[source], study.Floats(r.Params.Trains),
			listsOf(ofSource(r, source), of), scale, r.Confidence))
	}
	return panel
}

// bestTerm is min_α of the data-dependent term.
func bestTerm(record *runs.Record) float64 { return slices.Min(record.Series["term"]) }

// tailT is the t of the bound's probability, 4(e^{−t} + …) = 0.2.
const tailT = 3.0

func (p Theorem3Params) constantOf(record *runs.Record) (constant float64) {
	for v, n := range p.Validations {
		second := math.Sqrt((float64(len(p.Activations)) + tailT) / float64(n))
		constant = max(constant, (record.Series["selected_max"][v]-bestTerm(record)-p.Epsilon)/second)
	}
	return constant
}

func judgeBound(r *theorem3) []runs.Claim {
	p := r.Params
	var constants []float64
	telling, violated := 0, map[uint64]bool{}
	for _, record := range r.Part("trains").Where(func(t activationsearch.Part) bool {
		return t.Source.Data != neural.Flipped
	}).Records() {
		constant := p.constantOf(record)
		constants = append(constants, constant)
		if bestTerm(record) < 1 {
			telling++
		}
		if constant > 1 {
			violated[record.Trial.Seed] = true
		}
	}
	n := float64(p.Trains[0])
	allowed := 4 * (math.Exp(-tailT) + math.Pow(n, -3) + math.Exp(-10*float64(len(p.Activations))))
	outside := verdict.Share{Yes: float64(len(violated)), Of: float64(p.Seeds), Confidence: r.Confidence}
	return []runs.Claim{
		verdict.Every(r.Claim("[thm3-bound] 0-1 risk of α̂ within the bound, C = 1").
			Noting("ours is the C that the largest risk over all validation sets needs (0: the first term suffices); "+
				"the first term says something, < 1, in %d of %d runs; C is not given in the paper",
				telling, len(constants)).Claim, constants, 1),
		outside.AtMost(r.Claim("[thm3-prob] share of seeds outside the bound, C = 1, t = 3").
			Noting("seeds of which any validation set of any run is outside").Claim, allowed),
		r.Claim("[thm3-bound] first term falls as n_T^(−1/2) on aligned labels").
			Noting("ours is the exponent of min_α 2B√(yᵀK̄_α⁻¹y/n_T) in n_T for labels with a margin").
			Of(verdict.Slopes(study.Floats(p.Trains),
				study.Columns(listsOf(ofSource(r, neural.Cap), bestTerm)), r.Confidence)).Near(-0.5, 0.1),
		judgeCap(r),
	}
}

func judgeCap(r *theorem3) runs.Claim {
	var ratios []float64
	for _, record := range ofSource(r, neural.Cap).Records() {
		for a, term := range record.Series["term"] {
			ratios = append(ratios, term/record.Series["cap"][a])
		}
	}
	return verdict.Every(r.Claim("own finding: first term at most 2B/(cos φ |Σαⱼ Eσⱼ′| √n_T) on labels with a margin").
		From(notInPaper).Noting("ours is the ratio; K̄_α ⪰ (Σαⱼ Eσⱼ′)²XXᵀ, and y = Xe₁/cos φ").Claim, ratios, 1)
}
