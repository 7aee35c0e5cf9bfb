package plots

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

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
