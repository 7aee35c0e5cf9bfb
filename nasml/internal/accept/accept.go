// Package accept recomputes shipped trials after a change of their source and compares the
// numbers. The papers' packages, which register the entries, have to be imported.
package accept

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
)

// Tolerance is the largest difference of a value computed by XLA in float32, relative to the largest of its series: the
// order of sums changes last digits, and training magnifies them. Host arithmetic must agree exactly.
const Tolerance = 1e-2

// rounding is the size below which numbers from XLA are compared absolutely.
const rounding = 1e-9

// Trial is a trial that are shipped, with how to compute it.
type Trial struct {
	record  *runs.Record
	entry   catalog.Entry
	setting catalog.Setting
}

func (t Trial) seconds() float64 { return t.record.Seconds / float64(max(1, t.record.Batch)) }

// ByVersion has trials by the version of their code.
type ByVersion map[string][]Trial

// Seconds is what trials took when they were computed, s.
func Seconds(trials []Trial) float64 {
	sum := 0.0
	for _, t := range trials {
		sum += t.seconds()
	}
	return sum
}

// Shipped lists the shipped trials by the version of their code. notes lists entries that need missing data.
func Shipped(ctx context.Context) (byVersion ByVersion, notes []string, err error) {
	byVersion = ByVersion{}
	seen := map[string]bool{}
	for _, entry := range catalog.All() {
		for _, setting := range entry.AllSettings() {
			records, err := shippedRecords(ctx, entry, setting)
			if err != nil {
				notes = append(notes, fmt.Sprintf("%s %s is not looked at: %v", entry.ID, setting, err))
				continue
			}
			for _, key := range slices.Sorted(maps.Keys(records)) {
				if r := records[key]; !seen[key] {
					seen[key] = true
					byVersion[r.Trial.Code] = append(byVersion[r.Trial.Code], Trial{r, entry, setting})
				}
			}
		}
	}
	return byVersion, notes, nil
}

func shippedRecords(ctx context.Context, entry catalog.Entry, s catalog.Setting) (map[string]*runs.Record, error) {
	ctx, clean, err := apart(ctx)
	if err != nil {
		return nil, err
	}
	defer clean()
	part := new(runs.Part)
	err = entry.RunPart(ctx, part, s.Scale, s.Set)
	if part.Err() != nil {
		return nil, part.Err()
	}
	if len(part.Stored()) == 0 && err != nil { // else it comes from records without values
		return nil, err
	}
	return part.Stored(), nil
}

// apart is a context with an empty store.
func apart(ctx context.Context) (_ context.Context, clean func(), err error) {
	dir, err := os.MkdirTemp("", "nasml-accept-*")
	if err != nil {
		return nil, nil, fmt.Errorf("a place to recompute trials: %w", err)
	}
	clean = func() { _ = os.RemoveAll(dir) }
	store, err := runs.Open(dir)
	if err != nil {
		clean()
		return nil, nil, err
	}
	return runs.WithProgress(runs.WithStore(ctx, store), runs.Silent), clean, nil
}

// Pick chooses trials to recompute: the cheapest of every branch, and one that the source's hash draws, so that it is
// unpredictable. Branches whose cheapest trial took longer than most seconds are left.
func Pick(trials []Trial, source string, most float64) (picked []Trial, left []string) {
	branches := map[string][]Trial{}
	for _, t := range trials {
		b := branch(t.record.Trial)
		branches[b] = append(branches[b], t)
	}
	for _, b := range slices.Sorted(maps.Keys(branches)) {
		if t, _ := Cheapest(branches[b]); t.seconds() <= most {
			picked = append(picked, t)
		} else {
			left = append(left, fmt.Sprintf("%s (its cheapest trial took %.0f s)", b, t.seconds()))
		}
	}
	affordable := slices.DeleteFunc(slices.Clone(trials), func(t Trial) bool { return t.seconds() > most })
	if len(affordable) > 0 {
		slices.SortFunc(affordable, func(a, b Trial) int { return strings.Compare(a.record.Key, b.record.Key) })
		h := fnv.New64a()
		_, _ = h.Write([]byte(source)) // never fails
		drawn := affordable[h.Sum64()%uint64(len(affordable))]
		if !slices.ContainsFunc(picked, func(t Trial) bool { return t.record.Key == drawn.record.Key }) {
			picked = append(picked, drawn)
		}
	}
	return picked, left
}

// Cheapest is the trial that took the least time; false if there is none.
func Cheapest(trials []Trial) (Trial, bool) {
	if len(trials) == 0 {
		return Trial{}, false
	}
	return slices.MinFunc(trials, func(a, b Trial) int {
		return cmp.Or(cmp.Compare(a.seconds(), b.seconds()), strings.Compare(a.record.Key, b.record.Key))
	}), true
}

// branch identifies the code path of a trial: its figure and all strings and switches among its parameters.
func branch(t runs.Trial) string {
	text, err := json.Marshal(t.Params)
	if err != nil {
		return t.Figure
	}
	var params any
	if err := json.Unmarshal(text, &params); err != nil {
		return t.Figure
	}
	var words []string
	collect("", params, &words)
	slices.Sort(words)
	return strings.Join(append([]string{t.Figure}, words...), " ")
}

func collect(name string, v any, words *[]string) {
	const most = 40 // longer text is data, such as a probe
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			collect(key, value, words)
		}
	case string:
		if len(v) <= most {
			*words = append(*words, name+"="+v)
		}
	case bool:
		*words = append(*words, fmt.Sprintf("%s=%v", name, v))
	}
}

// Difference is a number of a recomputed trial that is not the shipped one.
type Difference struct {
	Trial    runs.Trial
	Name     string // of the value or series, with the position
	Old, New float64
	Relative float64 // |new − old| by the largest of the series
	Host     bool    // computed in float64 on the host
	// through XLA on a machine of another kind, or one that the record does not name: training amplifies its rounding
	Elsewhere bool
	Missing   string // why there is no new number; empty if there is one
}

// Counts reports whether the source shows in the difference.
func (d Difference) Counts() bool { return !d.Elsewhere || d.Missing != "" }

func (d Difference) String() string {
	what := fmt.Sprintf("%s, seed %d, %s", d.Trial.Figure, d.Trial.Seed, branch(d.Trial))
	if d.Missing != "" {
		return what + ": " + d.Missing
	}
	return fmt.Sprintf("%s: %s was %v and is %v (relative difference %.2g)", what, d.Name, d.Old, d.New, d.Relative)
}

// Recompute recomputes trials and returns what moved by more than the tolerance, and the largest relative difference.
// progress gets what is computed.
func Recompute(
	ctx context.Context, trials []Trial, progress func(text string),
) (moved []Difference, largest float64, err error) {
	type call struct{ id, setting string }
	groups := map[call][]Trial{}
	for _, t := range trials {
		at := call{t.entry.ID, t.setting.String()}
		groups[at] = append(groups[at], t)
	}
	order := slices.SortedFunc(maps.Keys(groups), func(a, b call) int {
		return cmp.Or(strings.Compare(a.id, b.id), strings.Compare(a.setting, b.setting))
	})
	for _, at := range order {
		group := groups[at]
		progress(fmt.Sprintf("%s %s: %d trials", at.id, at.setting, len(group)))
		found, err := recompute(ctx, group)
		if err != nil {
			return moved, largest, fmt.Errorf("%s %s: %w", at.id, at.setting, err)
		}
		for _, t := range group {
			differences, most := compare(t.record, found[t.record.Key])
			moved, largest = append(moved, differences...), max(largest, most)
		}
	}
	return moved, largest, nil
}

// recompute computes trials of one entry and setting, whatever is shipped.
func recompute(ctx context.Context, group []Trial) (map[string]*runs.Record, error) {
	part := &runs.Part{Keys: map[string]bool{}}
	for _, t := range group {
		part.Keys[t.record.Key] = true
	}
	ctx, clean, err := apart(runs.WithoutShipped(ctx, part.Keys))
	if err != nil {
		return nil, err
	}
	defer clean()
	first := group[0]
	err = first.entry.RunPart(ctx, part, first.setting.Scale, first.setting.Set)
	if part.Err() != nil {
		return nil, part.Err()
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	found := part.Stored()
	if len(found) == 0 && err != nil {
		return nil, err
	}
	return found, nil
}

// compare lists the numbers of two records that differ too much. Those computed by XLA may differ by rounding.
func compare(old, now *runs.Record) (moved []Difference, largest float64) {
	d := Difference{Trial: old.Trial, Host: onHost(old)}
	if now == nil {
		d.Missing = "it was not computed: its entry did not ask for it"
		return []Difference{d}, 0
	}
	d.Elsewhere = !d.Host && (old.Host.Processor == "" || old.Host != now.Host || old.Backend != now.Backend)
	for _, name := range names(old, now) {
		if strings.HasPrefix(name, "seconds") || name == "looking" { // measured times, which are never reproduced
			continue
		}
		a, b := numbers(old, name), numbers(now, name)
		if len(a) != len(b) {
			d.Missing = fmt.Sprintf("%s had %d numbers and has %d", name, len(a), len(b))
			moved = append(moved, d)
			continue
		}
		at, relative := worst(a, b, d.Host)
		largest = max(largest, relative)
		if at >= 0 && (d.Host || relative > Tolerance) {
			d.Missing, d.Name = "", fmt.Sprintf("%s[%d]", name, at)
			d.Old, d.New, d.Relative = a[at], b[at], relative
			moved = append(moved, d)
		}
	}
	return moved, largest
}

// worst is where two series differ most relative to the largest of the first, and by how much; at is −1 if nowhere.
func worst(a, b []float64, host bool) (at int, relative float64) {
	at, scale := -1, math.SmallestNonzeroFloat64
	if !host {
		scale = rounding
	}
	for _, x := range a {
		scale = max(scale, math.Abs(x))
	}
	for i := range a {
		if r := math.Abs(b[i]-a[i]) / scale; a[i] != b[i] && (at < 0 || r > relative) {
			at, relative = i, r
		}
	}
	return at, relative
}

// onHost reports whether a record was computed in float64 by Go, under any name that records have used.
func onHost(r *runs.Record) bool {
	return r.Device == "cpu" && slices.Contains([]string{"host", "gonum", "go"}, r.Backend)
}

func names(a, b *runs.Record) []string {
	all := map[string]bool{}
	for _, r := range []*runs.Record{a, b} {
		for name := range r.Values {
			all[name] = true
		}
		for name := range r.Series {
			all[name] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

func numbers(r *runs.Record, name string) []float64 {
	if series, ok := r.Series[name]; ok {
		return series
	}
	if value, ok := r.Values[name]; ok {
		return []float64{value}
	}
	return nil
}

// Open returns the code versions that are not accepted yet, of those named or of all.
func Open(names []string) (open []*code.Kind, err error) {
	known := study.Map(code.Kinds(), (*code.Kind).Name)
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("no kind of trials is called %q: there are %s", name, strings.Join(known, ", "))
		}
	}
	for _, k := range code.Kinds() {
		accepted, err := k.Accepted()
		if err != nil {
			return nil, err
		}
		if !accepted && (len(names) == 0 || slices.Contains(names, k.Name())) {
			open = append(open, k)
		}
	}
	return open, nil
}
