// Package study runs studies: a figure or theorem splits its work into cases, each a trial with a record in the run
// store. It has the pool of workers, the progress, and what all figures do with shipped records and with parameters.
package study

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/trial"
)

// Study is a list of cases of one kind.
type Study struct {
	ID         string     // of its trials, part of their keys: "oymak2021/theorem1"
	Code       *code.Kind // what computes them
	Title      string     // what the progress calls it; empty: ID
	Shipped    fs.FS      // files with records in records/NAME, NAME being the last part of ID; may be nil
	StoredOnly bool       // read records only; a missing one is nil
	Workers    int        // cases at a time; 0: one a core
	// Amount is the work of a trial by the settings in its key, in the seconds of [Case.Forecast] where cases have one
	// and else in their units, so that trials tell what others will take; 0: not known. nil: not known of any.
	Amount func(params json.RawMessage) float64
	// Device opens what the cases are computed on, before the first missing one; nil: this machine's Go, in float64.
	Device func() (backend, device string, err error)
}

// Case is one trial and how it is computed.
type Case struct {
	Params any        // what the numbers depend on besides seed and data; marshals to a JSON object
	Seed   uint64     // of all random streams
	Data   string     // fingerprint of the data; empty if there are none
	Code   *code.Kind // nil: the study's
	Label  string     // for the progress and for errors: "h = 8, seed 3"; may be empty
	Units  int        // of work, of about equal time all over the study; 0: 1
	Work   float64    // what its time goes with, for forecasts, where units are too rough; 0: Units
	// Forecast is how many seconds the case will take on this machine, before anything of
	// it has run; 0 or nil: not known.
	Forecast func() float64
	// Run computes the case. It may call step with units that are done, which
	// are Units in all; what it does not count is counted when it returns.
	Run func(ctx context.Context, step Step) (trial.Result, error)
}

// Step counts units of work that are done and says what is going on.
type Step func(units int, note string)

// Host names this machine's Go in a record: float64 on its processors.
const Host = "host"

// Run reads or computes the record of every case, in their order: what the store lacks is computed, as many cases at a
// time as Workers says, each stored as it ends. Cancelling ctx ends it with the finished cases stored. An error of a
// case ends the study and names the case.
func (s Study) Run(ctx context.Context, cases []Case) ([]*runs.Record, error) {
	records, err := s.Batches(ctx, [][]Case{cases}, runs.Options{},
		func(ctx context.Context, _ int, job *runs.Job, progress runs.Progress) error {
			group, ctx := errgroup.WithContext(ctx)
			group.SetLimit(cmp.Or(max(0, s.Workers), runtime.GOMAXPROCS(0)))
			for i, at := range job.Index {
				group.Go(func() error {
					if err := ctx.Err(); err != nil {
						return err
					}
					return runCase(ctx, cases[at], job, i, progress)
				})
			}
			return group.Wait()
		})
	if err != nil {
		return nil, err
	}
	return records[0], nil
}

func runCase(ctx context.Context, c Case, job *runs.Job, i int, progress runs.Progress) error {
	counted := 0
	var lock sync.Mutex
	result, err := c.Run(ctx, func(units int, note string) {
		lock.Lock()
		defer lock.Unlock()
		counted += units
		progress.Step(units, note)
	})
	if err == nil {
		err = job.Done(i, result)
	}
	if err != nil {
		return c.wrap(err)
	}
	progress.Step(max(0, c.units()-counted), c.Label)
	return nil
}

func (c Case) wrap(err error) error {
	if c.Label == "" {
		return fmt.Errorf("seed %d: %w", c.Seed, err)
	}
	return fmt.Errorf("%s, seed %d: %w", c.Label, c.Seed, err)
}

func (c Case) units() int { return max(1, c.Units) }

// Amount is how much work the case is, for forecasts: its Work, or else its units.
func (c Case) Amount() float64 { return cmp.Or(c.Work, float64(c.units())) }

// Seconds is the case's forecast, 0 where it has none.
func (c Case) Seconds() float64 {
	if c.Forecast == nil {
		return 0
	}
	return c.Forecast()
}

// Batches is [Study.Run] for groups of cases that are computed together, as those of one graph, one group after
// another under one progress. fn gets a job of all missing trials of a group, with a checkpoint of its own, as
// runs.Store.Compute makes it, counts the units of its cases and reports each of its trials. Run of a case is not
// called.
func (s Study) Batches(ctx context.Context, groups [][]Case, o runs.Options,
	fn func(ctx context.Context, group int, job *runs.Job, progress runs.Progress) error) ([][]*runs.Record, error) {
	records := make([][]*runs.Record, len(groups))
	if len(slices.Concat(groups...)) == 0 {
		return records, nil
	}
	store, err := s.Store(ctx)
	if err != nil {
		return nil, err
	}
	progress := runs.Silent
	if !s.StoredOnly {
		progress = runs.ProgressFrom(ctx)
		progress.Start(units(slices.Concat(groups...)), cmp.Or(s.Title, s.ID))
		defer progress.Done()
	}
	forecast := s.Forecasts(store, slices.Concat(groups...))
	for i, cases := range groups {
		compute := func(ctx context.Context, job *runs.Job) error { return fn(ctx, i, job, progress) }
		records[i], err = s.group(ctx, store, cases, o, progress, forecast, compute)
		if err != nil {
			return nil, err
		}
	}
	return records, nil
}

// group reads or computes the cases of a group. Units of cases that were stored
// before are done, but say nothing about the pace.
func (s Study) group(ctx context.Context, store *runs.Store, cases []Case, o runs.Options, progress runs.Progress,
	forecast func(c Case) float64, fn func(ctx context.Context, job *runs.Job) error) ([]*runs.Record, error) {
	trials, err := s.Trials(cases)
	if err != nil {
		return nil, err
	}
	if s.StoredOnly {
		return store.Stored(trials)
	}
	left := 0 // units of cases that nobody has begun
	o.Forecast = func(i int) float64 { return forecast(cases[i]) }
	o.Missing = func(at []int) { left = s.announce(progress, cases, at, forecast) }
	records, err := store.Compute(ctx, trials, o, func(ctx context.Context, job *runs.Job) error {
		var err error
		job.Backend, job.Device, job.Modules = Host, "cpu", code.Modules()
		if s.Device != nil {
			if job.Backend, job.Device, err = s.Device(); err != nil {
				return err
			}
			progress.Step(0, compiling)
		}
		for _, at := range job.Index {
			left -= cases[at].units()
		}
		return fn(ctx, job)
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.ID, err) // what nobody has begun is not done
	}
	progress.Skip(max(0, left)) // by other processes
	return records, nil
}

// compiling comes first on a device, and takes longer than many a step.
const compiling = "compiling"

// announce tells a progress what is to come if the store has no record of the cases at some places, and how many units
// these are: before a device is opened for what has a forecast, so that it can be seen and ended.
func (s Study) announce(progress runs.Progress, cases []Case, missing []int, forecast func(c Case) float64) (left int) {
	seconds := 0.0
	for _, at := range missing {
		seconds += forecast(cases[at])
		left += cases[at].units()
	}
	progress.Skip(units(cases) - left)
	if left > 0 {
		runs.Expect(progress, time.Duration(seconds/float64(left)*float64(time.Second)))
	}
	if s.Device != nil && seconds > 0 {
		runs.Tell(progress, compiling)
	}
	return left
}

func units(cases []Case) int {
	sum := 0
	for _, c := range cases {
		sum += c.units()
	}
	return sum
}

// Store is the run store that ctx carries, with the shipped records behind it.
func (s Study) Store(ctx context.Context) (*runs.Store, error) {
	if s.Shipped == nil {
		return runs.FromContext(ctx)
	}
	return runs.FromContextWith(ctx, s.Shipped, path.Base(s.ID))
}

// Trials are the trials of cases.
func (s Study) Trials(cases []Case) ([]runs.Trial, error) {
	trials := make([]runs.Trial, len(cases))
	for i, c := range cases {
		kind := s.Code
		if c.Code != nil {
			kind = c.Code
		}
		version, err := kind.Version()
		if err != nil {
			return nil, err
		}
		trials[i] = runs.Trial{Figure: s.ID, Params: c.Params, Seed: c.Seed, Code: version, Data: c.Data}
	}
	return trials, nil
}
