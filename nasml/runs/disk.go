package runs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// tempPrefix begins the name of a file that is not yet whole. GC removes those
// that a killed process left: nothing is written for tempAge without a pause.
const (
	tempPrefix = ".tmp-"
	tempAge    = time.Hour
)

func isTemp(path string) bool { return strings.HasPrefix(filepath.Base(path), tempPrefix) }

// writeWhole writes a file whole or not at all. A file that was there before
// stays until the new one is complete.
func writeWhole(path string, write func(io.Writer) error) error {
	f, err := stage(path, write)
	if err != nil {
		return err
	}
	return commit(f)
}

// staged is a file that is whole and on the disk under a temporary name.
type staged struct{ temp, path string }

// stage writes a file under a temporary name in its folder and syncs it. It
// leaves nothing behind where that fails.
func stage(path string, write func(io.Writer) error) (_ staged, err error) {
	defer func() { err = explain(err, "write", path) }()
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return staged{}, err
	}
	f, err := os.CreateTemp(dir, tempPrefix+"*")
	if err != nil {
		return staged{}, err
	}
	err = errors.Join(write(f), f.Chmod(0o644)) // CreateTemp's 0600 would hide it from a group that shares the store
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return staged{}, errors.Join(err, os.Remove(f.Name()))
	}
	return staged{f.Name(), path}, nil
}

// commit gives staged files their names, all at once but for a kill in the
// microseconds between two of them, and syncs their folders. Where one fails
// the rest is taken back.
func commit(files ...staged) error {
	for i, f := range files {
		if err := os.Rename(f.temp, f.path); err != nil {
			discard(files[i:])
			return explain(err, "write", f.path)
		}
	}
	for _, f := range files {
		if err := syncDir(filepath.Dir(f.path)); err != nil {
			return explain(err, "write", f.path)
		}
	}
	return nil
}

// discard removes staged files; GC takes what cannot be removed now.
func discard(files []staged) {
	for _, f := range files {
		_ = os.Remove(f.temp)
	}
}

// syncDir makes the names in a folder survive a power cut.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// explain adds to an error of the file system what to do about it, and nothing
// to the others.
func explain(err error, verb, path string) error {
	advice := ""
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EFBIG):
		advice = ": the disk or the quota is full; free some space and run again (finished trials are kept), or set NASML_STORE to a folder elsewhere"
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		advice = "; make the folder writable or set NASML_STORE to one that is"
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EEXIST):
		advice = "; a file is where the store needs a folder: move it away or set NASML_STORE to another folder"
	case errors.Is(err, syscall.ENOLCK), errors.Is(err, syscall.EOPNOTSUPP), errors.Is(err, syscall.ENOSYS):
		advice = "; this file system has no locks (some network file systems): set NASML_STORE to a folder on a local disk"
	case errors.Is(err, syscall.EMFILE):
		advice = "; too many trials at once: raise the limit (ulimit -n) or set Options.MaxBatch"
	}
	return fmt.Errorf("run store cannot %s %s: %w%s", verb, path, err, advice)
}

// tryLock takes the advisory lock of a file, which the kernel frees when the
// process ends in whatever way. It returns nil where another holder has it.
func tryLock(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return nil, explain(err, "lock", path)
	}
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
		if err != nil {
			return nil, explain(err, "lock", path)
		}
		err = flock(f)
		if err == nil && samePlace(f, path) {
			return f, nil
		}
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, nil
		}
		if err != nil {
			return nil, explain(err, "lock", path)
		}
		// The holder before us removed the file between our open and our lock:
		// this lock would exclude nobody.
	}
}

func flock(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// samePlace says whether path still names the open file.
func samePlace(f *os.File, path string) bool {
	ours, err1 := f.Stat()
	there, err2 := os.Stat(path)
	return err1 == nil && err2 == nil && os.SameFile(ours, there)
}

// unlock removes a lock's file while it is held, then frees the lock. What
// fails here leaves an empty file that GC takes away.
func unlock(f *os.File) {
	_ = os.Remove(f.Name())
	_ = f.Close()
}
