package files

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// remembrance is what is kept of a file in the user's cache folder.
type remembrance[T any] struct {
	Path, What string
	Size       int64
	Modified   time.Time
	Value      T
	Sum        string // of the rest, so that a damaged one is made again
}

// sum is the SHA-256 of all but Sum.
func (r remembrance[T]) sum() string {
	r.Sum, r.Modified = "", r.Modified.UTC()
	text, err := json.Marshal(r)
	if err != nil { // a time before the year 0
		return ""
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))
}

// same reports whether both speak of the same file, unchanged.
func (r remembrance[T]) same(as remembrance[T]) bool {
	return r.Path == as.Path && r.What == as.What && r.Size == as.Size && r.Modified.Equal(as.Modified)
}

// settled is the age from which on a file counts by its time: one that is written
// while it is read, or twice within the clock's grain, is younger.
const settled = 2 * time.Second

// Remembered is what compute returns for the file at path. The value is stored in the user's cache folder under the
// path and what, and returned from there until the file's size or time of modification changes. A damaged entry
// counts as missing. If nothing can be stored, or path is empty, the next call computes it again.
func Remembered[T any](path, what string, compute func() (T, error)) (T, error) {
	kept, now, known := lookUp[T](path, what)
	if known {
		return now.Value, nil
	}
	value, err := compute()
	if err != nil || kept == "" || time.Since(now.Modified) < settled {
		return value, err
	}
	if _, again, _ := lookUp[T](path, what); !again.same(now) {
		return value, nil // it was written meanwhile
	}
	now.Value = value
	now.Sum = now.sum()
	if text, err := json.Marshal(now); err == nil {
		_ = WriteBytes(kept, append(text, '\n'))
	}
	return value, nil
}

// Forget removes what [Remembered] stored.
func Forget(path, what string) {
	if kept, _, _ := lookUp[any](path, what); kept != "" {
		_ = os.Remove(kept)
	}
}

// lookUp says where the value of a file is kept, what the file is now, and whether the value is known.
func lookUp[T any](path, what string) (kept string, now remembrance[T], known bool) {
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
	now = remembrance[T]{Path: absolute, What: what, Size: info.Size(), Modified: info.ModTime()}
	name := sha256.Sum256([]byte(absolute + "\n" + what))
	kept = filepath.Join(cache, "nasml", "fingerprints", fmt.Sprintf("%x.json", name[:12]))
	text, err := os.ReadFile(kept)
	var before remembrance[T]
	if err != nil || json.Unmarshal(text, &before) != nil || !before.same(now) || before.Sum != before.sum() {
		return kept, now, false
	}
	return kept, before, true
}
