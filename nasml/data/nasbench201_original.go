package data

import (
	"archive/zip"
	"cmp"
	"compress/bzip2"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
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
	ctx context.Context, open func(io.Reader) (io.Reader, error), advance func(done, total int64),
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

// dropped201 are keys that no column needs: weights, losses and curves, nearly all of the file.
var dropped201 = map[string]bool{
	"net_state_dict": true, "train_acc1es": true, "train_acc5es": true, "train_losses": true,
	"eval_losses": true, "eval_times": true, "latency": true, "arch_config": true,
}

// keep201 is the onSet of the benchmark's files. It keeps a curve's last epoch and the sum of times, and drops all
// else, so that the file need not fit in memory. It is idempotent: a pickle may name a dictionary again.
func (u *unpickler) keep201(key string, value any) any {
	d, isDict := value.(*dict)
	switch {
	case dropped201[key]:
		if isDict {
			d.entries = nil
		}
		return nil
	case isDict && key == "eval_acc1es":
		d.entries = lastEpochs(d)
	case isDict && key == "train_times":
		d.entries = []keyed{{0, sum201(d)}}
	case isDict && key == "all_results":
		trials, err := takeTrials(d)
		if err != nil {
			u.fail("%w", err)
		}
		return trials
	}
	return value
}

// lastEpochs keeps the last epoch of each set, of entries such as "x-valid@199".
func lastEpochs(d *dict) []keyed {
	last := map[string]int{}
	for _, e := range d.entries {
		if set, epoch, ok := cutEpoch(e.key); ok {
			last[set] = max(last[set], epoch)
		}
	}
	var kept []keyed
	for _, e := range d.entries {
		if set, epoch, ok := cutEpoch(e.key); ok && last[set] == epoch {
			kept = append(kept, e)
		}
	}
	return kept
}

func cutEpoch(key any) (set string, epoch int, ok bool) {
	text, _ := key.(string)
	set, digits, found := strings.Cut(text, "@")
	epoch, err := strconv.Atoi(digits)
	return set, epoch, found && err == nil
}

func sum201(d *dict) any {
	total := 0.0
	for _, e := range d.entries {
		x, ok := float201(e.value)
		if !ok {
			return e.value // reported where it is used
		}
		total += x
	}
	return total
}

func float201(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case int:
		return float64(v), true
	}
	return 0, false
}

// takeTrials reads the trainings of one architecture and schedule from all_results, a dictionary by (task, seed).
func takeTrials(d *dict) ([]trial201, error) {
	trials := make([]trial201, 0, len(d.entries))
	for _, e := range d.entries {
		key, ok := e.key.(tuple)
		result, isDict := e.value.(*dict)
		if !ok || len(key) != 2 || !isDict {
			return nil, fmt.Errorf("found %s under %s in all_results, expected a dictionary under (data set, seed)",
				describe(e.value), describe(e.key))
		}
		t, err := takeTrial(key, result)
		if err != nil {
			return nil, fmt.Errorf("all_results (%s, %s): %w", describe(key[0]), describe(key[1]), err)
		}
		trials = append(trials, t)
	}
	slices.SortFunc(trials, func(a, b trial201) int {
		return cmp.Or(cmp.Compare(a.task, b.task), cmp.Compare(a.seed, b.seed))
	})
	return trials, nil
}

func takeTrial(key tuple, d *dict) (trial201, error) {
	name, _ := key[0].(string)
	t := trial201{task: Task201(name), accuracy: map[string]float64{}}
	tasks := []Task201{TaskCIFAR10Valid, TaskCIFAR10, TaskCIFAR100, TaskImageNet16}
	if !slices.Contains(tasks, t.task) {
		return t, fmt.Errorf("found data set %s, expected one of %v", describe(key[0]), tasks)
	}
	var ok [4]bool
	t.seed, ok[0] = key[1].(int)
	t.epochs, ok[1] = d.get("epochs").(int)
	t.params, ok[2] = float201(d.get("params"))
	evaluated, isDict := d.get("eval_acc1es").(*dict)
	ok[3] = isDict
	if i := slices.Index(ok[:], false); i >= 0 {
		field := []string{"seed", "epochs", "params", "eval_acc1es"}[i]
		return t, fmt.Errorf("found %s for %s, expected a number, or a dictionary for eval_acc1es",
			describe(d.get(field)), field)
	}
	for _, e := range evaluated.entries {
		set, epoch, _ := cutEpoch(e.key)
		x, ok := float201(e.value)
		if !ok || x < 0 || x > 100 || epoch != t.epochs-1 {
			return t, fmt.Errorf("found %s for %v, expected an accuracy from 0 to 100 percent after epoch %d",
				describe(e.value), e.key, t.epochs-1)
		}
		t.accuracy[set] = x
	}
	if times, isDict := d.get("train_times").(*dict); isDict {
		if t.seconds, isDict = float201(times.get201()); !isDict {
			return t, fmt.Errorf("found %s in train_times, expected seconds", describe(times.get201()))
		}
	}
	return t, nil
}

func (d *dict) get201() any {
	if len(d.entries) != 1 {
		return nil
	}
	return d.entries[0].value
}

func (o *original201) takeArchs(d *dict) error {
	list, ok := d.get("meta_archs").(*[]any)
	if !ok {
		return fmt.Errorf("found %s for meta_archs: %w, expected a list of architectures",
			describe(d.get("meta_archs")), ErrBroken)
	}
	for i, v := range *list {
		text, _ := v.(string)
		if _, err := ParseArch201(text); err != nil {
			return fmt.Errorf("architecture %d of meta_archs: %w: %w", i, ErrBroken, err)
		}
		o.archs = append(o.archs, text)
	}
	return nil
}

func (o *original201) takeResult(index int, d *dict) (result201, error) {
	r := result201{}
	for _, e := range d.entries {
		name, _ := e.key.(string)
		epochs, known := schedules201[name]
		state, isDict := e.value.(*dict)
		if !known { // 1 and 90 epochs are of the other search space
			continue
		}
		if !isDict {
			return nil, fmt.Errorf("architecture %d: found %s for %s, expected a dictionary", index, describe(e.value),
				name)
		}
		if arch := state.get("arch_str"); arch != o.archs[index] {
			return nil, fmt.Errorf("architecture %d: found results of %s, expected those of %s, as in meta_archs",
				index, describe(arch), o.archs[index])
		}
		trials, ok := state.get("all_results").([]trial201)
		if !ok {
			return nil, fmt.Errorf("architecture %d: found %s for all_results, expected a dictionary", index,
				describe(state.get("all_results")))
		}
		for _, t := range trials {
			if t.epochs != epochs {
				return nil, fmt.Errorf("architecture %d, schedule %s: found a training of %d epochs, expected %d",
					index, name, t.epochs, epochs)
			}
		}
		r[epochs] = trials
	}
	if len(r) == 0 {
		return nil, fmt.Errorf("architecture %d: found none of the schedules 12 and 200 (less and full), expected both",
			index)
	}
	return r, nil
}
