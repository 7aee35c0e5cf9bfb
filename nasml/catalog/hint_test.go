package catalog_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/catalog"
)

// The messages of the registries of updates, spaces and data lead to what was meant.
func TestDidYouMean(t *testing.T) {
	for text, want := range map[string]string{
		`unknown update "egg": take one of [adam eg sgd xnas], or add your own`:       "; did you mean eg?",
		`unknown search space "nasbench20": take one of [darts nasbench201]`:          "; did you mean nasbench201?",
		`Data is "cifar10", want one of [cifar-10 cifar-100 mnist synthetic]`:         "; did you mean cifar-10?",
		`unknown search method "dart": take one of darts, gdas, or add your own`:      "; did you mean darts?",
		`unknown update "momentum": take one of [adam eg sgd xnas], or add your own`:  "",
		`parameters of a: Data must be one of cifar-10, mnist, got "cifar10"; B is 1`: "; did you mean cifar-10?",
		`every value of Order must be ordered or random, got "randum"`:                "; did you mean random?",
		`unknown figure "li2021/figur1": did you mean li2021/figure1?`:                "",
	} {
		require.Equal(t, want, catalog.DidYouMean(errors.New(text)), text)
	}
}
