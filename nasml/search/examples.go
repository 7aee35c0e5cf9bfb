package search

import (
	"math/rand/v2"

	"github.com/gomlx/compute"

	"github.com/nasml/lab/nasml/images"
)

// Examples are labelled images that a search makes its batches of: photographs in
// files, for instance, which nobody could have in memory.
type Examples interface {
	Len() int
	Classes() int // labels are 0 to Classes−1

	// Batch writes the images with the given indices to pixels [len(indices), side,
	// side, 3], side as Settings.Image says, and their labels: as they are searched on,
	// or as they are evaluated, where rng is nil. The same indices and state of rng
	// give the same batch.
	Batch(pixels []float32, labels []int32, indices []int, rng *rand.Rand) error
}

// NewOf is [New] with images of any source, which makes of them what the settings say.
func NewOf(b compute.Backend, s Settings, set Examples) (Runner, error) {
	r, err := searcherOf(b, s, set)
	if err != nil { // as in New
		return nil, err
	}
	return r, nil
}

// inMemory are images that are all there.
type inMemory struct {
	*images.Images
	augment images.Augment
}

func (m inMemory) Classes() int { return classes(m.Images) }

func (m inMemory) Batch(pixels []float32, labels []int32, indices []int, rng *rand.Rand) error {
	augment := m.augment
	if rng == nil {
		augment = augment.Plain()
	}
	for i, j := range indices {
		labels[i] = int32(m.Labels[j])
	}
	return augment.Batch(pixels, m.Images, indices, rng)
}
