package plots

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
)

// Figure is a picture as plain data: it can be compared, stored as JSON and
// drawn again. Same figure, same bytes, in every format.
//
// All texts may contain formulas between dollar signs: "$θ_t$", "$10^{-3}$", "$\|θ_α − θ_{α+Δα}\|_2/Δα$".
type Figure struct {
	Name    string            // stem of the file names and id, "oymak2021-figure2"
	Title   string            // above the panels; may be empty
	Caption string            // below them, wrapped to the figure's width; may be empty
	Style   Style             // zero value: ICML at text width
	Panels  [][]Panel         // rows of panels; where they would be too narrow (axes: under 100 pt), rows are broken
	Meta    map[string]string `json:",omitempty"` // goes into the file's metadata: "title", "params" (hash), "scale", …
}

// Panel is one pair of axes and what is drawn between them, or a Cell, a Simplex or a Table. A row of these only is
// shared out evenly over the figure's width and as high as they need; beside axes they take the place of a frame.
type Panel struct {
	Title  string
	X, Y   Axis
	Series []Series
	Legend Legend
	Cell   *Cell  `json:",omitempty"`
	Table  *Table `json:",omitempty"`
	Heat   *Heat  `json:",omitempty"` // behind the curves

	Simplex *Simplex `json:",omitempty"`
}

// Axis describes one side of a panel.
type Axis struct {
	Label string
	Scale Scale

	// Min and Max are the ends of the axis; both 0: from the data, with a small margin. A linear axis whose data are
	// positive and come near 0 then starts at 0. What lies outside is cut off, with a triangle at the frame where it is
	// not a reference; the caption then says so.
	Min, Max float64

	// Ticks are the marks; empty: round numbers, or powers on a log axis. A tick without a label is a minor one. Labels
	// that would touch are left out, their marks stay.
	Ticks []Tick
}

// Tick is one mark on an axis.
type Tick struct {
	Value float64
	Label string
}

// Scale says how an axis maps values to places.
type Scale string

// The scales. A log scale needs positive values.
const (
	Linear Scale = ""
	Log2   Scale = "log2"
	Log10  Scale = "log10"
)

// Series is one curve: points, the line through them in their order, and an interval at each.
//
// Curves with the same label look the same in all panels of a figure. A
// labelled series without points is listed in the legend as "(not run)".
type Series struct {
	Label string
	X, Y  []float64

	// Lo and Hi bound an interval at each point, drawn as Interval says; both
	// empty: none. Where Lo[i] = Hi[i] the point has none.
	Lo, Hi   []float64
	Interval Interval

	// Runs are values of single runs at every point, whose mean Y is: thin lines of the
	// curve's colour behind it. The caption says so.
	Runs [][]float64 `json:",omitempty"`

	// Reference marks what is not ours: a paper's own curve, number or bound. It is drawn thin, grey and dashed. A
	// reference of one number goes right across the panel; see HLine and VLine.
	Reference bool

	// Hollow says which points are drawn hollow, for instance those computed
	// at a smaller scale; empty: none. Legend.Hollow explains them.
	Hollow []bool

	// Faint marks one of several runs whose mean is another series with the same label: a thin, lighter line of that
	// curve's colour, behind all others, without markers and not in the legend.
	Faint bool `json:",omitempty"`

	// Entry is what the legend says instead of Label; NoEntry leaves the series out
	// of it, where another one, or the caption, explains it.
	Entry string `json:",omitempty"`

	// What is empty here is chosen so that curves differ in colour, dash and
	// marker, and can be told apart in grey too. Color is "#RRGGBB".
	Color  string
	Line   Line
	Marker Marker
}

// NoEntry is the [Series.Entry] of what no legend lists.
const NoEntry = "-"

// Interval says how Lo and Hi of a series are drawn.
type Interval string

// The intervals: a transparent band behind all lines, or a bar at each point.
const (
	Bands     Interval = ""
	ErrorBars Interval = "bars" // curves with bars stand a little beside each other
)

// Line is the dash pattern of a curve.
type Line string

// The dash patterns; AutoLine gives each curve its own.
const (
	AutoLine Line = ""
	Solid    Line = "solid"
	Dashed   Line = "dashed"
	Dotted   Line = "dotted"
	DashDot  Line = "dashdot"
	LongDash Line = "longdash"
	NoLine   Line = "none"
)

// Marker is the sign at a curve's points.
type Marker string

// The markers. AutoMarker gives each curve its own, and thins out many points.
const (
	AutoMarker   Marker = ""
	Circle       Marker = "circle"
	Square       Marker = "square"
	TriangleUp   Marker = "triangle"
	Diamond      Marker = "diamond"
	TriangleDown Marker = "triangledown"
	Pentagon     Marker = "pentagon"
	Hexagon      Marker = "hexagon"
	NoMarker     Marker = "none"
)

// Legend says where the curves of a panel are explained.
type Legend struct {
	Position LegendPosition
	Hollow   string // what a hollow point means, "computed at quick scale"; empty: not explained
}

// LegendPosition is where a legend stands.
type LegendPosition string

// The positions. LegendAuto is LegendInside for a single panel. Several panels share one legend below, unless it would
// have more than six entries: then rows that explain the same share one, and other panels have their own. LegendInside
// looks for a place without data, else it is LegendBelow. A shared legend goes beside a last row that is shorter than
// the others. Operations of cells are explained below.
const (
	LegendAuto   LegendPosition = ""
	LegendInside LegendPosition = "inside"
	LegendBelow  LegendPosition = "below"
	LegendNone   LegendPosition = "none"
)

// FewestForBand is the least number of runs for which [Band] draws a band. Fewer runs are drawn themselves.
const FewestForBand = 5

// Band is a curve with a transparent band, from values with an interval [lo, hi]; NaN bounds mean none. Means of fewer
// than [FewestForBand] runs have these as thin lines instead, if they have a method Runs.
func Band[V interface{ Bounds() (y, lo, hi float64) }](label string, x []float64, values []V) Series {
	s := withBounds(label, x, values)
	if s.Runs = fewRuns(values); s.Runs != nil {
		s.Lo, s.Hi = nil, nil
	}
	return s
}

func withBounds[V interface{ Bounds() (y, lo, hi float64) }](label string, x []float64, values []V) Series {
	s := Series{Label: label, X: x}
	none := true
	for _, v := range values {
		y, lo, hi := v.Bounds()
		if math.IsNaN(lo) || math.IsNaN(hi) {
			lo, hi = y, y
		} else {
			none = false
		}
		s.Y, s.Lo, s.Hi = append(s.Y, y), append(s.Lo, lo), append(s.Hi, hi)
	}
	if none {
		s.Lo, s.Hi = nil, nil
	}
	return s
}

// fewRuns returns the single runs behind values if they are too few for a band, else nil.
func fewRuns[V any](values []V) [][]float64 {
	var runs [][]float64
	for i, v := range values {
		of, _ := any(v).(interface{ Runs() []float64 })
		if of == nil {
			return nil
		}
		all := of.Runs()
		if len(all) < 2 || len(all) >= FewestForBand || i > 0 && len(all) != len(runs) {
			return nil
		}
		if i == 0 {
			runs = make([][]float64, len(all))
		}
		for n, y := range all {
			runs[n] = append(runs[n], y)
		}
	}
	return runs
}

// withRuns adds a faint curve for each single run. On a log axis, values that are not positive are left out.
func (p Panel) withRuns() Panel {
	var all []Series
	for _, s := range p.Series {
		for _, run := range s.Runs {
			one := Series{Label: s.Label, Color: s.Color, Faint: true}
			for i, y := range run {
				if p.Y.Scale == Linear || y > 0 {
					one.X, one.Y = append(one.X, s.X[i]), append(one.Y, y)
				}
			}
			all = append(all, one)
		}
		s.Runs = nil
		all = append(all, s)
	}
	p.Series = all
	return p
}

// Bars is Band with an error bar at each point.
func Bars[V interface{ Bounds() (y, lo, hi float64) }](label string, x []float64, values []V) Series {
	s := withBounds(label, x, values)
	s.Interval = ErrorBars
	return s
}

// HLine is a reference line across the panel at height y.
func HLine(label string, y float64) Series {
	return Series{Label: label, Y: []float64{y}, Reference: true}
}

// VLine is a reference line across the panel at x.
func VLine(label string, x float64) Series {
	return Series{Label: label, X: []float64{x}, Reference: true}
}

func (s Series) spans() bool {
	return s.Reference && len(s.X)+len(s.Y) == 1 && len(s.Lo)+len(s.Hi)+len(s.Hollow) == 0
}

// Validate returns an error if the figure cannot be drawn: it names panel and series, and says what was found and
// expected. NaN is always a mistake: leave out points that were not computed.
func (f Figure) Validate() error {
	if err := f.validate(); err != nil {
		return fmt.Errorf("plots: figure %q: %w", f.Name, err)
	}
	return nil
}

func (f Figure) validate() error {
	if f.Name == "" || strings.ContainsAny(f.Name, `/\`) {
		return fmt.Errorf("name %q: expected the stem of a file name, such as \"li2021-figure1\"", f.Name)
	}
	if err := cmp.Or(f.Style.validate(), checkText(f.Title), checkText(f.Caption)); err != nil {
		return err
	}
	for key := range f.Meta {
		if !metaKey.MatchString(key) {
			return fmt.Errorf("meta: key %q: expected up to 79 letters, digits, '.', '_' or '-'", key)
		}
	}
	panels := 0
	for r, row := range f.Panels {
		for c, p := range row {
			panels++
			if err := p.validate(); err != nil {
				return fmt.Errorf("panel [%d][%d] %q: %w", r, c, p.Title, err)
			}
		}
	}
	if panels == 0 {
		return errors.New("it has no panels: expected at least one in Panels")
	}
	return nil
}

// metaKey is what the metadata of all formats takes as a key.
var metaKey = regexp.MustCompile(`^[A-Za-z0-9._-]{1,79}$`)

func (p Panel) validate() error {
	if err := cmp.Or(checkText(p.Title), checkText(p.Legend.Hollow),
		known("legend position", p.Legend.Position, LegendAuto, LegendInside, LegendBelow, LegendNone)); err != nil {
		return err
	}
	if p.Cell != nil || p.Table != nil || p.Simplex != nil {
		return p.validateBox()
	}
	for i, a := range []Axis{p.X, p.Y} {
		if err := a.validate(); err != nil {
			return fmt.Errorf("%c axis: %w", "xy"[i], err)
		}
	}
	if p.Heat != nil {
		if err := p.Heat.validate(p.X.Scale, p.Y.Scale); err != nil {
			return fmt.Errorf("heat map: %w", err)
		}
	}
	for i, s := range p.Series {
		if err := s.validate(p.X.Scale, p.Y.Scale); err != nil {
			return fmt.Errorf("series %d %q: %w", i, s.Label, err)
		}
	}
	return nil
}

func (p Panel) validateBox() error {
	switch {
	case p.Cell != nil && (p.Table != nil || p.Simplex != nil) || p.Table != nil && p.Simplex != nil:
		return errors.New("it has more than one of Cell, Table and Simplex: expected one of them; use two panels")
	case p.Heat != nil || len(p.Series) > 0 || p.X.Label != "" || p.Y.Label != "" || p.Legend.Hollow != "":
		return errors.New("it has a Cell, a Table or a Simplex and also a heat map, series or axis labels: " +
			"expected one of them; use two panels")
	case p.Cell != nil:
		return p.Cell.validate()
	case p.Simplex != nil:
		return p.Simplex.validate()
	}
	return p.Table.validate()
}

func (a Axis) validate() error {
	if err := cmp.Or(checkText(a.Label), known("scale", a.Scale, Linear, Log2, Log10)); err != nil {
		return err
	}
	if a.Min != 0 || a.Max != 0 {
		if err := finite("ends", []float64{a.Min, a.Max}, a.Scale); err != nil {
			return err
		}
		if a.Min >= a.Max {
			return fmt.Errorf("ends %g … %g: expected Min < Max, or both 0 for automatic ends", a.Min, a.Max)
		}
	}
	for i, t := range a.Ticks {
		err := cmp.Or(finite("value", []float64{t.Value}, a.Scale), checkText(t.Label))
		if err != nil {
			return fmt.Errorf("tick %d: %w", i, err)
		}
	}
	return nil
}

func (s Series) validate(x, y Scale) error {
	return cmp.Or(
		checkText(s.Label),
		checkText(s.Entry),
		checkColor(s.Color),
		known("line", s.Line, AutoLine, Solid, Dashed, Dotted, DashDot, LongDash, NoLine),
		known("marker", s.Marker, AutoMarker, Circle, Square, TriangleUp, Diamond, TriangleDown, Pentagon, Hexagon,
			NoMarker),
		known("interval", s.Interval, Bands, ErrorBars),
		s.validateLengths(),
		finite("X", s.X, x),
		finite("Y", s.Y, y),
		finite("Lo", s.Lo, y),
		finite("Hi", s.Hi, y),
		s.validateRuns(),
		s.validateIntervals(),
	)
}

func (s Series) validateLengths() error {
	if s.spans() {
		return nil
	}
	for _, v := range []struct {
		name     string
		n        int
		optional bool
	}{
		{"Y", len(s.Y), false},
		{"Lo", len(s.Lo), len(s.Hi) == 0},
		{"Hi", len(s.Hi), len(s.Lo) == 0},
		{"Hollow", len(s.Hollow), true},
	} {
		if v.n != len(s.X) && (v.n != 0 || !v.optional) {
			return fmt.Errorf("%s has %d values and X has %d: expected as many", v.name, v.n, len(s.X))
		}
	}
	return nil
}

func (s Series) validateRuns() error {
	for i, run := range s.Runs {
		if len(run) != len(s.X) {
			return fmt.Errorf("run %d has %d values and X has %d: expected as many", i, len(run), len(s.X))
		}
		if err := finite(fmt.Sprintf("Runs[%d]", i), run, Linear); err != nil {
			return err
		}
	}
	return nil
}

func (s Series) validateIntervals() error {
	for i := range min(len(s.Lo), len(s.Hi)) {
		if s.Lo[i] > s.Hi[i] {
			return fmt.Errorf("interval %d goes from %g to %g: expected Lo ≤ Hi", i, s.Lo[i], s.Hi[i])
		}
	}
	return nil
}

// finite returns an error for the first value that an axis of this scale cannot show.
func finite(name string, values []float64, scale Scale) error {
	for i, v := range values {
		switch {
		case math.IsNaN(v) || math.IsInf(v, 0):
			return fmt.Errorf("%s[%d] is %g: expected a finite number; leave out points that were not computed", name,
				i, v)
		case scale != Linear && v < 1e-300: // below, logarithms lose their digits
			return fmt.Errorf("%s[%d] is %g: expected a positive number on a %s axis", name, i, v, scale)
		}
	}
	return nil
}

func known[T ~string](what string, value T, all ...T) error {
	if slices.Contains(all, value) {
		return nil
	}
	return fmt.Errorf("%s %q: expected one of %q", what, value, all)
}
