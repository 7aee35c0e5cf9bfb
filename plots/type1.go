package plots

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math"
	"strings"
	"sync"

	"gonum.org/v1/plot/vg"
)

// A Type 1 font is what PDF and EPS both embed, and what a subset of any font here can be written as: clear text with
// the encoding, then, enciphered, an outline for each glyph (Adobe Type 1 Font Format, 1990, chapters 2, 6 and 7).

// subset is what a page needs of a typeface, coded from firstCode on.
type subset struct {
	face   *typeface
	glyphs []*glyph
}

const (
	firstCode = 32
	lastCode  = 255
)

// coded says where a glyph is: in which subset, as which code.
type coded struct {
	subset int
	code   byte
}

type subsets struct {
	all  []subset
	code map[*glyph]coded
}

func newSubsets(p *page) *subsets {
	s := &subsets{code: map[*glyph]coded{}}
	open := map[*typeface]int{} // the subset that still takes some
	for _, o := range p.ops {
		if o.text == nil {
			continue
		}
		for _, g := range o.text.glyphs {
			if _, known := s.code[g.glyph]; known || g.face == nil {
				continue
			}
			n, ok := open[g.face]
			if !ok || len(s.all[n].glyphs) > lastCode-firstCode {
				n = len(s.all)
				open[g.face], s.all = n, append(s.all, subset{face: g.face})
			}
			s.code[g.glyph] = coded{n, byte(firstCode + len(s.all[n].glyphs))}
			s.all[n].glyphs = append(s.all[n].glyphs, g.glyph)
		}
	}
	return s
}

// name is the font's with a tag of six letters, as subsets have.
func (s subset) name() string {
	hash := sha256.Sum256([]byte(s.encoding()))
	tag := make([]byte, 6)
	for i := range tag {
		tag[i] = 'A' + hash[i]%26
	}
	return string(tag) + "+" + s.face.name
}

func (s subset) encoding() string {
	names := []string{fmt.Sprint(firstCode)}
	for _, g := range s.glyphs {
		names = append(names, "/"+g.name())
	}
	return strings.Join(names, " ")
}

// name is that of the Adobe Glyph List, from which a reader recovers the text.
func (g *glyph) name() string {
	r, slanted := upright(g.char)
	name := fmt.Sprintf("uni%04X", r)
	switch text := splitLigatures.Replace(string(r)); {
	case r == ' ':
		name = "space"
	case text != string(r):
		name = strings.Join(strings.Split(text, ""), "_")
	case strings.ContainsRune(letters, r):
		name = string(r)
	case r > 0xFFFF:
		name = fmt.Sprintf("u%X", r)
	}
	if slanted {
		name += ".it"
	}
	return name
}

// upright inverts italic.
func upright(r rune) (rune, bool) {
	if u, ok := uprights()[r]; ok {
		return u, true
	}
	return r, false
}

var uprights = sync.OnceValue(func() map[rune]rune {
	all := map[rune]rune{}
	for _, r := range letters + "αβγδεζηθικλμνξοπρςστυφχψω∂ϵϑϰϕϱϖ" {
		all[italic(r)] = r
	}
	return all
})

func thousandth(em vg.Length) int { return int(math.Round(1000 * float64(em))) }

func (s subset) box() (left, bottom, right, top int) {
	for _, g := range s.glyphs {
		right = max(right, thousandth(g.advance))
		bottom, top = min(bottom, -thousandth(g.depth)), max(top, thousandth(g.height))
	}
	return -500, bottom, right + 500, top
}

// program returns the font file: clear text and enciphered part.
func (s subset) program() (head, cipher []byte) {
	var out bytes.Buffer
	left, bottom, right, top := s.box()
	fmt.Fprintf(&out, "%%!PS-AdobeFont-1.0: %[1]s\n11 dict begin\n/FontName /%[1]s def\n/PaintType 0 def\n"+
		"/FontType 1 def\n/FontMatrix [0.001 0 0 0.001 0 0] readonly def\n/FontBBox {%d %d %d %d} readonly def\n"+
		"/Encoding 256 array\n0 1 255 {1 index exch /.notdef put} for\n", s.name(), left, bottom, right, top)
	for i, g := range s.glyphs {
		fmt.Fprintf(&out, "dup %d /%s put\n", firstCode+i, g.name())
	}
	out.WriteString("readonly def\ncurrentdict end\ncurrentfile eexec\n")

	var private bytes.Buffer
	fmt.Fprintf(&private, "\x00\x00\x00\x00dup /Private 8 dict dup begin\n"+
		"/RD {string currentfile exch readstring pop} executeonly def\n/ND {noaccess def} executeonly def\n"+
		"/NP {noaccess put} executeonly def\n/BlueValues [] def\n/MinFeature {16 16} def\n/password 5839 def\n"+
		"2 index /CharStrings %d dict dup begin\n", len(s.glyphs)+1)
	outline := func(name string, g *glyph) {
		code := encipher(append(make([]byte, 4), g.charString()...), 4330)
		fmt.Fprintf(&private, "/%s %d RD %s ND\n", name, len(code), code)
	}
	outline(".notdef", &glyph{advance: 0.5})
	for _, g := range s.glyphs {
		outline(g.name(), g)
	}
	private.WriteString("end\nend\nreadonly put\nnoaccess put\ndup /FontName get exch definefont pop\n" +
		"mark currentfile closefile\n")
	return out.Bytes(), encipher(private.Bytes(), 55665)
}

func encipher(plain []byte, key uint16) []byte {
	out := make([]byte, len(plain))
	for i, b := range plain {
		out[i] = b ^ byte(key>>8)
		key = (uint16(out[i])+key)*52845 + 22719
	}
	return out
}

func (g *glyph) charString() []byte {
	const closepath, rlineto, rrcurveto, hsbw, endchar, rmoveto = 9, 5, 8, 13, 14, 21
	var out []byte
	x, y := 0, 0
	step := func(command byte, points ...vg.Point) {
		for _, p := range points {
			toX, toY := thousandth(p.X), thousandth(p.Y)
			out = charNumber(charNumber(out, toX-x), toY-y)
			x, y = toX, toY
		}
		out = append(out, command)
	}
	out = append(charNumber(charNumber(out, 0), thousandth(g.advance)), hsbw)
	for i, c := range g.path {
		switch c.Type {
		case vg.MoveComp:
			if i > 0 && g.path[i-1].Type != vg.CloseComp {
				out = append(out, closepath)
			}
			step(rmoveto, c.Pos)
		case vg.LineComp:
			step(rlineto, c.Pos)
		case vg.CurveComp:
			step(rrcurveto, c.Control[0], c.Control[1], c.Pos)
		case vg.CloseComp:
			out = append(out, closepath)
		}
	}
	if n := len(g.path); n > 0 && g.path[n-1].Type != vg.CloseComp {
		out = append(out, closepath)
	}
	return append(out, endchar)
}

func charNumber(out []byte, v int) []byte {
	switch {
	case -107 <= v && v <= 107:
		return append(out, byte(v+139))
	case 108 <= v && v <= 1131:
		return append(out, byte(247+(v-108)>>8), byte(v-108))
	case -1131 <= v && v <= -108:
		return append(out, byte(251+(-v-108)>>8), byte(-v-108))
	}
	return append(out, 255, byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
}

// runs splits a line into pieces of one size and height that are alike by same. Glyphs of no font are left out.
func (l textLine) runs(same func(a, b *glyph) bool) [][]placed {
	var all [][]placed
	for _, g := range l.glyphs {
		if g.face == nil {
			continue
		}
		if n := len(all); n > 0 {
			last := all[n-1][len(all[n-1])-1]
			if last.size == g.size && last.y == g.y && same(last.glyph, g.glyph) {
				all[n-1] = append(all[n-1], g)
				continue
			}
		}
		all = append(all, []placed{g})
	}
	return all
}

func (s *subsets) runs(l textLine) [][]placed {
	return l.runs(func(a, b *glyph) bool { return s.code[a].subset == s.code[b].subset })
}

// drawn returns the outlines of glyphs that are in no font, such as a root sign.
func (t setText) drawn() vg.Path {
	l := t.textLine
	l.glyphs = nil
	for _, g := range t.glyphs {
		if g.face == nil {
			l.glyphs = append(l.glyphs, g)
		}
	}
	return l.path(t.at, t.quarter)
}

func (t setText) place(g placed) vg.Point {
	if t.quarter {
		return t.at.Add(vg.Point{X: -g.y, Y: g.x})
	}
	return t.at.Add(vg.Point{X: g.x, Y: g.y})
}
