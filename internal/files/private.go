package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

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
