package study

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/catalog"
)

func TestVary(t *testing.T) {
	type settings struct {
		Method string
		Rates  []float64
	}
	s := settings{"a", []float64{1}}
	fixed := map[string]string{"Method": "name it in the rows", "Rates": "leave them"}
	require.NoError(t, Vary(nil, "row", &s, fixed))
	require.NoError(t, Vary(func(_ string, s *settings) { s.Rates = []float64{1} }, "row", &s, fixed))
	require.NoError(t, Vary(func(row string, s *settings) { s.Method = row }, "row", &s, nil))
	require.Equal(t, settings{"row", []float64{1}}, s)
	require.Equal(t, []string{`Method: "row", ""`, "Rates: [1], []"}, Differences(s, settings{}))
	type nested struct {
		Inner settings
		Size  int
	}
	require.Equal(t, []string{"Inner.Rates: [2], []", "Size: 1, 0"},
		Differences(nested{settings{"a", []float64{2}}, 1}, nested{Inner: settings{Method: "a"}}))
	err := Vary(func(_ string, s *settings) { s.Method, s.Rates = "b", nil }, "row", &s, fixed)
	var usage *catalog.UsageError
	require.ErrorAs(t, err, &usage)
	require.EqualError(t, err,
		"parameters of row: Vary changes Method: name it in the rows; Vary changes Rates: leave them")
}
