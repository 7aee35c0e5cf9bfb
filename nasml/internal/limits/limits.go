// Package limits checks parameters against the limits in the tags of their fields, and says these limits in words.
package limits

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-playground/validator/v10"
)

// Broken reports every field of a struct that breaks the rules of its tag. Besides those of package validator there are
// "ascending" for lists, "positive" for numbers (above 0 and finite) and "multiple" for integers:
//
//	Seeds  int       `validate:"gte=1"`
//	Width  int       `validate:"gte=2,multiple=2"`
//	Ratios []float64 `validate:"min=1,unique,dive,gt=1,lte=10000"`
//	Sizes  []int     `validate:"ascending,dive,gte=2"`
//
// Rules before "dive" are those of the list, rules after it those of each value. A report has the limits and the value:
// "every value of Ratios must be more than 1 and at most 10000, got 1".
func Broken(params any) []string {
	var broken validator.ValidationErrors
	errors.As(rules.Struct(params), &broken)
	var texts []string
	for _, b := range broken {
		name, _, inList := strings.Cut(b.Field(), "[")
		if at := strings.LastIndex(b.Namespace(), "]."); at >= 0 { // of a case: Cases[1].Ratio
			name = b.Namespace()[strings.LastIndex(b.Namespace()[:at], ".")+1:at+2] + name
		}
		limits, each := words(tagOf(reflect.TypeOf(params), b.StructNamespace()))
		verb := "be"
		switch {
		case inList:
			name, limits = "every value of "+name, each
		case b.Kind() == reflect.Slice:
			verb = "have"
		}
		texts = append(texts, fmt.Sprintf("%s must %s %s, got %s", name, verb, limits, shown(b.Value())))
	}
	return texts
}

// Words are the limits of a field, for a list of parameters: "at least 1"; empty where it has none.
func Words(f reflect.StructField) string {
	list, each := words(f.Tag.Get("validate"))
	if each == "" {
		return list
	}
	return strings.TrimPrefix(list+"; each "+each, "; ")
}

var rules = func() *validator.Validate {
	v := validator.New(validator.WithRequiredStructEnabled())
	err := errors.Join(
		v.RegisterValidation("positive", func(f validator.FieldLevel) bool {
			return f.Field().Float() > 0 && !math.IsInf(f.Field().Float(), 1)
		}),
		v.RegisterValidation("ascending", func(f validator.FieldLevel) bool { return ascending(f.Field()) }),
		v.RegisterValidation("multiple", func(f validator.FieldLevel) bool {
			of, err := strconv.ParseInt(f.Param(), 10, 64)
			return err == nil && of != 0 && f.Field().Int()%of == 0
		}))
	if err != nil { // of a name that is empty
		panic(err)
	}
	return v
}()

func ascending(list reflect.Value) bool {
	number := func(i int) float64 { return list.Index(i).Convert(reflect.TypeFor[float64]()).Float() }
	for i := 1; i < list.Len(); i++ {
		if !(number(i) > number(i-1)) {
			return false
		}
	}
	return true
}

func tagOf(t reflect.Type, path string) string {
	var f reflect.StructField
	for _, name := range strings.Split(path, ".")[1:] {
		name, _, _ = strings.Cut(name, "[")
		f, _ = t.FieldByName(name)
		if t = f.Type; t.Kind() == reflect.Slice {
			t = t.Elem()
		}
	}
	return f.Tag.Get("validate")
}

func words(tag string) (field, each string) {
	joined := func(rules string) string {
		var all []string
		for rule := range strings.SplitSeq(rules, ",") {
			if word := inWords(rule); word != "" {
				all = append(all, word)
			}
		}
		return strings.Join(all, " and ")
	}
	field, each, _ = strings.Cut(tag, "dive")
	return joined(field), joined(each)
}

func inWords(rule string) string {
	if first, other, ok := strings.Cut(rule, "|"); ok {
		return inWords(first) + " or " + inWords(other)
	}
	name, value, _ := strings.Cut(rule, "=")
	switch name {
	case "eq":
		return value
	case "oneof":
		return "one of " + strings.ReplaceAll(value, " ", ", ")
	case "min":
		return strings.TrimSuffix("at least "+value+" values", map[bool]string{true: "s"}[value == "1"])
	case "max":
		return "at most " + value + " values"
	}
	return strings.TrimSpace(ruleWords[name] + " " + value)
}

var ruleWords = map[string]string{
	"gte": "at least", "gt": "more than", "lte": "at most", "lt": "less than", "positive": "more than 0 and finite",
	"multiple":  "a multiple of",
	"ascending": "values in ascending order", "unique": "no duplicates", "required": "non-empty",
}

func shown(value any) string {
	if reflect.ValueOf(value).Kind() == reflect.String {
		return fmt.Sprintf("%q", value)
	}
	return fmt.Sprint(value)
}
