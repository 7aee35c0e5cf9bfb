package study

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/nasml/lab/nasml/runs"
)

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
