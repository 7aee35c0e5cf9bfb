package plots

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot/vg"
)

// axis is an Axis with everything decided: its ends, its ticks and its label.
type axis struct {
	scale    Scale
	min, max float64
	ticks    []tick
	label    string
}

type tick struct {
	value  float64
	label  textLine
	major  bool
	hidden bool // its label would touch the one before
}

func newAxis(a Axis, values []float64, font Font, size vg.Length) axis {
	x := axis{scale: a.Scale, min: a.Min, max: a.Max, label: a.Label}
	if a.Min == 0 && a.Max == 0 {
		x.min, x.max = ends(values, a.Scale)
	}
	ticks := a.Ticks
	if len(ticks) == 0 {
		ticks = autoTicks(x)
		x.label = shiftedLabel(a.Label, offset(ticks))
	}
	for _, t := range ticks {
		if side(x.norm(t.Value)) != 0 {
			continue
		}
		x.ticks = append(x.ticks, tick{value: t.Value, label: font.line(t.Label, size), major: t.Label != ""})
	}
	slices.SortStableFunc(x.ticks, func(a, b tick) int { return cmp.Compare(a.value, b.value) })
	return x
}

// categorical reports whether an axis has names instead of numbers.
func (a Axis) categorical() bool {
	return slices.ContainsFunc(a.Ticks, func(t Tick) bool {
		_, err := strconv.ParseFloat(strings.ReplaceAll(strings.TrimSuffix(t.Label, " %"), "−", "-"), 64)
		return t.Label != "" && err != nil && !strings.HasPrefix(t.Label, "$")
	})
}

// transform maps a value to where the axis is even: log v on a log axis.
func (s Scale) transform(v float64) float64 {
	switch s {
	case Log2:
		return math.Log2(v)
	case Log10:
		return math.Log10(v)
	}
	return v
}

func (s Scale) inverse(v float64) float64 {
	switch s {
	case Log2:
		return math.Exp2(v)
	case Log10:
		return math.Pow(10, v)
	}
	return v
}

func (a axis) labelWidth() (w vg.Length) {
	for _, t := range a.ticks {
		w = max(w, t.label.width)
	}
	return w
}

// norm maps v to 0 at the start of the axis and 1 at its end. It halves everything, because max − min may overflow.
func (a axis) norm(v float64) float64 {
	t, low, high := a.scale.transform(v)/2, a.scale.transform(a.min)/2, a.scale.transform(a.max)/2
	if high <= low { // ends closer than a float64 can tell
		return 0.5
	}
	return max(-far, min(far, (t-low)/(high-low)))
}

// far is how far outside the axis a value may be placed. Beyond that, clipping would overflow.
const far = 1e6

// margin is what automatic ends leave free on both sides, as a share of the range.
const margin = 0.05

// ends returns automatic ends; see Axis.Min.
func ends(values []float64, scale Scale) (low, high float64) {
	if len(values) == 0 {
		return scale.inverse(0), scale.inverse(1)
	}
	low, high = math.Inf(1), math.Inf(-1)
	for _, v := range values {
		v = scale.transform(v)
		low, high = min(low, v), max(high, v)
	}
	fromZero := scale == Linear && 0 <= low && low < 0.35*high
	if high-low < max(1e-9*max(math.Abs(low), math.Abs(high)), 1e-290) { // one value
		pad := max(0.5*math.Abs(high), 1e-290)
		if scale != Linear || high == 0 {
			pad = 0.5
		}
		low, high = low-pad, high+pad
	}
	pad := margin * 2 * (high/2 - low/2)
	low, high = low-pad, high+pad
	if fromZero {
		low = 0
	}
	return clampFinite(scale.inverse(low), scale), clampFinite(scale.inverse(high), scale)
}

func clampFinite(v float64, scale Scale) float64 {
	least := -math.MaxFloat64
	if scale != Linear {
		least = math.SmallestNonzeroFloat64
	}
	return max(least, min(math.MaxFloat64, v))
}

func autoTicks(a axis) []Tick {
	if a.scale != Linear {
		if ticks := fineTicks(a); ticks != nil {
			return ticks
		}
		if ticks := powerTicks(a); ticks != nil {
			return ticks
		}
	}
	return linearTicks(a.min, a.max)
}

// linearTicks returns four to eight multiples of 1, 2 or 5 times a power of ten.
func linearTicks(low, high float64) []Tick {
	step := niceStep((high/2 - low/2) / 2.5)
	first, last := math.Ceil(low/step-1e-9), math.Floor(high/step+1e-9)
	from := first // what the labels count from, in steps
	if !tooFine(max(math.Abs(low), math.Abs(high)), step) {
		from = 0
	}
	var ticks []Tick
	for i := 0.0; i <= min(last-first, 20); i++ {
		ticks = append(ticks, Tick{(first + i) * step, formatTick((first+i-from)*step, step)})
	}
	return ticks
}

// tooFine reports whether tick labels would need too many digits. They then count from the first tick, and the axis
// label gives the offset.
func tooFine(size, step float64) bool {
	digits := floorLog10(size) - floorLog10(step)
	return digits >= 7 || digits >= 4 && !plainDigits(size, step)
}

// plainDigits reports whether numbers up to size need no power of ten at this step.
func plainDigits(size, step float64) bool {
	last := floorLog10(step) // the power of ten of the last digit
	return -4 <= last && last <= 4 || -6 <= last && last <= 4 && size >= 0.1
}

// offset is the value that tick labels count from.
func offset(ticks []Tick) float64 {
	if len(ticks) > 1 && ticks[0].Label == "0" {
		return ticks[0].Value
	}
	return 0
}

func shiftedLabel(label string, offset float64) string {
	if offset == 0 {
		return label
	}
	text := strconv.FormatFloat(math.Abs(offset), 'g', 12, 64)
	if m, exponent, ok := strings.Cut(text, "e"); ok {
		n, _ := strconv.Atoi(exponent) // it is one
		text = fmt.Sprintf("%s{·}10^{%d}", m, n)
	}
	sign := "−"
	if offset < 0 {
		sign = "+"
	}
	if label == "" {
		label = "value"
	}
	return label + " $" + sign + `\,` + text + "$" // a formula is not broken
}

// niceStep is the largest round number up to raw·√2.
func niceStep(raw float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(raw)))
	step := power
	for _, m := range []float64{2, 5, 10} {
		if m*power <= raw*math.Sqrt2 {
			step = m * power
		}
	}
	return step
}

// formatTick writes v with the digits that step needs, and very large or small numbers as m·10ᵉ.
func formatTick(v, step float64) string {
	if v == 0 {
		return "0"
	}
	exponent := floorLog10(math.Abs(v))
	last := floorLog10(step) // the power of ten of the last digit
	if !plainDigits(math.Abs(v), step) {
		m := strconv.FormatFloat(v/math.Pow(10, float64(exponent)), 'f', max(0, exponent-last), 64)
		return fmt.Sprintf("$%s{·}10^{%d}$", m, exponent)
	}
	return strings.Replace(strconv.FormatFloat(v, 'f', max(0, -last), 64), "-", "−", 1)
}

func floorLog10(v float64) int { return int(math.Floor(math.Log10(v) + 1e-9)) }

// fineTicks returns 1, 2 and 5 times powers of ten, with minor ticks between them. It returns nil for axes of two
// decades or more, and if fewer than three of them are on the axis.
func fineTicks(a axis) []Tick {
	low, high := a.scale.transform(a.min), a.scale.transform(a.max)
	if a.scale != Log10 || high-low >= 2-1e-9 {
		return nil
	}
	var ticks []Tick
	labelled := 0
	for k := math.Floor(low + 1e-9); k <= math.Floor(high+1e-9); k++ {
		power := math.Pow(10, k)
		for m := 1.0; m < 10; m++ {
			t := Tick{Value: m * power}
			if side(a.norm(t.Value)) != 0 {
				continue
			}
			if m == 1 || m == 2 || m == 5 {
				t.Label = formatTick(t.Value, power)
				labelled++
			}
			ticks = append(ticks, t)
		}
	}
	if labelled < 3 {
		return nil
	}
	return ticks
}

// powerTicks returns powers of the base, every n-th if there are many, with minor ticks between powers of ten. It
// returns nil if fewer than two are on the axis: linear ticks then say more.
func powerTicks(a axis) []Tick {
	low := math.Ceil(a.scale.transform(a.min)-1e-9) + 0 // −0 becomes 0
	high := math.Floor(a.scale.transform(a.max) + 1e-9)
	if high-low < 1 {
		return nil
	}
	stride := math.Ceil((high - low + 1) / 9)
	var ticks []Tick
	for k := low; k <= high; k += stride {
		ticks = append(ticks, Tick{a.scale.inverse(k), powerLabel(a.scale, k)})
	}
	if a.scale == Log10 && stride == 1 {
		for k := low - 1; k <= high; k++ {
			for m := 2.0; m < 10; m++ {
				ticks = append(ticks, Tick{Value: m * math.Pow(10, k)})
			}
		}
	}
	return ticks
}

func powerLabel(scale Scale, k float64) string {
	switch {
	case scale == Log2 && 0 <= k && k <= 16:
		return strconv.FormatFloat(math.Exp2(k), 'f', 0, 64)
	case scale == Log2:
		return fmt.Sprintf("$2^{%g}$", k)
	}
	return fmt.Sprintf("$10^{%g}$", k)
}

// thin hides labels so that neighbours keep a gap. extent is a label's size along the axis.
func (a *axis) thin(length, gap vg.Length, extent func(textLine) vg.Length) {
	var majors []*tick
	for i := range a.ticks {
		if a.ticks[i].major {
			majors = append(majors, &a.ticks[i])
		}
	}
	fits := func(stride int) bool {
		end := vg.Length(math.Inf(-1))
		for n := 0; n < len(majors); n += stride {
			at, half := length*vg.Length(a.norm(majors[n].value)), extent(majors[n].label)/2
			if at-half < end+gap {
				return false
			}
			end = at + half
		}
		return true
	}
	stride := 1
	for !fits(stride) { // a single label always does
		stride++
	}
	for n, t := range majors {
		t.hidden = n%stride != 0
	}
}
