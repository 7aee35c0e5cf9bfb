package images

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"

	_ "github.com/nasml/lab/nasml/internal/steady"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// noise is n images of white noise without black pixels.
func noise(t testing.TB, seed uint64, n, h, w int) *Images {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 0))
	im := Images{Name: "cifar-10", Split: "train", Height: h, Width: w, Channels: 3, Labels: make([]uint8, n),
		Pixels: make([]uint8, n*h*w*3)}
	for i := range im.Pixels {
		im.Pixels[i] = uint8(1 + rng.IntN(255))
	}
	for i := range im.Labels {
		im.Labels[i] = uint8(rng.IntN(10))
	}
	out, err := New(im)
	require.NoError(t, err)
	return out
}

// seen is a view of an image as bytes.
func seen(v view, image []uint8, h, w int) []uint8 {
	var plain [3][256]float32
	for p := range 256 {
		plain[0][p], plain[1][p], plain[2][p] = float32(p), float32(p), float32(p)
	}
	out := make([]float32, len(image))
	v.write(out, image, h, w, &plain)
	pixels := make([]uint8, len(out))
	for i, p := range out {
		pixels[i] = uint8(p)
	}
	return pixels
}

func drawSize(t *rapid.T) (h, w int) {
	return rapid.IntRange(1, 9).Draw(t, "h"), rapid.IntRange(1, 9).Draw(t, "w")
}

func TestViews(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h, w := drawSize(rt)
		x := noise(t, rapid.Uint64().Draw(rt, "seed"), 1, h, w).Image(0)
		require.Equal(rt, x, seen(view{}, x, h, w), "a cut in the middle changes nothing")
		once := seen(view{flip: true}, x, h, w)
		require.Equal(rt, x[:3], once[(w-1)*3:w*3])
		require.Equal(rt, x, seen(view{flip: true}, once, h, w), "turned twice")

		v := view{dy: rapid.IntRange(-10, 10).Draw(rt, "dy"), dx: rapid.IntRange(-10, 10).Draw(rt, "dx"),
			flip: rapid.Bool().Draw(rt, "flip")}
		turned := x
		if v.flip {
			turned = once
		}
		got := seen(v, x, h, w)
		for y := range h {
			for c := range w {
				want := []uint8{0, 0, 0} // black
				if y+v.dy >= 0 && y+v.dy < h && c+v.dx >= 0 && c+v.dx < w {
					at := ((y+v.dy)*w + c + v.dx) * 3
					want = turned[at : at+3]
				}
				require.Equal(rt, want, got[(y*w+c)*3:(y*w+c)*3+3])
			}
		}
	})
}

// Both orders, done one step after the other on bytes with the same draws.
func TestOrders(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		x := noise(t, seed, 1, 16, 16).Image(0)
		for _, order := range []string{"", "crop-flip", "flip-crop"} {
			a := Augment{Order: order, Padding: 8, Flip: true} // 4 pixels at 16
			got := seen(a.draw(rand.New(rand.NewPCG(seed, 1)), 16, 16), x, 16, 16)
			rng := rand.New(rand.NewPCG(seed, 1))
			flip := func(x []uint8) []uint8 { return seen(view{flip: rng.IntN(2) == 1}, x, 16, 16) }
			crop := func(x []uint8) []uint8 { return seen(view{dy: rng.IntN(9) - 4, dx: rng.IntN(9) - 4}, x, 16, 16) }
			want := func() []uint8 { return flip(crop(x)) }
			if order == "flip-crop" {
				want = func() []uint8 { return crop(flip(x)) }
			}
			require.Equal(rt, want(), got, order)
		}
	})
}

func TestNormalisation(t *testing.T) {
	im := noise(t, 1, 3, 4, 5)
	for name, a := range Augments {
		require.NoError(t, a.Check(), name)
		out := make([]float32, len(im.Pixels))
		require.NoError(t, a.Plain().Batch(out, im, []int{0, 1, 2}, nil))
		for i, p := range im.Pixels {
			std := a.Std[i%3]
			if name == "none" {
				std = 1
			}
			require.InDelta(t, (float64(p)/255-a.Mean[i%3])/std, out[i], 1e-6, name)
		}
	}
	black := make([]float32, 3*1*1)
	one := &Images{Height: 1, Width: 1, Channels: 3, Pixels: []uint8{255, 0, 255}, Labels: []uint8{0}}
	require.NoError(t, Augments["autodl"].Plain().Batch(black, one, []int{0}, nil))
	require.InDeltaSlice(t, []float64{(255 - 125.3) / 63, -123 / 62.1, (255 - 113.9) / 66.7},
		[]float64{float64(black[0]), float64(black[1]), float64(black[2])}, 1e-6)
}

// The padding is black before the normalisation and all offsets are drawn; the
// square of the cutout is 0 after it.
func TestPaddingAndCutout(t *testing.T) {
	im := noise(t, 2, 1, 32, 32)
	for i := range im.Pixels {
		im.Pixels[i] = 255
	}
	const n = 1000
	out, rng := make([]float32, n*32*32*3), rand.New(rand.NewPCG(3, 0))
	a := Augments["darts"]
	require.NoError(t, a.Batch(out, im, make([]int, n), rng))
	levels := a.levels()
	offsets := map[[2]int]int{}
	for k := range n {
		var rows, columns int // of black, from the top or the left
		image := out[k*32*32*3 : (k+1)*32*32*3]
		for i := range 32 {
			if image[(i*32+16)*3] == levels[0][0] {
				rows++
			}
			if image[(16*32+i)*3] == levels[0][0] {
				columns++
			}
		}
		offsets[[2]int{rows, columns}]++
		require.LessOrEqual(t, max(rows, columns), 4)
	}
	require.Len(t, offsets, 25)
	require.InDelta(t, n/81.0, offsets[[2]int{0, 0}], 12, "no shift at all: one of 81")
	require.InDelta(t, n*4/81.0, offsets[[2]int{4, 4}], 25, "any of the four corners")

	for side, want := range map[int]int{16: 16 * 16, 7: 6 * 6, 1: 0, 0: 0} {
		a := Augment{Cutout: side}
		most, least := 0, math.MaxInt
		for range 300 {
			require.NoError(t, a.Batch(out[:32*32*3], im, []int{0}, rng))
			zeros := 0
			for i := range 32 * 32 {
				if out[3*i] == 0 && out[3*i+1] == 0 && out[3*i+2] == 0 {
					zeros++
				}
			}
			most, least = max(most, zeros), min(least, zeros)
		}
		require.Equal(t, want, most, "side %d", side)
		require.GreaterOrEqual(t, least, want/4, "at worst in a corner")
	}
}

// At half the side, half the padding.
func TestPaddingGoesWithTheSide(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 0))
	for side, most := range map[int]int{32: 4, 16: 2, 8: 1} {
		found := 0
		for range 300 {
			v := Augments["autodl"].draw(rng, side, side)
			found = max(found, v.dy, v.dx, -v.dy, -v.dx)
		}
		require.Equal(t, most, found, "side %d", side)
	}
}

func TestBatchIsAFunctionOfItsArguments(t *testing.T) {
	im := noise(t, 4, 10, 8, 6)
	for name, a := range Augments {
		a.Cutout = 16
		batch := func(indices []int, seed uint64) []float32 {
			out := make([]float32, len(indices)*8*6*3)
			for i := range out {
				out[i] = float32(math.NaN()) // whatever was there
			}
			require.NoError(t, a.Batch(out, im, indices, rand.New(rand.NewPCG(seed, 0))))
			return out
		}
		require.Equal(t, batch([]int{3, 1, 3}, 7), batch([]int{3, 1, 3}, 7), name)
		require.NotEqual(t, batch([]int{3, 1, 3}, 7), batch([]int{3, 1, 3}, 8), name)
		require.Equal(t, batch([]int{3, 1, 3}, 7)[:8*6*3], batch([]int{3, 2}, 7)[:8*6*3], "image by image")
	}
}

func TestBatchErrors(t *testing.T) {
	im, rng := noise(t, 5, 2, 4, 4), rand.New(rand.NewPCG(1, 0))
	grey := &Images{Name: "mnist", Split: "train", Height: 4, Width: 4, Channels: 1, Pixels: make([]uint8, 16),
		Labels: []uint8{0}}
	nan := math.NaN()
	for _, c := range []struct {
		a       Augment
		size    int
		im      *Images
		indices []int
		rng     *rand.Rand
		want    string
	}{
		{Augment{}, 48, grey, []int{0}, rng, "mnist train: found images of 1 channels, expected 3"},
		{Augment{}, 95, im, []int{0, 1}, rng, "found a batch of 95 numbers, expected 2×4×4×3 = 96"},
		{Augment{}, 48, im, []int{2}, rng, "cifar-10 train: found index 2, expected 0 to 1"},
		{Augment{}, 48, im, []int{-1}, rng, "found index -1"},
		{Augment{Flip: true}, 48, im, []int{0}, nil, "found no random numbers"},
		{Augment{Order: "flip"}, 48, im, []int{0}, rng,
			`Augment.Order: found "flip", expected "crop-flip" or "flip-crop"`},
		{Augment{Padding: -1}, 48, im, []int{0}, rng, "found Padding -1 and Cutout 0"},
		{Augment{Cutout: 1 << 20}, 48, im, []int{0}, rng, "Cutout 1048576, expected 0 to 1024"},
		{Augment{Std: [3]float64{1, -1, 1}}, 48, im, []int{0}, rng, "expected finite numbers"},
		{Augment{Mean: [3]float64{nan, 0, 0}}, 48, im, []int{0}, rng, "expected finite numbers"},
		{Augment{Std: [3]float64{1, 1, math.Inf(1)}}, 48, im, []int{0}, rng, "expected finite numbers"},
	} {
		require.ErrorContains(t, c.a.Batch(make([]float32, c.size), c.im, c.indices, c.rng), c.want)
	}
	require.NoError(t, Augment{Order: "flip-crop"}.Batch(nil, im, nil, nil), "nothing to do")
	require.NoError(t, Augment{Padding: 1024, Cutout: 1024}.Batch(make([]float32, 48), im, []int{1}, rng),
		"nothing to see")
}

func TestAugmentIsJSON(t *testing.T) {
	for name, a := range Augments {
		text, err := json.Marshal(a)
		require.NoError(t, err)
		var b Augment
		require.NoError(t, json.Unmarshal(text, &b))
		require.Equal(t, a, b, name)
	}
}

func BenchmarkBatch(b *testing.B) {
	im, rng := noise(b, 1, 256, 32, 32), rand.New(rand.NewPCG(1, 0))
	out, indices := make([]float32, 64*32*32*3), rng.Perm(256)[:64]
	for b.Loop() {
		if err := Augments["darts"].Batch(out, im, indices, rng); err != nil {
			b.Fatal(err)
		}
	}
}
