package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/trial"
)

// Seed is one seed of a search or a training, with its checkpoint: Load, Save and SaveEvery are those of
// search.Options and training.Options.
type Seed[T any] struct {
	Trial     T
	Seed      uint64
	Pace      *Pace
	Load      func() (io.ReadCloser, error)
	Save      func(write func(io.Writer) error) error
	SaveEvery time.Duration
}

// SaveEvery is the time between two checkpoints: what a search or training loses that is killed.
var SaveEvery = runs.Interval(20 * time.Second)

// Each makes a bench compute its trials one after the other. What open returns, such as a compiled supernet, serves
// all seeds of a trial; it is closed before that of the next trial is opened.
func Each[T any, R interface{ Close() }](
	b *Bench[T], open func(ctx context.Context, s Seed[T]) (R, error),
	run func(ctx context.Context, opened R, s Seed[T]) (trial.Result, error),
) {
	var opened R
	group, end := -1, func() {}
	b.MaxBatch, b.Close = 1, func() { end() }
	b.Batch = func(ctx context.Context, job Job[T]) error {
		s := Seed[T]{
			Trial: job.Of[0], Seed: job.Trials[0].Seed, Pace: &Pace{Progress: job.Progress, Units: job.Units[0]},
			Load: job.LoadTelling(job.Progress), Save: job.Save, SaveEvery: SaveEvery,
		}
		if group != job.groups[0] {
			end()
			group, end = -1, func() {}
			var err error
			if opened, err = open(ctx, s); err != nil {
				return fmt.Errorf("seed %d: %w", s.Seed, err)
			}
			group, end = job.groups[0], opened.Close
		}
		result, err := run(ctx, opened, s)
		if err == nil {
			err = job.Done(0, result)
		}
		if err != nil {
			return fmt.Errorf("seed %d: %w", s.Seed, err)
		}
		s.Pace.End("")
		return nil
	}
}

// Amount is [study.Study.Amount] by the settings K in a trial's key.
func Amount[K any](of func(K) float64) func(params json.RawMessage) float64 {
	return func(params json.RawMessage) float64 {
		var key K
		if err := json.Unmarshal(params, &key); err != nil {
			return 0
		}
		return of(key)
	}
}

// Pace counts the units of a search or training under way, which are of about equal time over its epochs.
type Pace struct {
	Progress runs.Progress
	Units    int // in all
	booked   int
	begun    bool
}

// At is after so many steps of an epoch, from 0. What a checkpoint brought along says nothing about the pace.
func (p *Pace) At(epoch, epochs, step, steps int, note string) {
	now := int(float64(p.Units) * (float64(epoch) + float64(step)/float64(steps)) / float64(epochs))
	if !p.begun {
		p.begun, p.booked = true, max(0, now-max(1, p.Units/epochs/steps))
		p.Progress.Skip(p.booked)
	}
	p.Progress.Step(max(0, now-p.booked), note)
	p.booked = max(p.booked, now)
}

// End counts what is left.
func (p *Pace) End(note string) { p.Progress.Step(p.Units-p.booked, note) }
