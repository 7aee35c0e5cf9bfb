package runs

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// List returns all records, those of the folder and those shipped, sorted by
// figure and key, and what cannot be believed. It changes nothing.
func (s *Store) List() ([]*Record, []*Broken, error) {
	found := map[string]*Record{}
	var broken []*Broken
	for _, b := range s.bundles {
		records, bad := b.load()
		maps.Copy(found, records)
		broken = append(broken, bad...)
	}
	err := s.eachKey(func(key string) error {
		r, err := s.read(key)
		var bad *Broken
		switch {
		case err == nil:
			found[key] = r
		case errors.As(err, &bad):
			broken = append(broken, bad)
		case !errors.Is(err, ErrNotFound): // removed since it was listed
			return err
		}
		return nil
	})
	return slices.SortedFunc(maps.Values(found), compareRecords), broken, err
}

// eachKey visits the key of every record file in the folder.
func (s *Store) eachKey(visit func(key string) error) error {
	return s.walk("records", func(path string, _ fs.FileInfo) error {
		if key, ok := strings.CutSuffix(filepath.Base(path), ".json"); ok && isKey(key) {
			return visit(key)
		}
		return nil
	})
}

// walk visits every file below one of the store's folders. What vanishes on
// the way was finished or removed by another process.
func (s *Store) walk(folder string, visit func(path string, info fs.FileInfo) error) error {
	return filepath.WalkDir(filepath.Join(s.dir, folder), func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && entry.IsDir() {
			return nil
		}
		if err != nil {
			return explain(err, "read", path)
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return explain(err, "read", path)
		}
		return visit(path, info)
	})
}

// Find returns the record whose key begins with prefix. It is an error that
// lists the candidates where there are several, and one that is [ErrNotFound]
// where there is none.
func (s *Store) Find(prefix string) (*Record, error) {
	prefix = strings.ToLower(prefix)
	if isKey(prefix) {
		return s.Get(prefix)
	}
	if prefix == "" || len(prefix) > 64 || !isHex(prefix) {
		return nil, fmt.Errorf("%.80q is not the beginning of a key, expected up to 64 hexadecimal digits: see the list of records", prefix)
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
		names = append(names, fmt.Sprintf("%s (%s, seed %d)", r.Key[:min(len(prefix)+8, 64)], r.Trial.Figure, r.Trial.Seed))
	}
	return nil, fmt.Errorf("%d keys begin with %s, give more digits: %s", len(records), prefix, strings.Join(names, ", "))
}

// Report is what [Store.Verify] found.
type Report struct {
	Records     int // whole records, shipped ones included
	Checkpoints int // whole checkpoints
	Broken      []*Broken
}

// Verify reads every record and checkpoint from end to end. What is broken is
// moved to DIR/broken, and the next run computes it again; broken lines of
// shipped files are only reported.
func (s *Store) Verify() (Report, error) {
	var report Report
	for _, b := range s.bundles {
		records, bad := b.load()
		report.Records += len(records)
		report.Broken = append(report.Broken, bad...)
	}
	own := Store{dir: s.dir, now: s.now}
	err := own.eachKey(func(key string) error {
		_, err := own.Get(key)
		return report.count(&report.Records, err)
	})
	return report, errors.Join(err, own.walk("checkpoints", func(path string, _ fs.FileInfo) error {
		if filepath.Ext(path) != ".ckpt" {
			return nil
		}
		f, _, err := openCheckpoint(path)
		var broken *Broken
		if errors.As(err, &broken) {
			// A job may replace the file at this moment: it then loses one
			// checkpoint, not the one it writes next.
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
	var broken *Broken
	switch {
	case err == nil:
		*whole++
	case errors.As(err, &broken):
		r.Broken = append(r.Broken, broken)
	case !errors.Is(err, ErrNotFound) && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return nil
}

// GCOptions says what [Store.GC] removes besides what is of no use to anybody.
type GCOptions struct {
	OlderThan time.Duration      // checkpoints that were not saved for so long; 0: 7 days, negative: all
	Drop      func(*Record) bool // records of the folder to remove; nil: none
	DryRun    bool               // only count
}

// Removed is what [Store.GC] removed.
type Removed struct {
	Files int
	Bytes int64
}

// GC removes DIR/broken, locks and temporary files that dead processes left,
// old checkpoints, and the records that o.Drop picks. It is safe while other
// processes compute.
func (s *Store) GC(o GCOptions) (Removed, error) {
	var removed Removed
	age := o.OlderThan
	if age == 0 {
		age = 7 * 24 * time.Hour
	}
	remove := func(path string, info fs.FileInfo) error {
		removed.Files++
		removed.Bytes += info.Size()
		if o.DryRun {
			return nil
		}
		return explain(ignoreMissing(os.Remove(path)), "remove", path)
	}
	return removed, errors.Join(
		s.walk("broken", remove),
		s.walk("locks", func(path string, info fs.FileInfo) error {
			lock, err := tryLock(path)
			if lock == nil {
				return err
			}
			defer func() { _ = lock.Close() }()
			return remove(path, info)
		}),
		s.walk("checkpoints", func(path string, info fs.FileInfo) error {
			idle := s.now().Sub(info.ModTime())
			if isTemp(path) && idle > tempAge || !isTemp(path) && idle > age {
				return remove(path, info)
			}
			return nil
		}),
		s.walk("records", func(path string, info fs.FileInfo) error {
			if isTemp(path) && s.now().Sub(info.ModTime()) > tempAge || s.drops(o, path) {
				return remove(path, info)
			}
			return nil
		}))
}

// drops says whether o picks the whole record in the file.
func (s *Store) drops(o GCOptions, path string) bool {
	key, ok := strings.CutSuffix(filepath.Base(path), ".json")
	if o.Drop == nil || !ok || !isKey(key) {
		return false
	}
	r, err := s.read(key)
	return err == nil && o.Drop(r)
}
