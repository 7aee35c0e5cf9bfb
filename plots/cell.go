package plots

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// Cell is the cell of a network as a graph, drawn as a panel: nodes from left to right in their order, edges as lines
// and arches between them. Where edges stand follows from Nodes and Edges alone and not from the weights, so that a
// cell that learns keeps its shape.
//
// An edge with several operations is drawn as parallel curves, each as wide as its weight, in the order of Ops from the
// outside in (a straight one from top to bottom); its arrowhead has the colour of the heaviest operation, and is grey
// where several are the heaviest. The operations are explained in the legend, all of them; Panel.Legend with LegendNone
// leaves that out.
//
// Labels of edges that are too long for their edge are made smaller, down to
// 5 pt; what does not fit then, and nodes that do not, are an error of Render.
type Cell struct {
	Nodes []string // labels, such as "$c_{k-2}$", "0", "1"
	Ops   []Op     // what an edge can do
	Edges []Edge

	// Width is how wide weight 1 is drawn, in points; 0: 1.6 where no edge has more than one operation, else 7. A cell
	// that is shown while it learns had better set it: in the end every edge may have one operation only.
	Width float64 `json:",omitempty"`
	Note  string  `json:",omitempty"` // a text below the cell
}

// Op is an operation. Those with the same label have the same colour throughout a figure.
type Op struct {
	Label string
	Color string `json:",omitempty"` // "#RRGGBB"; empty: the palette's next
	None  bool   `json:",omitempty"` // it stands for no connection: a hollow grey line; takes no colour of the palette
}

// Edge goes from node number From to node number To > From.
type Edge struct {
	From, To int

	// Weights has a number in [0, 1] for each of the cell's Ops: a row of θ, or a single 1. Operations of weight 0 are
	// not drawn. Empty: the edge has no operation, as into the node that concatenates; it is a thin grey line.
	Weights []float64

	Label    string   `json:",omitempty"` // on the edge's outer side, "sep_conv_3x3"; may have several lines
	Emphasis Emphasis `json:",omitempty"`
}

// Emphasis sets an edge apart from others.
type Emphasis string

// The emphases: tinted lightly, or with a dark outline.
const (
	Normal      Emphasis = ""
	Dimmed      Emphasis = "dimmed"
	Highlighted Emphasis = "highlighted"
)

func (c *Cell) validate() error {
	if len(c.Nodes) == 0 {
		return errors.New("cell: it has no nodes: expected at least one")
	}
	if !(c.Width == 0 || 0.1 <= c.Width && c.Width <= 40) {
		return fmt.Errorf("cell: Width is %g: expected 0.1 to 40 pt, or 0 for the default", c.Width)
	}
	if err := checkText(c.Note); err != nil {
		return fmt.Errorf("cell: note: %w", err)
	}
	for i, label := range c.Nodes {
		if err := checkText(label); err != nil {
			return fmt.Errorf("cell: node %d: %w", i, err)
		}
	}
	for i, op := range c.Ops {
		err := cmp.Or(checkText(op.Label), checkColor(op.Color))
		if op.Label == "" {
			err = errors.New("it has no label: expected a name for the legend")
		}
		if err != nil {
			return fmt.Errorf("cell: op %d: %w", i, err)
		}
	}
	return c.validateEdges()
}

func (c *Cell) validateEdges() error {
	seen := map[[2]int]int{}
	for i, e := range c.Edges {
		err := c.validateEdge(e)
		if before, again := seen[[2]int{e.From, e.To}]; again {
			err = fmt.Errorf("edge %d connects the same nodes: expected one edge with the weights of all operations",
				before)
		}
		if err != nil {
			return fmt.Errorf("cell: edge %d (%d→%d): %w", i, e.From, e.To, err)
		}
		seen[[2]int{e.From, e.To}] = i
	}
	return nil
}

func (c *Cell) validateEdge(e Edge) error {
	switch {
	case e.From < 0 || e.To >= len(c.Nodes) || e.From >= e.To:
		return fmt.Errorf("expected 0 ≤ From < To < %d, the number of nodes", len(c.Nodes))
	case len(e.Weights) != 0 && len(e.Weights) != len(c.Ops):
		return fmt.Errorf("it has %d weights and the cell %d ops: expected as many, or none", len(e.Weights),
			len(c.Ops))
	}
	for k, w := range e.Weights {
		if !(0 <= w && w <= 1+1e-6) { // NaN too; float32 rounds above 1
			return fmt.Errorf("weight %d (%q) is %g: expected 0 to 1", k, c.Ops[k].Label, w)
		}
	}
	return cmp.Or(checkText(e.Label), known("emphasis", e.Emphasis, Normal, Dimmed, Highlighted))
}

func (c *Cell) lines(panel string) [][]string {
	var lines [][]string
	for i, e := range c.Edges {
		edge := []string{panel, strconv.Itoa(i), plain(c.Nodes[e.From]), plain(c.Nodes[e.To])}
		if len(e.Weights) == 0 {
			lines = append(lines, slices.Concat(edge, []string{"", ""}))
		}
		for k := range e.Weights {
			lines = append(lines, slices.Concat(edge, []string{plain(c.Ops[k].Label), number(e.Weights, k)}))
		}
	}
	return lines
}
