package study

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/catalog"
)

// Overlay sets the fields of a struct that changes have, those of structs in it
// among them: what is 0, false or empty in changes stays as it is. zero names the
// fields that are to be 0, false or empty, "WeightDecay" or "Bilevel.Clip". It is a
// *catalog.UsageError where there is no such field.
func Overlay[S any](of *S, changes S, zero []string) error {
	v := reflect.ValueOf(of).Elem()
	overlay(v, reflect.ValueOf(changes))
	for _, path := range zero {
		f := v
		for name := range strings.SplitSeq(path, ".") {
			if f.Kind() == reflect.Struct {
				f = f.FieldByName(name)
			} else {
				f = reflect.Value{}
			}
			if !f.IsValid() || !f.CanSet() {
				return catalog.Usagef("Zero has %q, want fields of %T, such as WeightDecay or Bilevel.Clip", path,
					changes)
			}
		}
		f.SetZero()
	}
	return nil
}

func overlay(of, changes reflect.Value) {
	if of.Kind() != reflect.Struct {
		if !changes.IsZero() {
			of.Set(changes)
		}
		return
	}
	for i := range of.NumField() {
		overlay(of.Field(i), changes.Field(i))
	}
}

// SetFields are the paths of the fields that a struct has set, those of structs in
// it among them: "WeightDecay", "Bilevel.Clip".
func SetFields(changes any) []string {
	var paths []string
	var walk func(v reflect.Value, path string)
	walk = func(v reflect.Value, path string) {
		if v.Kind() != reflect.Struct {
			if !v.IsZero() {
				paths = append(paths, path)
			}
			return
		}
		for i := range v.NumField() {
			walk(v.Field(i), strings.TrimPrefix(fmt.Sprint(path, ".", v.Type().Field(i).Name), "."))
		}
	}
	walk(reflect.ValueOf(changes), "")
	return paths
}

// NoteZero adds a field to those that are to be 0, false or empty where it belongs to
// the struct that params embeds, and not to params: what is 0 there keeps its meaning.
func NoteZero(zero []string, params any, field string) []string {
	field = strings.TrimPrefix(field, "Settings.")
	name, _, _ := strings.Cut(field, ".")
	at, ok := reflect.TypeOf(params).FieldByName(name)
	if ok && len(at.Index) > 1 && !slices.Contains(zero, field) {
		return append(slices.Clone(zero), field)
	}
	return zero
}
