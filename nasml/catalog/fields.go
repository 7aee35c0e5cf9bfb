package catalog

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/nasml/lab/internal/files"
	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/internal/limits"
	"github.com/nasml/lab/nasml/runs"
)

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

// declared are the fields of a struct that can be set, without values, and those of the
// settings that it varies.
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

// Stored is [Entry.Run] from finished trials alone, of the store and of what is
// shipped: it computes and downloads nothing, and returns an *OpenError where trials are open. That
// the store cannot be read is another error.
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
