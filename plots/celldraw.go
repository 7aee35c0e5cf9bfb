package plots

import (
	"cmp"
	"fmt"
	"image/color"
	"slices"

	"gonum.org/v1/plot/vg"
)

// cellBox is a Cell on its way to the page. Nodes stand on a line. The edge to the next node is straight; all others
// are arches above or below the line, made of verticals, quarter circles and horizontals, because those have exact
// parallels: however many curves an edge has, they keep their widths.
//
// Every arch has a level on its side, and none of the same level overlap: the
// horizontals never touch, and neither do their labels.
type cellBox struct {
	*Cell
	font   Font
	size   vg.Length // of its text
	colors []color.RGBA
	full   vg.Length // width of weight 1
	slot   vg.Length // room across an edge, whatever its weights
	tall   vg.Length // height of a node
	nodes  []cellNode
	edges  []cellEdge // as Cell.Edges
}

type cellNode struct {
	text     textLine
	width, x vg.Length // x is its middle
}

// cellEdge is a placed edge. Heights count outwards from the nodes' upper (or lower) side.
type cellEdge struct {
	side       vg.Length // 1 above the nodes, −1 below, 0 straight
	level      int       // 1 is next to the nodes
	start, end vg.Length // x; of an arch, first from its nodes' middles
	rise       vg.Length // height of the horizontal
	label      []textLine
	middle     vg.Length // x of the label
}

// Distances in a cell: an arrowhead's width and length beyond the edge, then gaps between edges, nodes and labels.
const (
	headWide  = 3.4
	headLong  = 4.2
	portGap   = 1.6
	nodesNear = 16 // nodes stand at least this far apart
	nodesFar  = 84 // and at most
	roundest  = 24 // radius of an arch's corners, at most
	air       = 3
	parallel  = 0.35 // between the curves of an edge
	tubeWall  = 0.45 // of the hollow curve that stands for no connection
	legible   = 5    // smallest text
)

func (l *layout) newCell(c *Cell) *cellBox {
	b := &cellBox{Cell: c, font: l.font, size: l.small}
	for _, op := range c.Ops {
		b.colors = append(b.colors, l.looks.op(op))
	}
	b.setWidths()
	b.tall = max(2*b.size, b.slot+headWide+2)
	for _, e := range c.Edges {
		b.edges = append(b.edges, cellEdge{label: b.setLabel(e.Label)})
	}
	b.chooseSides()
	b.chooseLevels()
	b.placePorts()
	return b
}

// setWidths sets the width of weight 1 and the room for an edge, whose weights may sum to more than 1.
func (b *cellBox) setWidths() {
	mixed, most := false, 1.0
	for _, e := range b.Edges {
		sum, n := 0.0, 0
		for _, w := range e.Weights {
			sum += w
			if w > 0 {
				n++
			}
		}
		mixed, most = mixed || n > 1, max(most, sum)
	}
	b.full = vg.Length(cmp.Or(b.Width, map[bool]float64{false: 1.6, true: 7}[mixed]))
	b.slot = b.full * vg.Length(most)
	if mixed {
		b.slot += parallel * vg.Length(len(b.Ops)-1)
	}
}

func crosses(a, b Edge) bool {
	return a.From < b.From && b.From < a.To && a.To < b.To || b.From < a.From && a.From < b.To && b.To < a.To
}

// chooseSides puts each arch on the side where it crosses fewer others, or else on the emptier side: the longest first,
// then again until nothing improves.
func (b *cellBox) chooseSides() {
	order := b.arches(func(x, y Edge) int { return cmp.Or(y.To-y.From-(x.To-x.From), x.From-y.From) })
	cost := func(i int, side vg.Length) int {
		n := 0
		for _, k := range order {
			if k != i && b.edges[k].side == side && crosses(b.Edges[i], b.Edges[k]) {
				n++
			}
		}
		return n
	}
	crowd := map[vg.Length]int{}
	for _, i := range order {
		side := vg.Length(1)
		if above, below := cost(i, 1), cost(i, -1); below < above || below == above && crowd[-1] < crowd[1] {
			side = -1
		}
		b.edges[i].side = side
		crowd[side] += b.Edges[i].To - b.Edges[i].From
	}
	for range 8 { // each change leaves fewer crossings; a few rounds settle it
		for _, i := range order {
			if side := b.edges[i].side; cost(i, -side) < cost(i, side) {
				b.edges[i].side = -side
			}
		}
	}
}

// arches returns the indices of the edges that are not straight, sorted.
func (b *cellBox) arches(order func(a, b Edge) int) []int {
	var all []int
	for i, e := range b.Edges {
		if e.To > e.From+1 {
			all = append(all, i)
		}
	}
	slices.SortStableFunc(all, func(i, k int) int { return order(b.Edges[i], b.Edges[k]) })
	return all
}

func (b *cellBox) chooseLevels() {
	order := b.arches(func(x, y Edge) int { return cmp.Or(x.To-x.From-(y.To-y.From), x.From-y.From) })
	for n, i := range order {
		level := 1
		for _, k := range order[:n] {
			overlap := b.Edges[i].From < b.Edges[k].To && b.Edges[k].From < b.Edges[i].To
			if overlap && b.edges[i].side == b.edges[k].side {
				level = max(level, b.edges[k].level+1)
			}
		}
		b.edges[i].level = level
	}
}

// placePorts sets where arches meet their nodes, and the nodes' widths: from left to right incoming arches, the
// shortest first, then outgoing ones, the longest first, so that none cross at a node.
func (b *cellBox) placePorts() {
	step := b.slot + headWide + portGap
	into := b.arches(func(x, y Edge) int { return cmp.Compare(x.To-x.From, y.To-y.From) })
	for n, label := range b.Nodes {
		node := cellNode{text: b.font.line(label, b.size)}
		node.width = max(b.tall, node.text.width+b.size)
		for _, side := range []vg.Length{1, -1} {
			var ports []*vg.Length
			for _, i := range into {
				if e := &b.edges[i]; e.side == side && b.Edges[i].To == n {
					ports = append(ports, &e.end)
				}
			}
			for _, i := range slices.Backward(into) {
				if e := &b.edges[i]; e.side == side && b.Edges[i].From == n {
					ports = append(ports, &e.start)
				}
			}
			for i, port := range ports {
				*port = (vg.Length(i) - vg.Length(len(ports)-1)/2) * step
			}
			node.width = max(node.width, vg.Length(len(ports))*step+portGap)
		}
		b.nodes = append(b.nodes, node)
	}
}

// placed lays the cell out in a width, its nodes from x = 0 on.
func (b *cellBox) placed(width vg.Length) (*cellBox, error) {
	p := *b
	p.nodes, p.edges = slices.Clone(b.nodes), slices.Clone(b.edges)
	gap, sum := vg.Length(nodesFar), vg.Length(0)
	for _, n := range p.nodes {
		sum += n.width
	}
	if between := vg.Length(len(p.nodes) - 1); between > 0 {
		gap = min(gap, (width-sum)/between)
		if gap < nodesNear {
			return nil, fmt.Errorf("cell: its %d nodes need %.0f pt: found %.0f; use a wider style or a row of its own",
				len(p.nodes), float64(sum+between*nodesNear), float64(width))
		}
	} else if sum > width {
		return nil, fmt.Errorf("cell: its node needs %.0f pt: found %.0f; use a shorter label",
			float64(sum), float64(width))
	}
	p.placeNodes(gap)
	p.chooseRises()
	return &p, p.placeLabels()
}

func (b *cellBox) placeNodes(gap vg.Length) {
	x := vg.Length(0)
	for i := range b.nodes {
		n := &b.nodes[i]
		n.x = x + n.width/2
		x += n.width + gap
	}
	for i, e := range b.Edges {
		from, to, edge := b.nodes[e.From], b.nodes[e.To], &b.edges[i]
		if edge.side == 0 {
			edge.start, edge.end = from.x+from.width/2, to.x-to.width/2
			continue
		}
		edge.start += from.x
		edge.end += to.x
	}
}

func (b *cellBox) width() vg.Length {
	last := b.nodes[len(b.nodes)-1]
	return last.x + last.width/2
}

// chooseRises sets each level's height: above the level below with its labels, and above the labels of straight edges.
func (b *cellBox) chooseRises() {
	for _, side := range []vg.Length{1, -1} {
		rise := b.slot + headLong + 12
		if side > 0 {
			rise = max(rise, b.straightTop()+b.slot/2+air)
		}
		for level := 1; ; level++ {
			label, found := vg.Length(0), false
			for i := range b.edges {
				if e := &b.edges[i]; e.side == side && e.level == level {
					e.rise, found = rise, true
					label = max(label, b.labelHeight(*e))
				}
			}
			if !found {
				break
			}
			rise += max(b.slot+air+label, 8)
		}
	}
}

// straightTop is how far labels of straight edges stick out above the nodes.
func (b *cellBox) straightTop() vg.Length {
	top := vg.Length(0)
	for _, e := range b.edges {
		if e.side == 0 && len(e.label) > 0 {
			top = max(top, b.slot/2+b.labelHeight(e)-b.tall/2)
		}
	}
	return top
}

// radius is that of an arch's corners. The arrowhead needs a straight end.
func (b *cellBox) radius(e cellEdge) vg.Length {
	return min(max(roundest, b.slot), e.rise-headLong-1, (e.end-e.start)/2)
}

// extent is the height of the arches above (side 1) or below the nodes.
func (b *cellBox) extent(side vg.Length) vg.Length {
	most := vg.Length(0)
	if side > 0 {
		most = b.straightTop()
	}
	for _, e := range b.edges {
		if e.side == side {
			most = max(most, e.rise+b.slot/2+b.labelHeight(e))
		}
	}
	return most
}

func (b *cellBox) height(l *layout, width vg.Length) (vg.Length, error) {
	p, err := b.placed(width)
	if err != nil {
		return 0, err
	}
	return p.extent(1) + p.tall + p.extent(-1) + b.noteHeight(width), nil
}

func (b *cellBox) draw(l *layout, in vg.Rectangle) {
	width := in.Size().X
	p, err := b.placed(width)
	if err != nil {
		return // arrange has seen it
	}
	note := b.noteHeight(width)
	free := in.Size().Y - note - p.extent(1) - p.tall - p.extent(-1)
	origin := vg.Point{X: in.Min.X + (width-p.width())/2, Y: in.Min.Y + note + free/2 + p.extent(-1) + p.tall/2}
	for _, i := range p.drawOrder() {
		p.drawEdge(l, i, origin)
	}
	for _, n := range p.nodes {
		p.drawNode(l, n, origin)
	}
	l.block(b.font.lines(b.Note, b.size, width), b.size, in.Min.X, in.Max.X, in.Min.Y+note-titleGap, 0.5)
}

// drawOrder returns the edges from back to front: dimmed ones, straight ones, then arches by level.
func (b *cellBox) drawOrder() []int {
	var order []int
	for i := range b.edges {
		order = append(order, i)
	}
	back := func(i int) int { return map[Emphasis]int{Dimmed: -1, Highlighted: 1}[b.Edges[i].Emphasis] }
	slices.SortStableFunc(order, func(i, k int) int {
		return cmp.Or(cmp.Compare(back(i), back(k)), cmp.Compare(b.edges[i].level, b.edges[k].level))
	})
	return order
}

func (b *cellBox) drawNode(l *layout, n cellNode, origin vg.Point) {
	at := vg.Point{X: origin.X + n.x, Y: origin.Y}
	outline := roundedBox(at, n.width, b.tall, 3.5)
	l.fill(outline, tint(ink, 0.06))
	l.outline(outline, ink, vg.Length(l.style.Hairline))
	l.text(n.text, vg.Point{X: at.X - n.text.width/2, Y: at.Y - 0.33*b.size})
}

type stripe struct {
	color       color.RGBA
	aside, wide vg.Length // its middle, outwards from the edge's; its width
	hollow      bool      // only its outline is drawn
}

// stripes returns an edge's curves from the outside in, their total width, and the curve that gives the arrowhead its
// look.
func (b *cellBox) stripes(e Edge) (all []stripe, wide vg.Length, head stripe) {
	shade := func(c color.RGBA) color.RGBA {
		if e.Emphasis == Dimmed {
			return tint(c, 0.25)
		}
		return c
	}
	if len(e.Weights) == 0 {
		plain := stripe{color: shade(tint(grey, 0.7)), wide: 0.9}
		return []stripe{plain}, plain.wide, plain
	}
	heaviest := slices.Max(e.Weights)
	leaders := 0
	for k, w := range e.Weights {
		v := vg.Length(w) * b.full
		if v < 0.01 {
			continue
		}
		if len(all) > 0 {
			wide += parallel
		}
		s := stripe{shade(b.colors[k]), -wide - v/2, v, b.Ops[k].None}
		all, wide = append(all, s), wide+v
		if w > heaviest*(1-1e-6) {
			head = s
			leaders++
		}
	}
	if leaders > 1 {
		head = stripe{color: shade(grey)}
	}
	for i := range all {
		all[i].aside += wide / 2
	}
	return all, wide, head
}

func (b *cellBox) drawEdge(l *layout, i int, origin vg.Point) {
	e, at := b.Edges[i], b.edges[i]
	stripes, wide, head := b.stripes(e)
	if len(stripes) == 0 {
		return
	}
	line := func(aside, width vg.Length, c color.RGBA) {
		l.outline(b.path(at, aside, origin), c, width)
	}
	line(0, wide+2.8, tint(ink, 0)) // a crossing edge stops short of this one
	if e.Emphasis == Highlighted {
		line(0, wide+1.8, ink)
		line(0, wide+0.4, tint(ink, 0))
	}
	for _, s := range stripes {
		line(s.aside, s.wide, s.color)
		if s.hollow && s.wide > 2*tubeWall {
			line(s.aside, s.wide-2*tubeWall, tint(ink, 0))
		}
	}
	b.drawHead(l, b.head(at, wide, origin), head)
	b.drawLabel(l, i, origin)
}

func (b *cellBox) drawHead(l *layout, outline vg.Path, like stripe) {
	if !like.hollow {
		l.fill(outline, like.color)
		return
	}
	l.fill(outline, tint(ink, 0))
	l.outline(outline, like.color, tubeWall)
}

// path is the curve at a distance outwards from an edge's middle (upwards if straight), up to the arrowhead.
func (b *cellBox) path(e cellEdge, aside vg.Length, origin vg.Point) vg.Path {
	var p vg.Path
	if e.side == 0 {
		p.Move(vg.Point{X: origin.X + e.start - 1, Y: origin.Y + aside})
		p.Line(vg.Point{X: origin.X + e.end - headLong + 0.1, Y: origin.Y + aside})
		return p
	}
	const k = 1 - 0.5522847498 // see circle
	r := b.radius(e) + aside
	at := func(x, y vg.Length) vg.Point {
		return vg.Point{X: origin.X + x, Y: origin.Y + e.side*(b.tall/2+y)}
	}
	x0, x1, top := e.start-aside, e.end+aside, e.rise+aside
	p.Move(at(x0, -1)) // in the node, which is drawn over it
	p.Line(at(x0, top-r))
	p.CubeTo(at(x0, top-k*r), at(x0+k*r, top), at(x0+r, top))
	p.Line(at(x1-r, top))
	p.CubeTo(at(x1-k*r, top), at(x1, top-k*r), at(x1, top-r))
	p.Line(at(x1, headLong-0.1))
	return p
}

func (b *cellBox) head(e cellEdge, wide vg.Length, origin vg.Point) vg.Path {
	half := (wide + headWide) / 2
	if e.side == 0 {
		tip := vg.Point{X: origin.X + e.end, Y: origin.Y}
		return polygon([]vg.Point{tip, {X: tip.X - headLong, Y: tip.Y + half}, {X: tip.X - headLong, Y: tip.Y - half}})
	}
	tip := vg.Point{X: origin.X + e.end, Y: origin.Y + e.side*b.tall/2}
	base := tip.Y + e.side*headLong
	return polygon([]vg.Point{tip, {X: tip.X - half, Y: base}, {X: tip.X + half, Y: base}})
}

func roundedBox(at vg.Point, width, height, r vg.Length) vg.Path {
	const k = 1 - 0.5522847498 // see circle
	to := func(x, y vg.Length) vg.Point { return vg.Point{X: at.X + x, Y: at.Y + y} }
	x, y := width/2, height/2
	var p vg.Path
	p.Move(to(x-r, y))
	p.CubeTo(to(x-k*r, y), to(x, y-k*r), to(x, y-r))
	p.Line(to(x, r-y))
	p.CubeTo(to(x, k*r-y), to(x-k*r, -y), to(x-r, -y))
	p.Line(to(r-x, -y))
	p.CubeTo(to(k*r-x, -y), to(-x, k*r-y), to(-x, r-y))
	p.Line(to(-x, y-r))
	p.CubeTo(to(-x, y-k*r), to(k*r-x, y), to(r-x, y))
	p.Close()
	return p
}

func (b *cellBox) entries() []entry {
	var all []entry
	for i, o := range b.Ops {
		all = append(all, entry{name: o.Label, look: look{color: b.colors[i]}, op: true, hollow: o.None})
	}
	return all
}
