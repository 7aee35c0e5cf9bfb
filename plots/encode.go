package plots

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/csv"
	"encoding/xml"
	"errors"
	"fmt"
	"hash/crc32"
	"image/color"
	"image/png"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"codeberg.org/go-pdf/fpdf"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgeps"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/nasml/lab/internal/files"
)

// encoders write a page in the formats that Render knows.
var encoders = map[string]func(*layout) ([]byte, error){
	"pdf": encodePDF,
	"svg": encodeSVG,
	"eps": encodeEPS,
	"png": encodePNG,
}

// Formats returns the names of the formats that Save knows: the pictures',
// "csv", and "tex" (see LaTeX).
func Formats() []string { return append(slices.Sorted(maps.Keys(encoders)), "csv", "tex") }

// Render returns the figure as the bytes of a file: "pdf", "svg", "eps" or
// "png". The same figure gives the same bytes. It returns an error where the
// format is unknown, where Validate does, and where labels leave no room for
// the panels.
func (f Figure) Render(format string) ([]byte, error) {
	encode, ok := encoders[format]
	if !ok {
		return nil, fmt.Errorf("plots: format %q: expected one of %q", format, slices.Sorted(maps.Keys(encoders)))
	}
	if err := f.Validate(); err != nil {
		return nil, err
	}
	l, err := newLayout(f)
	if err != nil {
		return nil, fmt.Errorf("plots: figure %q: %w", f.Name, err)
	}
	data, err := encode(l)
	if err != nil {
		return nil, fmt.Errorf("plots: figure %q as %s: %w", f.Name, format, err)
	}
	return data, nil
}

// Save writes the figure into a folder, which it makes where it is missing,
// as Name.format for each of the formats (those of Render, and "csv"), and
// returns the files' paths. A file is written whole or not at all; on an
// error those written before are returned with it.
func (f Figure) Save(dir string, formats ...string) ([]string, error) {
	for _, format := range formats {
		if !slices.Contains(Formats(), format) {
			return nil, fmt.Errorf("plots: format %q: expected one of %q", format, Formats())
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("plots: folder for figure %q: %w", f.Name, err)
	}
	var paths []string
	for _, format := range formats {
		data, err := f.encode(format)
		if err != nil {
			return paths, err
		}
		path := filepath.Join(dir, f.Name+"."+format)
		if err := files.WriteBytes(path, data); err != nil {
			return paths, fmt.Errorf("plots: saving figure %q: %w", f.Name, err)
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// SaveCaption writes the caption beside a figure that is saved without it, as
// Name.txt and, for a paper's source, Name.caption.tex, and returns the paths;
// none where there is no caption.
func (f Figure) SaveCaption(dir string) ([]string, error) {
	if f.Caption == "" {
		return nil, nil
	}
	var paths []string
	for _, file := range []struct{ end, text string }{
		{".txt", plain(f.caption())}, {".caption.tex", latexText(f.caption())},
	} {
		path := filepath.Join(dir, f.Name+file.end)
		if err := files.WriteBytes(path, []byte(file.text+"\n")); err != nil {
			return paths, fmt.Errorf("plots: saving the caption of figure %q: %w", f.Name, err)
		}
		paths = append(paths, path)
	}
	return paths, nil
}

func (f Figure) encode(format string) ([]byte, error) {
	switch format {
	case "csv":
		return f.CSV()
	case "tex":
		return f.LaTeX()
	}
	return f.Render(format)
}

// CSV returns what the figure draws as a table: of curves a line for each
// point, with the panel (its title, or its number in reading order), series,
// x, y, lo, hi, and whether it is a reference and hollow; of cells a line for
// each operation of an edge, with its weight; of heat maps a line for each cell;
// of a Simplex one for each point; of a Table its own columns. What
// does not apply is empty, and faint runs are numbered. Where a figure has
// panels of several kinds, each kind and each table follows with its own
// header after an empty line.
func (f Figure) CSV() ([]byte, error) {
	if err := f.Validate(); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for i, lines := range f.csvTables() {
		if i > 0 {
			out.WriteByte('\n')
		}
		if err := csv.NewWriter(&out).WriteAll(lines); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

// csvTables are the CSV's tables: curves, cells, simplices and heat maps, as far as
// there are some, and then the tables themselves.
func (f Figure) csvTables() [][][]string {
	const curves, cells, areas, heats = 0, 1, 2, 3
	kinds := [][][]string{
		{{"panel", "series", "x", "y", "lo", "hi", "reference", "hollow"}},
		{{"panel", "edge", "from", "to", "operation", "weight"}},
		{{"panel", "area", "left", "right", "top"}},
		{{"panel", "x from", "x to", "y from", "y to", "value"}},
	}
	there := make([]bool, len(kinds))
	add := func(kind int, lines [][]string) { kinds[kind], there[kind] = append(kinds[kind], lines...), true }
	var tables [][][]string
	for n, p := range slices.Concat(f.Panels...) {
		name := cmp.Or(plain(p.Title), strconv.Itoa(n+1))
		if p.Heat != nil {
			add(heats, p.Heat.lines(name))
		}
		switch {
		case p.Simplex != nil:
			add(areas, p.Simplex.lines(name))
		case p.Cell != nil:
			add(cells, p.Cell.lines(name))
		case p.Table != nil:
			tables = append(tables, p.Table.lines(name))
		case p.Heat == nil || len(p.Series) > 0:
			add(curves, p.lines(name))
		}
	}
	var all [][][]string
	for kind, lines := range kinds {
		if there[kind] {
			all = append(all, lines)
		}
	}
	return append(all, tables...)
}

// lines returns the CSV's lines for a panel with axes.
func (p Panel) lines(name string) [][]string {
	var lines [][]string
	runs := map[string]int{}
	for _, s := range p.Series {
		label := plain(s.Label)
		if s.Faint {
			runs[label]++
			label = fmt.Sprintf("%s (run %d)", label, runs[label])
		}
		lines = append(lines, s.lines(name, label)...)
	}
	return lines
}

// lines returns the CSV's lines for a series.
func (s Series) lines(panel, label string) [][]string {
	var lines [][]string
	for i := range max(len(s.X), len(s.Y)) {
		lines = append(lines, []string{panel, label, number(s.X, i), number(s.Y, i), number(s.Lo, i), number(s.Hi, i),
			strconv.FormatBool(s.Reference), strconv.FormatBool(s.hollow(i))})
	}
	return lines
}

// number writes values[i] so that it reads back as the same float64.
func number(values []float64, i int) string {
	if i >= len(values) {
		return ""
	}
	return strconv.FormatFloat(values[i], 'g', -1, 64)
}

// title is what a file calls itself: the figure's title or, where none is to
// stand above the panels, Meta["title"].
func (f Figure) title() string { return cmp.Or(plain(f.Title), f.Meta["title"], f.Name) }

// meta returns the metadata besides title and caption, "name=… params=…", in
// the order of their keys.
func (f Figure) meta() []string {
	pairs := []string{"name=" + f.Name}
	for _, key := range slices.Sorted(maps.Keys(f.Meta)) {
		if key == "title" {
			continue
		}
		pairs = append(pairs, key+"="+f.Meta[key])
	}
	return pairs
}

// encodePDF writes by fpdf itself: gonum/plot's canvas for it sets no metadata
// and writes the time of day.
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
	l.paint(pdfCanvas{doc, float64(l.height)})
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

// encodeSVG adds title, description and metadata to gonum/plot's document.
func encodeSVG(l *layout) ([]byte, error) {
	c := vgsvg.New(l.width, l.height)
	l.paint(c)
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
	out.Write(body.Bytes()[end+1:])
	return out.Bytes(), nil
}

func escape(s string) string {
	var out bytes.Buffer
	_ = xml.EscapeText(&out, []byte(s)) // writing to memory does not fail
	return out.String()
}

// encodeEPS writes its own header: that of gonum/plot has the time of day, a
// first line that is no EPS, and a bounding box that is not whole.
func encodeEPS(l *layout) ([]byte, error) {
	c := vgeps.New(l.width, l.height)
	l.hatched().paint(c)
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
	fmt.Fprintf(
		&out,
		"%%%%BoundingBox: 0 0 %.0f %.0f\n%%%%HiResBoundingBox: 0 0 %.3f %.3f\n%%%%EndComments\n1 setlinejoin\n",
		math.Ceil(float64(l.width)),
		math.Ceil(float64(l.height)),
		float64(l.width),
		float64(l.height),
	)
	out.Write(bytes.TrimSuffix(drawing, []byte("showpage\n")))
	out.WriteString("showpage\n%%EOF\n")
	return out.Bytes(), nil
}

// ascii keeps a comment of an EPS on its line and within 7 bits; what is not
// ASCII is written as in Go, \u03b8.
func ascii(s string) string {
	quoted := strconv.QuoteToASCII(s)
	quoted = quoted[1 : len(quoted)-1]
	return quoted[:min(len(quoted), 240)] // a line of an EPS has at most 255
}

// encodePNG adds resolution and texts to the picture.
func encodePNG(l *layout) ([]byte, error) {
	c := vgimg.NewWith(vgimg.UseWH(l.width, l.height), vgimg.UseDPI(l.style.DPI))
	l.paint(c)
	var body bytes.Buffer
	if err := png.Encode(&body, c.Image()); err != nil {
		return nil, err
	}
	const header = 8 + 12 + 13 // signature and IHDR; all else comes after them
	var out bytes.Buffer
	out.Write(body.Bytes()[:header])
	perMetre := uint32(math.Round(float64(l.style.DPI) / 0.0254))
	resolution := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, perMetre), perMetre)
	writeChunk(&out, "pHYs", append(resolution, 1))
	writePNGText(&out, "Title", l.figure.title())
	writePNGText(&out, "Description", plain(l.figure.caption()))
	for _, pair := range l.figure.meta() {
		key, value, _ := strings.Cut(pair, "=")
		writePNGText(&out, key, value)
	}
	out.Write(body.Bytes()[header:])
	return out.Bytes(), nil
}

// writePNGText writes a text: as tEXt where it is ASCII, which every program
// reads, else as iTXt, which is for UTF-8.
func writePNGText(out *bytes.Buffer, key, value string) {
	switch {
	case value == "":
	case strings.IndexFunc(value, func(r rune) bool { return r > 126 }) < 0:
		writeChunk(out, "tEXt", []byte(key+"\x00"+value))
	default:
		writeChunk(out, "iTXt", []byte(key+"\x00\x00\x00\x00\x00"+value))
	}
}

// writeChunk writes length, kind, data and checksum.
func writeChunk(out *bytes.Buffer, kind string, data []byte) {
	chunk := append([]byte(kind), data...)
	out.Write(binary.BigEndian.AppendUint32(nil, uint32(len(data))))
	out.Write(chunk)
	out.Write(binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(chunk)))
}
