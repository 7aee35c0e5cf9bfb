package search

import (
	"github.com/gomlx/compute"

	"github.com/nasml/lab/nasml/internal/images"
)

// NewOf is [New] with images of any source, which makes of them what the settings say.
func NewOf(b compute.Backend, s Settings, set images.Examples) (Runner, error) {
	r, err := searcherOf(b, s, set)
	if err != nil { // as in New
		return nil, err
	}
	return r, nil
}
