package command

import (
	"encoding/json"
	"image"
	"image/color"
	"image/jpeg"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// photographs makes a folder of photographs in two classes.
func photographs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for class, shade := range map[string]color.RGBA{"n01": {R: 250, A: 255}, "n02": {B: 250, A: 255}} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "train", class), 0o755))
		for i := range 8 {
			photo := image.NewRGBA(image.Rect(0, 0, 50+i, 60))
			for at := range photo.Pix {
				photo.Pix[at] = []uint8{shade.R, shade.G, shade.B, 255}[at%4]
			}
			file, err := os.Create(filepath.Join(dir, "train", class, strconv.Itoa(i)+".JPEG"))
			require.NoError(t, err)
			require.NoError(t, jpeg.Encode(file, photo, nil))
			require.NoError(t, file.Close())
		}
	}
	return dir
}

// A search with the settings of ImageNet on a folder of photographs, by the command
// alone; run again, it is read. What is wrong with a folder is said in a line.
func TestASearchOnPhotographs(t *testing.T) {
	t.Setenv("NASML_STORE", t.TempDir())
	t.Setenv("GOMLX_BACKEND", "go")
	dir := photographs(t)
	run := func(folder string, more ...string) (status int, out, err string) {
		args := []string{"run", "li2021/figure1-left", "--format", "csv", "--json", "--out", t.TempDir()}
		for _, set := range append([]string{
			"Preset=imagenet", "Folder=" + folder, "Rows=gaea-pc-darts@darts-s2", "Seeds=1", "Examples=15", "Image=32",
			"Channels=4", "Cells=3", "Batch=5", "Epochs=2", "Bilevel.Warmup=1", "EvaluateEvery=1",
		}, more...) {
			args = append(args, "--set", set)
		}
		return call(t, args...)
	}
	records := func(out string) (r []string) {
		var all struct{ Records []string }
		require.NoError(t, json.Unmarshal([]byte(out), &all), out)
		return all.Records
	}
	status, out, err := run(dir)
	require.Contains(t, []int{exitOK, exitClaims}, status, err)
	require.Len(t, records(out), 1)
	status, again, err := run(dir, "StoredOnly=true")
	require.Contains(t, []int{exitOK, exitClaims}, status, err)
	require.Equal(t, records(out), records(again))

	require.NoError(t, os.Mkdir(filepath.Join(dir, "train", "n03"), 0o755))
	for folder, want := range map[string]string{
		dir: "class n03 has no file", filepath.Join(dir, "train"): "expected a folder with one folder a class",
		dir + "/none": "none does not exist; it must hold ILSVRC-2012's photographs in train",
	} {
		status, _, err := run(folder)
		require.NotContains(t, []int{exitOK, exitClaims}, status)
		require.Contains(t, err, want)
		require.Equal(t, 1, strings.Count(err, "\n"), "one line: %s", err)
	}
	require.NoError(t, os.Remove(filepath.Join(dir, "train", "n03")))
	broken := filepath.Join(dir, "train", "n02", "3.JPEG")
	require.NoError(t, os.Truncate(broken, 200))
	status, _, err = run(dir, "Examples=16")
	require.Equal(t, exitFailed, status)
	require.Contains(t, err, "3.JPEG is broken")
}
