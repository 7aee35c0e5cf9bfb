package roberts

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/nasml/lab/nasml/backend"
	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/roberts/internal/graph"
	"github.com/nasml/lab/nasml/roberts/internal/mixture"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/simplex"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/supernet"
	"github.com/nasml/lab/nasml/trial"
	"github.com/nasml/lab/plots"
)

// Figure1Params are the parameters of Figure 1, a computation graph whose edges mix operations, and of what Section 5
// says of such graphs. The paper prints neither the number of nodes nor the operations, only that an edge has three.
type Figure1Params struct {
	Space         string   // a name of supernet.Spaces
	Without       []string // operations to leave out: the caption says three an edge
	Concentration float64  `validate:"positive"`  // of the Dirichlet distribution of every edge's α
	Seed          int      `validate:"gte=0"`     // of the α that is drawn
	Channels      int      `validate:"gte=1"`     // of a node, in the check of linear graphs
	Seeds         int      `validate:"gte=1"`     // graphs that are checked
	Samples       int      `validate:"gte=1"`     // architectures that are sampled from each
	Confidence    float64  `validate:"gt=0,lt=1"` // of the intervals
}

// Figure1Quick and Figure1Paper differ in the number of graphs and samples.
var (
	Figure1Quick = Figure1Params{
		Space: "nasbench201", Without: []string{"none", "nor_conv_1x1"}, Concentration: 1, Seed: 1,
		Channels: 4, Seeds: 5, Samples: 2000, Confidence: 0.95,
	}
	Figure1Paper = lab.With(Figure1Quick, func(p *Figure1Params) { p.Seeds, p.Samples = 50, 20000 })
)

// Figure1 draws α ∈ Δ^{|O|−1} for every edge of a cell of supernet.Spaces, and checks what Section 5 says of
// computation graphs: that standard operations are 1-positively homogeneous, and that the weights of the edges multiply
// to weights of whole architectures, exactly in linear graphs and not beyond.
var Figure1 = lab.Declare(lab.Entry[Figure1Params, graph.Trial]{
	Of: paper, Name: "figure1", Kind: lab.Figure, Source: "Section 5, note", Notebook: "figure1_graph",
	Title: "A computation graph with a convex combination of operations on each edge",
	Cost:  catalog.Cost{Quick: "seconds", Paper: "about a minute"},
	Quick: Figure1Quick, Paper: Figure1Paper,
	Code:  code.Define("roberts/figure1", "roberts/internal/graph"),
	Note:  func(any) string { return "" }, // the picture is the same at every scale
	Rules: Figure1Params.rules,
	Trials: func(p Figure1Params) (gs lab.Groups[graph.Trial]) {
		space := supernet.Spaces[p.Space].Without(p.Without...)
		gs.Add("graph", p.Seeds,
			graph.Trial{Space: space, Concentration: p.Concentration, Channels: p.Channels, Samples: p.Samples})
		return gs
	},
	Bench:  graphBench,
	Draw:   drawGraph,
	Claims: graphClaims,
})

type figure1 = lab.Result[Figure1Params, graph.Trial]

func (p Figure1Params) rules(c *study.Checks) {
	space, ok := supernet.Spaces[p.Space]
	c.Expect(ok, "Space must be a name in supernet.Spaces, such as %s, got %q", supernet.NASBench201.Name, p.Space)
	if !ok {
		return
	}
	for _, op := range p.Without {
		c.Expect(op == "" || slices.Contains(space.Ops, op), "Without has %q, the operations are %v", op, space.Ops)
	}
	space = space.Without(p.Without...)
	if err := space.Check(); err != nil {
		c.Expect(false, "%v", err)
		return
	}
	n := math.Pow(float64(len(space.Ops)), float64(len(space.Edges)))
	c.Expect(n <= graph.MostArchitectures, "the space has %v architectures, too many to sum over: leave "+
		"operations out until there are at most %d", n, graph.MostArchitectures)
}

// graphBench opens the backend with the first graph that is computed, for the operations that are scaled: a look at
// what is stored needs none. A reader's space goes by its content, not by its name.
func graphBench(_ context.Context, p Figure1Params, _ string) (lab.Bench[graph.Trial], error) {
	var scaler *graph.Scaler
	named, err := supernet.SpaceKey(p.Space)
	return lab.Bench[graph.Trial]{
		Key: func(t graph.Trial) any {
			if named != p.Space {
				t.Space.Name = ""
			}
			return t
		},
		Run: func(ctx context.Context, t graph.Trial, seed uint64, _ study.Step) (trial.Result, error) {
			if scaler == nil {
				b, err := backend.Open()
				if err != nil {
					return trial.Result{}, err
				}
				if scaler, err = graph.NewScaler(b); err != nil {
					return trial.Result{}, err
				}
			}
			return t.Run(ctx, scaler, seed)
		},
		Study: study.Study{Workers: 1, Device: backend.Opener(1)},
		Close: func() {
			if scaler != nil {
				scaler.Close()
			}
		},
	}, err
}

func (p Figure1Params) theta(space supernet.Space) [][]float64 {
	return graph.DrawTheta(space, uint64(p.Seed), p.Concentration)
}

// drawGraph draws the mixture, every edge with its operations as wide as their
// weights, and the graph that arg max makes of it.
func drawGraph(r *figure1, p *lab.Picture) {
	space := r.Groups[0].Trial.Space
	theta := r.Params.theta(space)
	p.Style = plots.ICLR
	p.Row(
		plots.Panel{Title: fmt.Sprintf("mixture, $α_e ∈ Δ^{%d}$", len(space.Ops)-1), Cell: study.Cell(space, theta)},
		plots.Panel{Title: "arg max on each edge", Cell: study.Cell(space, space.OneHot(space.Argmax(theta)))})
	p.Say("The cell of %s with %d operations an edge; an operation is as wide as its weight $α_{i,e}$, drawn from a "+
		"Dirichlet distribution (%v); the paper does not name the operations.",
		study.SpaceTitle(space.Name), len(space.Ops), r.Params.Concentration)
}

func graphClaims(r *figure1) []runs.Claim {
	same := func(c lab.Claim, value string) runs.Claim {
		return identity(c, slices.Max(append(r.Groups.Values(value), 0)), true, ofNumbers)
	}
	claims := []runs.Claim{judgeSimplex(r)}
	for _, op := range slices.Sorted(maps.Keys(graph.StandardOps)) {
		c := r.Claim("[RO020] %s: f(cx) = c·f(x) for c > 0", op).From("Section 5")
		claims = append(claims, same(c, "scale "+op))
	}
	relu := r.Claim("[RO021] with ReLU nodes the factorization fails (relative difference)").Claim
	claims = append(claims,
		same(r.Claim("[RO021] linear graph: mixture = Σ_a (Π_e α_{e,a_e}) f_a"), "linear"),
		judgeDifferent(r, "relu", relu), judgeSampled(r),
		same(r.Claim("[RO021] the most probable architecture is the arg max on each edge"), "mode"))
	for _, op := range slices.Sorted(maps.Keys(graph.OtherOps)) {
		claims = append(claims,
			judgeDifferent(r, "scale "+op, ours(op+" is not 1-positively homogeneous (relative difference)")))
	}
	return claims
}

func judgeSimplex(r *figure1) runs.Claim {
	c := r.Claim("own: α of every edge is on the simplex").From("Figure 1").Claim
	err := simplex.Check(r.Params.theta(r.Groups[0].Trial.Space), 1e-12)
	if c.Holds = runs.Judge(err == nil); err != nil {
		c.Note = err.Error()
	}
	return c
}

func judgeDifferent(r *figure1, value string, c runs.Claim) runs.Claim {
	xs := r.Groups.Values(value)
	s, err := runs.Summarize(xs, r.Confidence)
	if err != nil {
		return verdict.NotRun(c, err.Error())
	}
	c.Paper, c.Ours, c.Lo, c.Hi, c.Tolerance = 0, runs.Number(s.Mean), s.Lo, s.Hi, mixture.Tolerance
	if slices.Min(xs) > mixture.Tolerance {
		c.Holds = runs.Holds
	} else if slices.Max(xs) <= mixture.Tolerance {
		c.Holds = runs.Fails
	}
	c.Note = fmt.Sprintf("over %d graphs; it takes a difference in each", len(xs))
	if value == "relu" && len(r.Groups[0].Trial.Space.Ops) == 1 {
		c.Holds, c.Note = runs.NotKnown, "one operation an edge: nothing is mixed"
	}
	return c
}

// judgeSampled judges the mean over sampled architectures by its largest distance from the sum over all, in standard
// errors; so many distances are looked at that the largest may well be 3.
func judgeSampled(r *figure1) runs.Claim {
	c := r.Claim("[RO021] sampling an operation on each edge gives architecture a with weight Π_e α_{e,a_e} " +
		"(largest z)").Claim
	looks := float64(r.Params.Channels * r.Params.Seeds)
	bound := distuv.UnitNormal.Quantile(1 - (1-r.Confidence)/2/looks)
	c.Paper, c.Tolerance = 0, runs.Number(bound)
	c.Ours = runs.Number(slices.Max(append(r.Groups.Values("sampled"), 0)))
	c.Holds = runs.Judge(c.Ours <= c.Tolerance)
	c.Note = fmt.Sprintf("of %v outputs with ReLU nodes, each the mean over %d samples; the tolerance is Bonferroni's",
		looks, r.Params.Samples)
	return c
}
