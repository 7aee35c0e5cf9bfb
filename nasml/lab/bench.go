package lab

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"time"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/trial"
)

// Bench is what trials are computed on, where they need more than their settings. Each field may be empty; those of
// the study are then the entry's.
type Bench[T any] struct {
	study.Study // ID: the name that the records are filed under; Code, Device, Workers

	// Run computes a trial; nil: its own Run(ctx, seed). Batch computes trials together, in one graph, instead of it:
	// missing trials with the same Together (nil: all of them), at most MaxBatch at a time.
	Run      func(ctx context.Context, t T, seed uint64, step study.Step) (trial.Result, error)
	Batch    func(ctx context.Context, job Job[T]) error
	Together func(t T, seed uint64) any // comparable
	MaxBatch int                        // 0: no limit

	Key     func(T) any        // what the key of a record says instead of T
	Data    func(T) string     // the fingerprint of the data
	Kind    func(T) *code.Kind // what computes a trial, where it is not the study's Code
	Label   func(T) string     // for progress and errors; nil: its String, or its part
	Units   func(T) int        // of work, where it depends on what was opened; nil: the entry's
	Work    func(T) float64    // likewise
	Seconds func(T) float64    // forecast on this machine; 0: not known
	// Cost is behind the title: the trials that are not in the store will cost, which take so many seconds.
	Cost  func(missing []T, seconds float64) string
	Note  string // a sentence for the caption: "SYNTHETIC DIGITS, not real ones."
	Facts any    // about what was opened, for pictures and claims: [Result.Facts]
	Close func() // called when all is computed
}

// Job is a [runs.Job] whose trials are computed together. It counts units by Progress and reports each trial.
type Job[T any] struct {
	*runs.Job
	Progress runs.Progress
	Of       []T   // the trials, as the job's Trials, which have the seeds
	Units    []int // of each
	groups   []int // of each
}

type one struct {
	group int
	seed  uint64
}

// Compute reads or computes the record of every seed of the groups, and files it there. An entry with Compute calls
// it for each of its studies; their fields are then all its own.
func (b Bench[T]) Compute(ctx context.Context, gs Groups[T]) error {
	all := seedsOf(gs)
	for i := range gs {
		gs[i].Records = nil
	}
	if b.Amount == nil && b.reads(gs) {
		b.Amount = b.amount
	}
	if b.Cost != nil && !b.StoredOnly && !runs.Looks(ctx) {
		missing, seconds, err := b.missing(ctx, gs, all)
		if err != nil {
			return err
		}
		b.Title += b.Cost(missing, seconds)
	}
	batches := [][]one{all}
	if b.Batch != nil && b.Together != nil {
		batches = study.By(all, func(o one) any { return b.Together(gs[o.group].Trial, o.seed) })
	}
	records, err := b.records(ctx, gs, batches)
	if err != nil {
		return err
	}
	found := map[one]*runs.Record{}
	for i, batch := range batches {
		for j, o := range batch {
			found[o] = records[i][j]
		}
	}
	for _, o := range all {
		gs[o.group].Records = append(gs[o.group].Records, found[o])
	}
	return nil
}

// seedsOf are the seeds of all groups, no more than an entry may have.
func seedsOf[T any](gs Groups[T]) (all []one) {
	seeds := 0
	for _, g := range gs {
		seeds += g.Seeds
		catalog.Enough(seeds)
	}
	for i, g := range gs {
		for _, seed := range trial.Seeds(g.Seeds) {
			all = append(all, one{i, seed + g.First})
		}
	}
	return all
}

func (b Bench[T]) records(ctx context.Context, gs Groups[T], batches [][]one) ([][]*runs.Record, error) {
	cases := make([][]study.Case, len(batches))
	for i, batch := range batches {
		cases[i] = b.casesOf(gs, batch)
	}
	if b.Batch == nil {
		records, err := b.Study.Run(ctx, cases[0])
		return [][]*runs.Record{records}, err
	}
	return b.Batches(ctx, cases, runs.Options{MaxBatch: b.MaxBatch},
		func(ctx context.Context, i int, job *runs.Job, progress runs.Progress) error {
			j := Job[T]{Job: job, Progress: progress}
			for _, at := range job.Index {
				group := batches[i][at].group
				j.Of, j.groups = append(j.Of, gs[group].Trial), append(j.groups, group)
				j.Units = append(j.Units, cases[i][at].Units)
			}
			if err := b.Batch(ctx, j); err != nil {
				return fmt.Errorf("%s: %w", cases[i][job.Index[0]].Label, err)
			}
			return nil
		})
}

// missing are the trials that are not in the store, one a seed, and what they will take, s.
func (b Bench[T]) missing(ctx context.Context, gs Groups[T], all []one) (missing []T, seconds float64, err error) {
	b.Batch, b.StoredOnly = nil, true
	store, err := b.Store(ctx)
	if err != nil {
		return nil, 0, err
	}
	stored, err := b.records(ctx, gs, [][]one{all})
	if err != nil {
		return nil, 0, err
	}
	cases := b.casesOf(gs, all)
	forecast := b.Forecasts(store, cases)
	for i, o := range all {
		if stored[0][i] == nil {
			missing, seconds = append(missing, gs[o.group].Trial), seconds+forecast(cases[i])
		}
	}
	return missing, seconds, nil
}

// reads reports whether units can be told from keys: of the first and the last group they can.
func (b Bench[T]) reads(gs Groups[T]) bool {
	for _, g := range slices.Concat(gs[:min(1, len(gs))], gs[max(0, len(gs)-1):]) {
		c := b.caseOf(g, 0)
		params, err := json.Marshal(c.Params)
		if err != nil || b.amount(params) != cmp.Or(c.Seconds(), c.Amount()) {
			return false
		}
	}
	return true
}

// amount is the work of a trial by what its key says of it, in seconds where they are forecast; 0 if that is nothing.
// Without units a trial of other settings may be any amount of work.
func (b Bench[T]) amount(params json.RawMessage) (work float64) {
	var t T
	silent := b.Units == nil && b.Work == nil && b.Seconds == nil
	if err := json.Unmarshal(params, &t); silent || err != nil || reflect.ValueOf(&t).Elem().IsZero() {
		return 0
	}
	defer func() {
		if recover() != nil { // it is half of a trial
			work = 0
		}
	}()
	if b.Seconds != nil {
		return b.Seconds(t)
	}
	var c study.Case
	set(&c.Units, b.Units, t)
	set(&c.Work, b.Work, t)
	return c.Amount()
}

func (b Bench[T]) casesOf(gs Groups[T], seeds []one) []study.Case {
	return study.Map(seeds, func(o one) study.Case { return b.caseOf(gs[o.group], o.seed) })
}

func (b Bench[T]) caseOf(g Group[T], seed uint64) study.Case {
	c := study.Case{Params: g.Trial, Seed: seed, Label: g.Part}
	if s, ok := any(g.Trial).(fmt.Stringer); ok {
		c.Label = s.String()
	}
	set(&c.Params, b.Key, g.Trial)
	set(&c.Data, b.Data, g.Trial)
	set(&c.Code, b.Kind, g.Trial)
	set(&c.Label, b.Label, g.Trial)
	set(&c.Units, b.Units, g.Trial)
	set(&c.Work, b.Work, g.Trial)
	if b.Seconds != nil {
		c.Forecast = func() float64 { return b.Seconds(g.Trial) }
	}
	c.Run = func(ctx context.Context, step study.Step) (trial.Result, error) {
		if b.Run != nil {
			return b.Run(ctx, g.Trial, seed, step)
		}
		t, ok := any(g.Trial).(interface {
			Run(ctx context.Context, seed uint64) (trial.Result, error)
		})
		if !ok {
			return trial.Result{}, fmt.Errorf("a %T has no Run(ctx, seed), and its bench no Run", g.Trial)
		}
		return t.Run(ctx, seed)
	}
	return c
}

// set sets what a bench says of a trial, if it says anything.
func set[V, T any](value *V, of func(T) V, t T) {
	if of != nil {
		*value = of(t)
	}
}

// Seed is one seed of a search or a training, with its checkpoint: Load, Save and SaveEvery are those of
// search.Options and training.Options.
type Seed[T any] struct {
	Trial     T
	Seed      uint64
	Pace      *Pace
	Load      func() (io.ReadCloser, error)
	Save      func(write func(io.Writer) error) error
	SaveEvery time.Duration
}

// SaveEvery is the time between two checkpoints: what a search or training loses that is killed.
var SaveEvery = runs.Interval(20 * time.Second)

// Each makes a bench compute its trials one after the other. What open returns, such as a compiled supernet, serves
// all seeds of a trial; it is closed before that of the next trial is opened.
func Each[T any, R interface{ Close() }](
	b *Bench[T], open func(ctx context.Context, s Seed[T]) (R, error),
	run func(ctx context.Context, opened R, s Seed[T]) (trial.Result, error),
) {
	var opened R
	group, end := -1, func() {}
	b.MaxBatch, b.Close = 1, func() { end() }
	b.Batch = func(ctx context.Context, job Job[T]) error {
		s := Seed[T]{
			Trial: job.Of[0], Seed: job.Trials[0].Seed, Pace: &Pace{Progress: job.Progress, Units: job.Units[0]},
			Load: job.LoadTelling(job.Progress), Save: job.Save, SaveEvery: SaveEvery,
		}
		if group != job.groups[0] {
			end()
			group, end = -1, func() {}
			var err error
			if opened, err = open(ctx, s); err != nil {
				return fmt.Errorf("seed %d: %w", s.Seed, err)
			}
			group, end = job.groups[0], opened.Close
		}
		result, err := run(ctx, opened, s)
		if err == nil {
			err = job.Done(0, result)
		}
		if err != nil {
			return fmt.Errorf("seed %d: %w", s.Seed, err)
		}
		s.Pace.End("")
		return nil
	}
}

// Amount is [study.Study.Amount] by the settings K in a trial's key.
func Amount[K any](of func(K) float64) func(params json.RawMessage) float64 {
	return func(params json.RawMessage) float64 {
		var key K
		if err := json.Unmarshal(params, &key); err != nil {
			return 0
		}
		return of(key)
	}
}

// Pace counts the units of a search or training under way, which are of about equal time over its epochs.
type Pace struct {
	Progress runs.Progress
	Units    int // in all
	booked   int
	begun    bool
}

// At is after so many steps of an epoch, from 0. What a checkpoint brought along says nothing about the pace.
func (p *Pace) At(epoch, epochs, step, steps int, note string) {
	now := int(float64(p.Units) * (float64(epoch) + float64(step)/float64(steps)) / float64(epochs))
	if !p.begun {
		p.begun, p.booked = true, max(0, now-max(1, p.Units/epochs/steps))
		p.Progress.Skip(p.booked)
	}
	p.Progress.Step(max(0, now-p.booked), note)
	p.booked = max(p.booked, now)
}

// End counts what is left.
func (p *Pace) End(note string) { p.Progress.Step(p.Units-p.booked, note) }
