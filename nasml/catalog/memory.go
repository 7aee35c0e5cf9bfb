package catalog

import (
	"fmt"
	"maps"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/internal/memory"
)

// ForceEnv lets a run that needs more memory than there is begin all the same.
const ForceEnv = "NASML_FORCE"

// Fits is a *UsageError if parameters of an entry need more memory than the machine has. It names the parameter to
// blame and a value that fits. What no preset exceeds is not judged: the presets are known to fit.
//
// The forecast is that of the parameters, if they have a method Memory() float64 (bytes), and in any case that of the
// largest array: a whole number above every preset's, or a ratio, is taken for the side of an array of float64 whose
// other side is the largest of the other sides. Numbers of repetitions have a series, numbers of seeds have records.
func Fits(id string, params any) error {
	e, ok := entries[id]
	if Option[bool](params, "StoredOnly") {
		return nil
	}
	if has := memory.Has(); ok && os.Getenv(ForceEnv) == "" && !math.IsInf(has, 1) {
		if need := e.need(params, has); need.bytes > has {
			return Usagef("%s: it needs about %s of memory (forecast), and this machine has %s: %s is %s, about %s "+
				"would fit; --force or %s=1 tries it all the same", id, gigabytes(need.bytes), gigabytes(has),
				need.field, short(need.value), short(need.fits), ForceEnv)
		}
	}
	return nil
}

// MostTrials is how many trials an entry may have: each has a record, and is in lists before the first one starts.
const MostTrials = 1_000_000

// Enough panics with a *UsageError if there are more trials than an entry may have, before a list of them is made.
func Enough(trials int) {
	if trials > MostTrials {
		panic(Usagef("more than %s trials, of %s or more: take fewer seeds or shorter lists", short(MostTrials),
			short(float64(trials))))
	}
}

// Option is a field of parameters, zero if they have none of that name and type.
func Option[V any](params any, name string) (value V) {
	if v := reflect.ValueOf(params); v.Kind() == reflect.Struct {
		if f := v.FieldByName(name); f.IsValid() {
			value, _ = f.Interface().(V)
		}
	}
	return value
}

// need is a forecast of memory.
type need struct {
	bytes float64
	field string  // to blame
	value float64 // that it has
	fits  float64 // a value that it may have
}

// need is the forecast for parameters of the entry on a machine with so many bytes; none where no parameter is above
// the presets'.
func (e Entry) need(params any, has float64) need {
	sizes, known := sizesOf(params), map[string]float64{}
	for _, preset := range e.presets {
		for _, s := range sizesOf(preset) {
			known[s.field] = max(known[s.field], s.value)
		}
	}
	raised := slices.DeleteFunc(slices.Clone(sizes), func(s size) bool { return s.value <= known[s.field] })
	var worst need
	for _, s := range raised {
		each := s.bytes(sizes)
		n := need{each * s.value, s.field, s.value, math.Floor(has / each)}
		if s.ends("Seeds") {
			n.fits = min(n.fits, MostTrials)
		}
		if n.bytes > worst.bytes {
			worst = n
		}
	}
	if worst.bytes > has { // too large to be opened for its own forecast
		if n := ownNeed(params, size{worst.field, worst.value}, known[worst.field], has); n.bytes > 0 {
			worst.bytes, worst.fits = max(worst.bytes, n.bytes), min(worst.fits, n.fits)
		}
		return worst
	}
	for _, s := range raised {
		if n := ownNeed(params, s, known[s.field], has); n.bytes > worst.bytes {
			worst = n
		}
	}
	return worst
}

// firstProbe is the value of a field at which its law is begun to be found where no preset names one.
const firstProbe = 16

// ownNeed is by what parameters forecast themselves, m(v) = a + b vᵏ of the value v of one field. The law is found at
// three small values, since a large one takes long to forecast; none where the field does not matter.
func ownNeed(params any, s size, preset, has float64) need {
	own := func(value float64) float64 {
		changed := reflect.New(reflect.TypeOf(params)).Elem()
		changed.Set(reflect.ValueOf(params))
		if at, ok := find(changed, s.field); ok && at.field.CanInt() {
			at.set(reflect.ValueOf(int64(value)).Convert(at.field.Type()))
		}
		return ownForecast(changed)
	}
	v := preset
	if v == 0 {
		v = firstProbe
	}
	m1, m2, m4 := own(v), own(2*v), own(4*v)
	if m1 == 0 || m2 <= m1 || m4 <= m2 {
		return need{}
	}
	k := math.Log2((m4 - m2) / (m2 - m1))
	b := (m2 - m1) / (math.Pow(2*v, k) - math.Pow(v, k))
	a := m1 - b*math.Pow(v, k)
	return need{a + b*math.Pow(s.value, k), s.field, s.value, math.Floor(math.Pow(max(has-a, 0)/b, 1/k))}
}

// ownForecast is the sum of what parameters, and structs among them, say of their memory.
func ownForecast(v reflect.Value) float64 {
	if v.Kind() != reflect.Struct {
		return 0
	}
	if own, ok := v.Interface().(interface{ Memory() float64 }); ok {
		return own.Memory()
	}
	sum := 0.
	for i := range v.NumField() {
		if v.Type().Field(i).IsExported() {
			sum += ownForecast(v.Field(i))
		}
	}
	return sum
}

// size is a number that says how large something is: the largest of a list.
type size struct {
	field string
	value float64
}

// Bytes that a seed has in a record and in lists, a repetition in a series, and an element in an array.
const (
	bytesSeed    = 4096
	bytesRepeat  = 64
	bytesElement = 8
)

// repeats are the ends of names of numbers that no array is as large as.
var repeats = []string{
	"Steps", "Epochs", "Draws", "Repeats", "Tries", "Problems", "Runs", "Solves", "Samples", "Candidates", "Warmup",
	"WarmUp", "Every", "From", "Instruments", "Curvature",
}

// bytes are those of one more of it, beside the other sizes.
func (s size) bytes(all []size) float64 {
	switch {
	case s.ends("Seeds"):
		return bytesSeed
	case s.repeats():
		return bytesRepeat
	}
	other := 1.
	for _, o := range all {
		if o.field != s.field && !o.repeats() && !o.ends("Seeds") {
			other = max(other, o.value)
		}
	}
	return bytesElement * other
}

func (s size) ends(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return strings.HasSuffix(s.field, name) })
}

func (s size) repeats() bool { return s.ends(repeats...) }

// sizesOf are the whole numbers of parameters and the ratios of two, by their paths.
func sizesOf(params any) []size {
	largest := map[string]float64{}
	walkSizes(reflect.ValueOf(params), "", func(field string, value float64) {
		if value > 0 {
			largest[field] = max(largest[field], value)
		}
	})
	var all []size
	for _, field := range slices.Sorted(maps.Keys(largest)) {
		all = append(all, size{field, largest[field]})
	}
	return all
}

// walkSizes reports every size below a value, those that a function sets of settings among them. An array is a choice
// of a few, and a seed no size.
func walkSizes(v reflect.Value, path string, add func(field string, value float64)) {
	switch {
	case varied(v.Type()) != nil:
		walkSizes(settingsOf(v), "", add)
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			walkSizes(v.Index(i), path, add)
		}
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			switch {
			case f.Anonymous:
				walkSizes(v.Field(i), path, add)
			case f.IsExported():
				walkSizes(v.Field(i), strings.TrimPrefix(path+"."+f.Name, "."), add)
			}
		}
	case v.CanInt() && path != "Seed":
		add(path, float64(v.Int()))
	case v.CanUint() && path != "Seed":
		add(path, float64(v.Uint()))
	case v.CanFloat() && strings.Contains(path, "Ratio"):
		add(path, v.Float())
	}
}

// settingsOf are zero settings after a function that varies them. A reader's own may be one that cannot work without a
// preset: what it had set till then is there.
func settingsOf(vary reflect.Value) (settings reflect.Value) {
	pointer := reflect.New(varied(vary.Type()))
	settings = pointer.Elem()
	if !vary.IsNil() {
		defer func() { _ = recover() }()
		vary.Call([]reflect.Value{reflect.Zero(vary.Type().In(0)), pointer})
	}
	return settings
}

func gigabytes(bytes float64) string { return short(max(1, math.Round(bytes/1e9))) + " GB" }

// short is a whole number with at most three digits that count: 16,000,000.
func short(x float64) string {
	if x > 1e15 {
		return fmt.Sprintf("%.3g", x)
	}
	if unit := math.Pow(10, math.Floor(math.Log10(max(x, 1)))-2); unit > 1 {
		x = math.Floor(x/unit) * unit
	}
	text := fmt.Sprintf("%.0f", x)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}
