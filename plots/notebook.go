package plots

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/janpfeifer/gonb/gonbui"
	"github.com/janpfeifer/gonb/gonbui/protocol"
	"gonum.org/v1/plot/vg"

	"github.com/nasml/lab/internal/files"
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
	return displayed()
}

// displayed waits for what was sent: a cell that ends at once would take its last output along.
func displayed() error {
	gonbui.Sync()
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

// Animation is a sequence of figures, such as a cell after every epoch of a search, played or moved through with a
// slider.
type Animation struct {
	Name   string // of files and of what is in a page, as Figure.Name
	Frames []Figure
	Labels []string // one a frame, "epoch 3"; what stands beside the slider
}

// interval is how long a frame stands, in ms.
const interval = 600

func (a Animation) validate() error {
	if len(a.Frames) == 0 || len(a.Labels) != len(a.Frames) {
		return fmt.Errorf("plots: animation %q must have a label for each frame and at least one frame, "+
			"got %d frames and %d labels", a.Name, len(a.Frames), len(a.Labels))
	}
	return nil
}

// HTML is a self-contained part of a page: all frames as SVG, zipped but for the last, a button and a slider. Without
// scripts it shows the last frame.
func (a Animation) HTML() (string, error) { return a.html(a.Name) }

func (a Animation) html(id string) (string, error) {
	if err := a.validate(); err != nil {
		return "", err
	}
	var b strings.Builder
	id = html.EscapeString(id)
	last := len(a.Frames) - 1
	fmt.Fprintf(&b, `<div class="nasml-animation" id="%s">`, id)
	for i, f := range a.Frames {
		svg, err := f.Render("svg")
		if err != nil {
			return "", err
		}
		picture, source, style := []byte(onScreen(svg)), "src=\"data:image/svg+xml;base64,", "display:block"
		if i < last {
			if picture, err = gzipped(picture); err != nil {
				return "", err
			}
			source, style = "data-svg=\"", "display:none"
		}
		fmt.Fprintf(&b, `<img style="%s;max-width:100%%" alt="%s" %s%s">`, style,
			html.EscapeString(a.Labels[i]+". "+f.Alt()), source, base64.StdEncoding.EncodeToString(picture))
	}
	fmt.Fprintf(&b, `<p><button type="button">play</button> <input type="range" aria-label="frame" min="0" max="%d" `+
		`value="%d" style="width:50%%;vertical-align:middle"> <output>%s</output></p></div>`, last, last,
		html.EscapeString(a.Labels[last]))
	fmt.Fprintf(&b, script, id, interval)
	return b.String(), nil
}

func gzipped(data []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	_, err = w.Write(data)
	err = errors.Join(err, w.Close())
	return out.Bytes(), err
}

// script unzips the frames of the element with an id and moves through them.
//
//go:embed animation.html
var script string

// Show shows the animation as the output of a notebook's cell; elsewhere it returns ErrNoNotebook.
func (a Animation) Show() error {
	if !gonbui.IsNotebook {
		return ErrNoNotebook
	}
	part, err := a.html("nasml_" + gonbui.UniqueId())
	if err != nil {
		return err
	}
	gonbui.DisplayHTML(part)
	return displayed()
}

// Save writes the animation into a folder: as Name.html, a page by itself, and every frame as Name-001.FORMAT, … in the
// other formats, those of [Figure.Save]. It returns the paths.
func (a Animation) Save(dir string, formats ...string) (paths []string, err error) {
	if err := a.validate(); err != nil {
		return nil, err
	}
	if slices.Contains(formats, "html") {
		part, err := a.HTML()
		if err != nil {
			return nil, err
		}
		page := fmt.Sprintf("<!doctype html>\n<meta charset=\"utf-8\">\n<title>%s</title>\n%s\n",
			html.EscapeString(a.Name), part)
		paths = append(paths, filepath.Join(dir, a.Name+".html"))
		if err := errors.Join(os.MkdirAll(dir, 0o755), files.WriteBytes(paths[0], []byte(page))); err != nil {
			return nil, fmt.Errorf("plots: saving animation %q: %w", a.Name, err)
		}
	}
	pictures := slices.DeleteFunc(slices.Clone(formats), func(f string) bool { return f == "html" })
	for i, f := range a.Frames {
		f.Name = fmt.Sprintf("%s-%03d", a.Name, i+1)
		saved, err := f.Save(dir, pictures...)
		if paths = append(paths, saved...); err != nil {
			return paths, err
		}
	}
	return paths, nil
}
