// Package pixels has images as trials need them: numbers and labels.
package pixels

import "math"

// Images are labelled images of one size.
type Images struct {
	Name   string  // for errors, "mnist train"
	Size   int     // numbers an image
	Pixels []uint8 // [n, Size]
	Labels []uint8 // [n]
}

// Len is the number of images.
func (im *Images) Len() int { return len(im.Labels) }

// Image are the pixels of image i.
func (im *Images) Image(i int) []uint8 { return im.Pixels[i*im.Size : (i+1)*im.Size] }

// Scale writes an image's features: "unit-interval" x/255; "standardized" (x/255 − 0.1307)/0.3081, MNIST's mean and
// standard deviation; "unit-norm" x/‖x‖₂ as Theorem 3 of Oymak+ 2021 assumes. A black image stays 0.
func Scale(how string, pixels []uint8, x []float64) {
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
