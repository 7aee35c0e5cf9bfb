package plots

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"image/color"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot/vg/vgeps"
)

// encodeEPS writes its own header. That of gonum/plot has the time of day and a bounding box with fractions.
func encodeEPS(l *layout) ([]byte, error) {
	c := vgeps.New(l.width, l.height)
	p := l.hatched()
	texts := epsText{Canvas: c, fonts: newSubsets(p), out: new(bytes.Buffer)}
	if l.style.Lettering == Outlines {
		texts.fonts = new(subsets)
		p.paint(c)
	} else {
		p.paint(texts)
	}
	var body bytes.Buffer
	if _, err := c.WriteTo(&body); err != nil {
		return nil, err
	}
	_, drawing, ok := bytes.Cut(body.Bytes(), []byte("%%EndComments\n"))
	if !ok {
		return nil, errors.New("the EPS header has no end: expected %%EndComments")
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "%%!PS-Adobe-3.0 EPSF-3.0\n%%%%Creator: nasml plots\n%%%%Title: %s\n%%%%Keywords: %s\n",
		ascii(l.figure.title()), ascii(strings.Join(l.figure.meta(), " ")))
	fmt.Fprintf(&out,
		"%%%%BoundingBox: 0 0 %.0f %.0f\n%%%%HiResBoundingBox: 0 0 %.3f %.3f\n%%%%LanguageLevel: 2\n%%%%EndComments\n",
		math.Ceil(float64(l.width)), math.Ceil(float64(l.height)), float64(l.width), float64(l.height))
	for _, s := range texts.fonts.all {
		s.writePFA(&out)
	}
	out.WriteString("1 setlinejoin\n")
	out.Write(bytes.TrimSuffix(drawing, []byte("showpage\n")))
	out.Write(texts.out.Bytes())
	out.WriteString("showpage\n%%EOF\n")
	return out.Bytes(), nil
}

// ascii makes a comment of one line in 7 bits, with escapes as in Go: \u03b8.
func ascii(s string) string {
	quoted := strconv.QuoteToASCII(s)
	quoted = quoted[1 : len(quoted)-1]
	return quoted[:min(len(quoted), 240)] // a line of an EPS has at most 255
}

// epsText collects text as text, which comes after everything else.
type epsText struct {
	*vgeps.Canvas
	fonts *subsets
	out   *bytes.Buffer
}

// Text writes a line, with every glyph where it was set.
func (c epsText) Text(t setText, ink color.Color) {
	v := color.NRGBAModel.Convert(ink).(color.NRGBA)
	for _, run := range c.fonts.runs(t.textLine) {
		at, font := t.place(run[0]), c.fonts.all[c.fonts.code[run[0].glyph].subset].name()
		fmt.Fprintf(c.out, "gsave\n%.2f %.2f translate", float64(at.X), float64(at.Y))
		if t.quarter {
			c.out.WriteString(" 90 rotate")
		}
		fmt.Fprintf(c.out, " %.3g %.3g %.3g setrgbcolor\n/%s %.2f selectfont\n0 0 moveto <", float64(v.R)/255,
			float64(v.G)/255, float64(v.B)/255, font, float64(run[0].size))
		var steps strings.Builder
		for i, g := range run {
			fmt.Fprintf(c.out, "%02X", c.fonts.code[g.glyph].code)
			if i > 0 {
				fmt.Fprintf(&steps, "%.3g ", float64(g.x-run[i-1].x))
			}
		}
		fmt.Fprintf(c.out, "> [%s0] xshow\ngrestore\n", steps.String())
	}
}

func (s subset) writePFA(out *bytes.Buffer) {
	head, cipher := s.program()
	fmt.Fprintf(out, "%%%%BeginResource: font %s\n%s", s.name(), head)
	for text := hex.EncodeToString(cipher); text != ""; {
		n := min(len(text), 80)
		out.WriteString(text[:n] + "\n")
		text = text[n:]
	}
	out.WriteString(strings.Repeat(strings.Repeat("0", 64)+"\n", 8) + "cleartomark\n%%EndResource\n")
}
