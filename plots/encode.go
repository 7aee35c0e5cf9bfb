package plots

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/nasml/lab/internal/files"
)

var encoders = map[string]func(*layout) ([]byte, error){
	"pdf": encodePDF,
	"svg": encodeSVG,
	"eps": encodeEPS,
	"png": encodePNG,
}

// Formats returns the formats that Save knows: pictures, "csv" and "tex" (see LaTeX).
func Formats() []string { return append(slices.Sorted(maps.Keys(encoders)), "csv", "tex") }

// Render returns the figure as a "pdf", "svg", "eps" or "png" file, always the same bytes. It returns an error for an
// unknown format, an invalid figure, and labels that leave no room for panels.
func (f Figure) Render(format string) ([]byte, error) {
	encode, ok := encoders[format]
	if !ok {
		return nil, fmt.Errorf("plots: format %q: expected one of %q", format, slices.Sorted(maps.Keys(encoders)))
	}
	l, err := newLayout(f)
	if err != nil {
		return nil, err
	}
	data, err := encode(l)
	if err != nil {
		return nil, fmt.Errorf("plots: figure %q as %s: %w", f.Name, format, err)
	}
	return data, nil
}

// Save writes the figure into a folder as Name.format, for each of [Formats], and returns the paths. Files are written
// atomically; on an error the paths of those already written are returned with it.
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

// SaveCaption writes the caption as Name.txt and, for LaTeX, Name.caption.tex, and returns the paths; none without a
// caption.
func (f Figure) SaveCaption(dir string) ([]string, error) {
	if f.Caption == "" {
		return nil, nil
	}
	var paths []string
	tex := fmt.Sprintf("%% \\caption[short]{\\input{%[1]s.caption}} or \\caption{\\protect\\input{%[1]s.caption}}: "+
		"LaTeX expands \\input alone in a list of figures\n%[2]s%%\n", f.Name, latexText(f.caption()))
	for _, file := range []struct{ end, text string }{
		{".txt", plain(f.caption()) + "\n"}, {".caption.tex", tex},
	} {
		path := filepath.Join(dir, f.Name+file.end)
		if err := files.WriteBytes(path, []byte(file.text)); err != nil {
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

// CSV returns the drawn numbers. Curves have a line per point: panel (its title, or its number in reading order),
// series, x, y, lo, hi, and whether it is a reference and hollow. Cells have a line per operation of an edge, heat maps
// per cell, a Simplex per point, and a Table its own columns. Faint runs are numbered. Each kind of panel and each
// table has its own header after an empty line.
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

// csvTables returns the CSV's tables: curves, cells, simplices and heat maps, then the figure's tables.
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

func (p Panel) lines(name string) [][]string {
	var lines [][]string
	runs := map[string]int{}
	for _, s := range p.withRuns().Series {
		label := plain(s.Label)
		if s.Faint {
			runs[label]++
			label = fmt.Sprintf("%s (run %d)", label, runs[label])
		}
		lines = append(lines, s.lines(name, label)...)
	}
	return lines
}

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

func (f Figure) title() string { return cmp.Or(plain(f.Title), f.Meta["title"], f.Name) }

// meta returns the metadata besides title and caption, "name=… params=…", sorted by key.
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

// Export says how a figure goes into a paper. The zero value is a PDF of the figure as
// it is, with the caption beside it and not in the picture.
type Export struct {
	Formats      []string          // see [Formats]; empty: "pdf"
	Style        Style             // of the venue; zero value: the figure's own
	Caption      bool              // set below the panels, in the picture, too
	NoReferences bool              // without published curves, bounds and reference lines
	Rename       map[string]string // what legends, cells and tables call a thing, by its name in the figure
	Outlines     bool              // text as outlines, instead of embedded fonts
	Overwrite    bool              // also a picture of other parameters
}

// Exported is what was written.
type Exported struct {
	Files []string
	Size  Size
	Kept  string // a file of other parameters that was in the way; empty: none
	Wide  bool   // a column could not hold it: it takes the width of the text
}

// Size is what a figure takes on a page.
type Size struct {
	Width, Height float64 // in inches
	Text          float64 // of the smallest text in points; scripts of formulas are smaller
}

// String says what was written, line by line.
func (e Exported) String() string {
	text := strings.Join(e.Files, "\n")
	if e.Size.Width > 0 {
		text += fmt.Sprintf("\n%.4g × %.4g in, smallest text %.3g pt", e.Size.Width, math.Round(100*e.Size.Height)/100,
			e.Size.Text)
	}
	if e.Wide {
		text += "\na column cannot hold it: it takes the width of the text"
	}
	if e.Kept != "" {
		text += fmt.Sprintf("\n%s shows other parameters and was kept", e.Kept)
	}
	return text
}

// Export writes the figure into a folder as Name.format, and the caption as Name.txt and Name.caption.tex unless it is
// in the picture. A picture there with other parameters, by Meta["params"], is kept: the new files get the parameters'
// hash in their names. If a format fails, the others are still written.
func (f Figure) Export(dir string, with Export) (Exported, error) {
	f, err := f.forExport(with)
	if err != nil {
		return Exported{}, err
	}
	var out Exported
	f, out.Wide = f.widened(with.Caption)
	if !with.Overwrite {
		if out.Kept = f.inTheWay(dir); out.Kept != "" {
			hash := f.Meta["params"]
			f.Name += "-" + hash[max(0, len(hash)-8):]
		}
	}
	if !with.Caption {
		if out.Files, err = f.SaveCaption(dir); err != nil {
			return out, err
		}
	}
	formats := with.Formats
	if len(formats) == 0 {
		formats = []string{"pdf"}
	}
	var failed []error
	var files []string
	for _, format := range formats {
		shown := f
		if !with.Caption && format != "tex" {
			shown.Caption = ""
		}
		saved, err := shown.Save(dir, format)
		files, failed = append(files, saved...), append(failed, err)
		if size, err := shown.Size(); err == nil && encoders[format] != nil {
			out.Size = size
		}
	}
	out.Files = append(files, out.Files...)
	return out, errors.Join(failed...)
}

// pageHeight is what venues leave for text and figures, in inches.
const pageHeight = 9

// widened is the figure at text width if it is set for a column that cannot hold it, or is higher than a page.
func (f Figure) widened(caption bool) (Figure, bool) {
	style := f.Style.filled()
	if style.Width != style.ColumnWidth || style.Width == style.TextWidth {
		return f, false
	}
	shown := f
	if !caption {
		shown.Caption = ""
	}
	if size, err := shown.Size(); err == nil && size.Height <= pageHeight {
		return f, false
	}
	f.Style = style.Text()
	return f, true
}

func (f Figure) forExport(with Export) (Figure, error) {
	if !reflect.ValueOf(with.Style).IsZero() {
		aspect := f.Style.filled().Aspect
		f.Style = with.Style.filled()
		if f.Style.Aspect == (Style{}).filled().Aspect {
			f.Style.Aspect = aspect // which the figure has for a reason
		}
	}
	if f.Style.Lettering = LiveText; with.Outlines {
		f.Style.Lettering = Outlines
	}
	f = f.called(Title)
	if with.NoReferences {
		f.Panels = withoutReferences(f.Panels)
	}
	return f.renamed(with.Rename)
}

func withoutReferences(panels [][]Panel) [][]Panel {
	var rows [][]Panel
	for _, row := range panels {
		var kept []Panel
		for _, p := range row {
			before := len(p.Series)
			p.Series = slices.DeleteFunc(slices.Clone(p.Series), func(s Series) bool { return s.Reference })
			if len(p.Series) > 0 || before == 0 || p.Heat != nil {
				kept = append(kept, p)
			}
		}
		if len(kept) > 0 {
			rows = append(rows, kept)
		}
	}
	return rows
}

// inTheWay returns an existing file of the figure's name with other parameters, or "".
func (f Figure) inTheWay(dir string) string {
	mine := f.Meta["params"]
	if mine == "" {
		return ""
	}
	for _, format := range Formats() {
		path := filepath.Join(dir, f.Name+"."+format)
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		text = bytes.ReplaceAll(text, []byte{0}, nil) // a PDF's texts are UTF-16, a PNG's key ends with a 0
		text = bytes.ReplaceAll(text, []byte("params="), []byte("params"))
		if bytes.Contains(text, []byte("params")) && !bytes.Contains(text, []byte("params"+mine)) {
			return path
		}
	}
	return ""
}

// Size returns the figure's size on a page. It returns an error if the figure cannot be drawn.
func (f Figure) Size() (Size, error) {
	l, err := newLayout(f)
	if err != nil {
		return Size{}, err
	}
	return Size{
		Width: float64(l.width) / 72, Height: float64(l.height) / 72,
		Text: math.Round(100*float64(l.smallest)) / 100,
	}, nil
}
