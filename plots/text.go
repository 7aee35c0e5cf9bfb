package plots

import (
	"fmt"
	"strings"
	"sync"

	"codeberg.org/go-fonts/latin-modern/lmmath"
	"codeberg.org/go-fonts/latin-modern/lmroman10bold"
	"codeberg.org/go-fonts/latin-modern/lmroman10regular"
	"codeberg.org/go-fonts/stix/stix2mathregular"
	"codeberg.org/go-fonts/stix/stix2textbold"
	"codeberg.org/go-fonts/stix/stix2textregular"
	"golang.org/x/image/font"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
	"gonum.org/v1/plot/vg"
)

// Text is measured and placed glyph by glyph. PDF and EPS then have it as text in subsets of the fonts, see type1.go,
// and PNG, which a program reads for its picture, as outlines; an SVG has outlines too where it is to look the same on
// every machine. See math.go for what may stand between dollar signs.

// Font is the family that a figure's text is set in.
type Font string

// The fonts. Signs that one lacks are the other's.
const (
	LatinModern Font = ""      // LaTeX's own
	Times       Font = "times" // STIX Two, which is drawn to go with Times
)

// typeface is a font with the glyphs already taken from it.
type typeface struct {
	*sfnt.Font
	name   string        // as PostScript has it
	em     fixed.Int26_6 // units of the outlines; 1 em
	glyphs map[rune]*glyph
}

// glyph is one outline, in em with the origin on the baseline, y upwards.
type glyph struct {
	path                   vg.Path
	advance, height, depth vg.Length // height above the baseline, depth below it

	face *typeface // nil: drawn by hand
	char rune
}

// faces are a family's fonts, in the order in which they are asked for a rune.
type faces struct {
	regular []*typeface
	bold    *typeface
}

// families are the fonts. The math fonts have the italic letters of formulas. mu guards them and the buffer.
var (
	mu       sync.Mutex
	buffer   sfnt.Buffer
	families = sync.OnceValue(func() map[Font]faces {
		roman := parseFont("LMRoman10-Regular", lmroman10regular.TTF)
		romanMath := parseFont("LatinModernMath-Regular", lmmath.TTF)
		stix := parseFont("STIXTwoText-Regular", stix2textregular.TTF)
		stixMath := parseFont("STIXTwoMath-Regular", stix2mathregular.TTF)
		return map[Font]faces{
			LatinModern: {[]*typeface{roman, romanMath, stixMath}, parseFont("LMRoman10-Bold", lmroman10bold.TTF)},
			Times: {
				[]*typeface{stix, stixMath, roman, romanMath}, parseFont("STIXTwoText-Bold", stix2textbold.TTF),
			},
		}
	})
)

func parseFont(name string, data []byte) *typeface {
	f, err := sfnt.Parse(data)
	if err != nil {
		panic(fmt.Sprintf("plots: a font of this module does not parse: %v", err)) // embedded: cannot happen
	}
	return &typeface{Font: f, name: name, em: fixed.I(int(f.UnitsPerEm())), glyphs: map[rune]*glyph{}}
}

func (f Font) lookup(r rune) *glyph {
	mu.Lock()
	defer mu.Unlock()
	for _, face := range families()[f].regular {
		if g := face.lookup(r); g != nil {
			return g
		}
	}
	return nil
}

// lookupBold returns a bold glyph, or else that of lookup.
func (f Font) lookupBold(r rune) *glyph {
	mu.Lock()
	g := families()[f].bold.lookup(r)
	mu.Unlock()
	if g != nil {
		return g
	}
	return f.lookup(r)
}

func (f *typeface) lookup(r rune) *glyph {
	if g, ok := f.glyphs[r]; ok {
		return g
	}
	var g *glyph
	if i, err := f.GlyphIndex(&buffer, r); err == nil && i != 0 {
		if g = f.load(i); g != nil {
			g.face, g.char = f, r
		}
	}
	f.glyphs[r] = g
	return g
}

func (f *typeface) load(i sfnt.GlyphIndex) *glyph {
	segments, err := f.LoadGlyph(&buffer, i, f.em, nil)
	if err != nil {
		return nil
	}
	advance, err := f.GlyphAdvance(&buffer, i, f.em, font.HintingNone)
	if err != nil {
		return nil
	}
	bounds := segments.Bounds()
	g := &glyph{advance: f.inEm(advance), height: f.inEm(-bounds.Min.Y), depth: f.inEm(bounds.Max.Y)}
	for _, s := range segments {
		f.add(&g.path, s)
	}
	return g
}

func (f *typeface) inEm(v fixed.Int26_6) vg.Length { return vg.Length(v) / vg.Length(f.em) }

// add appends a segment, and closes the contour before.
func (f *typeface) add(p *vg.Path, s sfnt.Segment) {
	at := func(i int) vg.Point { return vg.Point{X: f.inEm(s.Args[i].X), Y: -f.inEm(s.Args[i].Y)} }
	switch s.Op {
	case sfnt.SegmentOpMoveTo:
		if len(*p) > 0 {
			p.Close()
		}
		p.Move(at(0))
	case sfnt.SegmentOpLineTo:
		p.Line(at(0))
	case sfnt.SegmentOpQuadTo:
		// As a cubic curve: vgeps takes a quadratic one for something else.
		start, control, end := (*p)[len(*p)-1].Pos, at(0), at(1)
		p.CubeTo(start.Add(control.Sub(start).Scale(2./3)), end.Add(control.Sub(end).Scale(2./3)), end)
	case sfnt.SegmentOpCubeTo:
		p.CubeTo(at(0), at(1), at(2))
	}
}

func (f Font) kern(a, b rune) vg.Length {
	if a == 0 {
		return 0
	}
	mu.Lock()
	defer mu.Unlock()
	roman := families()[f].regular[0]
	i, err1 := roman.GlyphIndex(&buffer, a)
	j, err2 := roman.GlyphIndex(&buffer, b)
	if err1 != nil || err2 != nil || i == 0 || j == 0 {
		return 0
	}
	k, err := roman.Kern(&buffer, i, j, roman.em, font.HintingNone)
	if err != nil {
		return 0
	}
	return roman.inEm(k)
}

// textLine is a line of set text with its baseline at y = 0, in points.
type textLine struct {
	font                 Font
	glyphs               []placed
	width, height, depth vg.Length
}

type placed struct {
	*glyph
	x, y, size vg.Length
}

// line sets one line of text. It does what it can with text that checkText refuses.
func (f Font) line(text string, size vg.Length) textLine {
	atoms, _ := parseText(text)
	l := textLine{font: f}
	l.set(atoms, size, size, 0)
	return l
}

func (f Font) boldLine(text string, size vg.Length) textLine {
	atoms, _ := parseText(text)
	embolden(atoms)
	l := textLine{font: f}
	l.set(atoms, size, size, 0)
	return l
}

func (l *textLine) put(g *glyph, size, y vg.Length) {
	if len(g.path) > 0 {
		l.height = max(l.height, y+size*g.height)
		l.depth = max(l.depth, size*g.depth-y)
	}
	l.glyphs = append(l.glyphs, placed{g, l.width, y, size})
	l.width += size * g.advance
}

func (l textLine) size() (size vg.Length) {
	for _, g := range l.glyphs {
		size = max(size, g.size)
	}
	return size
}

func (l textLine) scaled(by vg.Length) textLine {
	s := textLine{font: l.font, width: l.width * by, height: l.height * by, depth: l.depth * by}
	for _, g := range l.glyphs {
		s.glyphs = append(s.glyphs, placed{g.glyph, g.x * by, g.y * by, g.size * by})
	}
	return s
}

// path returns the outlines from pt on, turned a quarter counterclockwise if quarter.
func (l textLine) path(pt vg.Point, quarter bool) vg.Path {
	var p vg.Path
	for _, g := range l.glyphs {
		if len(g.path) == 0 { // a space
			continue
		}
		p = append(p, mapPath(g.path, func(q vg.Point) vg.Point {
			q.X, q.Y = g.x+g.size*q.X, g.y+g.size*q.Y
			if quarter {
				q.X, q.Y = -q.Y, q.X
			}
			return pt.Add(q)
		})...)
		p.Close()
	}
	return p
}

func (l textLine) box(pt vg.Point, quarter bool) vg.Rectangle {
	if quarter {
		return vg.Rectangle{
			Min: vg.Point{X: pt.X - l.height, Y: pt.Y},
			Max: vg.Point{X: pt.X + l.depth, Y: pt.Y + l.width},
		}
	}
	return vg.Rectangle{
		Min: vg.Point{X: pt.X, Y: pt.Y - l.depth},
		Max: vg.Point{X: pt.X + l.width, Y: pt.Y + l.height},
	}
}

func mapPath(p vg.Path, to func(vg.Point) vg.Point) vg.Path {
	out := make(vg.Path, len(p), len(p)+1)
	for i, c := range p {
		c.Pos = to(c.Pos)
		if len(c.Control) > 0 {
			control := make([]vg.Point, len(c.Control))
			for j, q := range c.Control {
				control[j] = to(q)
			}
			c.Control = control
		}
		out[i] = c
	}
	return out
}

// lines breaks text to a width at spaces outside formulas. A line that cannot be broken is made smaller.
func (f Font) lines(text string, size, width vg.Length) []textLine {
	var lines []textLine
	for _, paragraph := range strings.Split(text, "\n") {
		line := ""
		for _, word := range words(paragraph) {
			if longer := strings.TrimSpace(line + " " + word); line == "" || f.line(longer, size).width <= width {
				line = longer
				continue
			}
			lines = append(lines, f.line(line, size))
			line = word
		}
		if line != "" {
			lines = append(lines, f.line(line, size))
		}
	}
	for i, l := range lines {
		if l.width > width {
			lines[i] = l.scaled(width / l.width)
		}
	}
	return lines
}

func words(text string) []string {
	var words []string
	word, inMath, escaped := "", false, false
	for _, r := range text {
		if r == '$' && !escaped {
			inMath = !inMath
		}
		escaped = r == '\\' && !escaped
		if r == ' ' && !inMath {
			words, word = append(words, word), ""
			continue
		}
		word += string(r)
	}
	words = append(words, word)
	return words
}
