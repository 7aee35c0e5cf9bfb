package search

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/gomlx/gomlx/core/tensors"

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
	all := make([]int, images)
	for i := range all {
		all[i] = i
	}
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
