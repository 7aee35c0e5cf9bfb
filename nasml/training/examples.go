package training

import (
	"fmt"
	"math/rand/v2"

	"github.com/nasml/lab/nasml/images"
)

// Examples are labelled images that batches are made of.
type Examples interface {
	Len() int
	Classes() int // labels are 0 to Classes−1

	// Batch writes the images with the given indices, as they are trained or
	// tested on, to pixels [len(indices), side, side, 3], and their labels. The
	// same indices and state of rng give the same batch.
	Batch(pixels []float32, labels []int32, indices []int, rng *rand.Rand) error
}

// inMemory are images that are all there.
type inMemory struct {
	*images.Images
	augment images.Augment
	classes int
}

// InMemory are a set's images for training and another's for testing, augmented
// as the settings say. Larger images are halved by 2×2 means until they have the
// settings' size. It is an error where that does not lead there, where they have
// no three colours, or where a test image has a class that training has not.
func (s Settings) InMemory(train, test *images.Images) (Examples, Examples, error) {
	trained, err := fit(train, s.Image)
	if err != nil {
		return nil, nil, err
	}
	tested, err := fit(test, s.Image)
	if err != nil {
		return nil, nil, err
	}
	classes := 0
	for label := range train.Counts() {
		classes = max(classes, int(label)+1)
	}
	for label := range test.Counts() {
		if int(label) >= classes {
			return nil, nil, fmt.Errorf("training: a test image of %s has label %d, training images have 0 to %d",
				test.Name, label, classes-1)
		}
	}
	return inMemory{trained, s.Augment, classes}, inMemory{tested, s.Augment.Plain(), classes}, nil
}

func (m inMemory) Classes() int { return m.classes }

func (m inMemory) Batch(pixels []float32, labels []int32, indices []int, rng *rand.Rand) error {
	for i, j := range indices {
		labels[i] = int32(m.Labels[j])
	}
	return m.augment.Batch(pixels, m.Images, indices, rng)
}

// fit halves images until they have the wanted side.
func fit(set *images.Images, side int) (*images.Images, error) {
	fitted, err := set.Fit(side)
	if err != nil {
		return nil, fmt.Errorf("training: %w: change Image", err)
	}
	return fitted, nil
}
