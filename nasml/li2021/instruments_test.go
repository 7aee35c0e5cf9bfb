package li2021

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/search"
	"github.com/nasml/lab/plots"
)

// TestInstrumentsOnTwoSpaces: searches that are watched have their panels and
// cells after every epoch, on NAS-Bench-201 and on cells with two inputs.
func TestInstrumentsOnTwoSpaces(t *testing.T) {
	t.Setenv("GOMLX_BACKEND", "go")
	p := tiny()
	p.Channels, p.Cells, p.Seeds, p.Epochs, p.Instruments = 4, 1, 1, 2, 2
	p.Rows = []string{"gaea-darts", "gaea-darts@darts-s2"}
	all, err := p.runOn(isolated(t), "own", rowsNamed(p.Rows),
		data.Facts{Fingerprint: "16 images", Len: 16, Synthetic: true}, colour)
	require.NoError(t, err)
	r := &Figure1Result{Params: p, all: all}
	f := r.Figure()
	require.NoError(t, f.Validate())
	require.Len(t, f.Panels, 3, "entropies, then the instruments of both spaces")
	require.Len(t, f.Panels[1], 3)
	require.Contains(t, f.Caption, "Theorem 1's bound")
	left := (&Figure1LeftResult{&Figure1Result{Params: p, all: all[1:]}}).Figure()
	require.NoError(t, left.Validate())
	require.Len(t, left.Panels, 3)

	for i, cells := range []int{1, 2} {
		a, err := r.Animation(p.Rows[i], 0)
		require.NoError(t, err)
		require.Len(t, a.Frames, 3)
		require.Len(t, a.Frames[2].Panels, cells)
		_, err = a.HTML()
		require.NoError(t, err)
		record := all[i].records[0]
		judged := all[i].agree(record, len(record.Series["evaluated"])-1)
		edges := map[int]int{1: 6, 2: 28}[cells]
		require.Len(t, judged.right, edges)
		right := 0
		for _, row := range a.Frames[2].Panels {
			for _, e := range row[0].Cell.Edges {
				if e.Emphasis == plots.Highlighted {
					right++
				}
			}
		}
		require.InDelta(t, share(judged.right), float64(right)/float64(edges), 1e-12)
	}
	_, err = r.Animation("darts", 0)
	require.ErrorContains(t, err, `no search is called "darts", 0: take one of "gaea-darts", 0`)
	_, err = (&Figure1Result{}).Animation("darts", 0)
	require.ErrorContains(t, err, "no search was run")

	f201 := all[0]
	c := &search.Curve{Theta: [][]float64{f201.records[0].Series["theta"]}, Curvature: []float64{1, 2},
		Evaluated: []float64{1, 2}}
	require.NoError(t, liveFigure(&f201, search.Moment{Epoch: 2, Epochs: 2, Steps: 1, Curve: c,
		Theta: f201.records[0].Series["theta"]}, nil).Validate())
}

// TestAlarm: half of the edges skip connections, or an eigenvalue that grows by
// more than a third within five evaluations.
func TestAlarm(t *testing.T) {
	p := tiny()
	f, err := p.find("gaea-darts")
	require.NoError(t, err)
	theta := func(skips int) [][][]float64 {
		var rows [][]float64
		for e := range 6 {
			row := uniform(f.blocks[0].Options)
			at := 1 // an operation but skip_connect
			if e < skips {
				at = 0
			}
			for o, op := range f.space.Ops {
				if (op == "skip_connect") == (at == 0) {
					row[o] += 0.3
					break
				}
			}
			rows = append(rows, row)
		}
		return [][][]float64{rows}
	}
	require.Empty(t, f.alarm(theta(2), nil))
	require.Equal(t, "ALARM: skip connections on 50 % of the edges", f.alarm(theta(3), nil))
	require.Empty(t, f.alarm(theta(0), []float64{3, 3.5, 4, 4, 4, 3.9}))
	require.Contains(t, f.alarm(theta(0), []float64{1, 3, 3.5, 4, 4, 4, 4.1}), "has grown from 3 to 4.1")
	require.Empty(t, f.alarm(theta(0), []float64{1, 9, 9, 9, 9}), "too few evaluations")
}

// TestBoundsByHand: 2·√(γ·F·G²/T) with the largest constants until then.
func TestBoundsByHand(t *testing.T) {
	f := found{images: 100, settings: search.Settings{Batch: 10}}
	r := &runs.Record{Series: map[string][]float64{
		"evaluated": {1, 4}, "convexity": {0.5, 0.2}, "reading_loss": {2, 1}, "gradient": {1, 4},
	}}
	b := f.bounds(r)
	require.InDeltaSlice(t, []float64{2 * 0.4472135955, 2 * 0.4472135955}, b, 1e-9) // √(1/5), √(4/20)
}

// TestInstrumentsAsAnEntry: the cells at the end stand below the curves, and the bound
// of Theorem 1 is judged for exponentiated gradient only, by what was read.
func TestInstrumentsAsAnEntry(t *testing.T) {
	t.Setenv("GOMLX_BACKEND", "go")
	p := tiny()
	p.Channels, p.Cells, p.Epochs, p.Instruments = 4, 1, 2, 2
	p.Rows = []string{"darts@darts-s2", "gaea-darts@darts-s2"}
	all, err := p.runOn(isolated(t), "own", rowsNamed(p.Rows),
		data.Facts{Fingerprint: "16 images", Len: 16, Synthetic: true}, colour)
	require.NoError(t, err)
	r := &InstrumentsResult{&Figure1LeftResult{&Figure1Result{Params: p, all: all}}}
	f := r.Figure()
	require.NoError(t, f.Validate())
	require.Len(t, f.Panels, 7, "curves, instruments, and the cells of both searches")
	require.Len(t, f.Panels[2], 2, "there are no weights of edges: six curves")
	require.NotNil(t, f.Panels[6][0].Cell)
	require.Equal(t, "GAEA DARTS (bilevel), epoch 2", f.Panels[6][0].Title)
	_, err = f.Render("svg")
	require.NoError(t, err)

	named := func(part string) (found []runs.Claim) {
		for _, c := range r.Check() {
			if strings.Contains(c.Name, part) {
				found = append(found, c)
			}
		}
		return found
	}
	bound := named("Theorem 1's bound")
	require.Len(t, bound, 1, "of GAEA")
	require.Contains(t, bound[0].Name, "GAEA DARTS")
	record := all[1].records[0]
	bounds := all[1].bounds(record)
	record.Series["stationarity"] = []float64{2*bounds[0] + 1, bounds[1] / 2}
	require.Equal(t, runs.Number(1), named("Theorem 1's bound")[0].Ours)
	require.Equal(t, runs.Fails, named("Theorem 1's bound")[0].Holds)
	record.Series["stationarity"][0] = 0
	require.Equal(t, runs.Holds, named("Theorem 1's bound")[0].Holds)

	p.Instruments = 0
	_, err = Instruments(t.Context(), p)
	require.ErrorContains(t, err, "Instruments is 0, want at least 1")
}

func TestUnknownMethodNamesThoseThereAre(t *testing.T) {
	p := InstrumentsQuick
	p.Rows = []string{"nosuch@darts"}
	_, err := Instruments(t.Context(), p)
	require.ErrorContains(t, err, `no search method is called "nosuch", want one of `)
	require.ErrorContains(t, err, "gaea-pc-darts")
}
