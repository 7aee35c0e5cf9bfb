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
		figure1ID, figure1LeftID, figure1MiddleID, figure2ID, figure3ID, "li2021/figure4", "li2021/figure5", instrumentsID, ranksID,
		"li2021/ranks-searches", table1ID, "li2021/table2", table3ID, table4ID, table5ID, unclearedID,
	} {
		shipped = append(shipped, studytest.Shipped{ID: id, Scale: catalog.Quick})
	}
	shipped = append(shipped, studytest.Shipped{ID: figure1ID, Scale: catalog.Quick, Set: secondOrderSearch},
		studytest.Shipped{ID: figure1LeftID, Scale: catalog.Large},
		studytest.Shipped{ID: figure1MiddleID, Scale: catalog.Large},
		studytest.Shipped{ID: figure2ID, Scale: catalog.Large},
		studytest.Shipped{ID: instrumentsID, Scale: catalog.Quick, Set: instruments201})
	studytest.Golden(t, "testdata/claims.json", shipped...)
}
