package plots

import (
	"bytes"
	"encoding/binary"
	"encoding/xml"
	"errors"
	"fmt"
	"image/png"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/plot/vg"
	"pgregory.net/rapid"
)

var pictures = []string{"pdf", "svg", "eps", "png"}

func TestSameFigureSameBytes(t *testing.T) {
	for _, interval := range []Interval{Bands, ErrorBars} {
		for _, format := range pictures {
			first, err := figure2(ICML, interval).Render(format)
			require.NoError(t, err)
			for range 3 {
				again, err := figure2(ICML, interval).Render(format)
				require.NoError(t, err)
				require.True(t, bytes.Equal(first, again), format)
			}
			other := figure2(ICML, interval)
			other.Panels[0][0].Series[0].Y[0] += 0.01
			changed, err := other.Render(format)
			require.NoError(t, err)
			require.False(t, bytes.Equal(first, changed), "%s shows the data", format)
		}
	}
}

func TestRenderNamesFormats(t *testing.T) {
	_, err := figure2(ICML, Bands).Render("docx")
	require.ErrorContains(t, err, `"docx"`)
	require.ErrorContains(t, err, `["eps" "pdf" "png" "svg"]`)
}

func TestMetadata(t *testing.T) {
	f := figure2(ICML.Column(), Bands)
	f.Title = "Stability of $θ_α$ & more"
	render := func(format string) string {
		data, err := f.Render(format)
		require.NoError(t, err)
		return string(data)
	}
	pdf := render("pdf")
	require.Contains(t, pdf, "/Title (\xfe\xff"+utf16be("Stability of θ_α & more"))
	require.Contains(t, pdf, utf16be("name=oymak2021-figure2 params=sha256:0123abcd scale=quick"))
	require.Contains(t, pdf, "/CreationDate (D:20000101000000)")

	svg := render("svg")
	require.Contains(t, svg, "<title>Stability of θ_α &amp; more</title>")
	require.Contains(t, svg, "<metadata>name=oymak2021-figure2 params=sha256:0123abcd scale=quick</metadata>")
	require.Contains(t, svg, "<desc>Numbers of a test.")

	eps := render("eps")
	require.True(t, strings.HasPrefix(eps, "%!PS-Adobe-3.0 EPSF-3.0\n"))
	require.Contains(t, eps, "\n%%Title: Stability of \\u03b8_\\u03b1 & more\n")
	require.Contains(t, eps, "\n%%Keywords: name=oymak2021-figure2 params=sha256:0123abcd scale=quick\n")
	require.Regexp(t, `\n%%BoundingBox: 0 0 234 \d+\n`, eps)
	require.NotContains(t, eps, "CreationDate")

	texts := pngTexts(t, render("png"))
	require.Equal(t, "sha256:0123abcd", texts["params"])
	require.Equal(t, "quick", texts["scale"])
	require.Equal(t, "Stability of θ_α & more", texts["Title"])
}

func utf16be(s string) string {
	var out []byte
	for _, u := range utf16.Encode([]rune(s)) {
		out = binary.BigEndian.AppendUint16(out, u)
	}
	return string(out)
}

// pngTexts reads the text chunks of a PNG.
func pngTexts(t *testing.T, data string) map[string]string {
	texts := map[string]string{}
	for rest := data[8:]; len(rest) > 0; {
		n := int(binary.BigEndian.Uint32([]byte(rest)))
		kind, body := rest[4:8], rest[8:8+n]
		switch kind {
		case "tEXt":
			key, value, _ := strings.Cut(body, "\x00")
			texts[key] = value
		case "iTXt":
			key, value, _ := strings.Cut(body, "\x00")
			texts[key] = value[4:]
		}
		rest = rest[12+n:]
	}
	_, err := png.Decode(strings.NewReader(data))
	require.NoError(t, err, "the chunks' checksums hold")
	return texts
}

func TestSizesOfFiles(t *testing.T) {
	f := figure2(ICML, Bands)
	l, err := newLayout(f)
	require.NoError(t, err)
	data, err := f.Render("png")
	require.NoError(t, err)
	config, err := png.DecodeConfig(bytes.NewReader(data))
	require.NoError(t, err)
	require.Equal(t, 2025, config.Width, "6.75 in at 300 dpi")
	require.InDelta(t, float64(l.height)/72*300, config.Height, 1)

	svg, err := f.Render("svg")
	require.NoError(t, err)
	require.Contains(t, string(svg), `<svg width="486pt" height="`)
}

// What the SVG is made of: well-formed XML, every fill and stroke of the page as
// one path, every glyph once, no text that would need a font, and nothing transparent but bands.
func TestStructureOfSVG(t *testing.T) {
	f := figure2(ICML, Bands)
	l, err := newLayout(f)
	require.NoError(t, err)
	data, err := f.Render("svg")
	require.NoError(t, err)
	count := map[string]int{}
	for d := xml.NewDecoder(bytes.NewReader(data)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if e, ok := token.(xml.StartElement); ok {
			count[e.Name.Local]++
		}
	}
	texts := len(slices.DeleteFunc(slices.Clone(l.ops), func(o op) bool { return o.text == nil }))
	glyphs := len(newSubsets(&l.page).code) - 1 // a space has no outline
	require.Equal(t, len(l.ops)-texts+glyphs, count["path"])
	require.GreaterOrEqual(t, count["g"], 1+texts)
	require.Greater(t, count["use"], 5*glyphs)
	for _, name := range []string{"path", "g", "use"} {
		delete(count, name)
	}
	require.Equal(t, map[string]int{"svg": 1, "defs": 1, "title": 1, "desc": 1, "metadata": 1, "rect": 1}, count)
	veils := 0
	for _, o := range l.ops {
		if o.veil {
			veils++
		}
	}
	require.Equal(t, 15, veils, "five curves in two panels and in the legend")
	require.Equal(t, veils, bytes.Count(data, []byte("fill-opacity:")))
	require.NotContains(t, string(data), "stroke-opacity")
}

// The bands lie under all lines: nothing that is stroked in a band's panel comes
// before the last band.
func TestBandsLieUnderLines(t *testing.T) {
	l, err := newLayout(figure2(ICML, Bands))
	require.NoError(t, err)
	band, line := rgb(palette[4]), rgb(palette[0]) // the last curve's, and the first one's
	lastBand := slices.IndexFunc(l.ops, func(o op) bool { return o.veil && o.color == band })
	firstLine := slices.IndexFunc(l.ops, func(o op) bool { return !o.veil && o.color == line })
	require.Positive(t, lastBand)
	require.Greater(t, firstLine, lastBand)
}

// Nothing is cut and no text touches another, at all widths of the venues.
func TestNothingCutNothingOverlaps(t *testing.T) {
	for _, style := range []Style{ICML, ICML.Column(), ICLR, NeurIPS} {
		for _, interval := range []Interval{Bands, ErrorBars} {
			f := figure2(style, interval)
			t.Run(fmt.Sprint(style.Name, style.Width, interval), func(t *testing.T) { requireTidy(t, f) })
			f.Panels = [][]Panel{f.Panels[0][:1]}
			t.Run(fmt.Sprint(style.Name, style.Width, interval, "one"), func(t *testing.T) { requireTidy(t, f) })
		}
	}
	long := figure2(ICML, Bands)
	long.Title = "a title above all panels"
	long.Panels[0][0].Y.Label = "a label that is much too long to stand beside a panel of this height in one line " +
		"$θ_{a_b}$"
	long.Panels[0][1].Title = "a title that is much too long to stand above a panel of this width in one line"
	long.Panels[0][1].X.Label = strings.Repeat("unbreakable", 9)
	long.Panels[0][1].Series[0].Label = strings.Repeat("a long name ", 20)
	requireTidy(t, long)
}

func requireTidy(t require.TestingT, f Figure) {
	l, err := newLayout(f)
	require.NoError(t, err)
	for i, a := range l.texts {
		inside := a.Min.X >= 0 && a.Max.X <= l.width && a.Max.Y <= 0 && a.Min.Y >= -l.height
		require.True(t, inside, "text %d at %v is cut by the page %v × %v", i, a, l.width, l.height)
		for j, b := range l.texts[:i] {
			require.False(t, overlap(a, b), "texts %d and %d: %v and %v", j, i, a, b)
		}
		for _, row := range l.panels {
			for _, p := range row {
				if overlap(a, p.frame) { // then it is a legend's, and clear of the data
					for _, q := range p.obstacles() {
						require.False(t, overlap(a, vg.Rectangle{Min: q, Max: q}), "legend on data at %v", q)
					}
				}
			}
		}
	}
}

func overlap(a, b vg.Rectangle) bool {
	return a.Min.X < b.Max.X && b.Min.X < a.Max.X && a.Min.Y < b.Max.Y && b.Min.Y < a.Max.Y
}

func TestPanelsAreAligned(t *testing.T) {
	f := figure2(ICML, Bands)
	f.Panels[0][0].Y.Ticks = []Tick{{1, "a very wide label"}}
	f.Panels[0][0].X.Label = ""
	l, err := newLayout(f)
	require.NoError(t, err)
	a, b := l.panels[0][0].frame, l.panels[0][1].frame
	require.Equal(t, a.Min.Y, b.Min.Y)
	require.InDelta(t, float64(a.Size().X), float64(b.Size().X), 1e-9)
	require.InDelta(t, f.Style.Aspect, float64(a.Size().Y/a.Size().X), 1e-9)

	column, err := newLayout(figure2(ICML.Column(), Bands))
	require.NoError(t, err)
	require.Len(t, column.panels, 2, "panels that would be too narrow stand one above the other")
	require.Equal(t, column.panels[0][0].frame.Min.X, column.panels[1][0].frame.Min.X)
}

func TestAxisLabelsAreCentredOnLogAxes(t *testing.T) {
	l, err := newLayout(Figure{Name: "x", Panels: [][]Panel{{{
		X: Axis{Label: "x", Scale: Log10}, Series: []Series{{X: []float64{1, 1e6}, Y: []float64{1, 2}}},
	}}}})
	require.NoError(t, err)
	label, frame := l.texts[len(l.texts)-1], l.panels[0][0].frame
	require.InDelta(t, float64(frame.Min.X+frame.Max.X)/2, float64(label.Min.X+label.Max.X)/2, 1e-9)
}

func TestLegendSaysWhatWasNotRun(t *testing.T) {
	f := figure2(ICML, Bands)
	empty := Series{Label: "$Δα = 0.05$"}
	f.Panels[0][1].Series[3] = empty // has points in the other panel
	f.Panels[0][1].Series = append(f.Panels[0][1].Series, Series{Label: "never"})
	l, err := newLayout(f)
	require.NoError(t, err)
	var shared []entry
	for _, p := range l.panels[0] {
		shared = addEntries(shared, p.entries())
	}
	var names []string
	for _, e := range shared {
		names = append(names, fmt.Sprint(plain(e.name), e.empty))
	}
	require.Equal(t, []string{"Δα=0.005false", "Δα=0.01false", "Δα=0.03false", "Δα=0.05false", "Δα=0.07false",
		"end of the paper’s axisfalse", "nevertrue", "10 of 60 epochsfalse"}, names)
}

// Any finite figure is drawn in all formats, or refused for want of room.
func TestAnyFiniteFigureRenders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFigure(t)
		require.NoError(t, f.Validate())
		for _, format := range pictures {
			data, err := f.Render(format)
			if err != nil {
				require.ErrorContains(t, err, "labels leave a width of")
				continue
			}
			require.NotEmpty(t, data)
			requireTidy(t, f)
			if format == "svg" || format == "eps" {
				_, drawing, _ := strings.Cut(string(data), "</metadata>")
				require.NotRegexp(t, `NaN|Inf`, drawing)
			}
		}
	})
}

func drawFigure(t *rapid.T) Figure {
	f := Figure{Name: "any", Style: Style{Width: rapid.Float64Range(2, 8).Draw(t, "width"), DPI: 30}}
	for range rapid.IntRange(1, 2).Draw(t, "rows") {
		var row []Panel
		for range rapid.IntRange(1, 3).Draw(t, "columns") {
			row = append(row, drawPanel(t))
		}
		f.Panels = append(f.Panels, row)
	}
	return f
}

func drawPanel(t *rapid.T) Panel {
	scales := rapid.SampledFrom([]Scale{Linear, Log2, Log10})
	p := Panel{
		X: Axis{Label: rapid.SampledFrom([]string{"", "step $t$"}).Draw(t, "label"), Scale: scales.Draw(t, "x")},
		Y: Axis{Label: "y", Scale: scales.Draw(t, "y")},
		Legend: Legend{
			Position: rapid.SampledFrom([]LegendPosition{LegendAuto, LegendInside, LegendBelow, LegendNone}).
				Draw(t, "legend"),
		},
	}
	if rapid.Bool().Draw(t, "fixed") {
		p.Y.Min, p.Y.Max = 1, 2
	}
	for range rapid.IntRange(0, 4).Draw(t, "series") {
		p.Series = append(p.Series, drawSeries(t, p.X.Scale, p.Y.Scale))
	}
	return p
}

func drawSeries(t *rapid.T, x, y Scale) Series {
	n := rapid.SampledFrom([]int{0, 1, 2, 5, 30}).Draw(t, "points")
	values := func(scale Scale, name string) []float64 { return rapid.SliceOfN(number64(scale), n, n).Draw(t, name) }
	s := Series{
		Label: rapid.SampledFrom([]string{"", "EG", "$\\eta = 0.1$"}).Draw(t, "name"),
		X:     values(x, "x"), Y: values(y, "y"),
		Reference: rapid.Bool().Draw(t, "reference"),
		Interval:  rapid.SampledFrom([]Interval{Bands, ErrorBars}).Draw(t, "interval"),
	}
	if rapid.Bool().Draw(t, "interval?") {
		s.Lo, s.Hi = values(y, "lo"), values(y, "hi")
		for i := range s.Lo {
			s.Lo[i], s.Hi[i] = min(s.Lo[i], s.Hi[i]), max(s.Lo[i], s.Hi[i])
		}
	}
	return s
}
