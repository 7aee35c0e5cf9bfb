package command

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const kept = "finished trials and checkpoints are kept, the same command goes on from there"

// samePress is the time within which a second signal is the same Ctrl-C: go tool passes on what the terminal has sent
// here, too.
const samePress = 500 * time.Millisecond

// grace is how long work may take to end by itself and save its checkpoint.
const grace = 3 * time.Second

// untilSignal returns a context that ends with Ctrl-C, SIGTERM or a closed terminal (unless under nohup). A second
// signal ends the program at once; so does the first one if XLA is still compiling after grace, because that takes
// minutes and cannot be interrupted. stop ends the watching.
func untilSignal(c console, compiling func() bool) (ctx context.Context, stop func()) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-signals
		cancel()
		endAtLast(c, signals, compiling)
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(signals)
	}
}

// endAtLast waits for the program to end, and ends it on a second signal or if it cannot end by itself.
func endAtLast(c console, signals <-chan os.Signal, compiling func() bool) {
	if isTerminal(c.Err) { // whose last line may be the progress
		c.Err = lineBreaker{c.Err}
	}
	first := time.Now()
	look := time.NewTicker(grace)
	defer look.Stop()
	for said := false; ; {
		select {
		case _, more := <-signals:
			switch {
			case !more:
				return
			case time.Since(first) < samePress:
				continue
			}
			c.logf("interrupted again, ended at once; %s", kept)
			os.Exit(exitFailed)
		case <-look.C:
			if compiling() {
				c.logf("interrupted while XLA compiled, which cannot be stopped: ended at once; %s", kept)
				os.Exit(exitFailed)
			}
			if !said {
				said = true
				c.logf("what is under way ends first; Ctrl-C once more ends it at once")
			}
		}
	}
}

type lineBreaker struct{ io.Writer }

func (b lineBreaker) Write(text []byte) (int, error) {
	if _, err := b.Writer.Write([]byte("\n")); err != nil {
		return 0, err
	}
	return b.Writer.Write(text)
}
