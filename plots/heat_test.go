package plots

import (
	"bytes"
	"image/png"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func heatFigure() Figure {
	return Figure{Name: "heat", Style: ICML.Column(), Panels: [][]Panel{{{
		X: Axis{Label: "$p/n$", Scale: Log10}, Y: Axis{Label: "$h/n$"},
		Heat: &Heat{
			X:      []float64{1, 10, 100},
			Y:      []float64{0, 1, 2, 4},
			Values: [][]float64{{0, 1}, {2, 3}, {4, 5}},
			Label:  "$ρ^2$",
		},
		Series: []Series{{Label: "boundary", X: []float64{1, 100}, Y: []float64{4, 0}, Line: Solid, Marker: NoMarker}},
	}}}}
}

func luminance(r, g, b float64) float64 { return 0.299*r + 0.587*g + 0.114*b }

// Printed in grey, a larger number is always darker, by even steps.
func TestHeatColorsFallEvenlyInLuminance(t *testing.T) {
	last, steps := math.Inf(1), []float64{}
	for i := range 101 {
		c := heatColor(float64(i) / 100)
		require.EqualValues(t, 255, c.A, "opaque: EPS has no transparency")
		l := luminance(float64(c.R), float64(c.G), float64(c.B))
		require.Less(t, l, last+1e-9)
		if i%25 == 0 {
			steps = append(steps, l)
		}
		last = l
	}
	for i := 1; i < len(steps); i++ {
		require.InDelta(t, (steps[0]-steps[4])/4, steps[i-1]-steps[i], 6, "%v", steps)
	}
	require.Equal(t, heatColor(0), heatColor(-3))
	require.Equal(t, heatColor(1), heatColor(7))
}

// The middle of every cell has the colour of its number, in the place that the
// axes' scales say; the bar has all colours.
func TestHeatCellsStandWhereTheAxesSay(t *testing.T) {
	f := heatFigure()
	f.Panels[0][0].Series = nil
	data, err := f.Render("png")
	require.NoError(t, err)
	picture, err := png.Decode(bytes.NewReader(data))
	require.NoError(t, err)
	l, err := newLayout(f)
	require.NoError(t, err)
	p := l.panels[0][0]
	scale := float64(picture.Bounds().Dx()) / float64(l.width)
	at := func(x, y float64) [3]uint32 {
		q := p.at(x, y)
		r, g, b, _ := picture.At(int(float64(q.X)*scale), int(-float64(q.Y)*scale)).RGBA()
		return [3]uint32{r >> 8, g >> 8, b >> 8}
	}
	for row, y := range []float64{0.5, 1.5, 3} {
		for column, x := range []float64{math.Sqrt(10), math.Sqrt(1000)} {
			want := heatColor(f.Panels[0][0].Heat.Values[row][column] / 5)
			require.Equal(
				t,
				[3]uint32{uint32(want.R), uint32(want.G), uint32(want.B)},
				at(x, y),
				"row %d, column %d",
				row,
				column,
			)
		}
	}
	q := p.frame.Max
	bar := picture.At(int(float64(q.X+barGap+barWidth/2)*scale), int(-float64(q.Y-1)*scale))
	r, _, _, _ := bar.RGBA()
	require.InDelta(t, float64(heatColor(1).R), float64(r>>8), 3, "the bar's top is the largest number")
}

func TestHeatRendersInEveryFormatAndStaysOnThePage(t *testing.T) {
	for _, format := range []string{"pdf", "svg", "eps", "png"} {
		a, err := heatFigure().Render(format)
		require.NoError(t, err)
		b, err := heatFigure().Render(format)
		require.NoError(t, err)
		require.Equal(t, a, b)
	}
	l, err := newLayout(heatFigure())
	require.NoError(t, err)
	for _, text := range l.texts {
		require.LessOrEqual(t, float64(text.Max.X), float64(l.width), "the bar's label is on the page")
	}
	one := heatFigure()
	one.Panels[0][0].Heat.Values = [][]float64{{2, 2}, {2, 2}, {2, 2}}
	_, err = one.Render("svg")
	require.NoError(t, err, "one number only")
}

func TestHeatCSV(t *testing.T) {
	csv, err := heatFigure().CSV()
	require.NoError(t, err)
	require.Contains(t, string(csv), "panel,x from,x to,y from,y to,value\n1,1,10,0,1,0\n1,10,100,0,1,1\n")
	require.Contains(t, string(csv), "boundary", "and the curves")
	f := heatFigure()
	f.Panels[0][0].Series = nil
	csv, err = f.CSV()
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(csv), "panel,x from"), "no header of curves that are not there")
}

func TestHeatThatMakesNoSense(t *testing.T) {
	for want, change := range map[string]func(*Panel){
		"increasing edges":                    func(p *Panel) { p.Heat.X[1] = 1 },
		"at least 2":                          func(p *Panel) { p.Heat.Y = p.Heat.Y[:1] },
		"one row less":                        func(p *Panel) { p.Heat.Values = p.Heat.Values[1:] },
		"one value less":                      func(p *Panel) { p.Heat.Values[0] = []float64{1} },
		"finite number":                       func(p *Panel) { p.Heat.Values[2][1] = math.NaN() },
		"positive number on a log":            func(p *Panel) { p.Heat.X[0] = 0 },
		"Min < Max":                           func(p *Panel) { p.Heat.Min = 7 },
		"label":                               func(p *Panel) { p.Heat.Label = "$" },
		"Cell, a Table or a Simplex and also": func(p *Panel) { p.Table = &Table{} },
	} {
		f := heatFigure()
		change(&f.Panels[0][0])
		require.ErrorContains(t, f.Validate(), want)
	}
}
