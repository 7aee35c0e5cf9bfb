// Package images has labelled images in memory, and how they become the batches of a training: cropped, flipped,
// normalised and cut out as DARTS or AutoDL-Projects do it. Package data loads them.
package images

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
)

// Name names a data set; package data lists them.
type Name string

// Split names a part of a data set as its publisher divides it.
type Split string

// Images is a labelled set of images in the publisher's order.
type Images struct {
	Name                    Name
	Split                   Split
	Height, Width, Channels int
	Pixels                  []uint8 // [N, Height, Width, Channels], row-major, 0–255
	Labels                  []uint8 // [N]
	Fingerprint             string  // SHA-256 of shape, pixels and labels: the same content has the same one
	Synthetic               bool    // not a publisher's data, and a figure made of it says so
}

// New checks counts and computes the fingerprint.
func New(im Images) (*Images, error) {
	pixels := im.Height * im.Width * im.Channels
	if len(im.Pixels) != len(im.Labels)*pixels {
		return nil, fmt.Errorf("%s %s: found %d pixels and %d labels, expected %d×%d×%d = %d pixels a label: "+
			"the two files do not belong together",
			im.Name, im.Split, len(im.Pixels), len(im.Labels), im.Height, im.Width, im.Channels, pixels)
	}
	h := sha256.New()
	fmt.Fprintf(h, "images %d×%d×%d×%d\n", len(im.Labels), im.Height, im.Width, im.Channels)
	h.Write(im.Pixels)
	h.Write(im.Labels)
	im.Fingerprint = hex.EncodeToString(h.Sum(nil))
	return &im, nil
}

// Len returns N, the number of images.
func (im *Images) Len() int { return len(im.Labels) }

// Image returns the pixels of image i, [Height, Width, Channels], as a slice of Pixels.
func (im *Images) Image(i int) []uint8 {
	size := im.Height * im.Width * im.Channels
	return im.Pixels[i*size : (i+1)*size : (i+1)*size]
}

// Counts returns how many images each label has.
func (im *Images) Counts() map[uint8]int {
	counts := map[uint8]int{}
	for _, label := range im.Labels {
		counts[label]++
	}
	return counts
}

// Classes returns a copy with only the images of the given classes, in order. A class without images is an error.
func (im *Images) Classes(labels ...uint8) (*Images, error) {
	counts, n := im.Counts(), 0
	var keep [256]bool
	for _, label := range labels {
		if counts[label] == 0 {
			return nil, fmt.Errorf("%s %s: found no image of class %d, expected one of %v", im.Name, im.Split, label,
				im.classes())
		}
		if !keep[label] {
			keep[label], n = true, n+counts[label]
		}
	}
	if n == 0 {
		return nil, fmt.Errorf("%s %s: found no class to keep, expected some of %v", im.Name, im.Split, im.classes())
	}
	part := *im
	part.Labels = make([]uint8, 0, n)
	part.Pixels = make([]uint8, 0, n*im.Height*im.Width*im.Channels)
	for i, label := range im.Labels {
		if keep[label] {
			part.Labels = append(part.Labels, label)
			part.Pixels = append(part.Pixels, im.Image(i)...)
		}
	}
	return New(part)
}

func (im *Images) classes() []int {
	var all []int
	for label := range im.Counts() {
		all = append(all, int(label))
	}
	slices.Sort(all)
	return all
}

// Head returns the first n images, which share memory with im.
func (im *Images) Head(n int) (*Images, error) { return im.Slice(0, n) }

// Slice returns images from…to−1, as Head does.
func (im *Images) Slice(from, to int) (*Images, error) {
	if to <= from || to > im.Len() {
		return nil, fmt.Errorf("%s %s: found a request for %d images, expected 1 to %d", im.Name, im.Split, to-from,
			im.Len()-from)
	}
	size := im.Height * im.Width * im.Channels
	part := *im
	part.Labels = im.Labels[from:to:to]
	part.Pixels = im.Pixels[from*size : to*size : to*size]
	return New(part)
}

// Half returns the images at half their height and width, with a fingerprint
// of their own: each pixel is the mean of 2×2, rounded to the nearest, a half up,
//
//	⌊(x₀₀ + x₀₁ + x₁₀ + x₁₁ + 2) / 4⌋ .
//
// It returns an error if height or width is odd.
func (im *Images) Half() (*Images, error) {
	h, w, c := im.Height/2, im.Width/2, im.Channels
	if im.Height != 2*h || im.Width != 2*w {
		return nil, fmt.Errorf("%s %s: found images of %d×%d pixels, expected even numbers", im.Name, im.Split,
			im.Height, im.Width)
	}
	half := *im
	half.Height, half.Width = h, w
	half.Pixels = make([]uint8, im.Len()*h*w*c)
	row := im.Width * c
	for line := range im.Len() * h { // rows of the result, all images
		above := im.Pixels[2*line*row : (2*line+1)*row]
		below := im.Pixels[(2*line+1)*row : (2*line+2)*row]
		out := half.Pixels[line*w*c : (line+1)*w*c]
		for x := range w {
			for k := range c {
				i := 2*x*c + k
				out[x*c+k] = uint8((int(above[i]) + int(above[i+c]) + int(below[i]) + int(below[i+c]) + 2) / 4)
			}
		}
	}
	return New(half)
}

// Fit halves images by [Images.Half] until they have the wanted side, and makes grey ones three-channel. It returns an
// error if it cannot.
func (im *Images) Fit(side int) (*Images, error) {
	set := im.coloured()
	sides := []int{set.Height}
	for set.Height > side && set.Height%2 == 0 && set.Width%2 == 0 {
		var err error
		if set, err = set.Half(); err != nil {
			return nil, err
		}
		sides = append(sides, set.Height)
	}
	if set.Height != side || set.Width != side || set.Channels != 3 {
		return nil, fmt.Errorf("images of %s are %d×%d after halving: Image must be one of %v, got %d", set.Name,
			set.Height, set.Width, sides, side)
	}
	return set, nil
}

func (im *Images) coloured() *Images {
	if im.Channels != 1 {
		return im
	}
	coloured := *im
	coloured.Channels, coloured.Pixels = 3, make([]uint8, 0, 3*len(im.Pixels))
	for _, v := range im.Pixels {
		coloured.Pixels = append(coloured.Pixels, v, v, v)
	}
	return &coloured
}
