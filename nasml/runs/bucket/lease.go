package bucket

import (
	"context"
	"path"
	"sync/atomic"
	"time"

	"gocloud.dev/blob"

	"github.com/nasml/lab/nasml/runs"
)

type lease struct {
	asked    time.Time // local, before the last renewal that arrived
	answered time.Time // local, after it
	server   time.Time // the service's clock at that renewal
	lives    int       // how often it began again, because a renewal came too late
}

// seen is what this worker knows of another's lease, so that it does not ask for each of its locks.
type seen struct{ renewed, at time.Time }

type lock struct {
	bucket *Bucket
	name   string // of its object
	life   int
	freed  atomic.Bool
}

// Lock takes the lock of a trial for this worker, or returns nil where another
// living one has it or tries to take it at the same time.
func (b *Bucket) Lock(name string) (runs.Lock, error) {
	l := &lock{bucket: b, name: name + "/" + b.worker}
	var err error
	if l.life, err = b.alive(); err != nil {
		return nil, err
	}
	if free, err := b.free(name); !free || err != nil {
		return nil, err
	}
	if !b.take(l.name) { // another goroutine has it
		return nil, nil
	}
	if err := b.write(l.name, nil, false); err != nil {
		l.Unlock()
		return nil, err
	}
	if free, err := b.free(name); !free || err != nil || !l.Held() {
		l.Unlock()
		return nil, err
	}
	return l, nil
}

// Held reports whether the lease was renewed in time ever since, by this machine's own clock.
func (l *lock) Held() bool {
	l.bucket.mu.Lock()
	defer l.bucket.mu.Unlock()
	now := l.bucket.own
	return !l.freed.Load() && l.life == now.lives && time.Since(now.asked) < l.bucket.lease
}

// Unlock removes the lock. What cannot be removed now ends with the lease.
func (l *lock) Unlock() {
	if l.freed.Swap(true) {
		return
	}
	_ = l.bucket.Remove(l.name)
	l.bucket.mu.Lock()
	defer l.bucket.mu.Unlock()
	delete(l.bucket.mine, l.name)
}

// take keeps the goroutines of one worker apart.
func (b *Bucket) take(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mine[name] {
		return false
	}
	b.mine[name] = true
	return true
}

// Reclaim removes the lock or lease of a worker that is dead.
func (b *Bucket) Reclaim(name string, dry bool) (bool, error) {
	if _, err := b.alive(); err != nil {
		return false, err
	}
	dead, err := b.dead(path.Base(name))
	if err != nil || !dead || dry {
		return dead, err
	}
	return true, b.Remove(name)
}

// free reports whether no other living worker has put a lock. It removes those of
// dead ones, which come back, if ever, to a lease that has begun again.
func (b *Bucket) free(name string) (bool, error) {
	locks, err := b.list(name + "/")
	if err != nil {
		return false, err
	}
	for _, l := range locks {
		worker := path.Base(l.Key)
		if worker == b.worker {
			continue
		}
		dead, err := b.dead(worker)
		if err != nil || !dead {
			return false, err
		}
		if err := b.Remove(l.Key); err != nil {
			return false, err
		}
	}
	return true, nil
}

// dead reports whether a worker's lease has run out by the service's clock, of which the time of our own lease tells.
func (b *Bucket) dead(worker string) (bool, error) {
	if worker == b.worker {
		return false, nil
	}
	b.mu.Lock()
	known := b.others[worker]
	b.mu.Unlock()
	if !known.renewed.IsZero() && time.Since(known.at) < b.renew { // it lived then
		return false, nil
	}
	renewed, err := b.modified(leaseName(worker))
	if isMissing(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !renewed.Equal(known.renewed) {
		b.others[worker] = seen{renewed, time.Now()}
	}
	now := b.own.server.Add(time.Since(b.own.answered)) // at the latest
	return now.Sub(renewed) > b.lease+clockStep, nil
}

// clockStep is how coarsely the services tell the time of an object.
const clockStep = time.Second

func leaseName(worker string) string { return "leases/" + worker }

// modified is when an object was written, by the service's clock.
func (b *Bucket) modified(name string) (at time.Time, err error) {
	err = b.retry("read", name, 0, func(ctx context.Context) error {
		var a *blob.Attributes
		if a, err = b.bucket.Attributes(ctx, name); err == nil {
			at = a.ModTime
		}
		return err
	})
	return at, err
}

// alive returns this worker's life, whose lease it begins at the first call. The lease is renewed as long as the
// process lives: one small object every quarter of a minute, however many trials it computes.
func (b *Bucket) alive() (life int, err error) {
	b.first.Do(func() {
		if b.firstErr = b.renewLease(); b.firstErr == nil {
			go func() {
				for range time.Tick(b.renew) {
					_ = b.renewLease() // Held tells what came of it
				}
			}()
		}
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.own.lives, b.firstErr
}

// renewLease writes the lease and reads what time it got.
func (b *Bucket) renewLease() error {
	next := lease{asked: time.Now()}
	err := b.write(leaseName(b.worker), []byte(next.asked.UTC().Format(time.RFC3339)+"\n"), false)
	if err != nil {
		return err
	}
	if next.server, err = b.modified(leaseName(b.worker)); err != nil {
		return err
	}
	next.answered = time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	next.lives = b.own.lives
	if next.answered.Sub(b.own.asked) > b.lease { // others may have taken our trials
		next.lives++
	}
	b.own = next
	return nil
}
