package roberts

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/roberts/internal/mixture"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/verdict"
	"github.com/nasml/lab/plots"
)

// Theorem4Params are the parameters of Theorem 4: problems of three operations,
// and the spaces whose whole simplex is drawn.
type Theorem4Params struct {
	ProblemParams
	Spaces []string // each three of Activations, "relu/tanh/sin"
	Grid   int      // points along an edge of the simplex
}

// Theorem4Quick and Theorem4Paper differ as those of Theorem 1 do. In the first
// space arg max discretization often fails; in the second, the leaky ReLU is a
// mixture of the other two.
var (
	Theorem4Quick = Theorem4Params{quickProblems, []string{"relu/tanh/sin", "relu/identity/0.8*relu+0.2*identity"}, 28}
	Theorem4Paper = Theorem4Params{paperProblems, Theorem4Quick.Spaces, 28}
)

const (
	theorem4ID     = "roberts/theorem4"
	theorem4Title  = "Three activations: a sufficient condition for the better one to have the larger α"
	theorem4Source = "Roberts+, Theorem 4"
)

func init() {
	catalog.Register(catalog.Entry{
		ID: theorem4ID, Paper: "Roberts+", Title: theorem4Title, Kind: "theorem",
		Notebook: "notebooks/roberts/theorem4_three.ipynb",
		Cost:     catalog.Cost{Quick: "seconds", Paper: "about two minutes on two cores; the project ships its trials"},
	}, Theorem4Quick, Theorem4Paper, Theorem4)
}

// Theorem4Result holds the problems of Theorem 4: those under its assumptions
// first, then one group a space, then the violated ones.
type Theorem4Result struct {
	Params Theorem4Params
	Scale  string // "quick", "paper" or empty for own parameters
	groups []group
	maps   []simplexMap
}

// Theorem4 draws problems of three operations and compares α with the losses:
// under Assumptions 1 to 3, L₁ < L₂ and Condition 3,
//
//	𝓛(f₁, f_{β₁σ₂+(1−β₁)σ₃}) ≥ 𝓛(f₂, f_{β₂σ₁+(1−β₂)σ₃}),
//
// imply α₂ < α₁; the same for every other pair, by symmetry. Of one network a
// space it also classifies every α of the simplex. See Theorem1 for cancelling
// and errors.
func Theorem4(ctx context.Context, p Theorem4Params) (*Theorem4Result, error) {
	if err := p.check(3); err != nil {
		return nil, err
	}
	if p.Grid < 2 || p.Grid > 200 {
		return nil, catalog.Usagef("Grid is %d, want 2 to 200", p.Grid)
	}
	kinds := []mixture.Problems{p.base(3)}
	for _, space := range p.Spaces {
		names, err := p.operationsOf(space)
		if err != nil {
			return nil, err
		}
		if len(names) != 3 {
			return nil, catalog.Usagef("space %q has %d operations, want 3", space, len(names))
		}
		kinds = append(kinds, p.only(names))
	}
	groups, err := simulateAll(ctx, theorem4ID, append(kinds, p.violated(3)...), p.Seeds)
	if err != nil {
		return nil, err
	}
	r := &Theorem4Result{Params: p, Scale: runs.Scale(ctx), groups: groups}
	for _, g := range groups[1 : 1+len(p.Spaces)] {
		d := g.records[0].Series["between"]
		if len(d) != 3 { // the record is elsewhere, see runs.Part
			continue
		}
		r.maps = append(
			r.maps,
			newSimplexMap(g.Only, [][]float64{{0, d[0], d[1]}, {d[0], 0, d[2]}, {d[1], d[2], 0}}, p.Grid),
		)
	}
	return r, nil
}

// simplexMap classifies the points of Δ² for one network: its points [3][…] in
// the order of simplexLabels.
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

// classOf is the position in simplexLabels of α.
func classOf(d [][]float64, alpha []float64) int {
	losses, far := make([]float64, len(alpha)), make([]float64, len(alpha))
	best, most := 0, 0
	for i := range alpha {
		losses[i] = distanceLoss(d, alpha, i)
		far[i] = losses[i] / math.Pow(mixture.Rest(alpha, i), 2)
		if losses[i] < losses[best] {
			best = i
		}
		if alpha[i] > alpha[most] {
			most = i
		}
	}
	if best != most {
		return 2
	}
	for j := range alpha {
		if j != best && far[best] < far[j]*(1-mixture.Tolerance) {
			return 1
		}
	}
	return 0
}

// distanceLoss is Lᵢ from the losses between the operations.
func distanceLoss(d [][]float64, alpha []float64, i int) float64 {
	var sum float64
	for k := range alpha {
		sum += alpha[k] * d[i][k]
		for l := range k {
			sum -= alpha[k] * alpha[l] * d[k][l]
		}
	}
	return sum
}

// Records are the keys of the records behind the result.
func (r *Theorem4Result) Records() []string { return keysOf(r.groups) }

// Figure draws the simplex of each space, by what is true at each α, and what
// violations do to the conclusion.
func (r *Theorem4Result) Figure() plots.Figure {
	style := plots.ICML.Text()
	style.Aspect = 0.88
	var row []plots.Panel
	for _, m := range r.maps {
		row = append(row, m.panel())
	}
	row = append(row, violationPanel(r.groups[1+len(r.maps):], r.Params.Confidence))
	return plots.Figure{
		Name: "roberts-theorem4", Style: style, Panels: [][]plots.Panel{row},
		Caption: "Triangles: every $α ∈ Δ^2$ for one network, $y = f_{σ_α}(x; W)$; at a corner all weight is on one " +
			"operation. Right: " + r.Params.caption() + scaleNote(r.Params),
		Meta: study.Meta(theorem4Title, r.Scale, r.Params),
	}
}

func (m simplexMap) panel() plots.Panel {
	triangle := &plots.Simplex{Grid: m.grid}
	for i, name := range m.names {
		triangle.Corners[i] = shortName(name)
	}
	for class, label := range simplexLabels {
		triangle.Areas = append(triangle.Areas, plots.Area{
			Label: label, Color: [...]string{"#332288", "#DDDDDD", "#E69F00"}[class], Points: m.points[class],
		})
	}
	return plots.Panel{Title: strings.Join(triangle.Corners[:], ", "), Simplex: triangle}
}

// shortName is an activation for an axis.
func shortName(name string) string {
	if name == "0.8*relu+0.2*identity" {
		return "leaky relu"
	}
	return name
}

// Check judges Theorem 4, its lemma and the identity of its proof.
func (r *Theorem4Result) Check() []runs.Claim {
	base, c := r.groups[0], r.Params.Confidence
	ran := base.sum("pairs") > 0
	lemma := identity(runs.NewClaim("[RO007] α_2 = (1−α_1)β, α_3 = (1−α_1)(1−β), β ∈ (0,1)", "Roberts+, Lemma 2"),
		base.most("factor"), ran)
	if base.sum("inside") != base.sum("gammas") {
		lemma.Holds = runs.Fails
		lemma.Note = "some β is 0 or 1"
	}
	condition := base.share("condition", "pairs", c).
		Above(runs.NewClaim("[RO008] Condition 3 can be true (share of pairs)", "Roberts+, Condition 3"), 0)
	claims := []runs.Claim{
		lemma, condition,
		base.share("condition_right", "condition", c).
			Always(runs.NewClaim("[RO009] h = 3, L_1 < L_2 and Condition 3 ⇒ α_2 < α_1", theorem4Source)),
		lossIdentity(runs.NewClaim("[RO010] L_1 = (1−α_1)² 𝓛(f_1, f_{β_1σ_2+(1−β_1)σ_3})", theorem4Source+", proof"),
			base.most("identity"), ran),
		unforeseen(base, c).Above(runs.NewClaim("own: most pairs with α_2 < α_1 are without Condition 3", own), 0.5),
	}
	for _, m := range r.maps {
		claims = append(claims, m.claim())
	}
	return append(claims, violationClaims(r.groups[1+len(r.maps):], c)...)
}

// unforeseen is the share without the condition among the pairs in order.
func unforeseen(g group, confidence float64) verdict.Share {
	return verdict.Share{
		Yes:        g.sum("right") - g.sum("condition_right"),
		Of:         g.sum("right"),
		Confidence: confidence,
		Alike:      g.pairs(),
	}
}

// claim is the share of the simplex where arg max discretization is wrong, for
// the network drawn. It is an area and has no interval.
func (m simplexMap) claim() runs.Claim {
	total := len(m.points[0]) + len(m.points[1]) + len(m.points[2])
	c := runs.NewClaim(fmt.Sprintf("own: arg max is wrong on a part of the simplex of %v", m.names), own)
	c.Ours = runs.Number(float64(len(m.points[2])) / float64(total))
	c.Holds = runs.Judge(len(m.points[2]) > 0)
	c.Note = fmt.Sprintf(
		"one network; the condition guarantees arg max on %.3g of the simplex",
		float64(len(m.points[0]))/float64(total),
	)
	return c
}
