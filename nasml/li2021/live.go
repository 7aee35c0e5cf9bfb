package li2021

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/search"
	"github.com/nasml/lab/nasml/simplex"
	"github.com/nasml/lab/plots"
)

// live is the view of the search under way below a notebook's cell: losses,
// entropy, the cell with edges as wide as θ, and the table's accuracy of the
// current architecture. Outside a notebook it shows nothing.
type live struct {
	display plots.Display
	last    time.Time
	off     bool
	table   *data.NASBench201 // nil: there is none
}

// every is how often the view is drawn; a notebook takes no more than a picture
// a second, and the last one is drawn anyway.
const every = time.Second

func newLive() *live {
	return &live{}
}

// show draws a moment of a search, now and then.
func (l *live) show(f *found, seed uint64, m search.Moment) {
	if l.off || time.Since(l.last) < every && m.Epoch < m.Epochs {
		return
	}
	if l.last.IsZero() {
		if dir, err := data.Dir(); err == nil {
			l.table, _ = data.LoadNASBench201(dir) // without a table its panel is left out
		}
	}
	l.last = time.Now()
	if err := l.display.Show(liveFigure(f, seed, m, l.table)); err != nil {
		l.off = true // no notebook, or one that has gone: the search goes on
	}
}

// liveFigure is a search as it stands.
func liveFigure(f *found, seed uint64, m search.Moment, table *data.NASBench201) plots.Figure {
	done := make([]float64, len(m.Curve.TrainLoss))
	for i := range done {
		done[i] = float64(i + 1)
	}
	axis := plots.Axis{Label: "epochs", Max: float64(m.Epochs)}
	loss := plots.Panel{X: axis, Y: plots.Axis{Label: "loss"}, Series: []plots.Series{{Label: "training", X: done, Y: m.Curve.TrainLoss}}}
	if len(m.Curve.ValidLoss) > 0 {
		loss.Series = append(loss.Series, plots.Series{Label: "validation", X: done, Y: m.Curve.ValidLoss})
	}
	entropies := m.Curve.Entropy(len(f.space.Ops))
	from0 := append([]float64{0}, done...)
	most := simplex.EntropyOf([][]float64{uniform(len(f.space.Ops))})
	entropy := plots.Panel{X: axis, Y: plots.Axis{Label: "entropy of $θ$ (nats)", Max: 1.05 * most}, Series: []plots.Series{{Label: "entropy", X: from0[:len(entropies)], Y: entropies}}, Legend: plots.Legend{Position: plots.LegendNone}}
	theta := slices.Collect(slices.Chunk(m.Theta, len(f.space.Ops)))
	choice := f.space.Argmax(theta)
	title := fmt.Sprintf("%s, seed %d: epoch %d of %d, %.2f of %.2f nats", f.row.title(), seed, m.Epoch, m.Epochs,
		simplex.EntropyOf(theta), most)
	cell := cellOf(*f, theta)
	cell.Note = strings.ReplaceAll(f.space.Arch(choice), "+", " + ")
	second := []plots.Panel{{Cell: cell}}
	if p, ok := accuracyPanel(f, m, table); ok {
		second = append(second, p)
	}
	return plots.Figure{Name: "li2021-live", Title: title, Style: plots.ICLR, Panels: [][]plots.Panel{{loss, entropy}, second}}
}

func uniform(n int) []float64 {
	row := make([]float64, n)
	for i := range row {
		row[i] = 1 / float64(n)
	}
	return row
}

// accuracyPanel is the table's accuracy of the architecture after each epoch.
func accuracyPanel(f *found, m search.Moment, table *data.NASBench201) (plots.Panel, bool) {
	if table == nil || len(m.Curve.Theta) < 2 {
		return plots.Panel{}, false
	}
	column, err := table.Column(data.Reported201[0])
	if err != nil {
		return plots.Panel{}, false
	}
	var x, y []float64
	for e, flat := range m.Curve.Theta[1:] {
		a, err := arch(f.space, f.space.Argmax(slices.Collect(slices.Chunk(flat, len(f.space.Ops)))))
		if err != nil {
			return plots.Panel{}, false
		}
		x, y = append(x, float64(e+1)), append(y, column[a.Number()])
	}
	return plots.Panel{
		X: plots.Axis{Label: "epochs", Max: float64(m.Epochs)}, Y: plots.Axis{Label: "table: CIFAR-10 test (%)"},
		Series: []plots.Series{{Label: "architecture", X: x, Y: y}}, Legend: plots.Legend{Position: plots.LegendNone},
	}, true
}

// cellOf is a cell with edges as wide as θ.
func cellOf(f found, theta [][]float64) *plots.Cell {
	cell := &plots.Cell{Width: 7} // fixed, so that a cell that decides keeps its shape
	for i := range f.space.Nodes {
		cell.Nodes = append(cell.Nodes, fmt.Sprint(i))
	}
	for _, op := range f.space.Ops {
		cell.Ops = append(cell.Ops, plots.Op{Label: op, None: op == "none"})
	}
	for e, edge := range f.space.Edges {
		cell.Edges = append(cell.Edges, plots.Edge{From: edge.From, To: edge.To, Weights: theta[e]})
	}
	return cell
}
