package images

import (
	"image"
	"image/color"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// ramp is a photograph whose red grows to the right and whose green grows
// downwards.
func ramp(w, h int) image.Image {
	photo := image.NewRGBA(image.Rect(3, 5, 3+w, 5+h)) // bounds need not start at 0
	for y := range h {
		for x := range w {
			photo.Set(3+x, 5+y, color.RGBA{uint8(255 * x / (w - 1)), uint8(255 * y / (h - 1)), 0, 255})
		}
	}
	return photo
}

// A test takes the middle: of 256 pixels 224, so red goes from 1/16 to 15/16.
func TestCropOfATest(t *testing.T) {
	c := Crop{Resize: 256}
	out := make([]float32, 224*224*3)
	c.Test(out, ramp(512, 256), 224)
	red := func(y, x int) float64 { return float64(out[(y*224+x)*3]) }
	green := func(y, x int) float64 { return float64(out[(y*224+x)*3+1]) }
	require.InDelta(t, 144./512, red(100, 0), 0.01, "112 of 512 pixels left of the middle")
	require.InDelta(t, 368./512, red(100, 223), 0.01)
	require.InDelta(t, 16./256, green(0, 100), 0.01)
	require.InDelta(t, 240./256, green(223, 100), 0.01)
	Crop{}.Test(out, ramp(300, 200), 224)
	require.InDelta(t, 1, red(0, 223), 0.01, "all of it")
}

// Parts lie inside, and have an area and an aspect that are allowed, but for
// rounding. A part of a photograph of aspect 4/3 fits where its share s of the
// area is at most ¾ of its aspect a, so that on average over log a
//
//	E s = ∫ ((¾a)² − 0.08²)/2 / ∫ (¾a − 0.08) = 0.1691/0.3915,  E log a = 0.0121/0.3915 .
func TestPartsOfPhotographs(t *testing.T) {
	c := ImageNetCrop
	b := image.Rect(7, 3, 7+500, 3+375)
	rng := rand.New(rand.NewPCG(1, 2))
	areas, aspects := 0.0, 0.0
	const n = 4000
	for range n {
		p := c.part(b, rng)
		require.True(t, p.In(b))
		area, aspect := float64(p.Dx()*p.Dy())/(500*375), float64(p.Dx())/float64(p.Dy())
		require.True(t, area > 0.078 && area <= 1.002 && aspect > 0.74 && aspect < 1.35, "%v %v", area, aspect)
		areas, aspects = areas+area/n, aspects+math.Log(aspect)/n
	}
	require.InDelta(t, 0.432, areas, 0.012)
	require.InDelta(t, 0.031, aspects, 0.01)
	flat := c.part(image.Rect(0, 0, 1000, 10), rng)
	require.Equal(t, image.Rect(493, 0, 506, 10), flat, "the largest in the middle with aspect 4/3")
}

// A turn of the hue leaves grey, the largest and the least colour as they are,
// is undone by the turn back, and by a third of the circle makes red green.
func TestHue(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := make([]float64, 3)
		for k := range p {
			p[k] = float64(rapid.IntRange(0, 255).Draw(rt, "p"))
		}
		by := rapid.Float64Range(-0.5, 0.5).Draw(rt, "by")
		q := append([]float64{}, p...)
		turn(q, by)
		require.InDelta(rt, max(p[0], p[1], p[2]), max(q[0], q[1], q[2]), 1e-9)
		require.InDelta(rt, min(p[0], p[1], p[2]), min(q[0], q[1], q[2]), 1e-9)
		turn(q, -by)
		require.InDeltaSlice(rt, p, q, 1e-6)
	})
	red := []float64{200, 50, 50}
	turn(red, 1./3)
	require.InDeltaSlice(t, []float64{50, 200, 50}, red, 1e-9)
}

// Jitter leaves what is black black but for its hue's sake, and is drawn again.
func TestJitterAndFlip(t *testing.T) {
	c := Crop{Flip: true, Jitter: [4]float64{0.4, 0.4, 0.4, 0.2}}
	rng := rand.New(rand.NewPCG(1, 2))
	seen := map[float32]bool{}
	turned := 0
	for range 20 {
		out := make([]float32, 8*8*3)
		c.Train(out, ramp(16, 16), 8, rng)
		for _, x := range out {
			require.True(t, x >= 0 && x <= 1, "%v", x)
		}
		seen[out[0]] = true
		plain := make([]float32, 8*8*3)
		Crop{Flip: true}.Train(plain, ramp(16, 16), 8, rng)
		if plain[0] > plain[21] {
			turned++
		}
	}
	require.Greater(t, len(seen), 10)
	require.True(t, turned > 2 && turned < 18, "%d of 20", turned)
}

func TestCropsThatMakeNoSense(t *testing.T) {
	for _, c := range []Crop{
		{Area: [2]float64{0.5, 0.1}}, {Area: [2]float64{0.1, 1.5}}, {Aspect: [2]float64{-1, 1}},
		{Jitter: [4]float64{0, 0, 0, 0.6}}, {Resize: -1},
	} {
		require.Error(t, c.Check(), "%+v", c)
	}
	require.NoError(t, ImageNetCrop.Check())
}
