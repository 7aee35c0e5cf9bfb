package features

import (
	"testing"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/data/datatest"
)

func benchReviews(b *testing.B) *data.Reviews {
	datatest.Dir(b, datatest.IMDb)
	train, err := data.LoadReviews(b.Context(), data.IMDb, data.Train)
	if err != nil {
		b.Fatal(err)
	}
	return train
}

func BenchmarkTokenize(b *testing.B) {
	train := benchReviews(b)
	for name := range tokenizers {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				NewTexts(train.Texts).tokens(name)
			}
		})
	}
}

// BenchmarkFeaturize makes Naive Bayes features of n-grams up to order three of
// 25,000 reviews at d = 2²⁰; "cut" has the tokens already.
func BenchmarkFeaturize(b *testing.B) {
	train := benchReviews(b)
	c := []NGramConfig{
		{
			Tokenizer:  "custom",
			StopWords:  false,
			Lower:      true,
			Order:      3,
			Binary:     true,
			Weighting:  "nb",
			Alpha:      1,
			Preprocess: "normalize",
		},
	}
	texts := NewTexts(train.Texts)
	featurize := func(b *testing.B) {
		if _, _, err := FitNGrams(b.Context(), texts, train.Signs(), nil, c, nil, 1<<20, AsCode); err != nil {
			b.Fatal(err)
		}
	}
	featurize(b)
	b.Run("cut", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			featurize(b)
		}
	})
	b.Run("all", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			texts = NewTexts(train.Texts)
			featurize(b)
		}
	})
}
