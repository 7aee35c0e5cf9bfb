package data

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/nasml/lab/nasml/internal/images"
)

// stream returns random numbers that depend on seed, kind and i only. The mixing is that of SplitMix64: neighbours
// would otherwise start from neighbouring states.
func stream(seed uint64, kind uint32, i int) *rand.Rand {
	z := (uint64(kind)<<40 + uint64(i)) * 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return rand.New(rand.NewPCG(seed, z^z>>31))
}

// The kinds of streams.
const (
	_ uint32 = iota // was of teachers
	ofPrototype
	ofSample
	_ // was of batches
	ofReview
)

// ImageSpec says what SyntheticImages draws; by default ten classes of 28×28 images with MNIST's share of ink.
type ImageSpec struct {
	Classes int     // 2 to 256; if 0, 10
	Height  int     // pixels, at least 8; if 0, 28
	Width   int     // pixels, at least 8; if 0, 28
	Ink     float64 // share of the pixels that are not 0, in (0, 0.5]; if 0, 0.19 as in MNIST
	Noise   float64 // largest deviation of an inked pixel as a share of 255, at most 1; if 0, 0.2; if negative, none
}

func (s ImageSpec) withDefaults() (ImageSpec, error) {
	s.Classes = cmp.Or(s.Classes, 10)
	s.Height = cmp.Or(s.Height, 28)
	s.Width = cmp.Or(s.Width, 28)
	s.Ink = cmp.Or(s.Ink, 0.19)
	s.Noise = max(0, cmp.Or(s.Noise, 0.2))
	switch {
	case s.Classes < 2 || s.Classes > 256:
		return s, fmt.Errorf("ImageSpec.Classes: found %d, expected 2 to 256", s.Classes)
	case s.Height < 8 || s.Width < 8:
		return s, fmt.Errorf("ImageSpec: found %d×%d pixels, expected at least 8×8", s.Height, s.Width)
	case !(s.Ink > 0 && s.Ink <= 0.5): // so written, NaN is refused too
		return s, fmt.Errorf("ImageSpec.Ink: found %v, expected a share in (0, 0.5]", s.Ink)
	case !(s.Noise <= 1):
		return s, fmt.Errorf("ImageSpec.Noise: found %v, expected at most 1", s.Noise)
	}
	return s, nil
}

// SyntheticImages returns n images with MNIST's outward features and a known class structure. Each class has a
// prototype, one random stroke of grey levels 128–255 on a background of exact zeros; an image is the prototype of a
// class drawn at random, moved by at most one pixel in each direction, with noise on the stroke:
//
//	x = clip(prototype[y] shifted by s + u, 1, 255),  s ∈ {−1,0,1}²,  u uniform on ±255·Noise .
//
// Only integers are drawn, so that a seed gives the same bytes on every platform, and image i depends on seed, spec and
// i only. It returns an error if n is not positive or the spec cannot be drawn.
func SyntheticImages(seed uint64, n int, spec ImageSpec) (*Images, error) {
	spec, err := spec.withDefaults()
	if err != nil {
		return nil, err
	}
	if n < 1 {
		return nil, fmt.Errorf("SyntheticImages: found n = %d, expected at least 1", n)
	}
	prototypes := make([][]uint8, spec.Classes)
	for c := range prototypes {
		prototypes[c] = stroke(stream(seed, ofPrototype, c), spec)
	}
	size := spec.Height * spec.Width
	im := Images{Name: Synthetic, Split: Train, Height: spec.Height, Width: spec.Width, Channels: 1, Synthetic: true,
		Pixels: make([]uint8, n*size), Labels: make([]uint8, n)}
	for i := range n {
		rng := stream(seed, ofSample, i)
		c := rng.IntN(spec.Classes)
		im.Labels[i] = uint8(c)
		redraw(rng, prototypes[c], im.Pixels[i*size:(i+1)*size], spec)
	}
	return images.New(im)
}

// stroke moves a 2×2 brush at random until it has inked its share, away from the border, so that the stroke can be
// shifted by one pixel.
func stroke(rng *rand.Rand, spec ImageSpec) []uint8 {
	pixels := make([]uint8, spec.Height*spec.Width)
	margin := min(spec.Height, spec.Width) / 8
	lo, yHi, xHi := margin, spec.Height-margin-1, spec.Width-margin-1
	y, x := lo+rng.IntN(yHi-lo), lo+rng.IntN(xHi-lo)
	dy, dx := 0, 1
	ink := int(math.Round(spec.Ink * float64(len(pixels))))
	for ink > 0 {
		for _, at := range []int{y*spec.Width + x, y*spec.Width + x + 1, (y+1)*spec.Width + x,
			(y+1)*spec.Width + x + 1} {
			if pixels[at] == 0 && ink > 0 {
				pixels[at] = uint8(128 + rng.IntN(128))
				ink--
			}
		}
		if rng.IntN(3) == 0 { // turn
			dy, dx = rng.IntN(3)-1, rng.IntN(3)-1
		}
		y, x = min(max(y+dy, lo), yHi-1), min(max(x+dx, lo), xHi-1)
	}
	return pixels
}

func redraw(rng *rand.Rand, prototype, image []uint8, spec ImageSpec) {
	move := (rng.IntN(3)-1)*spec.Width + rng.IntN(3) - 1
	amplitude := int(math.Round(255 * spec.Noise))
	for at, level := range prototype {
		if level > 0 {
			noisy := int(level) + rng.IntN(2*amplitude+1) - amplitude
			image[at+move] = uint8(min(max(noisy, 1), 255))
		}
	}
}

// The stand-in that Load returns under the name Synthetic.
const (
	standInSeed  = 1
	standInTrain = 60_000
	standInTest  = 10_000
)

// standIn returns a split of the default synthetic set: same prototypes, no common image.
func standIn(split Split) (*Images, error) {
	from, to := 0, standInTrain
	switch split {
	case Train:
	case Test:
		from, to = standInTrain, standInTrain+standInTest
	default:
		return nil, unknownSplit(Synthetic, split, Train, Test)
	}
	all, err := SyntheticImages(standInSeed, to, ImageSpec{})
	if err != nil {
		return nil, err
	}
	all.Split = split
	return all.Slice(from, to)
}
