package trace

import (
	"context"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/gomlx/compute"
	"gonum.org/v1/gonum/floats"

	"github.com/nasml/lab/nasml/supernet"
)

// Difference is how far our array is from a trace's, as the package comment defines.
type Difference struct {
	Name     string  `json:"name"`
	Step     int     `json:"step"` // from 1
	Absolute float64 `json:"absolute"`
	Relative float64 `json:"relative"`
	Scale    float64 `json:"scale"`
}

// Within reports whether the relative difference is at most tolerance, or ten times that after the first step: rounding
// grows.
func (d Difference) Within(tolerance float64) bool {
	if d.Step > 1 {
		tolerance *= 10
	}
	return d.Relative <= tolerance
}

// Replay computes the steps that the trace has arrays of on b and compares these, in order. It returns an error if the
// trace fails [Trace.Check] or a number is not finite.
func (t *Trace) Replay(ctx context.Context, b compute.Backend) ([]Difference, error) {
	last := 0
	for _, name := range t.compared() {
		step, _, _ := splitStep(name, t.Settings.Steps)
		last = max(last, step)
	}
	ours, err := t.Compute(ctx, b, last)
	if err != nil {
		return nil, err
	}
	return t.Compare(ours), nil
}

// Compare compares every output of the trace with ours, of [Trace.Compute], in order.
func (t *Trace) Compare(ours map[string]Array) []Difference {
	same := func(plain string) string { return plain }
	return compareSteps(t.compared(), t.Arrays, ours, t.before(), t.Settings.Steps, same)
}

// Compute computes so many steps on b and returns all arrays of a trace. It has Replay's errors.
func (t *Trace) Compute(ctx context.Context, b compute.Backend, steps int) (map[string]Array, error) {
	s, err := newSearch(b, t, true)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	state, err := s.start()
	if err != nil {
		return nil, err
	}
	return observeSteps(ctx, steps, func(step int) (found map[string]Array, err error) {
		state, found, err = s.observe(state, step)
		return found, err
	})
}

func observeSteps(
	ctx context.Context, steps int, observe func(step int) (map[string]Array, error),
) (map[string]Array, error) {
	all := map[string]Array{}
	for step := range steps {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		found, err := observe(step)
		if err != nil {
			return nil, fmt.Errorf("step %d: %w", step+1, err)
		}
		for plain, a := range found {
			all[stepName(step+1, plain)] = a
		}
	}
	return all, nil
}

func stepName(step int, plain string) string {
	if step == 1 {
		return plain
	}
	return fmt.Sprintf("steps/%d/%s", step, plain)
}

// compareSteps compares arrays with ours. as maps a plain name to the name used in before and for families.
func compareSteps(
	names []string, theirs, ours, before map[string]Array, steps int, as func(plain string) string,
) []Difference {
	least := make([]map[string]float64, steps+1) // by step
	for name, a := range ours {
		step, plain, _ := splitStep(name, steps)
		if least[step] == nil {
			least[step] = map[string]float64{}
		}
		raise(least[step], as(plain), a, before)
	}
	var all []Difference
	for _, name := range names {
		step, plain, _ := splitStep(name, steps)
		d := difference(as(plain), ours[name], theirs[name], before, least[step])
		d.Name, d.Step = name, step
		all = append(all, d)
	}
	return all
}

func (t *Trace) before() map[string]Array {
	out := map[string]Array{}
	for name, a := range t.Arrays {
		if parameter := methods[t.Settings.Method].parameter; strings.HasPrefix(name, "weights/") || name == parameter {
			out["after/"+name] = a
		}
	}
	if net, err := t.Settings.net(); err == nil { // Check has built it
		for _, w := range net.Stats() {
			out["after/stats/"+w.Path] = t.stat(w)
		}
	}
	return out
}

func (t *Trace) stat(w supernet.Weight) Array {
	if a, ok := t.Arrays["stats/"+w.Path]; ok {
		return a
	}
	a := zeros(w.Dims...)
	if w.Init == supernet.InitOnes {
		floats.AddConst(1, a.Values)
	}
	return a
}

// families are the arrays that share a least scale, by the start of the names.
var families = []string{"after/weights/", "after/stats/", "grad/"}

// ofArchitecture is the least scale of the architecture's gradient.
const ofArchitecture = "architecture"

func family(name string) string {
	if name == "grad/alpha" || name == "grad/theta" {
		return ofArchitecture
	}
	for _, f := range families {
		if strings.HasPrefix(name, f) {
			return f
		}
	}
	return ""
}

// raise raises the least scale of an array's family to a tenth of its scale.
func raise(least map[string]float64, name string, a Array, before map[string]Array) {
	f := family(name)
	if f == "" || f == ofArchitecture {
		return
	}
	size := scale(name, a, before)
	least[f] = max(least[f], size/10)
	if f == "grad/" { // both are derivatives of a mean cross entropy
		least[ofArchitecture] = max(least[ofArchitecture], size/1000)
	}
}

func scale(name string, a Array, before map[string]Array) float64 {
	if start, ok := before[name]; ok {
		return farthest(a.Values, start.Values)
	}
	return floats.Norm(a.Values, math.Inf(1))
}

func difference(name string, ours, theirs Array, before map[string]Array, least map[string]float64) Difference {
	if strings.HasSuffix(name, "_prints") {
		return printsDifference(ours, theirs, before[name].Values)
	}
	d := Difference{Absolute: farthest(ours.Values, theirs.Values), Scale: scale(name, theirs, before)}
	rounding := 0.0
	if _, ok := before[name]; ok {
		epsilon := map[string]float64{"<f4": 0x1p-23, "<f8": 0x1p-52}[theirs.Type]
		rounding = epsilon * floats.Norm(theirs.Values, math.Inf(1))
	}
	if d.Scale = max(d.Scale, least[family(name)]); d.Scale == 0 {
		d.Scale = 1
	}
	d.Relative = max(0, d.Absolute-rounding) / d.Scale
	return d
}

func farthest(x, y []float64) float64 {
	worst := 0.0
	for i := range x {
		worst = max(worst, math.Abs(x[i]-y[i]))
	}
	return worst
}

func (t *Authors) inputs() map[string]wanted {
	s, batch := t.Settings, 0
	if images := t.Arrays["train_images"].Dims; len(images) == 5 {
		batch = images[1]
	}
	want := map[string]wanted{}
	for _, part := range []string{"train", "valid"} {
		if part == "train" || !t.kind.evaluation {
			want[part+"_images"] = wanted{dims: []int{s.Steps, batch, 3, s.Image, s.Image}}
			want[part+"_labels"] = wanted{dims: []int{s.Steps, batch}, classes: s.Classes}
		}
	}
	blocks := t.net.Architecture()
	for _, a := range t.architecture() {
		dims := []int{blocks[a.blocks[0]].Rows, blocks[a.blocks[0]].Options}
		if a.flat {
			dims = []int{0}
			for _, b := range a.blocks {
				dims[0] += blocks[b].Options
			}
		}
		want["start/"+a.name] = wanted{dims: dims}
	}
	return want
}

func (t *Authors) compared() []string {
	inputs := t.inputs()
	names := slices.Collect(maps.Keys(t.Arrays))
	names = slices.DeleteFunc(names, func(name string) bool {
		_, isInput := inputs[name]
		return isInput || strings.HasPrefix(name, "start/")
	})
	sortBySteps(names, t.Settings.Steps)
	return names
}

// Replay computes the trace's steps on b and compares all its arrays. It returns an error for an array not listed at
// [Authors], a number that is not finite, and another genotype.
func (t *Authors) Replay(ctx context.Context, b compute.Backend) ([]Difference, error) {
	run, err := newAuthorsRun(b, t)
	if err != nil {
		return nil, err
	}
	defer run.close()
	ours, err := observeSteps(ctx, t.Settings.Steps, run.observe)
	if err != nil {
		return nil, err
	}
	if ours["eval_logits"], err = run.evaluate(); err != nil {
		return nil, fmt.Errorf("evaluation: %w", err)
	}
	if err := run.checkGenotype(); err != nil {
		return nil, err
	}
	return t.compare(ours)
}

func (t *Authors) compare(ours map[string]Array) ([]Difference, error) {
	names := t.compared()
	for _, name := range names {
		theirs, mine := t.Arrays[name], ours[name]
		if _, _, err := splitStep(name, t.Settings.Steps); err != nil || len(mine.Values) != len(theirs.Values) {
			return nil, fmt.Errorf("%s: found shape %v, here it has %v: no array is called this with these settings, "+
				"or it is of another shape (see the comment of trace.Authors)", name, theirs.Dims, mine.Dims)
		}
	}
	before := map[string]Array{}
	var states []Array
	for _, s := range t.Settings.State {
		states = append(states, t.Arrays["start/"+s.Name])
	}
	before["after_prints"] = printsOf(states)
	for name, a := range t.Arrays {
		if rest, ok := strings.CutPrefix(name, "start/"); ok {
			before[authorsName("after/"+rest)] = a
		}
	}
	return compareSteps(names, t.Arrays, ours, before, t.Settings.Steps, authorsName), nil
}

// authorsName is the name of an array's family in the package's own format.
func authorsName(plain string) string {
	rest, ok := strings.CutPrefix(plain, "after/")
	switch {
	case !ok:
		if strings.HasPrefix(plain, "grad/") && architectureName.MatchString(plain) {
			return plain[len("grad/"):] // a family of its own
		}
		return plain
	case architectureName.MatchString(plain):
		return plain
	case strings.Contains(rest, ".running_"):
		return "after/stats/" + rest
	}
	return "after/weights/" + rest
}

var architectureName = regexp.MustCompile(`/(alphas|betas|edges)_`)

// prints are Σx, ‖x‖₂ and Σ xₖ cos k.
func prints(x []float64) []float64 {
	p := make([]float64, 3)
	for k, v := range x {
		p[0] += v
		p[1] += v * v
		p[2] += v * math.Cos(float64(k))
	}
	p[1] = math.Sqrt(p[1])
	return p
}

func printsOf(arrays []Array) Array {
	all := Array{Type: "<f8", Dims: []int{len(arrays), 3}}
	for _, a := range arrays {
		all.Values = append(all.Values, prints(a.Values)...)
	}
	return all
}

// printsDifference is the worst row. Changes are from before, nil for none; storing what changed may round by ε·‖x‖.
func printsDifference(ours, theirs Array, before []float64) Difference {
	epsilon := 0.0
	if before != nil {
		epsilon = 0x1p-52
	}
	rows := len(theirs.Values) / 3
	scales := make([]float64, rows)
	for r := range scales {
		for k := 3 * r; k < 3*r+3; k++ {
			x := theirs.Values[k]
			if before != nil {
				x -= before[k]
			}
			scales[r] = max(scales[r], math.Abs(x))
		}
	}
	least := slices.Max(scales) / 1000
	var worst Difference
	for r, s := range scales {
		row := slice3(ours.Values, r)
		d := Difference{Absolute: farthest(row, slice3(theirs.Values, r)), Scale: max(s, least)}
		if d.Scale == 0 {
			d.Scale = 1
		}
		rounding := epsilon * math.Abs(row[1])
		if d.Relative = max(0, d.Absolute-rounding) / d.Scale; d.Relative >= worst.Relative {
			worst = d
		}
	}
	return worst
}
