package catalog

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/nasml/lab/internal/files"
	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/internal/limits"
	"github.com/nasml/lab/nasml/runs"
)

// clone copies the parameters of a preset through JSON, which every one of them survives by the contract of a figure.
func clone[P any](p P) (P, error) {
	var c P
	data, err := json.Marshal(p)
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	if err != nil {
		return c, fmt.Errorf("copying %T: %w", p, err)
	}
	return c, nil
}

// assign sets a field of the struct that params points to, of the entry id, from "Field=value". The value is JSON;
// strings need no quotes, lists no brackets: Widths=64,128. An inner field has both names, Bilevel.Clip=3; one of
// settings that the parameters vary (see [place]) may have its own alone, unless a parameter has that.
func assign(id string, params any, assignment string) error {
	name, text, ok := strings.Cut(assignment, "=")
	if !ok {
		return Usagef("--set %q: want Field=value", assignment)
	}
	v := reflect.ValueOf(params).Elem()
	at, ok := find(v, name)
	if !ok {
		return Usagef("--set %s: %s has no parameter %q%s (`nasml show %s` lists all)", assignment, id, name,
			didYouMean(nearFields(v.Type(), name)), id)
	}
	target := reflect.New(at.field.Type())
	for _, form := range forms(text, at.field.Type()) {
		decoder := json.NewDecoder(bytes.NewReader([]byte(form)))
		decoder.DisallowUnknownFields()
		if decoder.Decode(target.Interface()) == nil && !decoder.More() && lengthFits(target.Elem(), form) {
			at.set(target.Elem())
			return nil
		}
		target.Elem().SetZero()
	}
	return Usagef("--set %s: %q is not a value for %s, which is %s", assignment, text, name, at.field.Type())
}

// lengthFits refuses a list that is shorter or longer than an array: JSON would fill up or drop in silence.
func lengthFits(v reflect.Value, form string) bool {
	if v.Kind() != reflect.Array {
		return true
	}
	var list []json.RawMessage
	return json.Unmarshal([]byte(form), &list) == nil && len(list) == v.Len()
}

// forms are the JSON texts that a value may stand for.
func forms(text string, t reflect.Type) []string {
	switch t.Kind() {
	case reflect.String:
		return []string{quote(text)}
	case reflect.Slice, reflect.Array:
		return []string{text, list(text, t.Elem().Kind() == reflect.String)}
	default:
		return []string{text}
	}
}

// list is "a,b" as a JSON list.
func list(text string, quoted bool) string {
	if text == "" {
		return "[]"
	}
	parts := split(text)
	for i, part := range parts {
		if parts[i] = strings.TrimSpace(part); quoted {
			parts[i] = quote(parts[i])
		}
	}
	return "[" + strings.Join(parts, ",") + "]"
}

// split cuts text at the commas that stand in no brackets, and at all where brackets
// do not close: a genotype is one value.
func split(text string) (parts []string) {
	depth, from := 0, 0
	for at, r := range text {
		switch {
		case strings.ContainsRune("([{", r):
			depth++
		case strings.ContainsRune(")]}", r):
			depth--
		case r == ',' && depth == 0:
			parts, from = append(parts, text[from:at]), at+1
		}
	}
	if depth != 0 {
		return strings.Split(text, ",")
	}
	return append(parts, text[from:])
}

// quote is text as a JSON string; text that is one already stays.
func quote(text string) string {
	if json.Valid([]byte(text)) && strings.HasPrefix(text, `"`) {
		return text
	}
	quoted, err := json.Marshal(text)
	if err != nil { // a Go string always marshals
		panic(err)
	}
	return string(quoted)
}

// place is a field of parameters, or one of settings that a field of theirs varies,
//
//	Vary func(row string, s *search.Settings) `json:"-"`
//
// which presets leave nil.
type place struct {
	field reflect.Value // of settings: one of a zero value
	vary  reflect.Value // that field of the parameters, if it is one of settings
	path  string        // in these
}

// set sets a field, of settings after what the function does that varies them.
func (p place) set(value reflect.Value) {
	if !p.vary.IsValid() {
		p.field.Set(value)
		return
	}
	before := reflect.ValueOf(p.vary.Interface())
	p.vary.Set(reflect.MakeFunc(p.vary.Type(), func(args []reflect.Value) []reflect.Value {
		if !before.IsNil() {
			before.Call(args)
		}
		at, _ := find(args[1].Elem(), p.path)
		at.field.Set(value)
		return nil
	}))
}

// varied are the settings that a function of this type varies; nil: it does not.
func varied(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Func && t.NumIn() == 2 && t.In(1).Kind() == reflect.Pointer && t.NumOut() == 0 {
		return t.In(1).Elem()
	}
	return nil
}

// find finds an exported field, by its exact name, or by a path of names.
func find(v reflect.Value, path string) (place, bool) {
	if v.Kind() != reflect.Struct {
		return place{}, false
	}
	name, rest, more := strings.Cut(path, ".")
	f, ok := v.Type().FieldByName(name)
	if !ok || !f.IsExported() {
		return findVaried(v, path)
	}
	field := v.FieldByIndex(f.Index)
	switch {
	case varied(f.Type) != nil:
		return findIn(field, rest)
	case more:
		return find(field, rest)
	}
	return place{field: field}, true
}

// findVaried finds a field of the settings that a struct varies.
func findVaried(v reflect.Value, path string) (place, bool) {
	for _, f := range reflect.VisibleFields(v.Type()) {
		if f.IsExported() && varied(f.Type) != nil {
			if at, ok := findIn(v.FieldByIndex(f.Index), path); ok {
				return at, true
			}
		}
	}
	return place{}, false
}

// findIn finds one of the settings that a function varies.
func findIn(vary reflect.Value, path string) (place, bool) {
	at, ok := find(reflect.New(varied(vary.Type())).Elem(), path)
	return place{at.field, vary, path}, ok
}

// nearFields are the fields that a path may have meant: those that a letter changes it
// into, else those that have it within them, else those that two letters do.
func nearFields(t reflect.Type, path string) []string {
	before := ""
	for {
		head, tail, more := strings.Cut(path, ".")
		f, ok := t.FieldByName(head)
		if !more || !ok || f.Type.Kind() != reflect.Struct {
			break
		}
		before, path, t = before+head+".", tail, f.Type
	}
	var names []string
	for _, f := range declared(t) {
		names = append(names, f.Name)
	}
	near := misspelt(path, names)
	if alike := alikeNames(path, names); len(alike) > 0 &&
		(len(near) == 0 || edits(strings.ToLower(path), strings.ToLower(near[0])) > 1) {
		near = alike
	}
	for i, name := range near {
		near[i] = before + name
	}
	return near
}

// mostAlike is how many names a message suggests.
const mostAlike = 4

// alikeNames are names of which one has the other within it, whatever their case.
func alikeNames(wanted string, names []string) []string {
	wanted = strings.ToLower(wanted)
	var alike []string
	for _, name := range names {
		low := strings.ToLower(name)
		within := strings.Contains(low, wanted) || strings.Contains(wanted, low)
		if within && len(wanted) > 2 && len(alike) < mostAlike {
			alike = append(alike, name)
		}
	}
	return alike
}

func didYouMean(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(names, " or ") + "?"
}

// unknownName is how a registry, or the tag of a field, says that a name is none of its own: the name, and those that
// it has, as "one of eg, sgd" or as "ordered or random".
var unknownName = regexp.MustCompile(`(?s)"([^"]+)"[^"]{0,14}[:,] (?:` +
	`(?:(?:take|want|expected) one of|only for|(?:it|the space) has) \[?([^\];:]+?)(?:, or |[\];:]|$)|` +
	`want ([\w-]+(?:(?:,|,? or) [\w-]+)+))|` +
	`must be (?:one of \[?([^\];:]+?)\]?|([\w-]+(?:(?:,|,? or) [\w-]+)+)), got "([^"]+)"`)

var (
	nameInList = regexp.MustCompile(`[\w./@*+±-]+`)
	orInList   = regexp.MustCompile(`,? or\b`)
)

// known are the name that an error is about, and those of which it is none; empty if it is about something else.
func known(err error) (name string, names []string) {
	if err == nil {
		return "", nil
	}
	found := unknownName.FindStringSubmatch(err.Error())
	if found == nil {
		return "", nil
	}
	list := found[2] + found[4] + orInList.ReplaceAllString(found[3]+found[5], " ")
	return found[1] + found[6], nameInList.FindAllString(list, -1)
}

// DidYouMean is what may have been meant where an error is that of a name that is not
// known, as "; did you mean eg?"; else it is empty.
func DidYouMean(err error) string {
	name, names := known(err)
	if names == nil || strings.Contains(err.Error(), "did you mean") {
		return ""
	}
	return didYouMean(misspelt(name, names))
}

// Choices are the names that a parameter may be, or each of a list: those that the message about an unknown one has.
// Nil: it lists none.
func (e Entry) Choices(ctx context.Context, field string) []string {
	for value := "?"; len(value) <= len("?,?,?"); value += ",?" { // an array takes as many as it has
		_, err := e.Stored(ctx, Setting{Scale: Quick, Set: []string{field + "=" + value}})
		if _, names := known(err); names != nil || err == nil || !strings.Contains(err.Error(), "is not a value for") {
			return names
		}
	}
	return nil
}

// Field is a parameter of an entry.
type Field struct {
	Name    string                     `json:"name"`
	Type    string                     `json:"type"`    // of Go: "int", "[]string"
	Values  map[string]json.RawMessage `json:"values"`  // by scale; none of settings, which are each preset's
	Meaning string                     `json:"meaning"` // from the struct's comments; may be empty
	Limits  string                     `json:"limits"`  // from its tag, see package limits; may be empty
}

// Scales are the names of the entry's scales, quick and paper first.
func (e Entry) Scales() []string { return e.scales }

// AllSettings are those that results may be stored at, each once: every scale, then what else is shipped.
func (e Entry) AllSettings() (all []Setting) {
	for _, scale := range e.scales {
		all = append(all, Setting{Scale: scale})
	}
	return append(all, slices.DeleteFunc(slices.Clone(e.Shipped), func(s Setting) bool {
		return len(s.Set) == 0 && slices.Contains(e.scales, s.Scale)
	})...)
}

// Params are the entry's parameters at a scale with single ones set by
// "Field=value", a struct of its paper's package. It runs nothing.
func (e Entry) Params(scale string, set []string) (any, error) {
	if e.params == nil {
		return nil, fmt.Errorf("catalog: the entry %q was not registered", e.ID)
	}
	return e.params(scale, set)
}

// Fields are the entry's parameters, those of embedded structs among them.
func (e Entry) Fields() ([]Field, error) {
	var fields []Field
	for i, scale := range e.Scales() {
		p, err := e.Params(scale, nil)
		if err != nil {
			return nil, err
		}
		v := reflect.ValueOf(p)
		if i == 0 {
			fields = declared(v.Type())
		}
		for j := range fields {
			value := v.FieldByName(fields[j].Name)
			if !value.IsValid() { // of settings
				continue
			}
			text, err := json.Marshal(value.Interface())
			if err != nil {
				return nil, fmt.Errorf("%s of %s: %w", fields[j].Name, e.ID, err)
			}
			fields[j].Values[scale] = text
		}
	}
	return fields, nil
}

// declared are the fields of a struct that can be set, without values, and those of the settings that it varies.
func declared(t reflect.Type) []Field {
	var fields, settings []Field
	comments := map[reflect.Type]map[string]string{}
	for _, f := range reflect.VisibleFields(t) {
		if of := varied(f.Type); of != nil {
			settings = append(settings, declared(of)...)
		}
		if !f.IsExported() || f.Anonymous || f.Type.Kind() == reflect.Func {
			continue
		}
		in := t // the struct that has the field itself
		if at := f.Index[:len(f.Index)-1]; len(at) > 0 {
			in = t.FieldByIndex(at).Type
		}
		if comments[in] == nil {
			comments[in] = code.Comments(in)
		}
		fields = append(fields, Field{
			Name: f.Name, Type: f.Type.String(), Limits: limits.Words(f),
			Values: map[string]json.RawMessage{}, Meaning: comments[in][f.Name],
		})
	}
	for _, f := range settings {
		if _, own := t.FieldByName(f.Name); !own {
			fields = append(fields, f)
		}
	}
	return fields
}

// OpenError says that trials of an entry have to be computed first.
type OpenError struct{ Open, Done int }

func (e *OpenError) Error() string {
	return fmt.Sprintf("%d of %d trials are not computed yet", e.Open, e.Open+e.Done)
}

// Looking returns a context under which no data set is downloaded: one that is not there is a data.ErrMissing.
func Looking(ctx context.Context) context.Context { return files.Refusing(ctx, data.ErrMissing) }

// Stored is [Entry.Run] from finished trials alone, of the store and of what is shipped: it computes and downloads
// nothing, and returns an *OpenError where trials are open. That the store cannot be read is another error.
func (e Entry) Stored(ctx context.Context, s Setting) (r Result, err error) {
	part := new(runs.Part) // which looks and computes nothing
	ctx = Looking(runs.WithProgress(runs.WithPart(ctx, part), runs.Silent))
	defer func() {
		cause := recover()
		missing, stored := part.Elsewhere()
		switch {
		case part.Err() != nil:
			r, err = nil, part.Err()
		case missing > 0: // what is made of open trials is worth nothing
			r, err = nil, &OpenError{missing, stored}
		case cause != nil:
			panic(cause)
		}
	}()
	return e.Run(ctx, s.Scale, s.Set)
}
