package roberts

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/roberts/internal/mixture"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/plots"
)

// Theorem4Params are the parameters of Theorem 4: problems of three operations,
// and the spaces whose whole simplex is drawn.
type Theorem4Params struct {
	ProblemParams
	Spaces []string // each three of Activations, "relu/tanh/sin"
	Grid   int      `validate:"gte=2,lte=200"` // points along an edge of the simplex
}

// Theorem4Quick and Theorem4Paper differ as those of Theorem 1 do. In the first space arg max discretization often
// fails; in the second, the leaky ReLU is a mixture of the other two.
var (
	Theorem4Quick = Theorem4Params{quickProblems, []string{"relu/tanh/sin", "relu/identity/0.8*relu+0.2*identity"}, 28}
	Theorem4Paper = Theorem4Params{paperProblems, Theorem4Quick.Spaces, 28}
)

// Theorem4 draws problems of three operations and compares α with the losses:
// under Assumptions 1 to 3, L₁ < L₂ and Condition 3,
//
//	𝓛(f₁, f_{β₁σ₂+(1−β₁)σ₃}) ≥ 𝓛(f₂, f_{β₂σ₁+(1−β₂)σ₃}),
//
// imply α₂ < α₁; the same for every other pair, by symmetry. Of one network a
// space it also classifies every α of the simplex.
var Theorem4 = lab.Declare(lab.Entry[Theorem4Params, problems]{
	Of: paper, Name: "theorem4", Kind: lab.Theorem, Source: "Theorem 4", Notebook: "theorem4_three",
	Title: "Three activations: a sufficient condition for the better one to have the larger α",
	Cost:  catalog.Cost{Quick: "seconds", Paper: "about two minutes on two cores; precomputed"},
	Quick: Theorem4Quick, Paper: Theorem4Paper,
	Code: problemsCode, Units: problemUnits, Work: problemWork,
	Rules: func(p Theorem4Params, c *study.Checks) {
		p.rules(3, c)
		for _, space := range p.Spaces {
			names, err := p.operationsOf(space)
			c.Expect(err == nil, "%v", err)
			c.Expect(err != nil || len(names) == 3, "space %q must have 3 operations, got %d", space, len(names))
		}
	},
	Trials: func(p Theorem4Params) (gs problemGroups) {
		gs.Add("assumed", p.Seeds, p.base(3))
		for _, space := range p.Spaces {
			gs.Add("space", p.Seeds, p.only(splitSpace(space)))
		}
		gs.Add("violated", p.Seeds, p.violated(3)...)
		return gs
	},
	Bench: problemBench[Theorem4Params],
	Draw: func(r *theorem4, p *lab.Picture) {
		p.Style.Aspect = 0.88
		p.Row(append(study.Map(simplexMaps(r), simplexMap.panel), violationPanel(r.Part("violated"), r.Confidence))...)
		p.Say("Triangles: every $α ∈ Δ^2$ for one network, $y = f_{σ_α}(x; W)$; at a corner all weight is on one "+
			"operation. Right: %s", r.Params.caption())
	},
	Claims: func(r *theorem4) []runs.Claim {
		return slices.Concat(theorem4Claims(r, countsOf(r.Part("assumed")...)),
			study.Map(simplexMaps(r), simplexMap.claim), violationClaims(r.Part("violated"), r.Confidence))
	},
})

type theorem4 = lab.Result[Theorem4Params, problems]

func theorem4Claims(r *theorem4, base counts) []runs.Claim {
	ran, c := base.sum("pairs") > 0, r.Confidence
	lemma := identity(r.Claim("[RO007] α_2 = (1−α_1)β, α_3 = (1−α_1)(1−β), β ∈ (0,1)").From("Lemma 2"),
		base.most("factor"), ran, ofNumbers)
	if base.sum("inside") != base.sum("gammas") {
		lemma.Holds, lemma.Note = runs.Fails, "some β is 0 or 1"
	}
	return []runs.Claim{
		lemma,
		base.share("condition", "pairs", c).
			Above(r.Claim("[RO008] Condition 3 can be true (share of pairs)").From("Condition 3").Claim, 0),
		base.share("condition_right", "condition", c).
			Always(r.Claim("[RO009] h = 3, L_1 < L_2 and Condition 3 ⇒ α_2 < α_1").Claim),
		identity(r.Claim("[RO010] L_1 = (1−α_1)² 𝓛(f_1, f_{β_1σ_2+(1−β_1)σ_3})").From("Theorem 4, proof"),
			base.most("identity"), ran, ofRoots),
		base.without("condition_right", "right", c).
			Above(ours("most pairs with α_2 < α_1 are without Condition 3"), 0.5),
	}
}

func simplexMaps(r *theorem4) (maps []simplexMap) {
	for _, g := range r.Part("space") {
		d := g.Records[0].Series["between"]
		if len(d) == 3 { // else the record is elsewhere, see runs.Part
			between := [][]float64{{0, d[0], d[1]}, {d[0], 0, d[2]}, {d[1], d[2], 0}}
			maps = append(maps, newSimplexMap(g.Trial.Only, between, r.Params.Grid))
		}
	}
	return maps
}

// simplexMap classifies the points of Δ² for one network: its points [3][…] in the order of simplexLabels.
type simplexMap struct {
	names  []string
	grid   int // points along an edge
	points [3][][]float64
}

var simplexLabels = [3]string{"Condition 3: arg max is right", "right without the condition", "arg max is wrong"}

// newSimplexMap needs nothing but the losses between the operations, D:
//
//	Lᵢ = Σ_k α_k D_ik − ½ Σ_kl α_k α_l D_kl,  Aᵢ = Lᵢ/(1 − αᵢ)² .
func newSimplexMap(names []string, d [][]float64, grid int) simplexMap {
	m := simplexMap{names: names, grid: grid}
	for a := range grid {
		for b := range grid - a {
			// About the middle of a small triangle, and never a tie: no two of the
			// parts 0.31, 0.37 and 0.32 are the same.
			alpha := []float64{(float64(a) + 0.31) / float64(grid), (float64(b) + 0.37) / float64(grid), 0}
			alpha[2] = 1 - alpha[0] - alpha[1]
			class := classOf(d, alpha)
			m.points[class] = append(m.points[class], alpha)
		}
	}
	return m
}

func classOf(d [][]float64, alpha []float64) int {
	losses, far := make([]float64, len(alpha)), make([]float64, len(alpha))
	for i := range alpha {
		losses[i] = distanceLoss(d, alpha, i)
		far[i] = losses[i] / math.Pow(mixture.Rest(alpha, i), 2)
	}
	best := floats.MinIdx(losses)
	if best != floats.MaxIdx(alpha) {
		return 2
	}
	for j := range alpha {
		if j != best && far[best] < far[j]*(1-mixture.Tolerance) {
			return 1
		}
	}
	return 0
}

func distanceLoss(d [][]float64, alpha []float64, i int) (sum float64) {
	for k := range alpha {
		sum += alpha[k] * d[i][k]
		for l := range k {
			sum -= alpha[k] * alpha[l] * d[k][l]
		}
	}
	return sum
}

func (m simplexMap) panel() plots.Panel {
	triangle := &plots.Simplex{Grid: m.grid}
	for i, name := range m.names {
		triangle.Corners[i] = study.Title(shortName(name))
	}
	for class, label := range simplexLabels {
		triangle.Areas = append(triangle.Areas, plots.Area{
			Label: label, Color: [...]string{"#332288", "#DDDDDD", "#E69F00"}[class], Points: m.points[class],
		})
	}
	return plots.Panel{Title: strings.Join(triangle.Corners[:], ", "), Simplex: triangle}
}

func shortName(name string) string {
	if name == "0.8*relu+0.2*identity" {
		return "leaky relu"
	}
	return name
}

// claim is the share of the simplex where arg max discretization is wrong, for
// the network drawn. It is an area and has no interval.
func (m simplexMap) claim() runs.Claim {
	total := len(m.points[0]) + len(m.points[1]) + len(m.points[2])
	c := runs.NewClaim(fmt.Sprintf("own: arg max is wrong on a part of the simplex of %v", m.names), notInPaper)
	c.Ours = runs.Number(float64(len(m.points[2])) / float64(total))
	c.Holds = runs.Judge(len(m.points[2]) > 0)
	c.Note = fmt.Sprintf("one network; the condition guarantees arg max on %.3g of the simplex",
		float64(len(m.points[0]))/float64(total))
	return c
}
