package claims

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/runs"
)

// check is one of a row, of which nothing is known.
func check(name, scale string) Check {
	return Check{Entry: "a/b", Name: name, Scale: scale, Ours: runs.None, Lo: runs.None, Hi: runs.None}
}

func (c Check) with(holds runs.Verdict, ours runs.Number) Check {
	c.Holds, c.Ours = holds, ours
	return c
}

var row = Row{ID: "thm1", Paper: "P", Where: "p. 1", Claim: "claim", Entries: []string{"a/b"}}

func TestVerdictsOfRows(t *testing.T) {
	yes, no := check("x", "paper").with(runs.Holds, 1), check("y", "paper").with(runs.Fails, 2)
	open, missing := check("z", "paper").with(runs.NotKnown, 3), check("w", "paper")
	small := check("x", "quick").with(runs.Fails, 4)
	for name, c := range map[string]struct {
		checks []Check
		want   Verdict
		word   string
		best   runs.Number
	}{
		"holds":              {[]Check{yes, yes}, Holds, "holds", 1},
		"one that fails":     {[]Check{yes, no, open}, Fails, "does not hold", 2},
		"one that is open":   {[]Check{yes, open}, Inconclusive, "inconclusive", 3},
		"one that is absent": {[]Check{yes, missing}, Inconclusive, "inconclusive", runs.None},
		"none was run":       {[]Check{missing}, NotRun, "not run", runs.None},
		"the larger scale":   {[]Check{small, yes}, Holds, "holds", 1},
		"a small scale":      {[]Check{small}, Reduced, "reduced: does not hold", 4},
		"small, as the large was not run": {
			[]Check{check("x", "paper"), small}, Reduced, "reduced: does not hold", 4,
		},
		"large and small parts": {
			[]Check{yes, check("v", "large").with(runs.Holds, 5)}, Reduced, "reduced: holds", 1,
		},
		"a verdict without a number": {
			[]Check{check("x", "paper").with(runs.Holds, runs.None)}, Holds, "holds", runs.None,
		},
	} {
		l := judge(row, c.checks)
		require.Equal(t, c.want, l.Verdict, name)
		require.Equal(t, c.word, l.Word(), name)
		require.Equal(t, c.best.Valid(), l.Best.Ours.Valid(), name)
		if c.best.Valid() {
			require.InDelta(t, float64(c.best), float64(l.Best.Ours), 0, name)
		}
	}
}

// Names that differ in the sizes of a scale are one check, of which the largest scale
// counts.
func TestTheLargestScaleDecides(t *testing.T) {
	quick := check("error after 3 calls below that after 5", "quick").with(runs.Fails, 1)
	paper := check("error after 4 calls below that after 8", "paper").with(runs.Holds, 2)
	again := paper // met in another setting of the same scale
	kept := largest([]Check{quick, paper, again})
	require.Len(t, kept, 1)
	require.Equal(t, "paper", kept[0].Scale)
}

func TestRowsWithoutACheck(t *testing.T) {
	l := judge(Row{ID: "x", Why: "background: about practice"}, nil)
	require.Equal(t, NotJudged, l.Verdict)
	require.Equal(t, "background: about practice", l.Reason)
	l = judge(row, nil)
	require.Equal(t, NotRun, l.Verdict)
	require.Equal(t, "trials of a/b are missing", l.Reason)
	small := row
	small.Why = "reduced: a toy"
	l = judge(small, []Check{check("x", "paper").with(runs.Holds, 1)})
	require.Equal(t, "reduced: holds", l.Word())
	require.Equal(t, "reduced: a toy", l.Reason)
}

func someLedger() *Ledger {
	long := row
	long.ID, long.Claim, long.Value = "thm2", strings.Repeat("words that go on ", 20)+"& <end>", "1/2"
	other := row
	other.ID, other.Paper, other.Entries, other.Why = "LI001", "Q", nil, "background: about practice"
	yes := check("the slope", "paper").with(runs.Holds, 0.5)
	yes.Lo, yes.Hi = 0.4, 0.6
	return &Ledger{Lines: []Line{
		judge(row, []Check{check("x", "quick").with(runs.Fails, 4)}), judge(long, []Check{yes, check("w", "quick")}),
		judge(other, nil),
	}}
}

func TestTextFitsItsWidth(t *testing.T) {
	for _, width := range []int{60, 100, 160} {
		var out bytes.Buffer
		require.NoError(t, someLedger().WriteText(&out, Text{Width: width}))
		text := out.String()
		require.NotContains(t, text, "\x1b")
		at := strings.LastIndex(text[:strings.Index(text, "rows ")], "\n") + 1
		rows, totals := text[:at], text[at:]
		for line := range strings.Lines(rows) {
			require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimRight(line, "\n")), width, line)
			require.Equal(t, strings.TrimRight(line, " \n"), strings.TrimRight(line, "\n"), "no blanks at the end")
		}
		require.Contains(t, squeeze(rows), "reduced: claim does not hold")
		require.Contains(t, squeeze(totals), "all 0 0 1 1 0 0 1 3")
	}
	var out bytes.Buffer
	require.NoError(t, someLedger().WriteText(&out, Text{Width: 100, Colour: true}))
	require.Contains(t, out.String(), "\x1b[36mreduced:\x1b[0m")
}

func squeeze(text string) string { return strings.Join(strings.Fields(text), " ") }

func TestTotals(t *testing.T) {
	totals := someLedger().Totals()
	require.Len(t, totals, 3)
	require.Equal(t, "all", totals[2].Paper)
	require.Equal(t, 3, totals[2].All)
	require.Equal(t, 1, totals[2].Of(Reduced))
	require.Equal(t, 1, totals[1].Of(NotJudged))
}

func TestJSONAndCSV(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, someLedger().WriteJSON(&out))
	var rows []map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &rows))
	require.Len(t, rows, 3)
	require.Len(t, rows[0], 7)
	require.Equal(t, []any{}, rows[2]["checks"])
	checks := rows[1]["checks"].([]any)
	require.Equal(t, map[string]any{
		"entry": "a/b", "name": "the slope", "scale": "paper", "ours": 0.5, "lo": 0.4, "hi": 0.6, "holds": true,
	}, checks[0])
	require.Nil(t, checks[1].(map[string]any)["ours"])

	out.Reset()
	require.NoError(t, someLedger().WriteCSV(&out))
	table, err := csv.NewReader(&out).ReadAll()
	require.NoError(t, err)
	require.Len(t, table, 1+1+2+1, "a line for every check, and one for a row without any")
	require.Equal(t, []string{"a/b", "the slope", "paper", "0.5", "0.4", "0.6", "holds", ""}, table[2][6:])
}

func TestHTMLIsEscapedAndWhole(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, someLedger().WriteHTML(&out))
	page := out.String()
	require.Contains(t, page, "&amp; &lt;end&gt;")
	require.Contains(t, page, `<tr class="reduced" id="thm1">`)
	require.Contains(t, page, "prefers-color-scheme: dark")
	require.NotContains(t, page, "<script")
	require.NotContains(t, page, "http")
	require.True(t, strings.HasSuffix(strings.TrimSpace(page), "</html>"))
	part, err := someLedger().HTML()
	require.NoError(t, err)
	require.NotContains(t, part, "<html")
}
