// Package khodak2020 reproduces the figures and theorems of Khodak, Li,
// Roberts, Balcan, Talwalkar, "A Simple Setting for Understanding Neural
// Architecture Search with Weight-Sharing", 2020 (Khodak+ 2020).
package khodak2020

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"runtime"
	"sync"

	"github.com/nasml/lab/nasml/runs"
)

// shippedRecords are the trials that the project ships, so that nobody has to
// repeat them to see the figures.
//
//go:embed records
var shippedRecords embed.FS

// sweep is a list of independent trials and how one is computed.
type sweep struct {
	title      string
	trials     []runs.Trial // of one figure
	workers    int          // trials at a time; 0: one a core
	storedOnly bool
	backend    func() (backend, device string, err error)
	run        func(ctx context.Context, t runs.Trial, step func(note string)) (runs.Result, error)
	units      int // calls of step a trial
}

// compute returns the record of every trial. What the store has is read, what
// it lacks is run, some trials at a time, each stored as it ends; where
// storedOnly asks for that, nil stands for what it lacks.
func (s sweep) compute(ctx context.Context) ([]*runs.Record, error) {
	if len(s.trials) == 0 {
		return nil, nil
	}
	store, err := runs.FromContextWith(ctx, shippedRecords, path.Base(s.trials[0].Figure))
	if err != nil {
		return nil, err
	}
	if s.storedOnly {
		return store.Stored(s.trials)
	}
	progress := runs.ProgressFrom(ctx)
	total := len(s.trials) * max(1, s.units)
	progress.Start(total, s.title)
	defer progress.Done()
	ran := 0
	records, err := store.Compute(ctx, s.trials, runs.Options{}, func(ctx context.Context, job *runs.Job) error {
		ran = len(job.Trials)
		progress.Skip((len(s.trials) - ran) * max(1, s.units))
		if s.backend != nil {
			var err error
			if job.Backend, job.Device, err = s.backend(); err != nil {
				return err
			}
		} else {
			job.Backend, job.Device = "gonum", "cpu"
		}
		return s.work(ctx, job, progress)
	})
	if ran == 0 {
		progress.Skip(total)
	}
	return records, err
}

// work runs the trials of a job.
func (s sweep) work(ctx context.Context, job *runs.Job, progress runs.Progress) error {
	workers := s.workers
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next, reporting sync.Mutex
	at := 0
	take := func() int {
		next.Lock()
		defer next.Unlock()
		at++
		return at - 1
	}
	step := func(note string) {
		reporting.Lock()
		defer reporting.Unlock()
		progress.Step(1, note)
	}
	var group sync.WaitGroup
	for range min(workers, len(job.Trials)) {
		group.Go(func() {
			for i := take(); i < len(job.Trials) && ctx.Err() == nil; i = take() {
				result, err := s.run(ctx, job.Trials[i], step)
				if err == nil {
					err = job.Done(i, result)
				}
				if err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

// keysOf are the keys of the records that there are.
func keysOf(records []*runs.Record) []string {
	var keys []string
	for _, r := range records {
		if r != nil {
			keys = append(keys, r.Key)
		}
	}
	return keys
}

// meta names a picture's parameters and scale.
func meta(title, scale string, params any) map[string]string {
	raw, err := json.Marshal(params)
	if err != nil {
		panic(err) // a struct of numbers and strings always marshals
	}
	sum := sha256.Sum256(raw)
	if scale == "" {
		scale = "own"
	}
	return map[string]string{"title": title, "scale": scale, "params": hex.EncodeToString(sum[:8])}
}

// checker collects the first mistake in the parameters.
type checker struct{ err error }

func (c *checker) expect(ok bool, format string, args ...any) {
	if !ok && c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}
