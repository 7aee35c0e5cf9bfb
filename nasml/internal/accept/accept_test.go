package accept

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/runs"
)

func record(params string, key string, seconds float64) Trial {
	return Trial{
		record: &runs.Record{
			Key:     key,
			Seconds: seconds,
			Batch:   1,
			Trial:   runs.Trial{Figure: "p/f", Params: json.RawMessage(params)},
		},
	}
}

func TestABranchIsTheWordsAndSwitchesOfATrial(t *testing.T) {
	a := branch(record(`{"method": "eg", "width": 3, "pool": ["relu"], "deep": {"on": true}}`, "a", 1).record.Trial)
	require.Equal(t, "p/f method=eg on=true", a)
	require.Equal(t, a,
		branch(record(`{"method": "eg", "width": 9, "pool": [], "deep": {"on": true}}`, "b", 1).record.Trial))
	require.NotEqual(t, a, branch(record(`{"method": "eg", "width": 3, "deep": {"on": false}}`, "c", 1).record.Trial))
}

func TestPickTakesTheCheapestOfEveryBranchAndOneMore(t *testing.T) {
	trials := []Trial{
		record(`{"m": "a"}`, "a1", 5), record(`{"m": "a"}`, "a2", 2), record(`{"m": "a"}`, "a3", 2.5),
		record(`{"m": "b"}`, "b1", 100), record(`{"m": "b"}`, "b2", 3), record(`{"m": "c"}`, "c1", 99),
	}
	keys := func(source string) (keys []string, left []string) {
		picked, left := Pick(trials, source, 10)
		for _, p := range picked {
			keys = append(keys, p.record.Key)
		}
		return keys, left
	}
	drawn := map[string]bool{}
	for _, source := range []string{"s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8"} {
		picked, left := keys(source)
		require.Subset(t, picked, []string{"a2", "b2"})
		require.Equal(t, []string{"p/f m=c (its cheapest trial took 99 s)"}, left)
		require.NotContains(t, picked, "b1", "it takes too long")
		for _, key := range picked {
			drawn[key] = true
		}
		again, _ := keys(source)
		require.Equal(t, picked, again)
	}
	require.True(t, drawn["a1"] && drawn["a3"], "other sources draw other trials: %v", drawn)
}

func result(backend string, values map[string]float64, series map[string][]float64) *runs.Record {
	return &runs.Record{
		Backend: backend,
		Device:  "cpu",
		Host:    runs.Host{Processor: "AuthenticAMD 25 17"},
		Values:  values,
		Series:  series,
		Trial:   runs.Trial{Params: json.RawMessage("{}")},
	}
}

func TestHostArithmeticHasToAgreeBitForBit(t *testing.T) {
	values := map[string]float64{"x": 1}
	moved, _ := compare(result("gonum", values, nil), result("host", values, nil))
	require.Empty(t, moved)
	now := result("host", map[string]float64{"x": 1 + 1e-15}, nil)
	now.Host.Processor = "GenuineIntel 6 143"
	moved, _ = compare(result("gonum", values, nil), now)
	require.Len(t, moved, 1)
	require.True(t, moved[0].Counts())
	require.Contains(t, moved[0].String(), "x[0] was 1 and is 1.00000")
	moved, _ = compare(result("host", nil, map[string][]float64{"y": {1e300, 1e-30}}),
		result("host", nil, map[string][]float64{"y": {1e300, 2e-30}}))
	require.Len(t, moved, 1, "a difference so small that, relative to the largest, it is 0")
}

func TestFloat32ThroughXLAHasATolerance(t *testing.T) {
	old := result("xla:cpu", nil, map[string][]float64{"loss": {2, 1e-4}})
	moved, largest := compare(old, result("xla:cpu", nil, map[string][]float64{"loss": {2.002, 2e-4}}))
	require.Empty(t, moved, "relative to the largest of the series")
	require.InDelta(t, 1e-3, largest, 1e-6)
	moved, _ = compare(result("xla", map[string]float64{"identity": 1e-16}, nil),
		result("xla:cpu", map[string]float64{"identity": 0}, nil))
	require.Empty(t, moved, "rounding")
	moved, _ = compare(old, result("xla:cpu", nil, map[string][]float64{"loss": {2.1, 1e-4}}))
	require.Len(t, moved, 1)
	require.True(t, moved[0].Counts())
	require.InDelta(t, 0.05, moved[0].Relative, 1e-9)
}

func TestRoundingOfAnotherMachineDoesNotCount(t *testing.T) {
	for name, elsewhere := range map[string]func(*runs.Record){
		"unknown processor": func(r *runs.Record) { r.Host.Processor = "" },
		"another processor": func(r *runs.Record) { r.Host.Processor = "GenuineIntel 6 143" },
		"more cores":        func(r *runs.Record) { r.Host.CPUs = 16 },
		"a GPU":             func(r *runs.Record) { r.Backend = "xla:cuda" },
	} {
		t.Run(name, func(t *testing.T) {
			old := result("xla:cpu", nil, map[string][]float64{"loss": {2, 1}})
			elsewhere(old)
			moved, _ := compare(old, result("xla:cpu", nil, map[string][]float64{"loss": {2, 1.5}}))
			require.Len(t, moved, 1)
			require.False(t, moved[0].Counts())
			moved, _ = compare(old, result("xla:cpu", nil, map[string][]float64{"loss": {2}}))
			require.Len(t, moved, 1)
			require.True(t, moved[0].Counts(), "a number is missing")
		})
	}
}

func TestWhatIsMissingIsADifference(t *testing.T) {
	old := result("host", map[string]float64{"x": 1}, map[string][]float64{"y": {1, 2}})
	for want, now := range map[string]*runs.Record{
		"was not computed":          nil,
		"y had 2 numbers and has 1": result("host", map[string]float64{"x": 1}, map[string][]float64{"y": {1}}),
		"x had 1 numbers and has 0": result("host", nil, map[string][]float64{"y": {1, 2}}),
		"z had 0 numbers and has 1": result("host", map[string]float64{"x": 1, "z": 2},
			map[string][]float64{"y": {1, 2}}),
	} {
		moved, _ := compare(old, now)
		require.Len(t, moved, 1)
		require.Contains(t, moved[0].String(), want)
	}
}
