package bench

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gomlx/gomlx/core/tensors"

	"github.com/nasml/lab/nasml/internal/memory"
	"github.com/nasml/lab/nasml/oymak2021"
)

// Requirements is the pip requirements file of the peers, pinned and with
// hashes. Its packages are for Python 3.11 or newer.
//
//go:embed requirements-peers.txt
var Requirements string

//go:embed peer*.py darts*.py supernet.py supernet_jax.py supernet_torch.py features.py text.py
var scripts embed.FS

// program is a peer's script and the forms that are timed, as a good user would write them.
type program struct {
	name, script string
	forms        []string
}

var figure2Peers = []program{
	{"JAX", "peer_jax.py", []string{"vmap", "batched"}},
	{"PyTorch", "peer_torch.py", []string{"loop", "vmap"}},
}

// team are the peers of one case, in a folder of their own with what they are given.
type team struct {
	dir     string
	started []*peer
	runners []*runner
}

func newTeam(write func(dir string) error) (*team, error) {
	dir, err := os.MkdirTemp("", "nasml-bench-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for the peers' inputs: %w", err)
	}
	if err := errors.Join(os.CopyFS(dir, scripts), write(dir)); err != nil {
		_ = os.RemoveAll(dir)
		return nil, fmt.Errorf("writing the peers' inputs: %w", err)
	}
	return &team{dir: dir}, nil
}

// team starts every form of the peers; none without a Python.
func (t Timing) team(ctx context.Context, write func(dir string) error, peers []program) (*team, error) {
	if t.Python == "" {
		return &team{}, nil
	}
	all, err := newTeam(write)
	if err != nil {
		return nil, err
	}
	for _, p := range peers {
		for _, form := range p.forms {
			all.start(ctx, t.Python, p, form)
		}
	}
	return all, nil
}

// start starts a form of a program. A failure is reported when it is to train.
func (t *team) start(ctx context.Context, python string, p program, form string) {
	r := &runner{entry: Entry{Program: p.name, Form: form}}
	s, err := startPeer(ctx, python, filepath.Join(t.dir, p.script), "serve", t.dir, form)
	if err != nil {
		r.train = func(context.Context) (training, error) { return training{}, err }
	} else {
		t.started = append(t.started, s)
		r.train, r.peak = s.train, s.peakMB
	}
	t.runners = append(t.runners, r)
}

func (t *team) beside(own func(context.Context) (training, error)) []*runner {
	ours := &runner{entry: Entry{Program: oursName}, peak: func() float64 { return peakMB("self") }, train: own}
	return slices.Insert(t.runners, 0, ours)
}

func (t *team) stop() {
	for _, s := range t.started {
		s.stop()
	}
	_ = os.RemoveAll(t.dir)
}

func (p Params) writeInputs(dir string, c Case, work *oymak2021.Figure2Work) error {
	inputs, err := work.Inputs()
	if err != nil {
		return err
	}
	return write(dir, map[string]any{
		"panel": c.Panel, "rate": p.Sweep.LearningRate, "threads": runtime.NumCPU(),
		"output": p.Sweep.Output, // panel (b): σ_α after the last layer
	}, inputs)
}

// write writes settings.json and NAME.npy of every array.
func write(dir string, settings any, arrays map[string]*tensors.Tensor) error {
	text, err := json.Marshal(settings)
	if err != nil {
		return err
	}
	for name, t := range arrays {
		if err := writeNPY(filepath.Join(dir, name+".npy"), t); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, "settings.json"), text, 0o644)
}

// peer is a running script.
type peer struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	problem *bytes.Buffer // its stderr

	busy     atomic.Bool            // it trains
	outgrown atomic.Pointer[string] // why it was ended for its memory
	once     sync.Once
	ended    chan struct{}
}

func startPeer(ctx context.Context, python string, args ...string) (*peer, error) {
	s := &peer{cmd: exec.CommandContext(ctx, python, args...), problem: new(bytes.Buffer),
		ended: make(chan struct{})}
	s.cmd.Env = append(slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "GLIBC_TUNABLES=") // nasml sets it for itself; peers run as users run them
	}), "JAX_PLATFORMS=cpu", "JAX_ENABLE_X64=0",
		"CUDA_VISIBLE_DEVICES=", "PYTHONDONTWRITEBYTECODE=1")
	s.cmd.Stderr, s.cmd.WaitDelay = s.problem, 5*time.Second
	in, err1 := s.cmd.StdinPipe()
	out, err2 := s.cmd.StdoutPipe()
	s.in, s.out = in, bufio.NewReader(out)
	if err := cmp.Or(err1, err2, s.cmd.Start()); err != nil {
		return nil, fmt.Errorf("starting %s: %w", python, err)
	}
	go s.watch()
	return s, nil
}

// train asks for one training. Without an answer, the error is the script's last line on stderr.
func (s *peer) train(context.Context) (t training, err error) {
	s.busy.Store(true)
	defer s.busy.Store(false)
	var line []byte
	if _, err = io.WriteString(s.in, "train\n"); err == nil {
		line, err = s.out.ReadBytes('\n')
	}
	if err != nil {
		s.stop() // so that all of stderr is there
		return t, errors.New(s.problemOf(fmt.Sprintf("%v: %v", s.cmd.ProcessState, err)))
	}
	if err := json.Unmarshal(line, &t); err != nil {
		return t, fmt.Errorf("found the answer %.80q, expected JSON: %w", line, err)
	}
	return t, nil
}

// stop closes the script's input, which ends it.
func (s *peer) stop() {
	_ = s.in.Close()
	s.once.Do(func() {
		_ = s.cmd.Wait() // fails where the script has failed, which is known by then
		close(s.ended)
	})
}

func (s *peer) peakMB() float64 { return peakMB(fmt.Sprint(s.cmd.Process.Pid)) }

// A peer's memory limit: a share of the free memory when it starts, and while it works, so much must stay free.
const (
	peerShare = 0.5
	leftShare = 0.1
)

// freeMB is the memory that is free, +Inf where the system does not tell; a test has another.
var freeMB = func() float64 { return memory.Free() / 1e6 }

// outgrew begins the reason why a peer was stopped that took too much memory.
const outgrew = "it needs more memory than "

func tooLarge(reason string) bool { return strings.HasPrefix(reason, outgrew) }

// watch stops a peer that takes too much memory.
func (s *peer) watch() {
	free := freeMB()
	most, left := peerShare*free, leftShare*free
	for {
		select {
		case <-s.ended:
			return
		case <-time.After(50 * time.Millisecond):
		}
		if took := s.peakMB(); took > most || s.busy.Load() && freeMB() < left {
			reason := fmt.Sprintf("%sthe %.1f GB allowed here: stopped at %.1f GB", outgrew, most/1000,
				took/1000)
			s.outgrown.Store(&reason)
			_ = s.cmd.Process.Kill() // it may have ended
			return
		}
	}
}

// problemOf says why the script ended: for lack of memory, or its last line on stderr.
func (s *peer) problemOf(how string) string {
	if reason := s.outgrown.Load(); reason != nil {
		return *reason
	}
	lines := strings.Split(strings.TrimSpace(s.problem.String()), "\n")
	return fmt.Sprintf("the script ended (%s): %s", how, lines[len(lines)-1])
}
