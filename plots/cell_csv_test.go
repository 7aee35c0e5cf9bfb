package plots

import (
	"testing"

	"github.com/stretchr/testify/require"
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
