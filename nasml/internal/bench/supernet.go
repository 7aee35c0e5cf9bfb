package bench

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/gomlx/compute"

	"github.com/nasml/lab/nasml/bilevel"
	"github.com/nasml/lab/nasml/internal/trace"
	"github.com/nasml/lab/nasml/supernet"
)

// SupernetParams are the compared and the timed search steps of the NAS-Bench-201 supernet.
type SupernetParams struct {
	Timing
	Compared     []Comparison
	CompareBatch int
	Timed        trace.Settings
	Batch        int
}

// SupernetFull is behind the README's claims: a bilevel step at C = 16, N = 1, 32×32, batch 64, after ten small steps
// of each method.
var SupernetFull = SupernetParams{
	Timing: Timing{Rounds: 5}, Compared: small(4, 16, 10), CompareBatch: 16,
	Timed: searchSettings("gaea-darts", 16, 32, 3), Batch: 64,
}

// Comparison is a search whose steps are compared.
type Comparison struct {
	trace.Settings
	Double bool // in float64: many steps in float32 part at a ReLU, see package trace
}

// SupernetQuick only shows that everything works.
var SupernetQuick = SupernetParams{
	Timing: Timing{Rounds: 3}, Compared: small(2, 8, 2)[:2], CompareBatch: 4,
	Timed: searchSettings("gaea-darts", 4, 8, 2), Batch: 8,
}

// small are the comparisons: one step in float32, and several of each method in float64, DARTS and GAEA as in GAEA's
// code, GDAS as in AutoDL-Projects.
func small(channels, image, steps int) []Comparison {
	out := []Comparison{{Settings: searchSettings("gaea-darts", channels, image, 1)}}
	for _, method := range []string{"darts", "gaea-darts", "gdas", "gaea-gdas"} {
		out = append(out, Comparison{searchSettings(method, channels, image, steps), true})
	}
	return out
}

func searchSettings(method string, channels, image, steps int) trace.Settings {
	s := trace.Settings{
		Space: supernet.NASBench201.Name, Ops: supernet.NASBench201.Ops,
		Channels: channels, Cells: 1, Image: image, Classes: 10,
		Method: method, Order: bilevel.ArchitectureFirst, Hypergradient: "first-order", Steps: steps,
		LearningRate: 0.025, Momentum: 0.9, WeightDecay: 3e-4, Clip: 5, ClipCovers: bilevel.ClipWeights, Unused: "zero",
		Update: "eg", ArchRate: 0.1, ArchEpsilon: 1e-8, Tau: 10,
	}
	if strings.HasSuffix(method, "gdas") {
		s.Order, s.Nesterov, s.WeightDecay = bilevel.WeightsFirst, true, 5e-4
	}
	switch method {
	case "darts", "gdas":
		s.Update, s.ArchRate, s.ArchBeta1, s.ArchBeta2, s.ArchWeightDecay = "adam", 3e-4, 0.5, 0.999, 1e-3
	case "gaea-gdas":
		s.Update = "eg-normalize-clamp"
	}
	return s
}

// SupernetResult is what [Supernet] finds. Entries[0] is ours.
type SupernetResult struct {
	Oracles  []Oracle       `json:"oracles"` // empty without peers
	Settings trace.Settings `json:"settings"`
	Batch    int            `json:"batch"`
	Machine
	Entries []Entry `json:"entries"`
}

// Oracle is the comparison with one program's steps of one method.
type Oracle struct {
	Program string  `json:"program"`
	Method  string  `json:"method"`
	Double  bool    `json:"double"` // in float64
	Steps   int     `json:"steps"`
	NotRun  string  `json:"not_run,omitempty"`
	Differs string  `json:"differs,omitempty"` // what is beyond the tolerance
	Arrays  int     `json:"arrays"`
	First   float64 `json:"first"` // largest relative difference of an array of the first step
	Later   float64 `json:"later"` // and of the later ones
}

var supernetPeers = []program{
	{"JAX", "supernet_jax.py", []string{"stock"}},
	{"PyTorch", "supernet_torch.py", []string{"channels-last", "contiguous"}},
}

// Supernet times a search beside JAX and PyTorch, in turn, and compares search steps from the same weights and batches.
// The comparison comes last, because it would count as our memory. A peer that cannot run is reported, and one that
// computes something else has no times, which would be meaningless.
func Supernet(ctx context.Context, b compute.Backend, p SupernetParams) (*SupernetResult, error) {
	r := &SupernetResult{Settings: p.Timed, Batch: p.Batch, Machine: machineOf(b)}
	times, err := p.timeSearch(ctx, b)
	if err != nil {
		return r, err
	}
	if p.Python != "" {
		if r.Oracles, err = p.compare(ctx, b, supernetPeers); err != nil {
			return r, err
		}
	}
	for _, o := range r.Oracles {
		for i, e := range times {
			if o.Differs != "" && e.Program == o.Program {
				times[i] = Entry{Program: e.Program, Form: e.Form, Version: e.Version, NotRun: o.Differs}
			}
		}
	}
	r.Entries = times
	return r, nil
}

// compare computes all comparisons, lets the peers compute them, and compares.
func (p SupernetParams) compare(ctx context.Context, b compute.Backend, peers []program) ([]Oracle, error) {
	folder, err := newTeam(func(string) error { return nil })
	if err != nil {
		return nil, err
	}
	defer folder.stop()
	ours, files := make([]map[string]trace.Array, len(p.Compared)), make([]string, len(p.Compared))
	for i, c := range p.Compared {
		t, err := trace.Random(c.Settings, p.CompareBatch, uint64(i))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Method, err)
		}
		if c.Double {
			t.Double()
		}
		files[i] = filepath.Join(folder.dir, fmt.Sprintf("%d.npz", i))
		if err := t.Write(files[i]); err != nil {
			return nil, err
		}
		p.log("supernet: %d steps of %s to compare", c.Steps, c.Method)
		if ours[i], err = t.Compute(ctx, b, c.Steps); err != nil {
			return nil, fmt.Errorf("%s: %w", c.Method, err)
		}
	}
	var out []Oracle
	for _, o := range peers {
		p.log("supernet: the same in %s", o.name)
		args := []string{filepath.Join(folder.dir, o.script), "fill"}
		for _, file := range files {
			args = append(args, file, filled(file, o.name))
		}
		problem := finish(ctx, p.Python, args...)
		if err := ctx.Err(); err != nil {
			return out, err
		}
		for i, c := range p.Compared {
			r := Oracle{Program: o.name, Method: c.Method, Double: c.Double, Steps: c.Steps, NotRun: problem}
			if problem == "" {
				if r.Differs, err = r.compare(ours[i], filled(files[i], o.name)); err != nil {
					return out, fmt.Errorf("%s in %s: %w", c.Method, o.name, err)
				}
			}
			out = append(out, r)
		}
	}
	return out, nil
}

func filled(start, program string) string {
	return strings.TrimSuffix(start, ".npz") + "-" + program + ".npz"
}

// finish runs a script to its end and returns what went wrong.
func finish(ctx context.Context, python string, args ...string) (problem string) {
	s, err := startPeer(ctx, python, args...)
	if err != nil {
		return err.Error()
	}
	s.busy.Store(true)
	s.stop()
	if s.cmd.ProcessState.Success() {
		return ""
	}
	return s.problemOf(s.cmd.ProcessState.String())
}

func (c *Oracle) compare(ours map[string]trace.Array, file string) (differs string, err error) {
	t, err := trace.Read(file)
	if err != nil {
		return "", err
	}
	for _, d := range t.Compare(ours) {
		c.Arrays++
		if d.Step == 1 {
			c.First = max(c.First, d.Relative)
		} else {
			c.Later = max(c.Later, d.Relative)
		}
		if !d.Within(tolerance) {
			return fmt.Sprintf("%s differs by a part %.1e, at most %v expected in the first step and ten times that "+
				"after it: the programs do not compute the same, so they are not timed",
				d.Name, d.Relative, tolerance), nil
		}
	}
	return "", nil
}

func (p SupernetParams) timeSearch(ctx context.Context, b compute.Backend) ([]Entry, error) {
	t, err := trace.Random(p.Timed, p.Batch, 0)
	if err != nil {
		return nil, err
	}
	resetPeak()
	search, err := trace.NewSearch(b, t)
	if err != nil {
		return nil, err
	}
	defer search.Close()
	train := func(ctx context.Context) (training, error) {
		losses, took, err := search.Train(ctx)
		return training{Seconds: took.Seconds(), Losses: losses}, err
	}
	p.log("supernet: compiling, and comparing the losses")
	write := func(dir string) error { return t.Write(filepath.Join(dir, timedFile)) }
	return p.measure(ctx, train, p.Timed.Steps, write, supernetPeers)
}

// timedFile is TIMED of supernet.py.
const timedFile = "timed.npz"

// WriteTable writes the result for people.
func (r *SupernetResult) WriteTable(w io.Writer) error {
	if len(r.Oracles) > 0 {
		rows := []string{"program\tmethod\ttype\tsteps\tarrays\tfirst step\tlater steps\t"}
		for _, o := range r.Oracles {
			kind := map[bool]string{false: "float32", true: "float64"}[o.Double]
			found := fmt.Sprintf("%d\t%.1e\t%.1e", o.Arrays, o.First, o.Later)
			if o.NotRun != "" {
				found = "not run: " + o.NotRun + "\t\t"
			} else if o.Differs != "" {
				found = o.Differs + "\t\t"
			}
			rows = append(rows, fmt.Sprintf("%s\t%s\t%s\t%d\t%s\t", o.Program, o.Method, kind, o.Steps, found))
		}
		const head = "NAS-Bench-201 supernet: largest relative differences of logits, losses, gradients and updates"
		if err := writeRows(w, head, rows); err != nil {
			return err
		}
		_, _ = fmt.Fprintln(w)
	}
	s := r.Settings
	return writeEntries(w, fmt.Sprintf("One bilevel step of %s: C = %d, N = %d, %d×%d, batch %d, %s", s.Method,
		s.Channels, s.Cells, s.Image, s.Image, r.Batch, r.title()), r.Entries)
}
