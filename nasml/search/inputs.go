package search

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/distributed"
	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/core/tensors/dtensor"

	"github.com/nasml/lab/nasml/bilevel"
	"github.com/nasml/lab/nasml/trial"
)

// divide splits images into those that train the weights, move the architecture, and are only evaluated.
func (s Settings) divide(images int, seed uint64) (train, validation, test []int, err error) {
	var rng *rand.Rand
	if s.Split == "random" {
		rng = trial.RNG(seed, "split")
	}
	if s.Parts != (Shares{}) {
		return s.Parts.of(images, rng)
	}
	train, validation, err = s.Bilevel.Split(images, 0.5, rng)
	return train, validation, nil, err
}

// of are the parts of a number of images, in order if rng is nil.
func (p Shares) of(images int, rng *rand.Rand) (train, validation, test []int, err error) {
	if want := p.Train + p.Validation + p.Test; images < want {
		return nil, nil, nil, fmt.Errorf("Parts need %d images, %d for the weights, %d for the architecture and %d to "+
			"test on, got %d", want, p.Train, p.Validation, p.Test, images)
	}
	all := trial.Indices(0, images)
	if rng != nil {
		rng.Shuffle(images, func(i, j int) { all[i], all[j] = all[j], all[i] })
	}
	a, b, c := p.Train, p.Train+p.Validation, p.Train+p.Validation+p.Test
	return all[:a:a], all[a:b:b], all[b:c:c], nil
}

// drawEpoch draws the batches of an epoch. Like all randomness in a search it is a function of the seed and the
// position, so that a resumed search has no generator to restore.
func (s Settings) drawEpoch(images int, seed uint64, epoch int) (bilevel.Epoch, error) {
	train, validation, _, err := s.divide(images, seed)
	if err != nil {
		return bilevel.Epoch{}, err
	}
	return s.Bilevel.Epoch(train, validation, s.Batch, trial.RNG(seed, "batches", fmt.Sprint(epoch)))
}

// inputs are those of the current step.
func (r *run) inputs() ([]any, error) {
	rng := trial.RNG(r.seed, "step", fmt.Sprint(r.at.Epoch), fmt.Sprint(r.at.Step))
	train, trainLabels, err := r.batch(r.batches.Weights[r.at.Step], rng)
	if err != nil {
		return nil, err
	}
	valid, validLabels, err := r.batch(r.batches.Architecture[r.at.Step], rng)
	if err != nil {
		return nil, err
	}
	draws, err := r.draws(rng)
	if err != nil {
		return nil, err
	}
	warmup := float32(0)
	if r.at.Epoch < r.Bilevel.Warmup {
		warmup = 1
	}
	before := max(0, r.at.Epoch-r.Bilevel.Warmup)*r.steps + r.at.Step
	return Inputs[any]{
		TrainImages: train, TrainLabels: trainLabels, ValidImages: valid, ValidLabels: validLabels, Draws: draws,
		Rate: float32(r.rate(r.at.Epoch)), Tau: float32(r.tau(r.at.Epoch)), Done: float32(before), Warmup: warmup,
	}.List(), nil
}

// batch makes tensors of images, augmented if there is a generator.
func (s *Runner) batch(indices []int, rng *rand.Rand) (images, labels *tensors.Tensor, err error) {
	side := s.Image
	pixels, classes := make([]float32, len(indices)*side*side*3), make([]int32, len(indices))
	if err := s.images.Batch(pixels, classes, indices, rng); err != nil {
		return nil, nil, err
	}
	images = tensors.FromFlatDataAndDimensions(pixels, len(indices), side, side, 3)
	return images, tensors.FromFlatDataAndDimensions(classes, len(indices)), nil
}

// draws are the random parts of both passes, [2, rows, options] for every block.
func (r *run) draws(rng *rand.Rand) ([]any, error) {
	flat := make([][]float32, len(r.product))
	for i, pass := range []Pass{r.method.Weights, r.method.Architecture} {
		parts := make([][]float32, len(r.product))
		for b, block := range r.product {
			n := block.Rows * block.Options
			flat[b] = append(flat[b], make([]float32, n)...)
			parts[b] = flat[b][i*n:]
		}
		if err := r.draw(pass, parts, rng); err != nil {
			return nil, err
		}
	}
	out := make([]any, len(flat))
	for b, block := range r.product {
		out[b] = tensors.FromFlatDataAndDimensions(flat[b], 2, block.Rows, block.Options)
	}
	return out, nil
}

// draw writes the random part of a pass, block by block.
func (r *run) draw(pass Pass, parts [][]float32, rng *rand.Rand) error {
	var arch Arch
	var err error
	switch pass {
	case Gumbel:
		for _, part := range parts {
			for j := range part {
				part[j] = float32(-math.Log(rng.ExpFloat64()))
			}
		}
		return nil
	case Uniform:
		arch, err = r.space.Random(rng)
	case Controller:
		arch, err = r.control.one(rng)
	case Mixture, PerExample, NoPass: // nothing is random
		return nil
	}
	for b, block := range arch.Theta {
		for i, row := range block {
			for j, x := range row {
				parts[b][i*len(row)+j] = float32(x)
			}
		}
	}
	return err
}

// rate is η of the weights in an epoch.
func (s Settings) rate(epoch int) float64 {
	if epoch < s.RateWarmup {
		return s.LearningRate * float64(epoch+1) / float64(s.RateWarmup)
	}
	length := s.ScheduleEpochs
	if length == 0 {
		length = s.Epochs
	}
	return bilevel.Cosine(s.LearningRate, s.LearningRateMin, epoch, length)
}

// tau is the temperature of the Gumbel-softmax in an epoch e of E,
//
//	τ = first − (first − last)·max(e − from, 0)/(E − 1) ,
//
// which reaches last only if from is 0 (liamcli/gaea_release@1604615 begins at 50 and ends at 3.42).
func (s Settings) tau(epoch int) float64 {
	if s.Epochs < 2 {
		return s.TauFirst
	}
	return s.TauFirst - (s.TauFirst-s.TauLast)*float64(max(epoch-s.TauFrom, 0))/float64(s.Epochs-1)
}

// From here on: steps of a search on several devices of one host, all of which end a step with the same bits.
// The first one evaluates the supernet and its discretisation.

// Statistics says over which examples batch norm takes mean and variance if several devices share a batch.
type Statistics string

// Synchronised takes them over the whole batch: the numbers are those of one device, to rounding. XLA's partitioner
// cuts the same program up and adds the sums that cross devices.
//
// PerDevice takes them over each device's share, as is common in data-parallel training: another estimator, the same as
// averaging the losses of the shares. Running statistics are the mean of the devices'.
const (
	Synchronised Statistics = ""
	PerDevice    Statistics = "device"
)

const batchAxis = "batch"

// divideUp spreads the compiled step over n devices.
func (s *Runner) divideUp(n int, epoch bilevel.Epoch) error {
	if have := s.backend.NumDevices(); n > have {
		return fmt.Errorf("the setting Devices must be at most %d on the backend %q, got %d: open more with "+
			"backend.OpenDevices", have, s.backend.Name(), n)
	}
	if err := checkShares(n, epoch); err != nil {
		return err
	}
	var err error
	if s.mesh, err = distributed.NewDeviceMesh([]int{n}, []string{batchAxis}); err != nil {
		return err
	}
	if s.Statistics == PerDevice { // a program for each, which meet in means over devices
		s.trainer.SPMD(s.mesh)
		return nil
	}
	return s.partition()
}

// checkShares returns an error if n devices cannot share every batch equally. Batches of all epochs have the same
// sizes.
func checkShares(n int, epoch bilevel.Epoch) error {
	for i := range epoch.Weights {
		for _, size := range []int{len(epoch.Weights[i]), len(epoch.Architecture[i])} {
			if size%n != 0 {
				return fmt.Errorf("batch %d of %d has %d examples, which %d devices cannot share equally: "+
					"set Bilevel.KeepLast to false, or change Batch, Devices or the number of images",
					i+1, len(epoch.Weights), size, n)
			}
		}
	}
	return nil
}

// partition leaves the program of a step as it is and tells XLA which inputs are divided; its partitioner follows them
// through the program.
func (s *Runner) partition() error {
	shared, err := distributed.BuildSpec(s.mesh).S(batchAxis).Done()
	if err != nil {
		return err
	}
	whole := distributed.NewReplicatedShardingSpec(s.mesh)
	// Batches come first in a inputs; the last specification goes for all that follows.
	s.trainer.AutoSharding(s.mesh).
		WithInputShardingSpecs(shared, shared, shared, shared, whole).
		WithOutputShardingSpecs(whole)
	return nil
}

// overDevices makes the step one on a device's share of the batches: losses are means over devices, counts are sums.
func (p *Step) overDevices() {
	stats := len(p.net.Stats())
	p.losses = func(f Inputs[*Node], aux []*Node, seen *views) bilevel.Problem {
		own := p.problem(f, aux, seen)
		return bilevel.Problem{Inner: meanOverDevices(own.Inner, stats), Outer: meanOverDevices(own.Outer, stats)}
	}
	p.counts = func(right []*Node) []*Node {
		return right[0].Graph().Distributed().AllReduce(right, compute.ReduceOpSum)
	}
}

// meanOverDevices is the mean over devices of a loss on each share, and of the running statistics, the first of its
// side outputs.
func meanOverDevices(share bilevel.Loss, stats int) bilevel.Loss {
	return func(w, theta []*Node) (*Node, []*Node) {
		loss, aux := share(each(w, onDevice), each(theta, onDevice))
		aux = append([]*Node{}, aux...)
		for i, x := range aux[:stats] {
			aux[i] = deviceMean(x)
		}
		return deviceMean(loss), aux
	}
}

// onDevice and deviceMean are the two ends of what a device does for itself. onDevice takes a tensor that all devices
// share; deviceMean is the mean of a tensor over devices. In the inner product that averages over devices they are each
// other's transposes, so that a gradient through both is the mean of the devices' gradients, and can be differentiated
// again.
func onDevice(x *Node) *Node {
	return IdentityWithCustomGradient(x, func(_, v *Node) *Node { return deviceMean(v) })
}

// deviceMean has a branch that is never taken to carry the gradient to x, as GoMLX has custom gradients for the
// identity only.
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

// spread copies the state to every other device.
func (r *run) spread() error {
	for len(r.copies) < r.devices() {
		var own []*tensors.Tensor
		for _, t := range r.copies[0] {
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

// shares are the inputs by device.
func (r *run) shares(inputs []any) ([][]any, error) {
	shares := make([][]any, len(r.copies))
	for i, x := range inputs {
		parts, err := r.parts(i, x)
		if err != nil {
			return nil, fmt.Errorf("dividing a batch up: %w", err)
		}
		for d := range shares {
			shares[d] = append(shares[d], parts[d])
		}
	}
	return shares, nil
}

func (r *run) parts(i int, x any) ([]any, error) {
	parts := make([]any, len(r.copies))
	t, isTensor := x.(*tensors.Tensor)
	if !isTensor || r.mesh == nil { // a number, or the one device's
		for d := range parts {
			parts[d] = x
		}
		return parts, nil
	}
	spec := distributed.NewReplicatedShardingSpec(r.mesh)
	if i < divided {
		var err error
		if spec, err = distributed.BuildSpec(r.mesh).S(batchAxis).Done(); err != nil {
			return nil, err
		}
	}
	sharded, err := dtensor.ShardTensor(spec, t)
	if err != nil {
		return nil, err
	}
	for d, shard := range sharded.Shards() {
		parts[d] = shard
	}
	return parts, nil
}
