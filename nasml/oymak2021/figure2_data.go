package oymak2021

import (
	"fmt"
	"math"

	"github.com/nasml/lab/nasml/data"
)

// loadSweepData turns labelled images into the inputs and targets of a sweep:
// x [n, d] restricted to the pixels that are not 0 in every image (their
// weights receive no gradient, so leaving them out changes no number), and
// y [n].
func (s *sweep) setData(im *data.Images) error {
	pixels := im.Height * im.Width * im.Channels
	x := make([]float64, im.Len()*pixels)
	for i := range im.Len() {
		scaleInput(s.net.Inputs, im.Image(i), x[i*pixels:(i+1)*pixels])
	}
	s.n, s.fanIn, s.active = im.Len(), pixels, activeColumns(x, pixels)
	s.d = len(s.active)
	if s.n == 0 || s.d == 0 {
		return fmt.Errorf("%s: %d images with %d pixels that are not always 0: nothing to learn from", im.Name, s.n, s.d)
	}
	rows := make([]float64, 0, s.n*s.d)
	for i := range s.n {
		for _, j := range s.active {
			rows = append(rows, x[i*pixels+j])
		}
	}
	s.x = s.tensor(rows, s.n, s.d)
	s.y = s.tensor(targets(s.net.Labels, im.Labels, s.net.Classes), s.n)
	return nil
}

// scaleInput writes an image's features: "unit-interval" x/255;
// "standardized" (x/255 − 0.1307)/0.3081, MNIST's mean and standard deviation;
// "unit-norm" x/‖x‖₂ as Theorem 3 assumes.
func scaleInput(how string, pixels []uint8, x []float64) {
	var sum float64
	for i, p := range pixels {
		x[i] = float64(p) / 255
		sum += x[i] * x[i]
	}
	for i := range x {
		switch {
		case how == "standardized":
			x[i] = (x[i] - 0.1307) / 0.3081
		case how == "unit-norm" && sum > 0:
			x[i] /= math.Sqrt(sum)
		}
	}
}

// activeColumns lists the columns of x [n, d] that are not 0 in every row.
func activeColumns(x []float64, d int) []int {
	var active []int
	for j := range d {
		for i := j; i < len(x); i += d {
			if x[i] != 0 {
				active = append(active, j)
				break
			}
		}
	}
	return active
}

// targets codes the first class as 0 (or −1), the second as 1.
func targets(labels string, classes []uint8, two []int) []float64 {
	y := make([]float64, len(classes))
	for i, c := range classes {
		if int(c) == two[1] {
			y[i] = 1
		} else if labels == "±1" {
			y[i] = -1
		}
	}
	return y
}
