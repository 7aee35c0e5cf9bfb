package runs

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// withUse makes a process of which the uses are as a test sets them.
func withUse(t *testing.T) *Use {
	t.Helper()
	now, real := new(Use), processUse
	processUse = func() Use { return *now }
	t.Cleanup(func() { processUse = real })
	return now
}

func TestARecordKeepsWhatItsBatchTook(t *testing.T) {
	s, ctx := testStore(t)
	now := withUse(t)
	*now = Use{100, 1e9}
	stop := errors.New("stopped")
	_, err := s.Compute(ctx, toyTrials(0, 2), Options{}, func(_ context.Context, j *Job) error {
		*now = Use{107, 3e9}
		require.NoError(t, j.Save(writeString("state")))
		return stop
	})
	require.ErrorIs(t, err, stop)
	*now = Use{1, 1e9} // another process
	records, err := s.Compute(ctx, toyTrials(0, 2), Options{}, func(_ context.Context, j *Job) error {
		require.Equal(t, "state", loadString(t, j))
		*now = Use{6, 2e9}
		return j.DoneAll([]Result{seedResult(j.Trials[0]), seedResult(j.Trials[1])})
	})
	require.NoError(t, err)
	require.Equal(t, Use{12, 3e9}, records[0].Use, "7 s, and 5 s after it")
	require.Equal(t, records[0].Use, records[1].Use, "one graph")
}

func TestWhatIsNotKnownOfAUseIsLeftOut(t *testing.T) {
	s, ctx := testStore(t)
	now := withUse(t)
	*now = Use{100, 1e9}
	of := func(trials []Trial, fn func(j *Job) error) Use {
		records, err := s.Compute(ctx, trials, Options{}, func(_ context.Context, j *Job) error {
			now.Processor += 5
			return fn(j)
		})
		require.NoError(t, err)
		return records[0].Use
	}
	done := func(j *Job) error { return j.Done(0, seedResult(j.Trials[0])) }
	require.Equal(t, Use{5, 0}, of(toyTrials(0, 1), done), "the peak was reached before")
	require.Equal(t, Use{7, 0}, of(toyTrials(1, 2), func(j *Job) error {
		second := j.Done(1, seedResult(j.Trials[1]))
		now.Processor += 2
		return errors.Join(second, done(j))
	}), "from the start of a batch whose trials end one by one")
	require.Zero(t, of(toyTrials(3, 1), func(j *Job) error {
		require.Zero(t, of(toyTrials(4, 1), done), "beside another")
		return done(j)
	}), "beside another, which has ended")
	require.Equal(t, Use{5, 0}, of(toyTrials(5, 1), done), "alone again")

	require.Equal(t, Use{0, 3}, Use{0, 3}.then(Use{5, 2}), "a checkpoint of before there were any")
	require.Equal(t, Use{0, 3}, Use{5, 3}.then(Use{}), "then beside another")
}

// What is not known is not written, so that records of before have the sums that they had.
func TestARecordWithoutUseIsWrittenAsBefore(t *testing.T) {
	r := Record{Trial: toyTrials(0, 1)[0], Values: map[string]float64{"x": 1}, Seconds: 2, Batch: 1}
	r.Key = keyOf(t, r.Trial)
	line, err := r.encode()
	require.NoError(t, err)
	var fields map[string]any
	require.NoError(t, json.Unmarshal(line, &fields))
	require.NotContains(t, fields, "processor")
	require.NotContains(t, fields, "peak")
	sum := r.Sum

	r.Use = Use{3, 1e9}
	line, err = r.encode()
	require.NoError(t, err)
	require.NotEqual(t, sum, r.Sum, "a sum is over all that is written")
	back, err := decode(line)
	require.NoError(t, err)
	require.Equal(t, r.Use, back.Use)
	require.Equal(t, keyOf(t, toyTrials(0, 1)[0]), back.Key, "no key changes")
}
