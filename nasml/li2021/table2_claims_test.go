package li2021

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/runs"
)

// around are n values about a mean, with a small spread.
func around(mean float64, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = mean + 0.001*float64(i%3-1)
	}
	return out
}

// asPrinted is a Table 2 that has the paper's means in every line, and its lines.
func asPrinted() (r *table2, all []line) {
	r = &table2{Params: Table2Paper, Confidence: Table2Paper.Confidence}
	add := func(block, name, title string, n int) {
		l := newLine(block, name, title)
		for i := range l.accuracy {
			l.accuracy[i] = around(l.paper.Accuracy[i].Mean, n)
		}
		all = append(all, l)
	}
	for _, name := range r.Params.Tabular {
		add(topBlock, name, strings.ToUpper(name), 50)
	}
	for _, name := range r.Params.Rows {
		add(middleBlock, name, row(name).title(), r.Params.Seeds)
	}
	for _, name := range r.Params.Direct {
		add(bottomBlock, name, row(name).title(), r.Params.Seeds)
	}
	optimal := newLine(referenceBlock, "Optimal", "Optimal")
	for i := range optimal.accuracy {
		optimal.accuracy[i] = []float64{optimal.paper.Accuracy[i].Mean}
	}
	all = append(all, optimal)
	r.Facts = map[string]any{"lines": all}
	return r, all
}

func byRow(claims []runs.Claim) map[string]runs.Verdict {
	out := map[string]runs.Verdict{}
	for _, c := range claims {
		for _, row := range c.Rows {
			if before, ok := out[row]; !ok || before == runs.Holds {
				out[row] = c.Holds
			}
		}
	}
	return out
}

// With the paper's own means and little noise, what the paper says of its lines holds.
func TestOrdersHoldOnThePapersOwnMeans(t *testing.T) {
	r, _ := asPrinted()
	claims := judgeOrders(r)
	found := byRow(claims)
	for _, row := range []string{
		"LI001", "LI002", "LI003", "LI006", "LI010", "LI058", "LI059", "LI060", "LI061", "LI176", "LI177", "LI178",
		"LI245", "LI251", "LI252",
	} {
		require.Equal(t, runs.Holds, found[row], row)
	}
	for _, c := range claims {
		require.True(t, c.Paper.Valid(), c.Name)
	}
}

func TestOrdersFailWhereALineIsAbove(t *testing.T) {
	r, all := asPrinted()
	for n, l := range all {
		for i := range lookupSets {
			if l.name == best201 {
				mean := map[string]float64{middleBlock: 90, bottomBlock: 91}[l.block]
				all[n].accuracy[i] = around(mean, r.Params.Seeds)
			}
		}
	}
	found := byRow(judgeOrders(r))
	for _, row := range []string{"LI001", "LI060", "LI252"} {
		require.Equal(t, runs.Fails, found[row], row)
	}
}

// A line that is missing leaves what speaks of it open, and says so.
func TestOrdersOfMissingLinesAreNotRun(t *testing.T) {
	r, all := asPrinted()
	rea := &all[0]
	rea.accuracy, rea.missing = [3][]float64{}, [3]string{"not run", "not run", "not run"}
	for _, c := range judgeOrders(r) {
		if c.Rows[0] == "LI001" {
			require.Equal(t, runs.NotKnown, c.Holds)
			require.Contains(t, c.Note, "not run: REA: the run store lacks it")
		}
	}
	r, _ = asPrinted()
	r.Params.Preset = "quick"
	found := byRow(judgeOrders(r))
	require.Equal(t, runs.NotKnown, found["LI060"], "small searches against full runs on the table")
	require.Equal(t, runs.Holds, found["LI058"], "small searches against each other")
}

func TestSearchTimesAndTheirRatios(t *testing.T) {
	r, all := asPrinted()
	seconds := map[string]float64{"gaea-darts": 742, "darts": 1000, "gdas": 1e6}
	for n := range all {
		l := &all[n]
		if of := seconds[l.name]; of > 0 {
			for seed := range r.Params.Seeds {
				l.seconds = append(l.seconds, of*(1+0.01*float64(seed%2)))
			}
		}
	}
	claims := judgeNumbers(r)
	found := byRow(claims)
	require.Equal(t, runs.Holds, found["LI131"], "1,000 s are no longer than the paper's 10,683")
	require.Equal(t, runs.Fails, found["LI127"])
	require.Equal(t, runs.Holds, found["LI179"])
	require.Equal(t, runs.NotKnown, found["LI180"])
	for _, c := range claims {
		if c.Rows[0] == "LI179" {
			require.InDelta(t, 0.742, float64(c.Ours), 1e-9)
			require.InDelta(t, 0.742, float64(c.Paper), 5e-4)
		}
	}
}

// All settings of the paper's presets are the paper's.
func TestSettingsAreThePapers(t *testing.T) {
	entry, err := catalog.Lookup("li2021/table2")
	require.NoError(t, err)
	for _, c := range entry.Settings() {
		require.Equal(t, runs.Holds, c.Holds, "%s: %v, the paper has %v", c.Name, c.Ours, c.Paper)
		require.NotEmpty(t, c.Rows)
	}
}
