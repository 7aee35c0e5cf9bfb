package study

import (
	"fmt"
	"reflect"
	"strings"
)

// Vary applies what a reader does to the settings that a preset has for a row, unless it is nil. It is a
// *catalog.UsageError if that changes one of the fixed fields, which come with what to do instead:
//
//	Vary(p.Vary, "darts", &s, map[string]string{"Method": "name methods in the rows"})
func Vary[S any](vary func(row string, s *S), row string, s *S, fixed map[string]string) error {
	if vary == nil {
		return nil
	}
	before := *s
	vary(row, s)
	var c Checks
	for _, change := range Differences(before, *s) {
		field, _, _ := strings.Cut(change, ":")
		field, _, _ = strings.Cut(field, ".")
		c.Expect(fixed[field] == "", "Vary changes %s: %s", field, fixed[field])
	}
	return c.Err(row)
}

// Differences are the fields in which two settings differ, those of structs in them among them, by the names that Vary
// and --set have for them, with both values: "WeightDecay: 0.0003, 0", "Augment.Cutout: 16, 0".
func Differences[S any](a, b S) (all []string) {
	var walk func(a, b reflect.Value, path string)
	walk = func(a, b reflect.Value, path string) {
		switch {
		case a.Kind() == reflect.Struct:
			for i := range a.NumField() {
				walk(a.Field(i), b.Field(i), strings.TrimPrefix(path+"."+a.Type().Field(i).Name, "."))
			}
		case a.Kind() == reflect.String && a.String() != b.String():
			all = append(all, fmt.Sprintf("%s: %q, %q", path, a, b))
		case !reflect.DeepEqual(a.Interface(), b.Interface()):
			all = append(all, fmt.Sprintf("%s: %v, %v", path, a, b))
		}
	}
	walk(reflect.ValueOf(a), reflect.ValueOf(b), "")
	return all
}
