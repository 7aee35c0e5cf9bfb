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
	"github.com/nasml/lab/nasml/roberts/internal/graph"
	"github.com/nasml/lab/nasml/roberts/internal/mixture"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/simplex"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/supernet"
	"github.com/nasml/lab/nasml/trial"
	"github.com/nasml/lab/plots"
)

// Figure1Params are the parameters of Figure 1, a computation graph whose edges
// mix operations, and of what Section 5 says of such graphs. The paper prints
// neither the number of nodes nor the operations, only that an edge has three.
type Figure1Params struct {
	Space         string   // a name of supernet.Spaces
	Without       []string // operations to leave out: the caption says three an edge
	Concentration float64  // of the Dirichlet distribution of every edge's α
	Seed          int      // of the α that is drawn
	Channels      int      // of a node, in the check of linear graphs
	Seeds         int      // graphs that are checked
	Samples       int      // architectures that are sampled from each
	Confidence    float64  // of the intervals
}

// Figure1Quick and Figure1Paper differ in the number of graphs and samples.
var (
	Figure1Quick = Figure1Params{
		Space: "nasbench201", Without: []string{"none", "nor_conv_1x1"}, Concentration: 1, Seed: 1,
		Channels: 4, Seeds: 5, Samples: 2000, Confidence: 0.95,
	}
	Figure1Paper = func() Figure1Params {
		p := Figure1Quick
		p.Seeds, p.Samples = 50, 20000
		return p
	}()
)

const (
	figure1ID    = "roberts/figure1"
	figure1Title = "A computation graph with a convex combination of operations on each edge"
)

func init() {
	catalog.Register(catalog.Entry{
		ID: figure1ID, Paper: "Roberts+", Title: figure1Title, Kind: "figure",
		Notebook: "notebooks/roberts/figure1_graph.ipynb",
		Cost:     catalog.Cost{Quick: "seconds", Paper: "about a minute"},
	}, Figure1Quick, Figure1Paper, Figure1)
}

var figure1Kind = code.Define("roberts/figure1", "roberts/internal/graph")

// Figure1Result holds the α that is drawn and the records of the graphs.
type Figure1Result struct {
	Params  Figure1Params
	Scale   string // "quick", "paper" or empty for own parameters
	space   supernet.Space
	theta   [][]float64
	records []*runs.Record
}

// Figure1 draws α ∈ Δ^{|O|−1} for every edge of a cell of supernet.Spaces, and
// checks what Section 5 says of computation graphs: that standard operations are
// 1-positively homogeneous, and that the weights of the edges multiply to weights
// of whole architectures, exactly in linear graphs and not beyond. Cancelling
// ctx ends it within seconds. It is an error where a parameter makes no sense
// (a *catalog.UsageError).
func Figure1(ctx context.Context, p Figure1Params) (*Figure1Result, error) {
	space, err := p.check()
	if err != nil {
		return nil, err
	}
	r := &Figure1Result{
		Params: p,
		Scale:  runs.Scale(ctx),
		space:  space,
		theta:  graph.DrawTheta(space, uint64(p.Seed), p.Concentration),
	}
	b, err := backend.Open()
	if err != nil {
		return nil, err
	}
	scaled, err := graph.NewScaler(b)
	if err != nil {
		return nil, err
	}
	defer scaled.Close()
	t := graph.Trial{Space: space, Concentration: p.Concentration, Channels: p.Channels, Samples: p.Samples}
	key, err := supernet.SpaceKey(p.Space)
	if err != nil {
		return nil, err
	}
	keyed := t
	if key != p.Space { // a reader's space goes by its content, not by its name
		keyed.Space.Name = ""
	}
	cases := study.Each(p.Seeds, func(seed uint64) study.Case {
		return study.Case{
			Params: keyed,
			Label:  "graph",
			Run: func(ctx context.Context, _ study.Step) (trial.Result, error) {
				return t.Run(ctx, scaled, seed)
			},
		}
	})
	r.records, err = study.Study{
		ID: figure1ID, Code: figure1Kind, Shipped: shippedRecords, Workers: 1,
		Device: func() (string, string, error) { name, device := backend.Describe(b); return name, device, nil },
	}.Run(ctx, cases)
	return r, err
}

func (p Figure1Params) check() (supernet.Space, error) {
	space, ok := supernet.Spaces[p.Space]
	if !ok {
		return space, catalog.Usagef(
			"Space is %q, want a name of supernet.Spaces, such as %s",
			p.Space,
			supernet.NASBench201.Name,
		)
	}
	for _, op := range p.Without {
		if op != "" && !slices.Contains(space.Ops, op) {
			return space, catalog.Usagef("Without has %q, the space has %v", op, space.Ops)
		}
	}
	space = space.Without(p.Without...)
	if err := space.Check(); err != nil {
		return space, catalog.Usagef("%v", err)
	}
	if !(p.Concentration > 0) || p.Seed < 0 || p.Channels < 1 || p.Seeds < 1 || p.Samples < 1 {
		return space, catalog.Usagef(
			"Concentration = %v, Seed = %d, Channels = %d, Seeds = %d, Samples = %d: Seed must be at least 0, the "+
				"others positive",
			p.Concentration,
			p.Seed,
			p.Channels,
			p.Seeds,
			p.Samples,
		)
	}
	if n := math.Pow(float64(len(space.Ops)), float64(len(space.Edges))); n > graph.MostArchitectures {
		return space, catalog.Usagef(
			"the space has %v architectures, all of which are summed over: leave operations out until there are "+
				"at most %d",
			n,
			graph.MostArchitectures,
		)
	}
	if !(p.Confidence > 0 && p.Confidence < 1) {
		return space, catalog.Usagef("Confidence is %v, want a number between 0 and 1", p.Confidence)
	}
	return space, nil
}

// Records are the keys of the graphs that were checked.
func (r *Figure1Result) Records() []string {
	return study.Keys(r.records)
}

// Figure draws the mixture, every edge with its operations as wide as their
// weights, and the graph that arg max makes of it.
func (r *Figure1Result) Figure() plots.Figure {
	style := plots.ICLR
	return plots.Figure{
		Name: "roberts-figure1", Style: style,
		Caption: fmt.Sprintf(
			"The cell of %s with %d operations an edge; an operation is as wide as its weight $α_{i,e}$, drawn from "+
				"a Dirichlet distribution (%v). The paper's caption says three operations an edge and names none.",
			study.SpaceTitle(r.space.Name),
			len(r.space.Ops),
			r.Params.Concentration,
		),
		Panels: [][]plots.Panel{{
			{Title: "mixture, $α_e ∈ Δ^{" + fmt.Sprint(len(r.space.Ops)-1) + "}$", Cell: r.cell(r.theta)},
			{Title: "arg max on each edge", Cell: r.cell(r.space.OneHot(r.space.Argmax(r.theta)))},
		}},
		Meta: study.Meta(figure1Title, r.Scale, r.Params),
	}
}

// cell is the search cell with the weights of its edges.
func (r *Figure1Result) cell(theta [][]float64) *plots.Cell {
	c := &plots.Cell{Width: 7}
	for j := range r.space.Nodes {
		c.Nodes = append(c.Nodes, fmt.Sprint(j))
	}
	for _, op := range r.space.Ops {
		c.Ops = append(c.Ops, plots.Op{Label: op, None: op == "none"})
	}
	for e, edge := range r.space.Edges {
		c.Edges = append(c.Edges, plots.Edge{From: edge.From, To: edge.To, Weights: theta[e]})
	}
	return c
}

// Check judges the caption and what Section 5 says of computation graphs.
func (r *Figure1Result) Check() []runs.Claim {
	caption := runs.NewClaim("own: α of every edge is on the simplex", "ours, on Roberts+, Figure 1")
	err := simplex.Check(r.theta, 1e-12)
	caption.Holds = runs.Judge(err == nil)
	if err != nil {
		caption.Note = err.Error()
	}
	all := group{records: r.records}
	claims := []runs.Claim{caption}
	for _, op := range slices.Sorted(maps.Keys(graph.StandardOps)) {
		claims = append(
			claims,
			identity(runs.NewClaim("[RO020] "+op+": f(cx) = c·f(x) for c > 0", "Roberts+, Section 5"),
				all.most("scale "+op), true),
		)
	}
	claims = append(
		claims,
		identity(runs.NewClaim("[RO021] linear graph: mixture = Σ_a (Π_e α_{e,a_e}) f_a", "Roberts+, Section 5, note"),
			all.most("linear"), true),
		r.beyond(
			"relu",
			"[RO021] with ReLU nodes the factorization fails (relative difference)",
			"Roberts+, Section 5, note",
		),
		r.sampled(all),
		identity(runs.NewClaim("[RO021] the most probable architecture is the arg max on each edge",
			"Roberts+, Section 5, note"), all.most("mode"), true),
	)
	for _, op := range slices.Sorted(maps.Keys(graph.OtherOps)) {
		claims = append(
			claims,
			r.beyond("scale "+op, "own: "+op+" is not 1-positively homogeneous (relative difference)", own),
		)
	}
	return claims
}

// beyond is a claim that two numbers differ, over the graphs.
func (r *Figure1Result) beyond(name, claim, source string) runs.Claim {
	c := runs.NewClaim(claim, source)
	var xs []float64
	for _, record := range r.records {
		xs = append(xs, record.Values[name])
	}
	s, err := runs.Summarize(xs, r.Params.Confidence)
	if err != nil {
		c.Note = "not run: " + err.Error()
		return c
	}
	c.Paper, c.Ours, c.Lo, c.Hi, c.Tolerance = 0, runs.Number(s.Mean), s.Lo, s.Hi, mixture.Tolerance
	if smallest := slices.Min(xs); smallest > mixture.Tolerance {
		c.Holds = runs.Holds
	} else if slices.Max(xs) <= mixture.Tolerance {
		c.Holds = runs.Fails
	}
	c.Note = fmt.Sprintf("over %d graphs; it takes a difference in each", len(xs))
	if name == "relu" && len(r.space.Ops) == 1 {
		c.Holds, c.Note = runs.NotKnown, "one operation an edge: nothing is mixed"
	}
	return c
}

// sampled judges the mean over sampled architectures by its largest distance
// from the sum over all, in standard errors; so many distances are looked at that
// the largest may well be 3.
func (r *Figure1Result) sampled(all group) runs.Claim {
	c := runs.NewClaim(
		"[RO021] sampling an operation on each edge gives architecture a with weight Π_e α_{e,a_e} (largest z)",
		"Roberts+, Section 5, note",
	)
	looks := float64(r.Params.Channels * len(r.records))
	bound := distuv.UnitNormal.Quantile(1 - (1-r.Params.Confidence)/2/looks)
	c.Paper, c.Ours, c.Tolerance = 0, runs.Number(all.most("sampled")), runs.Number(bound)
	c.Holds = runs.Judge(c.Ours <= c.Tolerance)
	c.Note = fmt.Sprintf(
		"of %v outputs with ReLU nodes, each the mean over %d samples; the tolerance is Bonferroni's",
		looks,
		r.Params.Samples,
	)
	return c
}
