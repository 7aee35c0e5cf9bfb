package oymak2021

import (
	"testing"

	"github.com/nasml/lab/nasml/study/studytest"
)

func TestClaimsOfShippedTrialsStayAsTheyAre(t *testing.T) {
	studytest.Golden(t, "testdata/claims.json",
		studytest.Shipped{ID: "oymak2021/assumption3", Scale: "paper"},
		studytest.Shipped{ID: "oymak2021/figure2", Scale: "paper", Set: []string{"StoredOnly=true"}},
		studytest.Shipped{ID: "oymak2021/figure3", Scale: "quick"},
		studytest.Shipped{ID: "oymak2021/theorem3", Scale: "paper"},
		studytest.Shipped{ID: "oymak2021/theorem4", Scale: "paper"},
	)
}
