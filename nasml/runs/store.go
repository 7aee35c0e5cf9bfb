// Package runs stores finished trials, each under a key of everything that its numbers depend on, and checkpoints of
// unfinished ones; it also has statistics over seeds, claims and progress. A cell of a notebook is a new process: an
// unchanged trial is read from the store, never computed again.
//
//	store, err := runs.FromContext(ctx)
//	records, err := store.Compute(ctx, trials, runs.Options{}, func(ctx context.Context, job *runs.Job) error {
//		// compute job.Trials, all in one graph, and report each
//		return job.Done(0, runs.Result{Values: map[string]float64{"distance": 0.7}})
//	})
package runs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
)

// ErrNotFound says that the store has no such record or checkpoint. It is an
// [fs.ErrNotExist], for who asks without knowing this package.
var ErrNotFound error = notFound{}

type notFound struct{}

func (notFound) Error() string { return "not in the run store" }

func (notFound) Is(target error) bool { return target == fs.ErrNotExist }

// Store is a folder or a bucket of records:
//
//	STORE/records/ab/KEY.json   one finished trial each, written whole or not at all
//	STORE/checkpoints/          state of unfinished trials
//	STORE/locks/                one lock for each trial being computed
//	STORE/failed/               why a trial has no result
//	STORE/broken/               what was found damaged, each with its reason
//
// Any number of processes may use one store at the same time.
type Store struct {
	medium  Medium
	bundles []*bundle
	hidden  map[string]bool  // keys that bundles are not asked for
	own     func() []*Record // what a folder had when it was first asked, see Alike
	now     func() time.Time
}

// Open opens the store in a folder, which is made at the first write, or at an address such
// as s3://bucket/prefix (see [RegisterMedium]), with the records of readOnly behind it. It
// returns an error if dir is a file, or if no medium for the address is registered.
func Open(dir string, readOnly ...fs.FS) (*Store, error) {
	if dir == "" {
		return nil, errors.New("run store has no folder: give one or set NASML_STORE")
	}
	medium, err := openMedium(dir)
	if err != nil {
		return nil, err
	}
	s := &Store{medium: medium, now: time.Now}
	s.own = sync.OnceValue((&Store{medium: medium, now: time.Now}).inFolder)
	return s.With(readOnly...), nil
}

// Default opens the user's store: the folder or bucket named by NASML_STORE, else
// nasml/store in the user's cache folder.
func Default() (*Store, error) {
	if dir := os.Getenv("NASML_STORE"); dir != "" {
		return Open(dir)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("no folder for the run store: %w: set NASML_STORE to one", err)
	}
	return Open(filepath.Join(cache, "nasml", "store"))
}

// Dir returns the store's folder or address.
func (s *Store) Dir() string { return s.medium.Where("") }

// With returns the same store with more records to read, such as those that a package ships: every .json or .jsonl file
// holds one record a line, as [WriteBundle] writes them; .jsonl.gz is the same compressed by gzip.
func (s *Store) With(readOnly ...fs.FS) *Store {
	with := *s
	with.bundles = s.bundles[:len(s.bundles):len(s.bundles)]
	for _, fsys := range readOnly {
		with.bundles = append(with.bundles, newBundle(fsys, fsys))
	}
	return &with
}

// Broken is a file of the store that is there and cannot be believed. As an error it is an [ErrNotFound].
type Broken struct {
	Path    string `json:"path"` // the file, with the line where it holds several records
	Reason  string `json:"reason"`
	MovedTo string `json:"moved_to"` // where it was set aside, empty where it was left
	name    string // in the medium
}

func (b *Broken) Error() string {
	text := fmt.Sprintf("%s is broken: %s", b.Path, b.Reason)
	if b.MovedTo != "" {
		text += "; set aside as " + b.MovedTo
	}
	return text
}

// Is makes a broken file one that is not there.
func (b *Broken) Is(target error) bool { return target == ErrNotFound || target == fs.ErrNotExist }

// Get returns the record of a key, or an error that is [ErrNotFound]. A broken
// record is never believed: it is moved to STORE/broken with its reason.
func (s *Store) Get(key string) (*Record, error) {
	r, err := s.read(key)
	broken, ok := errors.AsType[*Broken](err)
	if !ok {
		return r, err
	}
	lock, err := s.medium.Lock(lockName(key))
	if err != nil {
		return nil, fmt.Errorf("%w; %w", broken, err)
	}
	if lock == nil { // somebody is computing it again
		return nil, broken
	}
	defer lock.Unlock()
	return s.readLocked(key)
}

// read looks a key up in the medium, then in the bundles. It changes nothing.
func (s *Store) read(key string) (*Record, error) {
	if !isKey(key) {
		return nil, fmt.Errorf("%.80q is not a key, expected 64 hexadecimal digits: %w", key, ErrNotFound)
	}
	data, err := s.readAll(recordName(key))
	if _, broken := errors.AsType[*Broken](err); !broken && errors.Is(err, fs.ErrNotExist) {
		return s.readBundles(key)
	}
	if err != nil {
		return nil, err
	}
	r, err := decode(data)
	if err == nil && r.Key != key {
		err = fmt.Errorf("it holds the record of %s", r.Key)
	}
	if err != nil {
		return nil, s.broken(recordName(key), err.Error())
	}
	return r, nil
}

// open opens an object. Where something else than a file has its name, that is broken.
func (s *Store) open(name string) (Object, error) {
	f, err := s.medium.Open(name)
	if errors.Is(err, errNoFile) {
		return nil, s.broken(name, errNoFile.Error())
	}
	return f, err
}

func (s *Store) readAll(name string) ([]byte, error) {
	f, err := s.open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data := make([]byte, f.Size())
	if _, err := io.ReadFull(f, data); err != nil {
		return nil, fmt.Errorf("run store cannot read %s: %w", s.medium.Where(name), err)
	}
	return data, nil
}

func (s *Store) broken(name, reason string) *Broken {
	return &Broken{Path: s.medium.Where(name), Reason: reason, name: name}
}

func (s *Store) readBundles(key string) (*Record, error) {
	if s.hidden[key] {
		return nil, fmt.Errorf("record %s has to be recomputed: %w", key, ErrNotFound)
	}
	for _, b := range s.bundles {
		if l, ok := b.load()[key]; ok {
			if r, err := l.record(); err == nil {
				return r, nil
			}
		}
	}
	return nil, fmt.Errorf("record %s: %w", key, ErrNotFound)
}

// readLocked is read for the holder of the key's lock: it sets a broken record aside and looks into the bundles.
func (s *Store) readLocked(key string) (*Record, error) {
	r, err := s.read(key)
	broken, ok := errors.AsType[*Broken](err)
	if !ok {
		return r, err
	}
	if err := s.setAside(broken); err != nil {
		return nil, err
	}
	if r, err := s.readBundles(key); err == nil {
		return r, nil
	}
	return nil, broken
}

// setAside moves a broken object to STORE/broken and writes the reason beside it.
func (s *Store) setAside(b *Broken) error {
	to := "broken/" + s.now().UTC().Format("20060102T150405.000000000-") + path.Base(b.name)
	err := s.write(to+".reason.txt", func(w io.Writer) error {
		_, err := fmt.Fprintln(w, b)
		return err
	})
	if err != nil {
		return err
	}
	if err := s.medium.Move(b.name, to); err != nil {
		return err
	}
	b.MovedTo = s.medium.Where(to)
	return nil
}

// write writes an object whole or not at all. One that was there before stays until the new one is complete.
func (s *Store) write(name string, write func(io.Writer) error) error {
	return s.medium.Put(false, Draft{name, write})
}

func recordName(key string) string { return "records/" + key[:2] + "/" + key + ".json" }

func lockName(key string) string { return "locks/" + key }

func isKey(key string) bool { return len(key) == 64 && isHex(key) }

func isHex(text string) bool { return strings.Trim(text, "0123456789abcdef") == "" }

type contextKey int

const (
	storeKey contextKey = iota
	scaleKey
	progressKey
	partKey
	hiddenKey
	keptKey
)

// WithStore returns a context that carries a store.
func WithStore(ctx context.Context, s *Store) context.Context {
	return context.WithValue(ctx, storeKey, s)
}

// FromContext returns the store that the context carries, else [Default].
func FromContext(ctx context.Context) (*Store, error) {
	if s, ok := ctx.Value(storeKey).(*Store); ok && s != nil {
		return s, nil
	}
	return Default()
}

// FromContextWith returns [FromContext]'s store, and behind it the records that
// a package ships in the folder records/NAME of its embedded files.
func FromContextWith(ctx context.Context, shipped fs.FS, name string) (*Store, error) {
	store, err := FromContext(ctx)
	if err != nil {
		return store, err
	}
	folder, err := fs.Sub(shipped, path.Join("records", name))
	if err != nil {
		return nil, fmt.Errorf("records that are shipped with %q: %w", name, err)
	}
	with := *store
	with.hidden, _ = ctx.Value(hiddenKey).(map[string]bool)
	with.bundles = append(store.bundles[:len(store.bundles):len(store.bundles)],
		keptFrom(ctx).bundle(shipped, name, folder))
	return &with, nil
}

// KeepShipped returns a context under which FromContextWith reads what a package
// ships once, however often it is asked: for who looks at many figures.
func KeepShipped(ctx context.Context) context.Context {
	return context.WithValue(ctx, keptKey, &kept{bundles: map[keptName]*bundle{}})
}

// kept are bundles that were read; nil keeps none.
type kept struct {
	mu      sync.Mutex
	bundles map[keptName]*bundle
}

type keptName struct {
	shipped fs.FS
	name    string
}

func keptFrom(ctx context.Context) *kept {
	k, _ := ctx.Value(keptKey).(*kept)
	return k
}

func (k *kept) all() []*bundle {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Collect(maps.Values(k.bundles))
}

func (k *kept) bundle(shipped fs.FS, name string, folder fs.FS) *bundle {
	if k == nil || !reflect.TypeOf(shipped).Comparable() {
		return newBundle(shipped, folder)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	at := keptName{shipped, name}
	if k.bundles[at] == nil {
		k.bundles[at] = newBundle(shipped, folder)
	}
	return k.bundles[at]
}

// Lookup returns the records of keys: those of the context's store, and those that packages ship and that were read
// under the same [KeepShipped]. A key that is not found is an error that is [ErrNotFound].
func Lookup(ctx context.Context, keys []string) ([]*Record, error) {
	store, err := FromContext(ctx)
	if err != nil {
		return nil, err
	}
	with := *store
	with.bundles = append(slices.Clone(store.bundles), keptFrom(ctx).all()...)
	records := make([]*Record, len(keys))
	for i, key := range keys {
		if records[i], err = with.Get(key); err != nil {
			return nil, err
		}
	}
	return records, nil
}

// WithoutShipped returns a context under which FromContextWith does not find the records of keys among those that
// packages ship, so that they can be computed again. It finds the others: trials may read what earlier ones found.
func WithoutShipped(ctx context.Context, keys map[string]bool) context.Context {
	return context.WithValue(ctx, hiddenKey, keys)
}

// WithScale returns a context that carries the name of a scale, which records
// then tell ("quick", "paper"). It is no part of a key.
func WithScale(ctx context.Context, scale string) context.Context {
	return context.WithValue(ctx, scaleKey, scale)
}

// Scale returns the scale that the context carries, else "".
func Scale(ctx context.Context) string {
	scale, _ := ctx.Value(scaleKey).(string)
	return scale
}
