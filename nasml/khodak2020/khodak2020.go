// Package khodak2020 reproduces the figures and theorems of Khodak, Li,
// Roberts, Balcan, Talwalkar, "A Simple Setting for Understanding Neural
// Architecture Search with Weight-Sharing", 2020 (Khodak+ 2020).
package khodak2020

import (
	"embed"
	"math"

	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/runs"
)

// paper is what the entries of the paper have in common.
var paper = lab.Paper{ID: "khodak2020", Name: "Khodak+ 2020", Shipped: shippedRecords}

// shippedRecords are the trials that are shipped, so that nobody has to
// repeat them to see the figures.
//
//go:embed records
var shippedRecords embed.FS

// bySeed is a number of every record, NaN if there is none.
func bySeed(records []*runs.Record, of func(*runs.Record) float64) []float64 {
	out := make([]float64, len(records))
	for i, r := range records {
		out[i] = math.NaN()
		if r != nil {
			out[i] = of(r)
		}
	}
	return out
}

// completeRows are the rows, a seed each, of columns that bySeed made: of the seeds
// that have a number in every column, so that seeds are compared with themselves.
func completeRows(columns ...[]float64) [][]float64 {
	var rows [][]float64
	for seed := range columns[0] {
		row := make([]float64, len(columns))
		known := true
		for i, column := range columns {
			row[i] = column[seed]
			known = known && !math.IsNaN(row[i])
		}
		if known {
			rows = append(rows, row)
		}
	}
	return rows
}

// completePairs are two columns at the seeds that both have.
func completePairs(a, b []float64) (x, y []float64) {
	for _, row := range completeRows(a, b) {
		x, y = append(x, row[0]), append(y, row[1])
	}
	return x, y
}

// present are the numbers of a column without NaN.
func present(column []float64) []float64 {
	out, _ := completePairs(column, column)
	return out
}

// means are the summaries at the xs that have one.
func means(xs []float64, of func(i int) (runs.Summary, error)) (at []float64, all []runs.Summary) {
	for i, x := range xs {
		if s, err := of(i); err == nil {
			at, all = append(at, x), append(all, s)
		}
	}
	return at, all
}

// greater judges that a exceeds b on average, at the seeds that both have.
func greater(c lab.Claim, a, b []float64) runs.Claim {
	a, b = completePairs(a, b)
	return verdict.Greater(c.Claim, a, b, c.Confidence)
}
