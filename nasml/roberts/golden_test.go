package roberts

import (
	"testing"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/study/studytest"
)

// All claims of the paper's scale, from what is shipped.
func TestClaimsOfShippedTrials(t *testing.T) {
	var all []studytest.Shipped
	for _, id := range []string{
		"roberts/figure1", "roberts/map", "roberts/search", "roberts/theorem1", "roberts/theorem4", "roberts/theorem7",
	} {
		all = append(all, studytest.Shipped{ID: id, Scale: catalog.Paper})
	}
	all = append(all, studytest.Shipped{ID: "roberts/figure1", Scale: catalog.Quick})
	studytest.Golden(t, "testdata/claims.json", all...)
}
