package data

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Name names a data set. It is a string, so that a parameter struct that has
// one is plain JSON.
type Name string

// The data sets that Load knows.
const (
	MNIST        Name = "mnist"         // LeCun, Cortes, Burges: 60,000 + 10,000 handwritten digits, 28×28
	FashionMNIST Name = "fashion-mnist" // Xiao, Rasul, Vollgraf 2017: 60,000 + 10,000 pieces of clothing, 28×28
	Synthetic    Name = "synthetic"     // made by SyntheticImages: needs no file and no network
)

// Split names a part of a data set as its publisher divides it.
type Split string

// The two parts of every set.
const (
	Train Split = "train"
	Test  Split = "test"
)

// File is one file of a publisher, known by what is in it: the checksum is
// that of the uncompressed bytes, so that a file zipped anew is the same file.
type File struct {
	Path   string   // below Dir, with slashes: "mnist/train-images-idx3-ubyte.gz"
	URLs   []string // where it can be had, tried in this order
	SHA256 string   // of the uncompressed bytes, in hex
	Size   int64    // bytes of the publisher's zipped file
	Shape  []int    // N, or N×H×W
}

// pair is the two files of a split.
type pair struct{ Images, Labels File }

// registry lists the files of every set, by split.
type registry map[Name]map[Split]pair

// publishers is the registry of the published files.
//
// MNIST: the sums were computed from real files. Three of these were, zipped
// too, the publisher's byte for byte; all are what other projects pin for the
// uncompressed files. The sizes are those that TensorFlow Datasets pins
// (url_checksums/mnist.txt).
//
// Fashion-MNIST: sizes from url_checksums/fashion_mnist.txt of the same
// project. The sums of the uncompressed files come from several independent
// public projects, which agree and of which one derived them from archives
// that had the publisher's MD5; those projects' sums for MNIST are the ones
// computed here. They were not checked against files of our own.
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
}

// idxSet lays out a set that has MNIST's four files. Sums and sizes come in
// the order train images, train labels, test images, test labels.
func idxSet(folder string, sums [4]string, sizes [4]int64, mirrors ...string) map[Split]pair {
	file := func(i int, base string, shape ...int) File {
		f := File{Path: path.Join(folder, base), SHA256: sums[i], Size: sizes[i], Shape: shape}
		for _, m := range mirrors {
			f.URLs = append(f.URLs, m+base)
		}
		return f
	}
	return map[Split]pair{
		Train: {file(0, "train-images-idx3-ubyte.gz", 60000, 28, 28), file(1, "train-labels-idx1-ubyte.gz", 60000)},
		Test:  {file(2, "t10k-images-idx3-ubyte.gz", 10000, 28, 28), file(3, "t10k-labels-idx1-ubyte.gz", 10000)},
	}
}

// Names returns the sets that have files, in alphabetical order.
func Names() []Name { return publishers.names() }

func (r registry) names() []Name {
	var names []Name
	for n := range r {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// files returns all files of a set, train before test: none for Synthetic, an
// error for a set that is not known.
func (r registry) files(name Name) ([]File, error) {
	if name == Synthetic {
		return nil, nil
	}
	set, ok := r[name]
	if !ok {
		return nil, r.unknown(name)
	}
	train, test := set[Train], set[Test]
	return []File{train.Images, train.Labels, test.Images, test.Labels}, nil
}

func (r registry) unknown(name Name) error {
	known := []string{string(Synthetic)}
	for _, n := range r.names() {
		known = append(known, string(n))
	}
	return fmt.Errorf("found data set %q, expected one of %s", name, strings.Join(known, ", "))
}
