package search

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/distributed"
	. "github.com/gomlx/gomlx/core/graph"

	"github.com/nasml/lab/nasml/backend"
	"github.com/nasml/lab/nasml/internal/images"
	"github.com/nasml/lab/nasml/simplex"
	"github.com/nasml/lab/nasml/supernet"
)

// Curve is the record of a search. Index e of a curve over epochs is the state after e epochs; index 0 is the start.
type Curve struct {
	Theta [][]float64 `json:"theta"` // softmax(α) or θ, block by block, row by row: [Epochs+1][numbers of θ]

	// Of the passes of epoch e+1 themselves, in training mode: [Epochs].
	TrainLoss     []float64 `json:"train_loss"`
	TrainAccuracy []float64 `json:"train_accuracy"`
	ValidLoss     []float64 `json:"valid_loss"`
	ValidAccuracy []float64 `json:"valid_accuracy"`

	// Accuracy of the shared weights on the validation images after Evaluated epochs, with the current θ and with one
	// operation an edge.
	Evaluated []float64 `json:"evaluated"`
	Supernet  []float64 `json:"supernet"`
	Discrete  []float64 `json:"discrete"`

	// Likewise, accuracy of the supernet on training images and on images that it was neither trained nor searched on;
	// empty without Settings.Parts.Test.
	Fitted []float64 `json:"fitted,omitempty"`
	Tested []float64 `json:"tested,omitempty"`

	// Likewise, the largest eigenvalue of the Hessian of the validation loss in the architecture's logits; empty
	// without Settings.Curvature.
	Curvature []float64 `json:"curvature,omitempty"`

	Readings Readings `json:"readings,omitzero"` // likewise; empty without Settings.Instruments

	// The architecture that was picked, see Arch. Empty until the search has ended.
	Final []int  `json:"final"`
	Found string `json:"found,omitempty"`
}

// Entropy is the mean entropy of the rows of θ after every epoch, in nats, block by block: [blocks][Epochs+1].
func (c *Curve) Entropy(blocks simplex.Product) [][]float64 {
	out := make([][]float64, len(blocks))
	for _, flat := range c.Theta {
		for i, block := range Blocks(blocks, flat) {
			out[i] = append(out[i], simplex.EntropyOf(block))
		}
	}
	return out
}

// Blocks cuts flat numbers, such as those of Curve.Theta, into the matrices of all blocks.
func Blocks(blocks simplex.Product, flat []float64) [][][]float64 {
	out := make([][][]float64, len(blocks))
	for i, b := range blocks {
		n := b.Rows * b.Options
		out[i] = slices.Collect(slices.Chunk(flat[:n:n], b.Options))
		flat = flat[n:]
	}
	return out
}

// Options are how a search is watched and kept. The zero value does neither.
type Options struct {
	// Load and Save are those of a runs.Job: the state that was saved last, or an error that is fs.ErrNotExist, and a
	// function that keeps it.
	Load func() (io.ReadCloser, error)
	Save func(write func(io.Writer) error) error
	// SaveEvery is the time between two saves; 0: a minute.
	SaveEvery time.Duration
	// Observe is called after every epoch and, with Step > 0, now and then in between. The curve must not be changed or
	// kept.
	Observe func(Snapshot)
	// Finished gets the search after its end, before its weights are freed. It cannot change the curve.
	Finished func(e *Finished) error
}

// Snapshot is where a search stands.
type Snapshot struct {
	Epoch, Epochs int // epochs done, and all
	Step, Steps   int // of the epoch under way
	Curve         *Curve
	Theta         []float64 // now
	Loss          float64   // of the last weight step
}

// New prepares searches, which compile once for all seeds. The settings split the images into a part for the weights
// and one for the architecture. The steps run on the first Settings.Devices devices of the backend; backend.OpenDevices
// opens one with as many. It returns an error if settings are invalid or do not fit the images, if the backend has
// fewer devices, or if the devices cannot share every batch of an epoch equally.
func New(b compute.Backend, s Settings, set *images.Images) (*Runner, error) {
	set, err := set.Fit(s.Image)
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	return NewOf(b, s, set.Augmented(s.Augment))
}

// Runner runs searches with the same settings on the same images, on one or several devices.
type Runner struct {
	*Step
	space    Space
	product  simplex.Product // of its network
	backend  compute.Backend
	mesh     *distributed.DeviceMesh // nil: one device
	images   images.Examples
	trainer  *Exec
	evaluate *Exec
	hessian  *Exec       // with Settings.Curvature only
	gauge    *Exec       // these with Settings.Instruments only: F and ∇F of θ
	relative *Exec       // products with ∇²F of θ
	score    *Exec       // F and logits
	control  *controller // ENAS only
	foreseen func()      // ends the loading of programs of the cache
}

// NewOf is [New] with images of any source, which makes of them what the settings say.
func NewOf(b compute.Backend, s Settings, set images.Examples) (*Runner, error) {
	p, err := s.Plan(set.Classes())
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	out := &Runner{
		space: p.Opened, product: p.Opened.Network().Architecture(), backend: b, images: set,
		foreseen: backend.Foresee(b, s),
	}
	if err := out.build(s); err != nil {
		out.Close()
		return nil, fmt.Errorf("search: %w", err)
	}
	return out, nil
}

// build makes the executors; they compile at their first call.
func (s *Runner) build(settings Settings) error {
	epoch, err := settings.drawEpoch(s.images.Len(), 0, 0)
	if err != nil {
		return err
	}
	if s.Step, err = NewStep(settings, s.space.Network(), len(epoch.Weights)); err != nil {
		return err
	}
	for _, graph := range []struct {
		what string
		exec **Exec
		on   bool
		of   func(in []*Node) []*Node
	}{
		{"the training", &s.trainer, true, s.reported},
		{"the evaluation", &s.evaluate, true, s.right(false)},
		{"the curvature", &s.hessian, s.Curvature > 0, s.curvedInLogits},
		{"the loss and its gradient", &s.gauge, s.Instruments > 0, s.slope},
		{"the convexity", &s.relative, s.Instruments > 0, s.curved},
		{"the logits", &s.score, s.Instruments > 0, s.scored},
	} {
		if graph.on {
			if *graph.exec, err = NewExec(s.backend, graph.of); err != nil {
				return fmt.Errorf("building the graph of %s: %w", graph.what, err)
			}
		}
	}
	if s.Devices > 1 {
		if err := s.divideUp(s.Devices, epoch); err != nil {
			return err
		}
	}
	if s.method.Weights == Controller {
		s.control, err = newController(s)
	}
	return err
}

// reported is the step followed by losses and numbers of right answers, and softmax(α) or θ, one tensor a block.
func (p *Step) reported(in []*Node) []*Node {
	next, o := p.Graph(in)
	report := Stack([]*Node{o.TrainLoss, o.TrainRight, o.ValidLoss, o.ValidRight}, 0)
	return append(append(next, report), p.relaxed(Cut(p, next).Theta)...)
}

// right is the number of right answers in a batch under operation weights: in are images, labels, θ by blocks, weights
// and statistics.
func (s *Runner) right(train bool) func(in []*Node) []*Node {
	return func(in []*Node) []*Node {
		right, _ := supernet.Score(s.logits(in[0], in[2:2+s.blocks()], in[2+s.blocks():], train), in[1])
		return []*Node{right}
	}
}

// logits are those of a batch under θ; state are weights and statistics.
func (s *Runner) logits(images *Node, theta, state []*Node, train bool) *Node {
	weights := len(s.net.Weights())
	return s.net.Evaluate(supernet.Pass{
		Images: images, Theta: theta, Weights: state[:weights], Stats: state[weights:], Train: train,
	}).Logits
}

// Close frees what was compiled.
func (s *Runner) Close() {
	for _, exec := range []*Exec{s.trainer, s.evaluate, s.hessian, s.gauge, s.relative, s.score} {
		if exec != nil {
			exec.Finalize()
		}
	}
	if s.control != nil {
		s.control.close()
	}
	s.foreseen()
}

func (s *Runner) devices() int {
	if s.mesh == nil {
		return 1
	}
	return s.mesh.NumDevices()
}

// String names the search in errors.
func (s *Runner) String() string {
	if s.mesh == nil {
		return s.method.Title
	}
	return fmt.Sprintf("%s on %d devices", s.method.Title, s.devices())
}
