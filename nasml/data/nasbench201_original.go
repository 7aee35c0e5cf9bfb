package data

import (
	"archive/zip"
	"compress/bzip2"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sync/errgroup"
)

// trial201 is what is kept of one training in the benchmark's own files.
type trial201 struct {
	task     Task201
	seed     int
	epochs   int
	accuracy map[string]float64 // after the last epoch, in percent, by the original's names of the sets
	seconds  float64            // of all epochs; 0 where they were not measured
	params   float64            // in millions
}

// result201 is an architecture's trainings by the length of the schedule, sorted by task and seed.
type result201 map[int][]trial201

// original201 is what is kept of the benchmark's own files.
type original201 struct {
	path    string
	release Release201
	archs   []string // by the original's index
	results map[int]result201
}

// The original's names of evaluation sets: x-valid and x-test are the halves of ori-test for TaskCIFAR100 and
// TaskImageNet16; for TaskCIFAR10Valid x-valid is the other half of the training images.
const (
	xValid  = "x-valid"
	xTest   = "x-test"
	oriTest = "ori-test"
)

// schedules201 are the schedules' names, in NATS-Bench and in NAS-Bench-201.
var schedules201 = map[string]int{"12": 12, "200": 200, "less": 12, "full": 200}

// readOriginal201 reads the authors' files: the folder NATS-tss-…-simple, NATS-tss-….pickle.pbz2, or
// NAS-Bench-201-….pth. advance, which may be nil, gets the progress.
func readOriginal201(ctx context.Context, path string, advance func(done, total int64)) (*original201, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if advance == nil {
		advance = func(int64, int64) {}
	}
	o := &original201{path: path, release: ReleaseNATS, results: map[int]result201{}}
	switch {
	case info.IsDir():
		err = o.readFolder(ctx, advance)
	case strings.HasSuffix(path, ".pbz2"):
		err = o.readWhole(ctx, func(r io.Reader) (io.Reader, error) { return bzip2.NewReader(r), nil }, advance)
	default:
		o.release = ReleaseNB201
		err = o.readWhole(ctx, skipTorchHead, advance)
	}
	if err != nil {
		return nil, err
	}
	return o, nil
}

// readFolder reads a file per architecture, several at a time.
func (o *original201) readFolder(ctx context.Context, advance func(done, total int64)) error {
	meta, err := o.readPickle("meta.pickle.pbz2")
	if err != nil {
		return err
	}
	if err := o.takeArchs(meta); err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(o.path, "meta.pickle.pbz2"), err)
	}
	results := make([]result201, len(o.archs))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range o.archs {
		advance(int64(i), int64(len(o.archs)))
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			base := fmt.Sprintf("%06d.pickle.pbz2", i)
			d, err := o.readPickle(base)
			if err == nil {
				results[i], err = o.takeResult(i, d)
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("%s: %w: %w; put an intact file in its place", filepath.Join(o.path, base), ErrBroken,
					err)
			}
			return nil // that one is missing is said once, with how many are
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for i, r := range results {
		if r != nil {
			o.results[i] = r
		}
	}
	return nil
}

func (o *original201) readPickle(base string) (*dict, error) {
	f, err := os.Open(filepath.Join(o.path, base))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return load201(bzip2.NewReader(f))
}

// readWhole reads all architectures from one file. open turns it into a stream of pickles.
func (o *original201) readWhole(
	ctx context.Context,
	open func(io.Reader) (io.Reader, error),
	advance func(done, total int64),
) error {
	source, err := watch(ctx, o.path, advance)
	if err != nil {
		return err
	}
	defer source.in.Close()
	var v *dict
	in, err := open(source)
	if err == nil {
		v, err = load201(in)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("%s: %w: %w; put an intact file in its place", o.path, ErrBroken, err)
	}
	if err := o.takeArchs(v); err != nil {
		return fmt.Errorf("%s: %w", o.path, err)
	}
	infos, ok := v.get("arch2infos").(*dict)
	if !ok {
		return fmt.Errorf("%s: found %s for arch2infos: %w, expected a dictionary", o.path,
			describe(v.get("arch2infos")), ErrBroken)
	}
	for _, e := range infos.entries {
		i, ok := e.key.(int)
		d, isDict := e.value.(*dict)
		if !ok || !isDict || i < 0 || i >= len(o.archs) {
			return fmt.Errorf("%s: found architecture %s with %s: %w, expected 0 to %d with a dictionary", o.path,
				describe(e.key), describe(e.value), ErrBroken, len(o.archs)-1)
		}
		if o.results[i], err = o.takeResult(i, d); err != nil {
			return fmt.Errorf("%s: %w: %w; put an intact file in its place", o.path, ErrBroken, err)
		}
	}
	return nil
}

func load201(in io.Reader) (*dict, error) {
	u := newUnpickler(in)
	u.onSet = u.keep201
	return u.loadDict()
}

// watched is a file whose reading can be watched and stopped.
type watched struct {
	ctx         context.Context
	in          *os.File
	done, total int64
	advance     func(done, total int64)
}

func watch(ctx context.Context, path string, advance func(done, total int64)) (*watched, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &watched{ctx: ctx, in: f, total: info.Size(), advance: advance}, nil
}

func (w *watched) Read(b []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := w.in.Read(b)
	w.done += int64(n)
	w.advance(w.done, w.total)
	return n, err
}

// ReadAt is what a zip archive is read by; what it reads is counted.
func (w *watched) ReadAt(b []byte, at int64) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := w.in.ReadAt(b, at)
	w.advance(min(at+int64(n), w.total), w.total)
	return n, err
}

// torchMagic is the first pickle of a file of torch.save before PyTorch 1.6.
const torchMagic = "0x6cfc9c46f9206aa85019" // 0x1950a86a20f9469cfc6c, the lowest byte first

// skipTorchHead returns the pickle in a file of torch.save: data.pkl of the zip archive (since PyTorch 1.6), or what
// follows the three pickles of the old format's head.
func skipTorchHead(r io.Reader) (io.Reader, error) {
	source := r.(*watched)
	head := make([]byte, 4)
	if _, err := source.in.ReadAt(head, 0); err != nil {
		return nil, fmt.Errorf("found a file of %d bytes, expected one of torch.save", source.total)
	}
	if string(head) == "PK\x03\x04" {
		return torchZip(source)
	}
	u := newUnpickler(source)
	for i, want := range []func(any) bool{
		func(v any) bool { return v == torchMagic },
		func(v any) bool { return v == 1001 }, // the version of the format
		func(v any) bool { _, ok := v.(*dict); return ok },
	} {
		v, err := u.load()
		if err != nil {
			return nil, err
		}
		if !want(v) {
			return nil, fmt.Errorf("found %s as pickle %d of the file, expected the head that torch.save writes",
				describe(v), i+1)
		}
	}
	return u.in, nil
}

func torchZip(source *watched) (io.Reader, error) {
	z, err := zip.NewReader(source, source.total)
	if err != nil {
		return nil, err
	}
	for _, f := range z.File {
		if strings.HasSuffix(f.Name, "/data.pkl") {
			return f.Open()
		}
	}
	return nil, errors.New("found no data.pkl in the archive, expected what torch.save writes")
}
