package study

import (
	"fmt"
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
