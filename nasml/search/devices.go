package search

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/distributed"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/core/tensors/dtensor"

	"github.com/nasml/lab/nasml/bilevel"
	"github.com/nasml/lab/nasml/data"
)

// This file runs the steps of a search on several devices of one host. Every
// device has its share of the examples of a batch, and its own copy of weights,
// momentum and architecture, all of which end a step with the same bits; so
// what grows with the batch, the maps that wait for the backward pass, is
// divided by the number of devices, and what grows with the network is not.
// The supernet and its discretisation are evaluated on the first device.

// Statistics says over which examples batch norm takes mean and variance, where
// a batch is shared by several devices.
type Statistics string

// Synchronised takes them over the whole batch: the numbers are those of one
// device, to rounding. XLA's partitioner cuts the same program up and adds the
// sums that cross devices.
//
// PerDevice takes them over each device's share, as data-parallel training
// commonly does: another estimator than that of one device, the same as if the
// losses of the shares had been averaged. Running statistics are the mean of
// the devices'.
const (
	Synchronised Statistics = ""
	PerDevice    Statistics = "device"
)

// Runner runs searches with the same settings on the same images: a Searcher,
// or a Parallel where Settings.Devices asks for more than one device.
type Runner interface {
	Search(ctx context.Context, seed uint64, o Options) (*Curve, error)
	Close()
}

// New prepares searches as the settings say; its errors are those of
// NewSearcher and NewParallel.
func New(b compute.Backend, s Settings, images *data.Images) (Runner, error) {
	var r Runner
	var err error
	if s.Devices > 1 {
		r, err = NewParallel(b, s, images)
	} else {
		r, err = NewSearcher(b, s, images)
	}
	if err != nil { // r would not be nil: it holds a nil pointer
		return nil, err
	}
	return r, nil
}

// Parallel is a Searcher whose steps run on several devices.
type Parallel struct {
	*Searcher
	mesh *distributed.DeviceMesh
}

// batchAxis is the one axis of the mesh of devices.
const batchAxis = "batch"

// NewParallel prepares a search on the first Settings.Devices devices of a
// backend; backend.OpenDevices opens one that has so many. Besides the errors
// of NewSearcher, it is one where the backend has fewer devices, and where the
// last batch of an epoch cannot be shared equally.
func NewParallel(b compute.Backend, s Settings, images *data.Images) (*Parallel, error) {
	single, err := NewSearcher(b, s, images)
	if err != nil {
		return nil, err
	}
	p := &Parallel{Searcher: single}
	if err := p.divideUp(s.Devices); err != nil {
		single.Close()
		return nil, fmt.Errorf("search: %w", err)
	}
	return p, nil
}

// divideUp makes the executor of a step one of n devices.
func (p *Parallel) divideUp(n int) error {
	if n < 2 { // GoMLX v0.28 does not compile a program that is divided into one part
		return fmt.Errorf("the setting Devices is %d, want at least 2 to divide a search up: New takes one device, too", n)
	}
	if have := p.backend.NumDevices(); n > have {
		return fmt.Errorf("the setting Devices is %d, and the backend %q has %d: take at most %d, or a backend with more (backend.OpenDevices)", n, p.backend.Name(), have, have)
	}
	if err := p.shares(n); err != nil {
		return err
	}
	var err error
	if p.mesh, err = distributed.NewDeviceMesh([]int{n}, []string{batchAxis}); err != nil {
		return err
	}
	if p.Statistics == PerDevice {
		return p.replicate()
	}
	return p.partition()
}

// shares looks at whether n devices can share every batch equally. Batches of
// one epoch are as large as those of any other.
func (p *Parallel) shares(n int) error {
	epoch, err := p.drawEpoch(0, 0)
	if err != nil {
		return err
	}
	for i := range epoch.Weights {
		for _, size := range []int{len(epoch.Weights[i]), len(epoch.Architecture[i])} {
			if size%n != 0 {
				return fmt.Errorf("batch %d of %d has %d examples, which %d devices cannot share equally: set Bilevel.KeepLast to false, or change Batch, Devices or the number of images", i+1, len(epoch.Weights), size, n)
			}
		}
	}
	return nil
}

// partition leaves the program of a step as it is and tells XLA which of its
// inputs are divided: XLA's partitioner follows them through the program.
func (p *Parallel) partition() error {
	shared, err := distributed.BuildSpec(p.mesh).S(batchAxis).Done()
	if err != nil {
		return err
	}
	whole := distributed.NewReplicatedShardingSpec(p.mesh)
	p.trainer.AutoSharding(p.mesh).
		WithInputShardingSpecs(shared, shared, shared, shared, whole). // as feedOf; the last goes for all that follow
		WithOutputShardingSpecs(whole)
	return nil
}

// replicate gives every device a program of its own batches, which meets the
// others' in means over devices.
func (p *Parallel) replicate() error {
	p.trainer.Finalize()
	step, err := NewExec(p.backend, func(in []*Node) []*Node {
		o, next := p.shareStep(feedOf(in), p.state(in[feeds:]))
		report := Stack([]*Node{o.trainLoss, o.trainRight, o.validLoss, o.validRight}, 0)
		return append(nodes(next), report, p.relaxed(next.Theta[0]))
	})
	if err != nil {
		return fmt.Errorf("building the training graph of one device: %w", err)
	}
	p.trainer = step.SPMD(p.mesh)
	return nil
}

// shareStep is program.step on one device's share of the batches: its losses
// are the means over the devices of the losses of the shares.
func (p *program) shareStep(f feed, s bilevel.State) (outcome, bilevel.State) {
	zero := ScalarZero(f.rate.Graph(), f.rate.DType())
	stats := len(s.Aux)
	s.Aux = append(append([]*Node{}, s.Aux...), zero, zero)
	search := bilevel.Search{
		Settings: p.Bilevel,
		SGD:      bilevel.SGD{Momentum: p.Momentum, WeightDecay: p.WeightDecay, Nesterov: p.Nesterov},
		Problem: func(aux []*Node) bilevel.Problem {
			own := p.problem(f, aux)
			return bilevel.Problem{Inner: overDevices(own.Inner, stats), Outer: overDevices(own.Outer, stats)}
		},
	}
	if p.method.Architecture != NoPass {
		search.Update = func(theta, grad, slots []*Node) (theta2, slots2 []*Node) {
			next, slots2 := p.updateArchitecture(f, theta[0], grad[0], slots)
			return []*Node{next}, slots2
		}
	}
	next, train, valid := search.Step(s, f.rate, f.warmup)
	if valid == nil {
		valid = zero
	}
	right := f.rate.Graph().Distributed().AllReduce(next.Aux[stats:], compute.ReduceOpSum)
	next.Aux = next.Aux[:stats]
	return outcome{train, right[0], valid, right[1]}, next
}

// overDevices is the mean over devices of a loss on the share of each, and of
// the first so many of what it leaves behind, the running statistics.
func overDevices(share bilevel.Loss, stats int) bilevel.Loss {
	return func(w, theta []*Node) (*Node, []*Node) {
		loss, aux := share(onDevices(w), onDevices(theta))
		aux = append([]*Node{}, aux...)
		for i, x := range aux[:stats] {
			aux[i] = deviceMean(x)
		}
		return deviceMean(loss), aux
	}
}

func onDevices(x []*Node) []*Node {
	y := make([]*Node, len(x))
	for i := range x {
		y[i] = onDevice(x[i])
	}
	return y
}

// onDevice and deviceMean are the two ends of what a device does for itself.
// onDevice takes a tensor that all devices have in common; deviceMean is the
// mean of a tensor over devices. In the inner product that averages over
// devices they are each other's transposes, so that a gradient of what has
// passed both is the mean of the devices' gradients, and has a gradient again.
func onDevice(x *Node) *Node {
	return IdentityWithCustomGradient(x, func(_, v *Node) *Node { return deviceMean(v) })
}

// deviceMean has a branch that is never taken to carry the gradient to x, as
// GoMLX has gradients of one's own for the identity only.
func deviceMean(x *Node) *Node {
	var v *Node // of the call of Gradient under way, which visits the mean before x
	own := IdentityWithCustomGradient(x, func(_, _ *Node) *Node { return onDevice(v) })
	g := x.Graph()
	sum := g.Distributed().AllReduceOne(StopGradient(x), compute.ReduceOpSum)
	mean := DivScalar(sum, float64(g.NumDevices()))
	return IdentityWithCustomGradient(Where(Const(g, false), own, mean), func(_, up *Node) *Node {
		v = up
		return up
	})
}

// spread is a search under way on several devices.
type spread struct {
	*run
	mesh   *distributed.DeviceMesh
	copies [][]*tensors.Tensor // of the state, by device; the first is the run's
}

// Search is Searcher.Search on several devices. A checkpoint does not say on how
// many devices it was written.
func (p *Parallel) Search(ctx context.Context, seed uint64, o Options) (*Curve, error) {
	own, err := p.start(seed, o)
	if err != nil {
		return nil, err
	}
	r := &spread{run: own, mesh: p.mesh}
	defer r.free()
	if err := r.copy(); err != nil {
		return nil, err
	}
	saved := time.Now()
	for r.at.Epoch < p.Epochs {
		if err := r.epoch(ctx, o, &saved); err != nil {
			return nil, fmt.Errorf("%s on %d devices, seed %d, epoch %d: %w", p.method.Title, p.mesh.NumDevices(), seed, r.at.Epoch+1, err)
		}
	}
	if r.at.Curve.Final, err = r.final(ctx); err != nil {
		return nil, fmt.Errorf("%s, seed %d, picking an architecture: %w", p.method.Title, seed, err)
	}
	return &r.at.Curve, nil
}

// copy gives every device a copy of the state.
func (r *spread) copy() error {
	r.copies = [][]*tensors.Tensor{r.state}
	for range r.mesh.NumDevices() - 1 {
		var own []*tensors.Tensor
		for _, t := range r.state {
			c, err := t.LocalClone()
			if err != nil {
				return fmt.Errorf("copying the state: %w", err)
			}
			own = append(own, c)
		}
		r.copies = append(r.copies, own)
	}
	return nil
}

func (r *spread) free() {
	for _, state := range r.copies {
		for _, t := range state {
			_ = t.FinalizeAll()
		}
	}
}

// epoch finishes the epoch under way.
func (r *spread) epoch(ctx context.Context, o Options, saved *time.Time) error {
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
		if o.Save != nil && time.Since(*saved) > o.every() {
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

// every is the time between two saves.
func (o Options) every() time.Duration {
	if o.SaveEvery == 0 {
		return time.Minute
	}
	return o.SaveEvery
}

// advance makes one step on all devices and returns the loss of its weight
// pass.
func (r *spread) advance() (float64, error) {
	feed, err := r.feed()
	if err != nil {
		return 0, err
	}
	args, err := r.args(feed)
	if err != nil {
		return 0, err
	}
	out, err := r.trainer.Call(args...)
	if err != nil {
		return 0, err
	}
	each := len(out) / len(r.copies)
	for d := range r.copies {
		r.copies[d] = out[d*each : (d+1)*each-2]
	}
	r.state = r.copies[0]
	report, err := float64s(out[each-2])
	if err != nil {
		return 0, err
	}
	if r.theta, err = float64s(out[each-1]); err != nil {
		return 0, err
	}
	for d := range r.copies[1:] { // what the others report is the same
		for _, t := range out[(d+2)*each-2 : (d+2)*each] {
			if err := t.FinalizeAll(); err != nil {
				return 0, err
			}
		}
	}
	if err := r.finite(report); err != nil {
		return 0, err
	}
	r.book(report)
	return report[0], nil
}

// args are what a step is given, device by device: its share of the batches,
// the rest of the feed, its copy of the state.
func (r *spread) args(feed []any) ([]any, error) {
	shares := make([][]any, len(r.copies))
	for i, x := range feed {
		parts, err := r.parts(i, x)
		if err != nil {
			return nil, fmt.Errorf("dividing a batch up: %w", err)
		}
		for d := range shares {
			shares[d] = append(shares[d], parts[d])
		}
	}
	var args []any
	for d, share := range shares {
		args = append(args, share...)
		for _, t := range r.copies[d] {
			donated, err := DonateTensorBuffer(t, r.backend, compute.DeviceNum(d))
			if err != nil {
				return nil, fmt.Errorf("donating the state of device %d: %w", d, err)
			}
			args = append(args, donated)
		}
	}
	return args, nil
}

// batches of a feed come first, images and labels of both; see feedOf.
const feedBatches = 4

// parts are an input of a feed, by device: batches are divided, all else is
// copied.
func (r *spread) parts(i int, x any) ([]any, error) {
	parts := make([]any, len(r.copies))
	t, isTensor := x.(*tensors.Tensor)
	if !isTensor { // a number
		for d := range parts {
			parts[d] = x
		}
		return parts, nil
	}
	spec := distributed.NewReplicatedShardingSpec(r.mesh)
	if i < feedBatches {
		var err error
		if spec, err = distributed.BuildSpec(r.mesh).S(batchAxis).Done(); err != nil {
			return nil, err
		}
	}
	divided, err := dtensor.ShardTensor(spec, t)
	if err != nil {
		return nil, err
	}
	for d, shard := range divided.Shards() {
		parts[d] = shard
	}
	return parts, nil
}
