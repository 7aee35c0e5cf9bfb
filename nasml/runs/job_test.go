package runs

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/internal/files"
)

// testStore is an empty store and a context in which nothing is drawn.
func testStore(t *testing.T) (*Store, context.Context) {
	t.Helper()
	s, err := Open(filepath.Join(t.TempDir(), "store"))
	require.NoError(t, err)
	return s, WithProgress(t.Context(), Silent)
}

// fillStore computes trials whose value x is their seed, and returns the records.
func fillStore(t *testing.T, s *Store, trials []Trial) []*Record {
	t.Helper()
	records, err := s.Compute(
		WithProgress(t.Context(), Silent),
		trials,
		Options{},
		func(_ context.Context, job *Job) error {
			job.Backend, job.Device = "test", "none"
			for i, trial := range job.Trials {
				if err := job.Done(i, seedResult(trial)); err != nil {
					return err
				}
			}
			return nil
		},
	)
	require.NoError(t, err)
	return records
}

func seedResult(t Trial) Result { return Result{Values: map[string]float64{"x": float64(t.Seed)}} }

func mustNotCompute(context.Context, *Job) error { return errors.New("computed again") }

func TestComputeOnlyWhatIsMissing(t *testing.T) {
	s, ctx := testStore(t)
	fillStore(t, s, toyTrials(0, 3))

	trials := append(toyTrials(5, 1), toyTrials(0, 5)...)
	trials = append(trials, trials[0]) // asked for twice, computed once
	calls := 0
	records, err := s.Compute(WithScale(ctx, "quick"), trials, Options{}, func(_ context.Context, job *Job) error {
		calls++
		require.Equal(t, []int{0, 4, 5}, job.Index)
		require.Equal(t, []Trial{trials[0], trials[4], trials[5]}, job.Trials)
		var results []Result
		for _, trial := range job.Trials {
			results = append(results, seedResult(trial))
		}
		return job.DoneAll(results)
	})
	require.NoError(t, err)
	require.Equal(t, 1, calls)
	require.Len(t, records, 7)
	for i, seed := range []float64{5, 0, 1, 2, 3, 4, 5} {
		require.Equal(t, seed, records[i].Values["x"])
	}
	require.Equal(t, "quick", records[0].Scale)
	require.Equal(t, 3, records[0].Batch)
	require.Empty(t, records[1].Scale)

	again, err := s.Compute(ctx, trials, Options{}, mustNotCompute)
	require.NoError(t, err)
	require.Equal(t, records[4], again[4], "what is read is what was stored")
}

func TestComputeInBatches(t *testing.T) {
	s, ctx := testStore(t)
	var sizes []int
	_, err := s.Compute(ctx, toyTrials(0, 7), Options{MaxBatch: 3}, func(_ context.Context, job *Job) error {
		sizes = append(sizes, len(job.Trials))
		for i, trial := range job.Trials {
			if err := job.Done(i, seedResult(trial)); err != nil {
				return err
			}
		}
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, []int{3, 3, 1}, sizes)
}

// Missing trials are announced once, before the first job; a repeated trial counts once.
func TestComputeTellsWhatIsMissing(t *testing.T) {
	s, ctx := testStore(t)
	done := func(_ context.Context, job *Job) error { return job.Done(0, seedResult(job.Trials[0])) }
	_, err := s.Compute(ctx, toyTrials(1, 1), Options{}, done)
	require.NoError(t, err)
	var told [][]int
	jobs := 0
	o := Options{MaxBatch: 1, Missing: func(at []int) {
		require.Zero(t, jobs)
		told = append(told, slices.Clone(at))
	}}
	trials := append(toyTrials(0, 3), toyTrials(0, 1)...)
	_, err = s.Compute(ctx, trials, o, func(ctx context.Context, job *Job) error {
		jobs++
		return done(ctx, job)
	})
	require.NoError(t, err)
	require.Equal(t, [][]int{{0, 2}}, told)
	require.Equal(t, 2, jobs)
	jobs = 0
	_, err = s.Compute(ctx, trials, o, mustNotCompute)
	require.NoError(t, err)
	require.Empty(t, told[1])
}

func TestComputeKeepsWhatWasFinished(t *testing.T) {
	s, ctx := testStore(t)
	stop := errors.New("stop")
	_, err := s.Compute(ctx, toyTrials(0, 3), Options{}, func(_ context.Context, job *Job) error {
		require.NoError(t, job.Done(1, seedResult(job.Trials[1])))
		return stop
	})
	require.ErrorIs(t, err, stop)
	_, err = s.Compute(ctx, toyTrials(1, 1), Options{}, mustNotCompute)
	require.NoError(t, err)
	_, err = s.Compute(ctx, toyTrials(0, 3), Options{}, func(_ context.Context, job *Job) error {
		require.Equal(t, []int{0, 2}, job.Index)
		return nil
	})
	require.ErrorContains(t, err, "without a result for trial 0 of 2")

	locks, err := os.ReadDir(filepath.Join(s.Dir(), "locks"))
	require.NoError(t, err)
	require.Empty(t, locks, "locks are taken back")
}

func TestComputeCancelled(t *testing.T) {
	s, ctx := testStore(t)
	fillStore(t, s, toyTrials(0, 1))
	ctx, cancel := context.WithCancel(ctx)
	_, err := s.Compute(ctx, toyTrials(0, 3), Options{}, func(context.Context, *Job) error {
		cancel()
		return nil // as a loop that looks at ctx and ends
	})
	require.ErrorIs(t, err, context.Canceled)
	_, err = s.Compute(ctx, toyTrials(0, 1), Options{}, mustNotCompute)
	require.NoError(t, err, "what the store has can be read for a picture of what there is")
}

func TestDoneRefusesWhatIsNotANumber(t *testing.T) {
	for name, c := range map[string]struct {
		result Result
		says   string
	}{
		"nan value": {Result{Values: map[string]float64{"a": 1, "loss": math.NaN()}},
			`value "loss" must be finite, got NaN`},
		"inf value": {Result{Values: map[string]float64{"a": math.Inf(-1)}}, `value "a" must be finite, got -Inf`},
		"inf series": {Result{Series: map[string][]float64{"curve": {1, math.Inf(1)}}},
			`series "curve" must be finite, got +Inf at position 1`},
		"nothing": {Result{}, "neither values nor series"},
	} {
		t.Run(name, func(t *testing.T) {
			s, ctx := testStore(t)
			for _, all := range []bool{false, true} {
				_, err := s.Compute(ctx, toyTrials(0, 2), Options{}, func(_ context.Context, job *Job) error {
					if all {
						return job.DoneAll([]Result{seedResult(job.Trials[0]), c.result})
					}
					return job.Done(1, c.result)
				})
				require.ErrorContains(t, err, c.says)
				require.ErrorContains(t, err, "toy/walk")
			}
			records, broken, err := s.List()
			require.NoError(t, err)
			require.Empty(t, records, "a batch is stored whole or not at all")
			require.Empty(t, broken)
			requireNoTemp(t, s)
		})
	}
}

func requireNoTemp(t *testing.T, s *Store) {
	t.Helper()
	err := filepath.WalkDir(s.Dir(), func(path string, _ os.DirEntry, err error) error {
		require.False(t, files.IsTemp(path), path)
		return err
	})
	require.NoError(t, err)
}

func TestCheckpoint(t *testing.T) {
	s, ctx := testStore(t)
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s.now = func() time.Time { return now }
	stop := errors.New("stop")
	job1 := func(_ context.Context, job *Job) error {
		_, err := job.Load()
		require.ErrorIs(t, err, ErrNotFound)
		require.ErrorIs(t, err, fs.ErrNotExist, "package search knows no store")
		now = now.Add(10 * time.Second)
		saved, err := job.SaveEvery(time.Minute, writeString("too early"))
		require.NoError(t, err)
		require.False(t, saved)
		now = now.Add(50 * time.Second)
		saved, err = job.SaveEvery(time.Minute, func(w io.Writer) error {
			now = now.Add(10 * time.Second) // a slow disk
			return writeString("first")(w)
		})
		require.NoError(t, err)
		require.True(t, saved)
		now = now.Add(199 * time.Second)
		saved, err = job.SaveEvery(time.Minute, writeString("too early"))
		require.NoError(t, err)
		require.False(t, saved, "20 × 10 s after a save that took 10 s")
		require.ErrorIs(t, job.Save(func(w io.Writer) error { _ = writeString("half")(w); return stop }), stop)
		return stop
	}
	_, err := s.Compute(ctx, toyTrials(0, 2), Options{}, job1)
	require.ErrorIs(t, err, stop)
	requireNoTemp(t, s)

	reversed := []Trial{toyTrials(0, 2)[1], toyTrials(0, 2)[0]}
	now = now.Add(24 * time.Hour)
	records, err := s.Compute(ctx, reversed, Options{}, func(_ context.Context, job *Job) error {
		require.Equal(t, "first", loadString(t, job))
		now = now.Add(5 * time.Second)
		return job.DoneAll([]Result{seedResult(job.Trials[0]), seedResult(job.Trials[1])})
	})
	require.NoError(t, err)
	require.Equal(t, 1, records[0].Resumed)
	require.Equal(t, 65.0, records[0].Seconds, "60 s before the checkpoint and 5 s after it")
	require.Equal(t, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), records[0].Started)
	left, err := os.ReadDir(filepath.Join(s.Dir(), "checkpoints"))
	require.NoError(t, err)
	require.Empty(t, left, "removed with the last trial")
}

func writeString(text string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}
}

func loadString(t *testing.T, job *Job) string {
	t.Helper()
	r, err := job.Load()
	require.NoError(t, err)
	data, err := io.ReadAll(r)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	return string(data)
}

func TestBrokenCheckpointIsSetAside(t *testing.T) {
	damage := map[string]func([]byte) []byte{
		"empty":     func([]byte) []byte { return nil },
		"truncated": func(b []byte) []byte { return b[:len(b)-1] },
		"flipped":   func(b []byte) []byte { b[len(b)/2] ^= 1; return b },
		"longer":    func(b []byte) []byte { return append(b, 0) },
	}
	for name, change := range damage {
		t.Run(name, func(t *testing.T) {
			s, ctx := testStore(t)
			_, err := s.Compute(ctx, toyTrials(0, 2), Options{}, func(_ context.Context, job *Job) error {
				require.NoError(t, job.Save(writeString(strings.Repeat("state ", 100))))
				path := s.medium.Where(job.checkpointName())
				data, err := os.ReadFile(path)
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(path, change(data), 0o644))
				_, err = job.Load()
				require.ErrorIs(t, err, ErrNotFound)
				require.ErrorIs(t, err, fs.ErrNotExist)
				require.ErrorContains(t, err, "set aside")
				require.NoFileExists(t, path)
				return job.DoneAll([]Result{seedResult(job.Trials[0]), seedResult(job.Trials[1])})
			})
			require.NoError(t, err)
			aside, err := filepath.Glob(filepath.Join(s.Dir(), "broken", "*.ckpt"))
			require.NoError(t, err)
			require.Len(t, aside, 1)
		})
	}
}

// said is a progress that keeps its notes.
type said struct {
	Progress
	notes []string
}

func (s *said) Step(_ int, note string) { s.notes = append(s.notes, note) }

// A checkpoint of other trials under the name of these is set aside, too.
func TestCheckpointOfOtherTrialsIsSetAside(t *testing.T) {
	s, ctx := testStore(t)
	stop := errors.New("stop")
	var other string
	_, err := s.Compute(ctx, toyTrials(0, 1), Options{}, func(_ context.Context, job *Job) error {
		require.NoError(t, job.Save(writeString("of seed 0")))
		require.Equal(t, "of seed 0", loadString(t, job))
		other = s.medium.Where(job.checkpointName())
		return stop
	})
	require.ErrorIs(t, err, stop)
	_, err = s.Compute(ctx, toyTrials(1, 2), Options{}, func(_ context.Context, job *Job) error {
		data, err := os.ReadFile(other)
		require.NoError(t, err)
		path := s.medium.Where(job.checkpointName())
		require.NoError(t, os.WriteFile(path, data, 0o644))
		progress := &said{Progress: Silent}
		_, err = job.LoadTelling(progress)()
		require.ErrorIs(t, err, ErrNotFound)
		require.Len(t, progress.notes, 1)
		require.Contains(t, progress.notes[0], "by trials with other parameters; set aside as ")
		require.Contains(t, progress.notes[0], "; it starts again")
		require.NoFileExists(t, path)
		return stop
	})
	require.ErrorIs(t, err, stop)
}

func TestFullDisk(t *testing.T) {
	for _, what := range []string{"record", "checkpoint"} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			cmd, _, out := startChild(t, "full", dir, what)
			require.True(t, out.Scan())
			require.Contains(t, out.Text(), "file too large")
			require.Contains(t, out.Text(), "free some space and run again")
			require.Error(t, cmd.Wait())

			s, err := Open(filepath.Join(dir, "store"))
			require.NoError(t, err)
			requireNoTemp(t, s)
			report, err := s.Verify()
			require.NoError(t, err)
			require.Equal(t, Report{Records: 1, Checkpoints: 1}, report, "what was there before is whole")
			records := fillStore(t, s, toyTrials(0, 3))
			require.Equal(t, 1.0, records[0].Values["x"], "not computed again")
		})
	}
}
