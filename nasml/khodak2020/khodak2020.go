// Package khodak2020 reproduces the figures and theorems of Khodak, Li, Roberts, Balcan, Talwalkar, "A Simple Setting
// for Understanding Neural Architecture Search with Weight-Sharing", 2020 (Khodak+ 2020).
package khodak2020

import (
	"context"
	"embed"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/khodak2020/halving"
	"github.com/nasml/lab/nasml/khodak2020/internal/mapsearch"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
)

var paper = lab.Paper{ID: "khodak2020", Name: "Khodak+ 2020", Shipped: shippedRecords}

// shippedRecords are the trials that are shipped, so that nobody has to repeat them to see the figures.
//
//go:embed records
var shippedRecords embed.FS

// bySeed is a number of every record, NaN if there is none.
func bySeed(records []*runs.Record, of func(*runs.Record) float64) []float64 {
	return study.Map(records, func(r *runs.Record) float64 {
		if r == nil {
			return math.NaN()
		}
		return of(r)
	})
}

// completeRows are the rows, a seed each, of columns that bySeed made: of the seeds
// that have a number in every column, so that seeds are compared with themselves.
func completeRows(columns ...[]float64) [][]float64 {
	var rows [][]float64
	for seed := range columns[0] {
		row := study.Map(columns, func(column []float64) float64 { return column[seed] })
		if !floats.HasNaN(row) {
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

func present(column []float64) []float64 {
	return slices.DeleteFunc(slices.Clone(column), math.IsNaN)
}

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

// The settings of Appendix B as the presets of the paper's scale have them.

const (
	appendixB1 = "Khodak+ 2020, App. B.1"
	appendixB2 = "Khodak+ 2020, App. B.2"
)

func figure1Settings() []runs.Claim {
	return []runs.Claim{
		verdict.Setting("[figure1-configs] configurations", appendixB1, Figure1Paper.Configs, 32),
		verdict.Setting("[figure1-dims] feature dimensions, of the figure's panels", "Khodak+ 2020, "+figure1Source,
			Figure1Paper.Dims, []int{3125, 6250, 12500, 25000, 50000, 100000}),
	}
}

func figure2Settings() []runs.Claim {
	p := Figure2Paper
	return []runs.Claim{
		verdict.Setting("[figure2-trials] trials that curves are averaged over", "Khodak+ 2020, Figure 2", p.Seeds, 10),
		verdict.Setting("[max-features] features of an image at most", appendixB1, p.ImageDim, 100_000),
		verdict.Setting("[max-features] features of a review at most", appendixB1, p.ReviewDim, 100_000),
		verdict.Setting("[start-configs] configurations at the start", appendixB1, p.Configs, 256),
		verdict.Setting("[start-rounds] rounds from 256 configurations to one", appendixB1,
			halving.Rounds(p.Configs), 8),
		verdict.Setting("[alg1-halve] who stays in a round", "Khodak+ 2020, Algorithm 1",
			halving.AsPaper().Ties, "half"),
		verdict.Setting("[lambda] λ of ridge regression and SVM", appendixB2, p.Lambda, 0.5),
		p.imageSplit(), p.reviewSplit(),
	}
}

func figure3Settings() []runs.Claim {
	return []runs.Claim{
		verdict.Setting("[figure3-trials] trials that curves are averaged over", "Khodak+ 2020, Figure 3",
			Figure3Paper.Seeds, 10),
		verdict.Setting("[fastws-growth] factor of the dimension a round", appendixB1, Figure3Paper.Growth, math.Sqrt2),
		verdict.Setting("[fastws-last] which shared solve has all features", appendixB1, halving.AsPaper().Full,
			"last-round"),
	}
}

// imageSplit judges the parts of CIFAR-10's 50,000 + 10,000 images; 0 takes all of a part.
func (p TaskParams) imageSplit() runs.Claim {
	const train = 50_000
	from := mapsearch.ValidFrom(train)
	sizes := [3]int{from, train - from, 10_000}
	for i, n := range []int{p.ImageTrain, p.ImageValid, p.ImageTest} {
		if n > 0 {
			sizes[i] = n
		}
	}
	return verdict.Setting("[cifar-split] training, validation and test images", appendixB2+".1", sizes,
		paperSizes[mapsearch.ImageTask])
}

// reviewSplit judges the parts of IMDb, whose sizes are known without it.
func (p TaskParams) reviewSplit() runs.Claim {
	const name = "[imdb-split] training, validation and test reviews"
	view := data.ReviewView{Name: p.Reviews, Train: p.ReviewTrain, Valid: p.ReviewValid, Test: p.ReviewTest}
	opened, err := view.Open(context.Background())
	if err != nil {
		return verdict.NotRun(verdict.Claim(name, appendixB2+".2"), err.Error())
	}
	var sizes [3]int
	for i, part := range opened.Parts {
		sizes[i] = part.Len
	}
	return verdict.Setting(name, appendixB2+".2", sizes, paperSizes[mapsearch.ReviewTask])
}
