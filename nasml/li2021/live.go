package li2021

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/search"
	"github.com/nasml/lab/nasml/simplex"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/supernet"
	"github.com/nasml/lab/plots"
)

// live is the view of a running search below a notebook's cell: losses, entropy, the cell with edges as wide as θ, and
// the table's accuracy of the current architecture. Outside a notebook it shows nothing.
type live struct {
	display plots.Display
	last    time.Time
	off     bool
	begun   row               // whose supernet is compiled
	table   *data.NASBench201 // nil: there is none
}

// every is the least time between two pictures; the last one is always drawn.
const every = time.Second

// begin shows the view before the first step of a row, which has to wait for the compiler.
func (l *live) begin(f *found, seed uint64) {
	if l.begun == f.row {
		return
	}
	l.begun = f.row
	var theta []float64
	for _, b := range f.blocks {
		theta = append(theta, slices.Repeat(uniform(b.Options), b.Rows)...)
	}
	start := search.Snapshot{Epochs: f.settings.Epochs, Steps: 1, Curve: &search.Curve{}, Theta: theta}
	l.draw(f, seed, start, "compiling the supernet")
}

func (l *live) show(f *found, seed uint64, m search.Snapshot) {
	if time.Since(l.last) < every && m.Epoch < m.Epochs {
		return
	}
	theta := search.Blocks(f.blocks, m.Theta)
	l.draw(f, seed, m, fmt.Sprintf("epoch %d of %d, %.2f of %.2f nats",
		m.Epoch, m.Epochs, simplex.EntropyOf(theta[0]), mostEntropy(f)))
}

func (l *live) draw(f *found, seed uint64, m search.Snapshot, state string) {
	if l.off {
		return
	}
	if l.last.IsZero() {
		l.table, _ = data.LoadNASBench201("") // without a table its panel is left out
	}
	l.last = time.Now()
	figure := liveFigure(f, m, l.table)
	figure.Title = fmt.Sprintf("%s, seed %d: %s", f.row.named(), seed, state)
	if why := f.alarm(search.Blocks(f.blocks, m.Theta), m.Curve.Curvature); why != "" && m.Epoch > 0 {
		figure.Title += ". " + why
	}
	if err := l.display.Show(figure); err != nil {
		l.off = true // no notebook, or one that has gone: the search goes on
	}
}

// mostEntropy is that of the uniform point, ln |O|.
func mostEntropy(f *found) float64 {
	return simplex.EntropyOf([][]float64{uniform(f.blocks[0].Options)})
}

// liveFigure draws a search so far: curves of finished epochs, and the current state.
func liveFigure(f *found, m search.Snapshot, table *data.NASBench201) plots.Figure {
	cells := cellsOf(*f, search.Blocks(f.blocks, m.Theta))
	if read := readingsNow(m.Curve); len(read.alone) > 0 {
		f.agree(read, len(read.alone)-1).emphasize(cells) // as it was at the last evaluation
	}
	var second []plots.Panel
	for _, cell := range cells {
		if now(m) == 0 {
			cell.Note = "$θ$ is at its start: no architecture yet"
		}
		second = append(second, plots.Panel{Cell: cell})
	}
	if table != nil && f.space.Ops != nil {
		second = append(second, accuracyPanel(f, m, table))
	}
	first := []plots.Panel{lossPanel(m), entropyPanel(f, m)}
	panels := [][]plots.Panel{first}
	if len(second) > 0 {
		panels = append(panels, second)
	}
	panels = slices.AppendSeq(panels, slices.Chunk(watchPanels(f, m), 3))
	return plots.Figure{Name: "li2021-live", Style: plots.ICLR, Panels: panels}
}

// liveAxis goes to the end of the search from its beginning on.
func liveAxis(m search.Snapshot) plots.Axis {
	return plots.Axis{Label: "epochs", Max: float64(m.Epochs)}
}

func now(m search.Snapshot) float64 {
	return float64(m.Epoch) + float64(m.Step)/float64(m.Steps)
}

func lossPanel(m search.Snapshot) plots.Panel {
	done := epochsFrom(1, len(m.Curve.TrainLoss))
	training := plots.Series{Label: "training", X: done, Y: m.Curve.TrainLoss}
	if len(done) == 0 && m.Step > 0 {
		training.X, training.Y = []float64{now(m)}, []float64{m.Loss}
	}
	p := plots.Panel{X: liveAxis(m), Y: plots.Axis{Label: "loss"}}
	if len(training.X) > 0 {
		p.Series = append(p.Series, training)
	}
	if len(m.Curve.ValidLoss) > 0 {
		p.Series = append(p.Series, plots.Series{Label: "validation", X: done, Y: m.Curve.ValidLoss})
	}
	return p
}

// liveCurve is the one curve of a panel, always of the same look.
func liveCurve(x, y []float64) []plots.Series {
	return []plots.Series{{X: x, Y: y, Color: "#0072B2", Line: plots.Solid, Marker: plots.Circle}}
}

func entropyPanel(f *found, m search.Snapshot) plots.Panel {
	y := m.Curve.Entropy(f.blocks)[0]
	x := epochsFrom(0, len(y))
	if at := now(m); len(x) == 0 || at > x[len(x)-1] {
		x, y = append(x, at), append(y, simplex.EntropyOf(search.Blocks(f.blocks, m.Theta)[0]))
	}
	most := mostEntropy(f)
	// Down to the next fifth of the range: a slow fall shows, and a fast one does not move the axis at every step.
	lowest := most / 5 * math.Floor(5*slices.Min(y)/most-0.25)
	return plots.Panel{
		X: liveAxis(m), Y: plots.Axis{Label: "entropy of $θ$ (nats)", Min: max(0, lowest), Max: 1.02 * most},
		Series: liveCurve(x, y), Legend: plots.Legend{Position: plots.LegendNone},
	}
}

func uniform(n int) []float64 { return slices.Repeat([]float64{1 / float64(n)}, n) }

// accuracyPanel is the table's accuracy of the architecture after each epoch, and now; not at the start, where all
// operations tie.
func accuracyPanel(f *found, m search.Snapshot, table *data.NASBench201) plots.Panel {
	p := plots.Panel{
		X: liveAxis(m), Y: plots.Axis{Label: "CIFAR-10 test (%)"}, Legend: plots.Legend{Position: plots.LegendNone},
	}
	column, err := table.Column(data.Reported201[0])
	if err != nil {
		return p // a table without it
	}
	var x, y []float64
	add := func(at float64, flat []float64) {
		a, err := arch(f.space, f.space.Argmax(search.Blocks(f.blocks, flat)[0]))
		if err == nil && at > 0 {
			x, y = append(x, at), append(y, column[a.Number()])
		}
	}
	for e, flat := range m.Curve.Theta {
		add(float64(e), flat)
	}
	if at := now(m); at > float64(len(m.Curve.Theta)-1) {
		add(at, m.Theta)
	}
	p.Series = liveCurve(x, y)
	p.Y.Max = 100
	if len(y) > 0 { // a point more on both sides: an architecture often stays for epochs
		p.Y.Min, p.Y.Max = max(0, math.Floor(slices.Min(y))-1), min(100, math.Ceil(slices.Max(y))+1)
	}
	return p
}

// cellsOf are the cells of a search with edges as wide as θ: one on NAS-Bench-201, two on spaces with a reduction cell,
// with edge weights, if any, multiplied into those of operations. Other spaces have none.
func cellsOf(f found, theta [][][]float64) []*plots.Cell {
	if space, ok := supernet.CellSpaces[f.settings.Space]; ok {
		var cells []*plots.Cell
		for i, t := range supernet.CellTypes {
			cells = append(cells, mixedCell(space.Without(f.settings.Without...), t, theta, i))
		}
		return cells
	}
	if f.space.Ops == nil {
		return nil
	}
	cell := study.Cell(f.space, theta[0])
	cell.Note = study.Title(f.space.Arch(f.space.Argmax(theta[0])))
	return []*plots.Cell{cell}
}

// mixedCell is one type of cell, the i-th, with two inputs.
func mixedCell(space supernet.CellSpace, t supernet.CellType, theta [][][]float64, i int) *plots.Cell {
	cell := &plots.Cell{Width: 7, Nodes: []string{"$c_{k-2}$", "$c_{k-1}$"}, Note: cellTitles[t] + " cell"}
	for node := range space.Nodes {
		cell.Nodes = append(cell.Nodes, fmt.Sprint(node))
	}
	var ops []string // of any edge
	edges := space.Edges()
	for e := range edges {
		for _, op := range space.Candidates(t, e) {
			if !slices.Contains(ops, op) {
				ops, cell.Ops = append(ops, op), append(cell.Ops, study.Op(op))
			}
		}
	}
	for e, edge := range edges {
		weight := 1.0
		if len(theta) > len(supernet.CellTypes) {
			weight = theta[len(supernet.CellTypes)+i*space.Nodes+edge.To-2][0][edge.From]
		}
		weights := make([]float64, len(ops))
		for o, op := range space.Candidates(t, e) {
			weights[slices.Index(ops, op)] = weight * theta[i][e][o]
		}
		cell.Edges = append(cell.Edges, plots.Edge{From: edge.From, To: edge.To, Weights: weights})
	}
	return cell
}
