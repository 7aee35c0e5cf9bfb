package features_test

import (
	"context"
	"fmt"

	"github.com/nasml/lab/nasml/features"
)

// A linear support vector machine on the words of texts, hashed into 64 bins.
func ExampleFitSVM() {
	ctx := context.Background()
	texts := features.NewTexts([]string{"a good film", "a good plot", "a bad film", "a bad plot", "good"})
	labels := []int8{1, 1, -1, -1, 1}
	words := features.NGramConfig{Tokenizer: "whitespace", Order: 1, Weighting: "none", Preprocess: "normalize"}
	train := []int{0, 1, 2, 3}
	m, x, err := features.FitNGrams(ctx, texts, labels, train, []features.NGramConfig{words}, nil, 64, features.AsPaper)
	if err != nil {
		fmt.Println(err)
		return
	}
	model, err := features.FitSVM(ctx, x, labels[:4], features.SVMParams{C: 1, Loss: "hinge", Tol: 1e-3})
	if err != nil {
		fmt.Println(err)
		return
	}
	fresh, err := m.Rows(ctx, []int{4}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(model.Scores(fresh)[0] > 0)
	// Output: true
}
