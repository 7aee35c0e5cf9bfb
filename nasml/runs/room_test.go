package runs

import (
	"context"
	"errors"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// fullMedium has no room for records until somebody frees it.
type fullMedium struct {
	Medium
	free chan struct{}
}

func (m fullMedium) Put(keep bool, objects ...Draft) error {
	select {
	case <-m.free:
	default:
		if strings.HasPrefix(objects[0].Name, "records/") {
			return explain(syscall.ENOSPC, "write", objects[0].Name)
		}
	}
	return m.Medium.Put(keep, objects...)
}

// notes collects what is told.
type notes struct {
	silent
	mu  sync.Mutex
	all []string
}

func (n *notes) Step(_ int, note string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, note)
}

// The results of a batch stay in memory while the disk is full, and are stored once
// there is room; nothing is computed twice.
func TestResultsSurviveAFullDisk(t *testing.T) {
	for name, together := range map[string]bool{"one by one": false, "together": true} {
		t.Run(name, func(t *testing.T) {
			s, _ := testStore(t)
			free, told := make(chan struct{}), new(notes)
			s.medium = fullMedium{s.medium, free}
			synctest.Test(t, func(t *testing.T) {
				go func() {
					time.Sleep(time.Hour)
					close(free)
				}()
				computed := 0
				records, err := s.Compute(WithProgress(t.Context(), told), toyTrials(7, 2), Options{},
					func(_ context.Context, job *Job) error {
						computed++
						results := []Result{seedResult(job.Trials[0]), seedResult(job.Trials[1])}
						if together {
							return job.DoneAll(results)
						}
						return errors.Join(job.Done(0, results[0]), job.Done(1, results[1]))
					})
				require.NoError(t, err)
				require.Equal(t, 1, computed)
				require.Equal(t, []float64{7, 8}, []float64{records[0].Values["x"], records[1].Values["x"]})
				require.Less(t, records[0].Seconds, 60.0, "waiting is no computing")
			})
			require.Greater(t, len(told.all), 10, "it is told as long as it lasts")
			require.Contains(t, told.all[0], "the disk or the quota is full")
			require.Contains(t, told.all[0], "kept in memory, which needs 0.0")
			require.Contains(t, told.all[0], s.Dir())
		})
	}
}

// Who ends the process does not wait for room.
func TestAFullDiskEndsWithTheProcess(t *testing.T) {
	s, _ := testStore(t)
	s.medium = fullMedium{s.medium, make(chan struct{})}
	ctx, cancel := context.WithCancel(WithProgress(t.Context(), new(notes)))
	_, err := s.Compute(ctx, toyTrials(7, 1), Options{}, func(_ context.Context, job *Job) error {
		cancel()
		return job.Done(0, seedResult(job.Trials[0]))
	})
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, syscall.ENOSPC)
}

func TestRoom(t *testing.T) {
	require.Equal(t, "needs 0.00819 MB", room([][]byte{{1}}))
	require.Equal(t, "needs 0.0287 MB", room([][]byte{make([]byte, 4097), make([]byte, 8000), {}}))
}
