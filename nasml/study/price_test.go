package study

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"runtime"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/runs"
)

// bench is what a trial of these tests depends on.
type bench struct {
	Method string `json:"method"`
	Steps  int    `json:"steps"`
}

// batch are records of one job that a machine like this one computed in so many seconds.
func batch(started int, of bench, trials int, seconds float64) (all []*runs.Record) {
	text, _ := json.Marshal(of)
	for i := range trials {
		all = append(all, &runs.Record{
			Trial: runs.Trial{Figure: "test/study", Params: json.RawMessage(text), Seed: uint64(i)},
			Host:  runs.Host{CPUs: runtime.NumCPU()}, Started: time.Unix(int64(started), 0), Batch: trials,
			Seconds: seconds * float64(i+1) / float64(trials), // one after the other
		})
	}
	return all
}

func steps(r *runs.Record) float64 {
	var b bench
	_ = json.Unmarshal(r.Trial.Params.(json.RawMessage), &b)
	return float64(b.Steps)
}

func TestPricesOfBatches(t *testing.T) {
	t.Setenv("GOMLX_BACKEND", "")
	records := append(batch(1, bench{"a", 100}, 4, 200), batch(2, bench{"b", 10}, 1, 90)...)
	all := prices(records, likeness, steps)
	a, b := likeness(bench{"a", 3}), likeness(bench{"b", 3})
	require.Equal(t, []price{{a, 100, 0.5, 0}, {b, 10, 9, 0}}, all, "200 s for 400 steps, and 90 s for 10")

	half := prices(records[2:4], likeness, steps)
	require.Equal(t, []price{{a, 100, 0.5, 0}}, half, "half of a batch, half of its time")

	records[4].Processor = 50
	waited := prices(records[4:], likeness, steps)[0]
	require.InDelta(t, 5, waited.seconds, 1e-12, "it waited for 40 s")
	require.InDelta(t, 5/float64(runtime.NumCPU()), waited.least, 1e-12, "all processors may have worked for it")
	records[4].Processor = 170
	require.InDelta(t, 9, prices(records[4:], likeness, steps)[0].seconds, 1e-12, "on two processors")

	records[4].Host.CPUs++
	require.Len(t, prices(records, likeness, steps), 1, "another kind of machine")
	t.Setenv("GOMLX_BACKEND", "xla:cuda")
	require.Empty(t, prices(records, likeness, steps))
	t.Setenv("GOMLX_BACKEND", "")
	require.Empty(t, prices(records, likeness, func(*runs.Record) float64 { return 0 }), "of an unknown amount of work")
}

func TestTypicalPrice(t *testing.T) {
	all := []price{
		{"a", 100, 1, 0}, {"a", 100, 2, 0}, {"a", 100, 2.5, 0}, {"a", 1, 7, 0}, {"b", 100, 0.5, 0},
	}
	of := func(like string, amount float64, model bool) float64 {
		seconds, known := typical(all, like, amount, model)
		require.Equal(t, known, seconds > 0)
		return seconds
	}
	require.InDelta(t, 2, of("a", 50, false), 0, "the median of its like at about as much work")
	require.InDelta(t, 7, of("a", 2, false), 0)
	require.InDelta(t, 2, of("a", 1e4, false), 0, "nothing is near: all of its like")
	require.InDelta(t, 1, of("c", 50, false), 0, "nothing is like it: all of about as much work")
	require.Zero(t, of("a", 50, true), "a model knows better than trials beside which anything may have run")
	for _, p := range []struct{ seconds, least, want float64 }{
		{2, 1.5, 1.5}, {0.8, 0.4, 0.8}, {2, 0.5, 1}, {7, 3.5, 0}, {0.3, 0.2, 0},
	} {
		all = []price{{"a", 100, p.seconds, p.least}}
		require.InDelta(t, p.want, of("a", 50, true), 0, "as near the model as the processor time allows")
	}
	require.Zero(t, of("a", 1e4, true), "a model knows better than trials a hundred times as small")
	all = []price{{"a", 100, 1, 0}, {"a", 1, 7, 0}, {"a", 100, 0.4, 0.2}}
	require.InDelta(t, 0.4, of("a", 50, false), 0, "processor time is known: what ran beside does not count")
	require.InDelta(t, 7, of("a", 2, false), 0, "of other work it says less")
	all = nil
	require.Zero(t, of("a", 50, false))
}

// Settings are alike that differ in numbers alone, wherever these stand.
func TestLikeness(t *testing.T) {
	type nested struct {
		Of    []bench `json:"of"`
		Exact bool    `json:"exact"`
	}
	base := nested{[]bench{{"a", 1}}, true}
	require.Equal(t, likeness(base), likeness(nested{[]bench{{"a", 2}}, true}))
	require.NotEqual(t, likeness(base), likeness(nested{[]bench{{"b", 1}}, true}))
	require.NotEqual(t, likeness(base), likeness(nested{[]bench{{"a", 1}}, false}))
	text, err := json.Marshal(base)
	require.NoError(t, err)
	require.Equal(t, likeness(base), likeness(json.RawMessage(text)), "as a record has it")
}

// A case takes what shipped trials of its study took, whatever its own model says: with
// units where it has none, and by the model alone where that knows better.
func TestAForecastLearnsFromRecords(t *testing.T) {
	t.Setenv("GOMLX_BACKEND", "")
	store, err := runs.Open(t.TempDir())
	require.NoError(t, err)
	s := Study{ID: "test/study", Code: toy, Amount: func(params json.RawMessage) float64 {
		var b bench
		_ = json.Unmarshal(params, &b)
		return float64(b.Steps)
	}}
	of := func(b bench, seconds float64) Case {
		c := Case{Params: b, Units: b.Steps}
		if seconds > 0 {
			c.Forecast = func() float64 { return seconds }
		}
		return c
	}
	require.InDelta(t, 70, s.Forecasts(store, nil)(of(bench{"a", 50}, 70)), 0, "nothing is stored")
	require.Zero(t, s.Forecasts(store, nil)(of(bench{"a", 50}, 0)))

	code, err := toy.Version()
	require.NoError(t, err)
	records := append(batch(1, bench{"a", 100}, 4, 200), batch(2, bench{"b", 10}, 1, 90)...)
	learned := s.Forecasts(store.With(shipped(t, code, records...)), nil)
	require.InDelta(t, 0.5*50, learned(of(bench{"a", 50}, 0)), 1e-9)
	require.InDelta(t, 9*5, learned(of(bench{"b", 5}, 0)), 1e-9)
	require.InDelta(t, 0.5*70, learned(Case{Params: bench{"a", 50}, Units: 50, Work: 70}), 1e-9, "units are too rough")
	require.InDelta(t, 50, learned(of(bench{"a", 50}, 50)), 1e-9, "what ran beside is not known")
	silent := of(bench{"a", 50}, 0)
	silent.Forecast = func() float64 { return 0 }
	require.Zero(t, learned(silent), "a model that knows nothing of this machine")

	for i, r := range records {
		r.Processor = []float64{50, 100, 150, 200, 90}[i]
	}
	timed := s.Forecasts(store.With(shipped(t, code, records...)), nil)
	require.InDelta(t, 0.5*50, timed(of(bench{"a", 50}, 50)), 1e-9, "a model of a second a step was twice too much")
	require.InDelta(t, 5, timed(of(bench{"b", 5}, 5)), 1e-9, "nine times the model: it was paused")

	// Without Amount the cases themselves say how much work their records were.
	s.Amount = nil
	other := s.Forecasts(store.With(shipped(t, code, records...)), []Case{{Params: bench{"a", 100}, Units: 100}})
	require.InDelta(t, 0.5*50, other(of(bench{"a", 50}, 0)), 1e-9)

	// Without units only trials of the same settings say anything.
	a, b := Case{Params: bench{"a", 100}}, Case{Params: bench{"a", 50}}
	same := s.Forecasts(store.With(shipped(t, code, records...)), []Case{a, b})
	require.InDelta(t, 50, same(a), 1e-9)
	require.Zero(t, same(b))
}

// shipped is a bundle of the records as the study has them, whole.
func shipped(t *testing.T, code string, records ...*runs.Record) fstest.MapFS {
	t.Helper()
	var lines bytes.Buffer
	for _, r := range records {
		r.Trial.Code = code
		var err error
		r.Key, err = r.Trial.Key()
		require.NoError(t, err)
		line, err := json.Marshal(r)
		require.NoError(t, err)
		var fields map[string]any
		require.NoError(t, json.Unmarshal(line, &fields))
		delete(fields, "sum")
		line, err = json.Marshal(fields)
		require.NoError(t, err)
		r.Sum = fmt.Sprintf("%x", sha256.Sum256(line))
	}
	require.NoError(t, runs.WriteBundle(&lines, records))
	return fstest.MapFS{"a.jsonl": {Data: lines.Bytes()}}
}
