package bench

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/nasml/lab/nasml/internal/memory"
	"github.com/nasml/lab/nasml/internal/trace"
)

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
