package roberts

import (
	"context"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/roberts/internal/mixture"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/supernet"
)

// isolated is a context with an empty store and no progress.
func isolated(t *testing.T) context.Context {
	t.Helper()
	store, err := runs.Open(t.TempDir())
	require.NoError(t, err)
	return runs.WithProgress(runs.WithStore(t.Context(), store), runs.Silent)
}

func tinyParams() ProblemParams {
	p := quickProblems
	p.Points, p.Width, p.Problems, p.Seeds = 12, 3, 40, 2
	p.Noise, p.WeightErrors, p.AlphaErrors = []float64{1, 3}, []float64{1}, []float64{1}
	return p
}

func tinySearch() SearchParams {
	p := SearchQuick
	p.Spaces, p.Noise, p.Seeds, p.Steps, p.Train, p.Valid = p.Spaces[:2], []float64{0, 0.5}, 2, 30, 20, 20
	return p
}

func entries() map[string]func(context.Context) (catalog.Result, error) {
	return map[string]func(context.Context) (catalog.Result, error){
		"roberts/theorem1": func(ctx context.Context) (catalog.Result, error) {
			return Theorem1(ctx, Theorem1Params{tinyParams()})
		},
		"roberts/theorem4": func(ctx context.Context) (catalog.Result, error) {
			return Theorem4(ctx, Theorem4Params{tinyParams(), Theorem4Quick.Spaces, 8})
		},
		"roberts/theorem7": func(ctx context.Context) (catalog.Result, error) {
			return Theorem7(ctx, Theorem7Params{tinyParams(), []int{2, 3, 5}, 3, "relu/tanh/sin"})
		},
		"roberts/map": func(ctx context.Context) (catalog.Result, error) {
			p := MapParams{tinyParams(), 2, []int{1, 4}, []int{4, 30}}
			p.Activations = pool[:4]
			p.WeightErrors, p.AlphaErrors, p.Sign = nil, nil, false
			return Map(ctx, p)
		},
		"roberts/search": func(ctx context.Context) (catalog.Result, error) { return Search(ctx, tinySearch()) },
		"roberts/figure1": func(ctx context.Context) (catalog.Result, error) {
			p := Figure1Quick
			p.Seeds, p.Samples = 2, 50
			return Figure1(ctx, p)
		},
	}
}

// Every entry computes once, draws, and judges the paper's claims; what is a
// theorem holds.
func TestEntries(t *testing.T) {
	for id, run := range entries() {
		t.Run(strings.TrimPrefix(id, "roberts/"), func(t *testing.T) {
			ctx := isolated(t)
			r, err := run(ctx)
			require.NoError(t, err)
			require.NoError(t, r.Figure().Validate())
			svg, err := r.Figure().Render("svg")
			require.NoError(t, err)
			require.NotEmpty(t, svg)
			for _, c := range r.Check() {
				if len(c.Rows) > 0 {
					require.NotEqual(t, runs.Fails, c.Holds, "%s: %s", c.Name, c.Note)
				}
			}
			again, err := run(ctx)
			require.NoError(t, err)
			require.Equal(t, r.Records(), again.Records())
			require.Equal(t, r.Figure(), again.Figure())

			stopped, cancel := context.WithCancel(isolated(t))
			cancel()
			_, err = run(stopped)
			require.ErrorIs(t, err, context.Canceled)

			entry, err := catalog.Lookup(id)
			require.NoError(t, err)
			_, err = os.Stat("../../" + entry.Notebook)
			require.NoError(t, err, "the entry's notebook must be there")
		})
	}
}

// One point, one hidden unit, operations that are the same there or everywhere:
// no NaN, and the theorem where it says anything.
func TestDegenerateProblems(t *testing.T) {
	p := tinyParams()
	p.Points, p.Width, p.Inputs = 1, 1, 1
	one, err := Theorem1(isolated(t), Theorem1Params{p})
	require.NoError(t, err)
	require.Equal(t, runs.Holds, one.Check()[0].Holds)
	require.NoError(t, one.Figure().Validate())

	p = tinyParams()
	p.Activations = []string{"tanh", "tanh", "0*tanh"}
	same, err := Theorem4(isolated(t), Theorem4Params{p, nil, 4})
	require.NoError(t, err)
	require.NoError(t, same.Figure().Validate())
	require.Zero(t, countsOf(same.Groups...).sum("ordered"), "two operations are the same: Assumption 1 fails")
	for _, c := range same.Check() {
		require.False(t, len(c.Rows) > 0 && c.Holds == runs.Fails, c.Name)
	}
}

// A violated assumption shows as a claim that fails: no claim is written to
// hold.
func TestClaimsFailWhereTheyAreFalse(t *testing.T) {
	p := Theorem1Params{tinyParams()}
	r, err := Theorem1(isolated(t), p)
	require.NoError(t, err)
	for i := range r.Groups { // as if nothing of it were violated
		r.Groups[i].Part = "assumed"
	}
	r.Groups = r.Groups[2:] // the groups under its assumptions are gone
	claims := r.Check()
	require.Equal(t, runs.Fails, claims[0].Holds, claims[0].Note)
	require.Equal(t, runs.Fails, claims[1].Holds, claims[1].Note)
}

func TestChangedParametersComputeOnlyWhatTheyChange(t *testing.T) {
	ctx, p := isolated(t), Theorem1Params{tinyParams()}
	first, err := Theorem1(ctx, p)
	require.NoError(t, err)
	p.Seeds = 3
	second, err := Theorem1(ctx, p)
	require.NoError(t, err)
	require.Subset(t, second.Records(), first.Records())
	require.Len(t, second.Records(), len(first.Records())*3/2)
}

// A custom activation is part of the key by its values.
func TestOwnActivationsChangeTheKey(t *testing.T) {
	ctx, p := isolated(t), Theorem1Params{tinyParams()}
	defer delete(supernet.Activations, "mine")
	p.Activations = []string{"relu", "mine"}
	supernet.Activations["mine"] = supernet.Activations["tanh"]
	first, err := Theorem1(ctx, p)
	require.NoError(t, err)
	supernet.Activations["mine"] = supernet.Activations["sin"]
	second, err := Theorem1(ctx, p)
	require.NoError(t, err)
	require.NotEqual(t, first.Records()[0], second.Records()[0])
	require.Equal(t, runs.Holds, second.Check()[0].Holds)
}

// What no tag says: names of activations, operations, updates and spaces, and how they fit together. Of tags there is
// one an entry.
func TestParametersThatMakeNoSenseAreRefused(t *testing.T) {
	problems := func(change func(*ProblemParams)) error {
		p := tinyParams()
		change(&p)
		_, err := Theorem1(isolated(t), Theorem1Params{p})
		return err
	}
	search := func(change func(*SearchParams)) error {
		p := tinySearch()
		change(&p)
		_, err := Search(isolated(t), p)
		return err
	}
	graph := func(change func(*Figure1Params)) error {
		p := Figure1Quick
		change(&p)
		_, err := Figure1(isolated(t), p)
		return err
	}
	errorOf := func(_ any, err error) error { return err }
	for want, err := range map[string]error{
		"value of AlphaErrors must": problems(func(p *ProblemParams) { p.AlphaErrors = []float64{2} }),
		"Spread must":               problems(func(p *ProblemParams) { p.Spread = math.NaN() }),
		`"reluu"`:                   problems(func(p *ProblemParams) { p.Activations = []string{"reluu", "tanh"} }),
		"Activations must have":     problems(func(p *ProblemParams) { p.Activations = []string{"tanh"} }),
		"have 3 operations": errorOf(
			Theorem4(isolated(t), Theorem4Params{tinyParams(), []string{"relu/tanh"}, 8})),
		"value of Sizes must": errorOf(
			Theorem7(isolated(t), Theorem7Params{tinyParams(), []int{1}, 3, "relu/tanh"})),
		"appear once": errorOf(
			Theorem7(isolated(t), Theorem7Params{tinyParams(), []int{2}, 3, "relu/relu"})),
		"Sign do nothing here":      errorOf(Map(isolated(t), MapParams{tinyParams(), 3, nil, nil})),
		"Size must":                 errorOf(Map(isolated(t), MapParams{tinyParams(), 1, nil, nil})),
		"Update":                    search(func(p *SearchParams) { p.Update = "adam" }),
		`value of Starts must`:      search(func(p *SearchParams) { p.Starts = []string{"far"} }),
		"as Teacher has weights, 1": search(func(p *SearchParams) { p.Teacher = []float64{1} }),
		"Noise must":                search(func(p *SearchParams) { p.Noise = nil }),
		`"tanhh"`:                   search(func(p *SearchParams) { p.Spaces = []string{"relu/tanhh"} }),
		`got "darts"`:               graph(func(p *Figure1Params) { p.Space = "darts" }),
		`Without has "conv"`:        graph(func(p *Figure1Params) { p.Without = []string{"conv"} }),
		"parameters":                graph(func(p *Figure1Params) { p.Without = supernet.NASBench201.Ops }),
		"Seeds must":                graph(func(p *Figure1Params) { p.Seeds = 0 }),
	} {
		var usage *catalog.UsageError
		require.ErrorAs(t, err, &usage, want)
		require.ErrorContains(t, err, want)
	}
}

// The classes of the simplex from D alone are those of the checker.
func TestSimplexMapAgainstChecker(t *testing.T) {
	g := [][]float64{{10, 20, -10}, {1, 2, -1}, {0, 0, 0}}
	check := func(alpha []float64, outputs [][]float64, y []float64) *Report {
		r, err := Check(alpha, outputs, y)
		require.NoError(t, err)
		return r
	}
	d := check([]float64{1. / 3, 1. / 3, 1. / 3}, g, g[0]).Between
	seen := map[int]int{}
	for class, points := range newSimplexMap([]string{"a", "b", "c"}, d, 15).points {
		for _, alpha := range points {
			r := check(alpha, g, mixture.Combine(alpha, g))
			first, _ := r.Conditions()
			want := 2
			if r.ArgMaxRight() {
				want = 1
			}
			if first == 2 {
				want = 0
			}
			require.Equal(t, want, class, "α = %v", alpha)
			seen[class]++
		}
	}
	require.Len(t, seen, 3, "each class has points")
	require.Equal(t, 15*16/2, seen[0]+seen[1]+seen[2])
}
