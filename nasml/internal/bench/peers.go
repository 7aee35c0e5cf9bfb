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

// startPeers writes the work to a folder and starts every peer on it. stop
// ends them and removes the folder.
func (p Params) startPeers(
	ctx context.Context,
	c Case,
	work *oymak2021.Figure2Work,
) (_ []*runner, stop func(), err error) {
	dir, err := os.MkdirTemp("", "nasml-bench-")
	if err != nil {
		return nil, nil, fmt.Errorf("making a folder for the peers' inputs: %w", err)
	}
	var started []*peer
	stop = func() {
		for _, s := range started {
			s.stop()
		}
		_ = os.RemoveAll(dir)
	}
	if err := p.writeInputs(dir, c, work); err != nil {
		stop()
		return nil, nil, fmt.Errorf("writing the peers' inputs: %w", err)
	}
	var runners []*runner
	for _, f := range forms {
		r := &runner{entry: Entry{Program: f.program, Form: f.form}}
		s, err := startPeer(ctx, p.Python, filepath.Join(dir, f.script), dir, f.form)
		if err != nil {
			r.entry.NotRun = err.Error()
			r.train = func(context.Context) (training, error) { return training{}, err }
		} else {
			started = append(started, s)
			r.train, r.peak = s.train, s.peakMB
		}
		runners = append(runners, r)
	}
	return runners, stop, nil
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
	for name, t := range inputs {
		if strings.HasPrefix(name, "w") && name != "weight" {
			s.Layers++
		}
		if err := writeNPY(filepath.Join(dir, name+".npy"), t); err != nil {
			return err
		}
	}
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "settings.json"), data, 0o644)
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

// ourOption says whether a variable holds the options of the C library with which our
// program starts itself: a peer is run as its users run it.
func ourOption(variable string) bool { return strings.HasPrefix(variable, "GLIBC_TUNABLES=") }

func startPeer(ctx context.Context, python string, args ...string) (*peer, error) {
	s := &peer{cmd: exec.CommandContext(ctx, python, args...), problem: new(bytes.Buffer),
		ended: make(chan struct{})}
	s.cmd.Env = append(
		slices.DeleteFunc(os.Environ(), ourOption),
		"JAX_PLATFORMS=cpu",
		"JAX_ENABLE_X64=0",
		"CUDA_VISIBLE_DEVICES=",
		"PYTHONDONTWRITEBYTECODE=1",
	)
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

// train asks for one training. Where there is no answer, the error is the last
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
