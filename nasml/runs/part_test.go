package runs

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestPartsAreAllTrialsAndShareNone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, of := rapid.IntRange(1, 50).Draw(t, "trials"), rapid.IntRange(1, 9).Draw(t, "parts")
		owners := make([]int, n)
		for index := 1; index <= of; index++ {
			p := &Part{Index: index, Of: of}
			size := 0
			for i := range n {
				if p.has(i, n, "") {
					owners[i]++
					size++
				}
			}
			require.LessOrEqual(t, size, n/of+1)
		}
		for _, owner := range owners {
			require.Equal(t, 1, owner)
		}
	})
}

func TestAPartComputesItsTrialsOnly(t *testing.T) {
	s, ctx := testStore(t)
	trials := toyTrials(0, 10)
	all := 0
	for index := 1; index <= 3; index++ {
		p := &Part{Index: index, Of: 3}
		records, err := s.Compute(WithPart(ctx, p), trials, Options{}, func(_ context.Context, j *Job) error {
			for i, trial := range j.Trials {
				require.Equal(t, trials[j.Index[i]], trial)
				all++
				require.NoError(t, j.Done(i, seedResult(trial)))
			}
			return nil
		})
		require.NoError(t, err)
		require.Len(t, records, 10)
		for _, r := range records {
			require.NotNil(t, r)
		}
		require.Equal(t, all, p.Summary().Count[TrialDone])
		require.Equal(t, 10-all, p.Summary().Elsewhere)
	}
	require.Equal(t, 10, all)
}

func TestLookingComputesNothingAndTellsTheStates(t *testing.T) {
	s, ctx := testStore(t)
	fillStore(t, s, toyTrials(0, 2))
	cause := errors.New("the trial diverged")
	_, err := s.Compute(ctx, toyTrials(2, 1), Options{}, func(context.Context, *Job) error { return cause })
	require.ErrorIs(t, err, cause)
	stopped, stop := context.WithCancel(ctx)
	_, err = s.Compute(
		stopped,
		toyTrials(3, 1),
		Options{},
		func(context.Context, *Job) error { stop(); return stopped.Err() },
	)
	require.ErrorIs(t, err, context.Canceled, "which is no failure")
	held, err := s.medium.Lock(lockName(keyOf(t, toyTrials(4, 1)[0])))
	require.NoError(t, err)
	defer held.Unlock()
	require.NoError(
		t,
		s.write(lockName(keyOf(t, toyTrials(5, 1)[0])), writeString("")),
	) // as a killed process leaves it

	p := new(Part)
	_, err = s.Compute(WithPart(ctx, p), toyTrials(0, 7), Options{}, mustNotCompute)
	require.NoError(t, err)
	sum := p.Summary()
	require.Equal(
		t,
		map[State]int{TrialDone: 2, TrialFailed: 1, TrialOpen: 2, TrialRunning: 1, TrialLost: 1},
		sum.Count,
	)
	require.Equal(t, map[string]string{keyOf(t, toyTrials(2, 1)[0]): "the trial diverged"}, sum.Failures)

	// A success forgets the failure.
	fillStore(t, s, toyTrials(2, 1))
	p = new(Part)
	_, err = s.Compute(WithPart(ctx, p), toyTrials(2, 1), Options{}, mustNotCompute)
	require.NoError(t, err)
	require.Equal(t, map[State]int{TrialDone: 1}, p.Summary().Count)
	_, err = s.readAll(failedName(keyOf(t, toyTrials(2, 1)[0])))
	require.Error(t, err)
}

// Two hundred runs of a table that end in a second say nothing about ten searches of
// a day each: those go by their own forecast, or by searches that are stored.
func TestTimeLeftIsOfTheTrialsOwnKind(t *testing.T) {
	s, ctx := testStore(t)
	cheap, dear := toyTrials(0, 3), toyTrials(3, 2)
	for i := range dear {
		dear[i].Figure = "toy/searches"
	}
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := begin
	s.now = func() time.Time { at = at.Add(time.Second); return at }
	for i := range cheap { // one after another: a pace needs ends that differ
		fillStore(t, s, cheap[i:i+1])
	}
	look := func(trials []Trial, forecast func(int) float64) PartSummary {
		p := new(Part)
		_, err := s.Compute(WithPart(ctx, p), trials, Options{Forecast: forecast}, mustNotCompute)
		require.NoError(t, err)
		return p.Summary()
	}
	all := append(append([]Trial{}, cheap...), dear...)
	require.Zero(t, float64(look(cheap, nil).Seconds), "nothing is left")
	require.False(t, look(all, nil).Seconds.Valid(), "cheap trials say nothing about dear ones")
	sum := look(all, func(i int) float64 { return 86400 * float64(i) })
	require.InDelta(t, 86400*(3+4), float64(sum.Seconds), 1e-6)
	require.Equal(t, 2, sum.Elsewhere)

	more := toyTrials(0, 5) // two more of the cheap kind
	pace := float64(look(more, nil).Seconds)
	require.Positive(t, pace)
	require.InDelta(t, pace, float64(look(more, func(int) float64 { return 0 }).Seconds), 1e-9, "0: not known")
}

func TestRate(t *testing.T) {
	at := func(seconds ...int) (all []time.Time) {
		for _, s := range seconds {
			all = append(all, time.Unix(int64(s), 0))
		}
		return all
	}
	require.Zero(t, rate(nil))
	require.Zero(t, rate(at(5)))
	require.Zero(t, rate(at(5, 5, 5)), "one graph: all end together")
	require.InDelta(t, 0.1, rate(at(30, 10, 20)), 1e-12)
	require.InDelta(t, 0.1, rate(at(0, 10000, 10010)), 1e-12, "a night in between does not count")
}

func TestParsePart(t *testing.T) {
	p, err := ParsePart("2/4")
	require.NoError(t, err)
	require.Equal(t, 2, p.Index)
	for _, text := range []string{"", "0/4", "5/4", "2", "a/b", "2/4x", "-1/4"} {
		_, err := ParsePart(text)
		require.ErrorContains(t, err, "such as 2/4", text)
	}
}
