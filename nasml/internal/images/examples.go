package images

import "math/rand/v2"

// Examples are labelled images for batches, which need not be in memory.
type Examples interface {
	Len() int
	Classes() int // labels are 0 to Classes−1

	// Batch writes the images with the given indices to pixels [len(indices), side, side, 3], side as the settings say
	// that they were made with, and their labels: as they are trained on, or as they are evaluated, where rng is nil.
	// The same indices and state of rng give the same batch.
	Batch(pixels []float32, labels []int32, indices []int, rng *rand.Rand) error
}

// Loaded are images that are all there, with labels below Most: [Examples].
type Loaded struct {
	*Images
	Augment Augment
	Most    int
}

// Classes is Most.
func (l Loaded) Classes() int { return l.Most }

// Batch is that of [Augment], which is plain where rng is nil.
func (l Loaded) Batch(pixels []float32, labels []int32, indices []int, rng *rand.Rand) error {
	augment := l.Augment
	if rng == nil {
		augment = augment.Plain()
	}
	for i, j := range indices {
		labels[i] = int32(l.Labels[j])
	}
	return augment.Batch(pixels, l.Images, indices, rng)
}

// Augmented are the images with labels up to the largest that there is.
func (im *Images) Augmented(a Augment) Loaded {
	most := 0
	for label := range im.Counts() {
		most = max(most, int(label)+1)
	}
	return Loaded{im, a, most}
}
