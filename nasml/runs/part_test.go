package runs

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/fstest"

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

// Trials of a batch share what it had taken when the last of them ended.
func TestABatchIsCountedOnce(t *testing.T) {
	s, ctx := testStore(t)
	now := withUse(t)
	*now = Use{100, 1e9}
	trials := toyTrials(0, 4)
	_, err := s.Compute(ctx, trials, Options{}, func(_ context.Context, j *Job) error {
		for i := range j.Trials {
			now.Processor += 2
			require.NoError(t, j.Done(i, seedResult(j.Trials[i])))
		}
		return nil
	})
	require.NoError(t, err)
	for n, took := range map[int]float64{4: 8, 2: 2} { // half of what it took until the second
		p := new(Part)
		_, err = s.Compute(WithPart(ctx, p), trials[:n], Options{}, mustNotCompute)
		require.NoError(t, err)
		require.InDelta(t, took, p.Summary().Processor, 1e-12)
	}
}

// What is left is the sum of what trials will take, where that is known of each.
func TestTimeLeftIsTheSumOfForecasts(t *testing.T) {
	s, ctx := testStore(t)
	now := withUse(t)
	*now = Use{100, 1e9}
	for i := range 3 {
		_, err := s.Compute(ctx, toyTrials(i, 1), Options{}, func(_ context.Context, j *Job) error {
			*now = Use{now.Processor + 2, now.Peak + 1e9}
			return j.Done(0, seedResult(j.Trials[0]))
		})
		require.NoError(t, err)
	}
	look := func(trials []Trial, forecast func(int) float64) PartSummary {
		p := new(Part)
		_, err := s.Compute(WithPart(ctx, p), trials, Options{Forecast: forecast}, mustNotCompute)
		require.NoError(t, err)
		return p.Summary()
	}
	require.Zero(t, float64(look(toyTrials(0, 3), nil).Seconds), "nothing is left")
	all := toyTrials(0, 5)
	sum := look(all, func(i int) float64 { return 86400 * float64(i) })
	require.InDelta(t, 86400*(3+4), float64(sum.Seconds), 1e-6)
	require.Equal(t, 2, sum.Elsewhere)
	require.Equal(t, Use{6, 4e9}, sum.Use, "of the three that are stored")
	require.False(t, look(all, nil).Seconds.Valid())
	require.False(t, look(all, func(i int) float64 { return 86400 * float64(i-3) }).Seconds.Valid(), "0: not known")
}

// What trials took is told by those of their figure, the store's own and shipped ones.
func TestRecordsOfAFigure(t *testing.T) {
	other, _ := testStore(t)
	foreign := toyTrials(7, 1)
	foreign[0].Figure = "toy/other"
	fillStore(t, other, append(toyTrials(0, 2), foreign...))
	records, _, err := other.List()
	require.NoError(t, err)
	var lines bytes.Buffer
	require.NoError(t, WriteBundle(&lines, records))
	s, err := Open(t.TempDir(), fstest.MapFS{"a.jsonl": {Data: lines.Bytes()}})
	require.NoError(t, err)
	fillStore(t, s, toyTrials(2, 1))
	figure := toyTrials(0, 1)[0].Figure
	require.Len(t, s.Alike(figure), 3)
	require.Len(t, s.Alike("toy/other"), 1)
	require.Len(t, other.Alike(figure), 2)
}

func TestParsePart(t *testing.T) {
	var p Part
	require.NoError(t, p.UnmarshalText([]byte("2/4")))
	require.Equal(t, 2, p.Index)
	for _, text := range []string{"", "0/4", "5/4", "2", "a/b", "2/4x", "-1/4"} {
		require.ErrorContains(t, p.UnmarshalText([]byte(text)), "such as 2/4", text)
	}
}
