package plots

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"testing"

	"github.com/stretchr/testify/require"
)

// Areas keep their colours, however many there are; mixtures at edges become near ones.
func TestPicturesAreIndexed(t *testing.T) {
	picture := image.NewRGBA(image.Rect(0, 0, 200, 200))
	for y := range 200 {
		for x := range 200 {
			picture.SetRGBA(x, y, color.RGBA{R: uint8(x / 20 * 25), G: uint8(y / 20 * 25), A: 255}) // 100 areas
		}
	}
	for i := range 200 { // each once
		picture.SetRGBA(i, 7, color.RGBA{R: uint8(i/20*25 + i%3), B: uint8(i % 7), A: 255})
	}
	out := indexed(picture, nil)
	require.Less(t, len(out.Palette), 130)
	for y := range 200 {
		for x := range 200 {
			want, got := picture.RGBAAt(x, y), color.RGBAModel.Convert(out.At(x, y)).(color.RGBA)
			if y != 7 {
				require.Equal(t, want, got)
			}
			require.InDelta(t, want.R, got.R, 3)
			require.InDelta(t, want.B, got.B, 7)
		}
	}
}

// A picture takes a third of what all its colours would.
func TestPicturesAreSmall(t *testing.T) {
	f := figure2(ICML, Bands)
	data, err := f.Render("png")
	require.NoError(t, err)
	small, err := png.Decode(bytes.NewReader(data))
	require.NoError(t, err)
	require.IsType(t, &image.Paletted{}, small)
	require.Less(t, len(data), 120_000)
}
