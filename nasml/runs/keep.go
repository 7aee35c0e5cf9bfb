package runs

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/nasml/lab/internal/files"
)

// List returns all records, those of the folder and those shipped, sorted by
// figure and key, and what cannot be believed. It changes nothing.
func (s *Store) List() ([]*Record, []*Broken, error) {
	found := map[string]*Record{}
	var broken []*Broken
	for _, b := range s.bundles {
		records, bad := b.records()
		maps.Copy(found, records)
		broken = append(broken, bad...)
	}
	var keys []string
	err := s.medium.Walk("records", func(info Info) error {
		if key, ok := keyOfName(info.Name); ok {
			keys = append(keys, key)
		}
		return nil
	})
	if err != nil {
		return nil, broken, err
	}
	for i, one := range s.readMany(keys) {
		if bad, ok := errors.AsType[*Broken](one.err); ok {
			broken = append(broken, bad)
		} else if one.err == nil {
			found[keys[i]] = one.record
		} else if !errors.Is(one.err, ErrNotFound) { // removed since it was listed
			err = errors.Join(err, one.err)
		}
	}
	return slices.SortedFunc(maps.Values(found), compareRecords), broken, err
}

// Alike are records of a figure, shipped or the store's own, that say what its trials
// take. It is no place to look for results: of a folder it may know what lay there
// when it was first asked, and of a bucket, of which each takes a while, nothing.
func (s *Store) Alike(figure string) []*Record {
	found := map[string]*Record{}
	for _, b := range s.bundles {
		records, _ := b.all(func(l *line) (*Record, error) { return l.record() })
		maps.Copy(found, records)
	}
	for _, r := range s.own() {
		found[r.Key] = r
	}
	maps.DeleteFunc(found, func(_ string, r *Record) bool { return r.Trial.Figure != figure })
	return slices.SortedFunc(maps.Values(found), compareRecords)
}

func (s *Store) inFolder() []*Record {
	if _, ok := s.medium.(folder); !ok {
		return nil
	}
	records, _, _ := s.List() // what cannot be read is told by who needs it
	return records
}

// Stored returns the record of every trial that the store has, and nil for the others. It computes nothing.
func (s *Store) Stored(trials []Trial) ([]*Record, error) {
	records := make([]*Record, len(trials))
	for i, t := range trials {
		key, err := t.Key()
		if err != nil {
			return nil, err
		}
		if records[i], err = s.Get(key); err != nil && !errors.Is(err, ErrNotFound) {
			return nil, err
		}
	}
	return records, nil
}

// Remove removes the records of keys, so that their trials are computed again; what is shipped stays. A trial that
// another process has at this moment is an error, and the rest is removed.
func (s *Store) Remove(keys ...string) error {
	errs := make([]error, len(keys))
	_ = sideBySide(len(keys), func(i int) error {
		errs[i] = s.remove(keys[i])
		return nil // each has its own error
	})
	return errors.Join(errs...)
}

func (s *Store) remove(key string) error {
	if !isKey(key) {
		return fmt.Errorf("%.80q is not a key, expected 64 hexadecimal digits: %w", key, ErrNotFound)
	}
	lock, err := s.medium.Lock(lockName(key))
	if err != nil {
		return err
	}
	if lock == nil {
		return fmt.Errorf("record %.12s is in use by another process: try again when that has ended", key)
	}
	defer lock.Unlock()
	return s.medium.Remove(recordName(key))
}

type lookup struct {
	record *Record
	err    error
}

func (s *Store) readMany(keys []string) []lookup {
	found := make([]lookup, len(keys))
	_ = sideBySide(len(keys), func(i int) error {
		found[i].record, found[i].err = s.read(keys[i])
		return nil // each has its own error
	})
	return found
}

// sideBySide calls do with 0 to n−1, many at a time, because a bucket answers
// each after a while. It returns the error that came first.
func sideBySide(n int, do func(i int) error) error {
	const most = 32
	var group errgroup.Group
	group.SetLimit(most)
	for i := range n {
		group.Go(func() error { return do(i) })
	}
	return group.Wait()
}

func keyOfName(name string) (key string, ok bool) {
	key, ok = strings.CutSuffix(path.Base(name), ".json")
	return key, ok && isKey(key)
}

// Find returns the record whose key begins with prefix. It is an error that lists the candidates if there are several,
// and one that is [ErrNotFound] if there is none.
func (s *Store) Find(prefix string) (*Record, error) {
	prefix = strings.ToLower(prefix)
	if isKey(prefix) {
		return s.Get(prefix)
	}
	if prefix == "" || len(prefix) > 64 || !isHex(prefix) {
		return nil, fmt.Errorf(
			"%.80q is not the beginning of a key, expected up to 64 hexadecimal digits: see the list of records",
			prefix)
	}
	records, _, err := s.List()
	if err != nil {
		return nil, err
	}
	records = slices.DeleteFunc(records, func(r *Record) bool { return !strings.HasPrefix(r.Key, prefix) })
	switch len(records) {
	case 0:
		return nil, fmt.Errorf("no key begins with %s: %w", prefix, ErrNotFound)
	case 1:
		return records[0], nil
	}
	var names []string
	for _, r := range records[:min(len(records), 8)] {
		names = append(names,
			fmt.Sprintf("%s (%s, seed %d)", r.Key[:min(len(prefix)+8, 64)], r.Trial.Figure, r.Trial.Seed))
	}
	return nil, fmt.Errorf("%d keys begin with %s, give more digits: %s", len(records), prefix,
		strings.Join(names, ", "))
}

// Report is what [Store.Verify] found.
type Report struct {
	Records     int // whole records, shipped ones included
	Checkpoints int // whole checkpoints
	Broken      []*Broken
}

// Verify reads every record and checkpoint from end to end. What is broken is moved to STORE/broken, and the next run
// computes it again; broken lines of shipped files are only reported.
func (s *Store) Verify() (Report, error) {
	var report Report
	for _, b := range s.bundles {
		records, bad := b.records()
		report.Records += len(records)
		report.Broken = append(report.Broken, bad...)
	}
	own := Store{medium: s.medium, now: s.now}
	err := s.medium.Walk("records", func(info Info) error {
		if path.Dir(info.Name) == "records" { // where the folder of many records should be
			broken := own.broken(info.Name, "expected a folder, found something else")
			return report.count(&report.Records, errors.Join(broken, own.setAside(broken)))
		}
		key, ok := keyOfName(info.Name)
		if !ok {
			return nil
		}
		_, err := own.Get(key)
		return report.count(&report.Records, err)
	})
	return report, errors.Join(err, s.medium.Walk("checkpoints", func(info Info) error {
		if path.Ext(info.Name) != ".ckpt" {
			return nil
		}
		f, _, err := own.openCheckpoint(info.Name)
		if broken, ok := errors.AsType[*Broken](err); ok {
			// A job may replace the file at this moment: it then loses one checkpoint, not the one it writes next.
			err = errors.Join(broken, own.setAside(broken))
		}
		if err == nil {
			_ = f.Close()
		}
		return report.count(&report.Checkpoints, err)
	}))
}

// count sorts one finding into the report; other errors it hands back.
func (r *Report) count(whole *int, err error) error {
	if broken, ok := errors.AsType[*Broken](err); ok {
		r.Broken = append(r.Broken, broken)
	} else if err == nil {
		*whole++
	} else if !errors.Is(err, fs.ErrNotExist) { // an ErrNotFound is one, too
		return err
	}
	return nil
}

// GCOptions says what [Store.GC] removes besides stale files.
type GCOptions struct {
	OlderThan time.Duration // checkpoints that were not saved for so long; 0: 7 days, negative: all
	DryRun    bool          // only count
}

// Removed is what [Store.GC] removed.
type Removed struct {
	Files int
	Bytes int64
}

// GC removes STORE/broken and STORE/failed, locks and temporary files that dead processes left, and old
// checkpoints. It is safe while other processes compute.
func (s *Store) GC(o GCOptions) (Removed, error) {
	var removed Removed
	age := o.OlderThan
	if age == 0 {
		age = 7 * 24 * time.Hour
	}
	count := func(info Info) {
		removed.Files++
		removed.Bytes += info.Size
	}
	idle := func(info Info, most time.Duration) bool { return s.now().Sub(info.ModTime) > most }
	remove := func(info Info) error {
		count(info)
		if o.DryRun {
			return nil
		}
		return s.medium.Remove(info.Name)
	}
	reclaim := func(info Info) error {
		dead, err := s.medium.Reclaim(info.Name, o.DryRun)
		if dead {
			count(info)
		}
		return err
	}
	return removed, errors.Join(
		s.medium.Walk("broken", remove),
		s.medium.Walk("failed", remove),
		s.medium.Walk("locks", reclaim),
		s.medium.Walk("leases", reclaim),
		s.medium.Walk("checkpoints", func(info Info) error {
			if temp := files.IsTemp(info.Name); temp && idle(info, tempAge) || !temp && idle(info, age) {
				return remove(info)
			}
			return nil
		}),
		s.medium.Walk("records", func(info Info) error {
			if files.IsTemp(info.Name) && idle(info, tempAge) {
				return remove(info)
			}
			return nil
		}))
}
