// Package files has what every package needs that keeps files: files that are
// there whole or not at all, and locks that end with the process that has them.
package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// prefix begins the name of a file that is not yet whole.
const prefix = ".tmp-"

// IsTemp reports whether a file is one that was not whole when its writer ended,
// or is being written.
func IsTemp(path string) bool { return strings.HasPrefix(filepath.Base(path), prefix) }

// Stage writes a file under a temporary name in a folder and returns its path.
// It leaves nothing behind where that fails. write may call Sync.
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

// Write writes a file that is there whole or not at all: another process that
// reads it finds the old one or the new one.
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

// WriteBytes is [Write] of what is in memory, with a folder made for it. It is
// on the disk when it returns.
func WriteBytes[T string | []byte](path string, data T) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return Write(path, 0o644, func(f *os.File) error {
		_, err := f.Write([]byte(data))
		return errors.Join(err, f.Sync())
	})
}
