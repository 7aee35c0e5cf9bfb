package bench

import (
	"context"
	"embed"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"text/tabwriter"

	"github.com/gomlx/compute"

	"github.com/nasml/lab/nasml/backend"
	"github.com/nasml/lab/nasml/bilevel"
	"github.com/nasml/lab/nasml/internal/trace"
	"github.com/nasml/lab/nasml/supernet"
)

// SupernetParams say which search steps of the NAS-Bench-201 supernet are
// compared with the oracles, and which is timed.
type SupernetParams struct {
	Compared     []Comparison
	CompareBatch int
	Timed        trace.Settings
	Batch        int
	Rounds       int
	Python       string            // interpreter with Requirements installed; empty: no peers
	Log          func(line string) // progress; nil: none
}

// SupernetFull is behind the README's claims: a full bilevel step at C = 16,
// N = 1, 32×32 pixels, batch 64, after ten small steps of each method.
var SupernetFull = SupernetParams{
	Compared: small(4, 16, 10), CompareBatch: 16,
	Timed: searchSettings("gaea-darts", 16, 32, 3), Batch: 64, Rounds: 5,
}

// Comparison is a search whose steps are compared.
type Comparison struct {
	trace.Settings
	Double bool // in float64: many steps in float32 part at a ReLU, see package trace
}

// SupernetQuick only shows that everything works.
var SupernetQuick = SupernetParams{
	Compared: small(2, 8, 2)[:2], CompareBatch: 4,
	Timed: searchSettings("gaea-darts", 4, 8, 2), Batch: 8, Rounds: 3,
}

// small are the comparisons: one step in float32, so many in float64 of each
// method, DARTS and GAEA as in GAEA's code, the GDAS methods as in
// AutoDL-Projects.
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
	Backend  string         `json:"backend"`
	Device   string         `json:"device"`
	Threads  int            `json:"threads"`
	Entries  []Entry        `json:"entries"`
}

// Oracle is the comparison with one program's steps of one method.
type Oracle struct {
	Program string  `json:"program"`
	Method  string  `json:"method"`
	Double  bool    `json:"double"` // in float64
	Steps   int     `json:"steps"`
	NotRun  string  `json:"not_run,omitempty"`
	Arrays  int     `json:"arrays"`
	First   float64 `json:"first"` // largest relative difference of an array of the first step
	Later   float64 `json:"later"` // and of the later ones
}

//go:embed peer.py supernet.py supernet_jax.py supernet_torch.py
var oracleScripts embed.FS

// oracle is a program that computes the same steps, plainly written, and the
// forms in which it is timed.
type oracle struct {
	program, script string
	forms           []string
}

var oracles = []oracle{
	{"JAX", "supernet_jax.py", []string{"stock"}},
	{"PyTorch", "supernet_torch.py", []string{"channels-last", "contiguous"}},
}

// Supernet times one search on b beside those of JAX and PyTorch, in turn, and
// compares search steps with theirs, from the same weights on the same batches.
// The comparison comes last, for what it leaves in our process would count as
// our memory, while the peers compare in processes of their own. A peer that
// cannot run is reported as such. It returns an error if ctx ends, or if a peer
// computes something else: no times are reported then, for they mean nothing.
func Supernet(ctx context.Context, b compute.Backend, p SupernetParams) (*SupernetResult, error) {
	peers, err := newTeam(func(dir string) error { return os.CopyFS(dir, oracleScripts) })
	if err != nil {
		return nil, err
	}
	defer peers.stop()
	r := &SupernetResult{Settings: p.Timed, Batch: p.Batch, Threads: runtime.NumCPU()}
	r.Backend, r.Device = backend.Describe(b)
	times, err := p.time(ctx, b, peers)
	if err != nil {
		return r, err
	}
	if p.Python != "" {
		if r.Oracles, err = p.compare(ctx, b, peers.dir, oracles); err != nil {
			return r, err
		}
	}
	r.Entries = times
	return r, nil
}

func (p SupernetParams) timer() Params { return Params{Rounds: p.Rounds, Log: p.Log} }

// compare computes the steps of every comparison, lets the oracles fill in
// traces of the same steps, and compares.
func (p SupernetParams) compare(
	ctx context.Context,
	b compute.Backend,
	dir string,
	oracles []oracle,
) ([]Oracle, error) {
	ours, files := make([]map[string]trace.Array, len(p.Compared)), make([]string, len(p.Compared))
	for i, c := range p.Compared {
		t, err := trace.Random(c.Settings, p.CompareBatch, uint64(i))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Method, err)
		}
		if c.Double {
			t.Double()
		}
		files[i] = filepath.Join(dir, fmt.Sprintf("%d.npz", i))
		if err := t.Write(files[i]); err != nil {
			return nil, err
		}
		p.timer().log("supernet: %d steps of %s to compare", c.Steps, c.Method)
		if ours[i], err = t.Compute(ctx, b, c.Steps); err != nil {
			return nil, fmt.Errorf("%s: %w", c.Method, err)
		}
	}
	var out []Oracle
	for _, o := range oracles {
		p.timer().log("supernet: the same in %s", o.program)
		args := []string{filepath.Join(dir, o.script), "fill"}
		for _, file := range files {
			args = append(args, file, filled(file, o.program))
		}
		problem := finish(ctx, p.Python, args)
		if err := ctx.Err(); err != nil {
			return out, err
		}
		for i, c := range p.Compared {
			r := Oracle{Program: o.program, Method: c.Method, Double: c.Double, Steps: c.Steps, NotRun: problem}
			if problem == "" {
				if err := r.compare(ours[i], filled(files[i], o.program)); err != nil {
					return out, fmt.Errorf("%s in %s: %w", c.Method, o.program, err)
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
func finish(ctx context.Context, python string, args []string) (problem string) {
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

// compare compares a trace with what we computed. It returns an error if one of
// its arrays is beyond the tolerance.
func (c *Oracle) compare(ours map[string]trace.Array, file string) error {
	t, err := trace.Read(file)
	if err != nil {
		return err
	}
	for _, d := range t.Compare(ours) {
		c.Arrays++
		if d.Step == 1 {
			c.First = max(c.First, d.Relative)
		} else {
			c.Later = max(c.Later, d.Relative)
		}
		if !d.Within(tolerance) {
			return fmt.Errorf(
				"%s differs by a part %.1e, at most %v expected in the first step and ten times that after it: the "+
					"programs do not compute the same, so they are not timed", d.Name, d.Relative, tolerance)
		}
	}
	return nil
}

// time runs everyone on the same search.
func (p SupernetParams) time(ctx context.Context, b compute.Backend, peers *team) ([]Entry, error) {
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
	runners := []*runner{ours(func(ctx context.Context) (training, error) {
		losses, took, err := search.Train(ctx)
		return training{Seconds: took.Seconds(), Losses: losses}, err
	})}
	if p.Python != "" {
		file := filepath.Join(peers.dir, "timed.npz")
		if err := t.Write(file); err != nil {
			return nil, err
		}
		p.startPeers(ctx, peers, file)
		defer peers.end()
		runners = append(runners, peers.runners...)
	}
	p.timer().log("supernet: compiling, and comparing the losses")
	return p.timer().measure(ctx, runners, p.Timed.Steps)
}

// startPeers starts every form of every oracle.
func (p SupernetParams) startPeers(ctx context.Context, peers *team, file string) {
	for _, o := range oracles {
		for _, form := range o.forms {
			peers.start(ctx, p.Python, o.program, form, o.script, "serve", file, form)
		}
	}
}

// WriteTable writes the result for people.
func (r *SupernetResult) WriteTable(w io.Writer) error {
	if len(r.Oracles) > 0 {
		_, _ = fmt.Fprintln(w,
			"NAS-Bench-201 supernet: largest relative differences of logits, losses, gradients and updates")
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		_, _ = fmt.Fprintln(t, "program\tmethod\ttype\tsteps\tarrays\tfirst step\tlater steps\t")
		for _, o := range r.Oracles {
			kind := map[bool]string{false: "float32", true: "float64"}[o.Double]
			if o.NotRun != "" {
				_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%d\tnot run: %s\t\t\t\n", o.Program, o.Method, kind, o.Steps,
					o.NotRun)
				continue
			}
			_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d\t%.1e\t%.1e\t\n", o.Program, o.Method, kind, o.Steps, o.Arrays,
				o.First, o.Later)
		}
		if err := t.Flush(); err != nil {
			return err
		}
		_, _ = fmt.Fprintln(w)
	}
	s := r.Settings
	_, _ = fmt.Fprintf(w, "One bilevel step of %s: C = %d, N = %d, %d×%d, batch %d, %s (%s), %d threads\n",
		s.Method, s.Channels, s.Cells, s.Image, s.Image, r.Batch, r.Backend, r.Device, r.Threads)
	return writeEntries(w, r.Entries)
}
