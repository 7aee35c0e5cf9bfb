// Package programs keeps compiled programs on disk, so that another process need not compile them again.
//
// A program is machine code: it is loaded only where nobody else could write it, and its key, its length and its
// SHA-256 are what they were when it was written. Whatever else lies in the folder is not there.
package programs

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nasml/lab/internal/files"
)

// Env names the variable that holds the folder of the compiled programs, or
// "off". LimitEnv holds the most megabytes (10⁶ bytes) that they may take.
const (
	Env      = "NASML_XLA_CACHE"
	LimitEnv = "NASML_XLA_CACHE_MB"
)

// DefaultLimit is what the programs may take where $NASML_XLA_CACHE_MB does not say it, in bytes.
const DefaultLimit = 2_000_000_000

// Cache is a folder of compiled programs:
//
//	KEY.program   one program: a head of magic, key, length and SHA-256, then its bytes
//	KEY.next      which programs were asked for by who has this key, laid out as a program
//	KEY.lock      is being compiled
//	KEY.sum       the SHA-256 of a file that was read before
//	.tmp-*        is being written
//
// Any number of processes may use one folder at the same time.
type Cache struct {
	Dir   string
	Limit int64 // bytes; beyond them the programs that were not used for longest go
	// Refused is told why a file counts as not there that others may have written; may be nil.
	Refused func(error)

	mu   sync.Mutex
	room int64 // bytes that may be written before the folder is counted again
}

// Default is the user's cache: the folder named by $NASML_XLA_CACHE, else nasml/xla in the user's cache folder. It is
// nil where the variable is "off". The folder need not exist.
func Default() (*Cache, error) {
	c := &Cache{Dir: os.Getenv(Env), Limit: DefaultLimit}
	if c.Dir == "off" {
		return nil, nil
	}
	if text := os.Getenv(LimitEnv); text != "" {
		mb, err := strconv.ParseInt(text, 10, 32)
		if err != nil || mb <= 0 {
			return nil, fmt.Errorf("$%s is %q, expected a number of megabytes above 0", LimitEnv, text)
		}
		c.Limit = mb * 1_000_000
	}
	if c.Dir != "" {
		dir, err := filepath.Abs(c.Dir)
		c.Dir = dir
		return c, err
	}
	user, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("no folder for compiled programs: %w: set %s to one, or to off", err, Env)
	}
	c.Dir = filepath.Join(user, "nasml", "xla")
	return c, nil
}

// Key is the SHA-256 of all that a program depends on.
type Key [sha256.Size]byte

// KeyOf is the key of parts, whose order and borders count.
func KeyOf(parts ...[]byte) Key {
	h := sha256.New()
	for _, part := range parts {
		_ = binary.Write(h, binary.LittleEndian, int64(len(part))) // a hash takes all
		h.Write(part)
	}
	return Key(h.Sum(nil))
}

func (k Key) String() string { return hex.EncodeToString(k[:]) }

// The suffixes of the files.
const (
	programSuffix = ".program"
	nextSuffix    = ".next"
	lockSuffix    = ".lock"
	sumSuffix     = ".sum"
)

func (c *Cache) path(k Key, suffix string) string { return filepath.Join(c.Dir, k.String()+suffix) }

// magic begins every program; the number counts the formats.
const magic = "nasml program 1\n"

// head is what stands before a program's bytes.
func head(k Key, program []byte) []byte {
	sum := sha256.Sum256(program)
	h := append([]byte(magic), k[:]...)
	h = binary.LittleEndian.AppendUint64(h, uint64(len(program)))
	return append(h, sum[:]...)
}

// Get returns the program of a key, nil if there is none or where the folder or the file is not the user's own (see
// [files.Private]). A file that is not wholly what was written is removed.
func (c *Cache) Get(k Key) []byte { return c.get(k, programSuffix) }

// Next are the programs that SetNext was given for a key.
func (c *Cache) Next(k Key) (programs []Key) {
	for part := range slices.Chunk(c.get(k, nextSuffix), len(k)) {
		if len(part) == len(k) {
			programs = append(programs, Key(part))
		}
	}
	return programs
}

// SetNext keeps which programs a process with this key asks for.
func (c *Cache) SetNext(k Key, programs []Key) error {
	var list []byte
	for _, p := range programs {
		list = append(list, p[:]...)
	}
	return c.write(c.path(k, nextSuffix), append(head(k, list), list...))
}

func (c *Cache) get(k Key, suffix string) []byte {
	file := c.path(k, suffix)
	data, err := c.read(file)
	if err != nil {
		return nil
	}
	size := len(head(k, nil))
	if len(data) < size || !bytes.Equal(data[:size], head(k, data[size:])) {
		os.Remove(file)
		return nil
	}
	now := time.Now()
	_ = os.Chtimes(file, now, now) // used last; where it cannot be said, it goes the sooner
	return data[size:]
}

// read reads a file that nobody else could write.
func (c *Cache) read(file string) ([]byte, error) {
	err := files.Private(c.Dir)
	var data []byte
	if err == nil {
		data, err = files.ReadPrivate(file)
	}
	if c.Refused != nil && errors.Is(err, files.ErrNotPrivate) {
		c.Refused(err)
	}
	return data, err
}

// Size is how many bytes the program of a key has, 0 if there is none.
func (c *Cache) Size(k Key) int {
	info, err := os.Stat(c.path(k, programSuffix))
	if err != nil {
		return 0
	}
	return max(0, int(info.Size())-len(head(k, nil)))
}

// Drop removes the program of a key.
func (c *Cache) Drop(k Key) { os.Remove(c.path(k, programSuffix)) }

// Put keeps a program, whole or not at all, and makes room for it. A program larger than the limit is not kept.
func (c *Cache) Put(k Key, program []byte) error {
	if int64(len(program)) > c.Limit {
		return nil
	}
	data := append(head(k, program), program...)
	if err := c.write(c.path(k, programSuffix), data); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.room -= int64(len(data)); c.room > 0 {
		return nil
	}
	return c.trim()
}

// write writes a file at one stroke.
func (c *Cache) write(name string, data []byte) error {
	if err := c.Prepare(); err != nil {
		return err
	}
	return files.Write(name, 0o600, func(f *os.File) error {
		_, err := f.Write(data)
		return err
	})
}

// Prepare makes the folder. One that is not the user's or root's, or in which others may
// write, is refused: what lies there is run.
func (c *Cache) Prepare() error {
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return err
	}
	if err := files.Private(c.Dir); err != nil {
		return fmt.Errorf("%w, or set %s to another folder", err, Env)
	}
	return nil
}

// ours reports whether a file is one that the cache writes.
func ours(name string) bool {
	key, suffix, _ := strings.Cut(name, ".")
	_, err := hex.DecodeString(key)
	known := slices.Contains([]string{programSuffix, nextSuffix, lockSuffix, sumSuffix}, "."+suffix)
	return files.IsTemp(name) || known && err == nil && len(key) == 2*len(Key{})
}

// entries lists the cache's files with a suffix, of which some may be gone already.
func (c *Cache) entries(suffix string) ([]fs.FileInfo, error) {
	list, err := os.ReadDir(c.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var out []fs.FileInfo
	for _, e := range list {
		if !ours(e.Name()) || !strings.HasSuffix(e.Name(), suffix) {
			continue
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			out = append(out, info)
		}
	}
	return out, nil
}

// abandoned is the age at which a file that is being written, or a lock, was left by a process that died.
const abandoned = 24 * time.Hour

// trim removes the programs that were not used for longest, until the rest is within the limit, and what dead processes
// left. It counts the folder, and then not again before a sixteenth of the limit, or all that is free, was written:
// other processes write, too.
func (c *Cache) trim() error {
	all, err := c.entries("")
	if err != nil {
		return fmt.Errorf("making room for compiled programs: %w", err)
	}
	slices.SortFunc(all, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	total := int64(0)
	for _, info := range all {
		switch name := info.Name(); {
		case strings.HasSuffix(name, programSuffix), strings.HasSuffix(name, nextSuffix):
			if total+info.Size() > c.Limit {
				os.Remove(filepath.Join(c.Dir, name))
			} else {
				total += info.Size()
			}
		case time.Since(info.ModTime()) < abandoned:
		case files.IsTemp(name), strings.HasSuffix(name, lockSuffix):
			os.Remove(filepath.Join(c.Dir, name))
		}
	}
	c.room = min(c.Limit/16, c.Limit-total)
	return nil
}

// patience is how long a process waits for another that compiles the same program, before it compiles it, too.
const patience = 10 * time.Minute

// Lock waits until no other process, and no other goroutine, compiles the program of a key. If no lock is available, it
// does without: then two compile the same, and both are right. release has to be called.
func (c *Cache) Lock(k Key) (release func()) {
	name := c.path(k, lockSuffix)
	for start := time.Now(); c.Prepare() == nil && time.Since(start) < patience; time.Sleep(20 * time.Millisecond) {
		lock, err := files.TryLock(name, 0o600)
		if lock != nil {
			return lock.Remove
		}
		if err != nil {
			break
		}
	}
	return func() {}
}

// FileSum is the SHA-256 of a file. It is kept in the cache under the file's path, size and time, so that a plugin of
// 260 MB is read once and not once a process.
func (c *Cache) FileSum(path string) (Key, error) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return Key{}, err
	}
	f, err := os.Open(path)
	if err != nil {
		return Key{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Key{}, err
	}
	of := KeyOf([]byte(path), fmt.Appendf(nil, "%d %d", info.Size(), info.ModTime().UnixNano()))
	if data, err := c.read(c.path(of, sumSuffix)); err == nil && len(data) == 2*sha256.Size {
		if sum := Key(data[:sha256.Size]); KeyOf(sum[:]) == Key(data[sha256.Size:]) {
			return sum, nil
		}
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return Key{}, fmt.Errorf("reading %s: %w", path, err)
	}
	sum := Key(h.Sum(nil))
	check := KeyOf(sum[:])
	_ = c.write(c.path(of, sumSuffix), append(sum[:], check[:]...)) // else it is read again
	return sum, nil
}

// Usage counts the programs and their bytes.
func (c *Cache) Usage() (n int, bytes int64, err error) {
	all, err := c.entries(programSuffix)
	for _, info := range all {
		bytes += info.Size()
	}
	return len(all), bytes, err
}

// Clear removes all programs, and nothing that the cache did not write.
func (c *Cache) Clear() error {
	all, err := c.entries("")
	if err != nil {
		return err
	}
	for _, info := range all {
		if err := os.Remove(filepath.Join(c.Dir, info.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
