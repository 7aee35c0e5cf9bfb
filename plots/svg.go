package plots

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"image/color"
	"strings"

	"gonum.org/v1/plot/vg/vgsvg"
)

// encodeSVG adds title, description and metadata to gonum/plot's document.
func encodeSVG(l *layout) ([]byte, error) {
	c := vgsvg.New(l.width, l.height)
	var texts svgText
	if l.style.Lettering == LiveText {
		texts = svgText{Canvas: c, out: new(bytes.Buffer)}
		l.paint(texts)
	} else {
		l.paint(c)
	}
	var body bytes.Buffer
	if _, err := c.WriteTo(&body); err != nil {
		return nil, err
	}
	start := bytes.Index(body.Bytes(), []byte("<svg"))
	end := start + bytes.IndexByte(body.Bytes()[start:], '>')
	var out bytes.Buffer
	out.Write(body.Bytes()[:end])
	fmt.Fprintf(
		&out,
		` role="img" stroke-linejoin="round">`+"\n<title>%s</title>\n<desc>%s</desc>\n<metadata>%s</metadata>",
		escape(l.figure.title()),
		escape(plain(l.figure.caption())),
		escape(strings.Join(l.figure.meta(), " ")),
	)
	// White is what a figure is drawn for, also where the page is dark.
	fmt.Fprintf(&out, "\n"+`<rect width="100%%" height="100%%" fill="#FFFFFF"/>`)
	drawing := body.Bytes()[end+1:]
	if texts.out == nil {
		out.Write(drawing)
		return out.Bytes(), nil
	}
	out.Write(bytes.TrimSuffix(drawing, []byte("</g>\n</svg>\n")))
	out.Write(texts.out.Bytes())
	out.WriteString("</g>\n</svg>\n")
	return out.Bytes(), nil
}

func escape(s string) string {
	var out bytes.Buffer
	_ = xml.EscapeText(&out, []byte(s)) // writing to memory does not fail
	return out.String()
}

// svgText collects text as text, which comes after all else, in fonts of the machine that
// shows it: each piece takes the width that it has in the font it was set in.
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
	v := color.NRGBAModel.Convert(ink).(color.NRGBA)
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
			` fill="#%02X%02X%02X" textLength="%.2f" lengthAdjust="spacingAndGlyphs" xml:space="preserve">%s</text>`+"\n",
			float64(at.X), float64(at.Y), turn, run[0].face.css(), float64(run[0].size), look, v.R, v.G, v.B,
			float64(last.x+last.size*last.advance-run[0].x), escape(splitLigatures.Replace(text.String())))
	}
}

// css is the font in an SVG, and what stands in for it.
func (f *typeface) css() string {
	if strings.HasPrefix(f.name, "STIX") {
		return "STIX Two Text, STIX Two Math, Times New Roman, Times, serif"
	}
	return "Latin Modern Roman, Latin Modern Math, CMU Serif, serif"
}
