package runs

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/nasml/lab/internal/files"
)

// tempAge is how long a file that is not yet whole is left alone. GC removes
// those that a killed process left: nothing is written that long without a pause.
const tempAge = time.Hour

// folder is a store in a folder of a file system. Any number of processes may use it at the same time.
type folder string

func openFolder(dir string) (Medium, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("run store: %w", err)
	}
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		return nil, fmt.Errorf("run store %s is a file, expected a folder: move it away or set NASML_STORE to a folder",
			dir)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, explain(err, "open", dir)
	}
	return folder(dir), nil
}

// Where is the path of an object.
func (d folder) Where(name string) string { return filepath.Join(string(d), filepath.FromSlash(name)) }

type file struct {
	*os.File
	size int64
}

func (f file) Size() int64 { return f.size }

// Open opens the file of an object. It does not wait for who might write into a pipe.
// Whatever else than a file has the object's name is an error that is errNoFile.
func (d folder) Open(name string) (Object, error) {
	path := d.Where(name)
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ENXIO) { // a socket
		return nil, fmt.Errorf("%s: %w", path, errNoFile)
	}
	if err != nil {
		return nil, explain(err, "read", path)
	}
	info, err := f.Stat()
	if err == nil && info.Mode().IsRegular() {
		return file{f, info.Size()}, nil
	}
	_ = f.Close()
	if err != nil {
		return nil, explain(err, "read", path)
	}
	return nil, fmt.Errorf("%s: %w", path, errNoFile)
}

// errNoFile says that something else is in the place of an object, such as a folder or a pipe.
var errNoFile = errors.New("expected a file, found a folder or something else that is none")

// Put writes files under temporary names in their folders, syncs them, and gives them their
// names, all at once but for a kill in the microseconds between two of them. Locks keep two
// processes from writing one record, so that a rename, which replaces, does for keep too.
func (d folder) Put(_ bool, objects ...Draft) (err error) {
	var staged []string
	at := "" // what is being written
	defer func() {
		for _, temp := range staged {
			_ = os.Remove(temp) // what has its name is not there any more; GC takes what cannot be removed now
		}
		err = explain(err, "write", at)
	}()
	for _, o := range objects {
		at = d.Where(o.Name)
		temp, err := stage(filepath.Dir(at), o.Write)
		if err != nil {
			return err
		}
		staged = append(staged, temp)
	}
	for i, o := range objects {
		at = d.Where(o.Name)
		if err := os.Rename(staged[i], at); err != nil {
			return err
		}
	}
	for _, o := range objects {
		at = d.Where(o.Name)
		if err := syncDir(filepath.Dir(at)); err != nil {
			return err
		}
	}
	return nil
}

func stage(dir string, write func(io.Writer) error) (string, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", err
	}
	return files.Stage(dir, 0o644, func(f *os.File) error { // for a group that shares the store
		return errors.Join(write(f), f.Sync())
	})
}

// Remove removes a file, and a folder that is in the place of one.
func (d folder) Remove(name string) error {
	return explain(os.RemoveAll(d.Where(name)), "remove", d.Where(name))
}

// Move renames a file. The folder that it goes to has to be there.
func (d folder) Move(from, to string) error {
	return explain(os.Rename(d.Where(from), d.Where(to)), "set aside", d.Where(from))
}

// Walk visits every file below a folder, and as one a folder that has the name of an
// object: it is an error of [folder.Open].
func (d folder) Walk(name string, visit func(Info) error) error {
	root := d.Where(name)
	switch info, err := os.Stat(root); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return explain(err, "read", root)
	case !info.IsDir():
		return explain(syscall.ENOTDIR, "read", root)
	}
	// The separator makes it follow a link.
	return filepath.WalkDir(root+string(filepath.Separator), func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && entry.IsDir() && filepath.Ext(path) == "" {
			return nil
		}
		if err != nil {
			return explain(err, "read", path)
		}
		return d.visit(path, entry, visit)
	})
}

func (d folder) visit(path string, entry fs.DirEntry, visit func(Info) error) error {
	info, err := entry.Info()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return explain(err, "read", path)
	}
	name, err := filepath.Rel(string(d), path)
	if err == nil {
		err = visit(Info{filepath.ToSlash(name), info.Size(), info.ModTime()})
	}
	if err == nil && entry.IsDir() {
		return fs.SkipDir
	}
	return err
}

// Lock takes the advisory lock of a file.
func (d folder) Lock(name string) (Lock, error) {
	lock, err := tryLock(d.Where(name))
	if lock == nil {
		return nil, err
	}
	return fileLock{lock}, nil
}

// Reclaim removes the file of a lock that no process holds, while it is held here.
func (d folder) Reclaim(name string, dry bool) (bool, error) {
	lock, err := tryLock(d.Where(name))
	if lock == nil {
		return false, err
	}
	if dry {
		lock.Unlock()
	} else {
		lock.Remove()
	}
	return true, nil
}

// fileLock is a lock of the kernel: it is held as long as the process lives.
type fileLock struct{ file *files.Lock }

func (f fileLock) Held() bool { return true }

func (f fileLock) Unlock() { f.file.Remove() }

// syncDir makes the names in a folder survive a power cut.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// explain adds to an error of the file system what to do about it, and nothing to the others.
func explain(err error, verb, path string) error {
	advice := ""
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EFBIG):
		advice = ": the disk or the quota is full; free some space and run again (finished trials are kept), or set " +
			"NASML_STORE to a folder elsewhere"
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		advice = "; make the folder writable or set NASML_STORE to one that is"
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EEXIST):
		advice = "; a file is where the store needs a folder: move it away or set NASML_STORE to another folder"
	case errors.Is(err, syscall.ENOLCK), errors.Is(err, syscall.EOPNOTSUPP), errors.Is(err, syscall.ENOSYS):
		advice = "; this file system has no locks (some network file systems): set NASML_STORE to a folder on a " +
			"local disk"
	case errors.Is(err, syscall.EMFILE):
		advice = "; too many trials at once: raise the limit (ulimit -n) or set Options.MaxBatch"
	}
	return fmt.Errorf("run store cannot %s %s: %w%s", verb, path, err, advice)
}

// tryLock takes the advisory lock of a file. It returns nil where another holder has it. Who has it removes its file
// and frees it by Remove; where the file stays, GC takes it away.
func tryLock(path string) (*files.Lock, error) {
	err := os.MkdirAll(filepath.Dir(path), 0o777)
	if err != nil {
		return nil, explain(err, "lock", path)
	}
	lock, err := files.TryLock(path, 0o666)
	return lock, explain(err, "lock", path)
}

// ErrTaken says that an object is there that must not be replaced.
var ErrTaken = errors.New("already in the run store")

// Medium is where a store keeps its objects: a folder, or a bucket that many machines share (package bucket). Names are
// paths with slashes below one of records, checkpoints, locks, broken. A Medium is used by several goroutines at the
// same time.
type Medium interface {
	// Where is the place of an object for messages; of "", the store's own.
	Where(name string) string

	// Open opens an object. The error is fs.ErrNotExist if there is none.
	Open(name string) (Object, error)

	// Put writes objects, each whole or not at all, and leaves nothing else behind. With keep
	// it replaces nothing and returns ErrTaken for what is there.
	Put(keep bool, objects ...Draft) error

	// Remove removes an object, Move renames one. That it is gone is no error of Remove.
	Remove(name string) error
	Move(from, to string) error

	// Walk visits every object below a folder in no particular order. What
	// vanishes on the way was finished or removed by another process.
	Walk(folder string, visit func(Info) error) error

	// Lock takes a lock, which ends with this process at the latest. It returns nil where another process has it.
	Lock(name string) (Lock, error)
	// Reclaim removes a lock that a dead process left, and reports whether it did;
	// with dry it only reports whether it would.
	Reclaim(name string, dry bool) (bool, error)
}

// Object is an open object.
type Object interface {
	io.Reader
	io.ReaderAt
	io.Closer
	Size() int64
}

// Draft is what will be an object.
type Draft struct {
	Name  string
	Write func(io.Writer) error
}

// Info is an object as Walk finds it.
type Info struct {
	Name    string
	Size    int64
	ModTime time.Time
}

// Lock is a lock that is held.
type Lock interface {
	// Held reports whether it still is. One that a machine holds which could not
	// reach the store for long has gone to another.
	Held() bool
	Unlock()
}

// media opens stores that are not folders, by the scheme of their address.
var media = map[string]func(address string) (Medium, error){}

// RegisterMedium makes [Open] take addresses of a scheme, such as "s3". It
// panics if the scheme is taken, and is to be called from an init function.
func RegisterMedium(scheme string, open func(address string) (Medium, error)) {
	if _, taken := media[scheme]; taken {
		panic(fmt.Sprintf("runs: the scheme %q is registered twice", scheme))
	}
	media[scheme] = open
}

// KnowsMedium reports whether [Open] takes addresses of a scheme.
func KnowsMedium(scheme string) bool { return media[scheme] != nil }

func openMedium(address string) (Medium, error) {
	scheme, _, found := strings.Cut(address, "://")
	if !found {
		return openFolder(address)
	}
	open, ok := media[scheme]
	if !ok {
		known := cmp.Or(strings.Join(slices.Sorted(maps.Keys(media)), ", "), "none")
		return nil, fmt.Errorf(
			"run store %s: this program knows no stores at %s://, only %s; import _ %q in a notebook, or take a folder",
			redact(address), scheme, known, thisModule+"/nasml/runs/bucket")
	}
	m, err := open(address)
	if err != nil {
		return nil, fmt.Errorf("run store %s: %w", redact(address), err)
	}
	return m, nil
}

// redact leaves out the query of an address, which may hold a secret.
func redact(address string) string {
	address, _, _ = strings.Cut(address, "?")
	return address
}
