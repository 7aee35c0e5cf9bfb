package checkpoint

import (
	"errors"
	"io"
	"io/fs"
	"time"
)

// Keeper saves and restores the state of a long computation. The zero value saves nothing.
type Keeper struct {
	// Load and Save are those of a runs.Job: the state that was saved last, or
	// an error that is fs.ErrNotExist, and a function that keeps one.
	Load func() (io.ReadCloser, error)
	Save func(write func(io.Writer) error) error

	Every time.Duration // after which a save is Due; 0: a minute
	saved time.Time
}

// Resume reads the last saved state, if any. If its layout differs, reset is called instead.
func (k *Keeper) Resume(read func(io.Reader) error, reset func()) error {
	k.saved = time.Now()
	if k.Load == nil {
		return nil
	}
	from, err := k.Load()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer from.Close()
	if err = read(from); errors.Is(err, ErrOther) {
		reset()
		return nil
	}
	return err
}

// Due reports whether the last save is long ago.
func (k *Keeper) Due() bool {
	every := k.Every
	if every == 0 {
		every = time.Minute
	}
	return k.Save != nil && time.Since(k.saved) > every
}

// Keep saves.
func (k *Keeper) Keep(write func(io.Writer) error) error {
	if k.Save == nil {
		return nil
	}
	k.saved = time.Now()
	return k.Save(write)
}
