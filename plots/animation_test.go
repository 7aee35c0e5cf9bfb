package plots

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// learning is a cell of one edge whose weight moves.
func learning() Animation {
	a := Animation{Name: "learning"}
	for i, w := range []float64{0.5, 0.7, 0.9} {
		a.Labels = append(a.Labels, []string{"epoch 0", "epoch 1", "epoch 2 <end>"}[i])
		a.Frames = append(a.Frames, Figure{Name: "frame", Title: "A cell", Panels: [][]Panel{{{Cell: &Cell{
			Nodes: []string{"0", "1"}, Ops: []Op{{Label: "skip"}, {Label: "conv"}}, Width: 7,
			Edges: []Edge{{From: 0, To: 1, Weights: []float64{w, 1 - w}}},
		}}}}})
	}
	return a
}

func TestAnimationIsAPageByItself(t *testing.T) {
	a := learning()
	page, err := a.HTML()
	require.NoError(t, err)
	require.Equal(t, 3, strings.Count(page, "<img "))
	require.Equal(t, 2, strings.Count(page, "display:none"), "the last frame shows without a script")
	require.Contains(t, page, `max="2"`)
	require.Contains(t, page, "epoch 2 &lt;end&gt;")
	require.NotContains(t, page, "http:", "nothing is loaded but what is in it")
	require.NotContains(t, page, "https:")
	again, err := a.HTML()
	require.NoError(t, err)
	require.Equal(t, page, again)
	frames := strings.Split(page, `data-svg="`)[1:]
	require.Len(t, frames, 2)
	require.Equal(t, 1, strings.Count(page, "base64,"), "the last frame")
	var pictures []string
	for _, frame := range frames {
		zipped, err := base64.StdEncoding.DecodeString(strings.Split(frame, `"`)[0])
		require.NoError(t, err)
		r, err := gzip.NewReader(bytes.NewReader(zipped))
		require.NoError(t, err)
		svg, err := io.ReadAll(r)
		require.NoError(t, err)
		pictures = append(pictures, string(svg))
	}
	require.Contains(t, pictures[0], "<svg ")
	require.NotEqual(t, pictures[0], pictures[1])
}

func TestAnimationIsSaved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	files, err := learning().Save(dir, "html", "svg", "pdf")
	require.NoError(t, err)
	require.Len(t, files, 1+2*3)
	for _, file := range files {
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.Positive(t, info.Size(), file)
	}
	require.Equal(t, filepath.Join(dir, "learning-003.pdf"), files[6])

	_, err = Animation{Name: "none"}.HTML()
	require.ErrorContains(t, err, "0 frames and 0 labels")
	a := learning()
	a.Labels = a.Labels[:2]
	_, err = a.Save(dir, "svg")
	require.ErrorContains(t, err, "3 frames and 2 labels")
	_, err = learning().Save(dir, "gif")
	require.ErrorContains(t, err, `format "gif"`)
	require.ErrorIs(t, learning().Show(), ErrNoNotebook)
}
