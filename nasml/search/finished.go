package search

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	. "github.com/gomlx/gomlx/core/graph"
)

// Finished is a search that has ended, with its shared weights; see Options.Finished.
type Finished struct {
	*run
	byBatch *Exec // an evaluation by the statistics of the batch
}

// Evaluation says how shared weights are evaluated.
type Evaluation struct {
	Batch   int  // images at once, at most all; 0: as the search has it
	ByBatch bool // batch norm takes the batch's statistics, which are the architecture's own, not the supernet's
}

// Space is the one that was searched.
func (e *Finished) Space() Space { return e.space }

// Accuracy is the share of right answers of the shared weights under an architecture on the search's validation images.
func (e *Finished) Accuracy(ctx context.Context, a Arch, how Evaluation) (float64, error) {
	step, s, other := *e.Step, *e.Runner, *e.run
	step.Batch = min(cmp.Or(how.Batch, step.Batch), len(e.validation))
	if how.ByBatch {
		s.evaluate = e.byBatch
	}
	s.Step, other.Runner = &step, &s
	return other.accuracy(ctx, e.validation, a.Theta)
}

// finished calls visit with a finished search.
func (r *run) finished(visit func(e *Finished) error) error {
	if len(r.validation) == 0 {
		return errors.New("the search has no validation images on which its end could be looked at")
	}
	exec, err := NewExec(r.backend, r.right(true))
	if err != nil {
		return fmt.Errorf("building the evaluation by batches: %w", err)
	}
	defer exec.Finalize()
	return visit(&Finished{r, exec})
}
