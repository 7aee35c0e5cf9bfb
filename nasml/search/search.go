package search

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/nasml/lab/nasml/bilevel"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/simplex"
	"github.com/nasml/lab/nasml/supernet"
)

// Curve is what a search records. Index e of a curve over epochs is the state
// after e epochs; index 0 is the start.
type Curve struct {
	Theta [][]float64 `json:"theta"` // softmax(α) or θ, row by row: [Epochs+1][|E|·|O|]

	// Of the passes of epoch e+1 themselves, in training mode: [Epochs].
	TrainLoss     []float64 `json:"train_loss"`
	TrainAccuracy []float64 `json:"train_accuracy"`
	ValidLoss     []float64 `json:"valid_loss"`
	ValidAccuracy []float64 `json:"valid_accuracy"`

	// Accuracy of the shared weights on the validation images after Evaluated
	// epochs, with θ as it is and with one operation an edge.
	Evaluated []float64 `json:"evaluated"`
	Supernet  []float64 `json:"supernet"`
	Discrete  []float64 `json:"discrete"`

	Final []int `json:"final"` // operation of each edge; empty until the search has ended
}

// Entropy is the mean entropy of the rows of θ after every epoch, in nats.
func (c *Curve) Entropy(operations int) []float64 {
	out := make([]float64, len(c.Theta))
	for e, theta := range c.Theta {
		out[e] = simplex.EntropyOf(rows(theta, operations))
	}
	return out
}

// rows cuts a flat matrix.
func rows(flat []float64, columns int) [][]float64 {
	var out [][]float64
	for i := 0; i < len(flat); i += columns {
		out = append(out, flat[i:i+columns])
	}
	return out
}

// Options are how a search is watched and kept. The zero value does neither.
type Options struct {
	// Load and Save are those of a runs.Job: the state that was saved last, or
	// an error that is runs.ErrNotFound, and a function that keeps it.
	Load func() (io.ReadCloser, error)
	Save func(write func(io.Writer) error) error
	// SaveEvery is the time between two saves; 0: a minute.
	SaveEvery time.Duration
	// Observe is called after every epoch and, with Step > 0, now and then in
	// between. The curve must not be changed or kept.
	Observe func(Moment)
}

// Moment is where a search stands.
type Moment struct {
	Epoch, Epochs int // epochs done, and all
	Step, Steps   int // of the epoch under way
	Curve         *Curve
	Theta         []float64 // now
	Loss          float64   // of the last weight step
}

// Searcher runs searches with the same settings on the same images: it compiles
// once for all seeds.
type Searcher struct {
	program
	backend  compute.Backend
	images   *data.Images
	trainer  *Exec
	evaluate *Exec
	control  *controller // ENAS only
}

// NewSearcher prepares a search. The images are split into a part for the
// weights and one for the architecture, as the settings say. It is an error
// where settings make no sense or do not fit the images.
func NewSearcher(b compute.Backend, s Settings, images *data.Images) (*Searcher, error) {
	if err := s.Check(); err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	p := program{Settings: s, method: Methods[s.Method]}
	var err error
	if p.space, err = s.space(); err != nil {
		return nil, err
	}
	if images, err = fit(images, s.Image); err != nil {
		return nil, err
	}
	p.net, err = supernet.New(supernet.Config{
		Space: p.space, Channels: s.Channels, Cells: s.Cells, Image: s.Image, Classes: classes(images),
		Affine: s.Affine, ConvBias: s.ConvBias, TrackStats: s.TrackStats,
	})
	if err != nil {
		return nil, err
	}
	out := &Searcher{program: p, backend: b, images: images}
	epoch, err := out.drawEpoch(0, 0)
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	out.steps = len(epoch.Weights)
	return out, out.build()
}

// fit halves the images by 2×2 means until they have the wanted side.
func fit(images *data.Images, side int) (*data.Images, error) {
	for images.Height > side && images.Height%2 == 0 && images.Width%2 == 0 {
		var err error
		if images, err = images.Half(); err != nil {
			return nil, err
		}
	}
	if images.Height != side || images.Width != side || images.Channels != 3 {
		return nil, fmt.Errorf("search: images of %s are %d×%d×%d, want %d×%d×3 or a power of two larger: change Image", images.Name, images.Height, images.Width, images.Channels, side, side)
	}
	return images, nil
}

func classes(images *data.Images) int {
	most := 0
	for label := range images.Counts() {
		most = max(most, int(label))
	}
	return most + 1
}

// build makes the two executors; they compile at their first call.
func (s *Searcher) build() error {
	var err error
	s.trainer, err = NewExec(s.backend, func(in []*Node) []*Node {
		o, next := s.step(feedOf(in), s.state(in[feeds:]))
		report := Stack([]*Node{o.trainLoss, o.trainRight, o.validLoss, o.validRight}, 0)
		return append(nodes(next), report, s.relaxed(next.Theta[0]))
	})
	if err != nil {
		return fmt.Errorf("search: building the training graph: %w", err)
	}
	s.evaluate, err = NewExec(s.backend, func(in []*Node) []*Node {
		return []*Node{s.right(batch{in[0], in[1]}, in[2], in[3:])}
	})
	if err != nil {
		return fmt.Errorf("search: building the evaluation graph: %w", err)
	}
	if s.method.Weights == Controller {
		s.control, err = newController(s)
	}
	return err
}

// right is the number of right answers in a batch under operation weights.
func (s *Searcher) right(b batch, ops *Node, weights []*Node) *Node {
	n := len(s.net.Weights())
	logits, _ := s.net.Forward(supernet.Input{Images: b.images, Theta: ops, Weights: weights[:n], Stats: weights[n:]})
	right, _ := supernet.Score(logits, b.labels)
	return right
}

// Close frees what was compiled.
func (s *Searcher) Close() {
	s.trainer.Finalize()
	s.evaluate.Finalize()
	if s.control != nil {
		s.control.close()
	}
}

// Space is the space that is searched.
func (s *Searcher) Space() supernet.Space { return s.space }

// run is one search under way.
type run struct {
	*Searcher
	seed              uint64
	train, validation []int // images
	at                position
	state             []*tensors.Tensor
	theta             []float64     // relaxed, now
	batches           bilevel.Epoch // of the epoch under way
}

// position is where a search stands, with what it has recorded.
type position struct {
	Epoch int        `json:"epoch"` // epochs done
	Step  int        `json:"step"`  // steps done of the epoch under way
	Sums  [4]float64 `json:"sums"`  // over those: losses times images, and right answers
	Seen  [2]int     `json:"seen"`  // images of both batches
	Curve Curve      `json:"curve"`
	Bias  float64    `json:"bias"`  // ENAS: moving average of the rewards
	Known bool       `json:"known"` // whether there is one
}

// Search runs one search from its start, or from where Options.Load left it,
// to its end. The same seed gives the same curve, however often the search was
// interrupted.
//
// It is an error where ctx ends, which is looked at after every step, and where
// a loss or θ is not finite: the error says at which step and on which edge.
func (s *Searcher) Search(ctx context.Context, seed uint64, o Options) (*Curve, error) {
	r, err := s.start(seed, o)
	if err != nil {
		return nil, err
	}
	defer r.free()
	saved := time.Now()
	for r.at.Epoch < s.Epochs {
		if err := r.epoch(ctx, o, &saved); err != nil {
			return nil, fmt.Errorf("%s, seed %d, epoch %d: %w", s.method.Title, seed, r.at.Epoch+1, err)
		}
	}
	if r.at.Curve.Final, err = r.final(ctx); err != nil {
		return nil, fmt.Errorf("%s, seed %d, picking an architecture: %w", s.method.Title, seed, err)
	}
	return &r.at.Curve, nil
}

// start is a run at its beginning, or at its checkpoint.
func (s *Searcher) start(seed uint64, o Options) (*run, error) {
	r := &run{Searcher: s, seed: seed}
	var err error
	if r.train, r.validation, err = s.divide(seed); err != nil {
		return nil, err
	}
	r.state = s.initial(seed)
	if s.control != nil {
		s.control.reset(seed)
	}
	r.theta = s.initialTheta(seed)
	r.at.Curve.Theta = [][]float64{r.theta}
	if o.Load == nil {
		return r, nil
	}
	saved, err := o.Load()
	if errors.Is(err, runs.ErrNotFound) {
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	defer saved.Close()
	return r, r.load(saved)
}

func (r *run) free() {
	for _, t := range r.state {
		_ = t.FinalizeAll()
	}
}

// epoch finishes the epoch under way.
func (r *run) epoch(ctx context.Context, o Options, saved *time.Time) error {
	every := o.SaveEvery
	if every == 0 {
		every = time.Minute
	}
	var err error
	if r.batches, err = r.drawEpoch(r.seed, r.at.Epoch); err != nil {
		return err
	}
	for r.at.Step < r.steps {
		if err := ctx.Err(); err != nil {
			return errors.Join(err, r.keep(o))
		}
		loss, err := r.advance()
		if err != nil {
			return fmt.Errorf("step %d of %d: %w", r.at.Step+1, r.steps, err)
		}
		if o.Save != nil && time.Since(*saved) > every {
			*saved = time.Now()
			if err := r.keep(o); err != nil {
				return err
			}
		}
		r.observe(o, loss)
	}
	if err := r.close(ctx, o); err != nil {
		return err
	}
	r.observe(o, last(r.at.Curve.TrainLoss))
	return nil
}

func last(x []float64) float64 { return x[len(x)-1] }

func (r *run) observe(o Options, loss float64) {
	if o.Observe != nil {
		o.Observe(Moment{r.at.Epoch, r.Epochs, r.at.Step, r.steps, &r.at.Curve, r.theta, loss})
	}
}

// close books an epoch whose steps are done. What is interrupted here changes
// nothing and is done again, for which ENAS' controller has to be saved first.
func (r *run) close(ctx context.Context, o Options) error {
	next := r.at
	if due := next.Epoch + 1; due == r.Epochs || r.EvaluateEvery > 0 && due%r.EvaluateEvery == 0 {
		if err := r.compare(ctx, &next.Curve, due); err != nil {
			return errors.Join(err, r.keep(o))
		}
	}
	if r.control != nil {
		if err := r.keep(o); err != nil {
			return err
		}
		if err := r.control.train(ctx, r, &next); err != nil {
			return err
		}
	}
	c, train, valid := &next.Curve, float64(r.at.Seen[0]), float64(r.at.Seen[1])
	c.TrainLoss = append(c.TrainLoss, r.at.Sums[0]/train)
	c.TrainAccuracy = append(c.TrainAccuracy, r.at.Sums[1]/train)
	if r.method.Architecture != NoPass {
		c.ValidLoss = append(c.ValidLoss, r.at.Sums[2]/valid)
		c.ValidAccuracy = append(c.ValidAccuracy, r.at.Sums[3]/valid)
	}
	c.Theta = append(c.Theta, r.theta)
	next.Epoch, next.Step, next.Sums, next.Seen = next.Epoch+1, 0, [4]float64{}, [2]int{}
	r.at = next
	return nil
}

// compare evaluates the supernet and its discretisation after an epoch.
func (r *run) compare(ctx context.Context, c *Curve, epoch int) error {
	if r.method.Hold == Nothing {
		return nil
	}
	matrix := rows(r.theta, len(r.space.Ops))
	before, err := r.accuracy(ctx, matrix)
	if err != nil {
		return err
	}
	after, err := r.accuracy(ctx, r.space.OneHot(r.space.Argmax(matrix)))
	if err != nil {
		return err
	}
	c.Evaluated = append(c.Evaluated, float64(epoch))
	c.Supernet, c.Discrete = append(c.Supernet, before), append(c.Discrete, after)
	return nil
}

// advance makes one step and returns the loss of its weight pass.
func (r *run) advance() (float64, error) {
	args, err := r.feed()
	if err != nil {
		return 0, err
	}
	for _, t := range r.state {
		donated, err := DonateTensorBuffer(t, r.backend, 0)
		if err != nil {
			return 0, fmt.Errorf("donating the state: %w", err)
		}
		args = append(args, donated)
	}
	out, err := r.trainer.Call(args...)
	if err != nil {
		return 0, err
	}
	n := len(out) - 2
	r.state = out[:n]
	report, err := float64s(out[n])
	if err != nil {
		return 0, err
	}
	if r.theta, err = float64s(out[n+1]); err != nil {
		return 0, err
	}
	if err := r.finite(report); err != nil {
		return 0, err
	}
	r.book(report)
	return report[0], nil
}

// book adds up what a step reported.
func (r *run) book(report []float64) {
	images := [2]int{len(r.batches.Weights[r.at.Step]), len(r.batches.Architecture[r.at.Step])}
	for i, n := range images {
		r.at.Seen[i] += n
		r.at.Sums[2*i] += report[2*i] * float64(n)
		r.at.Sums[2*i+1] += report[2*i+1]
	}
	r.at.Step++
}

// finite refuses what has diverged: a NaN must not reach a figure.
func (r *run) finite(report []float64) error {
	for i, name := range []string{"training loss", "", "validation loss", ""} {
		if bad(report[i]) {
			return fmt.Errorf("the %s is %v: the weights have diverged; lower LearningRate (now %v)", name, report[i], r.LearningRate)
		}
	}
	columns := len(r.space.Ops)
	for i, x := range r.theta {
		if bad(x) {
			return fmt.Errorf("θ of %s on edge %s is %v: its gradient or its update %q gave what is not a number; lower ArchRate (now %v)",
				r.space.Ops[i%columns], r.space.Edges[i/columns], x, r.update(r.method), r.ArchRate)
		}
	}
	return nil
}

func bad(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) }
