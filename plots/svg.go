package plots

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"image/color"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgsvg"
)

func encodeSVG(l *layout) ([]byte, error) {
	c := vgsvg.New(l.width, l.height)
	var texts, shapes bytes.Buffer
	if l.style.Lettering == LiveText {
		l.paint(svgText{c, &texts})
	} else {
		l.paint(svgGlyphs{c, &texts, &shapes, map[*glyph]int{}})
	}
	var body bytes.Buffer
	if _, err := c.WriteTo(&body); err != nil {
		return nil, err
	}
	start := bytes.Index(body.Bytes(), []byte("<svg"))
	end := start + bytes.IndexByte(body.Bytes()[start:], '>')
	var out bytes.Buffer
	out.Write(body.Bytes()[:end])
	out.WriteString(` role="img" stroke-linejoin="round">`)
	fmt.Fprintf(&out, "\n<title>%s</title>\n<desc>%s</desc>\n<metadata>%s</metadata>", escape(l.figure.title()),
		escape(plain(l.figure.caption())), escape(strings.Join(l.figure.meta(), " ")))
	// White is what a figure is drawn for, also where the page is dark.
	fmt.Fprintf(&out, "\n"+`<rect width="100%%" height="100%%" fill="#FFFFFF"/>`)
	if shapes.Len() > 0 {
		fmt.Fprintf(&out, "\n<defs>\n%s</defs>", &shapes)
	}
	out.Write(bytes.TrimSuffix(body.Bytes()[end+1:], []byte("</g>\n</svg>\n")))
	out.Write(texts.Bytes())
	out.WriteString("</g>\n</svg>\n")
	return out.Bytes(), nil
}

func escape(s string) string {
	var out bytes.Buffer
	_ = xml.EscapeText(&out, []byte(s)) // writing to memory does not fail
	return out.String()
}

// svgGlyphs collects text as outlines, each defined once. They come after everything else.
type svgGlyphs struct {
	*vgsvg.Canvas
	out, shapes *bytes.Buffer
	ids         map[*glyph]int
}

// Text writes a line.
func (c svgGlyphs) Text(t setText, ink color.Color) {
	for _, run := range t.runs(func(_, _ *glyph) bool { return true }) {
		at, turn := t.place(run[0]), ""
		if t.quarter {
			turn = " rotate(90)"
		}
		fmt.Fprintf(c.out, `<g transform="translate(%s,%s)%s scale(%s)" fill="%s">`, short(at.X), short(at.Y), turn,
			short(run[0].size, "e-3"), hexOf(ink))
		for _, g := range run {
			if len(g.path) > 0 {
				fmt.Fprintf(c.out, `<use xlink:href="#g%d" x="%d"/>`, c.id(g.glyph), thousandth((g.x-run[0].x)/g.size))
			}
		}
		c.out.WriteString("</g>\n")
	}
}

func (c svgGlyphs) id(g *glyph) int {
	id, ok := c.ids[g]
	if ok {
		return id
	}
	id = len(c.ids)
	c.ids[g] = id
	fmt.Fprintf(c.shapes, `<path id="g%d" d="`, id)
	at := func(sign string, points ...vg.Point) {
		for _, p := range points {
			fmt.Fprintf(c.shapes, "%s%d %d", sign, thousandth(p.X), thousandth(p.Y))
			sign = " "
		}
	}
	for _, part := range g.path {
		switch part.Type {
		case vg.MoveComp:
			at("M", part.Pos)
		case vg.LineComp:
			at("L", part.Pos)
		case vg.CurveComp:
			at("C", part.Control[0], part.Control[1], part.Pos)
		case vg.CloseComp:
			c.shapes.WriteString("Z")
		}
	}
	c.shapes.WriteString("Z\"/>\n")
	return id
}

// short formats a length with at most two decimals.
func short(v vg.Length, behind ...string) string {
	return strconv.FormatFloat(math.Round(100*float64(v))/100, 'f', -1, 64) + strings.Join(behind, "")
}

func hexOf(c color.Color) string {
	v := color.NRGBAModel.Convert(c).(color.NRGBA)
	return fmt.Sprintf("#%02X%02X%02X", v.R, v.G, v.B)
}

// svgText collects text in fonts of the viewer's machine, stretched to the width it was set in. It comes after
// everything else.
type svgText struct {
	*vgsvg.Canvas
	out *bytes.Buffer
}

// Text writes a line.
func (c svgText) Text(t setText, ink color.Color) {
	type styled struct {
		face    *typeface
		slanted bool
	}
	of := func(g *glyph) styled {
		_, slanted := upright(g.char)
		return styled{g.face, slanted}
	}
	turn := "scale(1,-1)"
	if t.quarter {
		turn = "rotate(90) scale(1,-1)"
	}
	for _, run := range t.runs(func(a, b *glyph) bool { return of(a) == of(b) }) {
		at, last := t.place(run[0]), run[len(run)-1]
		look := ""
		if of(run[0].glyph).slanted {
			look += ` font-style="italic"`
		}
		if strings.HasSuffix(run[0].face.name, "Bold") {
			look += ` font-weight="bold"`
		}
		var text strings.Builder
		for _, g := range run {
			r, _ := upright(g.char)
			text.WriteRune(r)
		}
		fmt.Fprintf(c.out, `<text transform="translate(%.2f,%.2f) %s" font-family="%s" font-size="%.2f"%s`+
			` fill="%s" textLength="%.2f" lengthAdjust="spacingAndGlyphs" xml:space="preserve">%s</text>`+"\n",
			float64(at.X), float64(at.Y), turn, run[0].face.css(), float64(run[0].size), look, hexOf(ink),
			float64(last.x+last.size*last.advance-run[0].x), escape(splitLigatures.Replace(text.String())))
	}
}

func (f *typeface) css() string {
	if strings.HasPrefix(f.name, "STIX") {
		return "STIX Two Text, STIX Two Math, Times New Roman, Times, serif"
	}
	return "Latin Modern Roman, Latin Modern Math, CMU Serif, serif"
}
