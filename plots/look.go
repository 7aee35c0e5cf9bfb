package plots

import "math"

// Graph is the curve of a formula, without markers and not in the legend.
func Graph(xs []float64, f func(x float64) float64) Series {
	s := Series{X: xs, Marker: NoMarker}
	for _, x := range xs {
		s.Y = append(s.Y, f(x))
	}
	return s
}

// Reference is [Graph] for what is not ours, named in the legend unless label is empty.
func Reference(label string, line Line, xs []float64, f func(x float64) float64) Series {
	s := Graph(xs, f)
	s.Label, s.Line, s.Marker, s.Reference = label, line, AutoMarker, true
	return s
}

// LogGrid is even on a log axis; empty where low ≥ high.
func LogGrid(low, high float64) []float64 {
	if low >= high {
		return nil
	}
	const n = 80
	grid := make([]float64, n+1)
	for i := range grid {
		grid[i] = low * math.Pow(high/low, float64(i)/n)
	}
	return grid
}

// Look is how a thing looks in every picture that it is in.
type Look struct {
	Color  string
	Marker Marker
	Line   Line
}

// On is a series with the look: a line through its points.
func (l Look) On(s Series) Series {
	s.Color, s.Marker, s.Line = l.Color, l.Marker, l.Line
	return s
}

// AsLine is a series with the look, without markers.
func (l Look) AsLine(s Series) Series {
	s.Color, s.Marker, s.Line = l.Color, NoMarker, l.Line
	return s
}

// AsPoints is a series with the look, without a line.
func (l Look) AsPoints(s Series) Series {
	s.Color, s.Marker, s.Line = l.Color, l.Marker, NoLine
	return s
}

// The colours and dashes of [Looks], in the order in which things get them, with those of autoMarkers.
var (
	lookColors = []string{"#0072B2", "#D55E00", "#000000", "#CC79A7", "#009E73", "#E69F00", "#56B4E9"}
	lookLines  = []Line{Solid, LongDash, DashDot, Dashed, Dotted}
)

// Looks gives each thing a look by its place in the list, which has everything that any picture may show. Duplicates
// keep their first.
func Looks[K comparable](things ...K) map[K]Look {
	looks := map[K]Look{}
	for _, thing := range things {
		if _, known := looks[thing]; !known {
			i := len(looks)
			looks[thing] = Look{
				lookColors[i%len(lookColors)], autoMarkers[i%len(autoMarkers)], lookLines[i%len(lookLines)],
			}
		}
	}
	return looks
}
