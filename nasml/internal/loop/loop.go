// Package loop runs a training or a search: epochs of steps that can be stopped
// after any of them, resumed there, and watched.
//
// It knows no optimizer and no tensor. What a step computes and what an epoch records is the caller's; where it stands
// is [At], which goes into the caller's checkpoint. What is random has to be a function of seed, epoch and step: then
// there is no generator to keep, and an interrupted run has the bits of one that was not.
package loop

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/nasml/lab/nasml/internal/checkpoint"
)

// At is where a run stands. It is a part of the head of a checkpoint.
type At struct {
	Epoch int `json:"epoch"` // epochs done
	Step  int `json:"step"`  // steps done of the epoch under way
}

// Loop is a run. Feed F is what a step is given.
type Loop[F any] struct {
	Epochs int
	At     *At // where it stands; the loop counts it up

	// Begin draws the batches of the epoch under way and says how many steps it has.
	Begin func() (steps int, err error)
	// Feed is what the step under way is given, and Advance makes the step and returns its loss. Where Feed fails
	// nothing has moved, and the run is saved; where Advance fails, what was saved last stays as it is.
	Feed    func() (F, error)
	Advance func(feed F) (loss float64, err error)
	// End evaluates and books the epoch whose steps are done, and returns its mean loss. Where it fails it has booked
	// nothing, and is called again after Resume. Whether what it has changed till then may be saved only it can know:
	// it calls Keep, not the loop.
	End func(ctx context.Context) (loss float64, err error)

	Keeper checkpoint.Keeper
	Write  func(w io.Writer) error // writes a checkpoint, At within
	Read   func(r io.Reader) error
	Reset  func()       // goes back to the beginning, where a checkpoint is another's
	Sound  func() error // refuses a state that must not take the place of a saved one; nil: none

	Observe func(steps int, loss float64) // after every step and every epoch; may be nil
}

// Resume goes to the last checkpoint, if there is one of this run.
func (l *Loop[F]) Resume() error { return l.Keeper.Resume(l.Read, l.Reset) }

// Run runs the remaining epochs. It checks ctx before every step.
func (l *Loop[F]) Run(ctx context.Context) error {
	for l.At.Epoch < l.Epochs {
		if err := l.Epoch(ctx); err != nil {
			return fmt.Errorf("epoch %d: %w", l.At.Epoch+1, err)
		}
	}
	return nil
}

// Keep saves where the run stands; at its beginning there is nothing to save.
func (l *Loop[F]) Keep() error {
	if l.Keeper.Save == nil || *l.At == (At{}) {
		return nil
	}
	if l.Sound != nil {
		if err := l.Sound(); err != nil {
			return err
		}
	}
	return l.Keeper.Keep(l.Write)
}

// Epoch finishes the epoch under way.
func (l *Loop[F]) Epoch(ctx context.Context) error {
	steps, err := l.Begin()
	if err != nil {
		return err
	}
	for l.At.Step < steps {
		if err := ctx.Err(); err != nil {
			return errors.Join(err, l.Keep())
		}
		loss, err := l.step()
		if err != nil {
			return fmt.Errorf("step %d of %d: %w", l.At.Step+1, steps, err)
		}
		if l.Keeper.Due() {
			if err := l.Keep(); err != nil {
				return fmt.Errorf("step %d of %d: %w", l.At.Step, steps, err)
			}
		}
		l.observe(steps, loss)
	}
	loss, err := l.End(ctx)
	if err != nil {
		return err
	}
	l.At.Epoch, l.At.Step = l.At.Epoch+1, 0
	l.observe(steps, loss)
	return nil
}

func (l *Loop[F]) step() (loss float64, err error) {
	feed, err := l.Feed()
	if err != nil { // such as a file that cannot be read
		return 0, errors.Join(err, l.Keep())
	}
	if loss, err = l.Advance(feed); err == nil {
		l.At.Step++
	}
	return loss, err
}

func (l *Loop[F]) observe(steps int, loss float64) {
	if l.Observe != nil {
		l.Observe(steps, loss)
	}
}
