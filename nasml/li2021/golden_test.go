package li2021

import (
	"testing"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/study/studytest"
)

// Every shipped scale, drawn without a store and without data.
func TestShippedClaims(t *testing.T) {
	var shipped []studytest.Shipped
	for _, id := range []string{
		theorem1ID, theorem2ID, corollary1ID, mirrorID, "li2021/sparsity", "li2021/stationarity",
	} {
		shipped = append(shipped, studytest.Shipped{ID: id, Scale: catalog.Paper})
	}
	for _, id := range []string{
		"li2021/figure1", "li2021/figure1-left", "li2021/figure1-middle", "li2021/figure2", "li2021/figure3",
		"li2021/figure4", "li2021/figure5", "li2021/instruments", "li2021/ranks", "li2021/ranks-searches",
		"li2021/table1",
		"li2021/table2", "li2021/table3", "li2021/table4", "li2021/table5", unclearedID,
	} {
		shipped = append(shipped, studytest.Shipped{ID: id, Scale: catalog.Quick})
	}
	shipped = append(shipped, studytest.Shipped{ID: "li2021/figure1", Scale: catalog.Quick, Set: secondOrderSearch},
		studytest.Shipped{ID: "li2021/figure1-left", Scale: catalog.Large},
		studytest.Shipped{ID: "li2021/figure1-middle", Scale: catalog.Large},
		studytest.Shipped{ID: "li2021/figure2", Scale: catalog.Large},
		studytest.Shipped{ID: "li2021/instruments", Scale: catalog.Quick, Set: instruments201})
	studytest.Golden(t, "testdata/claims.json", shipped...)
}
