package bilevel

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/nasml/lab/nasml/trial"
)

// Split divides the examples 0, …, n−1 into the first ⌊fraction·n⌋ for the
// weights and the rest for the architecture: in order where rng is nil, as
// DARTS does with fraction 0.5 (train_search.py:89-101), else shuffled. For ERM
// both are all examples, in order.
//
// It returns an error if a part would be empty.
func (s Settings) Split(n int, fraction float64, rng *rand.Rand) (train, validation []int, err error) {
	all := trial.Indices(0, max(n, 0))
	if s.Level == ERM {
		if n < 1 {
			return nil, nil, fmt.Errorf("a search needs at least 1 example, got %d", n)
		}
		return all, slices.Clone(all), nil
	}
	if rng != nil {
		all = shuffled(all, rng)
	}
	k := int(fraction * float64(len(all)))
	if !(fraction > 0 && fraction < 1) || k < 1 {
		return nil, nil, fmt.Errorf("training and validation part must both have examples, got a training part of "+
			"%v out of %d examples", fraction, n)
	}
	return all[:k:k], all[k:], nil
}

// Epoch holds the batches of an epoch: step i takes Weights[i] for the weights
// and Architecture[i] for the architecture.
type Epoch struct{ Weights, Architecture [][]int }

// Epoch draws the batches of one epoch. It is a function of its arguments and
// of the state of rng, so that a resumed run draws an epoch again from the seed
// of that epoch; and the weights' batches do not depend on the pairing.
//
// The weights' batches go through train in a new order. The last one, if
// smaller than batch, is dropped unless KeepLast is set, to keep one shape of
// the compiled step; the originals keep it. The architecture's batches come
// from validation by Pairing. They are of size batch, but for those that pair
// each example of the weights' batch with one (with-replacement, same), which
// are of its size, and for the end of a shuffle (without-replacement, KeepLast).
//
// It returns an error if train or validation do not fill one batch.
func (s Settings) Epoch(train, validation []int, batch int, rng *rand.Rand) (Epoch, error) {
	if batch < 1 {
		return Epoch{}, fmt.Errorf("the batch size must be at least 1, got %d", batch)
	}
	if rng == nil {
		return Epoch{}, errors.New("drawing an epoch needs a random generator seeded for this epoch")
	}
	weights := s.batches(train, batch, rng)
	if len(weights) == 0 {
		return Epoch{}, tooFew("training", len(train), batch)
	}
	next, err := s.partners(validation, batch, rng)
	if err != nil {
		return Epoch{}, err
	}
	e := Epoch{Weights: weights}
	for _, w := range weights {
		e.Architecture = append(e.Architecture, next(w))
	}
	return e, nil
}

// partners returns the function that draws the architecture's batch which goes
// with a weights' batch.
func (s Settings) partners(validation []int, batch int, rng *rand.Rand) (func(weights []int) []int, error) {
	enough := len(validation) >= batch || s.KeepLast && len(validation) > 0
	switch s.Pairing {
	case Same:
		return slices.Clone[[]int], nil
	case WithReplacement:
		enough = len(validation) > 0
	}
	if !enough {
		return nil, tooFew("validation", len(validation), batch)
	}
	switch s.Pairing {
	case FreshShuffle:
		order, size := slices.Clone(validation), min(batch, len(validation))
		return func([]int) []int {
			for i := range size { // the head of a Fisher–Yates shuffle, whatever order it starts from
				j := i + rng.IntN(len(order)-i)
				order[i], order[j] = order[j], order[i]
			}
			return slices.Clone(order[:size])
		}, nil
	case WithoutReplacement:
		var left [][]int
		return func([]int) []int {
			if len(left) == 0 {
				left = s.batches(validation, batch, rng)
			}
			first := left[0]
			left = left[1:]
			return first
		}, nil
	case WithReplacement:
		return func(weights []int) []int {
			drawn := make([]int, len(weights))
			for i := range drawn {
				drawn[i] = validation[rng.IntN(len(validation))]
			}
			return drawn
		}, nil
	}
	return nil, errors.Join(fmt.Errorf("no pairing is called %q", s.Pairing), s.Check())
}

// batches cuts a new order of the examples into batches, the last one by
// KeepLast.
func (s Settings) batches(examples []int, size int, rng *rand.Rand) [][]int {
	all := slices.Collect(slices.Chunk(shuffled(examples, rng), size))
	if n := len(all); n > 0 && len(all[n-1]) < size && !s.KeepLast {
		all = all[:n-1]
	}
	return all
}

func tooFew(part string, have, batch int) error {
	return fmt.Errorf("the %s part has %d examples, which do not fill one batch of %d: take more examples, a "+
		"smaller batch, or KeepLast", part, have, batch)
}

func shuffled(x []int, rng *rand.Rand) []int {
	x = slices.Clone(x)
	rng.Shuffle(len(x), func(i, j int) { x[i], x[j] = x[j], x[i] })
	return x
}
