package notebook

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/plots"
)

// answered is a result of claims only.
type answered []runs.Claim

func (answered) Figure() plots.Figure  { return plots.Figure{} }
func (a answered) Check() []runs.Claim { return a }
func (answered) Records() []string     { return nil }

func ExampleAnswer() {
	mine, darts := []float64{94.1, 93.9, 94.2, 94.0}, []float64{93.1, 92.8, 93.3, 92.9}
	r := answered{verdict.Greater(verdict.Claim("own: EG above DARTS, points", "Table 2"), mine, darts, 0.95)}
	Answer("Is EG better?", r, "above DARTS")
	// Output:
	// Is EG better? Yes.
	// EG above DARTS, points: 1.025 [0.8727, 1.177], holds
}

func TestAnswersOfSeveralClaims(t *testing.T) {
	claim := func(name string, holds runs.Verdict) runs.Claim {
		c := verdict.Claim(name, "Table 2")
		c.Ours, c.Holds = 1, holds
		return c
	}
	yes, no, open := claim("a", runs.Holds), claim("b", runs.Fails), claim("c", runs.NotKnown)
	for want, claims := range map[string][]runs.Claim{
		"Yes.": {yes, yes}, "No.": {no}, "These runs do not tell.": {open},
		"Not as a whole: 1 of 3 statements hold, 1 do not hold, 1 are inconclusive.": {yes, no, open},
	} {
		require.Equal(t, want, yesOrNo(claims))
	}
	text, err := answer("Which?", []runs.Claim{yes, no, open}, []string{"b", "c"})
	require.NoError(t, err)
	require.Equal(t, "Which? Not as a whole: 0 of 2 statements hold, 1 do not hold, 1 are inconclusive.\n"+
		"b: 1, does not hold\nc: 1, inconclusive\n", text)
	_, err = answer("Which?", []runs.Claim{yes}, []string{"z"})
	require.EqualError(t, err, `no claim of this result is about ["z"]: take a part of one of the names ["a"]`)
}
