package runs

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/trial"
)

// Tests of what happens to real processes start this test binary again as a
// child, which does what childMode names and exits.
const (
	childMode = "RUNS_TEST_CHILD"
	childDir  = "RUNS_TEST_DIR"
	childArg  = "RUNS_TEST_ARG"
)

var children = map[string]func(dir, arg string) error{
	"toy":  toyChild,
	"work": workChild,
	"hold": holdChild,
	"full": fullChild,
	"cell": cellChild,
}

func TestMain(m *testing.M) {
	child, ok := children[os.Getenv(childMode)]
	if !ok {
		os.Exit(m.Run())
	}
	if err := child(os.Getenv(childDir), os.Getenv(childArg)); err != nil {
		fmt.Println("error:", err)
		os.Exit(3)
	}
	os.Exit(0)
}

func startChild(t *testing.T, mode, dir, arg string) (*exec.Cmd, io.WriteCloser, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childMode+"="+mode, childDir+"="+dir, childArg+"="+arg)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // where the test failed and left it
	return cmd, in, bufio.NewScanner(out)
}

// childLog is an append-only file that all children of a test write lines to.
func childLog(dir, line string) error {
	f, err := os.OpenFile(filepath.Join(dir, "log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}

// readLog counts the lines that children wrote.
func readLog(t *testing.T, dir string) map[string]int {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "log"))
	require.NoError(t, err)
	lines := map[string]int{}
	for line := range strings.Lines(string(data)) {
		lines[strings.TrimSpace(line)]++
	}
	return lines
}

// toyTrials are trials with seeds from, …, from+n−1.
func toyTrials(from, n int) []Trial {
	trials := make([]Trial, n)
	for i := range trials {
		trials[i] = Trial{
			Figure: "toy/walk", Params: map[string]any{"steps": toySteps},
			Seed: uint64(from + i), Code: "v1",
		}
	}
	return trials
}

// toySteps is how long a toy trial is, in steps.
const toySteps = 120

// lane is the state of one toy trial: a sum whose last bits depend on every
// number drawn and on their order.
type lane struct {
	step int64
	sum  float64
	rng  []byte
}

// advance is one step of a lane.
func (l *lane) advance(seed uint64) error {
	source := trial.Source(seed, "walk")
	if l.rng != nil {
		if err := source.UnmarshalBinary(l.rng); err != nil {
			return err
		}
	}
	l.sum += (float64(source.Uint64()>>11)/(1<<53) - 0.5) / (1 + l.sum*l.sum)
	l.step++
	var err error
	l.rng, err = source.MarshalBinary()
	return err
}

func saveLanes(lanes []lane) func(io.Writer) error {
	return func(w io.Writer) error {
		for _, l := range lanes {
			for _, part := range []any{l.step, l.sum, int64(len(l.rng)), l.rng} {
				if err := binary.Write(w, binary.LittleEndian, part); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

func loadLanes(r io.Reader, lanes []lane) error {
	for i := range lanes {
		l := &lanes[i]
		var n int64
		err := errors.Join(
			binary.Read(r, binary.LittleEndian, &l.step),
			binary.Read(r, binary.LittleEndian, &l.sum),
			binary.Read(r, binary.LittleEndian, &n))
		if err != nil {
			return err
		}
		l.rng = make([]byte, n)
		if _, err := io.ReadFull(r, l.rng); err != nil {
			return err
		}
	}
	return nil
}

// toyChild computes toy trials in step, with a checkpoint every few steps, and
// prints a line after each, then waits for a byte. With arg "staggered" every trial ends at another
// step and is reported alone.
func toyChild(dir, arg string) error {
	s, err := Open(filepath.Join(dir, "store"))
	if err != nil {
		return err
	}
	_, err = s.Compute(context.Background(), toyTrials(0, 4), Options{}, func(_ context.Context, job *Job) error {
		for i, key := range job.keys {
			if _, err := s.Get(key); !errors.Is(err, ErrNotFound) {
				return childLog(dir, "again "+job.keys[i])
			}
		}
		return toy(dir, job, arg == "staggered")
	})
	return err
}

func toy(dir string, job *Job, staggered bool) error {
	lanes := make([]lane, len(job.Trials))
	if r, err := job.Load(); err == nil {
		if err := errors.Join(loadLanes(r, lanes), r.Close(), childLog(dir, "resumed")); err != nil {
			return err
		}
	} else if !errors.Is(err, ErrNotFound) {
		return err
	}
	for step := lanes[0].step; step < toySteps; step++ {
		if err := stepLanes(dir, job, lanes, staggered); err != nil {
			return err
		}
		if step%4 == 3 {
			if err := job.Save(saveLanes(lanes)); err != nil {
				return err
			}
			fmt.Println("saved")
			if _, err := os.Stdin.Read(make([]byte, 1)); err != nil { // go on when the parent says so
				return err
			}
		}
	}
	if staggered {
		return nil
	}
	results := make([]Result, len(lanes))
	for i := range lanes {
		results[i] = toyResult(lanes[i])
	}
	return job.DoneAll(results)
}

// stepLanes advances all lanes by one step. Staggered ones end at a quarter,
// half, … of the steps and are reported there.
func stepLanes(dir string, job *Job, lanes []lane, staggered bool) error {
	for i := range lanes {
		ends := int64(toySteps)
		if staggered {
			ends = int64(toySteps * (job.Trials[i].Seed + 1) / 4)
		}
		if lanes[i].step >= ends {
			continue
		}
		if err := lanes[i].advance(job.Trials[i].Seed); err != nil {
			return err
		}
		if !staggered || lanes[i].step < ends {
			continue
		}
		if err := errors.Join(job.Done(i, toyResult(lanes[i])), childLog(dir, "done "+job.keys[i])); err != nil {
			return err
		}
	}
	return nil
}

func toyResult(l lane) Result { return Result{Values: map[string]float64{"sum": l.sum}} }

// workChild waits for its standard input to close, then computes 20 trials
// from the seed in arg on, three at a time, and logs each that it computes.
func workChild(dir, arg string) error {
	from, err := strconv.Atoi(arg)
	if err != nil {
		return err
	}
	s, err := Open(filepath.Join(dir, "store"))
	if err != nil {
		return err
	}
	if _, err := io.ReadAll(os.Stdin); err != nil {
		return err
	}
	ctx := WithProgress(context.Background(), Silent)
	records, err := s.Compute(
		ctx,
		toyTrials(from, 20),
		Options{MaxBatch: 3, Wait: time.Millisecond},
		func(_ context.Context, job *Job) error {
			for i, t := range job.Trials {
				if err := childLog(dir, fmt.Sprint("computed ", t.Seed)); err != nil {
					return err
				}
				time.Sleep(2 * time.Millisecond) // so that the processes do meet
				if err := job.Done(i, Result{Values: map[string]float64{"seed": float64(t.Seed)}}); err != nil {
					return err
				}
			}
			return nil
		},
	)
	if err != nil {
		return err
	}
	for i, r := range records {
		if r.Values["seed"] != float64(from+i) {
			return fmt.Errorf("record %d has seed %v, expected %d", i, r.Values["seed"], from+i)
		}
	}
	return nil
}

// holdChild takes trials and computes for ever.
func holdChild(dir, _ string) error {
	s, err := Open(filepath.Join(dir, "store"))
	if err != nil {
		return err
	}
	_, err = s.Compute(context.Background(), toyTrials(0, 2), Options{}, func(context.Context, *Job) error {
		fmt.Println("holding")
		_, err := io.ReadAll(os.Stdin)
		return err
	})
	return err
}

// fullChild computes two trials and a checkpoint where files end at 64 KiB:
// the second trial and the second checkpoint do not fit.
func fullChild(dir, arg string) error {
	signal.Ignore(syscall.SIGXFSZ) // writes then fail as on a full disk
	limit := syscall.Rlimit{Cur: 64 << 10, Max: 64 << 10}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	s, err := Open(filepath.Join(dir, "store"))
	if err != nil {
		return err
	}
	_, err = s.Compute(context.Background(), toyTrials(0, 3), Options{}, func(_ context.Context, job *Job) error {
		if err := job.Save(func(w io.Writer) error { _, err := io.WriteString(w, "small"); return err }); err != nil {
			return err
		}
		if err := job.Done(0, Result{Values: map[string]float64{"x": 1}}); err != nil {
			return err
		}
		if arg == "checkpoint" {
			return job.Save(func(w io.Writer) error { _, err := w.Write(make([]byte, 1<<20)); return err })
		}
		big := Result{Series: map[string][]float64{"loss": make([]float64, 100_000)}}
		return job.Done(1, big)
	})
	return err
}

// cellChild is a cell of a notebook: ten seconds of work, by a clock of its
// own, in a thousand steps.
func cellChild(string, string) error {
	now := time.Unix(0, 0)
	p := newMeter(time.Second, func() time.Time { return now }, notebookDrawer())
	p.Start(1000, "figure <2>")
	for range 1000 {
		now = now.Add(10 * time.Millisecond)
		p.Step(1, "k = 64")
	}
	p.Done()
	return nil
}
