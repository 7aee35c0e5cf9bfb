package plots

import (
	"cmp"
	"encoding/json"
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/plot/vg"
	"pgregory.net/rapid"
)

// figure2 is shaped like Figure 2 of Oymak+ 2021: two panels side by side, five
// curves with intervals on a log axis, a reference, some hollow points. Its
// numbers are made up.
func figure2(style Style, interval Interval) Figure {
	return Figure{
		Name: "oymak2021-figure2", Style: style,
		Caption: "Numbers of a test. Hollow points stand for a smaller scale; mean over 20 random $α ∈ [0, 1]$ with " +
			"95 % confidence interval (Student’s t), SGD with rate $0.003$, batch 128.",
		Panels: [][]Panel{
			{
				figure2Panel("(a) one hidden layer", 0.8, 1.4, interval),
				figure2Panel("(b) four layers", 1.8, 3, interval),
			},
		},
		Meta: map[string]string{"params": "sha256:0123abcd", "scale": "quick"},
	}
}

func figure2Panel(title string, height, end float64, interval Interval) Panel {
	p := Panel{
		Title:  title,
		X:      Axis{Label: "model width $k$", Scale: Log2},
		Y:      Axis{Label: `$\|θ_α − θ_{α+Δα}\|_2/Δα$`},
		Legend: Legend{Hollow: "10 of 60 epochs"},
	}
	for i, delta := range []float64{0.005, 0.01, 0.03, 0.05, 0.07} {
		s := Series{Label: fmt.Sprintf("$Δα = %g$", delta), Interval: interval}
		for j := range 7 {
			k := 64 * math.Exp2(float64(j))
			y := height + 0.12*math.Sin(float64(j)/2) - 0.05*height*float64(i)
			s.X, s.Y, s.Hollow = append(s.X, k), append(s.Y, y), append(s.Hollow, k >= 2048)
			s.Lo, s.Hi = append(s.Lo, y-0.05), append(s.Hi, y+0.05)
		}
		p.Series = append(p.Series, s)
	}
	p.Series = append(p.Series, HLine("end of the paper’s axis", end))
	return p
}

func TestValidateSaysWhereAndWhat(t *testing.T) {
	require.NoError(t, figure2(ICML, Bands).Validate())
	series := func(f *Figure) *Series { return &f.Panels[0][1].Series[2] }
	for name, c := range map[string]struct {
		spoil func(*Figure)
		wants []string
	}{
		"no name":   {func(f *Figure) { f.Name = "" }, []string{"name", "stem"}},
		"a path":    {func(f *Figure) { f.Name = "../x" }, []string{`"../x"`, "stem"}},
		"no panels": {func(f *Figure) { f.Panels = [][]Panel{{}} }, []string{"no panels"}},
		"length of Y": {func(f *Figure) { series(f).Y = series(f).Y[:3] },
			[]string{"panel [0][1]", "(b) four layers", "series 2", "Δα = 0.03", "Y has 3 values and X has 7"}},
		"length of Hi": {func(f *Figure) { series(f).Hi = nil },
			[]string{"series 2", "Hi has 0 values and X has 7"}},
		"length of Hollow": {func(f *Figure) { series(f).Hollow = []bool{true} }, []string{"Hollow has 1 values"}},
		"NaN": {func(f *Figure) { series(f).Y[3] = math.NaN() },
			[]string{"series 2", "Y[3] is NaN", "leave out"}},
		"infinite bound": {func(f *Figure) { series(f).Hi[0] = math.Inf(1) }, []string{"Hi[0] is +Inf"}},
		"log of 0":       {func(f *Figure) { series(f).X[0] = 0 }, []string{"X[0] is 0", "positive", "log2"}},
		"bounds swapped": {func(f *Figure) { series(f).Lo, series(f).Hi = series(f).Hi, series(f).Lo },
			[]string{"interval 0", "Lo ≤ Hi"}},
		"ends swapped": {func(f *Figure) { f.Panels[0][0].Y.Min = 2 },
			[]string{"panel [0][0]", "y axis", "2 … 0", "Min < Max"}},
		"end of log axis": {func(f *Figure) { f.Panels[0][0].X.Max = 2 },
			[]string{"x axis", "ends[0] is 0", "positive"}},
		"tick": {func(f *Figure) { f.Panels[0][0].X.Ticks = []Tick{{Value: -1}} },
			[]string{"x axis", "tick 0", "-1"}},
		"unknown scale": {func(f *Figure) { f.Panels[0][0].X.Scale = "log3" }, []string{`scale "log3"`, "log10"}},
		"unknown line":  {func(f *Figure) { series(f).Line = "wavy" }, []string{`line "wavy"`, "dashdot"}},
		"colour":        {func(f *Figure) { series(f).Color = "red" }, []string{`"red"`, "#RRGGBB"}},
		"palette":       {func(f *Figure) { f.Style.Palette = []string{""} }, []string{"palette", "#RRGGBB"}},
		"width":         {func(f *Figure) { f.Style.Width = -1 }, []string{"Width is -1"}},
		"formula": {func(f *Figure) { f.Panels[0][0].Y.Label = "$θ_" },
			[]string{"y axis", `"$θ_"`, "expected"}},
		"command":  {func(f *Figure) { f.Title = `$\thета$` }, []string{`\th`, "unknown command"}},
		"meta key": {func(f *Figure) { f.Meta = map[string]string{"": "x"} }, []string{`key ""`, "79"}},
		"symbol":   {func(f *Figure) { f.Caption = "漢" }, []string{"no font", "漢"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := figure2(ICML, Bands)
			c.spoil(&f)
			err := f.Validate()
			require.Error(t, err)
			for _, want := range append(c.wants, "plots: figure") {
				require.ErrorContains(t, err, want)
			}
			_, renderErr := f.Render("svg")
			require.Equal(t, err, renderErr)
		})
	}
}

type estimate struct{ y, lo, hi float64 }

func (e estimate) Bounds() (y, lo, hi float64) { return e.y, e.lo, e.hi }

func TestBandTakesBounds(t *testing.T) {
	s := Bars("x", []float64{1, 2}, []estimate{{1, 0.5, 1.5}, {2, math.NaN(), math.NaN()}})
	require.Equal(
		t,
		Series{
			Label:    "x",
			X:        []float64{1, 2},
			Y:        []float64{1, 2},
			Lo:       []float64{0.5, 2},
			Hi:       []float64{1.5, 2},
			Interval: ErrorBars,
		},
		s,
	)
}

func TestCSVHoldsWhatIsDrawn(t *testing.T) {
	f := Figure{Name: "x", Panels: [][]Panel{{
		{Series: []Series{
			{
				Label:  "$Δα = 0.1$",
				X:      []float64{1, 2},
				Y:      []float64{0.1, 1e-30},
				Lo:     []float64{0, 0},
				Hi:     []float64{1, 1},
				Hollow: []bool{false, true},
			},
			HLine("bound", 3)}},
		{Title: "b, c", Series: []Series{{X: []float64{5}, Y: []float64{6}}}},
	}}}
	got, err := f.CSV()
	require.NoError(t, err)
	require.Equal(t, `panel,series,x,y,lo,hi,reference,hollow
1,Δα=0.1,1,0.1,0,1,false,false
1,Δα=0.1,2,1e-30,0,1,false,true
1,bound,,3,,,true,false
"b, c",,5,6,,,false,false
`, string(got))
}

func TestSaveWritesWholeFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "folder")
	f := figure2(ICML, Bands)
	paths, err := f.Save(dir, "svg", "csv")
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(dir, "oymak2021-figure2.svg"), filepath.Join(dir, "oymak2021-figure2.csv")},
		paths)
	want, err := f.Render("svg")
	require.NoError(t, err)
	got, err := os.ReadFile(paths[0])
	require.NoError(t, err)
	require.Equal(t, want, got)

	_, err = f.Save(dir, "svg", "gif")
	require.ErrorContains(t, err, `"gif"`)
	require.ErrorContains(t, err, "eps")

	// A name that a folder has cannot be written: nothing half-written stays.
	require.NoError(t, os.Mkdir(filepath.Join(dir, "oymak2021-figure2.eps"), 0o755))
	paths, err = f.Save(dir, "csv", "eps")
	require.Error(t, err)
	require.Len(t, paths, 1)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 3)
}

func TestFigureSurvivesJSON(t *testing.T) {
	f := figure2(NeurIPS, ErrorBars)
	data, err := json.Marshal(f)
	require.NoError(t, err)
	var again Figure
	require.NoError(t, json.Unmarshal(data, &again))
	require.Equal(t, f, again)
}

func TestStylesHaveTheVenuesWidths(t *testing.T) {
	require.Equal(t, 3.25, ICML.Column().Width)
	require.Equal(t, 6.75, ICML.Text().Width)
	require.Equal(t, 5.5, ICLR.Width)
	require.Equal(t, 5.5, NeurIPS.Column().Width)
	zero := Style{}.filled()
	zero.Name, zero.Font = "ICML", Times
	require.Equal(t, ICML, zero)
}

func TestLooksGoByLabel(t *testing.T) {
	l := looks{palette: palette, byKey: map[string]int{}}
	a, b := l.forSeries(Series{Label: "a"}, "0"), l.forSeries(Series{Label: "b"}, "1")
	require.Equal(t, a, l.forSeries(Series{Label: "a"}, "2"), "the same label looks the same in another panel")
	require.NotEqual(t, a, l.forSeries(Series{Label: "a", Reference: true}, "3"), "a paper's curve looks unlike ours")
	seen := map[look]bool{a: true, b: true}
	for i := range 33 {
		seen[l.forSeries(Series{}, fmt.Sprint("unnamed", i))] = true
	}
	require.Len(t, seen, 35, "35 curves differ")
	points := map[look]bool{}
	for v := range seen {
		points[look{color: v.color, marker: v.marker}] = true
	}
	require.Len(t, points, 35, "and their points do, too")
}

// In a panel no two curves have the same colour where the palette has as many, and
// in a figure of as few curves no colour has two meanings, whichever of them ask for
// a colour of their own.
func TestColorsHaveOneMeaning(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		label := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"})
		asks := map[string]string{"a": palette[1], "b": strings.ToLower(palette[4])}
		var row []Panel
		all := map[string]bool{}
		for range rapid.IntRange(1, 4).Draw(t, "panels") {
			var p Panel
			for _, name := range rapid.SliceOfNDistinct(label, 0, 5, rapid.ID).Draw(t, "labels") {
				p.Series = append(p.Series, Series{Label: name, Color: asks[name], X: []float64{1}, Y: []float64{1}})
				all[name] = true
			}
			row = append(row, p)
		}
		l, err := newLayout(Figure{Name: "x", Panels: [][]Panel{row}})
		require.NoError(t, err)
		meaning := map[color.RGBA]string{}
		for _, row := range l.panels {
			for _, p := range row {
				inPanel := map[color.RGBA]bool{}
				for i, s := range p.Series {
					c := p.looks[i].color
					if len(all) <= len(palette) {
						require.Equal(t, s.Label, cmp.Or(meaning[c], s.Label))
						require.False(t, inPanel[c])
					}
					inPanel[c], meaning[c] = true, s.Label
					if asks[s.Label] != "" {
						require.Equal(t, rgb(asks[s.Label]), c)
					}
				}
			}
		}
	})
}

// Curves that stand next to each other in a legend must differ in grey.
func TestPaletteSurvivesGrey(t *testing.T) {
	luminance := func(hex string) float64 {
		c := rgb(hex)
		return 0.299*float64(c.R) + 0.587*float64(c.G) + 0.114*float64(c.B)
	}
	for i := range palette[1:] {
		require.Greater(t, math.Abs(luminance(palette[i])-luminance(palette[i+1])), 30.0,
			"%s and %s", palette[i], palette[i+1])
	}
}

func TestBarsStandBesideEachOther(t *testing.T) {
	bars := Series{X: []float64{1}, Y: []float64{1}, Lo: []float64{0}, Hi: []float64{2}, Interval: ErrorBars}
	plain := Series{X: []float64{1}, Y: []float64{1}}
	p := &panel{Panel: Panel{Series: []Series{bars, plain, bars, bars}}}
	p.setAside(&layout{style: ICML})
	require.Equal(t, make([]vg.Length, 4), p.aside, "beside its x a point would say another number")
	p.X.Ticks = []Tick{{0, "0"}, {1, "50 %"}, {2, "−1.5"}, {3, "$10^{2}$"}, {4, ""}}
	require.False(t, p.X.categorical())
	p.X.Ticks = []Tick{{1, "linear"}}
	p.setAside(&layout{style: ICML})
	require.Zero(t, p.aside[1], "a curve without bars stays where it is")
	require.Zero(t, p.aside[2], "the middle one of three stays, too")
	require.Positive(t, p.aside[3])
	require.Equal(t, p.aside[3], -p.aside[0])

	alone := &panel{Panel: Panel{X: p.X, Series: []Series{bars}}}
	alone.setAside(&layout{style: ICML})
	require.Zero(t, alone.aside[0])
}

func TestTitleOfTheFile(t *testing.T) {
	require.Equal(t, "name", Figure{Name: "name"}.title())
	f := Figure{Name: "name", Meta: map[string]string{"title": "from Meta", "scale": "quick"}}
	require.Equal(t, "from Meta", f.title())
	require.Equal(t, []string{"name=name", "scale=quick"}, f.meta())
	f.Title = "above the $k$ panels"
	require.Equal(t, "above the k panels", f.title())
}
