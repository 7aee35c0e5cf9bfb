package study

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/internal/limits"
	"github.com/nasml/lab/nasml/runs"
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

// Keys are the keys of the records that there are; nil stands for none.
func Keys(records []*runs.Record) (keys []string) {
	for _, r := range records {
		if r != nil {
			keys = append(keys, r.Key)
		}
	}
	return keys
}

// Values are a value of the records that have it, in their order.
func Values(records []*runs.Record, name string) []float64 {
	return named(records, func(r *runs.Record) map[string]float64 { return r.Values }, name)
}

// Rows are a series of the records that have it: a row a record.
func Rows(records []*runs.Record, name string) [][]float64 {
	return named(records, func(r *runs.Record) map[string][]float64 { return r.Series }, name)
}

func named[V any](records []*runs.Record, of func(*runs.Record) map[string]V, name string) (all []V) {
	for _, r := range records {
		if r != nil {
			if v, ok := of(r)[name]; ok {
				all = append(all, v)
			}
		}
	}
	return all
}

// Column is entry j of the rows that are long enough.
func Column(rows [][]float64, j int) (column []float64) {
	for _, row := range rows {
		if j < len(row) {
			column = append(column, row[j])
		}
	}
	return column
}

// Columns swaps rows, of one length, and columns: of a row a seed it makes a list a place.
func Columns(rows [][]float64) [][]float64 {
	if len(rows) == 0 {
		return nil
	}
	columns := make([][]float64, len(rows[0]))
	for j := range columns {
		columns[j] = Column(rows, j)
	}
	return columns
}

// By splits values by what they have in common, in the order in which that comes.
func By[K comparable, V any](values []V, key func(V) K) [][]V {
	at := map[K]int{}
	var parts [][]V
	for _, v := range values {
		i, known := at[key(v)]
		if !known {
			i = len(parts)
			at[key(v)], parts = i, append(parts, nil)
		}
		parts[i] = append(parts[i], v)
	}
	return parts
}

// Map is a list of what a function makes of each value.
func Map[V, W any](values []V, of func(V) W) (all []W) {
	for _, v := range values {
		all = append(all, of(v))
	}
	return all
}

// Floats are whole numbers as an axis wants them.
func Floats[T ~int | ~uint64](xs []T) []float64 {
	return Map(xs, func(x T) float64 { return float64(x) })
}

// Meta is the metadata of a picture: its title, the scale ("own" where scale is
// empty) and a hash of the parameters that tells pictures apart.
func Meta(title, scale string, params any) map[string]string {
	text, err := json.Marshal(params)
	if err != nil { // parameters are numbers and strings, and were the key of trials
		panic(err)
	}
	sum := sha256.Sum256(text)
	return map[string]string{"title": title, "scale": cmp.Or(scale, "own"), "params": hex.EncodeToString(sum[:8])}
}
