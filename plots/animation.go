package plots

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/janpfeifer/gonb/gonbui"

	"github.com/nasml/lab/internal/files"
)

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
const script = `<script>(function () {
  var box = document.getElementById("%s"), frames = box.querySelectorAll("img"), timer = null;
  var slider = box.querySelector("input"), label = box.querySelector("output"), button = box.querySelector("button");
  frames.forEach(async function (f) {
    if (!f.dataset.svg) { return; }
    var zipped = Uint8Array.from(atob(f.dataset.svg), function (c) { return c.charCodeAt(0); });
    var svg = new Blob([zipped]).stream().pipeThrough(new DecompressionStream("gzip"));
    f.src = URL.createObjectURL(new Blob([await new Response(svg).text()], {type: "image/svg+xml"}));
  });
  function show() {
    frames.forEach(function (f, i) { f.style.display = i === +slider.value ? "block" : "none"; });
    label.textContent = frames[+slider.value].alt.split(". ")[0];
  }
  function stop() { clearInterval(timer); timer = null; button.textContent = "play"; }
  slider.addEventListener("input", function () { stop(); show(); });
  button.addEventListener("click", function () {
    if (timer) { return stop(); }
    if (+slider.value === frames.length - 1) { slider.value = 0; show(); }
    button.textContent = "stop";
    timer = setInterval(function () {
      slider.value = +slider.value + 1; show();
      if (+slider.value === frames.length - 1) { stop(); }
    }, %d);
  });
})();</script>`

// Show shows the animation as the output of a notebook's cell; elsewhere it
// returns ErrNoNotebook.
func (a Animation) Show() error {
	if !gonbui.IsNotebook {
		return ErrNoNotebook
	}
	part, err := a.html("nasml_" + gonbui.UniqueId())
	if err != nil {
		return err
	}
	gonbui.DisplayHTML(part)
	gonbui.Sync() // a cell that ends at once would take its last output along
	return gonbui.Error()
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
