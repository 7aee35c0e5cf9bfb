package plots

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

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
