package data

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// offline is a folder without data, and no publisher answers.
func offline(t *testing.T) {
	t.Helper()
	t.Setenv("NASML_DATA", t.TempDir())
	ours := publishers[MNIST]
	t.Cleanup(func() { publishers[MNIST] = ours })
	publishers[MNIST] = set{}
	for split, p := range ours {
		var files []File
		for _, f := range p.files {
			f.URLs = nil
			f.ByHand = "get it"
			files = append(files, f)
		}
		p.files = files
		publishers[MNIST][split] = p
	}
}

// wholeMNIST skips a test where the publisher's files are not there.
func wholeMNIST(t *testing.T) {
	t.Helper()
	for _, split := range []Split{Train, Test} {
		for _, f := range publishers[MNIST][split].files {
			if l, err := open(); err == nil {
				if _, _, err = l.find(MNIST, f); err == nil {
					continue
				}
			}
			t.Skip("needs MNIST in $NASML_DATA")
		}
	}
}

// The part is of the publisher's files: with NASML_UPDATE_GOLDEN=1 it is taken from them
// again.
func TestShippedDigitsAreThePublishers(t *testing.T) {
	wholeMNIST(t)
	for _, split := range []Split{Train, Test} {
		whole, err := Load(t.Context(), MNIST, split)
		require.NoError(t, err)
		var keep []int
		pairs := 0
		for i, label := range whole.Labels {
			pair := split == Train && label <= 1 && pairs < shippedPairs
			if pair {
				pairs++
			}
			if pair || split == Train && i < shippedTrain || split == Test && i < shippedTest {
				keep = append(keep, i)
			}
		}
		want := *whole
		want.Pixels, want.Labels = nil, nil
		for _, i := range keep {
			want.Pixels = append(want.Pixels, whole.Image(i)...)
			want.Labels = append(want.Labels, whole.Labels[i])
		}
		if os.Getenv("NASML_UPDATE_GOLDEN") != "" {
			writeIDX(t, shippedIDX(split, "images"), want.Pixels, len(keep), 28, 28)
			writeIDX(t, shippedIDX(split, "labels"), want.Labels, len(keep))
			continue
		}
		part, err := loadShipped(MNIST, split)
		require.NoError(t, err)
		require.Equal(t, want.Labels, part.Labels)
		require.True(t, bytes.Equal(want.Pixels, part.Pixels))
	}
}

func writeIDX(t *testing.T, path string, body []byte, shape ...int) {
	t.Helper()
	plain := binary.BigEndian.AppendUint32(nil, uint32(0x0800+len(shape)))
	for _, n := range shape {
		plain = binary.BigEndian.AppendUint32(plain, uint32(n))
	}
	var out bytes.Buffer
	zipped, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	require.NoError(t, err)
	_, err = zipped.Write(append(plain, body...))
	require.NoError(t, err)
	require.NoError(t, zipped.Close())
	require.NoError(t, os.WriteFile(path, out.Bytes(), 0o644))
}

// Where the publisher's files are, they are taken; the first images of the part are the
// same, and fingerprints tell everything else apart.
func TestViewsOfThePartAndOfTheWholeSet(t *testing.T) {
	wholeMNIST(t)
	for _, v := range []struct {
		first   int
		classes []uint8
		same    bool
	}{
		{4096, []uint8{0, 1}, true}, {0, []uint8{0, 1}, false}, {5000, []uint8{0, 1}, false},
		{500, []uint8{3, 5}, true}, {4000, []uint8{3, 5}, false}, {5000, nil, true}, {5001, nil, false},
		{600, []uint8{1, 7}, true}, {1500, []uint8{1, 7}, false},
	} {
		view := View{Name: MNIST, Split: Train, Classes: v.classes, First: v.first, OrShipped: true}
		theirs, err := view.load(t.Context())
		require.NoError(t, err)
		ours, note, err := view.shipped()
		require.NoError(t, err)
		require.Equal(t, v.same, theirs.Fingerprint == ours.Fingerprint, "%v", view)
		want := "which are not all"
		if v.same {
			want = "the whole set has the same"
		}
		require.Contains(t, note, want, "%v", view)
	}
}

// Without files and network a view that allows it is of the part, and says so; another is
// an error, and so is one of which trials of the whole set are known.
func TestThePartIsTakenWhereItIsAllowed(t *testing.T) {
	offline(t)
	view := View{Name: MNIST, Split: Train, Classes: []uint8{0, 1}, First: 4096}
	_, err := view.Open(t.Context())
	require.ErrorIs(t, err, ErrMissing)
	view.OrShipped = true
	o, err := view.Open(t.Context())
	require.NoError(t, err)
	require.Equal(t, 4096, o.Len)
	require.False(t, o.Synthetic)
	require.Contains(t, o.Note, "The 4096 images are of the part of mnist that travels with the project")
	im, err := o.Images(t.Context())
	require.NoError(t, err)
	require.Equal(t, o.Fingerprint, im.Fingerprint)

	view.First = 0 // known: shipped trials are of all
	o, err = view.Open(t.Context())
	require.NoError(t, err)
	require.Empty(t, o.Note)
	_, err = o.Images(t.Context())
	require.ErrorIs(t, err, ErrMissing)

	view.Split, view.Classes = Test, nil
	o, err = view.Open(t.Context())
	require.NoError(t, err)
	require.Equal(t, shippedTest, o.Len)
	require.Contains(t, o.Note, "which are not all")
	_, err = View{Name: CIFAR100, Split: Train, OrShipped: true}.Open(t.Context())
	require.Error(t, err)
}
