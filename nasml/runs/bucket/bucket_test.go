package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gocloud.dev/blob"
	"gocloud.dev/blob/driver"
	"gocloud.dev/blob/memblob"
	"gocloud.dev/gcerrors"

	"github.com/nasml/lab/nasml/runs"
)

var short = times{
	lease:    2 * time.Second,
	renew:    200 * time.Millisecond,
	patience: 2 * time.Second,
	attempt:  time.Second,
}

// trial i of a toy figure, whose value is 10·i.
func trial(i int) runs.Trial {
	return runs.Trial{Figure: "test/toy", Params: map[string]int{"i": i}, Seed: uint64(i), Code: "1"}
}

func trials(n int) (all []runs.Trial) {
	for i := range n {
		all = append(all, trial(i))
	}
	return all
}

func resultOf(t runs.Trial) runs.Result {
	return runs.Result{Values: map[string]float64{"x": 10 * float64(t.Seed)}}
}

// compute computes trials one at a time.
func compute(ctx context.Context, s *runs.Store, n int, each func(*runs.Job) error) ([]*runs.Record, error) {
	return s.Compute(
		runs.WithProgress(ctx, runs.Silent),
		trials(n),
		runs.Options{MaxBatch: 1, Wait: 20 * time.Millisecond},
		func(_ context.Context, j *runs.Job) error {
			if each != nil {
				if err := each(j); err != nil {
					return err
				}
			}
			return j.Done(0, resultOf(j.Trials[0]))
		},
	)
}

// folderStore is a store in the bucket of a folder.
func folderStore(t *testing.T, dir string) *runs.Store {
	t.Helper()
	s, err := runs.Open("file://" + dir + "?lease=2s")
	require.NoError(t, err)
	return s
}

func TestAStoreInABucketKeepsRecords(t *testing.T) {
	dir := t.TempDir() + "/new"
	s := folderStore(t, dir)
	computed := 0
	count := func(*runs.Job) error { computed++; return nil }
	for range 2 {
		records, err := compute(t.Context(), s, 5, count)
		require.NoError(t, err)
		for i, r := range records {
			require.Equal(t, 10*float64(i), r.Values["x"])
		}
	}
	require.Equal(t, 5, computed)
	records, broken, err := folderStore(t, dir).List()
	require.NoError(t, err)
	require.Empty(t, broken)
	require.Len(t, records, 5)
	require.Equal(t, "file://"+dir, s.Dir())
	report, err := s.Verify()
	require.NoError(t, err)
	require.Equal(t, 5, report.Records)
}

func TestABrokenRecordInABucketIsComputedAgain(t *testing.T) {
	b := newBucket(memblob.OpenBucket(nil), "mem://x", short)
	runs.RegisterMedium("mem", func(string) (runs.Medium, error) { return b, nil })
	s, err := runs.Open("mem://x")
	require.NoError(t, err)
	_, err = compute(t.Context(), s, 3, nil)
	require.NoError(t, err)
	key, err := trial(1).Key()
	require.NoError(t, err)
	require.NoError(t, b.write("records/"+key[:2]+"/"+key+".json", []byte("{}"), false))
	computed := 0
	_, err = compute(t.Context(), s, 3, func(*runs.Job) error { computed++; return nil })
	require.NoError(t, err)
	require.Equal(t, 1, computed)
	aside, err := b.list("broken/")
	require.NoError(t, err)
	require.Len(t, aside, 2, "the record and the reason")
	locks, err := b.list("locks/")
	require.NoError(t, err)
	require.Empty(t, locks)

	// Bytes that do not change, through checkpoints.
	stop := errors.New("stop")
	state := strings.Repeat("state ", 1000)
	_, err = s.Compute(
		runs.WithProgress(t.Context(), runs.Silent),
		[]runs.Trial{trial(9)},
		runs.Options{},
		func(_ context.Context, j *runs.Job) error {
			return errors.Join(j.Save(func(w io.Writer) error { _, err := io.WriteString(w, state); return err }), stop)
		},
	)
	require.ErrorIs(t, err, stop)
	_, err = s.Compute(
		runs.WithProgress(t.Context(), runs.Silent),
		[]runs.Trial{trial(9)},
		runs.Options{},
		func(_ context.Context, j *runs.Job) error {
			saved, err := j.Load()
			require.NoError(t, err)
			back, err := io.ReadAll(saved)
			require.NoError(t, err)
			require.Equal(t, state, string(back))
			return j.Done(0, resultOf(j.Trials[0]))
		},
	)
	require.NoError(t, err)
	checkpoints, err := b.list("checkpoints/")
	require.NoError(t, err)
	require.Empty(t, checkpoints)

	removed, err := s.GC(runs.GCOptions{})
	require.NoError(t, err)
	require.Equal(t, 2, removed.Files, "what was set aside; the lease lives")
}

// Many workers on one bucket: no trial is computed twice at the same time, and
// none is kept twice.
func TestWorkersShareABucket(t *testing.T) {
	shared := memblob.OpenBucket(nil)
	const workers, n = 6, 30
	var inside [n]atomic.Int32
	var computed atomic.Int32
	var all sync.WaitGroup
	for range workers {
		b := newBucket(shared, "mem://y", short)
		for i := range n {
			all.Go(func() {
				for range 20 {
					l, err := b.Lock(fmt.Sprintf("locks/%02d", i))
					assert.NoError(t, err)
					if l == nil {
						continue
					}
					assert.Equal(t, int32(1), inside[i].Add(1))
					computed.Add(1)
					assert.True(t, l.Held())
					inside[i].Add(-1)
					l.Unlock()
					assert.False(t, l.Held())
				}
			})
		}
	}
	all.Wait()
	require.Positive(t, computed.Load())
}

// A worker that dies loses its trials once its lease has run out, and one that
// only slept finds that it has lost them.
func TestALeaseRunsOut(t *testing.T) {
	shared := memblob.OpenBucket(nil)
	asleep := newBucket(
		shared,
		"mem://z",
		times{lease: 500 * time.Millisecond, renew: time.Hour, patience: time.Second, attempt: time.Second},
	)
	held, err := asleep.Lock("locks/a")
	require.NoError(t, err)
	require.NotNil(t, held)
	other := newBucket(
		shared,
		"mem://z",
		times{lease: 500 * time.Millisecond, renew: 50 * time.Millisecond, patience: time.Second, attempt: time.Second},
	)
	taken, err := other.Lock("locks/a")
	require.NoError(t, err)
	require.Nil(t, taken, "it lives")
	require.Eventually(t, func() bool {
		taken, err = other.Lock("locks/a")
		return err == nil && taken != nil
	}, 10*time.Second, 50*time.Millisecond)
	require.False(t, held.Held())
	require.NoError(t, asleep.renewLease())
	require.False(t, held.Held(), "awake again, but another has it")
	held.Unlock()
	require.True(t, taken.Held(), "its own lock is not the sleeper's")
	third := newBucket(shared, "mem://z", short)
	again, err := third.Lock("locks/a")
	require.NoError(t, err)
	require.Nil(t, again)
}

func TestARecordIsNeverReplaced(t *testing.T) {
	b := newBucket(memblob.OpenBucket(nil), "mem://w", short)
	put := func(text string, keep bool) error {
		return b.Put(keep, runs.Draft{Name: "records/x", Write: func(w io.Writer) error {
			_, err := io.WriteString(w, text)
			return err
		}})
	}
	require.NoError(t, put("first", true))
	require.NoError(t, put("first", true), "as after an answer that was lost")
	require.ErrorIs(t, put("second", true), runs.ErrTaken)
	there, err := b.read("records/x")
	require.NoError(t, err)
	require.Equal(t, "first", string(there))
	require.NoError(t, put("third", false))
}

// nowhere is a bucket that does not exist: the service says "not found" of whatever it is
// asked for.
type nowhere struct{ driver.Bucket }

var errNowhere = errors.New("no such bucket")

func (nowhere) ErrorCode(error) gcerrors.ErrorCode { return gcerrors.NotFound }
func (nowhere) ErrorAs(error, any) bool            { return false }
func (nowhere) ListPaged(context.Context, *driver.ListOptions) (*driver.ListPage, error) {
	return nil, errNowhere
}
func (nowhere) NewRangeReader(
	context.Context, string, int64, int64, *driver.ReaderOptions,
) (driver.Reader, error) {
	return nil, errNowhere
}

// A bucket that does not exist is no empty store: the ledger made of it would be false.
func TestABucketThatDoesNotExistIsNoEmptyStore(t *testing.T) {
	b := newBucket(blob.NewBucket(nowhere{}), "mem://nowhere", short)
	_, err := b.read("records/a")
	require.ErrorContains(t, err, "there is no such bucket: make it or set NASML_STORE")
	require.NotErrorIs(t, err, fs.ErrNotExist)

	b = newBucket(memblob.OpenBucket(nil), "mem://here", short)
	_, err = b.read("records/a")
	require.ErrorIs(t, err, fs.ErrNotExist, "an object that is missing")
}

func TestErrorsSayWhatToDo(t *testing.T) {
	for address, want := range map[string]string{
		"s3://b/p?sec=abc":         "unknown query parameter",
		"ftp://b/p?secret=abc":     "knows no stores at ftp://, only azblob, file, gs",
		"file:///tmp/x?lease=1":    "want a time of at least a second",
		"file:///tmp/x?lease=10ms": "want a time of at least a second",
	} {
		_, err := runs.Open(address)
		require.ErrorContains(t, err, want, address)
		require.NotContains(t, err.Error(), "abc")
	}
	b := newBucket(memblob.OpenBucket(nil), "mem://v", short)
	_, err := b.Open("records/none")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, b.Remove("records/none"))
	require.NoError(t, b.bucket.Close())
	_, err = b.Open("records/none")
	require.ErrorContains(t, err, "run store cannot read mem://v/records/none")
}
