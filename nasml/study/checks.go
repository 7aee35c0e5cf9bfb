package study

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/internal/limits"
)

// Checks collects what is wrong with parameters, so that a reader sees all of it
// at once. The zero value is ready to use.
type Checks []string

// Expect notes a mistake unless ok: "Seeds must be at least 1, got 0".
func (c *Checks) Expect(ok bool, format string, args ...any) {
	if !ok {
		*c = append(*c, fmt.Sprintf(format, args...))
	}
}

// Limits notes the fields of parameters that break the rules of their tags, see package limits.
func (c *Checks) Limits(params any) { *c = append(*c, limits.Broken(params)...) }

// AtLeast requires value ≥ least.
func (c *Checks) AtLeast(field string, value, least int) {
	c.Expect(value >= least, "%s must be at least %d, got %d", field, least, value)
}

// OneOf requires one of the known names.
func (c *Checks) OneOf(field, value string, known ...string) {
	c.Expect(slices.Contains(known, value), "%s must be one of %s, got %q", field, strings.Join(known, ", "), value)
}

// Err is a *catalog.UsageError that names all mistakes, or nil. What comes from
// a map has no order, so the mistakes are sorted.
func (c *Checks) Err(what string) error {
	if len(*c) == 0 {
		return nil
	}
	return catalog.Usagef("parameters of %s: %s", what, strings.Join(slices.Sorted(slices.Values(*c)), "; "))
}

// Distinct requires at least atLeast values, none twice.
func Distinct[T comparable](c *Checks, field string, values []T, atLeast int) {
	seen := map[T]bool{}
	for _, v := range values {
		seen[v] = true
	}
	ok := len(values) >= atLeast && len(seen) == len(values)
	c.Expect(ok, "%s must have at least %d values and none twice, got %v", field, atLeast, values)
}

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
