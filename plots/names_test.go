package plots

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// withLooks sets looks and titles for a test.
func withLooks(t *testing.T, looks map[string]Look) {
	named, title := Named, Title
	t.Cleanup(func() { Named, Title = named, title })
	Named = looks
}

// A thing looks the same wherever it is in a list, and what has no name avoids its colour.
func TestNamesHaveOneLook(t *testing.T) {
	darts := Look{Color: "#D55E00", Marker: Hexagon, Line: DashDot}
	withLooks(t, map[string]Look{"DARTS": darts})
	point := func(labels ...string) Figure {
		f := Figure{Name: "f", Panels: [][]Panel{{{}}}}
		for _, label := range labels {
			one := Series{Label: label, X: []float64{1}, Y: []float64{1}}
			f.Panels[0][0].Series = append(f.Panels[0][0].Series, one)
		}
		return f
	}
	for _, labels := range [][]string{{"DARTS"}, {"a", "b", "DARTS"}, {"DARTS", "a", "b", "c", "d", "e", "f"}} {
		l, err := newLayout(point(labels...))
		require.NoError(t, err)
		p, seen := l.panels[0][0], map[string]bool{}
		for i, s := range p.Series {
			look := p.looks[i]
			if s.Label == "DARTS" {
				require.Equal(t, look.color, rgb(darts.Color), labels)
				require.Equal(t, darts.Marker, look.marker)
				require.Equal(t, darts.Line, look.line)
			}
			require.False(t, seen[hexOf(look.color)], "two curves have one colour: %v", labels)
			seen[hexOf(look.color)] = true
		}
	}
	l, err := newLayout(point("DARTS, discretised", "DARTS"))
	require.NoError(t, err)
	variant, own := l.panels[0][0].looks[0], l.panels[0][0].looks[1]
	require.Equal(t, own.color, variant.color)
	require.NotEqual(t, own.line, variant.line)
}

// Pictures and LaTeX have titles, a CSV has names, and a curve's look goes by its name.
func TestTitlesAreDrawn(t *testing.T) {
	withLooks(t, map[string]Look{"raw_name": {Color: "#D55E00", Marker: Circle, Line: Solid}})
	Title = func(name string) string { return strings.ReplaceAll(name, "raw_name", "words") }
	f := tableFigure(ICML, &Table{
		Columns: []Column{{Header: "raw_name"}}, Blocks: []Block{{Rows: [][]Entry{{{Text: "raw_name"}}}}},
	})
	f.Panels = append(f.Panels, []Panel{{Series: []Series{{Label: "raw_name", X: []float64{1}, Y: []float64{1}}}}})
	f.Style.Lettering = LiveText
	svg, err := f.Render("svg")
	require.NoError(t, err)
	require.NotContains(t, string(svg), "raw_name")
	require.Equal(t, 3, strings.Count(string(svg), ">words<"))
	require.Contains(t, string(svg), "#D55E00")
	tex, err := f.LaTeX()
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(string(tex), "words"))
	csv, err := f.CSV()
	require.NoError(t, err)
	require.Contains(t, string(csv), "raw_name")
}
