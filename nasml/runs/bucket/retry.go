package bucket

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"gocloud.dev/gcerrors"
)

// retry tries an operation until it succeeds, until it fails in a way that no repetition mends, or until patience ends.
// It waits twice as long each time, give or take, so that a hundred workers do not come back at once.
func (b *Bucket) retry(verb, name string, bytes int, do func(context.Context) error) error {
	begin, wait := time.Now(), 100*time.Millisecond
	for {
		ctx, cancel := context.WithTimeout(context.Background(), b.attempt+time.Duration(bytes)*time.Microsecond)
		err := do(ctx)
		cancel()
		if err == nil || isMissing(err) || verb == "write" && isTaken(err) {
			b.reached.Store(true)
			return err
		}
		patience := b.patience
		if !b.reached.Load() { // more likely a wrong address, or no credentials
			patience = min(patience, firstPatience)
		}
		if !mayPass(err) || time.Since(begin)+wait > patience {
			return b.explain(err, verb, name, time.Since(begin))
		}
		time.Sleep(wait/2 + rand.N(wait))
		wait = min(2*wait, 10*time.Second)
	}
}

func isMissing(err error) bool { return gcerrors.Code(err) == gcerrors.NotFound }

func isTaken(err error) bool { return gcerrors.Code(err) == gcerrors.FailedPrecondition }

// mayPass reports whether the same operation may succeed later. A connection that
// breaks has no code, and a service may call anything internal.
func mayPass(err error) bool {
	switch gcerrors.Code(err) {
	case gcerrors.PermissionDenied, gcerrors.InvalidArgument, gcerrors.Unimplemented:
		return false
	}
	return true
}

func (b *Bucket) explain(err error, verb, name string, tried time.Duration) error {
	advice := fmt.Sprintf(
		"; tried for %s: are the address and the credentials right, the service up, the network there? Finished "+
			"trials are kept, run again to go on", tried.Round(time.Second))
	switch gcerrors.Code(err) {
	case gcerrors.PermissionDenied:
		advice = "; the credentials of this machine may not do that: it needs to list, read, write and delete below " +
			b.address
	case gcerrors.InvalidArgument:
		advice = "; look at the address in NASML_STORE"
	}
	if errors.Is(err, context.DeadlineExceeded) {
		advice = "; no answer" + advice
	}
	return fmt.Errorf("run store cannot %s %s: %w%s", verb, b.Where(name), err, advice)
}
