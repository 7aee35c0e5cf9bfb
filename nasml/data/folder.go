package data

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"image"
	_ "image/jpeg" // ILSVRC's files
	_ "image/png"  // one of them is a PNG by another name
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/nasml/lab/nasml/internal/images"
)

// PhotoFolder is a folder of photographs with one folder per class, like ILSVRC's training archive:
// n01440764/n01440764_10026.JPEG. They are read when needed.
type PhotoFolder struct {
	Dir         string
	ClassNames  []string // of the folders, in order: label i is the i-th
	Fingerprint string   // SHA-256 of all names and sizes; what is in the files is not read for it
	files       []photo
}

type photo struct {
	path  string // below Dir
	label int32
}

var photoEndings = []string{".jpeg", ".jpg", ".png"}

// OpenPhotoFolder lists the photographs of a folder. A folder without classes, or a class without photographs, is an
// error.
func OpenPhotoFolder(dir string) (*PhotoFolder, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("photographs in %s: %w: expected a folder with one folder a class, as ILSVRC's "+
			"training archive has them", dir, pathless(err))
	}
	f, sum := &PhotoFolder{Dir: dir}, sha256.New()
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		label := int32(len(f.ClassNames))
		f.ClassNames = append(f.ClassNames, entry.Name())
		before := len(f.files)
		err := f.list(entry.Name(), func(path string, size int64) {
			f.files = append(f.files, photo{path, label})
			fmt.Fprintf(sum, "%s %d\n", path, size)
		})
		if err != nil {
			return nil, fmt.Errorf("photographs in %s: class %s: %w", dir, entry.Name(), pathless(err))
		}
		if len(f.files) == before {
			return nil, fmt.Errorf("photographs in %s: class %s has no file that ends in %s: unpack its archive, or "+
				"remove the folder", dir, entry.Name(), strings.Join(photoEndings, ", "))
		}
	}
	if len(f.ClassNames) == 0 {
		return nil, fmt.Errorf("photographs in %s: found no folders, expected one a class, as ILSVRC's training "+
			"archive has them", dir)
	}
	f.Fingerprint = fmt.Sprintf("%x", sum.Sum(nil))
	return f, nil
}

func (f *PhotoFolder) list(class string, add func(path string, size int64)) error {
	entries, err := os.ReadDir(filepath.Join(f.Dir, class))
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.IsDir() || !slices.Contains(photoEndings, strings.ToLower(filepath.Ext(entry.Name()))) {
			continue
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		add(filepath.ToSlash(filepath.Join(class, entry.Name())), info.Size())
	}
	return nil
}

// pathless strips the path, which the message has already.
func pathless(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	return err
}

// First are the first n photographs of each class, all where n is 0.
func (f *PhotoFolder) First(n int) *PhotoFolder {
	if n <= 0 {
		return f
	}
	part, seen := *f, map[int32]int{}
	part.files = nil
	for _, p := range f.files {
		if seen[p.label]++; seen[p.label] <= n {
			part.files = append(part.files, p)
		}
	}
	part.Fingerprint = fmt.Sprintf("%s, first %d of a class", f.Fingerprint, n)
	return &part
}

// Len is the number of photographs.
func (f *PhotoFolder) Len() int { return len(f.files) }

func (f *PhotoFolder) read(i int) (image.Image, error) {
	path := filepath.Join(f.Dir, filepath.FromSlash(f.files[i].path))
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("photograph %s: %w: make it readable, or copy it from the publisher's archive again",
			path, pathless(err))
	}
	defer file.Close()
	photo, _, err := image.Decode(file)
	if err == nil && photo.Bounds().Empty() {
		err = errors.New("it has no pixels")
	}
	if err != nil {
		return nil, fmt.Errorf("photograph %s is broken: %w: copy it from the publisher's archive again", path, err)
	}
	return photo, nil
}

// Photographs are a folder's as they are trained on, or tested.
type Photographs struct {
	*PhotoFolder
	Side  int         // pixels of what becomes of them
	Crop  images.Crop // how
	Train bool        // random parts if there is a generator; else the middle
}

// Classes is the number of classes.
func (p Photographs) Classes() int { return len(p.ClassNames) }

// Batch writes photographs to pixels [len(indices), Side, Side, 3], and their labels, on all processors. If Train, it
// draws one number for each from rng, unless that is nil. It returns an error if a file is broken.
func (p Photographs) Batch(pixels []float32, labels []int32, indices []int, rng *rand.Rand) error {
	size := p.Side * p.Side * 3
	if len(pixels) != len(indices)*size || len(labels) != len(indices) {
		return fmt.Errorf("found room for %d numbers and %d labels, expected %d×%d×%d×3 and %d", len(pixels),
			len(labels), len(indices), p.Side, p.Side, len(indices))
	}
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	errs := make([]error, len(indices)) // the first in order, not in time
	for k, i := range indices {
		var own *rand.Rand
		if p.Train && rng != nil {
			own = rand.New(rand.NewPCG(rng.Uint64(), 0))
		}
		group.Go(func() error {
			errs[k] = p.write(pixels[k*size:(k+1)*size], i, own)
			return nil
		})
		labels[k] = p.files[i].label
	}
	return cmp.Or(group.Wait(), cmp.Or(errs...))
}

func (p Photographs) write(out []float32, i int, rng *rand.Rand) error {
	photo, err := p.read(i)
	if err != nil {
		return err
	}
	if rng != nil {
		p.Crop.Train(out, photo, p.Side, rng)
	} else {
		p.Crop.Test(out, photo, p.Side)
	}
	return nil
}
