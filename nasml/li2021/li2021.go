// Package li2021 reproduces the figures, tables and theorems of Li, Khodak, Balcan, Talwalkar, "Geometry-Aware Gradient
// Algorithms for Neural Architecture Search", ICLR 2021 (GAEA). Its figures on NAS-Bench-201 share their searches.
package li2021

import (
	"embed"
	"math"

	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/plots"
)

// paper is its name in the catalog.
const paper = "Li+ 2021"

// ofPaper is what its entries have in common.
var ofPaper = lab.Paper{ID: "li2021", Name: paper, Shipped: shippedRecords}

//go:embed records
var shippedRecords embed.FS

func means(lists [][]float64) []float64 { return study.Map(lists, mean) }

func mean(x []float64) (sum float64) {
	for _, v := range x {
		sum += v / float64(len(x))
	}
	return sum
}

// seriesOver is a series of each record over a value of that, a list a record.
func seriesOver(records []*runs.Record, series, value string) [][]float64 {
	return study.Map(records, func(r *runs.Record) []float64 {
		return study.Map(r.Series[series], func(v float64) float64 { return v / r.Values[value] })
	})
}

// everyRounding judges that no value is above 0 by more than rounding.
func everyRounding(c lab.Claim, values []float64, rounding float64) runs.Claim {
	judged := verdict.Every(c.Claim, values, rounding)
	judged.Paper, judged.Tolerance = 0, runs.Number(rounding)
	return judged
}

func logs(x []float64) []float64 { return study.Map(x, math.Log) }

// geometric is a curve on a log axis: the geometric mean of each list with its interval. A list that is empty or has a
// value that is not positive has no point.
func geometric(label string, xs []float64, lists [][]float64, confidence float64) plots.Series {
	s := plots.Series{Label: label, Interval: plots.ErrorBars}
	for i, list := range lists {
		m, err := runs.Summarize(logs(list), confidence)
		if err != nil {
			continue
		}
		if !m.Lo.Valid() || !m.Hi.Valid() {
			m.Lo, m.Hi = runs.Number(m.Mean), runs.Number(m.Mean)
		}
		s.X, s.Y = append(s.X, xs[i]), append(s.Y, math.Exp(m.Mean))
		s.Lo, s.Hi = append(s.Lo, math.Exp(float64(m.Lo))), append(s.Hi, math.Exp(float64(m.Hi)))
	}
	return s
}
