package li2021

import (
	"context"
	"fmt"
	"math"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/plots"
)

// theory computes the trials of a theorem: many small ones, each in one
// goroutine, on all cores.
type theory struct {
	id, title string
	code      func() (string, error)
}

// trialOf is a trial with what computes it and about how much work that is.
type trialOf[P any] struct {
	params P
	seed   uint64
	units  int
}

// runTheory reads or computes the records of trials, in their order. A trial's
// result depends on its parameters and seed only. Cancelling ctx ends it; what
// is finished stays stored.
func runTheory[P any](ctx context.Context, th theory, trials []trialOf[P], compute func(ctx context.Context, p P, seed uint64) (runs.Result, error)) ([]*runs.Record, error) {
	store, err := runs.FromContextWith(ctx, shippedRecords, path.Base(th.id))
	if err != nil {
		return nil, err
	}
	code, err := th.code()
	if err != nil {
		return nil, err
	}
	total, all := 0, make([]runs.Trial, len(trials))
	for i, t := range trials {
		total += t.units
		all[i] = runs.Trial{Figure: th.id, Params: t.params, Seed: t.seed, Code: code}
	}
	progress := runs.ProgressFrom(ctx)
	progress.Start(total, th.title)
	defer progress.Done()
	return store.Compute(ctx, all, runs.Options{}, func(ctx context.Context, job *runs.Job) error {
		job.Backend, job.Device = "go", "cpu"
		missing := 0
		for _, at := range job.Index {
			missing += trials[at].units
		}
		progress.Skip(total - missing)
		return inParallel(ctx, len(job.Index), func(ctx context.Context, i int) error {
			t := trials[job.Index[i]]
			result, err := compute(ctx, t.params, t.seed)
			if err == nil {
				err = job.Done(i, result)
			}
			if err != nil {
				return fmt.Errorf("%s, %+v, seed %d: %w", th.id, t.params, t.seed, err)
			}
			progress.Step(t.units, "")
			return nil
		})
	})
}

// inParallel calls do for 0, …, n−1, as many at a time as there are cores, and
// returns the first error; no call begins after one.
func inParallel(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int, n)
	for i := range n {
		next <- i
	}
	close(next)
	var workers sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			for i := range next {
				if ctx.Err() != nil {
					return
				}
				if err := do(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	workers.Wait()
	return context.Cause(ctx)
}

// slopeOf is the slope of log y over log x by least squares.
func slopeOf(x, y []float64) float64 {
	lx, ly := make([]float64, len(x)), make([]float64, len(y))
	for i := range x {
		lx[i], ly[i] = math.Log(x[i]), math.Log(y[i])
	}
	_, slope := stat.LinearRegression(lx, ly, nil, false)
	return slope
}

// slopes summarizes the slopes of one curve a seed, or of one problem: Student's
// interval over the curves, which are independent. A curve with a value that
// has no logarithm is an error.
func slopes(x []float64, curves [][]float64, confidence float64) (runs.Summary, error) {
	if len(x) < 2 {
		return runs.Summary{}, fmt.Errorf("a slope needs two points, there are %d", len(x))
	}
	var each []float64
	for i, y := range curves {
		if len(y) != len(x) || !(slices.Min(y) > 0) {
			return runs.Summary{}, fmt.Errorf("curve %d of %d has the values %v for %d points, expected as many positive ones", i, len(curves), y, len(x))
		}
		each = append(each, slopeOf(x, y))
	}
	return runs.Summarize(each, confidence)
}

// addGeometric adds a point of a curve on a log axis: the geometric mean of
// values and its interval. Without a value, or with one that is not positive,
// there is no point.
func addGeometric(s *plots.Series, x float64, values []float64, confidence float64) {
	m, err := runs.Summarize(logs(values), confidence)
	if err != nil {
		return
	}
	lo, hi := m.Lo, m.Hi
	if !lo.Valid() || !hi.Valid() {
		lo, hi = runs.Number(m.Mean), runs.Number(m.Mean)
	}
	s.X, s.Y = append(s.X, x), append(s.Y, math.Exp(m.Mean))
	s.Lo, s.Hi = append(s.Lo, math.Exp(float64(lo))), append(s.Hi, math.Exp(float64(hi)))
}

func logs(x []float64) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = math.Log(v)
	}
	return out
}

// wilson is the interval of a share k/n by Wilson's score, which does not
// degenerate at 0 and n.
func wilson(k, n int, confidence float64) (lo, hi float64) {
	if n == 0 {
		return 0, 1
	}
	z := distuv.UnitNormal.Quantile((1 + confidence) / 2)
	share, m := float64(k)/float64(n), float64(n)
	center := (share + z*z/(2*m)) / (1 + z*z/m)
	half := z / (1 + z*z/m) * math.Sqrt(share*(1-share)/m+z*z/(4*m*m))
	return math.Max(0, center-half), math.Min(1, center+half)
}

// checks collects what is wrong with parameters.
type checks []string

func (c *checks) expect(ok bool, format string, args ...any) {
	if !ok {
		*c = append(*c, fmt.Sprintf(format, args...))
	}
}

// common looks at what all theorems have.
func (c *checks) common(seeds int, confidence float64) {
	c.expect(seeds >= 2, "Seeds is %d, want at least 2: intervals are over seeds", seeds)
	c.expect(confidence > 0 && confidence < 1, "Confidence is %v, want between 0 and 1, such as 0.95", confidence)
}

// ascending wants at least so many different values, in ascending order.
func ascending[T int | float64](c *checks, field string, values []T, atLeast int, above T) {
	ok := len(values) >= atLeast
	for i, v := range values {
		ok = ok && v > above && (i == 0 || v > values[i-1])
	}
	c.expect(ok, "%s is %v, want at least %d values above %v in ascending order", field, values, atLeast, above)
}

func (c *checks) err(what string) error {
	if len(*c) == 0 {
		return nil
	}
	return catalog.Usagef("parameters of %s: %s", what, strings.Join(*c, "; "))
}

// atMost fills in a claim that a mean is at most a bound: it holds where the
// whole interval is, fails where none of it is, and is else undecided.
func atMost(c runs.Claim, s runs.Summary, bound float64) runs.Claim {
	c.Ours, c.Lo, c.Hi = runs.Number(s.Mean), s.Lo, s.Hi
	switch {
	case !s.Lo.Valid() || !s.Hi.Valid():
		c.Note += "; undecided: one value has no interval"
	case float64(s.Hi) <= bound:
		c.Holds = runs.Holds
	case float64(s.Lo) > bound:
		c.Holds = runs.Fails
	default:
		c.Note += "; undecided: the interval holds the bound"
	}
	return c
}

// exactly fills in a claim on a number without noise: ours, with the largest
// error seen, is the paper's within the tolerance.
func exactly(c runs.Claim, paper, ours, tolerance float64) runs.Claim {
	c.Paper, c.Ours, c.Tolerance = runs.Number(paper), runs.Number(ours), runs.Number(tolerance)
	c.Holds = runs.Judge(math.Abs(ours-paper) <= tolerance)
	return c
}

// scaleNote says at which scale a theorem was computed, where that is known: a
// notebook hands over parameters.
func scaleNote(scale string) string {
	switch scale {
	case catalog.Quick:
		return " Quick scale."
	case catalog.Paper:
		return " Paper scale."
	}
	return ""
}
