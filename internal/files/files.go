// Package files has what every package needs that keeps files: files that are
// there whole or not at all, and locks that end with the process that has them.
package files

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// prefix begins the name of a file that is not yet whole.
const prefix = ".tmp-"

// IsTemp reports whether a file is a temporary one of Stage.
func IsTemp(path string) bool { return strings.HasPrefix(filepath.Base(path), prefix) }

// Stage writes a temporary file in a folder and returns its path. It leaves nothing behind on failure. write may call
// Sync.
func Stage(dir string, mode fs.FileMode, write func(*os.File) error) (string, error) {
	f, err := os.CreateTemp(dir, prefix+"*")
	if err != nil {
		return "", err
	}
	if err := errors.Join(f.Chmod(mode), write(f), f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// Write writes a file atomically: readers see the old one or the new one.
func Write(path string, mode fs.FileMode, write func(*os.File) error) error {
	fresh, err := Stage(filepath.Dir(path), mode, write)
	if err != nil {
		return err
	}
	if err := os.Rename(fresh, path); err != nil {
		return errors.Join(err, os.Remove(fresh))
	}
	return nil
}

// WriteBytes is [Write] of bytes. It creates the folder, and syncs to disk.
func WriteBytes[T string | []byte](path string, data T) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return Write(path, 0o644, func(f *os.File) error {
		_, err := f.Write([]byte(data))
		return errors.Join(err, f.Sync())
	})
}

// ErrNotPrivate says that somebody else could have written what is to be run.
var ErrNotPrivate = errors.New("what lies there is run as a program")

// Private returns an [ErrNotPrivate] unless a file or folder belongs to the user or root and only the owner can write
// to it, as what is run must.
func Private(paths ...string) error {
	for _, path := range paths {
		info, err := os.Stat(path)
		if err == nil {
			err = private(path, info)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func private(path string, info fs.FileInfo) error {
	if owner, known := ownerOf(info); known && owner != 0 && owner != os.Geteuid() {
		return fmt.Errorf("%s belongs to the user with number %d, and %w: take a folder of your own", path, owner,
			ErrNotPrivate)
	}
	const others = 0o022
	if mode := info.Mode().Perm(); mode&others != 0 {
		who := "its group"
		if mode&0o002 != 0 {
			who = "everybody"
		}
		return fmt.Errorf("%s may write to %s (mode %#o), and %w: chmod go-w it", who, path, mode, ErrNotPrivate)
	}
	return nil
}

// ReadPrivate is os.ReadFile of a file that is [Private]. It waits for no pipe.
func ReadPrivate(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: expected a file, found something else: %w", path, ErrNotPrivate)
	}
	if err == nil {
		err = private(path, info)
	}
	if err != nil {
		return nil, err
	}
	data := make([]byte, info.Size())
	_, err = io.ReadFull(f, data)
	return data, err
}

// remembrance is what is kept of a file in the user's cache folder.
type remembrance[T any] struct {
	Path, What string
	Size       int64
	Modified   time.Time
	Value      T
	Sum        string // of the rest, so that a damaged one is made again
}

// sum is the SHA-256 of all but Sum.
func (r remembrance[T]) sum() string {
	r.Sum, r.Modified = "", r.Modified.UTC()
	text, err := json.Marshal(r)
	if err != nil { // a time before the year 0
		return ""
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))
}

// same reports whether both speak of the same file, unchanged.
func (r remembrance[T]) same(as remembrance[T]) bool {
	return r.Path == as.Path && r.What == as.What && r.Size == as.Size && r.Modified.Equal(as.Modified)
}

// settled is the age from which on a file counts by its time: one that is written
// while it is read, or twice within the clock's grain, is younger.
const settled = 2 * time.Second

// Remembered is what compute returns for the file at path. The value is stored in the user's cache folder under the
// path and what, and returned from there until the file's size or time of modification changes. A damaged entry
// counts as missing. If nothing can be stored, or path is empty, the next call computes it again.
func Remembered[T any](path, what string, compute func() (T, error)) (T, error) {
	kept, now, known := lookUp[T](path, what)
	if known {
		return now.Value, nil
	}
	value, err := compute()
	if err != nil || kept == "" || time.Since(now.Modified) < settled {
		return value, err
	}
	if _, again, _ := lookUp[T](path, what); !again.same(now) {
		return value, nil // it was written meanwhile
	}
	now.Value = value
	now.Sum = now.sum()
	if text, err := json.Marshal(now); err == nil {
		_ = WriteBytes(kept, append(text, '\n'))
	}
	return value, nil
}

// Forget removes what [Remembered] stored.
func Forget(path, what string) {
	if kept, _, _ := lookUp[any](path, what); kept != "" {
		_ = os.Remove(kept)
	}
}

// lookUp says where the value of a file is kept, what the file is now, and whether the value is known.
func lookUp[T any](path, what string) (kept string, now remembrance[T], known bool) {
	absolute, err := filepath.Abs(path)
	if err != nil || path == "" {
		return "", now, false
	}
	info, err := os.Stat(absolute)
	if err != nil {
		return "", now, false
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", now, false
	}
	now = remembrance[T]{Path: absolute, What: what, Size: info.Size(), Modified: info.ModTime()}
	name := sha256.Sum256([]byte(absolute + "\n" + what))
	kept = filepath.Join(cache, "nasml", "fingerprints", fmt.Sprintf("%x.json", name[:12]))
	text, err := os.ReadFile(kept)
	var before remembrance[T]
	if err != nil || json.Unmarshal(text, &before) != nil || !before.same(now) || before.Sum != before.sum() {
		return kept, now, false
	}
	return kept, before, true
}

// Lock is an advisory file lock, which the kernel frees when the process ends.
type Lock struct{ file *flock.Flock }

// TryLock locks a file, which it creates if necessary. It returns nil if another process, or this one, holds the lock.
func TryLock(path string, mode fs.FileMode) (*Lock, error) {
	for {
		file := flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(mode))
		got, err := file.TryLock()
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil || !got:
			return nil, err
		case samePlace(file):
			return &Lock{file}, nil
		}
		// The holder before us removed or renamed the file between our open and
		// our lock: this lock would exclude nobody.
		_ = file.Close()
	}
}

type refusing struct{}

// Refusing returns a context under which WaitLock fails with err, so that readers write and download nothing.
func Refusing(ctx context.Context, err error) context.Context {
	return context.WithValue(ctx, refusing{}, err)
}

// WaitLock retries after every pause until the lock is free.
func WaitLock(ctx context.Context, path string, mode fs.FileMode, pause time.Duration) (*Lock, error) {
	if err, ok := ctx.Value(refusing{}).(error); ok {
		return nil, err
	}
	for {
		lock, err := TryLock(path, mode)
		if lock != nil || err != nil {
			return lock, err
		}
		if err := Sleep(ctx, pause); err != nil {
			return nil, err
		}
	}
}

// Sleep waits. It returns ctx's error if that ends first.
func Sleep(ctx context.Context, pause time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(pause):
		return nil
	}
}

func samePlace(file *flock.Flock) bool {
	ours, err1 := file.Stat()
	there, err2 := os.Stat(file.Path())
	return err1 == nil && err2 == nil && os.SameFile(ours, there)
}

// Unlock frees the lock and leaves its file.
func (l *Lock) Unlock() { _ = l.file.Close() }

// Remove removes the locked file, then unlocks. On failure it leaves an empty file.
func (l *Lock) Remove() {
	_ = os.Remove(l.file.Path())
	l.Unlock()
}

// Path is the path of the lock's file.
func (l *Lock) Path() string { return l.file.Path() }
