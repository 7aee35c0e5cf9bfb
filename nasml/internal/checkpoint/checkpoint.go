// Package checkpoint writes where a computation stands and reads it back bit
// for bit: a head, which is a Go value in JSON, and the tensors of the state.
//
// The layout is the length of the head in bytes (8 bytes, little-endian), the head, and the bytes of the tensors one
// after another. Shapes are not written: who reads knows them. What keeps a checkpoint whole is left to the run store,
// which puts a sum behind it.
package checkpoint

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/gomlx/gomlx/core/tensors"
)

// ErrOther says that the bytes are not a whole checkpoint of this layout and these shapes. The computation must start
// over.
var ErrOther = errors.New("this is no checkpoint of the computation")

// longestHead bounds what a wrong length makes Read allocate.
const longestHead = 1 << 28

// Shapes are those of tensors, for heads that tell one layout from another.
func Shapes(state []*tensors.Tensor) []string {
	all := make([]string, len(state))
	for i, t := range state {
		all[i] = t.Shape().String()
	}
	return all
}

// Write writes the head as JSON and the bytes of the tensors.
func Write(w io.Writer, head any, state ...*tensors.Tensor) error {
	text, err := json.Marshal(head)
	if err != nil {
		return fmt.Errorf("writing the checkpoint: %w", err)
	}
	if err := binary.Write(w, binary.LittleEndian, uint64(len(text))); err != nil {
		return fmt.Errorf("writing the checkpoint: %w", err)
	}
	if _, err := w.Write(text); err != nil {
		return fmt.Errorf("writing the checkpoint: %w", err)
	}
	for i, t := range state {
		var failed error
		err := t.ConstBytes(func(data []byte) { _, failed = w.Write(data) })
		if err := errors.Join(err, failed); err != nil {
			return fmt.Errorf("writing tensor %d of %d of the checkpoint: %w", i+1, len(state), err)
		}
	}
	return nil
}

// Read reads what Write wrote, to the end of r, into head's target and tensors of the same shapes. On an error both are
// undefined; it is [ErrOther] if r has something else.
func Read(r io.Reader, head any, state ...*tensors.Tensor) error {
	if err := readHead(r, head); err != nil {
		return fmt.Errorf("reading the checkpoint: %w", err)
	}
	for i, t := range state {
		var failed error
		err := t.MutableBytes(func(data []byte) { _, failed = io.ReadFull(r, data) })
		if err := errors.Join(err, tooShort(failed)); err != nil {
			return fmt.Errorf("reading tensor %d of %d of the checkpoint, of shape %s: %w", i+1, len(state), t.Shape(),
				err)
		}
	}
	switch n, err := io.CopyN(io.Discard, r, 1); {
	case n > 0:
		return fmt.Errorf("reading the checkpoint: there is more than the %d tensors expected: %w", len(state),
			ErrOther)
	case !errors.Is(err, io.EOF):
		return fmt.Errorf("reading the checkpoint: %w", err)
	}
	return nil
}

func readHead(r io.Reader, head any) error {
	var length uint64
	if err := binary.Read(r, binary.LittleEndian, &length); err != nil {
		return tooShort(err)
	}
	if length > longestHead {
		return fmt.Errorf("a head of %d bytes, at most %d expected: %w", length, longestHead, ErrOther)
	}
	text, err := io.ReadAll(io.LimitReader(r, int64(length)))
	if err != nil {
		return err
	}
	if uint64(len(text)) < length {
		return tooShort(io.ErrUnexpectedEOF)
	}
	if err := json.Unmarshal(text, head); err != nil {
		return fmt.Errorf("its head is not what was expected (%w): %w", err, ErrOther)
	}
	return nil
}

func tooShort(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("it ends too early: %w", ErrOther)
	}
	return err
}

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
