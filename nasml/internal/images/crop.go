package images

import (
	"fmt"
	"image"
	"math"
	"math/rand/v2"

	"golang.org/x/image/draw"
)

// Crop is what happens to a photograph of any size on its way into a batch of
// images of one size, as PyTorch's programs have it for ImageNet. In training:
//
//	a random part → flip → jitter → (x/255 − Mean) / Std ,
//
// and in testing: the shorter side to Resize pixels → the square in the middle → the same normalisation. The zero value
// scales the whole to the size. A Crop is plain JSON.
type Crop struct {
	Area   [2]float64 // share of the photograph that a part has, uniform; 0: all
	Aspect [2]float64 // width by height of the part, uniform in its logarithm; 0: the photograph's
	Flip   bool       // turn left and right with probability ½
	Jitter [4]float64 // brightness, contrast, saturation: factor 1 ± so much; hue: turn by ± so much of a circle
	Resize int        // pixels; 0: the whole
	Mean   [3]float64 // of red, green, blue in [0, 1]
	Std    [3]float64 // of these; where 0, 1
}

// ImageNetCrop is that of DARTS and PC-DARTS (quark0/darts@f276dd3, train_imagenet.py:113-131).
var ImageNetCrop = Crop{
	Area: [2]float64{0.08, 1}, Aspect: [2]float64{3. / 4, 4. / 3}, Flip: true, Jitter: [4]float64{0.4, 0.4, 0.4, 0.2},
	Resize: 256, Mean: [3]float64{0.485, 0.456, 0.406}, Std: [3]float64{0.229, 0.224, 0.225},
}

// Check returns an error for what cannot be done.
func (c Crop) Check() error {
	ordered := func(x [2]float64, most float64) bool {
		return x == [2]float64{} || 0 < x[0] && x[0] <= x[1] && x[1] <= most
	}
	if !ordered(c.Area, 1) || !ordered(c.Aspect, math.MaxFloat64) {
		return fmt.Errorf("Crop: found Area %v and Aspect %v, expected two ascending positive numbers each, areas at "+
			"most 1", c.Area, c.Aspect)
	}
	for i, j := range c.Jitter {
		if !(j >= 0 && j <= 1) || i == 3 && j > 0.5 {
			return fmt.Errorf("Crop: found Jitter %v, expected 0 to 1, of the hue 0 to 0.5", c.Jitter)
		}
	}
	if c.Resize < 0 {
		return fmt.Errorf("Crop: found Resize %d, expected 0 or more", c.Resize)
	}
	return nil
}

// Test writes a photograph as it is tested to out [side, side, 3].
func (c Crop) Test(out []float32, photo image.Image, side int) {
	b := photo.Bounds()
	part := b
	if c.Resize > 0 {
		// the square in the middle of a photograph whose shorter side has Resize pixels, in pixels of its own
		width := float64(min(b.Dx(), b.Dy())) * float64(side) / float64(c.Resize)
		w := max(1, min(int(math.Round(width)), b.Dx(), b.Dy()))
		x, y := b.Min.X+(b.Dx()-w)/2, b.Min.Y+(b.Dy()-w)/2
		part = image.Rect(x, y, x+w, y+w)
	}
	c.normalise(out, scaled(photo, part, side))
}

// Train writes a photograph as it is trained on to out [side, side, 3].
func (c Crop) Train(out []float32, photo image.Image, side int, rng *rand.Rand) {
	pixels := scaled(photo, c.part(photo.Bounds(), rng), side)
	if c.Flip && rng.IntN(2) == 1 {
		mirror(pixels, side)
	}
	c.jitter(pixels, rng)
	c.normalise(out, pixels)
}

// part draws a part of a photograph: ten tries, then the largest central part of an allowed aspect.
func (c Crop) part(b image.Rectangle, rng *rand.Rand) image.Rectangle {
	if c.Area == [2]float64{} {
		return b
	}
	own := float64(b.Dx()) / float64(b.Dy())
	low, high := own, own
	if c.Aspect != [2]float64{} {
		low, high = c.Aspect[0], c.Aspect[1]
	}
	for range 10 {
		area := float64(b.Dx()*b.Dy()) * (c.Area[0] + (c.Area[1]-c.Area[0])*rng.Float64())
		aspect := math.Exp(math.Log(low) + (math.Log(high)-math.Log(low))*rng.Float64())
		w, h := int(math.Round(math.Sqrt(area*aspect))), int(math.Round(math.Sqrt(area/aspect)))
		if 0 < w && w <= b.Dx() && 0 < h && h <= b.Dy() {
			x, y := b.Min.X+rng.IntN(b.Dx()-w+1), b.Min.Y+rng.IntN(b.Dy()-h+1)
			return image.Rect(x, y, x+w, y+h)
		}
	}
	w, h := b.Dx(), b.Dy()
	switch {
	case own < low:
		h = max(1, int(math.Round(float64(w)/low)))
	case own > high:
		w = max(1, int(math.Round(float64(h)*high)))
	}
	x, y := b.Min.X+(b.Dx()-w)/2, b.Min.Y+(b.Dy()-h)/2
	return image.Rect(x, y, x+w, y+h)
}

// scaled resizes a part to [side, side, 3], 0 to 255: bilinear, with a filter as wide as shrinking needs.
func scaled(photo image.Image, part image.Rectangle, side int) []float64 {
	small := image.NewRGBA(image.Rect(0, 0, side, side))
	draw.BiLinear.Scale(small, small.Bounds(), photo, part, draw.Src, nil)
	pixels := make([]float64, 0, side*side*3)
	for i := 0; i < len(small.Pix); i += 4 {
		pixels = append(pixels, float64(small.Pix[i]), float64(small.Pix[i+1]), float64(small.Pix[i+2]))
	}
	return pixels
}

func mirror(pixels []float64, side int) {
	for y := range side {
		row := pixels[y*side*3 : (y+1)*side*3]
		for x := range side / 2 {
			for k := range 3 {
				a, b := 3*x+k, 3*(side-1-x)+k
				row[a], row[b] = row[b], row[a]
			}
		}
	}
}

func (c Crop) normalise(out []float32, pixels []float64) {
	for i, p := range pixels {
		std := c.Std[i%3]
		if std == 0 {
			std = 1
		}
		out[i] = float32((p/255 - c.Mean[i%3]) / std)
	}
}

func (c Crop) jitter(pixels []float64, rng *rand.Rand) {
	if c.Jitter == [4]float64{} {
		return
	}
	for _, which := range rng.Perm(len(c.Jitter)) {
		by := c.Jitter[which] * (2*rng.Float64() - 1)
		switch which {
		case 0:
			blend(pixels, 1+by, func([]float64) float64 { return 0 })
		case 1:
			mean := 0.0
			for i := 0; i < len(pixels); i += 3 {
				mean += grey(pixels[i:]) / float64(len(pixels)/3)
			}
			blend(pixels, 1+by, func([]float64) float64 { return mean })
		case 2:
			blend(pixels, 1+by, grey)
		case 3:
			turn(pixels, by)
		}
	}
}

func grey(p []float64) float64 { return 0.299*p[0] + 0.587*p[1] + 0.114*p[2] }

// blend clips factor·x + (1 − factor)·other.
func blend(pixels []float64, factor float64, other func(p []float64) float64) {
	for i := 0; i < len(pixels); i += 3 {
		p := pixels[i : i+3]
		o := other(p)
		for k := range p {
			p[k] = min(255, max(0, factor*p[k]+(1-factor)*o))
		}
	}
}

func turn(pixels []float64, by float64) {
	for i := 0; i < len(pixels); i += 3 {
		p := pixels[i : i+3]
		most, least := max(p[0], p[1], p[2]), min(p[0], p[1], p[2])
		if most == least {
			continue
		}
		h := math.Mod(hue(p, most, most-least)+6*by+12, 6)
		for k := range p { // Foley+ 1990: V − VS·max(0, min(t, 4 − t, 1)), t = (n + h) mod 6, n = 5, 3, 1
			t := math.Mod(float64(5-2*k)+h, 6)
			p[k] = most - (most-least)*max(0, min(t, 4-t, 1))
		}
	}
}

func hue(p []float64, most, spread float64) float64 {
	switch most {
	case p[0]:
		return math.Mod((p[1]-p[2])/spread+6, 6)
	case p[1]:
		return (p[2]-p[0])/spread + 2
	}
	return (p[0]-p[1])/spread + 4
}
