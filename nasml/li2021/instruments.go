package li2021

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/internal/forecast"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/search"
	"github.com/nasml/lab/nasml/simplex"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/supernet"
	"github.com/nasml/lab/plots"
)

// Thresholds of the alarm on collapse: half of the normal cell's edges are skip connections, or, as in the early
// stopping of Zela+ 2020 (Section 4.3), the largest eigenvalue of five evaluations ago is less than 0.75 of the current
// one.
const (
	manySkips    = 0.5
	growthWindow = 5
	leastRatio   = 0.75
)

// skipShare is the share of skip connections among the edges of the discretised (normal) cell; false if the space has
// none.
func (f found) skipShare(theta [][][]float64) (share float64, ok bool) {
	if cells, ok := supernet.CellSpaces[f.settings.Space]; ok {
		if cells.Nodes == 0 {
			return 0, false
		}
		genotype, err := f.opened.Network().(*supernet.CellNet).Discretize(theta)
		return genotype.Normal.Share("skip_connect"), err == nil
	}
	skip := slices.Index(f.space.Ops, "skip_connect")
	if skip < 0 {
		return 0, false
	}
	n := 0
	for _, o := range f.space.Argmax(theta[0]) {
		if o == skip {
			n++
		}
	}
	return float64(n) / float64(len(f.space.Edges)), true
}

// alarm says why a search seems to collapse; empty if it does not.
func (f found) alarm(theta [][][]float64, curvature []float64) string {
	var why []string
	if share, ok := f.skipShare(theta); ok && share >= manySkips {
		why = append(why, fmt.Sprintf("skip connections on %.0f %% of the edges", 100*share))
	}
	if n := len(curvature); n > growthWindow {
		before, now := curvature[n-1-growthWindow], curvature[n-1]
		if now > 0 && before < leastRatio*now {
			why = append(why, fmt.Sprintf("the largest eigenvalue has grown from %.2g to %.2g", before, now))
		}
	}
	if len(why) == 0 {
		return ""
	}
	return "ALARM: " + strings.Join(why, ", ")
}

// watchPanels are the panels of a live view besides losses and entropy: share of skip connections, loss by
// discretisation, and the instruments read so far.
func watchPanels(f *found, m search.Snapshot) []plots.Panel {
	read := readingsNow(m.Curve)
	var skips, x []float64
	for e, flat := range m.Curve.Theta {
		if share, ok := f.skipShare(search.Blocks(f.blocks, flat)); ok && e > 0 {
			x, skips = append(x, float64(e)), append(skips, share)
		}
	}
	at := func(y []float64) plots.Series {
		return plots.Series{X: read.evaluated[:min(len(y), len(read.evaluated))], Y: y}
	}
	panels := []plots.Panel{
		livePanel(m, plots.Axis{Label: "skip connections", Max: 1}, plots.Series{X: x, Y: skips}),
		livePanel(m, plots.Axis{Label: "supernet, validation (%)"},
			labelled("with $θ$", at(percents(m.Curve.Supernet))),
			labelled("discretised", at(percents(m.Curve.Discrete)))),
		livePanel(m, plots.Axis{Label: "largest eigenvalue"}, at(m.Curve.Curvature)),
		livePanel(m, plots.Axis{Label: "$Δ$ of $θ$"}, labelled("$Δ$", at(read.stationarity)),
			labelled("bound", at(f.bounds(read)))),
	}
	var edges []plots.Series
	for _, c := range criteria {
		edges = append(edges, labelled(c.label, at(f.shares(read, c.of))))
	}
	panels = append(panels, livePanel(m, plots.Axis{Label: "share of edges", Max: 1}, edges...))
	return slices.DeleteFunc(panels, func(p plots.Panel) bool { return len(p.Series) == 0 })
}

// livePanel has the series that have begun.
func livePanel(m search.Snapshot, y plots.Axis, all ...plots.Series) plots.Panel {
	p := plots.Panel{X: liveAxis(m), Y: y, Legend: plots.Legend{Position: plots.LegendNone}}
	for _, s := range all {
		switch {
		case len(s.Y) == 0:
		case s.Label == "":
			p.Series = append(p.Series, liveCurve(s.X, s.Y)...)
		default:
			p.Legend = plots.Legend{}
			p.Series = append(p.Series, s)
		}
	}
	return p
}

func labelled(label string, s plots.Series) plots.Series {
	s.Label = label
	return s
}

func percents(shares []float64) []float64 {
	return study.Map(shares, func(x float64) float64 { return 100 * x })
}

// moves is the number of steps of θ after an epoch.
func (f found) moves(epoch float64) float64 {
	s := f.settings
	train := forecast.Trained(s, f.images)
	steps := train / s.Batch
	if s.Bilevel.KeepLast && train%s.Batch > 0 {
		steps++
	}
	return max(0, epoch-float64(s.Bilevel.Warmup)) * float64(steps)
}

type readings struct {
	evaluated                                   []float64 // epochs done
	loss, convexity, gradient, stationarity     []float64
	theta /* after every epoch */, alone, apart [][]float64
}

func (f found) readingsOf(r *runs.Record) readings {
	rows := func(name string) [][]float64 {
		return slices.Collect(slices.Chunk(r.Series[name], f.numbers()))
	}
	return readings{
		r.Series["evaluated"], r.Series["reading_loss"], r.Series["convexity"], r.Series["gradient"],
		r.Series["stationarity"], rows("theta"), rows("alone"), rows("apart"),
	}
}

func readingsNow(c *search.Curve) readings {
	r := c.Readings
	return readings{c.Evaluated, r.Loss, r.Convexity, r.Gradient, r.Stationarity, c.Theta, r.Alone, r.Apart}
}

// bounds are those of Theorem 1 after T moves of θ alone, a single block,
//
//	Δ ≤ 2·√(γ·F·G_θ²/T) ,
//
// with the largest γ, F and G_θ² read so far in place of their suprema.
func (f found) bounds(r readings) (out []float64) {
	var gamma, loss, square float64
	for i := range r.stationarity {
		gamma, loss, square = max(gamma, r.convexity[i]), max(loss, r.loss[i]), max(square, r.gradient[i])
		out = append(out, 2*math.Sqrt(gamma*loss*square/max(1, f.moves(r.evaluated[i]))))
	}
	return out
}

type agreement struct {
	right []bool // the largest θᵢ is that of the least Lᵢ: discretisation picks what is best alone
	holds []bool // Condition 6 for the operation i of the least Lᵢ and all others j: Aᵢ ≥ Aⱼ
}

// agree judges all rows of the blocks of operations.
func (f found) agree(r readings, evaluation int) agreement {
	theta := search.Blocks(f.blocks, r.theta[int(r.evaluated[evaluation])])
	alone, apart := search.Blocks(f.blocks, r.alone[evaluation]), search.Blocks(f.blocks, r.apart[evaluation])
	var a agreement
	for b, block := range f.blocks {
		if supernet.OnEdges(block) || block.Options < 2 {
			continue
		}
		for e := range block.Rows {
			best := slices.Index(alone[b][e], slices.Min(alone[b][e]))
			a.right = append(a.right, theta[b][e][best] == slices.Max(theta[b][e]))
			a.holds = append(a.holds, apart[b][e][best] >= (1-1e-9)*slices.Max(apart[b][e]))
		}
	}
	return a
}

var criteria = []struct {
	label string
	of    func(a agreement) []bool
}{
	{"Condition 6", func(a agreement) []bool { return a.holds }},
	{"largest is best alone", func(a agreement) []bool { return a.right }},
}

func (f found) shares(r readings, of func(a agreement) []bool) (y []float64) {
	for i := range r.alone {
		y = append(y, share(of(f.agree(r, i))))
	}
	return y
}

func share(of []bool) float64 {
	n := 0
	for _, yes := range of {
		if yes {
			n++
		}
	}
	return float64(n) / float64(max(1, len(of)))
}

// instrumentPanels draw the instruments if they were read: the largest eigenvalue; Δ and its bound; and the share of
// edges on which Roberts+'s criterion says that discretisation picks the right operation.
func (p SearchParams) instrumentPanels(rows []found) []plots.Panel {
	eigen := plots.Panel{X: plots.Axis{Label: "epochs"}, Y: plots.Axis{Label: "largest eigenvalue in $α$"}}
	delta := plots.Panel{X: plots.Axis{Label: "epochs"}, Y: plots.Axis{Label: "stationarity $Δ$", Scale: plots.Log10}}
	edges := plots.Panel{X: plots.Axis{Label: "epochs"}, Y: plots.Axis{Label: "share of edges", Max: 1}}
	for _, f := range rows {
		if len(f.column("stationarity", 0)) == 0 {
			continue
		}
		title := f.row.title()
		read := f
		read.records = slices.DeleteFunc(f.finished(),
			func(r *runs.Record) bool { return r.Series["stationarity"] == nil })
		evaluated := read.records[0].Series["evaluated"]
		curve := func(label string, of func(r *runs.Record) []float64) plots.Series {
			return read.band(p.Confidence, label, evaluated, of, anywhere)
		}
		eigen.Series = append(eigen.Series, curve(title, values("curvature")))
		bound := curve(title+", bound", func(r *runs.Record) []float64 { return f.bounds(f.readingsOf(r)) })
		bound.Line = plots.Dashed
		delta.Series = append(delta.Series, curve(title, values("stationarity")), bound)
		for _, c := range criteria {
			edges.Series = append(edges.Series, curve(title+", "+c.label, func(r *runs.Record) []float64 {
				return f.shares(f.readingsOf(r), c.of)
			}))
		}
	}
	slices.SortFunc(edges.Series, func(a, b plots.Series) int { return strings.Compare(a.Label, b.Label) })
	if len(eigen.Series) == 0 {
		return nil
	}
	for _, s := range delta.Series { // a bound is 0 where γ is, and so is the lower end of a wide interval
		if slices.Min(slices.Concat(s.Y, s.Lo)) <= 0 {
			delta.Y.Scale = plots.Linear
		}
	}
	return []plots.Panel{eigen, delta, edges}
}

const instrumentCaption = "Instruments, on a batch of validation images: largest eigenvalue of the Hessian in the " +
	"logits; $Δ$ with Theorem 1's bound for $θ$ alone (dashed); share of edges on which the largest $θ$ is on the " +
	"operation with the least loss alone, and on which the condition of Roberts+ (Theorem 7) holds for it."

// Animation shows the cells of a search after every epoch, edges as wide as θ, and the alarm when it would have been
// raised. Edges whose largest weight is on the operation that is best alone are highlighted. It returns an error if no
// such search was run.
func Animation(r *figure1, name string, seed uint64) (plots.Animation, error) {
	var all []string
	for _, f := range searched(r.Groups) {
		for _, record := range f.finished() {
			if string(f.row) == name && record.Trial.Seed == seed {
				return f.animation(record)
			}
			all = append(all, fmt.Sprintf("%q, %d", f.row, record.Trial.Seed))
		}
	}
	if len(all) == 0 {
		return plots.Animation{}, errors.New("no search was run: there is nothing to show")
	}
	return plots.Animation{}, fmt.Errorf("no search is called %q, %d: take one of %s", name, seed,
		strings.Join(all, "; "))
}

func (f found) animation(record *runs.Record) (plots.Animation, error) {
	name := "li2021-cells-" + strings.NewReplacer("@", "-", "/", "-").Replace(string(f.row))
	a := plots.Animation{Name: fmt.Sprintf("%s-%d", name, record.Trial.Seed)}
	read := f.readingsOf(record)
	for e := range epochs(record) + 1 {
		theta := search.Blocks(f.blocks, read.theta[e])
		cells := cellsOf(f, theta)
		if len(cells) == 0 {
			return a, fmt.Errorf("the space %s has no cells that can be drawn", f.settings.Space)
		}
		evaluation := slices.Index(read.evaluated, float64(e))
		if evaluation >= 0 && len(read.alone) > 0 {
			f.agree(read, evaluation).emphasize(cells)
		}
		title := fmt.Sprintf("epoch %d of %d, %.2f nats", e, epochs(record), simplex.EntropyOf(theta[0]))
		curvature := record.Series["curvature"]
		if why := f.alarm(theta, curvature[:min(evaluation+1, len(curvature))]); e > 0 && why != "" {
			title += ". " + why
		}
		var row [][]plots.Panel
		for _, cell := range cells {
			row = append(row, []plots.Panel{{Cell: cell}})
		}
		a.Labels = append(a.Labels, fmt.Sprintf("epoch %d", e))
		a.Frames = append(a.Frames, plots.Figure{
			Name: a.Name, Style: plots.ICLR.Text(), Panels: row,
			Title: fmt.Sprintf("%s, seed %d: %s", f.row.named(), record.Trial.Seed, title),
		})
	}
	return a, nil
}

// emphasize highlights edges on which discretisation picks the right operation.
func (a agreement) emphasize(cells []*plots.Cell) {
	at := 0
	for _, cell := range cells {
		for e := range cell.Edges {
			if len(cell.Edges[e].Weights) == 0 || at >= len(a.right) {
				continue
			}
			if a.right[at] {
				cell.Edges[e].Emphasis = plots.Highlighted
			}
			at++
		}
	}
}

// InstrumentsQuick has one search by DARTS and one by GAEA PC-DARTS on the DARTS space, at the quick scale of Figure 1
// (left), with diagnostics after every epoch. They are precomputed, and so are those of instruments201.
var InstrumentsQuick = watched(Figure1LeftQuick)

// InstrumentsLarge has the middle scale of Figure 1 (left): two searches, five hours on two cores beside other work.
var InstrumentsLarge = watched(Figure1LeftLarge)

// InstrumentsPaper has the paper's settings of the searches. It was not run.
var InstrumentsPaper = watched(Figure1LeftPaper)

func watched(p Figure1Params) Figure1Params {
	p.Rows = []string{"darts@darts", "gaea-pc-darts@darts"}
	p.Seeds, p.Instruments, p.EvaluateEvery = 1, 4, 1
	return p
}

var instruments201 = []string{"Rows=darts@nasbench201,gaea-darts@nasbench201"}

// Instruments reads the instruments after every evaluation of searches.
var Instruments = lab.Declare(lab.Entry[Figure1Params, found]{
	Of: ofPaper, Name: "instruments", Kind: lab.Figure, Source: "Section 4.1", Notebook: "instruments",
	Title: "What a search is watched by: entropy, discretisation, curvature, stationarity, Condition 6",
	Cost: catalog.Cost{
		Quick: "ten minutes on two cores, half of it to compile; its searches are precomputed",
		Paper: "15 hours a search on two cores (forecast)",
	},
	Quick: InstrumentsQuick, Paper: InstrumentsPaper,
	Also:    []catalog.Preset[Figure1Params]{{Scale: catalog.Large, Params: InstrumentsLarge}},
	Shipped: []catalog.Setting{{Scale: catalog.Quick, Set: instruments201}},
	Note:    noteOfSearches,
	Rules: func(p Figure1Params, c *study.Checks) {
		c.AtLeast("Instruments", p.Instruments, 1) // products with Hessians
		p.onCells(c, "cells", "nasbench201")
	},
	Compute: func(ctx context.Context, r *figure1) error { return r.Params.compute(ctx, "li2021/instruments", r) },
	Draw:    drawInstruments, Claims: judgeInstruments,
})

// drawInstruments draws the panels of [Figure1Left] with those of the instruments, and the final cells of every search,
// edges as wide as θ. Edges whose largest weight is on the operation that is best alone are highlighted.
func drawInstruments(r *figure1, f *lab.Picture) {
	f.Style.Aspect = 0.5 // of which a page holds three rows, and the cells
	for panels := range slices.Chunk(slices.Concat(leftPanels(r)...), 3) {
		f.Row(panels...)
	}
	rows := searched(r.Groups)
	var cells []plots.Panel
	for _, of := range rows {
		for _, record := range of.finished()[:min(1, len(of.finished()))] {
			a, err := of.animation(record)
			if err != nil {
				panic(err) // the searches were on cells with two inputs
			}
			last := len(a.Frames) - 1
			for _, cell := range slices.Concat(a.Frames[last].Panels...) {
				cell.Title = fmt.Sprintf("%s, %s", of.row.title(), a.Labels[last])
				cell.Cell.Width = 1.8 // two of them share a row
				cells = append(cells, cell)
			}
		}
	}
	for panels := range slices.Chunk(cells, 2) {
		f.Row(panels...)
	}
	f.Say("%s", instrumentCaption)
	f.Say("Cells: edges are as wide as $θ$; they stand out where the largest is on the operation with the least loss.")
	f.Say("%s", searchCaption(r.Params.SearchParams, rows, r.Params))
	sayChanges(f, rows)
}

// judgeInstruments judges that searches begin at uniform weights and do not collapse, and for GAEA that θ comes as near
// to a stationary point as Theorem 1 says.
func judgeInstruments(r *figure1) []runs.Claim {
	claims := append(judgeStarts(r), judgeCollapse(r))
	for _, f := range searched(r.Groups) {
		if search.Methods[f.row.method()].Hold == search.OnSimplex { // which the theorem is about
			claims = append(claims, judgeBound(r, f))
		}
	}
	return claims
}

func judgeBound(r *figure1, f found) runs.Claim {
	c := r.Claim("own: %s: evaluations at which Δ lies above Theorem 1's bound of the constants read until then",
		f.row.named()).From("Theorem 1")
	above, of := 0, 0
	for _, record := range f.finished() {
		bounds := f.bounds(f.readingsOf(record))
		for i, delta := range record.Series["stationarity"] {
			if of++; delta > bounds[i] {
				above++
			}
		}
	}
	if of == 0 {
		return c.NotRun("no search was run")
	}
	return verdict.None(c.Claim, above, of)
}
