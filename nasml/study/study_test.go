package study

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/trial"
)

var toy = code.Define("test/study", "trial")

// counting is a progress that adds up.
type counting struct {
	total, steps, skips atomic.Int64
	ended               atomic.Bool
}

func (c *counting) Start(total int, _ string) { c.total.Store(int64(total)) }
func (c *counting) Skip(n int)                { c.skips.Add(int64(n)) }
func (c *counting) Step(n int, _ string)      { c.steps.Add(int64(n)) }
func (c *counting) Done()                     { c.ended.Store(true) }

func isolated(t *testing.T) (context.Context, *counting) {
	t.Helper()
	store, err := runs.Open(t.TempDir())
	require.NoError(t, err)
	p := new(counting)
	return runs.WithProgress(runs.WithStore(t.Context(), store), p), p
}

type params struct {
	H int `json:"h"`
}

// squares are cases whose value is h²+seed, and how many were computed.
func squares(n int) ([]Case, *atomic.Int64) {
	ran := new(atomic.Int64)
	var cases []Case
	for h := range n {
		cases = append(cases, each(3, func(seed uint64) Case {
			return Case{
				Params: params{h},
				Label:  fmt.Sprintf("h = %d", h),
				Units:  2,
				Run: func(_ context.Context, step Step) (trial.Result, error) {
					ran.Add(1)
					step(1, "half")
					return trial.Result{Values: map[string]float64{"y": float64(h*h) + float64(seed)}}, nil
				},
			}
		})...)
	}
	return cases, ran
}

func TestRunComputesWhatIsMissingInOrder(t *testing.T) {
	ctx, progress := isolated(t)
	cases, ran := squares(4)
	records, err := Study{ID: "test/study", Code: toy}.Run(ctx, cases)
	require.NoError(t, err)
	require.Equal(t, []float64{0, 1, 2, 1, 2, 3, 4, 5, 6, 9, 10, 11}, Values(records, "y"))
	require.EqualValues(t, 12, ran.Load())
	require.EqualValues(t, 24, progress.steps.Load(), "what a case does not count itself is counted for it")
	require.Equal(t, Host, records[0].Backend)

	cases, ran = squares(5)
	records, err = Study{ID: "test/study", Code: toy}.Run(ctx, cases)
	require.NoError(t, err)
	require.Len(t, records, 15)
	require.EqualValues(t, 3, ran.Load(), "only what is new")
	require.EqualValues(t, 24, progress.skips.Load())
	require.EqualValues(t, 30, progress.total.Load())
	require.True(t, progress.ended.Load())
	require.Len(t, Keys(records), 15)
}

func TestAnErrorNamesTheCaseAndKeepsTheOthers(t *testing.T) {
	ctx, _ := isolated(t)
	cases, _ := squares(2)
	cases[4].Run = func(context.Context, Step) (trial.Result, error) {
		return trial.Result{}, errors.New("it diverged")
	}
	s := Study{ID: "test/study", Code: toy, Workers: 1}
	_, err := s.Run(ctx, cases)
	require.EqualError(t, err, "test/study: h = 1, seed 1: it diverged")
	s.StoredOnly = true
	records, err := s.Run(ctx, cases)
	require.NoError(t, err)
	require.Equal(t, []float64{0, 1, 2, 1}, Values(records, "y"))
	require.Nil(t, records[4])
}

func TestShippedRecordsAreFoundBehindTheStore(t *testing.T) {
	ctx, _ := isolated(t)
	cases, _ := squares(1)
	records, err := Study{ID: "test/study", Code: toy}.Run(ctx, cases)
	require.NoError(t, err)
	var bundle sink
	require.NoError(t, runs.WriteBundle(&bundle, records))

	ctx, _ = isolated(t)
	cases, ran := squares(1)
	shipped := fstest.MapFS{"records/study/quick.jsonl": {Data: bundle}}
	again, err := Study{ID: "test/study", Code: toy, Shipped: shipped}.Run(ctx, cases)
	require.NoError(t, err)
	require.Zero(t, ran.Load())
	require.Equal(t, Keys(records), Keys(again))
}

type sink []byte

func (s *sink) Write(p []byte) (int, error) { *s = append(*s, p...); return len(p), nil }

func TestBatchComputesCasesTogether(t *testing.T) {
	ctx, progress := isolated(t)
	cases, _ := squares(2)
	s := Study{
		ID:     "test/study",
		Code:   toy,
		Device: func() (string, string, error) { return "xla:cpu", "a device", nil },
	}
	compute := func(_ context.Context, _ int, job *runs.Job, p runs.Progress) error {
		var results []trial.Result
		for _, t := range job.Trials {
			results = append(results, trial.Result{Values: map[string]float64{"h": float64(t.Params.(params).H)}})
			p.Step(2, "")
		}
		return job.DoneAll(results)
	}
	records, err := s.Batches(ctx, [][]Case{cases}, runs.Options{}, compute)
	require.NoError(t, err)
	require.Equal(t, []float64{0, 0, 0, 1, 1, 1}, Values(records[0], "h"))
	require.Equal(t, "xla:cpu", records[0][0].Backend)
	require.EqualValues(t, 12, progress.steps.Load())
	_, err = Study{ID: "test/study", Code: toy}.Run(ctx, nil)
	require.NoError(t, err)
}

// Cases that run one by one are done as they end: where the second of six fails, the
// others are not counted, and where all are there, those that were read are.
func TestAFailedBatchIsNotDone(t *testing.T) {
	ctx, progress := isolated(t)
	cases, _ := squares(2)
	s, fails := Study{ID: "test/study", Code: toy}, 1
	run := func(_ context.Context, _ int, job *runs.Job, p runs.Progress) error {
		if job.Index[0] == fails {
			return errors.New("it diverged")
		}
		p.Step(2, "")
		return job.Done(0, trial.Result{Values: map[string]float64{"h": 1}})
	}
	one := runs.Options{MaxBatch: 1}
	_, err := s.Batches(ctx, [][]Case{cases}, one, run)
	require.ErrorContains(t, err, "it diverged")
	require.EqualValues(t, 2, progress.steps.Load()+progress.skips.Load())
	fails = -1
	_, err = s.Batches(ctx, [][]Case{cases}, one, run)
	require.NoError(t, err)
	require.EqualValues(t, 12, progress.steps.Load(), "the first is read")
	require.EqualValues(t, 2, progress.skips.Load())
}

// What is to come is said before a device is opened: the time of the trials that are not in the store,
// of which what it has is done.
func TestAForecastIsSeenBeforeAnythingStarts(t *testing.T) {
	ctx, _ := isolated(t)
	cases, _ := squares(2)
	for i := range cases {
		cases[i].Forecast = func() float64 { return float64(100 + 700*(i/5)) } // the last takes longer
	}
	run := func(_ context.Context, _ int, job *runs.Job, p runs.Progress) error {
		p.Step(2, "")
		return job.Done(0, trial.Result{Values: map[string]float64{"h": 1}})
	}
	one := runs.Options{MaxBatch: 1}
	_, err := Study{ID: "test/study", Code: toy}.Batches(ctx, [][]Case{cases[:2]}, one, run)
	require.NoError(t, err)

	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	require.NoError(t, err)
	defer func(stderr *os.File) { os.Stderr = stderr }(os.Stderr)
	os.Stderr = log
	seen := ""
	s := Study{ID: "test/study", Code: toy, Title: "six, about 18 min (forecast)"}
	s.Device = func() (string, string, error) {
		text, err := os.ReadFile(log.Name())
		seen += string(text)
		return "", "", errors.Join(err, errors.New("no device"))
	}
	_, err = s.Batches(runs.WithProgress(ctx, runs.NewProgress()), [][]Case{cases}, one, run)
	require.ErrorContains(t, err, "no device")
	require.Regexp(t, `^six, about 18 min \(forecast\) compiling: 33 %, 0.:.. so far, about 18:20 to come\n$`, seen)
}

// Groups are jobs of their own, read or computed one after another under one
// progress.
func TestBatchesComputeGroupByGroup(t *testing.T) {
	ctx, progress := isolated(t)
	cases, _ := squares(3)
	s := Study{ID: "test/study", Code: toy}
	_, err := s.Batches(ctx, [][]Case{cases[3:4]}, runs.Options{}, func(
		_ context.Context, _ int, job *runs.Job, p runs.Progress,
	) error {
		return job.Done(0, trial.Result{Values: map[string]float64{"group": -1}})
	})
	require.NoError(t, err)
	*progress = counting{}
	groups := [][]Case{cases[:3], nil, cases[3:6], cases[6:]}
	compute := func(_ context.Context, group int, job *runs.Job, p runs.Progress) error {
		for i := range job.Trials {
			require.Equal(t, groups[group][job.Index[i]].Params, job.Trials[i].Params)
			if err := job.Done(i, trial.Result{Values: map[string]float64{"group": float64(group)}}); err != nil {
				return err
			}
			p.Step(2, "")
		}
		if group == 3 {
			return errors.New("it diverged")
		}
		return nil
	}
	_, err = s.Batches(ctx, groups, runs.Options{}, compute)
	require.EqualError(t, err, "test/study: it diverged")
	records, err := s.Batches(ctx, groups, runs.Options{}, compute)
	require.NoError(t, err)
	require.Equal(t, []float64{0, 0, 0}, Values(records[0], "group"))
	require.Empty(t, records[1])
	require.Equal(t, []float64{-1, 2, 2}, Values(records[2], "group"))
	require.Equal(t, []float64{3, 3, 3}, Values(records[3], "group"), "what was reported before the error is kept")
	require.EqualValues(t, 2*8, progress.steps.Load())
	require.EqualValues(t, 2+2*9, progress.skips.Load(), "what was read is skipped")

	s.StoredOnly = true
	stored, err := s.Batches(ctx, groups, runs.Options{}, compute)
	require.NoError(t, err)
	require.Equal(t, Keys(records[2]), Keys(stored[2]))
}

func TestChecksNameAllMistakes(t *testing.T) {
	var c Checks
	require.NoError(t, c.Err("figure"))
	c.AtLeast("Seeds", 0, 1)
	c.OneOf("Kind", "x", "a", "b")
	Distinct(&c, "Levels", []float64{1, 1}, 1)
	err := c.Err("figure")
	var usage *catalog.UsageError
	require.ErrorAs(t, err, &usage)
	for _, field := range []string{
		"Seeds must be at least 1, got 0", `Kind must be one of a, b, got "x"`, "none twice, got [1 1]",
	} {
		require.ErrorContains(t, err, field)
	}
	c = nil
	c.AtLeast("Seeds", 1, 1)
	Distinct(&c, "Levels", []float64{1, 2}, 1)
	require.NoError(t, c.Err("figure"))
}

func TestMetaTellsParametersApart(t *testing.T) {
	a, b := Meta("t", "", params{1}), Meta("t", "quick", params{2})
	require.Equal(t, "own", a["scale"])
	require.NotEqual(t, a["params"], b["params"])
}

// What a part says is left is what the cases forecast, which is what a run says too.
func TestAForecastReachesThePart(t *testing.T) {
	store, err := runs.Open(t.TempDir())
	require.NoError(t, err)
	part := new(runs.Part)
	ctx := runs.WithPart(runs.WithProgress(runs.WithStore(t.Context(), store), runs.Silent), part)
	cases := each(3, func(seed uint64) Case {
		return Case{Params: map[string]int{"n": 1}, Forecast: func() float64 { return 100 }}
	})
	cases[2].Forecast = func() float64 { return 1e6 }
	_, err = Study{ID: "toy/forecast", Code: toy}.Run(ctx, cases)
	require.NoError(t, err)
	require.InDelta(t, 1000200, float64(part.Summary().Seconds), 1e-9)
	require.Zero(t, Case{}.Seconds())
}

// each makes a case for every seed 0, …, n−1.
func each(n int, of func(seed uint64) Case) []Case {
	return Map(trial.Seeds(n), func(seed uint64) Case {
		c := of(seed)
		c.Seed = seed
		return c
	})
}
