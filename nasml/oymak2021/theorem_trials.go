package oymak2021

import (
	"context"
	"fmt"
	"path"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/nasml/lab/nasml/runs"
)

// theoremTrial is one trial of a theorem: what it depends on and how it is computed.
type theoremTrial struct {
	params any
	seed   uint64
	data   string // fingerprint of images, empty where there are none
	label  string // for the progress and errors, may be empty
	run    func(ctx context.Context) (runs.Result, error)
}

// computeTrials reads trials or computes them, as many at a time as there
// are cores, and returns their records in order. Cancelling ctx keeps what is
// finished.
func computeTrials(ctx context.Context, id, code string, samples []theoremTrial) ([]*runs.Record, error) {
	store, err := runs.FromContextWith(ctx, shippedRecords, path.Base(id))
	if err != nil {
		return nil, err
	}
	trials := make([]runs.Trial, len(samples))
	for i, s := range samples {
		trials[i] = runs.Trial{Figure: id, Params: s.params, Seed: s.seed, Code: code, Data: s.data}
	}
	progress := runs.ProgressFrom(ctx)
	progress.Start(len(samples), id)
	missing := 0
	defer func() {
		if missing == 0 { // all of it was read
			progress.Skip(len(samples))
		}
		progress.Done()
	}()
	return store.Compute(ctx, trials, runs.Options{}, func(ctx context.Context, job *runs.Job) error {
		job.Backend, job.Device = "gonum", "cpu"
		missing += len(job.Trials)
		progress.Skip(len(samples) - missing)
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(runtime.GOMAXPROCS(0))
		for i, at := range job.Index {
			group.Go(func() error {
				if err := ctx.Err(); err != nil {
					return err
				}
				s := samples[at]
				result, err := s.run(ctx)
				if err != nil {
					if s.label != "" {
						return fmt.Errorf("%s, %s, seed %d: %w", id, s.label, s.seed, err)
					}
					return fmt.Errorf("%s, seed %d: %w", id, s.seed, err)
				}
				progress.Step(1, s.label)
				return job.Done(i, result)
			})
		}
		return group.Wait()
	})
}
