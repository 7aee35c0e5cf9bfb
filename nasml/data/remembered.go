package data

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/nasml/lab/internal/files"
)

// Opened101 is a file of NAS-Bench-101 of which only the fingerprint need be there:
// a figure whose trials are all stored is drawn without what is in it.
type Opened101[T any] struct {
	Fingerprint string
	read        func() (read101[T], error)
}

// read101 is a file that was read.
type read101[T any] struct {
	content     T
	fingerprint string
}

// OpenNASBench101 finds out about the table that [LoadNASBench101] reads, with its
// errors. A file that was read before and has not changed since is not read again.
func OpenNASBench101(dir string) (*Opened101[*NASBench101], error) {
	return open101(dir, []string{table101File, subset101File}, func(dir string) (file read101[*NASBench101], err error) {
		if file.content, err = LoadNASBench101(dir); err == nil {
			file.fingerprint = file.content.Fingerprint
		}
		return file, err
	})
}

// OpenShared101 is OpenNASBench101 for what [LoadShared101] reads.
func OpenShared101(dir string) (*Opened101[[]Shared101], error) {
	return open101(dir, []string{shared101File}, func(dir string) (file read101[[]Shared101], err error) {
		if file.content, err = LoadShared101(dir); err == nil && len(file.content) == 0 {
			err = fmt.Errorf("%s: found no row, expected one a cell: %w", shared101File, ErrBroken)
		}
		if err == nil {
			file.fingerprint = file.content[0].Fingerprint
		}
		return file, err
	})
}

// open101 opens the first of the files that is there.
func open101[T any](dir string, names []string, load func(string) (read101[T], error)) (*Opened101[T], error) {
	if dir == "" {
		var err error
		if dir, err = Dir(); err != nil {
			return nil, err
		}
	}
	o := &Opened101[T]{read: sync.OnceValues(func() (read101[T], error) { return load(dir) })}
	var err error
	o.Fingerprint, err = remembered(firstThere(dir, names), func() (string, error) {
		file, err := o.read()
		return file.fingerprint, err
	})
	return o, err
}

// Content is what is in the file, read at the first call. It is an error where that
// is not what the fingerprint speaks of.
func (o *Opened101[T]) Content() (T, error) {
	file, err := o.read()
	if err == nil && file.fingerprint != o.Fingerprint {
		err = fmt.Errorf("found a file of NAS-Bench-101 with fingerprint %s, expected %s: it has changed since it was "+
			"opened; run again", file.fingerprint, o.Fingerprint)
	}
	return file.content, err
}

// firstThere is the path of the first of the files, zipped or not, that is there;
// empty: none is.
func firstThere(dir string, names []string) string {
	for _, name := range names {
		zipped := filepath.Join(dir, filepath.FromSlash(name))
		for _, path := range []string{zipped, unzipped(zipped)} {
			if _, err := os.Stat(path); err == nil {
				return path
			}
		}
	}
	return ""
}

// remembrance is what is kept of a file in the user's cache folder.
type remembrance struct {
	Path        string
	Size        int64
	Modified    time.Time
	Fingerprint string
}

// settled is the age from which on a file counts by its time: one that is written
// while it is read, or twice within the clock's grain, is younger.
const settled = 2 * time.Second

// remembered is the fingerprint of a file, as it was computed when a file of this
// path, size and time of modification was read, else as compute has it. What is kept
// and is not whole counts as not kept; where nothing can be kept, the next time only
// takes longer.
func remembered(path string, compute func() (string, error)) (string, error) {
	kept, now, known := lookedUp(path)
	if known {
		return now.Fingerprint, nil
	}
	sum, err := compute()
	if err != nil || kept == "" || time.Since(now.Modified) < settled {
		return sum, err
	}
	if _, again, _ := lookedUp(path); !again.same(now) {
		return sum, nil // it was written meanwhile
	}
	now.Fingerprint = sum
	if text, err := json.Marshal(now); err == nil {
		_ = files.WriteBytes(kept, append(text, '\n'))
	}
	return sum, nil
}

// lookedUp says where a file's fingerprint is kept, what the file is now, and whether
// the fingerprint is known.
func lookedUp(path string) (kept string, now remembrance, known bool) {
	absolute, err := filepath.Abs(path)
	if err != nil || path == "" {
		return "", now, false
	}
	info, err := os.Stat(absolute)
	if err != nil {
		return "", now, false
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", now, false
	}
	now = remembrance{Path: absolute, Size: info.Size(), Modified: info.ModTime()}
	name := sha256.Sum256([]byte(absolute))
	kept = filepath.Join(cache, "nasml", "fingerprints", hex.EncodeToString(name[:12])+".json")
	text, err := os.ReadFile(kept)
	var before remembrance
	if err != nil || json.Unmarshal(text, &before) != nil || !before.same(now) {
		return kept, now, false
	}
	sum, err := hex.DecodeString(before.Fingerprint)
	if err != nil || len(sum) != sha256.Size {
		return kept, now, false
	}
	now.Fingerprint = before.Fingerprint
	return kept, now, true
}

// same says whether both speak of the same file, unchanged.
func (r remembrance) same(as remembrance) bool {
	return r.Path == as.Path && r.Size == as.Size && r.Modified.Equal(as.Modified)
}
