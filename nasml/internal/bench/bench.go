// Package bench times the arithmetic of the figures, by itself and beside the same arithmetic in JAX and PyTorch.
//
// In a comparison everyone works on the same arrays, from the same initial weights, in one run: first the losses are
// compared, so that all compute the same thing, then the programs take turns, so that a slow moment of the machine
// falls on all of them. Only ratios of one round are worth a claim.
package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/nasml/lab/nasml/backend"
	"github.com/nasml/lab/nasml/internal/memory"
	"github.com/nasml/lab/nasml/internal/trace"
	"github.com/nasml/lab/nasml/oymak2021"
)

// Params say what is timed of Figure 2.
type Params struct {
	Timing
	Cases []Case
	Sweep oymak2021.Figure2Params // all of the sweep but panel and width
}

// Timing says how programs are timed.
type Timing struct {
	Rounds int               // timed trainings of each program
	Python string            // interpreter with Requirements installed; empty: no peers
	Log    func(line string) // progress; nil: none
}

// Case is a width of a panel of Figure 2.
type Case struct {
	Panel string `json:"panel"`
	Width int    `json:"width"`
}

// Full are the cases behind the README's claims; with peers they take minutes on two cores. The paper's setting, with 4
// seeds, as many as the paper scale trains together on a CPU, and two epochs over a part of the data: 24 networks, 32
// steps, the last batch incomplete.
var Full = Params{
	Timing: Timing{Rounds: 5},
	Cases:  []Case{{"a", 64}, {"a", 256}, {"a", 1024}, {"b", 128}},
	Sweep:  sweep(4, 2000),
}

// Quick only shows that everything works.
var Quick = Params{Timing: Timing{Rounds: 3}, Cases: []Case{{"a", 64}, {"b", 64}}, Sweep: sweep(2, 500)}

func sweep(seeds, examples int) oymak2021.Figure2Params {
	p := oymak2021.Figure2Paper
	p.Seeds, p.Examples, p.Epochs = seeds, examples, 2
	return p
}

// Result is a case with everyone who ran it. Entries[0] is ours.
type Result struct {
	Case
	Models int    `json:"models"` // networks that are trained together
	Steps  int    `json:"steps"`  // updates of each in one training
	Batch  int    `json:"batch"`
	Data   string `json:"data"`
	Machine
	Entries []Entry `json:"entries"`
}

// Machine is what a result was timed on.
type Machine struct {
	Backend string `json:"backend"`
	Device  string `json:"device"`
	Threads int    `json:"threads"`
}

func machineOf(b compute.Backend) Machine {
	name, device := backend.Describe(b)
	return Machine{name, device, runtime.NumCPU()}
}

func (m Machine) title() string {
	return fmt.Sprintf("%s (%s), %d threads", m.Backend, m.Device, m.Threads)
}

// oursName is how this module's own entry is called.
const oursName = "nasml"

// Entry is one program in one of its forms.
type Entry struct {
	Program string `json:"program"` // "nasml", "JAX" or "PyTorch"
	Form    string `json:"form"`    // "" or how the peer was written
	Version string `json:"version,omitempty"`
	NotRun  string `json:"not_run,omitempty"` // why there are no times

	Best           bool      `json:"best"`                     // the program's fastest form in this case
	Seconds        []float64 `json:"seconds"`                  // of each round's training
	StepSeconds    float64   `json:"step_seconds"`             // median over the rounds, a step of all networks
	StepProcessor  float64   `json:"step_processor,omitempty"` // the same in seconds of all processors; 0: not known
	CompileSeconds float64   `json:"compile_seconds"`          // the first training less the median one
	CachedSeconds  float64   `json:"cached_seconds,omitempty"` // the same, where the program was compiled before
	PeakMB         float64   `json:"peak_mb"`                  // largest resident memory of the process; 0: not known
	LossDifference float64   `json:"largest_loss_difference"`  // largest relative difference of a loss to ours
	Ratio          Spread    `json:"ratio"`                    // its time by ours in a round; > 1: ours is faster
}

// Spread is a median with its range.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// tolerance is the largest relative difference of losses. In float32 they agree to about 1e-6; a learning rate that is
// off by 1 % exceeds it.
const tolerance = 1e-4

// Figure2 times the training of every case on b and calls each with the result. A peer that cannot run, or that
// has other losses, is reported in its entry and not timed.
func Figure2(ctx context.Context, b compute.Backend, p Params, each func(*Result) error) error {
	for _, c := range p.Cases {
		p.log("panel (%s), k = %d", c.Panel, c.Width)
		r, err := p.run(ctx, b, c)
		if err != nil {
			return fmt.Errorf("panel (%s), k = %d: %w", c.Panel, c.Width, err)
		}
		if err := each(r); err != nil {
			return err
		}
	}
	return nil
}

func (t Timing) log(format string, args ...any) {
	if t.Log != nil {
		t.Log(fmt.Sprintf(format, args...))
	}
}

// runner is a program that is ready to train.
type runner struct {
	entry Entry
	train func(context.Context) (training, error)
	peak  func() float64 // MB
	first training       // untimed: it compiles
	work  []float64      // seconds of all processors, a round
}

// training is what one training gives.
type training struct {
	Version   string    `json:"version"`
	Seconds   float64   `json:"seconds"`
	Processor float64   `json:"processor"` // seconds of all processors; 0: not known
	Losses    []float64 `json:"losses"`    // [epoch, seed, variant]
}

func (p Params) run(ctx context.Context, b compute.Backend, c Case) (*Result, error) {
	resetPeak()
	work, err := oymak2021.NewFigure2Work(ctx, b, p.Sweep, c.Panel, c.Width)
	if err != nil {
		return nil, err
	}
	defer work.Close()
	r := &Result{
		Case: c, Models: work.Models(), Steps: work.Steps(), Batch: p.Sweep.Batch, Data: string(p.Sweep.Data),
		Machine: machineOf(b),
	}
	train := func(ctx context.Context) (training, error) {
		losses, took, err := work.Train(ctx)
		return training{Seconds: took.Seconds(), Losses: slices.Concat(losses...)}, err
	}
	write := func(dir string) error { return p.writeInputs(dir, c, work) }
	r.Entries, err = p.measure(ctx, train, r.Steps, write, figure2Peers)
	return r, err
}

// measure times nasml beside its peers: all train once, then in rounds of so many steps. write fills the peers' folder.
func (t Timing) measure(
	ctx context.Context, own func(context.Context) (training, error), steps int, write func(dir string) error,
	peers []program,
) ([]Entry, error) {
	team, err := t.team(ctx, write, peers)
	if err != nil {
		return nil, err
	}
	defer team.stop()
	runners := team.beside(own)
	if err := t.warmUp(ctx, runners); err != nil {
		return nil, err
	}
	if err := t.timeRounds(ctx, runners); err != nil {
		return nil, err
	}
	return entries(runners, steps), nil
}

func (t Timing) warmUp(ctx context.Context, runners []*runner) error {
	for i, r := range runners {
		var err error
		if r.first, err = r.train(ctx); err != nil {
			if i == 0 || ctx.Err() != nil {
				return errors.Join(err, ctx.Err())
			}
			r.entry.NotRun = err.Error()
			continue
		}
		r.entry.Version = r.first.Version
		apart, err := difference(runners[0].first.Losses, r.first.Losses)
		if err != nil {
			r.entry.NotRun = err.Error() // its times would be meaningless
			continue
		}
		r.entry.LossDifference = apart
	}
	return nil
}

// difference is the largest relative difference of losses. One beyond the tolerance, or NaN, is an error.
func difference(ours, theirs []float64) (float64, error) {
	if len(ours) != len(theirs) {
		return 0, fmt.Errorf("found %d losses, expected %d as ours: the programs do not train the same networks",
			len(theirs), len(ours))
	}
	worst := 0.0
	for i := range ours {
		d := math.Abs(theirs[i]-ours[i]) / math.Abs(ours[i])
		if !(d <= tolerance) { // also where it is NaN
			return d, fmt.Errorf(
				"loss %d is %v, ours %v, at most a part %v apart expected: the programs do not compute the same, so "+
					"they are not timed", i, theirs[i], ours[i], tolerance)
		}
		worst = max(worst, d)
	}
	return worst, nil
}

func (t Timing) timeRounds(ctx context.Context, runners []*runner) error {
	for round := range t.Rounds {
		begin := time.Now()
		for i, r := range runners {
			if r.entry.NotRun != "" {
				continue
			}
			before := processorSeconds()
			took, err := r.train(ctx)
			if i == 0 { // this process
				took.Processor = processorSeconds() - before
			}
			if err == nil {
				r.entry.Seconds, r.work = append(r.entry.Seconds, took.Seconds), append(r.work, took.Processor)
			} else if i == 0 || ctx.Err() != nil {
				return errors.Join(err, ctx.Err())
			} else {
				r.entry.NotRun = err.Error()
			}
		}
		t.log("  round %d of %d: %.1f s", round+1, t.Rounds, time.Since(begin).Seconds())
	}
	return nil
}

// entries summarizes the times and marks each program's fastest form.
func entries(runners []*runner, steps int) []Entry {
	var out []Entry
	fastest := map[string]int{}
	for _, r := range runners {
		e := r.entry
		if e.NotRun == "" {
			typical := spread(e.Seconds).Median
			e.StepSeconds, e.CompileSeconds = typical/float64(steps), max(0, r.first.Seconds-typical)
			if len(r.work) > 0 {
				e.StepProcessor = spread(r.work).Median / float64(steps)
			}
			e.PeakMB, e.Ratio = r.peak(), ratio(e.Seconds, runners[0].entry.Seconds)
			if i, ok := fastest[e.Program]; !ok || e.StepSeconds < out[i].StepSeconds {
				fastest[e.Program] = len(out)
			}
		}
		out = append(out, e)
	}
	for _, i := range fastest {
		out[i].Best = true
	}
	return out
}

func ratio(theirs, ours []float64) Spread {
	ratios := make([]float64, len(theirs))
	for i := range theirs {
		ratios[i] = theirs[i] / ours[i]
	}
	return spread(ratios)
}

func spread(xs []float64) Spread {
	s := slices.Sorted(slices.Values(xs))
	n := len(s)
	if n == 0 {
		return Spread{}
	}
	return Spread{Median: (s[(n-1)/2] + s[n/2]) / 2, Min: s[0], Max: s[n-1]}
}

func writeNPY(file string, t *tensors.Tensor) (err error) {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	dims := t.Shape().Dimensions
	err2 := t.ConstFlatData(func(flat any) {
		switch flat := flat.(type) {
		case []float32:
			err = trace.WriteNPY(f, flat, dims...)
		case []int32:
			err = trace.WriteNPY(f, flat, dims...)
		default:
			err = fmt.Errorf("%s: found elements of type %s, expected float32 or int32", file, t.DType())
		}
	})
	return errors.Join(err, err2)
}

// resetPeak restarts the kernel's count of peak memory.
func resetPeak() {
	debug.FreeOSMemory()
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // Linux only, and it is only a number for information
}

// peakMB is a process's peak resident memory; 0 if unknown.
func peakMB(pid string) float64 {
	return memory.Peak(pid) / 1e6
}

// processorSeconds is this process's CPU time.
func processorSeconds() float64 {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used) // 0 where the system does not tell
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()).Seconds()
}

// WriteTable writes the result for people.
func (r *Result) WriteTable(w io.Writer) error {
	return writeEntries(w, fmt.Sprintf("Figure 2 (%s), k = %d: %d networks at once, %d steps, batch %d, data %s, %s",
		r.Panel, r.Width, r.Models, r.Steps, r.Batch, r.Data, r.title()), r.Entries)
}

func writeEntries(w io.Writer, title string, entries []Entry) error {
	rows := []string{"program\tms a step\tprocessor ms\ttime by ours (range)\tcompile s\tpeak MB\tlosses differ by\t"}
	for _, e := range entries {
		rows = append(rows, e.row())
	}
	if err := writeRows(w, title, rows); err != nil {
		return err
	}
	for _, e := range entries {
		if e.NotRun != "" {
			_, _ = fmt.Fprintf(w, "%s was not run: %s\n", e.name(), e.NotRun)
		}
	}
	_, err := fmt.Fprintln(w)
	return err
}

func writeRows(w io.Writer, title string, rows []string) error {
	_, _ = fmt.Fprintln(w, title)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, row := range rows {
		_, _ = fmt.Fprintln(t, row)
	}
	return t.Flush()
}

func (e Entry) name() string {
	return strings.Join(strings.Fields(e.Program+" "+e.Version+" "+e.Form), " ")
}

func (e Entry) row() string {
	if e.NotRun != "" {
		return e.name() + "\tnot run\t\t\t\t\t\t"
	}
	name := e.name()
	if e.Best && e.Form != "" {
		name += " *" // the faster form
	}
	ratio, difference, processor := "1", "", ""
	if e.StepProcessor > 0 {
		processor = fmt.Sprintf("%.1f", e.StepProcessor*1000)
	}
	if e.Program != oursName {
		ratio = fmt.Sprintf("%.2f (%.2f–%.2f)", e.Ratio.Median, e.Ratio.Min, e.Ratio.Max)
		difference = fmt.Sprintf("%.0e", e.LossDifference)
	}
	return fmt.Sprintf("%s\t%.2f\t%s\t%s\t%.1f\t%.0f\t%s\t", name, e.StepSeconds*1000, processor, ratio,
		e.CompileSeconds, e.PeakMB, difference)
}
