package bench

import (
	"bufio"
	"bytes"
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

	"github.com/nasml/lab/nasml/oymak2021"
)

// Requirements is the pip requirements file of the peers, pinned and with
// hashes. Its packages are for Python 3.11 or newer.
//
//go:embed requirements-peers.txt
var Requirements string

//go:embed peer.py peer_jax.py peer_torch.py
var scripts embed.FS

// forms are the peers: each program in the ways a good user would write it.
var forms = []struct{ program, script, form string }{
	{"JAX", "peer_jax.py", "vmap"},
	{"JAX", "peer_jax.py", "batched"},
	{"PyTorch", "peer_torch.py", "loop"},
	{"PyTorch", "peer_torch.py", "vmap"},
}

// settings are what the arrays do not say.
type settings struct {
	Panel   string  `json:"panel"`
	Output  bool    `json:"output"` // panel (b): σ_α after the last layer
	Layers  int     `json:"layers"`
	Rate    float64 `json:"rate"`
	Threads int     `json:"threads"`
}

// team are the peers of one case, in a folder of their own with what they are given.
type team struct {
	dir     string
	started []*peer
	runners []*runner
}

// newTeam makes the folder, and write fills it.
func newTeam(write func(dir string) error) (*team, error) {
	dir, err := os.MkdirTemp("", "nasml-bench-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for the peers' inputs: %w", err)
	}
	if err := write(dir); err != nil {
		_ = os.RemoveAll(dir)
		return nil, fmt.Errorf("writing the peers' inputs: %w", err)
	}
	return &team{dir: dir}, nil
}

// start starts a program in one of its forms, with a script of the folder. One that
// cannot start says so where it is to train.
func (t *team) start(ctx context.Context, python, program, form, script string, args ...string) {
	r := &runner{entry: Entry{Program: program, Form: form}}
	s, err := startPeer(ctx, python, slices.Insert(args, 0, filepath.Join(t.dir, script))...)
	if err != nil {
		r.train = func(context.Context) (training, error) { return training{}, err }
	} else {
		t.started = append(t.started, s)
		r.train, r.peak = s.train, s.peakMB
	}
	t.runners = append(t.runners, r)
}

// end ends the peers; their folder stays.
func (t *team) end() {
	for _, s := range t.started {
		s.stop()
	}
	t.started = nil
}

// stop ends the peers and removes their folder.
func (t *team) stop() {
	t.end()
	_ = os.RemoveAll(t.dir)
}

// writeInputs writes the scripts, the settings and the arrays.
func (p Params) writeInputs(dir string, c Case, work *oymak2021.Figure2Work) error {
	if err := os.CopyFS(dir, scripts); err != nil {
		return err
	}
	s := settings{Panel: c.Panel, Output: p.Sweep.Output, Rate: p.Sweep.LearningRate, Threads: runtime.NumCPU()}
	inputs, err := work.Inputs()
	if err != nil {
		return err
	}
	for name := range inputs {
		if strings.HasPrefix(name, "w") && name != "weight" {
			s.Layers++
		}
	}
	if err := writeArrays(dir, inputs); err != nil {
		return err
	}
	return writeJSON(dir, "settings.json", s)
}

func writeJSON(dir, name string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name), text, 0o644)
}

// writeArrays writes NAME.npy for every array.
func writeArrays(dir string, arrays map[string]*tensors.Tensor) error {
	for name, t := range arrays {
		if err := writeNPY(filepath.Join(dir, name+".npy"), t); err != nil {
			return err
		}
	}
	return nil
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

// ourOption reports whether a variable holds the options of the C library with which our
// program starts itself: a peer is run as its users run it.
func ourOption(variable string) bool { return strings.HasPrefix(variable, "GLIBC_TUNABLES=") }

func startPeer(ctx context.Context, python string, args ...string) (*peer, error) {
	s := &peer{cmd: exec.CommandContext(ctx, python, args...), problem: new(bytes.Buffer),
		ended: make(chan struct{})}
	s.cmd.Env = append(slices.DeleteFunc(os.Environ(), ourOption), "JAX_PLATFORMS=cpu", "JAX_ENABLE_X64=0",
		"CUDA_VISIBLE_DEVICES=", "PYTHONDONTWRITEBYTECODE=1")
	s.cmd.Stderr, s.cmd.WaitDelay = s.problem, 5*time.Second
	var err error
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", python, err)
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", python, err)
	}
	s.out = bufio.NewReader(out)
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", python, err)
	}
	go s.watch()
	return s, nil
}

// train asks for one training. If there is no answer, the error is the last
// line that the script wrote to stderr.
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

// stop ends the script: it stops where its input ends.
func (s *peer) stop() {
	_ = s.in.Close()
	s.once.Do(func() {
		_ = s.cmd.Wait() // fails where the script has failed, which is known by then
		close(s.ended)
	})
}

func (s *peer) peakMB() float64 { return peakMB(fmt.Sprint(s.cmd.Process.Pid)) }
