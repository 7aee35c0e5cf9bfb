package runs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"

	"github.com/nasml/lab/internal/files"
)

// Options changes how [Store.Compute] works. The zero value is ready to use.
type Options struct {
	MaxBatch int           // at most so many trials in one job, so that a graph fits into memory; 0: no limit
	Wait     time.Duration // how often to look after a trial that another process computes; 0: 200 ms
	// Forecast is how many seconds trial i will take on this machine; 0: not known. It is
	// asked of trials that are not stored, where a [Part] looks; nil: of none.
	Forecast func(i int) float64
	// Missing is told once, before anything is computed, which trials are not stored; of
	// those that are there twice the first. Under a [Part] they are that part's.
	Missing func(at []int)
}

// Compute returns the record of every trial, in order. Stored records are read. The other trials, or those of a [Part],
// are locked and handed to fn in one job, so that they can run in one graph; it waits for trials that another process
// computes. Two processes never compute one trial at the same time, and a process that dies frees its trials.
//
// Finished trials are stored at once: cancelling ctx, an error or a crash loses none of them. It returns an error if a
// trial has no key, if fn fails or returns without a result for each trial, and if the store cannot be written.
func (s *Store) Compute(
	ctx context.Context, trials []Trial, o Options, fn func(context.Context, *Job) error,
) (_ []*Record, err error) {
	defer func() { partFrom(ctx).note(err) }()
	keys := make([]string, len(trials))
	for i, t := range trials {
		var err error
		if keys[i], err = t.Key(); err != nil {
			return nil, err
		}
	}
	records := make([]*Record, len(trials))
	part := partFrom(ctx)
	idle := s.now() // since when there is nothing to do but wait
	for {
		missing, err := s.fill(records, keys)
		if err != nil {
			return nil, err
		}
		missing = slices.DeleteFunc(missing, func(i int) bool { return !part.has(i, len(trials), keys[i]) })
		if o.Missing != nil {
			o.Missing(missing)
			o.Missing = nil
		}
		if len(missing) == 0 {
			return records, part.fill(s, trials, keys, records, o.Forecast)
		}
		ran, err := s.jobs(ctx, trials, keys, missing, o.MaxBatch, fn)
		if ran {
			idle = s.now()
		} else if err == nil {
			err = waitForOthers(ctx, o.Wait, s.now().Sub(idle), len(missing))
		}
		if err != nil {
			return nil, err
		}
	}
}

// jobs computes what nobody else computes of the missing trials, job by job, and reports whether there was anything.
// What it passes over, because another has it, it does not look at again.
func (s *Store) jobs(
	ctx context.Context, trials []Trial, keys []string, missing []int, most int, fn func(context.Context, *Job) error,
) (ran bool, err error) {
	for len(missing) > 0 {
		if err := ctx.Err(); err != nil {
			return ran, err
		}
		job, rest, err := s.lockJob(ctx, trials, keys, missing, most)
		if job == nil || err != nil {
			return ran, err
		}
		ran, missing = true, rest
		if err := job.run(ctx, fn); err != nil {
			return ran, err
		}
	}
	return ran, nil
}

// fill reads what the store has and returns the positions of the first trial of every key that it lacks.
func (s *Store) fill(records []*Record, keys []string) (missing []int, err error) {
	var at []int // positions of the first trial of every key that is not yet read
	var wanted []string
	seen := map[string]bool{}
	for i, key := range keys {
		if records[i] == nil && !seen[key] {
			at, wanted, seen[key] = append(at, i), append(wanted, key), true
		}
	}
	for n, one := range s.readMany(wanted) {
		switch {
		case one.err == nil:
			records[at[n]] = one.record
		case errors.Is(one.err, ErrNotFound):
			missing = append(missing, at[n])
		default:
			return nil, one.err
		}
	}
	first := map[string]*Record{}
	for i, key := range keys { // trials that are there twice
		if records[i] != nil {
			first[key] = records[i]
		}
		records[i] = first[key]
	}
	return missing, nil
}

// lockJob takes at most so many of the missing trials, those that nobody else computes. It
// never waits while it holds a lock, so that no two processes wait for each other. It
// returns no job if all are taken or finished by now, and the missing that it did not reach.
func (s *Store) lockJob(
	ctx context.Context, trials []Trial, keys []string, missing []int, most int,
) (_ *Job, rest []int, err error) {
	job := &Job{store: s, scale: Scale(ctx), begun: s.now()}
	for len(missing) > 0 && (most <= 0 || len(job.Trials) < most) {
		n := len(missing)
		if most > 0 {
			n = min(n, most-len(job.Trials))
		}
		if err := job.take(missing[:n], trials, keys); err != nil {
			job.release()
			return nil, nil, err
		}
		missing = missing[n:]
	}
	if len(job.Trials) == 0 {
		return nil, missing, nil
	}
	job.done = make([]bool, len(job.Trials))
	return job, missing, nil
}

// take adds those of the trials at some positions that no other process computes or, since we looked, has finished.
func (j *Job) take(at []int, trials []Trial, keys []string) error {
	locks := make([]Lock, len(at))
	err := sideBySide(len(at), func(n int) (err error) {
		locks[n], err = j.store.lockMissing(keys[at[n]])
		return err
	})
	for n, i := range at {
		if locks[n] != nil {
			j.locks = append(j.locks, locks[n])
			j.Trials, j.Index, j.keys = append(j.Trials, trials[i]), append(j.Index, i), append(j.keys, keys[i])
		}
	}
	return err
}

// lockMissing locks a key that has no record. It returns nil where another process has it or a record is there.
func (s *Store) lockMissing(key string) (Lock, error) {
	if _, err := s.read(key); err == nil { // cheaper than a lock
		return nil, nil
	}
	lock, err := s.medium.Lock(lockName(key))
	if lock == nil {
		return nil, err
	}
	if _, err := s.readLocked(key); !errors.Is(err, ErrNotFound) {
		lock.Unlock()
		return nil, err
	}
	return lock, nil
}

// waitForOthers pauses before the next look at trials that others compute: at least the time given, and a twentieth of
// what it has waited so far, so that many waiting processes do not overload a bucket. A random part keeps them apart.
func waitForOthers(ctx context.Context, wait, waited time.Duration, missing int) error {
	if wait <= 0 {
		wait = 200 * time.Millisecond
	}
	wait = max(wait, waited/20)
	wait += rand.N(wait/4 + 1)
	ProgressFrom(ctx).Step(0, fmt.Sprintf("waiting for another process with %d trials", missing))
	return files.Sleep(ctx, wait)
}

// Job is a set of trials that this process alone computes, with one checkpoint for all of them.
//
// The checkpoint belongs to exactly this set. Trials that run in step, as
// those of one graph do, should therefore be reported together by DoneAll.
type Job struct {
	Trials  []Trial // what to compute
	Index   []int   // position of each in the trials given to Compute
	Backend string  // to be set by the computation for the records: "xla:cpu"
	Device  string  // likewise
	// Modules are versions of what computes besides this module, for the records.
	Modules map[string]string

	store *Store
	scale string
	keys  []string
	locks []Lock
	done  []bool

	watch     watch
	begun     time.Time // when this process began
	before    meta      // what earlier processes spent on it
	saved     time.Time // end of the last Save
	savedTook time.Duration

	pause func(time.Duration) error // ends early with an error; nil: nothing is waited for
	tell  func(note string)
}

// run calls fn and checks that it did what it should.
func (j *Job) run(ctx context.Context, fn func(context.Context, *Job) error) error {
	defer j.release()
	j.watch = startWatch()
	defer j.watch.end()
	j.waitUnder(ctx)
	err := sideBySide(len(j.keys), func(i int) error { return j.store.medium.Remove(failedName(j.keys[i])) })
	if err != nil {
		return err
	}
	if err := fn(ctx, j); err != nil {
		if ctx.Err() == nil {
			j.noteFailure(err)
		}
		return err
	}
	if i := slices.Index(j.done, false); i >= 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		return fmt.Errorf("computation of %s ended without a result for trial %d of %d", j.Trials[i].Figure, i,
			len(j.done))
	}
	return j.store.medium.Remove(j.checkpointName())
}

func (j *Job) release() {
	_ = sideBySide(len(j.locks), func(i int) error {
		j.locks[i].Unlock()
		return nil
	})
}

// Done stores the result of trial i, whole or not at all; it may be called from several
// goroutines for different i. It returns an error if a number is not finite. A result that
// another machine has stored meanwhile stays. If the disk is full it waits for room.
func (j *Job) Done(i int, result Result) error {
	line, err := j.encode(i, result, j.use())
	if err != nil {
		return err
	}
	return j.keep([]int{i}, [][]byte{line})
}

// DoneAll is Done for all trials, in their order: all of them or none in a folder; in a bucket a crash may leave some.
func (j *Job) DoneAll(results []Result) error {
	if len(results) != len(j.Trials) {
		return fmt.Errorf("%d results for %d trials", len(results), len(j.Trials))
	}
	at, lines, use := make([]int, len(results)), make([][]byte, len(results)), j.use()
	for i, r := range results {
		var err error
		if lines[i], err = j.encode(i, r, use); err != nil {
			return err
		}
		at[i] = i
	}
	return j.keep(at, lines)
}

func (j *Job) encode(i int, result Result, use Use) ([]byte, error) {
	if i < 0 || i >= len(j.Trials) || j.done[i] {
		return nil, fmt.Errorf("result for trial %d of %d: there is no such trial, or it has its result", i,
			len(j.Trials))
	}
	if err := result.Check(); err != nil {
		return nil, fmt.Errorf("%s, trial %s: %w", j.Trials[i].Figure, j.keys[i][:12], err)
	}
	record := &Record{
		Key: j.keys[i], Trial: j.Trials[i], Scale: j.scale,
		Values: result.Values, Series: result.Series,
		Backend: j.Backend, Device: j.Device,
		Host:     thisHost(),
		Versions: j.versions(),
		Started:  j.started(), Seconds: j.seconds(), Use: use,
		Batch: len(j.Trials), Resumed: j.before.Resumed,
	}
	line, err := record.encode()
	if err != nil {
		return nil, fmt.Errorf("record %s: %w", record.Key, err)
	}
	return line, nil
}

func (j *Job) versions() map[string]string {
	all := maps.Clone(versions())
	maps.Copy(all, j.Modules)
	return all
}

func (j *Job) started() time.Time {
	if !j.before.Started.IsZero() {
		return j.before.Started
	}
	return j.begun.UTC().Truncate(time.Millisecond)
}

func (j *Job) seconds() float64 {
	return j.before.Seconds + j.store.now().Sub(j.begun).Seconds()
}

// use is what the batch took so far.
func (j *Job) use() Use {
	if j.before.Seconds == 0 {
		return j.watch.use()
	}
	return j.before.then(j.watch.use())
}

// meta is the first line of a checkpoint; the caller's state follows it, then the SHA-256 of both.
type meta struct {
	Started time.Time `json:"started"`
	Seconds float64   `json:"seconds"`
	Use
	Resumed int    `json:"resumed"`
	Of      string `json:"of,omitempty"` // the name it was saved by, which says which trials; those before had none
}

// Between two tries to write what found no room on a disk: at first, and at most.
const (
	firstPause = time.Second
	lastPause  = 30 * time.Second
)

// block is what a file takes at least on most disks, bytes.
const block = 4096

// noRoom reports whether a disk or a quota is full, which somebody may change.
func noRoom(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// keep stores encoded records of trials, all or none of them. Where the disk is full they
// stay in memory, the user is told how much room they need, and writing is tried again
// until there is room or ctx ends: what took hours to compute is not thrown away.
func (j *Job) keep(at []int, lines [][]byte) error {
	pause := firstPause
	for {
		err := j.place(at, lines)
		if err == nil || !noRoom(err) || j.pause == nil {
			return err
		}
		j.tell(fmt.Sprintf("%v; meanwhile %s kept in memory, which %s at %s: writing is tried again", err,
			results(len(lines)), room(lines), j.store.Dir()))
		if stopped := j.pause(pause); stopped != nil {
			return fmt.Errorf("%w; the results of %d trials were waiting for room and are lost: %w", err,
				len(lines), stopped)
		}
		pause = min(2*pause, lastPause)
	}
}

func results(n int) string {
	if n == 1 {
		return "the result of a trial is"
	}
	return fmt.Sprintf("the results of %d trials are", n)
}

// room says what records need on a disk, where each takes whole blocks and has to be listed in a folder.
func room(lines [][]byte) string {
	bytes := 0
	for _, line := range lines {
		bytes += (len(line)+block-1)/block*block + block
	}
	return fmt.Sprintf("needs %.3g MB", float64(bytes)/1e6)
}

func (j *Job) place(at []int, lines [][]byte) error {
	drafts := make([]Draft, len(at))
	for n, i := range at {
		drafts[n] = Draft{recordName(j.keys[i]), func(w io.Writer) error {
			_, err := w.Write(lines[n])
			return err
		}}
	}
	if err := j.store.medium.Put(true, drafts...); err != nil && !errors.Is(err, ErrTaken) {
		return err
	}
	for _, i := range at {
		j.done[i] = true
	}
	return nil
}

// waitUnder lets the job wait, and speak, as ctx has it.
func (j *Job) waitUnder(ctx context.Context) {
	j.tell = func(note string) { Tell(ProgressFrom(ctx), note) }
	j.pause = func(d time.Duration) error { return files.Sleep(ctx, d) }
}
