package oymak2021

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gomlx/compute"

	"github.com/nasml/lab/nasml/backend"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/internal/checkpoint"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/oymak2021/internal/pixels"
	"github.com/nasml/lab/nasml/oymak2021/internal/sgdsweep"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/trial"
)

// figure2Bench trains all trials of a width (of p.Together seeds) in one graph, whole epochs at a time if that takes at
// most seconds. Cancelled, it stops within seconds; finished trials and the checkpoint of the others are kept.
func figure2Bench(ctx context.Context, p Figure2Params, _ string) (b lab.Bench[sweepTrial], err error) {
	images, err := p.view().Open(ctx)
	if err != nil {
		return b, err
	}
	keys, err := p.activationKeys()
	if err != nil {
		return b, err
	}
	if images.Note != "" {
		b.Title = "oymak2021/figure2, on the digits that travel with the project"
	}
	b.Device, b.Note = openDevice, images.Note
	b.Key = func(t sweepTrial) any {
		t.Activations = keys
		return t
	}
	b.Data = func(sweepTrial) string { return images.Fingerprint }
	b.Units = func(t sweepTrial) int { return t.units() * t.Epochs * ((images.Len + t.Batch - 1) / t.Batch) }
	b.Together = func(t sweepTrial, seed uint64) any {
		type graph struct {
			panel, inputs string
			width         int
			seeds         uint64
		}
		return graph{t.Panel, t.Inputs, t.Width, seed / uint64(cmp.Or(p.Together, p.Seeds))}
	}
	b.Batch = func(ctx context.Context, job lab.Job[sweepTrial]) error {
		im, err := images.Images(ctx)
		if err != nil {
			return err
		}
		return trainSweep(ctx, job, pixelsOf(im))
	}
	return b, nil
}

// view are the training examples of the two classes.
func (p Figure2Params) view() data.View {
	view := viewOf(p.Data, p.Classes)
	view.First, view.OrShipped = p.Examples, true
	return view
}

// openDevice opens the device that GoMLX computes on.
func openDevice() (name, device string, err error) {
	b, err := backend.Open()
	if err != nil {
		return "", "", err
	}
	name, device = backend.Describe(b)
	return name, device, nil
}

// units is the cost of a batch for one pair, by its weights.
func (t sweepTrial) units() int {
	const inputs, unit = 784, 1 << 12
	return 1 + t.Weights(inputs)/unit
}

// checkpointEvery bounds what a killed run loses. A sweep may hold gigabytes, so saving after every epoch could cost
// more than it saves.
var checkpointEvery = runs.Interval(time.Minute)

// trainSweep runs the sweep that a job's trials need and stores their results.
func trainSweep(ctx context.Context, job lab.Job[sweepTrial], images *pixels.Images) error {
	b, err := backend.Open()
	if err != nil {
		return err
	}
	first := job.Of[0]
	var pairs []sgdsweep.Pair
	for i, t := range job.Of {
		pairs = append(pairs, sgdsweep.Pair{Seed: job.Trials[i].Seed, DeltaAlpha: t.DeltaAlpha})
	}
	s, err := sgdsweep.New(first.Network, images, pairs)
	if err != nil {
		return err
	}
	p, err := resumeSweep(s, job)
	if err != nil {
		return err
	}
	unit, done := first.units()*len(pairs), s.Done(p)
	job.Progress.Skip(unit * done)
	err = s.Train(ctx, b, p, func() error {
		before := done
		done = s.Done(p)
		job.Progress.Step(unit*(done-before), fmt.Sprintf("%v, epoch %d/%d", first, p.Epoch, first.Epochs))
		_, err := job.SaveEvery(checkpointEvery, p.Save)
		return err
	})
	if err != nil {
		return errors.Join(err, saveCancelled(ctx, s, job, p))
	}
	results, err := s.Results(pairs, p)
	if err != nil {
		return err
	}
	return job.DoneAll(results)
}

// resumeSweep starts from the job's checkpoint, or from the initial weights if there is none, or one in another layout.
func resumeSweep(s *sgdsweep.Sweep, job lab.Job[sweepTrial]) (*sgdsweep.Progress, error) {
	r, err := job.Load()
	if err == nil {
		defer r.Close()
		p := s.Start()
		if err = p.Load(r); err == nil {
			return p, nil
		}
	}
	if errors.Is(err, runs.ErrNotFound) || errors.Is(err, checkpoint.ErrOther) {
		return s.Start(), nil
	}
	return nil, err
}

// saveCancelled saves the state of a cancelled sweep if that is quick: a notebook's cell is killed five seconds after
// it was stopped.
func saveCancelled(ctx context.Context, s *sgdsweep.Sweep, job lab.Job[sweepTrial], p *sgdsweep.Progress) error {
	const atMost = 1 << 29 // bytes
	if ctx.Err() == nil || s.Done(p) == 0 || p.Bytes() > atMost {
		return nil
	}
	return job.Save(p.Save)
}

// Figure2Work is the training of one width of Figure 2, all its seeds and Δα in one graph, which a benchmark runs again
// and again from the same start. It is the code that Figure2 runs.
type Figure2Work = sgdsweep.Work

// NewFigure2Work prepares the training of width k of a panel, "a" or "b". It returns an error if p is invalid or the
// data are not available.
func NewFigure2Work(ctx context.Context, b compute.Backend, p Figure2Params, panel string, k int) (
	*Figure2Work, error) {
	p.Panels, p.Widths, p.DeepWidths = []string{panel}, []int{k}, nil
	if panel == "b" {
		p.Widths, p.DeepWidths = nil, []int{k}
	}
	var c study.Checks
	c.Limits(p)
	p.rules(&c)
	if err := c.Err("figure 2"); err != nil {
		return nil, err
	}
	opened, err := p.view().Open(ctx)
	if err != nil {
		return nil, err
	}
	images, err := opened.Images(ctx)
	if err != nil {
		return nil, err
	}
	var pairs []sgdsweep.Pair
	for _, seed := range trial.Seeds(p.Seeds) {
		for _, delta := range p.DeltaAlphas {
			pairs = append(pairs, sgdsweep.Pair{Seed: seed, DeltaAlpha: delta})
		}
	}
	s, err := sgdsweep.New(p.network(panel, k), pixelsOf(images), pairs)
	if err != nil {
		return nil, err
	}
	return s.Work(b)
}
