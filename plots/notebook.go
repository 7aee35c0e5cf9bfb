package plots

import (
	"encoding/base64"
	"errors"
	"fmt"
	"html"
	"regexp"
	"strconv"
	"strings"

	"github.com/janpfeifer/gonb/gonbui"
	"github.com/janpfeifer/gonb/gonbui/protocol"
	"gonum.org/v1/plot/vg"
)

// ErrNoNotebook is returned by Show outside a GoNB notebook.
var ErrNoNotebook = errors.New(
	"plots: this program was not started by a GoNB notebook: nothing to show the figure in; use Save",
)

// Show shows the figure as a cell's output: SVG with an alternative text, and PNG for programs without HTML. Outside a
// notebook it returns ErrNoNotebook.
func (f Figure) Show() error { return f.show("") }

// Display is a place in a notebook's output that shows one figure at a time. The first Show makes it. The notebook
// stores the last figure only.
type Display struct {
	id string
}

// Show replaces the figure shown before. It is for one goroutine, at most once a second.
func (d *Display) Show(f Figure) error {
	if d.id == "" {
		d.id = "nasml_plots_" + gonbui.UniqueId()
	}
	return f.show(d.id)
}

func (f Figure) show(displayID string) error {
	if !gonbui.IsNotebook {
		return ErrNoNotebook
	}
	data, err := f.bundle()
	if err != nil {
		return err
	}
	data.DisplayID = displayID
	gonbui.SendData(data)
	gonbui.Sync() // a cell that ends at once would take its last output along
	return gonbui.Error()
}

// screenDPI is the resolution of the notebook's PNG, 1.3 dots for each pixel of the page: one more dot in ten
// makes all notebooks 1.3 MB larger, and JupyterLab itself shows the SVG.
const screenDPI = 176

// screenZoom enlarges figures on screen: a notebook's text is 14 px, a paper's 10 pt.
const screenZoom = 1.4

// svgSize is the size of a picture, which is not that of its coordinates.
var svgSize = regexp.MustCompile(`<svg width="([0-9.]+)pt" height="([0-9.]+)pt"`)

func onScreen(svg []byte) string {
	return string(svgSize.ReplaceAllFunc(svg, func(head []byte) []byte {
		size := svgSize.FindSubmatch(head)
		return fmt.Appendf(nil, `<svg width="%.0fpt" height="%.0fpt"`, zoomed(size[1]), zoomed(size[2]))
	}))
}

func zoomed(points []byte) float64 {
	v, _ := strconv.ParseFloat(string(points), 64) // it consists of digits
	return screenZoom * v
}

// Alt is the figure in words, for who does not see it: title and caption.
func (f Figure) Alt() string {
	if f.Caption == "" {
		return f.title()
	}
	return strings.TrimSuffix(f.title(), ".") + ". " + plain(f.caption())
}

func (f Figure) bundle() (*protocol.DisplayData, error) {
	f.Style.DPI = screenDPI
	svg, err := f.Render("svg")
	if err != nil {
		return nil, err
	}
	png, err := f.Render("png")
	if err != nil {
		return nil, err
	}
	width := int(vg.Length(f.Style.filled().Width) * 96 * screenZoom)
	picture := fmt.Sprintf(`<img alt="%s" width="%d" style="max-width: 100%%" src="data:image/svg+xml;base64,%s">`,
		html.EscapeString(f.Alt()), width, base64.StdEncoding.EncodeToString([]byte(onScreen(svg))))
	return &protocol.DisplayData{
		Data: map[protocol.MIMEType]any{
			protocol.MIMEImagePNG:  png,
			protocol.MIMETextHTML:  picture,
			protocol.MIMETextPlain: f.Alt(),
		},
		Metadata: map[string]any{string(protocol.MIMEImagePNG): map[string]int{"width": width}},
	}, nil
}
