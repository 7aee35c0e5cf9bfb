package li2021

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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
	ctx := isolated(t)
	r, err := Figure1(ctx, p)
	require.NoError(t, err)
	all := searched(r.Groups)
	f := r.Figure()
	require.NoError(t, f.Validate())
	require.Len(t, f.Panels, 3, "entropies, then the instruments of both spaces")
	require.Len(t, f.Panels[1], 3)
	require.Contains(t, f.Caption, "Theorem 1's bound")
	q := p
	q.Rows = p.Rows[1:]
	left, err := Figure1Left(ctx, q)
	require.NoError(t, err)
	require.NoError(t, left.Figure().Validate())
	require.Len(t, left.Figure().Panels, 3)
	for _, panel := range slices.Concat(left.Figure().Panels...) {
		require.NotEmpty(t, panel.Series, "edges of GAEA DARTS have no weights, and no panel")
	}

	for i, cells := range []int{1, 2} {
		a, err := Animation(r, p.Rows[i], 0)
		require.NoError(t, err)
		require.Len(t, a.Frames, 3)
		require.Len(t, a.Frames[2].Panels, cells)
		_, err = a.HTML()
		require.NoError(t, err)
		record := all[i].records[0]
		judged := all[i].agree(all[i].readingsOf(record), len(record.Series["evaluated"])-1)
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
	_, err = Animation(r, "darts", 0)
	require.ErrorContains(t, err, `no search is called "darts", 0: take one of "gaea-darts", 0`)
	_, err = Animation(new(figure1), "darts", 0)
	require.ErrorContains(t, err, "no search was run")

	for i := range all {
		live := liveFigure(&all[i], momentOf(&all[i]), nil)
		require.NoError(t, live.Validate())
		right, watched := 0, 0
		for _, panel := range slices.Concat(live.Panels...) {
			if panel.Cell == nil {
				watched++
				continue
			}
			for _, e := range panel.Cell.Edges {
				if e.Emphasis == plots.Highlighted {
					right++
				}
			}
		}
		require.Equal(t, 2+5, watched, "losses and entropy, and all that the record's figure has")
		read := all[i].readingsOf(all[i].records[0])
		require.InDelta(t, share(all[i].agree(read, len(read.alone)-1).right)*float64(len(all[i].agree(read, 0).right)),
			right, 1e-9)
	}
}

// momentOf is a search's record as it looked at its last step.
func momentOf(f *found) search.Snapshot {
	read, s := f.readingsOf(f.records[0]), f.records[0].Series
	return search.Snapshot{
		Epoch: len(s["train_loss"]), Epochs: len(s["train_loss"]), Steps: 1, Theta: read.theta[len(read.theta)-1],
		Curve: &search.Curve{
			Theta: read.theta, TrainLoss: s["train_loss"], ValidLoss: s["valid_loss"], Evaluated: read.evaluated,
			Supernet: s["supernet"], Discrete: s["discrete"], Curvature: s["curvature"],
			Readings: search.Readings{
				Loss: read.loss, Convexity: read.convexity, Gradient: read.gradient, Stationarity: read.stationarity,
				Alone: read.alone, Apart: read.apart,
			},
		},
	}
}

// The instruments are read on spaces whose cells can be drawn; Figure 1, left, has
// cells with two inputs.
func TestSpacesOfInstruments(t *testing.T) {
	p := InstrumentsQuick
	p.StoredOnly = true
	for _, rows := range [][]string{{"darts@nasbench201"}, {"darts@darts-s2"}} {
		p.Rows = rows
		_, err := Instruments(isolated(t), p)
		require.NoError(t, err)
	}
	p.Rows = []string{"darts@1shot1-s1"}
	_, err := Instruments(isolated(t), p)
	require.ErrorContains(t, err, `got "1shot1-s1"`)
	p.Rows = []string{"darts@nasbench201"}
	_, err = Figure1Left(isolated(t), p)
	require.ErrorContains(t, err, `the space of row "darts@nasbench201" must be one of [darts`)
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
	b := f.bounds(readings{
		evaluated: []float64{1, 4}, convexity: []float64{0.5, 0.2}, loss: []float64{2, 1}, gradient: []float64{1, 4},
		stationarity: []float64{1, 1},
	})
	require.InDeltaSlice(t, []float64{2 * 0.4472135955, 2 * 0.4472135955}, b, 1e-9) // √(1/5), √(4/20)
}

// TestInstrumentsAsAnEntry: the cells at the end stand below the curves, and the bound
// of Theorem 1 is judged for exponentiated gradient only, by what was read.
func TestInstrumentsAsAnEntry(t *testing.T) {
	t.Setenv("GOMLX_BACKEND", "go")
	p := tiny()
	p.Channels, p.Cells, p.Epochs, p.Instruments = 4, 1, 2, 2
	p.Rows = []string{"darts@darts-s2", "gaea-darts@darts-s2"}
	r, err := Instruments(isolated(t), p)
	require.NoError(t, err)
	all := searched(r.Groups)
	f := r.Figure()
	require.NoError(t, f.Validate())
	require.Len(t, f.Panels, 4, "curves, instruments, and the cells of both searches")
	require.Len(t, f.Panels[1], 3, "there are no weights of edges: six curves")
	require.Len(t, f.Panels[3], 2, "cells of both types")
	require.NotNil(t, f.Panels[3][0].Cell)
	require.Equal(t, "GAEA DARTS (bilevel), epoch 2", f.Panels[3][0].Title)
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
	bounds := all[1].bounds(all[1].readingsOf(record))
	record.Series["stationarity"] = []float64{2*bounds[0] + 1, bounds[1] / 2}
	require.Equal(t, runs.Number(1), named("Theorem 1's bound")[0].Ours)
	require.Equal(t, runs.Fails, named("Theorem 1's bound")[0].Holds)
	record.Series["stationarity"][0] = 0
	require.Equal(t, runs.Holds, named("Theorem 1's bound")[0].Holds)

	p.Instruments = 0
	_, err = Instruments(t.Context(), p)
	require.ErrorContains(t, err, "Instruments must be at least 1, got 0")
}

func TestUnknownMethodNamesThoseThereAre(t *testing.T) {
	p := InstrumentsQuick
	p.Rows = []string{"nosuch@darts"}
	_, err := Instruments(t.Context(), p)
	require.ErrorContains(t, err, `got "nosuch"`)
	require.ErrorContains(t, err, "gaea-pc-darts")
}
