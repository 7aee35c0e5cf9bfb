package data

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func gz(plain []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(plain); err != nil {
		panic(err) // a buffer takes everything
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// smallFile makes a file of random bytes as a registry would know it.
func smallFile(path string, seed uint64, shape ...int) (File, []byte) {
	size := 1
	for _, n := range shape {
		size *= n
	}
	body, rng := make([]byte, size), stream(seed, ofSample, 0)
	for i := range body {
		body[i] = byte(rng.IntN(10))
	}
	plain := encodeIDX(shape, body)
	sum := sha256.Sum256(plain)
	return File{Path: path, SHA256: hex.EncodeToString(sum[:]), Size: int64(len(gz(plain))), Shape: shape}, plain
}

// small is a library in an empty folder of two small sets that cannot be downloaded,
// with what their files contain by path.
func small(t *testing.T) (*library, map[string][]byte) {
	t.Helper()
	content := map[string][]byte{}
	sets := registry{}
	for k, name := range []Name{MNIST, FashionMNIST} {
		file := func(i uint64, base string, shape ...int) File {
			f, plain := smallFile(string(name)+"/"+base, uint64(10*k)+i, shape...)
			content[f.Path] = plain
			return f
		}
		sets[name] = set{
			Train: idxPart(file(0, "train-images-idx3-ubyte.gz", 20, 6, 5), file(1, "train-labels-idx1-ubyte.gz", 20)),
			Test:  idxPart(file(2, "t10k-images-idx3-ubyte.gz", 10, 6, 5), file(3, "t10k-labels-idx1-ubyte.gz", 10)),
		}
	}
	return &library{
		dir:    t.TempDir(),
		sets:   sets,
		client: http.DefaultClient,
		pause:  time.Millisecond,
		stall:  10 * time.Second,
	}, content
}

func put(t *testing.T, dir, path string, content []byte) {
	t.Helper()
	at := filepath.Join(dir, filepath.FromSlash(path))
	require.NoError(t, os.MkdirAll(filepath.Dir(at), 0o755))
	require.NoError(t, os.WriteFile(at, content, 0o644))
}

func TestLoadReadsWhatIsThere(t *testing.T) {
	l, content := small(t)
	put(t, l.dir, "fashion-mnist/train-images-idx3-ubyte.gz", gz(content["fashion-mnist/train-images-idx3-ubyte.gz"]))
	put(t, l.dir, "fashion-mnist/train-labels-idx1-ubyte", content["fashion-mnist/train-labels-idx1-ubyte.gz"])
	im, err := l.load(t.Context(), FashionMNIST, Train)
	require.NoError(t, err)
	require.Equal(t, []int{20, 6, 5, 1}, []int{im.Len(), im.Height, im.Width, im.Channels})
	require.Equal(t, content["fashion-mnist/train-images-idx3-ubyte.gz"][16:], im.Pixels)
	require.Equal(t, content["fashion-mnist/train-labels-idx1-ubyte.gz"][8:], im.Labels)
	require.Equal(t, im.Pixels[30:60], im.Image(1))
	require.False(t, im.Synthetic)
}

func TestLoadErrorsSayWhatToDo(t *testing.T) {
	l, content := small(t)
	path := "mnist/train-images-idx3-ubyte.gz"
	_, err := l.load(t.Context(), MNIST, Train)
	require.ErrorIs(t, err, ErrMissing)
	for _, part := range []string{filepath.Join(l.dir, path), "go tool nasml data mnist", "--from DIR"} {
		require.ErrorContains(t, err, part)
	}
	put(t, l.dir, path, gz(content["mnist/t10k-images-idx3-ubyte.gz"]))
	_, err = l.load(t.Context(), MNIST, Train)
	require.ErrorIs(t, err, ErrBroken)
	require.ErrorContains(
		t,
		err,
		path+": the file is broken: found 10×6×5 images, expected 20×6×5; run \"go tool nasml data mnist\", which "+
			"sets it aside",
	)

	_, err = l.load(t.Context(), "minst", Train)
	require.EqualError(t, err, `found data set "minst", expected one of ["synthetic" "fashion-mnist" "mnist"]`)
	_, err = l.load(t.Context(), MNIST, "validation")
	require.EqualError(t, err, `found split "validation" of data set mnist, expected one of ["train" "test"]`)
}

func TestLoadWhereAFileCannotBeRead(t *testing.T) {
	l, _ := small(t)
	path := filepath.Join(l.dir, "mnist")
	require.NoError(t, os.MkdirAll(path, 0o755))
	require.NoError(
		t,
		os.Symlink("train-images-idx3-ubyte.gz", filepath.Join(path, "train-images-idx3-ubyte.gz")),
	) // a loop, which not even root can read
	_, err := l.load(t.Context(), MNIST, Train)
	require.ErrorContains(t, err, "make it a file that can be read, or set NASML_DATA to another folder")
	require.NotErrorIs(t, err, ErrMissing)
}

func TestLoadWherePublisherCountsDiffer(t *testing.T) {
	l, content := small(t)
	mnist := l.sets[MNIST]
	mnist[Train] = idxPart(mnist[Train].files[0], mnist[Test].files[1])
	for _, f := range mnist[Train].files {
		put(t, l.dir, f.Path, content[f.Path])
	}
	_, err := l.load(t.Context(), MNIST, Train)
	require.ErrorContains(t, err, "found 600 pixels and 10 labels, expected 6×5×1 = 30 pixels a label")
}

func TestDir(t *testing.T) {
	t.Setenv("NASML_DATA", "somewhere")
	wd, err := os.Getwd()
	require.NoError(t, err)
	dir, err := Dir()
	require.NoError(t, err)
	require.Equal(t, filepath.Join(wd, "somewhere"), dir)
	t.Setenv("NASML_DATA", "")
	t.Setenv("XDG_CACHE_HOME", "/cache")
	t.Setenv("HOME", "/home")
	dir, err = Dir()
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(dir, filepath.Join("nasml", "data")), dir)
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "")
	_, err = Dir()
	require.ErrorContains(t, err, "set NASML_DATA")
}

func TestStatus(t *testing.T) {
	l, content := small(t)
	put(t, l.dir, "mnist/train-images-idx3-ubyte.gz", gz(content["mnist/train-images-idx3-ubyte.gz"]))
	put(t, l.dir, "mnist/train-labels-idx1-ubyte", content["mnist/train-labels-idx1-ubyte.gz"])
	put(t, l.dir, "mnist/t10k-images-idx3-ubyte.gz", []byte("no"))
	all, err := l.status([]Name{MNIST})
	require.NoError(t, err)
	var states []State
	for _, s := range all {
		states = append(states, s.State)
		require.Equal(t, s.State == Present, s.Problem == nil)
	}
	require.Equal(t, []State{Present, Present, Broken, Missing}, states)
	require.Equal(t, filepath.Join(l.dir, "mnist", "train-labels-idx1-ubyte"), all[1].At)
	require.Equal(t, filepath.Join(l.dir, "mnist", "t10k-labels-idx1-ubyte.gz"), all[3].At)

	all, err = l.status(nil)
	require.NoError(t, err)
	require.Len(t, all, 8)
	all, err = l.status([]Name{Synthetic})
	require.NoError(t, err)
	require.Empty(t, all)
	_, err = l.status([]Name{"imagenet"})
	require.ErrorContains(t, err, `found data set "imagenet"`)
}

// lay writes all of MNIST into dir/folder.
func lay(t *testing.T, dir, folder string, content map[string][]byte, pack func([]byte) []byte, suffix string) {
	t.Helper()
	for path, plain := range content {
		if set, base, _ := strings.Cut(path, "/"); set == string(MNIST) {
			put(t, dir, folder+"/"+strings.TrimSuffix(base, ".gz")+suffix, pack(plain))
		}
	}
}

func asIs(b []byte) []byte { return b }

func TestImport(t *testing.T) {
	for name, c := range map[string]struct {
		folder, suffix string
		pack           func([]byte) []byte
		names          []Name
	}{
		"our layout":               {"mnist", ".gz", gz, nil},
		"our layout, named":        {"mnist", ".gz", gz, []Name{MNIST}},
		"torchvision's, unzipped":  {"MNIST/raw", "", asIs, nil},
		"the folder itself, named": {".", ".gz", gz, []Name{MNIST}},
	} {
		t.Run(name, func(t *testing.T) {
			l, content := small(t)
			from := t.TempDir()
			lay(t, from, c.folder, content, c.pack, c.suffix)
			require.NoError(t, l.takeOver(from, c.names))
			for _, split := range []Split{Train, Test} {
				_, err := l.load(t.Context(), MNIST, split)
				require.NoError(t, err)
			}
			leftovers, err := filepath.Glob(filepath.Join(l.dir, "mnist", ".*"))
			require.NoError(t, err)
			require.Empty(t, leftovers)
			require.NoError(t, l.takeOver(from, c.names), "a second time does nothing")
		})
	}
}

func TestImportSetsABrokenFileAside(t *testing.T) {
	l, content := small(t)
	from := t.TempDir()
	lay(t, from, "mnist", content, gz, ".gz")
	put(t, l.dir, "mnist/train-images-idx3-ubyte.gz", []byte("not this"))
	require.NoError(t, l.takeOver(from, []Name{MNIST}))
	kept, err := os.ReadFile(filepath.Join(l.dir, "mnist", "train-images-idx3-ubyte.gz.broken"))
	require.NoError(t, err)
	require.Equal(t, "not this", string(kept))
	_, err = l.load(t.Context(), MNIST, Train)
	require.NoError(t, err)
}

func TestImportErrors(t *testing.T) {
	l, content := small(t)
	from := t.TempDir()
	err := l.takeOver(from, nil)
	require.ErrorIs(t, err, ErrMissing)
	require.ErrorContains(t, err, "found none of the sets [fashion-mnist mnist]")
	require.ErrorIs(t, l.takeOver(from, []Name{MNIST}), ErrMissing)
	require.ErrorContains(t, l.takeOver(filepath.Join(from, "none"), nil), "found no folder to import from")
	require.ErrorContains(t, l.takeOver(from, []Name{"imagenet"}), `found data set "imagenet"`)

	lay(t, from, "mnist", content, gz, ".gz")
	at := filepath.Join(from, "mnist", "t10k-labels-idx1-ubyte.gz")
	require.NoError(t, os.Remove(at))
	err = l.takeOver(from, nil)
	require.ErrorContains(
		t,
		err,
		"t10k-labels-idx1-ubyte.gz: the file is missing: found none of "+at,
		"three of four files",
	)
	put(t, from, "mnist/t10k-labels-idx1-ubyte.gz", gz(content["fashion-mnist/t10k-labels-idx1-ubyte.gz"]))
	err = l.takeOver(from, nil)
	require.ErrorIs(t, err, ErrBroken)
	require.ErrorContains(t, err, at)
	entries, err := os.ReadDir(l.dir)
	require.NoError(t, err)
	require.Empty(t, entries, "nothing is copied of a set that is not whole")
}

func TestWhereNothingCanBeWritten(t *testing.T) {
	l, content := small(t)
	from := t.TempDir()
	lay(t, from, "mnist", content, gz, ".gz")
	put(t, l.dir, "file", []byte("not a folder"))
	l.dir = filepath.Join(l.dir, "file", "data")
	err := l.takeOver(from, []Name{MNIST})
	require.ErrorContains(t, err, "not a directory; make the folder writable, or set NASML_DATA to one that is")
	require.ErrorContains(t, l.fetch(t.Context(), MNIST, nil), "not a directory")
}

func TestExplainSaysWhatToDo(t *testing.T) {
	for errno, want := range map[syscall.Errno]string{
		syscall.ENOSPC: "no space left on device; free at least 10 MB there, or set NASML_DATA to a folder on " +
			"another disk",
		syscall.EROFS:  "read-only file system; make the folder writable, or set NASML_DATA to one that is",
		syscall.EACCES: "permission denied; make the folder writable",
	} {
		err := explain(&fs.PathError{Op: "write", Path: "/d/f", Err: errno}, File{Size: 9_912_422})
		require.ErrorIs(t, err, errno)
		require.ErrorContains(t, err, "write /d/f: "+want)
	}
	require.NoError(t, explain(nil, File{}))
}

func TestPublishersRegistry(t *testing.T) {
	require.Equal(t, []Name{CIFAR10, CIFAR100, FashionMNIST, ImageNet16, MNIST}, Names())
	seen := map[string]string{}
	once := func(sum, path string) {
		require.Empty(t, seen[sum], path)
		seen[sum] = path
	}
	for _, name := range Names() {
		files, err := publishers.files(name)
		require.NoError(t, err)
		for _, f := range files {
			for _, m := range f.Members {
				require.Regexp(t, "^[0-9a-f]{64}$", m.SHA256)
				once(m.SHA256, m.Path)
			}
			if f.Members == nil {
				require.Regexp(t, "^([0-9a-f]{64}|[0-9a-f]{32})$", f.SHA256+f.MD5)
				require.Equal(t, string(name), filepath.Dir(f.Path))
				once(f.SHA256+f.MD5, f.Path)
			}
			require.Equal(t, f.ByHand == "", len(f.URLs) > 0)
			for _, u := range f.URLs {
				require.True(t, strings.HasSuffix(u, "/"+filepath.Base(f.Path)), u)
			}
		}
	}
}
