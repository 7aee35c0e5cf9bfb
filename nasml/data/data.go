// Package data has the data sets that the papers use: the publishers' own files, checked against pinned sums and
// downloaded where they are missing (Load, LoadReviews, Fetch, Import, Status), and generators of images and reviews
// (SyntheticImages, SyntheticReviews).
//
// The files lie in Dir as their publisher names them, zipped or not:
//
//	$NASML_DATA/mnist/train-images-idx3-ubyte.gz
//	$NASML_DATA/fashion-mnist/train-images-idx3-ubyte.gz
//	$NASML_DATA/cifar-10-binary.tar.gz
//	$NASML_DATA/cifar-100-binary.tar.gz
//	$NASML_DATA/imagenet16-120/train_data_batch_1
//	$NASML_DATA/aclImdb_v1.tar.gz
//
// Colour images become batches for training by Augments: cropped, flipped and normalised as DARTS or AutoDL-Projects do
// it. How a search divides Train is not part of the data: package bilevel does it in order, as DARTS, or at random. The
// fixed halves of AutoDL-Projects (cifar-split.txt and, for the two other sets, halves of Test) are not here.
//
// What is loaded carries a fingerprint of its content, which becomes part of a trial's key. Generated data says so in
// Images.Synthetic and never takes the place of real data by itself.
package data

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/nasml/lab/nasml/internal/images"
)

// What can be wrong with a file; errors.Is tells them apart.
var (
	ErrMissing    = errors.New("the file is missing")
	ErrBroken     = errors.New("the file is broken")
	ErrIncomplete = errors.New("the file is incomplete") // what is there is right
)

// Dir returns the absolute path of the data folder: $NASML_DATA, else nasml/data in the user's cache folder. It does
// not create it.
func Dir() (string, error) {
	if dir := os.Getenv("NASML_DATA"); dir != "" {
		return filepath.Abs(dir)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no folder for data: %w; set NASML_DATA to one", err)
	}
	return filepath.Join(cache, "nasml", "data"), nil
}

func dirOr(dir string) (string, error) {
	if dir != "" {
		return dir, nil
	}
	return Dir()
}

// Load returns one part of a data set. Files that are missing are downloaded first; Synthetic never downloads anything.
//
// An error names the file, what was found, what was expected and what to do: it wraps ErrMissing where a file is
// missing and cannot be downloaded, ErrBroken where its content is wrong, ErrIncomplete where it lacks a part of this
// split, and ctx's error where ctx ended. A broken or incomplete file is reported, not replaced.
func Load(ctx context.Context, name Name, split Split) (*Images, error) {
	if name == Synthetic {
		return standIn(split)
	}
	if im, known, err := ownSet(name, split); known {
		return im, err
	}
	l, err := open()
	if err != nil {
		return nil, err
	}
	return l.load(ctx, name, split)
}

// library is a folder of data sets with the publishers it is filled from.
type library struct {
	dir    string
	sets   registry
	client *http.Client
	pause  time.Duration // before the second try; doubles from try to try
	stall  time.Duration // how long a server may be silent
}

func open() (*library, error) {
	dir, err := Dir()
	if err != nil {
		return nil, err
	}
	return &library{dir, publishers, http.DefaultClient, time.Second / 2, 30 * time.Second}, nil
}

func (l *library) load(ctx context.Context, name Name, split Split) (*Images, error) {
	p, err := l.sets.part(name, split)
	if err != nil {
		return nil, err
	}
	if p.reviews {
		return nil, fmt.Errorf("found data set %s, which has texts, expected one of %q for images", name, Names())
	}
	content := make([][]byte, len(p.files))
	for i, f := range p.files {
		if content[i], err = p.cut(l.obtain(ctx, name, f)); err != nil {
			return nil, err
		}
	}
	im, err := p.images(content)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", name, split, err)
	}
	im.Name, im.Split = name, split
	return images.New(im)
}

func unknownSplit(name Name, split Split, known ...Split) error {
	return fmt.Errorf("found split %q of data set %s, expected one of %q", split, name, known)
}

// obtain returns a file's content, downloaded if missing. Of an incomplete file it returns what is there, with the
// error.
func (l *library) obtain(ctx context.Context, name Name, f File) ([]byte, error) {
	body, _, err := l.find(name, f)
	if !errors.Is(err, ErrMissing) {
		return body, err
	}
	if err := l.download(ctx, name, f, func(int64) {}); err != nil {
		return nil, err
	}
	body, _, err = l.find(name, f)
	return body, err
}

func (l *library) path(f File) string { return filepath.Join(l.dir, filepath.FromSlash(f.Path)) }

func places(path string) []string {
	if plain := unzipped(path); plain != path {
		return []string{path, plain}
	}
	return []string{path}
}

// find returns a file's content and path: zipped, or else unzipped beside that. Of an incomplete file it returns what
// is there, with an error.
func (l *library) find(name Name, f File) (body []byte, at string, err error) {
	err = ErrMissing
	for _, p := range places(l.path(f)) {
		b, e := f.read(p)
		if e == nil {
			return b, p, nil
		}
		if errors.Is(err, ErrMissing) && !errors.Is(e, fs.ErrNotExist) || errors.Is(e, ErrIncomplete) {
			body, at, err = b, p, e
		}
	}
	todo := fmt.Sprintf(
		"run \"go tool nasml data %s\", which sets it aside and downloads it anew, or put the publisher's file in "+
			"its place", name)
	if f.ByHand != "" {
		todo = f.ByHand
	}
	switch {
	case errors.Is(err, ErrMissing):
		return nil, l.path(f), fmt.Errorf("%s: %w; %s", l.path(f), err, f.howToGet(name))
	case errors.Is(err, ErrIncomplete):
		return body, at, fmt.Errorf("%s: %w, which is enough for the splits %q; for all, %s", at, err,
			l.sets[name].splits(len(body)), todo)
	case errors.Is(err, ErrBroken):
		return nil, at, fmt.Errorf("%s: %w; %s", at, err, todo)
	default: // the operating system's own words, with the path
		return nil, at, fmt.Errorf("%w; make it a file that can be read, or set NASML_DATA to another folder", err)
	}
}

func (f File) howToGet(name Name) string {
	if f.ByHand != "" {
		return fmt.Sprintf("%s, and put it there, %s", f.ByHand, fromFolder(name))
	}
	return fmt.Sprintf("run \"go tool nasml data %s\", or get it from %s and put it there, %s", name,
		strings.Join(f.URLs, " or "), fromFolder(name))
}

func fromFolder(name Name) string {
	return fmt.Sprintf("or run \"go tool nasml data %s --from DIR\" with a folder that has it", name)
}

// State is what Status finds of a file.
type State string

// The states of a file.
const (
	Present    State = "present" // there, and its checksum is right
	Missing    State = "missing"
	Broken     State = "broken"     // there, and wrong or unreadable: FileStatus.Problem says how
	Incomplete State = "incomplete" // right, but not all of it: FileStatus.Problem says what it lacks
)

// FileStatus is one file of a data set as it is in Dir.
type FileStatus struct {
	Name    Name
	File    File
	At      string // where it is, or where it belongs
	State   State
	Problem error // nil where it is present; says what to do
}

// Status checks every file of the named sets, or of all. It returns an error only for an unknown set or folder; a
// file's problem is in its FileStatus.
func Status(names ...Name) ([]FileStatus, error) {
	l, err := open()
	if err != nil {
		return nil, err
	}
	return l.status(names)
}

// Have reports whether every file of a set exists, whatever is in it.
func Have(name Name) bool {
	l, err := open()
	if err != nil {
		return false
	}
	needed, err := l.sets.files(name)
	return err == nil && !slices.ContainsFunc(needed, func(f File) bool { return l.place(f) == "" })
}

func (l *library) place(f File) string {
	for _, path := range places(l.path(f)) {
		if exists(path) {
			return path
		}
	}
	return ""
}

func (l *library) status(names []Name) ([]FileStatus, error) {
	if len(names) == 0 {
		names = l.sets.names()
	}
	var all []FileStatus
	for _, name := range names {
		files, err := l.sets.files(name)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			s := FileStatus{Name: name, File: f, State: Present}
			if _, s.At, s.Problem = l.find(name, f); s.Problem != nil {
				s.State = Broken
			}
			switch {
			case errors.Is(s.Problem, ErrMissing):
				s.State = Missing
			case errors.Is(s.Problem, ErrIncomplete):
				s.State = Incomplete
			}
			all = append(all, s)
		}
	}
	return all, nil
}

// Import takes over the files of the named sets, of all sets where none is named, from a local folder: each is checked,
// copied into Dir and checked there again. Files that Dir has already stay as they are. An incomplete file is taken
// over where nothing better is there or comes.
//
// It looks in from as in Dir, in the folders that other projects make (MNIST/raw, FashionMNIST/raw, ImageNet16) and,
// where exactly one set is named, in from itself, for zipped and unzipped files. A named set of which a file is missing
// or broken is an error; so is any set of which only some files are there, and a folder that has no set at all.
func Import(from string, names ...Name) error {
	l, err := open()
	if err != nil {
		return err
	}
	return l.takeOver(from, names)
}

func (l *library) takeOver(from string, names []Name) error {
	if _, err := os.Stat(from); err != nil {
		return fmt.Errorf("found no folder to import from: %w", err)
	}
	all := names
	if len(names) == 0 {
		all = l.sets.names()
	}
	taken := 0
	for _, name := range all {
		files, err := l.sets.files(name)
		if err != nil {
			return err
		}
		folders := others[name]
		if len(names) == 1 {
			folders = append(folders, ".")
		}
		sources, err := locate(from, folders, files)
		if len(names) == 0 && len(sources) == 0 && errors.Is(err, ErrMissing) {
			continue
		}
		if err != nil {
			return err
		}
		if err := l.copyMissing(name, files, sources); err != nil {
			return err
		}
		taken++
	}
	if taken == 0 {
		return fmt.Errorf(
			"%s: %w: found none of the sets %v, expected a folder such as %s with the publisher's files in it, or "+
				"the name of the set whose files lie here", from, ErrMissing, all, filepath.Join(from, string(all[0])))
	}
	return nil
}

func (l *library) copyMissing(name Name, files []File, sources []string) error {
	for i, f := range files {
		_, _, ours := l.find(name, f)
		_, theirs := f.read(sources[i])
		if ours == nil || errors.Is(ours, ErrIncomplete) && theirs != nil {
			continue
		}
		to := l.path(f)
		if filepath.Ext(sources[i]) != ".gz" {
			to = unzipped(to)
		}
		if err := f.copy(sources[i], to); err != nil {
			return err
		}
	}
	return nil
}

func unzipped(path string) string { return strings.TrimSuffix(path, ".gz") }

// others are the folders that torchvision and AutoDL-Projects keep the files in.
var others = map[Name][]string{MNIST: {"MNIST/raw"}, FashionMNIST: {"FashionMNIST/raw"}, ImageNet16: {"ImageNet16"}}

// locate returns the paths of good copies below from, as below Dir or in one of the folders, and an error for the first
// file without one.
func locate(from string, folders []string, files []File) (sources []string, first error) {
	for _, f := range files {
		at, err := f.lookIn(from, folders)
		switch {
		case err == nil:
			sources = append(sources, at)
		case first == nil || errors.Is(first, ErrMissing) && errors.Is(err, ErrBroken):
			first = err
		}
	}
	return sources, first
}

// lookIn returns the path of a good copy, else of an incomplete one.
func (f File) lookIn(from string, folders []string) (string, error) {
	base := path.Base(f.Path)
	var problem error
	var looked []string
	incomplete := ""
	for _, folder := range append([]string{path.Dir(f.Path)}, folders...) {
		for _, at := range places(filepath.Join(from, filepath.FromSlash(folder), base)) {
			_, err := f.read(at)
			if err == nil {
				return at, nil
			}
			if errors.Is(err, ErrIncomplete) {
				incomplete = at
			}
			looked = append(looked, at)
			if problem == nil && !errors.Is(err, fs.ErrNotExist) {
				problem = fmt.Errorf("%s: %w; put the publisher's file in its place", at, err)
			}
		}
	}
	switch {
	case incomplete != "":
		return incomplete, nil
	case problem != nil:
		return "", problem
	}
	return "", fmt.Errorf("%s: %w: found none of %s", base, ErrMissing, strings.Join(looked, ", "))
}

func (f File) copy(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return explain(err, f)
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.CreateTemp(filepath.Dir(to), ".import-*")
	if err != nil {
		return explain(err, f)
	}
	defer os.Remove(out.Name()) // does nothing after install has renamed it
	defer out.Close()
	if _, err := io.Copy(out, in); err != nil {
		return explain(err, f)
	}
	if _, err := f.read(out.Name()); err != nil && !errors.Is(err, ErrIncomplete) {
		return fmt.Errorf("the copy of %s: %w; run the command again", from, err)
	}
	return explain(install(out, to), f)
}

// install moves a finished file to its name. A file that had the name becomes NAME.broken.
func install(file *os.File, to string) error {
	if err := file.Chmod(0o644); err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return err
	}
	if err := os.Rename(to, to+".broken"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(file.Name(), to)
}

func explain(err error, f File) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w; free at least %d MB there, or set NASML_DATA to a folder on another disk", err,
			f.Size/1_000_000+1)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS), errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("%w; make the folder writable, or set NASML_DATA to one that is", err)
	}
	return err
}
