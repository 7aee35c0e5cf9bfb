package files

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

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
