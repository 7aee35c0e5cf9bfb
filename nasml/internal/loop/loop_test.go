package loop

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/internal/checkpoint"
)

// sums is a run whose steps add up where they stand.
type sums struct {
	At
	Sum    int
	Epochs []int
}

var errEnd = errors.New("the evaluation fails")

// newLoop is a run that saves into kept after every step; stop is asked before
// each Feed and each End.
func newLoop(s *sums, kept *[]byte, stop func() bool) *Loop[int] {
	failing := func(err error) error {
		if stop() {
			return err
		}
		return nil
	}
	l := &Loop[int]{
		Epochs: 3, At: &s.At, Begin: func() (int, error) { return 4, nil },
		Feed:    func() (int, error) { return 10*s.Epoch + s.Step, failing(io.ErrUnexpectedEOF) },
		Advance: func(x int) (float64, error) { s.Sum += x; return float64(x), nil },
		Write:   func(w io.Writer) error { return json.NewEncoder(w).Encode(s) },
		Read:    func(r io.Reader) error { return json.NewDecoder(r).Decode(s) },
		Reset:   func() { *s = sums{} },
	}
	l.End = func(context.Context) (float64, error) {
		if err := failing(errEnd); err != nil {
			return 0, errors.Join(err, l.Keep())
		}
		s.Epochs, s.Sum = append(s.Epochs, s.Sum), 0
		return 0, nil
	}
	l.Keeper = checkpoint.Keeper{
		Every: time.Nanosecond,
		Load: func() (io.ReadCloser, error) {
			if *kept == nil {
				return nil, fs.ErrNotExist
			}
			return io.NopCloser(bytes.NewReader(*kept)), nil
		},
		Save: func(write func(io.Writer) error) error {
			var b bytes.Buffer
			err := write(&b)
			*kept = b.Bytes()
			return err
		},
	}
	return l
}

// However often a run is interrupted, in a step or at the end of an epoch, it
// records the same.
func TestInterruptedRunsRecordTheSame(t *testing.T) {
	want := []int{6, 46, 86}
	for every := 2; every < 8; every++ {
		var kept []byte
		calls := 0
		for starts := 1; ; starts++ {
			s := &sums{}
			l := newLoop(s, &kept, func() bool { calls++; return calls%every == 0 })
			require.NoError(t, l.Resume())
			if err := l.Run(t.Context()); err == nil {
				require.Equal(t, want, s.Epochs)
				require.Greater(t, starts, 1)
				break
			}
			require.Less(t, starts, 20)
		}
	}
}

func TestCancelledAtItsBeginningItSavesNothing(t *testing.T) {
	var kept []byte
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l := newLoop(&sums{}, &kept, func() bool { return false })
	require.NoError(t, l.Resume())
	require.ErrorIs(t, l.Run(ctx), context.Canceled)
	require.Nil(t, kept)
}

func TestAnUnsoundStateIsNotSaved(t *testing.T) {
	var kept []byte
	l := newLoop(&sums{}, &kept, func() bool { return false })
	l.Sound = func() error { return errEnd }
	require.NoError(t, l.Resume())
	require.ErrorContains(t, l.Run(t.Context()), "epoch 1: step 1 of 4: the evaluation fails")
	require.Nil(t, kept)
}
