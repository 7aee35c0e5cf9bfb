package plots

import (
	"cmp"
	"slices"

	"gonum.org/v1/plot/vg"
)

// entry is one line of a legend: a sample of the curve and its name.
type entry struct {
	name  string
	look  look
	bars  bool // the sample shows an error bar
	band  bool // or a band
	empty bool // the series has no points
	note  bool // not a curve, but what a hollow point means
	op    bool // not a curve, but an operation of a cell
	patch bool // not a curve, but an area of a simplex
	open  bool // all of its points are hollow
	text  textLine

	hollow bool // the operation stands for no connection
}

// Distances in a legend.
const (
	sampleWidth = 20
	sampleGap   = 4
	entryGap    = 12
	insideGap   = 5
	legendGap   = 3 // between a panel and its own legend
)

func (p *panel) entries() []entry {
	var all []entry
	if p.box != nil {
		if b, ok := p.box.(interface{ entries() []entry }); ok {
			return b.entries()
		}
		return nil
	}
	for i, s := range p.Series {
		if s.Label != "" && s.Entry != NoEntry && !s.Faint {
			all = append(all, entry{name: cmp.Or(s.Entry, s.Label), look: p.looks[i], band: s.asBand(),
				bars: len(s.Lo) > 0 && !s.asBand(), empty: len(s.X)+len(s.Y) == 0,
				open: len(s.Hollow) > 0 && !slices.Contains(s.Hollow, false)})
		}
	}
	if p.Legend.Hollow != "" {
		all = append(all,
			entry{name: p.Legend.Hollow, look: look{color: ink, line: NoLine, marker: Circle}, note: true})
	}
	return all
}

// setNames sets the entries' texts, none wider than room.
func (l *layout) setNames(entries []entry, room vg.Length) []entry {
	for i, e := range entries {
		if e.empty {
			e.name += " (not run)"
		}
		if e.text = l.font.line(e.name, l.small); e.text.width > room {
			e.text = e.text.scaled(room / e.text.width)
		}
		entries[i].text = e.text
	}
	return entries
}

func (l *layout) legend(p *panel, below *[]entry) {
	entries := p.entries()
	if p.Legend.Position == LegendNone || len(entries) == 0 {
		return
	}
	alone := len(l.panels) == 1 && len(l.panels[0]) == 1 || l.own && !l.grouped(p)
	if p.box == nil && p.heat == nil &&
		(p.Legend.Position == LegendInside || p.Legend.Position == LegendAuto && alone) {
		l.setNames(entries, l.width)
		for perRow := range min(max(1, len(entries)/2), mostColumns) {
			size := l.legendSize(entries, perRow+1)
			if at, ok := p.freePlace(size, p.obstacles()); ok {
				right, low := at.X+size.X, at.Y-size.Y // no grid lines behind it
				area := []vg.Point{at, {X: right, Y: at.Y}, {X: right, Y: low}, {X: at.X, Y: low}}
				l.fill(polygon(area), tint(ink, 0))
				l.drawEntries(entries, perRow+1, at)
				return
			}
		}
	}
	*below = addEntries(*below, entries)
}

// addEntries adds what is not there to a shared legend; the note on hollow points stays last. A series with points in
// any panel is not marked "not run". A line in one panel and points in another become one entry.
func addEntries(shared, more []entry) []entry {
	for _, e := range more {
		i := slices.IndexFunc(shared, e.sameAs)
		n := len(shared)
		switch {
		case i >= 0:
			shared[i] = shared[i].with(e)
		case n > 0 && shared[n-1].note && !e.note:
			shared = slices.Insert(shared, n-1, e)
		default:
			shared = append(shared, e)
		}
	}
	return shared
}

func (e entry) sameAs(o entry) bool {
	fits := func(a, b, none string) bool { return a == b || a == none || b == none }
	return e.name == o.name && e.note == o.note && e.op == o.op && e.patch == o.patch &&
		e.look.color == o.look.color && e.look.thin == o.look.thin &&
		fits(string(e.look.line), string(o.look.line), string(NoLine)) &&
		fits(string(e.look.marker), string(o.look.marker), string(NoMarker))
}

func (e entry) with(o entry) entry {
	if e.look.line == NoLine {
		e.look.line = o.look.line
	}
	if e.look.marker == NoMarker {
		e.look.marker = o.look.marker
	}
	e.empty, e.open, e.band = e.empty && o.empty, e.open && o.open, e.band || o.band
	e.bars = (e.bars || o.bars) && !e.band
	return e
}

func merged(panels []*panel) []entry {
	var all []entry
	for _, p := range panels {
		if p.Legend.Position != LegendNone {
			all = addEntries(all, p.entries())
		}
	}
	return all
}

// ofKind returns the entries of operations, or those of curves.
func ofKind(entries []entry, ops bool) []entry {
	return slices.DeleteFunc(slices.Clone(entries), func(e entry) bool { return e.op != ops })
}

func columnWidths(entries []entry, perRow int) []vg.Length {
	widths := make([]vg.Length, min(perRow, len(entries)))
	for i, e := range entries {
		widths[i%perRow] = max(widths[i%perRow], sampleWidth+sampleGap+e.text.width)
	}
	return widths
}

func total(widths []vg.Length) vg.Length {
	sum := vg.Length(len(widths)-1) * entryGap
	for _, w := range widths {
		sum += w
	}
	return sum
}

func (l *layout) entryHeight() vg.Length { return 1.3 * l.small }

func (l *layout) legendSize(entries []entry, perRow int) vg.Point {
	lines := (len(entries) + perRow - 1) / perRow
	return vg.Point{X: total(columnWidths(entries, perRow)), Y: vg.Length(lines) * l.entryHeight()}
}

// freePlace returns the upper left corner of a place in the frame without obstacles, corners first.
func (p *panel) freePlace(size vg.Point, obstacles []vg.Point) (vg.Point, bool) {
	room := p.frame.Size().Sub(size).Sub(vg.Point{X: 2 * insideGap, Y: 2 * insideGap})
	if room.X < 0 || room.Y < 0 {
		return vg.Point{}, false
	}
	for _, share := range []vg.Point{
		{X: 1}, {X: 0}, {X: 1, Y: 1}, {X: 0, Y: 1}, {X: 0.5}, {X: 0.5, Y: 1}, {X: 1, Y: 0.5}, {X: 0, Y: 0.5},
		{X: 0.5, Y: 0.5},
	} {
		at := vg.Point{X: p.frame.Min.X + insideGap + share.X*room.X, Y: p.frame.Max.Y - insideGap - share.Y*room.Y}
		if !slices.ContainsFunc(obstacles, func(q vg.Point) bool {
			return at.X-insideGap < q.X && q.X < at.X+size.X+insideGap && at.Y-size.Y-insideGap < q.Y &&
				q.Y < at.Y+insideGap
		}) {
			return at, true
		}
	}
	return vg.Point{}, false
}

// mostColumns is how many columns a legend inside a frame may have, of two entries or more.
const mostColumns = 2

// mostShared is how many entries a legend that panels share may have.
const mostShared = 6

func (l *layout) manyEntries() bool {
	axes := slices.DeleteFunc(slices.Concat(l.panels...), func(p *panel) bool {
		return p.box != nil || p.Legend.Position == LegendNone
	})
	return len(axes) > 1 && len(merged(axes)) > mostShared
}

// share decides which rows share a legend if one is not enough: neighbouring rows whose panels explain the same, or a
// part of it. Every other panel has its own.
func (l *layout) share() {
	l.own = l.manyEntries()
	l.groups = make([][]*panel, len(l.panels))
	if !l.own {
		return
	}
	for from := 0; from < len(l.panels); {
		to := from + 1
		for to < len(l.panels) && alike(slices.Concat(l.panels[from:to+1]...)) != nil {
			to++
		}
		l.groups[to-1] = alike(slices.Concat(l.panels[from:to]...))
		from = to
	}
}

// alike returns the panels whose legends can be shared, if one of them has all entries; else nil.
func alike(panels []*panel) []*panel {
	var open []*panel
	for _, p := range panels {
		if p.box != nil {
			return nil
		}
		if p.Legend.Position != LegendNone && p.Legend.Position != LegendInside && len(p.entries()) > 0 {
			open = append(open, p)
		}
	}
	all := len(merged(open))
	if len(open) < 2 || !slices.ContainsFunc(open, func(p *panel) bool { return len(merged([]*panel{p})) == all }) {
		return nil
	}
	return open
}

func (l *layout) grouped(p *panel) bool {
	return slices.ContainsFunc(l.groups, func(group []*panel) bool { return slices.Contains(group, p) })
}

// legendUnder draws a legend below y, centred under its panels if it fits, and returns its height.
func (l *layout) legendUnder(s strip, left, right, y vg.Length) vg.Length {
	l.setNames(s.entries, right-left-sampleWidth-sampleGap)
	perRow := fitting(s.entries, right-left)
	width := total(columnWidths(s.entries, perRow))
	l.drawEntries(s.entries, perRow, vg.Point{X: max(left, min(right-width, (s.left+s.right-width)/2)), Y: y})
	return vg.Length((len(s.entries)+perRow-1)/perRow) * l.entryHeight()
}

type strip struct {
	entries     []entry
	left, right vg.Length
}

type strips []strip

// add takes a panel's legend. Neighbours share one if one of them has all entries.
func (all *strips) add(s strip) {
	if len(s.entries) == 0 {
		return
	}
	if n := len(*all); n > 0 && (*all)[n-1].right+columns == s.left {
		last := &(*all)[n-1]
		both := addEntries(slices.Clone(last.entries), s.entries)
		if len(both) == max(len(last.entries), len(s.entries)) {
			*last = strip{both, last.left, s.right}
			return
		}
	}
	*all = append(*all, s)
}

// draw draws them below y and returns the largest height. A single one gets the width of the row.
func (all strips) draw(l *layout, right, y vg.Length) (height vg.Length) {
	for _, s := range all {
		from, to := s.left, s.right
		if len(all) == 1 {
			from, to = edge, right
		}
		height = max(height, l.legendUnder(s, from, to, y-legendGap)+legendGap)
	}
	return height
}

func (l *layout) legendBelow(entries []entry, y vg.Length) vg.Length {
	return y - l.legendUnder(strip{entries, 0, l.width}, edge, l.width-edge, y)
}

// waits reports whether the legend of the group that ends with row r can go beside the last row.
func (l *layout) waits(r int) bool {
	last := l.panels[len(l.panels)-1]
	if r != len(l.panels)-2 || l.groups[len(l.panels)-1] != nil || boxesOnly(last) {
		return false
	}
	entries := merged(l.groups[r])
	_, ok := l.besideSize(last, entries)
	return ok
}

// besideSize is the room beside the last row, and whether a legend of one column fits.
func (l *layout) besideSize(row []*panel, entries []entry) (left vg.Length, ok bool) {
	if len(l.panels) < 2 || boxesOnly(row) || len(row) >= len(l.left) || len(entries) == 0 {
		return 0, false
	}
	left = edge
	for c := range row {
		left += l.left[c] + l.frame.X + l.right[c] + columns
	}
	size := l.legendSize(l.setNames(entries, l.width), 1)
	return left, left+size.X <= l.width-edge && size.Y <= l.frame.Y
}

// legendBeside draws a legend beside the last row if it fits, and returns the entries that are left.
func (l *layout) legendBeside(row []*panel, entries []entry) []entry {
	left, ok := l.besideSize(row, entries)
	if !ok || len(ofKind(entries, true)) > 0 {
		return entries
	}
	size, frame := l.legendSize(entries, 1), row[0].frame
	l.drawEntries(entries, 1, vg.Point{
		X: (left + l.width - edge - size.X) / 2, Y: (frame.Min.Y + frame.Max.Y + size.Y) / 2,
	})
	return nil
}

// fitting is how many entries go into a row, in as few rows of about equal length as possible.
func fitting(entries []entry, width vg.Length) int {
	for n := 1; n < len(entries); n++ {
		if perRow := (len(entries) + n - 1) / n; total(columnWidths(entries, perRow)) <= width {
			return perRow
		}
	}
	return 1
}

func (l *layout) drawEntries(entries []entry, perRow int, at vg.Point) {
	widths := columnWidths(entries, perRow)
	for i, e := range entries {
		x := at.X
		if column := i % perRow; column > 0 {
			x += total(widths[:column]) + entryGap
		}
		middle := at.Y - (vg.Length(i/perRow)+0.5)*l.entryHeight()
		l.drawSample(e, vg.Point{X: x, Y: middle})
		l.text(e.text, vg.Point{X: x + sampleWidth + sampleGap, Y: middle - 0.33*l.small})
	}
}

func (l *layout) drawSample(e entry, at vg.Point) {
	right := vg.Point{X: at.X + sampleWidth, Y: at.Y}
	middle := vg.Point{X: at.X + sampleWidth/2, Y: at.Y}
	half := 0.38 * l.small
	if e.op {
		l.stroke([]vg.Point{at, right}, pen{e.look.color, 0.55 * l.small, Solid})
		if e.hollow {
			wall := vg.Point{X: tubeWall}
			l.stroke([]vg.Point{at.Add(wall), right.Sub(wall)}, pen{tint(ink, 0), 0.55*l.small - 2*tubeWall, Solid})
		}
		return
	}
	area := rectangle(at.Sub(vg.Point{Y: half}), right.Add(vg.Point{Y: half}))
	if e.patch {
		l.fill(area, e.look.color)
		return
	}
	if e.band {
		l.veil(area, e.look)
	}
	if e.bars {
		low, high := vg.Point{X: middle.X, Y: at.Y - half}, vg.Point{X: middle.X, Y: at.Y + half}
		for _, line := range [][]vg.Point{{low, high}, capOf(low, l), capOf(high, l)} {
			l.stroke(line, pen{e.look.color, vg.Length(l.style.Hairline), Solid})
		}
	}
	l.strokeCentred([]vg.Point{at, right}, sampleWidth, l.pen(e.look))
	l.mark(e.look.marker, middle, vg.Length(l.style.Marker), e.look.color, e.note || e.open)
}

// direct writes the names of references beside their curves while a legend has more entries than it can hold, and
// returns the entries that are left. A name is written in every panel that has the curve, or in none. Curves stay
// together in the legend.
func (l *layout) direct(panels []*panel, entries []entry) []entry {
	for i := 0; i < len(entries) && len(entries) > mostShared; {
		if e := entries[i]; e.look.thin && !e.empty && l.nameCurve(panels, e) {
			entries = slices.Delete(entries, i, i+1)
			continue
		}
		i++
	}
	return entries
}

type name struct {
	text textLine
	at   vg.Point // the start of its baseline
}

// nameCurve names a curve in every panel that has it. It reports whether each panel had room.
func (l *layout) nameCurve(panels []*panel, e entry) bool {
	var names []name
	for _, p := range panels {
		for n, s := range p.Series {
			if cmp.Or(s.Entry, s.Label) != e.name || !s.Reference || len(s.X)+len(s.Y) == 0 {
				continue
			}
			at, ok := p.nameAt(l, n, l.font.line(e.name, l.small))
			if !ok {
				return false
			}
			names = append(names, at)
			break // of several curves of one name, one is named
		}
	}
	for _, n := range names {
		l.tintedText(n.text, n.at, false, grey)
	}
	return len(names) > 0
}

// nameAt finds a free place for a name above or below its curve, near its right end if possible.
func (p *panel) nameAt(l *layout, n int, text textLine) (name, bool) {
	const away = 2 // from the curve
	curve := p.sampledCurve(n)
	obstacles := p.obstacles()
	for _, share := range []vg.Length{1, 0.75, 0.5, 0.25, 0} {
		x := p.frame.Min.X + insideGap + share*(p.frame.Size().X-2*insideGap-text.width)
		low, high, ok := heights(curve, x, x+text.width)
		if !ok {
			continue
		}
		for _, y := range []vg.Length{high + away + text.depth, low - away - text.height} {
			at := name{text, vg.Point{X: x, Y: y}}
			if p.clear(l, text.box(at.at, false), obstacles) {
				return at, true
			}
		}
	}
	return name{}, false
}

func (p *panel) sampledCurve(n int) []vg.Point {
	var all []vg.Point
	for _, part := range clipLine(p.frame, p.points(n, p.Series[n].Y)) {
		all = append(all, sampled(part)...)
	}
	return all
}

func heights(points []vg.Point, from, to vg.Length) (low, high vg.Length, ok bool) {
	for _, q := range points {
		if q.X < from || q.X > to {
			continue
		}
		if !ok {
			low, high, ok = q.Y, q.Y, true
		}
		low, high = min(low, q.Y), max(high, q.Y)
	}
	return low, high, ok
}

// clear reports whether text fits in the frame and touches neither data nor other texts.
func (p *panel) clear(l *layout, box vg.Rectangle, obstacles []vg.Point) bool {
	const gap = 1
	box.Min, box.Max = box.Min.Sub(vg.Point{X: gap, Y: gap}), box.Max.Add(vg.Point{X: gap, Y: gap})
	touches := func(q vg.Point) bool {
		return box.Min.X < q.X && q.X < box.Max.X && box.Min.Y < q.Y && q.Y < box.Max.Y
	}
	return p.inside(box.Min) && p.inside(box.Max) && !slices.ContainsFunc(obstacles, touches) &&
		!slices.ContainsFunc(l.texts, func(t vg.Rectangle) bool {
			return box.Min.X < t.Max.X && t.Min.X < box.Max.X && box.Min.Y < t.Max.Y && t.Min.Y < box.Max.Y
		})
}
