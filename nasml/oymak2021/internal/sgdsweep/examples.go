package sgdsweep

import (
	"fmt"

	"github.com/nasml/lab/nasml/oymak2021/internal/pixels"
)

// setExamples turns labelled images into the inputs and targets of a sweep: y [n], and x [n, d] restricted to the
// pixels that are not 0 in every image; the weights of the others receive no gradient.
func (s *Sweep) setExamples(im *pixels.Images) error {
	x := make([]float64, im.Len()*im.Size)
	for i := range im.Len() {
		pixels.Scale(s.net.Inputs, im.Image(i), x[i*im.Size:(i+1)*im.Size])
	}
	s.n, s.fanIn, s.active = im.Len(), im.Size, activeColumns(x, im.Size)
	s.d = len(s.active)
	if s.n == 0 || s.d == 0 {
		return fmt.Errorf("%s: %d images with %d pixels that are not always 0: nothing to learn from", im.Name, s.n,
			s.d)
	}
	rows, full := make([]float64, 0, s.n*s.d), 0
	for i := range s.n {
		for _, j := range s.active {
			value := x[i*im.Size+j]
			rows = append(rows, value)
			if value != 0 {
				full++
			}
		}
	}
	s.sparse = 2*full < len(rows)
	s.x = s.tensor(rows, s.n, s.d)
	s.y = s.tensor(targets(s.net.Labels, im.Labels, s.net.Classes), s.n)
	return nil
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
