package li2021

import (
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/bilevel"
	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/search"
	"github.com/nasml/lab/nasml/simplex"
	"github.com/nasml/lab/nasml/supernet"
)

// withMomentum adds EG with momentum as a method of one's own.
func withMomentum(t *testing.T) {
	search.Updates["momentum"] = search.Update{
		Moves: search.OnSimplex, Rule: func(o search.Setup) bilevel.Rule {
			return bilevel.Each(1, func(theta, grad *Node, own []*Node, _ bilevel.Move) (*Node, []*Node) {
				v := Add(MulScalar(own[0], 0.9), grad)
				return simplex.EG(theta, v, o.Rate), []*Node{v}
			})
		},
	}
	search.Methods["mine"] = search.Method{
		Title: "EG with momentum", Hold: search.OnSimplex, Weights: search.Mixture, Architecture: search.Mixture,
		Update: "momentum", Final: search.ByArgmax,
	}
	t.Cleanup(func() { delete(search.Updates, "momentum"); delete(search.Methods, "mine") })
}

// tinyComparison is of searches of two seeds and an epoch.
func tinyComparison() CompareParams {
	p := CompareQuick
	p.SearchParams, p.Seeds = tiny().SearchParams, 2
	p.Mine, p.Baselines, p.Runs = []string{"mine"}, []string{"gaea-darts"}, 3
	return p
}

// On NAS-Bench-201's operations every row has what the table says, and mine is compared with each of the
// others.
func TestCompareLooksUpInTheTable(t *testing.T) {
	t.Setenv("GOMLX_BACKEND", "go")
	withMomentum(t)
	r, err := Compare(isolated(t), tinyComparison())
	require.NoError(t, err)
	require.True(t, r.Tabular)
	require.Len(t, r.Rows, 3)
	for i, want := range []struct {
		title string
		runs  int
	}{{"EG with momentum", 2}, {"GAEA DARTS (bilevel)", 2}, {"Random search", 3}} {
		row := r.Rows[i]
		require.Equal(t, want.title, row.Title)
		require.Len(t, row.Accuracy, want.runs)
		require.Equal(t, i == 0, row.Mine)
		for j, regret := range r.Regret(row) {
			require.InDelta(t, r.Optimum, row.Accuracy[j]+regret, 1e-9)
			require.GreaterOrEqual(t, regret, 0.)
		}
		if i < 2 {
			require.Equal(t, row.Accuracy[0], row.curves[0][len(row.curves[0])-1], "the curve ends at the accuracy")
		}
	}
	claims := r.Check()
	require.Len(t, claims, 2)
	require.Equal(t, "own: EG with momentum above Random search, percentage points", claims[1].Name)
	require.Contains(t, claims[1].Note, "2 and 3 runs, Welch")
	require.Contains(t, claims[0].Note, "2 seeds, paired")
	for name, view := range map[string]*Comparison{
		"comparison": r, "comparison-table": r.Table(), "comparison-curves": r.Curves(),
	} {
		require.Equal(t, name, view.Figure().Name)
		require.NoError(t, view.Figure().Validate())
	}
	text, err := r.Table().Figure().LaTeX()
	require.NoError(t, err)
	require.Contains(t, string(text), `\toprule`)
	require.NotContains(t, string(text), `\includegraphics`)
}

// With an operation that the table lacks, methods are compared by their shared weights.
func TestCompareInASpaceWithoutATable(t *testing.T) {
	t.Setenv("GOMLX_BACKEND", "go")
	withMomentum(t)
	supernet.Operations["half"] = func(l supernet.Layers, x supernet.Map, _ int, _ bool) supernet.Map {
		return l.Apply(x, x, nil, 0, func(x *Node, _ []*Node) *Node { return MulScalar(Tanh(x), 0.5) })
	}
	supernet.Spaces["halves"] = supernet.NASBench201.Without("none").With("half")
	t.Cleanup(func() { delete(supernet.Operations, "half"); delete(supernet.Spaces, "halves") })
	p := tinyComparison()
	p.Space = "halves"
	r, err := Compare(isolated(t), p)
	require.NoError(t, err)
	require.False(t, r.Tabular)
	require.Len(t, r.Rows, 2, "without what queries the table")
	for _, row := range r.Rows {
		require.Len(t, row.Accuracy, 2)
		require.Empty(t, r.Regret(row))
	}
	require.Contains(t, r.Figure().Caption, "no table has this space")
	require.NoError(t, r.Figure().Validate())
	require.Equal(t, runs.NotKnown, r.judge(r.Rows[0], Compared{Title: "empty"}).Holds)
}

// ArchRate is the step size of a custom update with a state, too.
func TestArchRateOfAnOwnUpdate(t *testing.T) {
	withMomentum(t)
	p := tinyComparison()
	p.ArchRate = 0.025
	for name, want := range map[row]float64{"mine": 0.025, "gaea-darts": 0.025, "darts": 3e-4} {
		s, err := p.settings(name)
		require.NoError(t, err)
		require.Equal(t, want, s.ArchRate, name)
	}
}

func TestCompareSaysWhatToType(t *testing.T) {
	for message, change := range map[string]func(p *CompareParams){
		"must name a search":       func(p *CompareParams) { p.Mine, p.Baselines = nil, nil },
		"Seeds must be at least 2": func(p *CompareParams) { p.Seeds = 1 },
		`LookUp must be one of`:    func(p *CompareParams) { p.LookUp = "cifar-10" },
		`search.Methods["mine"]`:   func(p *CompareParams) { p.Update = "eg" },
		"in Mine or in Baselines":  func(p *CompareParams) { p.Mine = p.Baselines },
		`got "mien"`:               func(p *CompareParams) { p.Mine = []string{"mien"} },
	} {
		p := CompareQuick
		change(&p)
		_, err := Compare(t.Context(), p)
		var usage *catalog.UsageError
		require.ErrorAs(t, err, &usage, message)
		require.ErrorContains(t, err, message)
	}
}
