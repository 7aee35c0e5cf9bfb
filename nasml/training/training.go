// Package training trains one network of a search space from scratch, as the
// architectures that a search has found are evaluated: DARTS' way (Liu+ 2019,
// Section 3.2 and 3.3), that of PC-DARTS and of Li+ 2021, Appendix C.1.2.
package training

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"

	"github.com/nasml/lab/nasml/backend"
	"github.com/nasml/lab/nasml/internal/images"
	"github.com/nasml/lab/nasml/supernet"
)

// Curve is what a training records.
type Curve struct {
	// Of the passes of an epoch themselves, augmented and with drop path: [Epochs].
	TrainLoss  []float64 `json:"train_loss"`  // with the auxiliary head's
	TrainError []float64 `json:"train_error"` // share of wrong answers

	// On the test images after Evaluated epochs.
	Evaluated []float64 `json:"evaluated"`
	TestLoss  []float64 `json:"test_loss"`  // mean cross entropy
	TestError []float64 `json:"test_error"` // share of wrong answers
	TestTop5  []float64 `json:"test_top5"`  // share of labels that are not among the five largest logits
}

// Options are how a training is watched and kept. The zero value does neither.
type Options struct {
	// Load and Save are those of a runs.Job: the state that was saved last, or
	// an error that is fs.ErrNotExist, and a function that keeps it.
	Load func() (io.ReadCloser, error)
	Save func(write func(io.Writer) error) error
	// SaveEvery is the time between two saves; 0: a minute.
	SaveEvery time.Duration
	// Observe is called after every step. The curve must not be changed or kept.
	Observe func(Snapshot)
}

// Snapshot is where a training stands.
type Snapshot struct {
	Epoch, Epochs int // epochs done, and all
	Step, Steps   int // of the epoch under way
	Curve         *Curve
	Loss          float64 // of the last step
}

// Trainer trains networks of one genotype with the same settings on the same
// examples.
type Trainer struct {
	Step
	backend     compute.Backend
	train, test images.Examples
	steps       int // of an epoch
	trainer     *Exec
	tester      *Exec
	foreseen    func() // ends the loading of programs of the cache
}

// New prepares trainings, which compile once for all seeds. The last batch of an
// epoch is smaller where the examples do not divide evenly, and compiles again.
//
// It returns an error if settings are invalid or if genotype or images do not
// fit them, and where training and test examples differ in their classes.
func New(b compute.Backend, s Settings, g supernet.Genotype, train, test images.Examples) (*Trainer, error) {
	if err := s.Check(); err != nil {
		return nil, fmt.Errorf("training: %w", err)
	}
	if train.Classes() != test.Classes() || train.Len() < 2 || test.Len() < 1 {
		return nil, fmt.Errorf("training: %d examples of %d classes and %d test examples of %d classes: expected at "+
			"least two, at least one, and as many classes", train.Len(), train.Classes(), test.Len(), test.Classes())
	}
	net, err := s.Network(g, train.Classes())
	if err != nil {
		return nil, fmt.Errorf("training: %w", err)
	}
	t := &Trainer{Step: Step{s, net}, backend: b, train: train, test: test, foreseen: backend.Foresee(b, []any{s, g})}
	if t.steps = (train.Len() + s.Batch - 1) / s.Batch; train.Len()%s.Batch == 1 {
		t.steps-- // batch norm needs two
	}
	if t.trainer, err = NewExec(b, t.reported); err == nil {
		t.tester, err = NewExec(b, func(in []*Node) []*Node { return []*Node{t.score(in[0], in[1], in[2:])} })
	}
	if err != nil {
		t.Close()
		return nil, fmt.Errorf("training: building the graphs: %w", err)
	}
	return t, nil
}

// Close frees what was compiled.
func (t *Trainer) Close() {
	for _, exec := range []*Exec{t.trainer, t.tester} {
		if exec != nil {
			exec.Finalize()
		}
	}
	t.foreseen()
}

// Train trains one network from its start, or from where Options.Load left it, to
// its end. The same seed gives the same curve, however often the training was
// interrupted.
//
// It returns an error if ctx ends, which is looked at after every step and test
// batch, and where a loss or a weight is not finite: what was saved last stays
// as it is, and the error says at which step that was and what to change.
func (t *Trainer) Train(ctx context.Context, seed uint64, o Options) (*Curve, error) {
	r := t.start(seed, o)
	defer r.free()
	if err := r.loop.Resume(); err != nil {
		return nil, fmt.Errorf("training, seed %d: %w", seed, err)
	}
	if err := r.loop.Run(ctx); err != nil {
		return nil, fmt.Errorf("training, seed %d, %w", seed, err)
	}
	return &r.at.Curve, nil
}

// InMemory are a set's images for training and another's for testing, augmented
// as the settings say, and fitted to their size, see [images.Images.Fit]. It is an error
// if that does not lead there, or where a test image has a class that training has
// not.
func (s Settings) InMemory(train, test *images.Images) (trained, tested images.Examples, err error) {
	own, err := train.Fit(s.Image)
	if err != nil {
		return nil, nil, fmt.Errorf("training: %w", err)
	}
	others, err := test.Fit(s.Image)
	if err != nil {
		return nil, nil, fmt.Errorf("training: %w", err)
	}
	a, b := own.Augmented(s.Augment), others.Augmented(s.Augment.Plain())
	for label := range test.Counts() {
		if int(label) >= a.Most {
			return nil, nil, fmt.Errorf("training: a test image of %s has label %d, training images have 0 to %d",
				test.Name, label, a.Most-1)
		}
	}
	b.Most = a.Most
	return a, b, nil
}
