package runs

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

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
