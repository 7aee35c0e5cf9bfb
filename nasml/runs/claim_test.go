package runs

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"

	_ "github.com/nasml/lab/nasml/internal/steady"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var someClaims = []Claim{
	{
		Name:      "stable over Δα",
		Source:    "Oymak+ 2021, Fig. 2(a)",
		Paper:     1.4,
		Ours:      0.71234,
		Lo:        0.6,
		Hi:        0.8,
		Tolerance: None,
		Holds:     Holds,
	},
	{
		Name:      "grows",
		Source:    "p. 3",
		Paper:     None,
		Ours:      2,
		Lo:        None,
		Hi:        None,
		Tolerance: 0.1,
		Holds:     Fails,
		Note:      "a < b & c",
	},
	{
		Name:      "k = 4096",
		Source:    "p. 3",
		Paper:     3,
		Ours:      None,
		Lo:        None,
		Hi:        None,
		Tolerance: None,
		Note:      "not run: too wide",
	},
	{Name: "slope", Source: "p. 4", Paper: 0, Ours: 0.1, Lo: -1, Hi: 1, Tolerance: None, Allowed: "above 0"},
}

func TestClaimJSON(t *testing.T) {
	data, err := json.Marshal(someClaims)
	require.NoError(t, err)
	require.Contains(t, string(data), `{"name":"grows","source":"p. 3","paper":null,"ours":2,"lo":null,"hi":null,`+
		`"tolerance":0.1,"holds":false,"note":`)
	require.Contains(t, string(data), `"holds":true}`)
	require.Contains(t, string(data), `"holds":null,"note":"not run: too wide"`)
	var back []Claim
	require.NoError(t, json.Unmarshal(data, &back))
	again, err := json.Marshal(back)
	require.NoError(t, err)
	require.Equal(t, string(data), string(again))

	_, err = json.Marshal(Number(math.Inf(1)))
	require.ErrorContains(t, err, "+Inf")
	_, err = json.Marshal(Verdict(7))
	require.ErrorContains(t, err, "verdict 7")
	require.Error(t, json.Unmarshal([]byte(`"yes"`), new(Verdict)))
}

func TestNumberRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := Number(rapid.Float64().Draw(t, "x"))
		data, err := json.Marshal(x)
		require.NoError(t, err)
		back := None
		require.NoError(t, json.Unmarshal(data, &back))
		require.Equal(t, math.Float64bits(float64(x)), math.Float64bits(float64(back)))
	})
}

// A verdict that is not known is inconclusive by itself; only a claim can tell that it was not run.
func TestVerdictsInWords(t *testing.T) {
	require.Equal(t, "[inconclusive holds does not hold]", fmt.Sprint([]Verdict{NotKnown, Holds, Fails}))
	c := NewClaim("slope", "p. 4")
	require.False(t, c.Ran())
	require.Equal(t, "not run", c.verdict())
	c.Ours = 1
	require.True(t, c.Ran())
	require.Equal(t, NotKnown.String(), c.verdict())
}

func TestClaimTable(t *testing.T) {
	require.Equal(t, strings.TrimPrefix(`
claim           paper  ours    interval    allowed      verdict        source
stable over Δα  1.4    0.7123  [0.6, 0.8]  –            holds          Oymak+ 2021, Fig. 2(a)
grows           –      2       –           within ±0.1  does not hold  p. 3
k = 4096        3      –       –           –            not run        p. 3
slope           0      0.1     [-1, 1]     above 0      inconclusive   p. 4
  grows: a < b & c
  k = 4096: not run: too wide
`, "\n"), ClaimTable(someClaims))
}

func TestClaimHTML(t *testing.T) {
	table := ClaimHTML(someClaims)
	require.Equal(t, 1+4+3, strings.Count(table, "<tr>"), "a head, four claims, three sources")
	require.Equal(t, 1, strings.Count(table, "p. 3"), "a source stands once")
	require.Contains(t, table, "<details><summary>grows</summary><small>a &lt; b &amp; c</small></details>")
	for _, verdict := range []string{"✓ holds", "✗ does not hold", "? inconclusive", "– not run"} {
		require.Regexp(t,
			`<span style="color:var\(--[a-z]+, #[0-9a-f]{6}\)">`+regexp.QuoteMeta(verdict)+"</span>", table)
	}
	require.Equal(t, table, ClaimHTML(someClaims))
	mixed := ClaimHTML([]Claim{
		NewClaim("a", "p. 3"), NewClaim("own: b", "ours, on p. 3"), NewClaim("c", "p. 3"),
		NewClaim("x: own: d", "ours, on p. 3"), {Name: "e", Source: "p. 4", Ours: -0.5},
	})
	require.Equal(t, 1+5+3, strings.Count(mixed, "<tr>"), "a source stands once, whatever the order")
	require.Less(t, strings.Index(mixed, ">c<"), strings.Index(mixed, ">b<"))
	require.NotContains(t, mixed, "own:")
	require.Contains(t, mixed, ">x: d<")
	require.Contains(t, mixed, ">−0.5<")
}

func TestRowsStandBeforeTheName(t *testing.T) {
	for text, want := range map[string]Claim{
		"[LI024 LI025] the constant": {Name: "the constant", Rows: []string{"LI024", "LI025"}},
		"[0, 1] is the range":        {Name: "is the range", Rows: []string{"0,", "1"}},
		"x in [0, 1] always":         {Name: "x in [0, 1] always"},
		"[unclosed":                  {Name: "[unclosed"},
		"plain":                      {Name: "plain"},
	} {
		c := NewClaim(text, "p. 1")
		require.Equal(t, want.Name, c.Name, text)
		require.Equal(t, want.Rows, c.Rows, text)
	}
	data, err := json.Marshal(NewClaim("plain", "p. 1"))
	require.NoError(t, err)
	require.NotContains(t, string(data), "rows")
}
