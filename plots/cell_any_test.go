package plots

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestCSVOfCells(t *testing.T) {
	f := cellFigure(ICML, &Cell{Nodes: []string{"$c_k$", "1", "2"}, Ops: []Op{{Label: "a"}, {Label: "b"}},
		Edges: []Edge{{From: 0, To: 1, Weights: []float64{0.25, 0.75}}, {From: 1, To: 2}}})
	const cells = `panel,edge,from,to,operation,weight
cell 0,0,c_k,1,a,0.25
cell 0,0,c_k,1,b,0.75
cell 0,1,1,2,,
`
	got, err := f.CSV()
	require.NoError(t, err)
	require.Equal(t, cells, string(got))
	f.Panels = append(f.Panels, []Panel{
		{
			Title: "table",
			Table: &Table{
				Columns: []Column{{Header: "x", Group: "all"}},
				Blocks:  []Block{{Title: "top", Rows: [][]Entry{{{Text: "1 ± 2"}}}}},
			},
		},
		{Title: "curve", Series: []Series{
			{Label: "EG", X: []float64{1}, Y: []float64{2}, Faint: true},
			{Label: "EG", X: []float64{1}, Y: []float64{4}, Faint: true},
			{Label: "EG", X: []float64{1}, Y: []float64{3}},
		}},
	})
	got, err = f.CSV()
	require.NoError(t, err)
	require.Equal(t, `panel,series,x,y,lo,hi,reference,hollow
curve,EG (run 1),1,2,,,false,false
curve,EG (run 2),1,4,,,false,false
curve,EG,1,3,,,false,false

`+cells+`
panel,block,all x
table,top,1 ± 2
`, string(got))
}

// Any cell is drawn tidily, or refused with a reason.
func TestAnyCell(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(t, "nodes")
		c := &Cell{
			Ops:   opsOf[:rapid.IntRange(1, 8).Draw(t, "ops")],
			Width: rapid.SampledFrom([]float64{0, 0.5, 12}).Draw(t, "width"),
		}
		for i := range n {
			c.Nodes = append(c.Nodes, fmt.Sprintf("$x_%d$", i))
			for from := range i {
				if rapid.Bool().Draw(t, "edge") {
					c.Edges = append(c.Edges, Edge{
						From: from, To: i,
						Weights:  rapid.SliceOfN(rapid.Float64Range(0, 1), len(c.Ops), len(c.Ops)).Draw(t, "weights"),
						Label:    rapid.SampledFrom([]string{"", "op", "sep_conv_3x3", "two\nlines"}).Draw(t, "label"),
						Emphasis: rapid.SampledFrom([]Emphasis{Normal, Dimmed}).Draw(t, "emphasis"),
					})
				}
			}
		}
		f := cellFigure(Style{Width: rapid.Float64Range(2, 8).Draw(t, "inches")}, c)
		require.NoError(t, f.Validate())
		data, err := f.Render("svg")
		if err != nil {
			require.ErrorContains(t, err, "cell: ")
			return
		}
		require.NotContains(t, string(data), "NaN")
		requireClear(t, f)
	})
}

func TestFaintRunsStandBehindTheirMean(t *testing.T) {
	run := Series{Label: "EG", X: []float64{0, 1, 2}, Y: []float64{1, 2, 3}, Faint: true}
	mean := Series{Label: "EG", X: []float64{0, 1, 2}, Y: []float64{1, 2, 2.5}}
	f := Figure{Name: "x", Panels: [][]Panel{{{Series: []Series{mean, run, run}}}}}
	l, err := newLayout(f)
	require.NoError(t, err)
	p := l.panels[0][0]
	require.Equal(t, tint(p.looks[0].color, edgeTint), p.looks[1].color)
	require.Equal(t, p.looks[1], p.looks[2])
	require.Equal(t, NoMarker, p.looks[1].marker)
	require.Less(t, float64(l.pen(p.looks[1]).width), float64(l.pen(p.looks[0]).width))
	require.Len(t, p.entries(), 1, "only the mean is explained")

	last := map[bool]int{}
	for i, o := range l.ops {
		if o.color == p.looks[1].color {
			last[true] = i
		}
		if _, seen := last[false]; o.color == p.looks[0].color && !seen {
			last[false] = i
		}
	}
	require.Less(t, last[true], last[false], "runs are drawn before their mean")
}
