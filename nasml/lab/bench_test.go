package lab

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/trial"
)

// A forecast goes by the work of a trial, and by its units where no work is said.
func TestTheAmountOfATrial(t *testing.T) {
	b, three := Bench[square]{}, []byte(`{"size": 3}`)
	require.Zero(t, b.amount(three))
	b.Units = func(s square) int { return s.Size }
	require.InDelta(t, 3, b.amount(three), 0)
	b.Work = func(s square) float64 { return float64(s.Size) / 2 }
	require.InDelta(t, 1.5, b.amount(three), 0)
	require.True(t, b.reads(Groups[square]{{Seeds: 1, Trial: square{3}}}))
}

// Trials of one size are computed together, what is stored is left out, and the records are in the groups' order.
func TestTrialsThatAreComputedTogether(t *testing.T) {
	ctx, jobs := isolated(t), [][]square(nil)
	b := Bench[square]{
		Study:    study.Study{ID: "euclid/other", Code: code.Define("euclid/together", "lab/verdict")},
		Together: func(s square, seed uint64) any { return s.Size%2 == 0 && seed < 2 },
		Units:    func(s square) int { return s.Size },
		Batch: func(ctx context.Context, job Job[square]) error {
			jobs = append(jobs, job.Of)
			for i, s := range job.Of {
				require.Equal(t, s.Size, job.Units[i])
				result, err := s.Run(ctx, job.Trials[i].Seed)
				if err != nil {
					return err
				}
				if err := job.Done(i, result); err != nil {
					return err
				}
				job.Progress.Step(job.Units[i], "")
			}
			return nil
		},
	}
	groups := func(first uint64) Groups[square] {
		return Groups[square]{{Seeds: 3, First: first, Trial: square{2}}, {Seeds: 1, Trial: square{3}}, {Seeds: 1,
			Trial: square{4}}}
	}
	gs := groups(0)
	require.NoError(t, b.Compute(ctx, gs))
	require.Equal(t, [][]square{{{2}, {2}, {4}}, {{2}, {3}}}, jobs)
	for i, want := range [][]float64{{2, 2.01, 2.02}, {3}, {4}} {
		for seed, side := range want {
			require.InDelta(t, side*side, gs[i].Records[seed].Values["area"], 1e-12)
			require.Equal(t, "euclid/other", gs[i].Records[seed].Trial.Figure, "filed under another name")
		}
	}
	jobs, b.Together, b.MaxBatch = nil, nil, 1
	b.Cost = func(missing []square, seconds float64) string { require.Len(t, missing, 2); return ", a second" }
	require.NoError(t, b.Compute(ctx, groups(2)))
	require.Equal(t, [][]square{{{2}}, {{2}}}, jobs, "seeds 3 and 4")

	b.Batch = func(context.Context, Job[square]) error { return fmt.Errorf("it is full") }
	b.Label, b.Cost = func(s square) string { return fmt.Sprintf("side %d", s.Size) }, nil
	require.ErrorContains(t, b.Compute(ctx, Groups[square]{{Seeds: 1, Trial: square{9}}}), "side 9: it is full")
	b.StoredOnly = true
	gs = Groups[square]{{Seeds: 2, Trial: square{9}}}
	require.NoError(t, b.Compute(ctx, gs))
	require.Equal(t, []*runs.Record{nil, nil}, gs[0].Records)
	require.Empty(t, gs.Values("area"))
}

var tasks = struct{ opened, closed []string }{}

// The entry of tasks has a bench for odd and for even squares; its keys and kinds are the bench's. The second
// question has no picture, and claims.
var _ = Declare(Entry[params, square]{
	Of: Paper{ID: "euclid", Name: "Euclid"}, Name: "tasks", Kind: Figure, Title: "Tasks", Source: "Book II",
	Cost:  catalog.Cost{Quick: "nothing", Paper: "nothing"},
	Quick: params{Sizes: []int{1, 2, 3}, Seeds: 2, Confidence: 0.95},
	Paper: params{Sizes: []int{1, 2, 3}, Seeds: 3, Confidence: 0.95},
	Code:  code.Define("euclid/tasks", "lab/verdict"),
	By: func(g Group[square]) string {
		if g.Trial.Size%2 == 0 {
			return "even"
		}
		return "odd"
	},
	Bench: func(_ context.Context, _ params, by string) (Bench[square], error) {
		tasks.opened = append(tasks.opened, by)
		return Bench[square]{
			Key:  func(s square) any { return map[string]any{"task": by, "size": s.Size} },
			Data: func(square) string { return by },
			Kind: func(square) *code.Kind { return squareKinds[by] }, Note: "On " + by + " squares.",
			Facts: len(by), Close: func() { tasks.closed = append(tasks.closed, by) },
		}, nil
	},
	Questions: []Question[params, square]{
		{Name: "area", Draw: drawTasks, Trials: func(p params) (gs Groups[square]) {
			for _, size := range p.Sizes {
				gs.Add("small", p.Seeds, square{size})
			}
			return gs
		}},
		{Claims: func(r *result) []runs.Claim {
			return []runs.Claim{r.Claim("large").Mean(r.Part("small").Values("area")).Above(-math.MaxFloat64)}
		}},
	},
})

var squareKinds = map[string]*code.Kind{"even": code.Define("euclid/even", "trial")}

func drawTasks(r *result, f *Picture) {
	drawArea(r, f)
	f.Say("%d letters.", r.Facts["even"])
}

func TestABenchForEachTask(t *testing.T) {
	e, err := catalog.Lookup("euclid/tasks")
	require.NoError(t, err)
	r, err := e.Run(isolated(t), catalog.Quick, []string{"View=area"})
	require.NoError(t, err)
	require.Equal(t, []string{"odd", "even"}, tasks.opened)
	require.Equal(t, tasks.opened, tasks.closed)
	require.Equal(t, "2 seeds. 4 letters. On odd squares. On even squares. Quick scale.", r.Figure().Caption)
	require.Len(t, r.Check(), 1)
	gs := r.(*result).Groups
	require.Equal(t, []int{1, 2, 3}, []int{gs[0].Trial.Size, gs[1].Trial.Size, gs[2].Trial.Size})
	require.Equal(t, "even", gs[1].Records[0].Trial.Data)
	require.InDelta(t, 4, gs[1].Records[0].Values["area"], 1e-12)
	require.NotEqual(t, gs[0].Records[0].Trial.Code, gs[1].Records[0].Trial.Code)
}

// cube is another trial.
type cube struct {
	Edge int `json:"edge"`
}

func (c cube) Run(ctx context.Context, seed uint64) (trial.Result, error) {
	return square(struct {
		Size int `json:"size"`
	}{c.Edge}).Run(ctx, seed)
}

var solids = Declare(Entry[params, square]{
	Of: Paper{ID: "euclid", Name: "Euclid"}, Name: "solids", Kind: Table, Title: "Solids", Source: "Book XI",
	Cost:  catalog.Cost{Quick: "nothing", Paper: "nothing"},
	Quick: params{Sizes: []int{1}, Seeds: 2, Confidence: 0.95},
	Paper: params{Sizes: []int{1}, Seeds: 3, Confidence: 0.95},
	Compute: func(ctx context.Context, r *result) error {
		var squares Groups[square]
		squares.Add("face", r.Params.Seeds, square{2})
		if err := (Bench[square]{Study: study.Study{ID: "euclid/faces", Code: squareKinds["even"]}}).
			Compute(ctx, squares); err != nil {
			return err
		}
		var cubes Groups[cube]
		cubes.Add("", r.Params.Seeds, cube{3})
		err := Bench[cube]{Study: study.Study{ID: "euclid/cubes", Code: squareKinds["even"]}}.Compute(ctx, cubes)
		r.Groups = append(squares, As("cube", cubes, func(c cube) square { return square{c.Edge} })...)
		return err
	},
	Draw: drawArea,
})

func TestAnEntryThatReadsSeveralStudies(t *testing.T) {
	r, err := solids(isolated(t), params{Sizes: []int{1}, Seeds: 2, Confidence: 0.95})
	require.NoError(t, err)
	require.Equal(t, "euclid/faces", r.Part("face")[0].Records[0].Trial.Figure)
	cubes := r.Part("cube")
	require.Equal(t, "euclid/cubes", cubes[0].Records[1].Trial.Figure)
	require.Equal(t, 3, cubes[0].Trial.Size)
	require.InDelta(t, 3.01*3.01, cubes.Values("area")[1], 1e-12)
	require.Len(t, r.Records(), 4)
	require.Empty(t, r.Check())
}
