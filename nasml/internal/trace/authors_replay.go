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
)

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
