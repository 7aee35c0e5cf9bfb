package plots

import (
	"bytes"
	"compress/zlib"
	"encoding/json"
	"fmt"
	"image/color"
	"math"
	"strings"
	"time"

	"codeberg.org/go-pdf/fpdf"
	"gonum.org/v1/plot/vg"
)

// encodePDF uses fpdf directly. gonum/plot's canvas sets no metadata and writes the time of day.
func encodePDF(l *layout) ([]byte, error) {
	doc := fpdf.NewCustom(
		&fpdf.InitType{UnitStr: "pt", Size: fpdf.SizeType{Wd: float64(l.width), Ht: float64(l.height)}},
	)
	doc.SetTitle(l.figure.title(), true)
	doc.SetSubject(plain(l.figure.caption()), true)
	doc.SetKeywords(strings.Join(l.figure.meta(), " "), true)
	doc.SetCreator("nasml plots", true)
	day := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // any; fpdf takes none for now
	doc.SetCreationDate(day)
	doc.SetModificationDate(day)
	doc.SetCatalogSort(true)
	doc.SetMargins(0, 0, 0)
	doc.SetAutoPageBreak(false, 0)
	doc.AddPage()
	doc.SetLineJoinStyle("round")
	if c := (pdfCanvas{doc, float64(l.height)}); l.style.Lettering == Outlines {
		l.paint(c)
	} else {
		l.paint(newPDFText(c, &l.page))
	}
	var out bytes.Buffer
	err := doc.Output(&out)
	return out.Bytes(), err
}

// pdfCanvas draws paths; fpdf's y goes down the page.
type pdfCanvas struct {
	*fpdf.Fpdf
	height float64
}

func (c pdfCanvas) SetColor(col color.Color) {
	v := color.NRGBAModel.Convert(col).(color.NRGBA)
	c.SetFillColor(int(v.R), int(v.G), int(v.B))
	c.SetDrawColor(int(v.R), int(v.G), int(v.B))
	if old, _ := c.GetAlpha(); math.Abs(old-float64(v.A)/255) > 1e-9 {
		c.SetAlpha(float64(v.A)/255, "Normal")
	}
}

func (c pdfCanvas) SetLineWidth(w vg.Length) { c.Fpdf.SetLineWidth(float64(w)) }

func (c pdfCanvas) SetLineDash(pattern []vg.Length, offset vg.Length) {
	dash := make([]float64, len(pattern))
	for i, v := range pattern {
		dash[i] = float64(v)
	}
	c.SetDashPattern(dash, float64(offset))
}

func (c pdfCanvas) Fill(p vg.Path)   { c.draw(p, "F") }
func (c pdfCanvas) Stroke(p vg.Path) { c.draw(p, "D") }

func (c pdfCanvas) draw(p vg.Path, style string) {
	at := func(q vg.Point) (x, y float64) { return float64(q.X), c.height - float64(q.Y) }
	for _, part := range p {
		x, y := at(part.Pos)
		switch part.Type {
		case vg.MoveComp:
			c.MoveTo(x, y)
		case vg.LineComp:
			c.LineTo(x, y)
		case vg.CurveComp:
			x0, y0 := at(part.Control[0])
			x1, y1 := at(part.Control[1])
			c.CurveBezierCubicTo(x0, y0, x1, y1, x, y)
		case vg.CloseComp:
			c.ClosePath()
		}
	}
	c.DrawPath(style)
}

type pdfText struct {
	pdfCanvas
	fonts *subsets
}

func newPDFText(c pdfCanvas, p *page) pdfText {
	t := pdfText{c, newSubsets(p)}
	for i, s := range t.fonts.all {
		head, cipher := s.program()
		var file bytes.Buffer
		z := zlib.NewWriter(&file)
		_, _ = z.Write(append(head, cipher...)) // to memory
		_ = z.Close()
		left, bottom, right, top := s.box()
		widths := make([]int, 256)
		for k, g := range s.glyphs {
			widths[firstCode+k] = thousandth(g.advance)
		}
		const symbolic = 4
		def, _ := json.Marshal(map[string]any{ // of texts and numbers
			"Tp": "Type1", "Name": s.name(), "Cw": widths, "Diff": s.encoding(),
			"File": fmt.Sprintf("%d.z", i), "Size1": len(head), "Size2": len(cipher),
			"Desc": map[string]any{
				"Ascent": top, "Descent": bottom, "CapHeight": top, "Flags": symbolic, "StemV": 80,
				"FontBBox": map[string]int{"Xmin": left, "Ymin": bottom, "Xmax": right, "Ymax": top},
			},
		})
		c.AddFontFromBytes(subsetFamily(i), "", def, file.Bytes())
	}
	return t
}

func subsetFamily(subset int) string { return fmt.Sprintf("subset%d", subset) }

// Text writes a line, with every glyph where it was set.
func (c pdfText) Text(t setText, _ color.Color) {
	turn := "1 0 0 1"
	if t.quarter {
		turn = "0 1 -1 0"
	}
	for _, run := range c.fonts.runs(t.textLine) {
		size := math.Round(100*float64(run[0].size)) / 100 // as it is written
		c.SetFont(subsetFamily(c.fonts.code[run[0].glyph].subset), "", size)
		var show strings.Builder
		pen := float64(run[0].x)
		for _, g := range run {
			if back := math.Round((pen - float64(g.x)) / size * 1000); back != 0 {
				fmt.Fprintf(&show, "%.0f", back)
				pen -= back * size / 1000
			}
			fmt.Fprintf(&show, "<%02X>", c.fonts.code[g.glyph].code)
			pen += float64(thousandth(g.advance)) * size / 1000
		}
		at := t.place(run[0])
		c.RawWriteStr(fmt.Sprintf("BT %s %.2f %.2f Tm [%s] TJ ET", turn, float64(at.X), float64(at.Y),
			strings.ReplaceAll(show.String(), "><", "")))
	}
}
