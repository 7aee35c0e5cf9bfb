package images

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestClassesAndHead(t *testing.T) {
	all, err := New(Images{Name: "mnist", Split: "train", Height: 1, Width: 2, Channels: 1,
		Pixels: []uint8{0, 1, 10, 11, 20, 21, 30, 31}, Labels: []uint8{3, 0, 1, 3}})
	require.NoError(t, err)
	some, err := all.Classes(1, 3, 1)
	require.NoError(t, err)
	require.Equal(t, []uint8{3, 1, 3}, some.Labels)
	require.Equal(t, []uint8{0, 1, 20, 21, 30, 31}, some.Pixels)
	require.Equal(t, map[uint8]int{1: 1, 3: 2}, some.Counts())
	require.NotEqual(t, all.Fingerprint, some.Fingerprint)

	whole, err := all.Classes(0, 1, 3)
	require.NoError(t, err)
	require.Equal(t, all.Fingerprint, whole.Fingerprint, "the same content has the same fingerprint")
	head, err := all.Head(2)
	require.NoError(t, err)
	require.Equal(t, []uint8{0, 1, 10, 11}, head.Pixels)
	require.Equal(t, []uint8{3, 0}, head.Labels)
	require.NotEqual(t, all.Fingerprint, head.Fingerprint)

	_, err = all.Classes(1, 2)
	require.EqualError(t, err, "mnist train: found no image of class 2, expected one of [0 1 3]")
	_, err = all.Classes()
	require.ErrorContains(t, err, "found no class to keep")
	for _, n := range []int{-1, 0, 5} {
		_, err = all.Head(n)
		require.ErrorContains(t, err, "expected 1 to 4")
	}
}

func TestFingerprintTellsShapesApart(t *testing.T) {
	pixels, labels := make([]uint8, 8), make([]uint8, 2)
	seen := map[string]bool{}
	for _, shape := range [][3]int{{4, 1, 1}, {1, 4, 1}, {1, 1, 4}, {2, 2, 1}} {
		im, err := New(Images{Height: shape[0], Width: shape[1], Channels: shape[2], Pixels: pixels, Labels: labels})
		require.NoError(t, err)
		seen[im.Fingerprint] = true
	}
	require.Len(t, seen, 4)
}

func TestHalf(t *testing.T) {
	im, err := New(Images{Name: "cifar-10", Height: 2, Width: 4, Channels: 2, Labels: []uint8{7, 8},
		Pixels: []uint8{
			0, 255, 1, 255, 9, 1, 9, 1,
			0, 255, 0, 255, 9, 1, 9, 2,
			0, 10, 1, 20, 2, 3, 2, 3,
			1, 30, 1, 40, 2, 3, 3, 4,
		}})
	require.NoError(t, err)
	half, err := im.Half()
	require.NoError(t, err)
	require.Equal(t, []int{2, 1, 2, 2}, []int{half.Len(), half.Height, half.Width, half.Channels})
	require.Equal(t, []uint8{0, 255, 9, 1, 1, 25, 2, 3}, half.Pixels, "¼ and ¼ down, ¾ up")
	require.Equal(t, im.Labels, half.Labels)
	require.NotEqual(t, im.Fingerprint, half.Fingerprint)
	_, err = half.Half()
	require.ErrorContains(t, err, "found images of 1×2 pixels, expected even numbers")
}

func TestHalfIsTheNearestToTheMean(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "pixels")
		im, err := New(Images{Height: 2, Width: 2, Channels: 1, Pixels: p, Labels: []uint8{0}})
		require.NoError(t, err)
		half, err := im.Half()
		require.NoError(t, err)
		mean := float64(int(p[0])+int(p[1])+int(p[2])+int(p[3])) / 4
		require.InDelta(t, mean, float64(half.Pixels[0]), 0.5)
		require.GreaterOrEqual(t, float64(half.Pixels[0]), mean-0.25, "a half goes up")
	})
}
