package plots

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

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
