// Package neural has what the trials of neural activation search share (Oymak+ 2021, Section 4.2): labelled inputs of
// unit norm, the output weights of the network, and points of the simplex.
package neural

import (
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"github.com/nasml/lab/nasml/oymak2021/internal/pixels"
	"github.com/nasml/lab/nasml/oymak2021/spectral"
	"github.com/nasml/lab/nasml/trial"
)

// The sources of examples. All inputs have unit norm, all labels are ±1. The labels of Product are an even function,
// which kernels of odd activations cannot see; networks of odd activations cannot fit the pairs of Paired, where K_α is
// singular.
const (
	Cap     = "cap"     // x = (y cos φ, sin φ·u), u uniform on a sphere: aligned with every kernel
	Flipped = "flipped" // the same with a share of the labels turned over: aligned with none
	Product = "product" // x uniform on the sphere, y = sign(x₁x₂)
	Paired  = "paired"  // the same in pairs x, −x with one label
	Digits  = "images"  // two classes of images, pixels divided by their norm
)

// OutputWeights are the fixed v of the network, ±√(c₀/k), half of each; the rows of W₀ are independent.
func OutputWeights(k int, c0 float64) []float64 {
	v := make([]float64, k)
	for r := range v {
		v[r] = math.Copysign(math.Sqrt(c0/float64(k)), float64(k/2-1-r)+0.5)
	}
	return v
}

// RandomPoints are n further points of the simplex that a seed fixes.
func RandomPoints(seed uint64, h, n int) (all [][]float64) {
	rng := trial.RNG(seed, "alphas")
	for range n {
		all = append(all, spectral.SimplexPoint(rng, h))
	}
	return all
}

// Notes are the numbers of a trial.
type Notes struct{ trial.Result }

// NewNotes are empty.
func NewNotes() Notes {
	return Notes{trial.Result{Values: map[string]float64{}, Series: map[string][]float64{}}}
}

// Note appends to a series.
func (n Notes) Note(series string, value float64) { n.Series[series] = append(n.Series[series], value) }

// Source is what examples are drawn from.
type Source struct {
	Data   string  `json:"data"`
	Dim    int     `json:"dim,omitempty"`     // d of the synthetic sources
	CosPhi float64 `json:"cos_phi,omitempty"` // margin of cap and flipped
	Flip   float64 `json:"flip,omitempty"`    // share of flipped labels
}

// Examples are inputs [n, d] of unit norm with labels ±1.
type Examples struct {
	X *mat.Dense
	Y []float64
}

// Draw takes n examples for training and pool others; images are of the training split and of the test split. A seed's
// first n examples are the same for every n.
func (w Source) Draw(seed uint64, n, pool int, images *Images) (train, rest Examples, err error) {
	if w.Data == Digits {
		if train, err = images.take(images.Train, trial.RNG(seed, "examples", "train"), n); err != nil {
			return train, rest, err
		}
		rest, err = images.take(images.Test, trial.RNG(seed, "examples", "pool"), pool)
		return train, rest, err
	}
	train = w.synthetic(trial.RNG(seed, "examples", "train"), n)
	return train, w.synthetic(trial.RNG(seed, "examples", "pool"), pool), nil
}

func (w Source) synthetic(rng *rand.Rand, n int) Examples {
	e := Examples{mat.NewDense(n, w.Dim, nil), make([]float64, n)}
	for i := range n {
		row := e.X.RawRowView(i)
		u := spectral.SpherePoints(rng, 1, w.Dim).RawRowView(0)
		if w.Data == Product || w.Data == Paired {
			copy(row, u)
			if w.Data == Paired && i%2 == 1 {
				for c, v := range e.X.RawRowView(i - 1) {
					row[c] = -v
				}
			}
			e.Y[i] = math.Copysign(1, row[0]*row[1])
			continue
		}
		sine, norm := math.Sqrt(1-w.CosPhi*w.CosPhi), 0.0
		for _, v := range u[1:] {
			norm += v * v
		}
		for c, v := range u[1:] { // a uniform direction of R^{d−1}
			row[c+1] = sine * v / math.Sqrt(norm)
		}
		e.Y[i] = math.Copysign(1, u[0])
		row[0] = e.Y[i] * w.CosPhi
		if flip := rng.Float64(); flip < w.Flip {
			e.Y[i] = -e.Y[i]
		}
	}
	return e
}

// Images are two classes of images.
type Images struct {
	Train, Test *pixels.Images
	First       uint8 // the class with label −1
}

// take draws n of the images without replacement.
func (s *Images) take(im *pixels.Images, rng *rand.Rand, n int) (Examples, error) {
	if n > im.Len() {
		return Examples{}, fmt.Errorf("%s has %d images of the two classes, expected at least %d", im.Name, im.Len(), n)
	}
	e := Examples{mat.NewDense(n, im.Size, nil), make([]float64, n)}
	for i, at := range rng.Perm(im.Len())[:n] {
		pixels.Scale("unit-norm", im.Image(at), e.X.RawRowView(i))
		if norm := mat.Norm(e.X.RowView(i), 2); norm == 0 {
			return e, fmt.Errorf("%s: image %d of the two classes is black and has no direction", im.Name, at)
		}
		e.Y[i] = -1
		if im.Labels[at] != s.First {
			e.Y[i] = 1
		}
	}
	return e, nil
}
