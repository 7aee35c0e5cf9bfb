// Package plots draws figures that can go into a paper. A Figure is plain data: rows of panels with axes, curves,
// intervals and a legend. Drawing it never computes a result, and computing a result never draws.
//
//	f := plots.Figure{
//		Name:  "li2021-figure1",
//		Style: plots.ICLR,
//		Panels: [][]plots.Panel{{{
//			X:      plots.Axis{Label: "epoch"},
//			Y:      plots.Axis{Label: "entropy of $θ_t$ (nats)"},
//			Series: []plots.Series{{Label: "EG", X: epochs, Y: entropy}},
//		}}},
//	}
//	paths, err := f.Save("figures", "pdf", "svg", "eps", "png", "csv")
//
// Behind its curves a panel can have a Heat, a number for every cell of a grid. Beside axes, a panel can be the cell of
// a network, with edges as wide as their operations' weights, a simplex, or a table, and a figure can have all of them:
// in a notebook, Display shows it in place while a search runs.
//
//	cell := &plots.Cell{Nodes: []string{"0", "1", "2", "3"}, Ops: ops}
//	for i, e := range edges {
//		cell.Edges = append(cell.Edges, plots.Edge{From: e.From, To: e.To, Weights: theta[i]})
//	}
//	f.Panels = append(f.Panels, []plots.Panel{{Title: "epoch 12", Cell: cell}})
//
// The same figure gives the same bytes in every format, whatever the day and the machine's fonts: text is set in Latin
// Modern or, as Style.Font says, in STIX Two, with formulas between dollar signs. PDF and EPS have it as text, with
// subsets of the fonts embedded as Type 1; an SVG has it as outlines, so that it looks the same on every machine, and
// as text where it is exported. Bands are transparent, and hatched in EPS, which has no transparency. What a file shows
// is in its metadata: title, name, and what Figure.Meta says, such as the parameters' hash and the scale.
//
// SVG, EPS, PNG and the clipping are gonum/plot's, PDF is written by the library below it. The layout is our own: in
// gonum/plot a panel gets what its labels leave over, while a paper wants panels of equal size at a fixed width.
package plots // import "github.com/nasml/lab/plots"
