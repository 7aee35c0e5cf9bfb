package study

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/internal/limits"
)

// Checks collects what is wrong with parameters, so that a reader sees all of it
// at once. The zero value is ready to use.
type Checks []string

// Expect notes a mistake where ok is false: what was found and what is wanted,
// "Seeds is 0, want at least 1".
func (c *Checks) Expect(ok bool, format string, args ...any) {
	if !ok {
		*c = append(*c, fmt.Sprintf(format, args...))
	}
}

// Limits notes the fields of parameters that break the rules of their tags, see package limits.
func (c *Checks) Limits(params any) { *c = append(*c, limits.Broken(params)...) }

// AtLeast wants a whole number of at least least.
func (c *Checks) AtLeast(field string, value, least int) {
	c.Expect(value >= least, "%s is %d, want at least %d", field, value, least)
}

// Positive wants a finite number above 0.
func (c *Checks) Positive(field string, value float64) {
	c.Expect(value > 0 && !math.IsInf(value, 1), "%s is %v, want a positive number", field, value)
}

// Confidence wants a level in (0.5, 1).
func (c *Checks) Confidence(value float64) {
	c.Expect(value > 0.5 && value < 1, "Confidence is %v, want between 0.5 and 1, such as 0.95", value)
}

// OneOf wants one of the known names.
func (c *Checks) OneOf(field, value string, known ...string) {
	c.Expect(slices.Contains(known, value), "%s is %q, want one of %s", field, value, strings.Join(known, ", "))
}

// Err is a *catalog.UsageError that names all mistakes, or nil. What comes from
// a map has no order, so the mistakes are sorted.
func (c *Checks) Err(what string) error {
	if len(*c) == 0 {
		return nil
	}
	return catalog.Usagef("parameters of %s: %s", what, strings.Join(slices.Sorted(slices.Values(*c)), "; "))
}

// Distinct wants at least atLeast values, none twice.
func Distinct[T comparable](c *Checks, field string, values []T, atLeast int) {
	seen := map[T]bool{}
	for _, v := range values {
		seen[v] = true
	}
	c.Expect(len(values) >= atLeast && len(seen) == len(values), "%s is %v, want at least %d values, none twice",
		field, values, atLeast)
}
