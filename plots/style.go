package plots

import (
	"cmp"
	"fmt"
	"image/color"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Style is a venue's figure style. Widths are in inches, other lengths in points. A number that is 0 defaults to
// ICML's, so that Style{Width: 4} is ICML, four inches wide.
type Style struct {
	Name  string
	Width float64 // of the whole figure; see Column and Text

	ColumnWidth float64 // of one column of the venue's page
	TextWidth   float64 // of the page's text

	// Body is the size of the venue's running text. Axis labels and panel titles are 1 pt smaller, so that the figure
	// is not louder than the text around it; ticks, legend and caption 2 pt.
	Body      float64
	Font      Font      // "" is Latin Modern
	Lettering Lettering // "" is text in PDF and EPS, outlines in SVG

	Line     float64 // width of a curve
	Hairline float64 // width of frames, ticks, error bars and references
	Marker   float64 // radius of a marker

	Aspect  float64  // height of a panel over its width; the default is 1/golden ratio
	DPI     int      // dots per inch of a PNG
	Palette []string // colours "#RRGGBB" of the curves, in their order
}

// Lettering is whether text is stored as text, which can be searched and edited, or as outlines, which look the same
// everywhere.
type Lettering string

// The letterings.
const (
	AutoText Lettering = ""         // text in PDF and EPS, which embed the fonts, outlines in SVG
	LiveText Lettering = "text"     // text in SVG, too: in a font of the machine that shows it
	Outlines Lettering = "outlines" // outlines in all formats
)

// palette has the colours of Okabe and Ito ("Color Universal Design", 2008), which the colour-blind can tell apart,
// without the yellow. Neighbours differ in lightness: luminance 87, 162, 0, 119, 158, 106, 151 of 255.
var palette = []string{"#0072B2", "#E69F00", "#000000", "#D55E00", "#56B4E9", "#009E73", "#CC79A7"}

// Dashes and markers by the index of a curve. Their numbers are coprime with the palette's, so that 35 curves differ.
var (
	autoLines   = []Line{Solid, Dashed, DashDot, LongDash, Dotted}
	autoMarkers = []Marker{Circle, Square, TriangleUp, Diamond, TriangleDown, Pentagon, Hexagon}
	hatches     = []float64{45, 135, 15, 105, 75, 165}
)

func (s Style) filled() Style {
	setDefault(&s.TextWidth, 6.75)
	setDefault(&s.ColumnWidth, 3.25)
	setDefault(&s.Width, s.TextWidth)
	setDefault(&s.Body, 10)
	setDefault(&s.Line, 1.1)
	setDefault(&s.Hairline, 0.6)
	setDefault(&s.Marker, 2.2)
	setDefault(&s.Aspect, 2/(1+math.Sqrt(5)))
	setDefault(&s.DPI, 300)
	if len(s.Palette) == 0 {
		s.Palette = palette
	}
	return s
}

func setDefault[T int | float64](v *T, value T) {
	if *v == 0 {
		*v = value
	}
}

func (s Style) validate() error {
	if err := cmp.Or(known("style: font", s.Font, LatinModern, Times),
		known("style: lettering", s.Lettering, AutoText, LiveText, Outlines)); err != nil {
		return err
	}
	for _, v := range []struct {
		name          string
		got, min, max float64
	}{
		{"Width", s.filled().Width, 1, 20},
		{"Body", s.filled().Body, 4, 40},
		{"Line", s.filled().Line, 0.05, 10},
		{"Hairline", s.filled().Hairline, 0.05, 10},
		{"Marker", s.filled().Marker, 0.1, 20},
		{"Aspect", s.filled().Aspect, 0.05, 5},
		{"DPI", float64(s.filled().DPI), 30, 600},
	} {
		if !(v.min <= v.got && v.got <= v.max) { // NaN too
			return fmt.Errorf("style: %s is %g: expected %g to %g, or 0 for the default", v.name, v.got, v.min, v.max)
		}
	}
	for _, c := range s.Palette {
		if err := checkColor(c); err != nil || c == "" {
			return fmt.Errorf("style: palette: colour %q: expected \"#RRGGBB\"", c)
		}
	}
	return nil
}

var hexColor = regexp.MustCompile(`^#[0-9A-Fa-f]{6}$`)

func checkColor(c string) error {
	if c == "" || hexColor.MatchString(c) {
		return nil
	}
	return fmt.Errorf("colour %q: expected \"#RRGGBB\"", c)
}

func rgb(hex string) color.RGBA {
	v, _ := strconv.ParseUint(hex[1:], 16, 32)
	return color.RGBA{R: uint8(v >> 16), G: uint8(v >> 8), B: uint8(v), A: 255}
}

func tint(c color.RGBA, share float64) color.RGBA {
	mix := func(v uint8) uint8 { return uint8(math.Round(255 - share*float64(255-v))) }
	return color.RGBA{R: mix(c.R), G: mix(c.G), B: mix(c.B), A: 255}
}

var (
	ink  = color.RGBA{R: 0x22, G: 0x22, B: 0x22, A: 255} // frames and text
	grid = color.RGBA{R: 0xE6, G: 0xE6, B: 0xE6, A: 255}
	grey = color.RGBA{R: 0x77, G: 0x77, B: 0x77, A: 255} // references
	noOp = color.RGBA{R: 0x8C, G: 0x8C, B: 0x8C, A: 255} // the outline of what stands for no connection
)

type look struct {
	color  color.RGBA
	line   Line
	marker Marker
	thin   bool
	faint  bool
	hatch  float64 // degrees of its band's lines if there is no transparency
}

// looks gives every label its look, in order of appearance. Curves and references are counted separately.
type looks struct {
	palette                []string
	byKey                  map[string]int
	curves, reference, ops int

	colors map[string]string // by key; see assign
}

// assign chooses the curves' colours: different ones within a panel, and one meaning per colour in the figure as far as
// the palette goes. A colour that is asked for is kept.
func (l *looks) assign(panels [][]Panel) {
	l.colors = map[string]string{}
	var auto []string // keys in their order
	used := map[string]map[string]bool{}
	where := map[string][]string{} // the panels of a key
	for r, row := range panels {
		for c, p := range row {
			place := fmt.Sprint(r, c)
			used[place] = map[string]bool{}
			for i, s := range p.Series {
				key := s.key(fmt.Sprint(place, i))
				switch {
				case s.Reference:
					continue
				case s.color() != "":
					used[place][strings.ToUpper(s.color())] = true
					continue
				case len(where[key]) == 0:
					auto = append(auto, key)
				}
				where[key] = append(where[key], place)
			}
		}
	}
	for _, key := range auto {
		color := l.leastUsed(used, where[key])
		l.colors[key] = color
		for _, place := range where[key] {
			used[place][color] = true
		}
	}
}

// leastUsed is the colour that fewest of the given panels use, then fewest of all panels, then the palette's first.
func (l *looks) leastUsed(used map[string]map[string]bool, places []string) string {
	best, least := "", math.MaxInt
	for _, color := range l.palette {
		color = strings.ToUpper(color)
		cost := 0
		for _, colors := range used {
			if colors[color] {
				cost++
			}
		}
		for _, place := range places {
			if used[place][color] {
				cost += len(used) + 1
			}
		}
		if cost < least {
			best, least = color, cost
		}
	}
	return best
}

func (l *looks) forSeries(s Series, place string) look {
	key, counter := s.key(place), &l.curves
	if s.Reference {
		counter = &l.reference
	}
	n := l.index(key, counter)
	// A colour that comes again has another marker.
	again := n / len(l.palette)
	v := look{
		color:  rgb(l.palette[n%len(l.palette)]),
		line:   autoLines[n%len(autoLines)],
		marker: autoMarkers[(n+again)%len(autoMarkers)],
		hatch:  hatches[n%len(hatches)],
	}
	if s.Reference {
		v = look{color: grey, line: referenceLines[n%len(referenceLines)], marker: NoMarker, thin: true}
		if len(s.X) == 1 && !s.spans() { // a single point has no line to be seen by
			v.line, v.marker = NoLine, Diamond
		}
	}
	if color := cmp.Or(s.Color, s.color(), l.colors[key]); color != "" && (s.Color != "" || !s.Reference) {
		v.color = rgb(color)
	}
	if named, variant, ok := lookOf(s.Label); ok && !s.Reference {
		v.line, v.marker = named.Line, named.Marker
		if variant {
			dashed := slices.DeleteFunc(slices.Clone(autoLines), func(l Line) bool { return l == named.Line })
			v.line, v.marker = dashed[n%len(dashed)], autoMarkers[(n+again)%len(autoMarkers)]
		}
	}
	if s.Faint {
		v.color, v.line, v.marker, v.faint = tint(v.color, edgeTint), Solid, NoMarker, true
	}
	if s.Line != AutoLine {
		v.line = s.Line
	}
	if s.Marker != AutoMarker {
		v.marker = s.Marker
	}
	return v
}

func (s Series) color() string {
	if s.Reference {
		return s.Color
	}
	named, _, _ := lookOf(s.Label)
	return cmp.Or(s.Color, named.Color)
}

var referenceLines = []Line{Dashed, Dotted, DashDot, LongDash}

// key identifies series that look the same, by their label, or by place if there is none.
func (s Series) key(place string) string {
	key := fmt.Sprint(s.Reference, " ", s.Label)
	if s.Label == "" {
		key += place
	}
	return key
}

// index numbers keys in the order of their first use.
func (l *looks) index(key string, counter *int) int {
	n, ok := l.byKey[key]
	if !ok {
		n, l.byKey[key] = *counter, *counter
		*counter++
	}
	return n
}

// op returns an operation's colour. After the last colour of the palette come tints.
func (l *looks) op(o Op) color.RGBA {
	switch {
	case o.Color != "":
		return rgb(o.Color)
	case o.None:
		return noOp
	}
	n := l.index("op "+o.Label, &l.ops)
	return tint(rgb(l.palette[n%len(l.palette)]), math.Pow(0.5, float64(n/len(l.palette))))
}

// The venues' styles, by their author kits. ICML, AAAI and CVPR have two columns. JMLR's text is 11 pt, the others' 10
// pt. JMLR and TMLR use Computer Modern, the others Times.
var (
	ICML    = venue("ICML", 3.25, 6.75, 10).inTimes()
	ICLR    = venue("ICLR", 5.5, 5.5, 10).inTimes()
	NeurIPS = venue("NeurIPS", 5.5, 5.5, 10).inTimes()
	JMLR    = venue("JMLR", 6, 6, 11)
	TMLR    = venue("TMLR", 6.5, 6.5, 10)
	AAAI    = venue("AAAI", 3.3, 7, 10).inTimes()
	CVPR    = venue("CVPR", 3.25, 6.875, 10).inTimes()
)

func venue(name string, column, text, body float64) Style {
	return Style{Name: name, Width: text, ColumnWidth: column, TextWidth: text, Body: body}.filled()
}

func (s Style) inTimes() Style {
	s.Font = Times
	return s
}

var venues = func() map[string]Style {
	all := map[string]Style{}
	for _, s := range []Style{ICML, ICLR, NeurIPS, JMLR, TMLR, AAAI, CVPR} {
		all[strings.ToLower(s.Name)] = s
	}
	return all
}()

// Venues returns the names that StyleNamed knows, in lower case.
func Venues() []string { return slices.Sorted(maps.Keys(venues)) }

// Column returns the style at the width of one column.
func (s Style) Column() Style {
	s = s.filled()
	s.Width = s.ColumnWidth
	return s
}

// Text returns the style at the width of the page's text.
func (s Style) Text() Style {
	s = s.filled()
	s.Width = s.TextWidth
	return s
}

// StyleNamed returns a style by name: a venue, with "/column" or "/text" for its width; "width=3.25in" (or cm, mm, pt);
// "height=0.6", a panel's height over its width; or several, such as "icml/column,height=0.8".
func StyleNamed(name string) (Style, error) {
	var s Style
	for _, part := range strings.Split(strings.ToLower(name), ",") {
		var err error
		key, value, set := strings.Cut(part, "=")
		switch {
		case !set:
			err = s.setVenue(part)
		case key == "width":
			s.Width, err = inches(value)
		case key == "height":
			s.Aspect, err = strconv.ParseFloat(value, 64)
		default:
			err = fmt.Errorf("expected width=3.25in or height=0.6")
		}
		if err != nil {
			return Style{}, fmt.Errorf("plots: style %q: %q: %w", name, part, err)
		}
	}
	s = s.filled()
	return s, s.validate()
}

// setVenue sets a style such as "icml/column"; what is set already stays.
func (s *Style) setVenue(name string) error {
	venue, width, _ := strings.Cut(name, "/")
	v, ok := venues[venue]
	switch {
	case ok && width == "column":
		v = v.Column()
	case !ok || width != "" && width != "text":
		return fmt.Errorf("expected one of %s, with /column or /text, or width=3.25in",
			strings.Join(Venues(), ", "))
	}
	setDefault(&s.Width, v.Width)
	setDefault(&s.Aspect, v.Aspect)
	v.Width, v.Aspect = s.Width, s.Aspect
	*s = v
	return nil
}

// perInch are the units of lengths.
var perInch = map[string]float64{"in": 1, "cm": 2.54, "mm": 25.4, "pt": 72.27} // TeX's points

func inches(length string) (float64, error) {
	number := strings.TrimRight(length, letters)
	v, err := strconv.ParseFloat(number, 64)
	per, ok := perInch[length[len(number):]]
	if err != nil || !ok {
		return 0, fmt.Errorf("expected a number with a unit: in, cm, mm or pt")
	}
	return v / per, nil
}
