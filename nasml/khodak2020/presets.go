package khodak2020

import (
	"context"
	"math"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/khodak2020/halving"
	"github.com/nasml/lab/nasml/khodak2020/internal/mapsearch"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/runs"
)

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

// imageSplit judges the parts of CIFAR-10's 50,000 + 10,000 images; 0 takes all of a
// part.
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
