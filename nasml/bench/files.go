package bench

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/tensors"
)

// writeNPY writes a tensor of float32 or int32 in NumPy's format 1.0: magic,
// version, the length of the header, the header padded so that the data begins
// at a multiple of 64 bytes, and the elements, row-major and little-endian.
func writeNPY(file string, t *tensors.Tensor) (err error) {
	kind, ok := map[dtypes.DType]string{dtypes.Float32: "<f4", dtypes.Int32: "<i4"}[t.DType()]
	if !ok {
		return fmt.Errorf("%s: found elements of type %s, expected float32 or int32", file, t.DType())
	}
	var dims strings.Builder
	for _, d := range t.Shape().Dimensions {
		fmt.Fprintf(&dims, "%d,", d)
	}
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", kind, dims.String())
	const prefix = 10 // bytes before the header
	header += strings.Repeat(" ", 63-(prefix+len(header))%64) + "\n"
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	head := binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(header)))
	if _, err := f.Write(append(head, header...)); err != nil {
		return err
	}
	var writeErr error
	err = t.ConstBytes(func(data []byte) { _, writeErr = f.Write(data) })
	return errors.Join(err, writeErr)
}

// resetPeak lets the kernel count this process's peak memory anew.
func resetPeak() {
	debug.FreeOSMemory()
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // Linux only, and it is only a number for information
}

// peakMB is the largest resident memory of a process, 0 where the system does
// not tell.
func peakMB(pid string) float64 {
	status, _ := os.ReadFile("/proc/" + pid + "/status")
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	fields := strings.Fields(after)
	if len(fields) == 0 {
		return 0
	}
	kB, _ := strconv.ParseFloat(fields[0], 64)
	return kB / 1000 * 1.024
}

// processorSeconds are the seconds that all processors have worked for this
// process.
func processorSeconds() float64 {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used) // 0 where the system does not tell
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()).Seconds()
}

// WriteTable writes the results for people, one table a case.
func WriteTable(w io.Writer, results []Result) error {
	for _, r := range results {
		_, _ = fmt.Fprintf(
			w,
			"Figure 2 (%s), k = %d: %d networks at once, %d steps, batch %d, data %s, %s (%s), %d threads\n",
			r.Panel,
			r.Width,
			r.Models,
			r.Steps,
			r.Batch,
			r.Data,
			r.Backend,
			r.Device,
			r.Threads,
		)
		if err := writeEntries(w, r.Entries); err != nil {
			return err
		}
	}
	return nil
}

// writeEntries writes the programs of a case as a table.
func writeEntries(w io.Writer, entries []Entry) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(t, "program\tms a step\tprocessor ms\ttime by ours (range)\tcompile s\tpeak MB\t"+
		"losses differ by\t")
	for _, e := range entries {
		_, _ = fmt.Fprintln(t, e.row())
	}
	if err := t.Flush(); err != nil {
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
	return fmt.Sprintf(
		"%s\t%.2f\t%s\t%s\t%.1f\t%.0f\t%s\t",
		name,
		e.StepSeconds*1000,
		processor,
		ratio,
		e.CompileSeconds,
		e.PeakMB,
		difference,
	)
}
