package oymak2021

import (
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/spectral"
)

// The sources of examples. All inputs have unit norm, all labels are ±1.
const (
	thm3Cap     = "cap"     // x = (y cos φ, sin φ·u), u uniform on a sphere: aligned with every kernel
	thm3Flipped = "flipped" // the same with a share of the labels turned over: aligned with none
	thm3Product = "product" // x uniform on the sphere, y = sign(x₁x₂): an even function, which kernels of odd activations cannot see
	thm3Paired  = "paired"  // the same in pairs x, −x with one label, which networks of odd activations cannot fit: K_α is singular
	thm3Images  = "images"  // two classes of images, pixels divided by their norm
)

// thm3World is what examples are drawn from.
type thm3World struct {
	Data   string  `json:"data"`
	Dim    int     `json:"dim,omitempty"`     // d of the synthetic sources
	CosPhi float64 `json:"cos_phi,omitempty"` // margin of cap and flipped
	Flip   float64 `json:"flip,omitempty"`    // share of flipped labels
}

// thm3Examples are inputs [n, d] of unit norm with labels ±1.
type thm3Examples struct {
	x *mat.Dense
	y []float64
}

// draw takes n examples for training and pool others from the world; images
// come from the training split for the former and from the test split for the
// latter. A seed's first n examples are the same for every n.
func (w thm3World) draw(seed uint64, n, pool int, images *thm3ImageSet) (train, rest thm3Examples, err error) {
	if w.Data == thm3Images {
		if train, err = images.train.take(runs.RNG(seed, "examples", "train"), n); err != nil {
			return train, rest, err
		}
		rest, err = images.test.take(runs.RNG(seed, "examples", "pool"), pool)
		return train, rest, err
	}
	return w.synthetic(runs.RNG(seed, "examples", "train"), n), w.synthetic(runs.RNG(seed, "examples", "pool"), pool), nil
}

func (w thm3World) synthetic(rng *rand.Rand, n int) thm3Examples {
	e := thm3Examples{mat.NewDense(n, w.Dim, nil), make([]float64, n)}
	for i := range n {
		row := e.x.RawRowView(i)
		u := spectral.SpherePoints(rng, 1, w.Dim).RawRowView(0)
		if w.Data == thm3Product || w.Data == thm3Paired {
			copy(row, u)
			if w.Data == thm3Paired && i%2 == 1 {
				for c, v := range e.x.RawRowView(i - 1) {
					row[c] = -v
				}
			}
			e.y[i] = math.Copysign(1, row[0]*row[1])
			continue
		}
		sine := math.Sqrt(1 - w.CosPhi*w.CosPhi)
		var norm float64
		for _, v := range u[1:] {
			norm += v * v
		}
		for c, v := range u[1:] { // a uniform direction of R^{d−1}
			row[c+1] = sine * v / math.Sqrt(norm)
		}
		e.y[i] = math.Copysign(1, u[0])
		row[0] = e.y[i] * w.CosPhi
		if flip := rng.Float64(); flip < w.Flip {
			e.y[i] = -e.y[i]
		}
	}
	return e
}

// thm3ImageSet are two classes of images.
type thm3ImageSet struct {
	train, test *thm3Split
	fingerprint string
	synthetic   bool
}

type thm3Split struct {
	images *data.Images
	first  uint8 // the class with label −1
}

// take draws n of the images without replacement.
func (s *thm3Split) take(rng *rand.Rand, n int) (thm3Examples, error) {
	im := s.images
	if n > im.Len() {
		return thm3Examples{}, fmt.Errorf("%s %s has %d images of the two classes, expected at least %d", im.Name, im.Split, im.Len(), n)
	}
	d := im.Height * im.Width * im.Channels
	e := thm3Examples{mat.NewDense(n, d, nil), make([]float64, n)}
	for i, at := range rng.Perm(im.Len())[:n] {
		scaleInput("unit-norm", im.Image(at), e.x.RawRowView(i))
		if norm := mat.Norm(e.x.RowView(i), 2); norm == 0 {
			return e, fmt.Errorf("%s %s: image %d of the two classes is black and has no direction", im.Name, im.Split, at)
		}
		e.y[i] = -1
		if im.Labels[at] != s.first {
			e.y[i] = 1
		}
	}
	return e, nil
}
