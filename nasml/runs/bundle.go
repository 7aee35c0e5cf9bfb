package runs

import (
	"bytes"
	"compress/gzip"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// bundle is a file system of records that are only read, loaded once.
type bundle struct {
	fsys    fs.FS
	builtIn bool // part of this program
	once    sync.Once
	lines   map[string]*line // by the keys that they say they have
	broken  []*Broken        // that say none, and files
}

func newBundle(files, folder fs.FS) *bundle {
	_, builtIn := files.(embed.FS)
	return &bundle{fsys: folder, builtIn: builtIn}
}

// line is a line of a bundle, of which a record is made when it is asked for: a figure asks for few.
type line struct {
	where   string
	checked func() (*Record, error) // believed only if its sum and key are right
	// record is checked, but of a zipped file of this program, which has a sum of its own, only read: tests check it
	// and "store verify" does. That takes a third of the time.
	record func() (*Record, error)
}

// records are the bundle's records by key, all of them checked, and what is broken.
func (b *bundle) records() (map[string]*Record, []*Broken) {
	return b.all(func(l *line) (*Record, error) { return l.checked() })
}

// all are the bundle's records as read makes them of lines, by key, and what is broken.
func (b *bundle) all(read func(*line) (*Record, error)) (map[string]*Record, []*Broken) {
	lines := slices.SortedFunc(maps.Values(b.load()), func(a, b *line) int { return strings.Compare(a.where, b.where) })
	_ = sideBySide(len(lines), func(i int) error {
		_, err := read(lines[i])
		return err
	})
	found, broken := map[string]*Record{}, slices.Clone(b.broken)
	for _, l := range lines {
		if r, err := read(l); err != nil {
			broken = append(broken, &Broken{Path: l.where, Reason: err.Error()})
		} else {
			found[r.Key] = r
		}
	}
	return found, broken
}

func (b *bundle) load() map[string]*line {
	b.once.Do(func() {
		b.lines = map[string]*line{}
		err := fs.WalkDir(b.fsys, ".", func(path string, entry fs.DirEntry, err error) error {
			name, zipped := strings.CutSuffix(path, ".gz")
			if ext := filepath.Ext(name); err != nil || entry.IsDir() || ext != ".json" && ext != ".jsonl" {
				return err
			}
			data, err := fs.ReadFile(b.fsys, path)
			if err != nil {
				return err
			}
			if zipped {
				data, err = unzip(data)
			}
			if err != nil { // what comes after this file can be read all the same
				b.broken = append(b.broken, &Broken{Path: path, Reason: err.Error()})
				return nil
			}
			b.loadFile(path, data, b.builtIn && zipped)
			return nil
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // a package may ship nothing
			b.broken = append(b.broken, &Broken{Path: ".", Reason: err.Error()})
		}
	})
	return b.lines
}

func unzip(data []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

func (b *bundle) loadFile(path string, data []byte, whole bool) {
	n := 0
	for text := range bytes.Lines(data) {
		n++
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		l := &line{where: fmt.Sprintf("%s:%d", path, n)}
		l.checked = sync.OnceValues(func() (*Record, error) { return decode(text) })
		l.record = l.checked
		if whole {
			l.record = sync.OnceValues(func() (*Record, error) { return parse(text) })
		}
		key := keyOfLine(text)
		before := b.lines[key]
		if before != nil {
			b.whole(before) // else nobody would say that it is broken
		}
		if key == "" || before != nil { // of another layout, broken, or there twice: the last whole line counts
			r := b.whole(l)
			if r == nil {
				continue
			}
			key = r.Key
		}
		b.lines[key] = l
	}
}

// whole is the record of a line; nil if it is broken, which the bundle then says.
func (b *bundle) whole(l *line) *Record {
	r, err := l.record()
	if err != nil {
		b.broken = append(b.broken, &Broken{Path: l.where, Reason: err.Error()})
	}
	return r
}

// keyOfLine is the key that a line begins with as this program writes it; empty if it does not.
func keyOfLine(text []byte) string {
	text, found := bytes.CutPrefix(text, []byte(`{"key":"`))
	if key := string(text[:min(len(text), 64)]); found && isKey(key) {
		return key
	}
	return ""
}
