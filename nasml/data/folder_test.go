package data

import (
	"image"
	"image/color"
	"image/jpeg"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/internal/images"
)

// photoFolder makes a folder with two classes of photographs, a red and a blue
// one, of sizes that differ.
func photoFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for class, shade := range map[string]color.RGBA{"n01": {R: 250, A: 255}, "n02": {B: 250, A: 255}} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, class), 0o755))
		for i, size := range [][2]int{{40, 24}, {24, 40}, {33, 33}} {
			photo := image.NewRGBA(image.Rect(0, 0, size[0], size[1]))
			for at := range photo.Pix {
				photo.Pix[at] = []uint8{shade.R, shade.G, shade.B, 255}[at%4]
			}
			file, err := os.Create(filepath.Join(dir, class, class+"_"+string(rune('a'+i))+".JPEG"))
			require.NoError(t, err)
			require.NoError(t, jpeg.Encode(file, photo, nil))
			require.NoError(t, file.Close())
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, class, "notes.txt"), []byte("none"), 0o644))
	}
	return dir
}

func TestPhotoFolder(t *testing.T) {
	f, err := OpenPhotoFolder(photoFolder(t))
	require.NoError(t, err)
	require.Equal(t, []string{"n01", "n02"}, f.ClassNames)
	require.Equal(t, 6, f.Len())
	require.Equal(t, 4, f.First(2).Len())
	require.NotEqual(t, f.Fingerprint, f.First(2).Fingerprint)

	crop := images.ImageNetCrop
	crop.Jitter, crop.Resize = [4]float64{}, 20
	for _, train := range []bool{false, true} {
		p := Photographs{f, 16, crop, train}
		require.Equal(t, 2, p.Classes())
		pixels, labels := make([]float32, 3*16*16*3), make([]int32, 3)
		require.NoError(t, p.Batch(pixels, labels, []int{5, 0, 2}, rand.New(rand.NewPCG(1, 1))))
		require.Equal(t, []int32{1, 0, 0}, labels)
		red := func(image int) float64 { return 0.485 + 0.229*float64(pixels[image*16*16*3]) }
		blue := func(image int) float64 { return 0.406 + 0.225*float64(pixels[image*16*16*3+2]) }
		require.InDelta(t, 0, red(0), 0.03)
		require.InDelta(t, 250./255, blue(0), 0.03)
		require.InDelta(t, 250./255, red(1), 0.03)
		require.InDelta(t, 0, blue(2), 0.03)
		again, _ := make([]float32, len(pixels)), 0
		require.NoError(t, p.Batch(again, labels, []int{5, 0, 2}, rand.New(rand.NewPCG(1, 1))))
		require.Equal(t, pixels, again, "the same draws")

		tested := make([]float32, len(pixels))
		require.NoError(t, Photographs{f, 16, crop, false}.Batch(tested, labels, []int{5, 0, 2}, nil))
		require.NoError(t, p.Batch(again, labels, []int{5, 0, 2}, nil))
		require.Equal(t, tested, again, "without a generator nothing is drawn")
	}
}

func TestPhotoFoldersThatAreWrong(t *testing.T) {
	says := func(err error, parts ...string) {
		t.Helper()
		for _, part := range parts {
			require.ErrorContains(t, err, part)
		}
		require.NotContains(t, err.Error(), "\n")
	}
	dir := photoFolder(t)
	_, err := OpenPhotoFolder(filepath.Join(dir, "missing"))
	says(err, "missing: no such file or directory: expected a folder with one folder a class")
	_, err = OpenPhotoFolder(filepath.Join(dir, "n01"))
	says(err, "found no folders, expected one a class")

	broken := filepath.Join(dir, "n01", "n01_b.JPEG")
	whole, err := os.ReadFile(broken)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(broken, whole[:len(whole)/2], 0o644))
	f, err := OpenPhotoFolder(dir)
	require.NoError(t, err)
	p := Photographs{PhotoFolder: f, Side: 8}
	err = p.Batch(make([]float32, 3*8*8*3), make([]int32, 3), []int{0, 1, 4}, nil)
	says(err, "n01_b.JPEG is broken: ", "copy it from the publisher's archive again")

	require.NoError(t, os.Mkdir(filepath.Join(dir, "n03"), 0o755))
	_, err = OpenPhotoFolder(dir)
	says(err, "class n03 has no file that ends in .jpeg, .jpg, .png")
	require.NoError(t, os.Remove(filepath.Join(dir, "n03")))

	if os.Getuid() == 0 {
		return // root may read everything
	}
	require.NoError(t, os.Chmod(filepath.Join(dir, "n02"), 0))
	_, err = OpenPhotoFolder(dir)
	says(err, "class n02: permission denied")
	require.NoError(t, os.Chmod(filepath.Join(dir, "n02"), 0o755))
	require.False(t, strings.Contains(err.Error(), "\n"))
}
