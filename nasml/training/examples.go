package training

import (
	"fmt"

	"github.com/nasml/lab/nasml/internal/images"
)

// InMemory are a set's images for training and another's for testing, augmented
// as the settings say, and fitted to their size, see [images.Images.Fit]. It is an error
// if that does not lead there, or where a test image has a class that training has
// not.
func (s Settings) InMemory(train, test *images.Images) (trained, tested images.Examples, err error) {
	own, err := train.Fit(s.Image)
	if err != nil {
		return nil, nil, fmt.Errorf("training: %w", err)
	}
	others, err := test.Fit(s.Image)
	if err != nil {
		return nil, nil, fmt.Errorf("training: %w", err)
	}
	a, b := own.Augmented(s.Augment), others.Augmented(s.Augment.Plain())
	for label := range test.Counts() {
		if int(label) >= a.Most {
			return nil, nil, fmt.Errorf("training: a test image of %s has label %d, training images have 0 to %d",
				test.Name, label, a.Most-1)
		}
	}
	b.Most = a.Most
	return a, b, nil
}
