package runs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

// Part makes [Store.Compute] do a part of the work, or only look at it, so that many
// machines can share a figure. Trials that are neither stored nor in the part come back as
// records without values; what a figure makes of those is worth nothing.
//
// Part 2 of 4 is the second quarter of the trials of every call of Compute, in their order,
// stored or not: the parts are disjoint, and together all trials.
type Part struct {
	Index, Of int // 1 ≤ Index ≤ Of; the zero value looks and computes nothing
	// Keys, if there are some, are the trials of the part instead.
	Keys map[string]bool

	mu     sync.Mutex
	trials map[string]State
	stored map[string]*Record
	left   map[string]func() float64 // forecast of trials that are not stored, by key, s
	failed map[string]string
	err    error // of Compute
}

// State is how far a trial is.
type State string

// States of a trial.
const (
	TrialDone    State = "done"
	TrialRunning State = "running" // a living process has it
	TrialFailed  State = "failed"  // its last computation ended with an error
	TrialLost    State = "lost"    // its last computation ended without a word
	TrialOpen    State = "open"    // nobody has begun it
)

// PartSummary counts the trials of a part that looked or computed.
type PartSummary struct {
	Count map[State]int
	// Seconds are what the trials take that are not stored, by their forecasts. None where that is not known of all.
	Seconds   Number
	Use                         // of the stored trials, those of which it is known
	Failures  map[string]string // message by key
	Elsewhere int               // trials that are not stored
}

// WithPart returns a context under which Compute does a part.
func WithPart(ctx context.Context, p *Part) context.Context {
	return context.WithValue(ctx, partKey, p)
}

func partFrom(ctx context.Context) *Part {
	p, _ := ctx.Value(partKey).(*Part)
	return p
}

// UnmarshalText reads "2/4".
func (p *Part) UnmarshalText(text []byte) error {
	_, err := fmt.Sscanf(string(text), "%d/%d", &p.Index, &p.Of)
	if err != nil || fmt.Sprintf("%d/%d", p.Index, p.Of) != string(text) || p.Index < 1 || p.Of < p.Index {
		return fmt.Errorf("%q is no part: want I/N with 1 ≤ I ≤ N, such as 2/4", text)
	}
	return nil
}

// has reports whether trial i of n, which has a key, is in the part.
func (p *Part) has(i, n int, key string) bool {
	if p != nil && len(p.Keys) > 0 {
		return p.Keys[key]
	}
	return p == nil || p.Of > 0 && i*p.Of/n == p.Index-1
}

// fill notes what is stored and puts records without values for the rest.
func (p *Part) fill(s *Store, trials []Trial, keys []string, records []*Record, forecast func(i int) float64) error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.trials == nil {
		p.trials, p.failed, p.stored = map[string]State{}, map[string]string{}, map[string]*Record{}
		p.left = map[string]func() float64{}
	}
	missing := false
	for i, r := range records {
		p.trials[keys[i]] = TrialDone
		if r != nil {
			p.stored[keys[i]] = r
		} else {
			missing = true
			p.trials[keys[i]] = TrialOpen
			if forecast != nil {
				p.left[keys[i]] = func() float64 { return forecast(i) }
			}
			records[i] = &Record{
				Key: keys[i], Trial: trials[i], Values: map[string]float64{}, Series: map[string][]float64{},
			}
		}
	}
	if !missing {
		return nil
	}
	return p.lookAround(s)
}

// lookAround finds out what is known of trials that are not stored.
func (p *Part) lookAround(s *Store) error {
	err := s.medium.Walk("failed", func(info Info) error {
		key := strings.TrimSuffix(path.Base(info.Name), ".txt")
		if p.trials[key] == TrialOpen {
			message, err := s.readAll(info.Name)
			p.trials[key], p.failed[key] = TrialFailed, strings.TrimSpace(string(message))
			if broken, ok := errors.AsType[*Broken](err); ok {
				p.failed[key] = broken.Error()
				return nil
			}
			return err
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.medium.Walk("locks", func(info Info) error {
		key, _, _ := strings.Cut(strings.TrimPrefix(info.Name, "locks/"), "/")
		state, known := p.trials[key]
		if !known || state == TrialDone {
			return nil
		}
		dead, err := s.medium.Reclaim(info.Name, true)
		p.trials[key] = TrialRunning
		if dead && state == TrialOpen {
			p.trials[key] = TrialLost
		} else if dead {
			p.trials[key] = state
		}
		return err
	})
}

// note keeps the first error of Compute, which a figure may bury.
func (p *Part) note(err error) {
	if p == nil || err == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
	}
}

// Err is the first error of Compute under this part. Other errors of a figure may come from trials that are elsewhere.
func (p *Part) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// Stored are the records that the calls of Compute under this part found or made, by their keys.
func (p *Part) Stored() map[string]*Record {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.stored)
}

// Elsewhere is how many of the trials that the calls of Compute under this part came
// by are not stored, and how many are: it asks for no forecast.
func (p *Part) Elsewhere() (missing, stored int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, state := range p.trials {
		if state == TrialDone {
			stored++
		} else {
			missing++
		}
	}
	return missing, stored
}

// Looks reports whether the context has a part that computes nothing.
func Looks(ctx context.Context) bool {
	p := partFrom(ctx)
	return p != nil && p.Of == 0 && len(p.Keys) == 0
}

// Summary is what the calls of Compute under this part found, at their ends.
func (p *Part) Summary() PartSummary {
	p.mu.Lock()
	defer p.mu.Unlock()
	sum := PartSummary{Count: map[State]int{}, Failures: map[string]string{}, Seconds: p.seconds()}
	maps.Copy(sum.Failures, p.failed)
	sum.Use = used(p.stored)
	for _, state := range p.trials {
		sum.Count[state]++
		if state != TrialDone {
			sum.Elsewhere++
		}
	}
	return sum
}

// used is what records took, each its share of what the last of its batch says, as far as that is known.
func used(records map[string]*Record) (sum Use) {
	type batch struct {
		started time.Time
		key     string // of a trial by itself
	}
	took, share := map[batch]float64{}, map[batch]float64{}
	for key, r := range records {
		of := batch{r.Started, key}
		if r.Batch > 1 {
			of.key = ""
		}
		took[of] = max(took[of], r.Processor)
		share[of] += 1 / float64(max(1, r.Batch))
		sum.Peak = max(sum.Peak, r.Peak)
	}
	for of, all := range took {
		sum.Processor += all * min(1, share[of])
	}
	return sum
}

// seconds is what is left to do, None where it is not known.
func (p *Part) seconds() Number {
	sum := 0.0
	for _, key := range slices.Sorted(maps.Keys(p.trials)) {
		if p.trials[key] == TrialDone {
			continue
		}
		one := 0.0
		if forecast := p.left[key]; forecast != nil {
			one = forecast()
		}
		if !(one > 0) {
			return None
		}
		sum += one
	}
	if !finite(sum) {
		return None
	}
	return Number(sum)
}

// noteFailure keeps the error of trials that were begun and have no result.
func (j *Job) noteFailure(cause error) {
	for i, done := range j.done {
		if !done {
			_ = j.store.write(failedName(j.keys[i]), func(w io.Writer) error { // the error itself is what matters
				_, err := fmt.Fprintln(w, cause)
				return err
			})
		}
	}
}

func failedName(key string) string { return "failed/" + key + ".txt" }
