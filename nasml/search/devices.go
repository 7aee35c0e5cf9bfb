package search

import (
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/distributed"
	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/core/tensors/dtensor"

	"github.com/nasml/lab/nasml/bilevel"
)

// This file spreads the steps of a search over several devices of one host, all of which end a step with the same bits.
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
