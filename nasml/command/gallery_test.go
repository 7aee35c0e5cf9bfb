package command

import (
	"encoding/json"
	"image"
	_ "image/png" // thumbnails
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/internal/claims"
	"github.com/nasml/lab/nasml/internal/gallery"
)

const (
	updateEnv = "NASML_UPDATE_GOLDEN" // set: write the pages anew
	anew      = "write it anew with " + updateEnv + "=1 go test ./nasml/command -run TestPagesSayWhatIsShipped"
)

// Index, README, guide and thumbnails are what the shipped records say now, and the
// ledger's notebook, the gallery's pages and the command count the same, entry by entry.
func TestPagesSayWhatIsShipped(t *testing.T) {
	if testing.Short() {
		t.Skip("draws everything that is shipped: not with -short")
	}
	t.Setenv("NASML_DATA", t.TempDir()) // the same on every machine
	t.Setenv("NASML_STORE", t.TempDir())
	root, err := findRoot()
	require.NoError(t, err)
	shipped, err := gallery.Shipped(t.Context())
	require.NoError(t, err)
	if os.Getenv(updateEnv) != "" {
		require.NoError(t, shipped.WritePages(root))
		return
	}
	pages, err := shipped.Pages(root)
	require.NoError(t, err)
	for name, want := range pages {
		require.Equal(t, string(want), read(t, filepath.Join(root, name)), "%s: %s", name, anew)
	}
	for _, it := range shipped.Items {
		require.FileExists(t, filepath.Join(root, it.Notebook))
		if it.Drawn() {
			sameThumbnail(t, filepath.Join(root, "notebooks", gallery.Thumbnails), it)
		}
	}
	sameTallies(t, shipped)
	sameLedger(t, filepath.Join(root, "notebooks", "claims.ipynb"), shipped.Ledger)
}

// Every picture that the pages come with is shown by one of them.
func TestEveryPictureIsOnAPage(t *testing.T) {
	root, err := findRoot()
	require.NoError(t, err)
	var pages strings.Builder
	for _, pattern := range []string{"README.md", "notebooks/*.ipynb", "notebooks/guide/*.md"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		for _, file := range files {
			pages.WriteString(read(t, file))
		}
	}
	for _, pattern := range []string{"notebooks/guide/*.png", "notebooks/" + gallery.Thumbnails + "/*.png"} {
		pictures, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		for _, picture := range pictures {
			require.Contains(t, pages.String(), filepath.Base(picture), "no page shows %s", picture)
		}
	}
}

// sameThumbnail compares a picture by its size and its pixels, of which other processors
// round some otherwise.
func sameThumbnail(t *testing.T, dir string, it gallery.Item) {
	want := it.Thumbnail()
	drawn, err := want.Save(t.TempDir(), "png")
	require.NoError(t, err)
	a, b := openPNG(t, drawn[0]), openPNG(t, filepath.Join(dir, it.Name()+".png"))
	require.Equal(t, a.Bounds(), b.Bounds(), "%s: %s", it.ID, anew)
	differ := 0
	for y := range a.Bounds().Dy() {
		for x := range a.Bounds().Dx() {
			if r, g, bl, _ := a.At(x, y).RGBA(); far(b, x, y, r, g, bl) {
				differ++
			}
		}
	}
	require.LessOrEqual(t, differ, a.Bounds().Dx()*a.Bounds().Dy()/2000, "%s: %s", it.ID, anew)
}

// far reports whether a pixel is another colour by more than an eighth of the range.
func far(im image.Image, x, y int, want ...uint32) bool {
	r, g, b, _ := im.At(x, y).RGBA()
	for i, have := range []uint32{r, g, b} {
		if max(have, want[i])-min(have, want[i]) > 0xffff/8 {
			return true
		}
	}
	return false
}

func openPNG(t *testing.T, file string) image.Image {
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	im, _, err := image.Decode(f)
	require.NoError(t, err, file)
	return im
}

// sameTallies holds the gallery's pages and the command to the counts of the README.
func sameTallies(t *testing.T, shipped *gallery.Gallery) {
	dir := t.TempDir()
	require.NoError(t, shipped.Write(dir))
	index, ledger := read(t, filepath.Join(dir, "index.html")), read(t, filepath.Join(dir, "claims.html"))
	code, out, log := call(t, "claims", "--short")
	require.Equal(t, exitOK, code, log)
	for _, e := range catalog.All() {
		tally := shipped.Ledger.Tally(e.ID).String()
		require.Contains(t, index, ">"+tally+"<", e.ID)
		require.Contains(t, read(t, filepath.Join(dir, strings.ReplaceAll(e.ID, "/", "-")+".html")), tally)
		require.Contains(t, ledger, "<tr><td>"+e.ID+"</td><td>"+tally+"</td></tr>")
		require.Regexp(t, `(?m)^`+e.ID+` +`+tally+`$`, out)
	}
}

// sameLedger holds the stored output of the ledger's notebook to the ledger.
func sameLedger(t *testing.T, notebook string, whole *claims.Ledger) {
	var stored struct {
		Cells []struct {
			Outputs []struct {
				Data map[string]any `json:"data"`
			} `json:"outputs"`
		} `json:"cells"`
	}
	require.NoError(t, json.Unmarshal([]byte(read(t, notebook)), &stored))
	var all strings.Builder
	for _, c := range stored.Cells {
		for _, o := range c.Outputs {
			if lines, ok := o.Data["text/html"].([]any); ok {
				for _, line := range lines {
					all.WriteString(line.(string))
				}
			}
		}
	}
	for _, paper := range []string{"khodak2020", "oymak2021", "roberts", "li2021"} {
		l, err := claims.Read(t.Context(), claims.Options{Paper: paper})
		require.NoError(t, err)
		part, err := l.HTML()
		require.NoError(t, err)
		require.Contains(t, all.String(), strings.TrimSpace(part),
			"%s: go tool nasml notebooks notebooks/claims.ipynb", paper)
		for _, e := range catalog.All() {
			if tally := l.Tally(e.ID); strings.HasPrefix(e.ID, paper+"/") {
				require.Equal(t, whole.Tally(e.ID), tally, "the ledger of one paper counts as the whole one does")
			}
		}
	}
}
