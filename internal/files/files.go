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
