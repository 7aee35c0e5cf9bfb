package runs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"

	"github.com/nasml/lab/internal/files"
)

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

// room says what records need on a disk, where each takes whole blocks and has to be
// listed in a folder.
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
