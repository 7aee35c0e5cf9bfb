package data

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// entry is a file of a hand-made archive.
type entry struct {
	name string
	body []byte
	kind byte // if 0, a file
}

func tarball(entries ...entry) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Typeflag: e.kind, Mode: 0o644, Size: int64(len(e.body))}
		if e.kind == 0 {
			h.Typeflag = tar.TypeReg
		}
		if e.kind == tar.TypeSymlink {
			h.Linkname = "/etc/passwd"
		}
		if err := w.WriteHeader(h); err != nil {
			panic(err)
		}
		if _, err := w.Write(e.body); err != nil {
			panic(err)
		}
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func sumOf(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// Tiny stands for CIFAR10: 2×2 images of 5 classes, two batches of three
// images and a test batch of four, of which the first two are the head.
var (
	tinyFormat = recordFormat{labels: []int{5}, side: 2}
	tinyRecord = func(label byte, from byte) []byte {
		r := []byte{label}
		for i := range byte(12) {
			r = append(r, from+i)
		}
		return r
	}
	tinyFirst  = slices.Concat(tinyRecord(0, 0), tinyRecord(1, 20), tinyRecord(2, 40))
	tinySecond = slices.Concat(tinyRecord(3, 60), tinyRecord(4, 80), tinyRecord(0, 100))
	tinyTest   = slices.Concat(tinyRecord(1, 120), tinyRecord(2, 140), tinyRecord(3, 160), tinyRecord(4, 180))
	tinyHead   = tinyTest[:2*13]
)

func tinySet(first, second, test []byte) set {
	return cifar("tiny.tar.gz", 1000, tinyFormat,
		Member{Path: "bin/1", Images: 3, SHA256: sumOf(first)},
		Member{Path: "bin/2", Images: 3, SHA256: sumOf(second)},
		Member{Path: "bin/test", Images: 4, SHA256: sumOf(test), Head: 2, HeadSHA256: sumOf(test[:2*13])})
}

func tinyEntries() []entry {
	return []entry{
		{"bin/", nil, tar.TypeDir},
		{"bin/readme.html", []byte("<html>"), 0},
		{"bin/1", tinyFirst, 0},
		{"bin/2", tinySecond, 0},
		{"bin/test", tinyTest, 0},
	}
}

// tiny is a library with an archive in its folder.
func tiny(t *testing.T, archive []byte) *library {
	t.Helper()
	l := &library{
		dir:    t.TempDir(),
		sets:   registry{CIFAR10: tinySet(tinyFirst, tinySecond, tinyTest)},
		client: http.DefaultClient,
		pause:  time.Millisecond,
		stall:  10 * time.Second,
	}
	l.sets[CIFAR10][Train].files[0].URLs[0] = "http://127.0.0.1:1/tiny.tar.gz" // nobody is there
	if archive != nil {
		put(t, l.dir, "tiny.tar.gz", archive)
	}
	return l
}

func TestLoadArchive(t *testing.T) {
	entries := tinyEntries()
	shuffled := []entry{entries[4], entries[2], {"./bin/2", tinySecond, 0}}
	for name, archive := range map[string][]byte{
		"zipped": gz(tarball(entries...)), "not zipped": tarball(entries...), "another order": gz(tarball(shuffled...)),
	} {
		t.Run(name, func(t *testing.T) {
			l := tiny(t, archive)
			train, err := l.load(t.Context(), CIFAR10, Train)
			require.NoError(t, err)
			require.Equal(t, []uint8{0, 1, 2, 3, 4, 0}, train.Labels)
			require.Equal(t, []int{6, 2, 2, 3}, []int{train.Len(), train.Height, train.Width, train.Channels})
			require.Equal(t, []uint8{20, 24, 28, 21, 25, 29, 22, 26, 30, 23, 27, 31}, train.Image(1), "by pixel")
			test, err := l.load(t.Context(), CIFAR10, Test)
			require.NoError(t, err)
			require.Equal(t, []uint8{1, 2, 3, 4}, test.Labels)
			require.Equal(t, Test, test.Split)
			all, err := l.status(nil)
			require.NoError(t, err)
			require.Len(t, all, 1, "one archive, three splits")
			require.Equal(t, Present, all[0].State)
		})
	}
}

func TestLoadIncompleteArchive(t *testing.T) {
	entries := tinyEntries()
	whole := tiny(t, gz(tarball(entries...)))
	entries[4].body = tinyHead
	l := tiny(t, gz(tarball(entries...)))

	for _, split := range []Split{Train, Test1000} {
		want, err := whole.load(t.Context(), CIFAR10, split)
		require.NoError(t, err)
		im, err := l.load(t.Context(), CIFAR10, split)
		require.NoError(t, err)
		require.Equal(t, want, im, "the same images from both archives")
	}
	_, err := l.load(t.Context(), CIFAR10, Test)
	require.ErrorIs(t, err, ErrIncomplete)
	require.ErrorContains(t, err, `tiny.tar.gz: the file is incomplete: found the first 2 of 4 images in bin/test, `+
		`which is enough for the splits ["train" "test-1000"]; for all, run "go tool nasml data cifar-10"`)
	all, err := l.status(nil)
	require.NoError(t, err)
	require.Equal(t, Incomplete, all[0].State)
	require.ErrorIs(t, all[0].Problem, ErrIncomplete)
	err = l.fetch(t.Context(), CIFAR10, nil)
	require.ErrorIs(t, err, ErrIncomplete)
	require.ErrorContains(t, err, "found the first 2 of 4 images in bin/test and could not be downloaded")
	_, err = l.load(t.Context(), CIFAR10, Train)
	require.NoError(t, err, "and what was there is there")
}

func TestImportArchive(t *testing.T) {
	entries := tinyEntries()
	whole := gz(tarball(entries...))
	entries[4].body = tinyHead
	incomplete := gz(tarball(entries...))
	l := tiny(t, nil)

	from := t.TempDir()
	put(t, from, "tiny.tar.gz", incomplete)
	require.NoError(t, l.takeOver(from, nil))
	kept, err := os.ReadFile(filepath.Join(l.dir, "tiny.tar.gz"))
	require.NoError(t, err)
	require.Equal(t, incomplete, kept, "better than nothing")
	require.NoError(t, l.takeOver(from, []Name{CIFAR10}))
	require.NoFileExists(t, filepath.Join(l.dir, "tiny.tar.gz.broken"), "the same again changes nothing")

	better := t.TempDir()
	put(t, better, "tiny.tar.gz", whole)
	require.NoError(t, l.takeOver(better, nil))
	_, err = l.load(t.Context(), CIFAR10, Test)
	require.NoError(t, err)
	require.NoError(t, l.takeOver(from, nil))
	_, err = l.load(t.Context(), CIFAR10, Test)
	require.NoError(t, err, "a whole one is not given away")
}

func TestReadArchiveNamesWhatIsWrong(t *testing.T) {
	with := func(change func(e []entry) []entry) []byte { return gz(tarball(change(tinyEntries())...)) }
	body := func(i int, b []byte) []byte {
		return with(func(e []entry) []entry { e[i].body = b; return e })
	}
	add := func(more entry) []byte { return with(func(e []entry) []entry { return append(e, more) }) }
	good := gz(tarball(tinyEntries()...))
	flipped := bytes.Clone(tinyFirst)
	flipped[5]++
	for name, c := range map[string]struct {
		archive []byte
		want    string
	}{
		"no training batch": {with(func(e []entry) []entry { return append(e[:3:3], e[4]) }),
			"found no bin/2 in the archive"},
		"no test batch":   {with(func(e []entry) []entry { return e[:4] }), "found no bin/test in the archive"},
		"empty":           {with(func([]entry) []entry { return nil }), "found no bin/1 in the archive"},
		"short batch":     {body(2, tinyFirst[:26]), "found 26 bytes in bin/1, expected 39"},
		"long test batch": {body(4, append(bytes.Clone(tinyTest), 0)), "found 53 bytes in bin/test, expected 52"},
		"another head":    {body(4, tinyTest[26:]), "of bin/test, expected " + sumOf(tinyHead)},
		"one bit": {body(2, flipped),
			"found SHA-256 " + sumOf(flipped) + " of bin/1, expected " + sumOf(tinyFirst)},
		"twice": {add(entry{"bin/1", tinyFirst, 0}), "found bin/1 twice"},
		"path traversal": {add(entry{"bin/../../x", nil, 0}),
			`found "bin/../../x" in the archive, a name that leads out of it`},
		"absolute path":       {add(entry{"/bin/1", nil, 0}), "a name that leads out of it"},
		"symbolic link":       {add(entry{"bin/x", nil, tar.TypeSymlink}), "neither a file nor a folder"},
		"truncated in a file": {good[:len(good)-30], "is cut off after"},
		"no gzip trailer":     {good[:len(good)-4], "after the last file of the archive: unexpected EOF"},
		"damaged gzip": {append(bytes.Clone(good[:len(good)-8]), 1, 2, 3, 4, 5, 6, 7, 8),
			"gzip: invalid checksum"},
		"a web page": {[]byte("<!doctype html>" + string(make([]byte, 2000))),
			"found 0 of 3 files and then no more of a tar archive"},
		"nothing": {nil, "found a file of 0 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			l := tiny(t, nil)
			put(t, l.dir, "tiny.tar.gz", c.archive)
			_, err := l.load(t.Context(), CIFAR10, Train)
			require.ErrorIs(t, err, ErrBroken)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, `run "go tool nasml data cifar-10"`)
		})
	}
}

// Checksums do not show that data are valid.
func TestLabelsOutOfRange(t *testing.T) {
	bad := bytes.Clone(tinySecond)
	bad[13] = 5
	l := tiny(t, gz(tarball(entry{"bin/1", tinyFirst, 0}, entry{"bin/2", bad, 0}, entry{"bin/test", tinyTest, 0})))
	l.sets[CIFAR10] = tinySet(tinyFirst, bad, tinyTest)
	_, err := l.load(t.Context(), CIFAR10, Train)
	require.ErrorIs(t, err, ErrBroken)
	require.ErrorContains(t, err, "cifar-10 train: the file is broken: found label 5 of image 4, expected 0 to 4")

	coarse := recordFormat{labels: []int{2, 9}, side: 1}
	im, err := coarse.images([][]byte{{1, 8, 10, 11, 12}, {0, 2, 13, 14, 15}})
	require.NoError(t, err)
	require.Equal(t, []uint8{8, 2}, im.Labels, "the fine labels")
	require.Equal(t, []uint8{10, 11, 12, 13, 14, 15}, im.Pixels)
	_, err = coarse.images([][]byte{{2, 0, 1, 1, 1}})
	require.ErrorContains(t, err, "found label 2 of image 0, expected 0 to 1")
	_, err = coarse.images([][]byte{{1, 0, 1, 1}})
	require.ErrorContains(t, err, "found 4 bytes, expected a multiple of 5")
}

func TestInterleave(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		area := rapid.IntRange(1, 30).Draw(t, "area")
		channels := rapid.SliceOfN(rapid.Byte(), 3*area, 3*area).Draw(t, "channels")
		pixels := make([]uint8, 3*area)
		interleave(pixels, channels)
		for c := range 3 {
			for p := range area {
				require.Equal(t, channels[c*area+p], pixels[3*p+c])
			}
		}
	})
}
