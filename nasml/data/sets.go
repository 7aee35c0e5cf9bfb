package data

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"

	"github.com/nasml/lab/nasml/internal/images"
)

// Images is a set of images in memory.
type Images = images.Images

// Name names a set of images or texts.
type Name = images.Name

// Split names a part of a set.
type Split = images.Split

// Augments are how images become batches for training.
var Augments = images.Augments

// The data sets that there are.
const (
	MNIST        Name = "mnist"         // LeCun, Cortes, Burges: 60,000 + 10,000 handwritten digits, 28×28
	FashionMNIST Name = "fashion-mnist" // Xiao, Rasul, Vollgraf 2017: 60,000 + 10,000 pieces of clothing, 28×28
	Synthetic    Name = "synthetic"     // made by SyntheticImages: needs no file and no network

	CIFAR10  Name = "cifar-10"  // Krizhevsky 2009: 50,000 + 10,000 photographs of 10 kinds of things, 32×32×3
	CIFAR100 Name = "cifar-100" // the same of 100 kinds (the fine labels)
	// Chrabaszcz, Loshchilov, Hutter 2017: the first 120 classes of ImageNet at 16×16×3, 151,700 + 6,000
	ImageNet16 Name = "imagenet16-120"

	IMDb Name = "imdb" // Maas+ 2011: 25,000 + 25,000 reviews of films, positive or negative; LoadReviews has it
)

// The two parts of every set, and one that CIFAR10 has besides.
const (
	Train    Split = "train"
	Test     Split = "test"
	Test1000 Split = "test-1000" // the first 1,000 images of CIFAR10's Test: all that incomplete copies have of it
)

// File is one file of a publisher. The checksum is of the uncompressed bytes, so that a rezipped file is the same.
type File struct {
	Path    string   // below Dir, with slashes: "mnist/train-images-idx3-ubyte.gz"
	URLs    []string // where it can be had, tried in this order; none where a program cannot get it
	ByHand  string   // where it has no URL: how a person gets it
	SHA256  string   // of the uncompressed bytes, in hex
	MD5     string   // the same where nobody has published a SHA-256
	Zipped  string   // SHA-256 of the publisher's file as it is, which a download has to have; if empty, any
	Size    int64    // bytes of the publisher's file, zipped where he zips it; 0 where it is not known
	Shape   []int    // of an IDX file: N, or N×H×W
	Members []Member // of a tar archive, which has no sum of its own: what is read of it
	Reviews int      // of an archive of texts: so many in each of its four folders
	Classes int      // of pickled images: only those of the first so many classes are kept
}

type part struct {
	files    []File
	from, to int
	images   func(content [][]byte) (Images, error) // without Name and Split
	reviews  bool                                   // texts, and no images
}

// cut returns the split's part of a file. It is no error if an incomplete file has all of it.
func (p part) cut(body []byte, err error) ([]byte, error) {
	if errors.Is(err, ErrIncomplete) && p.within(len(body)) {
		err = nil
	}
	if err != nil || p.to == 0 {
		return body, err
	}
	return body[p.from:p.to], nil
}

func (p part) within(n int) bool { return p.to > 0 && p.to <= n }

type set map[Split]part

// splits returns the splits that the first n bytes contain.
func (s set) splits(n int) []Split {
	var all []Split
	for _, split := range []Split{Train, Test, Test1000} {
		if p, ok := s[split]; ok && (p.to == 0 || p.within(n)) {
			all = append(all, split)
		}
	}
	return all
}

type registry map[Name]set

// publishers is the registry of the published files.
//
// MNIST: the sums were computed from real files. Three of these were, zipped too, the publisher's byte for byte; all
// are what other projects pin for the uncompressed files. The sizes are those that TensorFlow Datasets pins
// (url_checksums/mnist.txt).
//
// Fashion-MNIST: sizes from url_checksums/fashion_mnist.txt of the same project. The sums of the uncompressed files
// come from several independent public projects, which agree and of which one derived them from archives that had the
// publisher's MD5; those projects' sums for MNIST are the ones computed here. They were not checked against files of
// our own.
//
// The sets of colour images are listed where their formats are read: cifar10, cifar100, imagenet16.
var publishers = registry{
	MNIST: idxSet("mnist", [4]string{
		"ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
		"65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
		"0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
		"ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
	}, [4]int64{9912422, 28881, 1648877, 4542},
		"https://ossci-datasets.s3.amazonaws.com/mnist/",
		"https://storage.googleapis.com/cvdf-datasets/mnist/"),
	FashionMNIST: idxSet("fashion-mnist", [4]string{
		"c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
		"bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
		"5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
		"0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
	}, [4]int64{26421880, 29515, 4422102, 5148},
		"https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
		"http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"),
	CIFAR10:    cifar10,
	CIFAR100:   cifar100,
	ImageNet16: imagenet16,
	IMDb:       imdb,
}

// idxSet describes a set of four files like MNIST's. Sums and sizes are of train images, train labels, test images,
// test labels.
func idxSet(folder string, sums [4]string, sizes [4]int64, mirrors ...string) set {
	file := func(i int, base string, shape ...int) File {
		f := File{Path: path.Join(folder, base), SHA256: sums[i], Size: sizes[i], Shape: shape}
		for _, m := range mirrors {
			f.URLs = append(f.URLs, m+base)
		}
		return f
	}
	return set{
		Train: idxPart(file(0, "train-images-idx3-ubyte.gz", 60000, 28, 28),
			file(1, "train-labels-idx1-ubyte.gz", 60000)),
		Test: idxPart(file(2, "t10k-images-idx3-ubyte.gz", 10000, 28, 28), file(3, "t10k-labels-idx1-ubyte.gz", 10000)),
	}
}

func idxPart(images, labels File) part {
	return part{files: []File{images, labels}, images: func(content [][]byte) (Images, error) {
		return Images{Height: images.Shape[1], Width: images.Shape[2], Channels: 1, Pixels: content[0],
			Labels: content[1]}, nil
	}}
}

// Names returns the sets of images that have files, sorted.
func Names() []Name {
	return slices.DeleteFunc(publishers.names(), func(n Name) bool { return publishers[n][Train].reviews })
}

// Known returns every set of images that a parameter may name: those of Names and FromArrays, and Synthetic.
func Known() []Name { return append(append(Names(), ownNames()...), Synthetic) }

func (r registry) names() []Name { return slices.Sorted(maps.Keys(r)) }

// files returns all files of a set, train before test; none for Synthetic.
func (r registry) files(name Name) ([]File, error) {
	if name == Synthetic {
		return nil, nil
	}
	set, ok := r[name]
	if !ok {
		return nil, r.unknown(name)
	}
	var all []File
	for _, split := range set.splits(math.MaxInt) {
		for _, f := range set[split].files {
			if !slices.ContainsFunc(all, func(g File) bool { return g.Path == f.Path }) {
				all = append(all, f)
			}
		}
	}
	return all, nil
}

// part finds a split of a set.
func (r registry) part(name Name, split Split) (part, error) {
	set, ok := r[name]
	if !ok {
		return part{}, r.unknown(name)
	}
	p, ok := set[split]
	if !ok {
		return p, unknownSplit(name, split, set.splits(math.MaxInt)...)
	}
	return p, nil
}

func (r registry) unknown(name Name) error {
	return fmt.Errorf("found data set %q, expected one of %q", name, append([]Name{Synthetic}, r.names()...))
}
