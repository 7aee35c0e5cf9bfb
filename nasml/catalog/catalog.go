// Package catalog is the list of the figures, tables and theorems that the project reproduces. Each is registered once,
// by its paper's package, for the command, the tests and the gallery.
package catalog

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/plots"
)

// Scales at which every entry can be run: minutes on two cores, or the paper's own setting. Large is one between them,
// where the paper's own is out of reach: not every entry has it.
const (
	Quick = "quick"
	Paper = "paper"
	Large = "large"
)

// Preset are the parameters of one more scale.
type Preset[P any] struct {
	Scale  string
	Params P
}

// Result is what running an entry gives: numbers that can be drawn and judged.
type Result interface {
	// Figure is the picture, with the paper's own curve or bound where known.
	Figure() plots.Figure
	// Check judges every claim of the paper about this entry.
	Check() []runs.Claim
	// Records are the keys of the trials that it is made of.
	Records() []string
}

// Setting is a scale with single parameters set by "Field=value".
type Setting struct {
	Scale string
	Set   []string
}

// String is the setting as the command's flags say it.
func (s Setting) String() string {
	text := "--scale " + s.Scale
	for _, assignment := range s.Set {
		text += " --set " + assignment
	}
	return text
}

// Cost says what an entry costs at each scale, in words with units.
type Cost struct {
	Quick string `json:"quick"`
	Paper string `json:"paper"`
}

// Entry describes a figure, table or theorem.
type Entry struct {
	ID       string `json:"id"`    // "oymak2021/figure2"
	Paper    string `json:"paper"` // "Oymak+ 2021"
	Title    string `json:"title"`
	Kind     string `json:"kind"`     // "figure", "table" or "theorem"
	Notebook string `json:"notebook"` // path below the checkout; empty: none, of a figure of another module
	Cost     Cost   `json:"cost"`

	// Shipped are the settings other than a whole scale that the project ships trials of.
	Shipped []Setting `json:"-"`

	// Settings judges, without a run, that the paper's scale has the settings that
	// the paper prints; nil: the paper's list of claims has none of this entry.
	Settings func() []runs.Claim `json:"-"`

	params  func(scale string, set []string) (any, error)
	run     func(ctx context.Context, params any) (Result, error)
	result  reflect.Type
	scales  []string
	presets []any // the parameters of each scale
}

// UsageError is a mistake in the call, such as an unknown figure or parameter;
// the command answers it with exit status 2.
type UsageError struct{ message string }

func (e *UsageError) Error() string { return e.message }

// Usagef makes a UsageError, for invalid parameters.
func Usagef(format string, args ...any) error {
	return &UsageError{fmt.Sprintf(format, args...)}
}

// Usage makes an error of a *UsageError that a function panicked with because it returns no error, such as [Enough].
func Usage(err *error) {
	switch cause := recover().(type) {
	case nil:
	case *UsageError:
		*err = cause
	default:
		panic(cause)
	}
}

var entries = map[string]Entry{}

// Register adds an entry with its parameters at each scale and the function
// that runs it; also are scales that not every entry has. It panics if the ID
// is taken or a field is missing, which a test of the paper's package sees at once.
func Register[P any, R Result](e Entry, quick, paper P, run func(context.Context, P) (R, error), also ...Preset[P]) {
	if _, taken := entries[e.ID]; taken {
		panic(fmt.Sprintf("catalog: %q is registered twice", e.ID))
	}
	for field, value := range map[string]string{
		"ID": e.ID, "Paper": e.Paper, "Title": e.Title, "Kind": e.Kind,
		"Cost.Quick": e.Cost.Quick, "Cost.Paper": e.Cost.Paper,
	} {
		if value == "" {
			panic(fmt.Sprintf("catalog: %q lacks %s", e.ID, field))
		}
	}
	presets := append([]Preset[P]{{Quick, quick}, {Paper, paper}}, also...)
	e.params = func(scale string, set []string) (any, error) {
		p, err := preset(presets, scale)
		for _, assignment := range set {
			if err == nil {
				err = assign(e.ID, &p, assignment)
			}
		}
		return p, err
	}
	e.scales, e.presets = nil, nil
	for _, p := range presets {
		e.scales, e.presets = append(e.scales, p.Scale), append(e.presets, p.Params)
	}
	e.run = func(ctx context.Context, params any) (Result, error) {
		r, err := run(ctx, params.(P))
		if err != nil { // a nil *R in a Result would not be nil
			return nil, err
		}
		return r, nil
	}
	e.result = reflect.TypeFor[R]()
	entries[e.ID] = e
}

// ScaleOf is the scale whose preset, or shipped setting, the parameters of some entry are, field by field but for
// StoredOnly and View, which change no number, and the fields that except names; empty if others were set.
func ScaleOf(params any, except ...string) string {
	of := slices.DeleteFunc(All(), func(e Entry) bool { return reflect.TypeOf(e.presets[0]) != reflect.TypeOf(params) })
	for _, e := range of {
		for _, s := range e.AllSettings() {
			at, err := e.Params(s.Scale, s.Set)
			if err == nil && reflect.DeepEqual(at, withFieldsOf(at, params, append(except, "StoredOnly", "View"))) {
				return s.Scale
			}
		}
	}
	return ""
}

// withFieldsOf replaces the named fields of params by those of a preset of the same type.
func withFieldsOf(preset, params any, names []string) any {
	from := reflect.ValueOf(preset)
	if from.Kind() != reflect.Struct || reflect.TypeOf(params) != from.Type() {
		return params
	}
	copied := reflect.New(from.Type()).Elem()
	copied.Set(reflect.ValueOf(params))
	for _, name := range names {
		if f := copied.FieldByName(name); f.IsValid() {
			f.Set(from.FieldByName(name))
		}
	}
	return copied.Interface()
}

// Of returns the entry that gave a result, and the scale of its parameters but for the number of seeds (see [ScaleOf]),
// empty if it has no field Params. Entries that share a type of result are told apart by the name of the picture.
func Of(r Result) (e Entry, scale string, ok bool) {
	of := slices.DeleteFunc(All(), func(e Entry) bool { return e.result != reflect.TypeOf(r) })
	if len(of) > 1 {
		name := r.Figure().Name
		of = slices.DeleteFunc(of, func(e Entry) bool {
			return !strings.HasPrefix(name, strings.ReplaceAll(e.ID, "/", "-"))
		})
	}
	if len(of) == 0 {
		return Entry{}, "", false
	}
	if params := reflect.Indirect(reflect.ValueOf(r)).FieldByName("Params"); params.IsValid() {
		scale = ScaleOf(params.Interface(), "Seeds")
	}
	return of[len(of)-1], scale, true
}

// preset is a deep copy of a scale's parameters, so that an assignment to a slice of it does not change the preset.
func preset[P any](presets []Preset[P], scale string) (P, error) {
	var known []string
	for _, p := range presets {
		if p.Scale == scale {
			return clone(p.Params)
		}
		known = append(known, p.Scale)
	}
	last := len(known) - 1
	return *new(P), Usagef("unknown scale %q (--scale or NASML_SCALE): take %s or %s",
		scale, strings.Join(known[:last], ", "), known[last])
}

// All returns every entry, sorted by ID.
func All() []Entry {
	return slices.SortedFunc(maps.Values(entries), func(a, b Entry) int { return strings.Compare(a.ID, b.ID) })
}

// Lookup finds an entry. If there is none the *UsageError names those that resemble id, or all.
func Lookup(id string) (Entry, error) {
	if e, ok := entries[id]; ok {
		return e, nil
	}
	known := slices.Sorted(maps.Keys(entries))
	if len(known) == 0 {
		return Entry{}, Usagef("unknown figure %q: this program has none: import the packages that register them", id)
	}
	alike := misspelt(id, known)
	if len(alike) == 0 {
		alike = slices.DeleteFunc(slices.Clone(known), func(k string) bool { return !alikeIDs(id, k) })
	}
	if len(alike) > 0 {
		return Entry{}, Usagef("unknown figure %q: did you mean %s?", id, strings.Join(alike, " or "))
	}
	return Entry{}, Usagef("unknown figure %q: \"nasml list\" shows the %d that there are, such as %s",
		id, len(known), known[0])
}

// misspelt are the known names that fewest letters change into id, two at most.
func misspelt(id string, known []string) (nearest []string) {
	least := 2
	for _, k := range known {
		switch d := edits(strings.ToLower(id), strings.ToLower(k)); {
		case d < least:
			nearest, least = []string{k}, d
		case d == least:
			nearest = append(nearest, k)
		}
	}
	return nearest
}

// edits is the number of letters to add, leave out or change to make b of a.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := corner
			if a[i] != b[j] {
				change++
			}
			corner = row[j+1]
			row[j+1] = min(change, row[j]+1, corner+1)
		}
	}
	return row[len(b)]
}

// alikeIDs reports whether the part before or after the slash is the same but for
// case; where a has no slash it may be either, or begin the name of b's paper.
func alikeIDs(a, b string) bool {
	paperA, nameA, _ := strings.Cut(strings.ToLower(a), "/")
	paperB, nameB, _ := strings.Cut(strings.ToLower(b), "/")
	if nameA == "" {
		return paperA != "" && (paperA == nameB || strings.HasPrefix(paperB, paperA))
	}
	return paperA == paperB || nameA == nameB
}

// Run runs the entry at a scale with single parameters set by "Field=value".
// An unknown scale or field, or a value of the wrong type, is a *UsageError.
func (e Entry) Run(ctx context.Context, scale string, set []string) (_ Result, err error) {
	defer Usage(&err)
	p, err := e.Params(scale, set)
	if err == nil && !runs.Looks(ctx) {
		err = Fits(e.ID, p)
	}
	if err != nil {
		return nil, err
	}
	return e.run(runs.WithScale(ctx, scale), p)
}

// RunPart is [Entry.Run] under a part, of which only the trials count. What the entry makes of trials that are
// elsewhere is worth nothing, be it a result, an error or a panic, which becomes an error; that of the trials is p.Err.
func (e Entry) RunPart(ctx context.Context, p *runs.Part, scale string, set []string) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("%s stumbled over trials that are elsewhere: %v", e.ID, cause)
		}
	}()
	_, err = e.Run(runs.WithPart(ctx, p), scale, set)
	return err
}

// Work is a paper of which there are entries.
type Work struct {
	Title string
	URL   string // empty: no public address is known
}

// Works are the papers by what Entry.Paper calls them. Another module adds those of its figures.
var Works = map[string]Work{
	"Khodak+ 2020": {
		"A Simple Setting for Understanding Neural Architecture Search with Weight-Sharing",
		"https://www.automl.org/wp-content/uploads/2020/07/AutoML_2020_paper_46.pdf",
	},
	"Li+ 2021": {
		"Geometry-Aware Gradient Algorithms for Neural Architecture Search",
		"https://arxiv.org/abs/2004.07802",
	},
	"Oymak+ 2021": {
		"Generalization Guarantees for Neural Architecture Search with Train-Validation Split",
		"https://arxiv.org/abs/2104.14132",
	},
	"Roberts+": {"Understanding Neural Architecture Search by its Architecture Parameters", ""},
}
