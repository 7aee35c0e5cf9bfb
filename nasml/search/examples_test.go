package search

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/internal/images"
)

// failing are examples of which one cannot be read for a while.
type failing struct {
	images.Examples
	batches int
	at      int // the batch that fails, 0: none
}

func (f *failing) Batch(pixels []float32, labels []int32, indices []int, rng *rand.Rand) error {
	if f.batches++; f.batches == f.at {
		return errors.New("a file is broken")
	}
	return f.Examples.Batch(pixels, labels, indices, rng)
}

// Images of any source give the search that those in memory give; where one cannot be
// read, what was done is saved, and the search goes on from there to the same bits.
func TestExamplesOfAnySource(t *testing.T) {
	s, set := tiny(t, "gaea-darts"), pictures(t, 24)
	whole, err := New(pure(t), s, set)
	require.NoError(t, err)
	defer whole.Close()
	want, err := whole.Search(t.Context(), 3, Options{})
	require.NoError(t, err)

	source := &failing{Examples: set.Augmented(s.Augment), at: 14} // of the second epoch
	r, err := NewOf(pure(t), s, source)
	require.NoError(t, err)
	defer r.Close()
	var saved []byte
	o := Options{
		SaveEvery: time.Hour,
		Load: func() (io.ReadCloser, error) {
			if saved == nil {
				return nil, fs.ErrNotExist
			}
			return io.NopCloser(bytes.NewReader(saved)), nil
		},
		Save: func(write func(io.Writer) error) error {
			var b bytes.Buffer
			err := write(&b)
			saved = b.Bytes()
			return err
		},
	}
	_, err = r.Search(t.Context(), 3, o)
	require.ErrorContains(t, err, "a file is broken")
	require.NotContains(t, err.Error(), "\n")
	require.NotEmpty(t, saved)
	before := source.batches
	got, err := r.Search(t.Context(), 3, o)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Less(t, source.batches-before, 24, "it did not begin anew: an epoch has 6, and is evaluated on 6")
}

// A search that diverges says where, and overwrites nothing that was saved before.
func TestASearchThatDiverges(t *testing.T) {
	s := tiny(t, "gaea-darts")
	s.LearningRate, s.Bilevel.Clip = 1e25, 0
	x, err := New(pure(t), s, pictures(t, 24))
	require.NoError(t, err)
	defer x.Close()
	saves := 0
	var last error
	var saved bytes.Buffer
	o := Options{SaveEvery: time.Nanosecond, Save: func(write func(io.Writer) error) error {
		saves++
		saved.Reset()
		return write(&saved)
	}}
	for range 2 {
		saves = 0
		_, err := x.Search(t.Context(), 1, o)
		require.ErrorContains(t, err, "LearningRate (now 1e+25)")
		require.NotContains(t, err.Error(), "\n")
		if last != nil {
			require.EqualError(t, err, last.Error(), "the same step")
		}
		last = err
		require.LessOrEqual(t, saves, 2, "a state that is not finite is not saved")
	}
	require.NotZero(t, saved.Len())
	r, err := x.start(1, Options{Load: func() (io.ReadCloser, error) { return io.NopCloser(&saved), nil }})
	require.NoError(t, err)
	defer r.free()
	require.NotZero(t, r.at.Step)
	require.NoError(t, r.bounded(), "what is saved is the last state that is finite")
}
