package images

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Augment is what happens to a colour image on its way into a batch:
//
//	x → crop and flip, in this or the other order → (x/255 − Mean) / Std → cutout .
//
// Padding and Cutout are those of a 32×32 image and shrink and grow with the side: Padding 4 is 2 for 16×16, as
// AutoDL-Projects has it. The zero value does nothing but x/255. An Augment is plain JSON.
type Augment struct {
	Order   string     // "crop-flip" (DARTS) or "flip-crop" (AutoDL-Projects); if "", "crop-flip"
	Padding int        // black pixels put around the image, of which a part of the image's size is cut out at random
	Flip    bool       // turn left and right with probability ½
	Mean    [3]float64 // of red, green, blue in [0, 1]
	Std     [3]float64 // of these; where 0, 1
	Cutout  int        // side of a square, made even, that is 0 around a random pixel, after the normalisation
}

// Augments are the augmentations of two code bases in searches, for both halves of the training set. "darts" is
// CIFAR10's in DARTS, PC-DARTS and GAEA; evaluation adds Cutout: 16. "autodl" is CIFAR10's in AutoDL-Projects
// (NAS-Bench-201); other sets append their names. "none" is the zero value.
var Augments = map[string]Augment{
	"none": {},
	"darts": {Order: "crop-flip", Padding: 4, Flip: true,
		Mean: [3]float64{0.49139968, 0.48215827, 0.44653124}, Std: [3]float64{0.24703233, 0.24348505, 0.26158768}},
	"autodl":                autoDL([3]float64{125.3, 123.0, 113.9}, [3]float64{63.0, 62.1, 66.7}),
	"autodl-cifar-100":      autoDL([3]float64{129.3, 124.1, 112.4}, [3]float64{68.2, 65.4, 70.4}),
	"autodl-imagenet16-120": autoDL([3]float64{122.68, 116.66, 104.01}, [3]float64{63.22, 61.26, 65.09}),
}

func autoDL(mean, std [3]float64) Augment {
	a := Augment{Order: "flip-crop", Padding: 4, Flip: true}
	for c := range mean {
		a.Mean[c], a.Std[c] = mean[c]/255, std[c]/255
	}
	return a
}

// Plain returns a's normalisation alone, which both code bases use for testing.
func (a Augment) Plain() Augment { return Augment{Mean: a.Mean, Std: a.Std} }

// Check returns an error for what cannot be done.
func (a Augment) Check() error {
	if a.Order != "" && a.Order != "crop-flip" && a.Order != "flip-crop" {
		return fmt.Errorf("Augment.Order: found %q, expected \"crop-flip\" or \"flip-crop\"", a.Order)
	}
	for c := range 3 {
		if math.IsNaN(a.Mean[c]) || math.IsInf(a.Mean[c], 0) || !(a.Std[c] >= 0) || math.IsInf(a.Std[c], 0) {
			return fmt.Errorf("Augment: found mean %v and standard deviation %v, expected finite numbers, the "+
				"latter not negative", a.Mean, a.Std)
		}
	}
	if a.Padding < 0 || a.Padding > most || a.Cutout < 0 || a.Cutout > most {
		return fmt.Errorf("Augment: found Padding %d and Cutout %d, expected 0 to %d", a.Padding, a.Cutout, most)
	}
	return nil
}

// most is a padding and a cutout that leave nothing of an image.
const most = 1 << 10

// Batch writes the augmented images of the given indices to batch [len(indices), Height, Width, 3]. It draws from rng
// image by image, and only what a needs; rng may be nil if nothing is random. It returns an error for an invalid a,
// index, batch length, or number of channels.
func (a Augment) Batch(batch []float32, im *Images, indices []int, rng *rand.Rand) error {
	if err := a.Check(); err != nil {
		return err
	}
	size := im.Height * im.Width * 3
	switch {
	case im.Channels != 3:
		return fmt.Errorf("%s %s: found images of %d channels, expected 3", im.Name, im.Split, im.Channels)
	case len(batch) != len(indices)*size:
		return fmt.Errorf("found a batch of %d numbers, expected %d×%d×%d×3 = %d", len(batch), len(indices), im.Height,
			im.Width, len(indices)*size)
	case rng == nil && (a.Flip || a.Padding > 0 || a.Cutout > 0):
		return fmt.Errorf("found no random numbers, expected some for %+v", a)
	}
	for _, i := range indices {
		if i < 0 || i >= im.Len() {
			return fmt.Errorf("%s %s: found index %d, expected 0 to %d", im.Name, im.Split, i, im.Len()-1)
		}
	}
	levels := a.levels()
	for k, i := range indices {
		out := batch[k*size : (k+1)*size]
		a.draw(rng, im.Height, im.Width).write(out, im.Image(i), im.Height, im.Width, levels)
		a.cutout(out, im.Height, im.Width, rng)
	}
	return nil
}

// levels is (p/255 − Mean)/Std of each channel for all pixel values p.
func (a Augment) levels() *[3][256]float32 {
	var levels [3][256]float32
	for c := range levels {
		std := a.Std[c]
		if std == 0 {
			std = 1
		}
		for p := range levels[c] {
			levels[c][p] = float32((float64(p)/255 - a.Mean[c]) / std)
		}
	}
	return &levels
}

// view is the visible part of a padded image: pixel (y, x) is pixel (y+dy, x+dx) of the image, flipped first if flip,
// or black.
type view struct {
	dy, dx int
	flip   bool
}

func (a Augment) draw(rng *rand.Rand, h, w int) view {
	var v view
	flipFirst := a.Order == "flip-crop"
	if a.Flip && flipFirst {
		v.flip = rng.IntN(2) == 1
	}
	if a.Padding > 0 {
		down, right := a.Padding*h/32, a.Padding*w/32
		v.dy, v.dx = rng.IntN(2*down+1)-down, rng.IntN(2*right+1)-right
	}
	if a.Flip && !flipFirst {
		v.flip = rng.IntN(2) == 1
		if v.flip { // a cut that is turned is the mirrored cut of what is turned
			v.dx = -v.dx
		}
	}
	return v
}

func (v view) write(out []float32, image []uint8, h, w int, levels *[3][256]float32) {
	first, step := v.dx, 1 // the column that column 0 of the result comes from, and the way to the next one
	if v.flip {
		first, step = w-1-v.dx, -1
	}
	left, right := max(0, -v.dx), min(w, w-v.dx) // the columns of the result that are not black
	for y := range h {
		row := out[y*w*3 : (y+1)*w*3]
		from := y + v.dy
		if from < 0 || from >= h || left >= right {
			blacken(row, levels)
			continue
		}
		blacken(row[:3*left], levels)
		at := (from*w + first + step*left) * 3
		for x := 3 * left; x < 3*right; x += 3 {
			p, o := image[at:at+3:at+3], row[x:x+3:x+3]
			o[0], o[1], o[2] = levels[0][p[0]], levels[1][p[1]], levels[2][p[2]]
			at += 3 * step
		}
		blacken(row[3*right:], levels)
	}
}

func blacken(pixels []float32, levels *[3][256]float32) {
	for i := range pixels {
		pixels[i] = levels[i%3][0]
	}
}

// cutout zeroes a square around a random pixel, clipped at the border.
func (a Augment) cutout(image []float32, h, w int, rng *rand.Rand) {
	if a.Cutout == 0 {
		return
	}
	y, x := rng.IntN(h), rng.IntN(w)
	down, right := a.Cutout*h/32/2, a.Cutout*w/32/2
	for i := max(0, y-down); i < min(h, y+down); i++ {
		clear(image[(i*w+max(0, x-right))*3 : (i*w+min(w, x+right))*3])
	}
}
