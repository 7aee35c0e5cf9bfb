package plots

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// family is a panel of curves of these names.
func family(title string, names ...string) Panel {
	p := Panel{Title: title, X: Axis{Label: "x"}, Y: Axis{Label: "y"}}
	for i, name := range names {
		p.Series = append(p.Series, Series{Label: name, X: []float64{0, 1, 2},
			Y: []float64{float64(i), float64(i) + 0.5, float64(i)}})
	}
	return p
}

func names(prefix string, n int) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprint(prefix, i))
	}
	return all
}

// Rows whose panels explain the same share one legend, however long; it stands
// beside a shorter last row that has its own inside.
func TestRowsShareALegend(t *testing.T) {
	f := Figure{Name: "x", Panels: [][]Panel{
		{family("", names("a", 7)...), family("", names("a", 7)...)},
		{family("", names("a", 4)...), family("", names("a", 7)...)},
		{family("", names("b", 2)...)},
	}}
	f.Panels[2][0].Legend.Position = LegendInside
	f.Panels[2][0].Y.Max = 9
	l, err := newLayout(f)
	require.NoError(t, err)
	require.True(t, l.own)
	require.Nil(t, l.groups[0])
	require.Nil(t, l.groups[1])
	require.Len(t, l.groups[2], 4, "all but the one with a legend inside")
	alone := l.panels[2][0].frame
	beside := 0
	for _, text := range l.texts {
		if text.Min.X > alone.Max.X && text.Min.Y > alone.Min.Y && text.Max.Y < alone.Max.Y {
			beside++
		}
	}
	require.Equal(t, 7, beside, "all names stand beside the last row")
	requireTidy(t, f)

	f.Panels[2] = append(f.Panels[2], family("", names("c", 3)...))
	l, err = newLayout(f)
	require.NoError(t, err)
	require.Len(t, l.groups[1], 4, "the last row explains something else")
	require.False(t, l.waits(1), "there is no room")
	requireTidy(t, f)
}

// Neighbours in a row that explain the same share one legend under both; a panel that
// explains something else keeps its own.
func TestNeighboursShareALegend(t *testing.T) {
	below := func(p Panel) Panel { p.Legend.Position = LegendBelow; return p }
	f := Figure{Name: "x", Panels: [][]Panel{
		{below(family("", names("a", 2)...)), below(family("", names("a", 3)...)), below(family("", names("b", 4)...))},
	}}
	l, err := newLayout(f)
	require.NoError(t, err)
	require.True(t, l.own)
	requireTidy(t, f)
	with := len(l.texts)
	for i := range f.Panels[0] {
		f.Panels[0][i].Legend.Position = LegendNone
	}
	l, err = newLayout(f)
	require.NoError(t, err)
	require.Equal(t, 3+4, with-len(l.texts), "every name once")
}

// Of a long legend that rows share, references are named where they are.
func TestReferencesAreNamedWhereTheyAre(t *testing.T) {
	p := family("", names("a", 6)...)
	p.Series = append(p.Series, HLine("the bound", 9))
	p.Y.Min, p.Y.Max = -1, 10
	f := Figure{Name: "x", Panels: [][]Panel{{p, p}}}
	l, err := newLayout(f)
	require.NoError(t, err)
	requireTidy(t, f)
	inside := 0
	for _, text := range l.texts {
		for _, p := range l.panels[0] {
			if overlap(text, p.frame) {
				inside++
			}
		}
	}
	require.Equal(t, 2, inside, "one in each panel")
	require.Len(t, merged(l.panels[0]), 7)
	f.Panels[0] = f.Panels[0][:1]
	requireTidy(t, f)
}

// A line in one panel and points in another are one entry, line and marker.
func TestOneEntryForLineAndPoints(t *testing.T) {
	curve, points := family("", "a", "b"), family("", "a", "b")
	for i := range curve.Series {
		curve.Series[i].Marker, points.Series[i].Line = NoMarker, NoLine
		curve.Series[i].Lo, curve.Series[i].Hi = curve.Series[i].Y, curve.Series[i].Y
	}
	l, err := newLayout(Figure{Name: "x", Panels: [][]Panel{{curve, points}}})
	require.NoError(t, err)
	all := merged(l.panels[0])
	require.Len(t, all, 2)
	require.Equal(t, Solid, all[0].look.line)
	require.Equal(t, Circle, all[0].look.marker)
	require.True(t, all[0].band)
	points.Series[0].Color = "#CC79A7"
	l, err = newLayout(Figure{Name: "x", Panels: [][]Panel{{curve, points}}})
	require.NoError(t, err)
	require.Len(t, merged(l.panels[0]), 3, "another colour is another entry")
}

func TestEntriesSayWhatTheyAreTold(t *testing.T) {
	p := family("", "a", "b", "c")
	p.Series[0].Entry, p.Series[1].Entry = "first", NoEntry
	l, err := newLayout(Figure{Name: "x", Panels: [][]Panel{{p}}})
	require.NoError(t, err)
	var got []string
	for _, e := range l.panels[0][0].entries() {
		got = append(got, e.name)
	}
	require.Equal(t, []string{"first", "c"}, got)
	csv, err := Figure{Name: "x", Panels: [][]Panel{{p}}}.CSV()
	require.NoError(t, err)
	require.Contains(t, string(csv), "\n1,b,", "the numbers keep their names")
}

func TestLongerRowsComeFirst(t *testing.T) {
	axes, boxes := []*panel{{}, {}, {}, {}, {}}, []*panel{{box: &cellBox{}}, {box: &cellBox{}}}
	lengths := func(ofBoxes bool) (lengths []int) {
		for _, r := range reflow([][]*panel{axes, boxes}, ofBoxes) {
			lengths = append(lengths, len(r))
		}
		return lengths
	}
	require.Equal(t, []int{3, 2, 2}, lengths(false))
	require.Equal(t, []int{5, 1, 1}, lengths(true), "rows of axes stay where cells have no place")
}
