package data

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// dropped201 are keys that no column needs: weights, losses and curves, nearly all of the file.
var dropped201 = map[string]bool{
	"net_state_dict": true, "train_acc1es": true, "train_acc5es": true, "train_losses": true,
	"eval_losses": true, "eval_times": true, "latency": true, "arch_config": true,
}

// keep201 is the onSet of the benchmark's files. It keeps a curve's last epoch and the sum of times, and drops all
// else, so that the file need not fit in memory. It is idempotent: a pickle may name a dictionary again.
func (u *unpickler) keep201(key string, value any) any {
	d, isDict := value.(*dict)
	switch {
	case dropped201[key]:
		if isDict {
			d.entries = nil
		}
		return nil
	case isDict && key == "eval_acc1es":
		d.entries = lastEpochs(d)
	case isDict && key == "train_times":
		d.entries = []keyed{{0, sum201(d)}}
	case isDict && key == "all_results":
		trials, err := takeTrials(d)
		if err != nil {
			u.fail("%w", err)
		}
		return trials
	}
	return value
}

// lastEpochs keeps the last epoch of each set, of entries such as "x-valid@199".
func lastEpochs(d *dict) []keyed {
	last := map[string]int{}
	for _, e := range d.entries {
		if set, epoch, ok := cutEpoch(e.key); ok {
			last[set] = max(last[set], epoch)
		}
	}
	var kept []keyed
	for _, e := range d.entries {
		if set, epoch, ok := cutEpoch(e.key); ok && last[set] == epoch {
			kept = append(kept, e)
		}
	}
	return kept
}

func cutEpoch(key any) (set string, epoch int, ok bool) {
	text, _ := key.(string)
	set, digits, found := strings.Cut(text, "@")
	epoch, err := strconv.Atoi(digits)
	return set, epoch, found && err == nil
}

func sum201(d *dict) any {
	total := 0.0
	for _, e := range d.entries {
		x, ok := float201(e.value)
		if !ok {
			return e.value // reported where it is used
		}
		total += x
	}
	return total
}

func float201(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case int:
		return float64(v), true
	}
	return 0, false
}

// takeTrials reads the trainings of one architecture and schedule from all_results, a dictionary by (task, seed).
func takeTrials(d *dict) ([]trial201, error) {
	trials := make([]trial201, 0, len(d.entries))
	for _, e := range d.entries {
		key, ok := e.key.(tuple)
		result, isDict := e.value.(*dict)
		if !ok || len(key) != 2 || !isDict {
			return nil, fmt.Errorf("found %s under %s in all_results, expected a dictionary under (data set, seed)",
				describe(e.value), describe(e.key))
		}
		t, err := takeTrial(key, result)
		if err != nil {
			return nil, fmt.Errorf("all_results (%s, %s): %w", describe(key[0]), describe(key[1]), err)
		}
		trials = append(trials, t)
	}
	slices.SortFunc(trials, func(a, b trial201) int {
		return cmp.Or(cmp.Compare(a.task, b.task), cmp.Compare(a.seed, b.seed))
	})
	return trials, nil
}

func takeTrial(key tuple, d *dict) (trial201, error) {
	name, _ := key[0].(string)
	t := trial201{task: Task201(name), accuracy: map[string]float64{}}
	tasks := []Task201{TaskCIFAR10Valid, TaskCIFAR10, TaskCIFAR100, TaskImageNet16}
	if !slices.Contains(tasks, t.task) {
		return t, fmt.Errorf("found data set %s, expected one of %v", describe(key[0]), tasks)
	}
	var ok [4]bool
	t.seed, ok[0] = key[1].(int)
	t.epochs, ok[1] = d.get("epochs").(int)
	t.params, ok[2] = float201(d.get("params"))
	evaluated, isDict := d.get("eval_acc1es").(*dict)
	ok[3] = isDict
	if i := slices.Index(ok[:], false); i >= 0 {
		field := []string{"seed", "epochs", "params", "eval_acc1es"}[i]
		return t, fmt.Errorf("found %s for %s, expected a number, or a dictionary for eval_acc1es",
			describe(d.get(field)), field)
	}
	for _, e := range evaluated.entries {
		set, epoch, _ := cutEpoch(e.key)
		x, ok := float201(e.value)
		if !ok || x < 0 || x > 100 || epoch != t.epochs-1 {
			return t, fmt.Errorf("found %s for %v, expected an accuracy from 0 to 100 percent after epoch %d",
				describe(e.value), e.key, t.epochs-1)
		}
		t.accuracy[set] = x
	}
	if times, isDict := d.get("train_times").(*dict); isDict {
		if t.seconds, isDict = float201(times.get201()); !isDict {
			return t, fmt.Errorf("found %s in train_times, expected seconds", describe(times.get201()))
		}
	}
	return t, nil
}

func (d *dict) get201() any {
	if len(d.entries) != 1 {
		return nil
	}
	return d.entries[0].value
}

func (o *original201) takeArchs(d *dict) error {
	list, ok := d.get("meta_archs").(*[]any)
	if !ok {
		return fmt.Errorf("found %s for meta_archs: %w, expected a list of architectures",
			describe(d.get("meta_archs")), ErrBroken)
	}
	for i, v := range *list {
		text, _ := v.(string)
		if _, err := ParseArch201(text); err != nil {
			return fmt.Errorf("architecture %d of meta_archs: %w: %w", i, ErrBroken, err)
		}
		o.archs = append(o.archs, text)
	}
	return nil
}

func (o *original201) takeResult(index int, d *dict) (result201, error) {
	r := result201{}
	for _, e := range d.entries {
		name, _ := e.key.(string)
		epochs, known := schedules201[name]
		state, isDict := e.value.(*dict)
		if !known { // 1 and 90 epochs are of the other search space
			continue
		}
		if !isDict {
			return nil, fmt.Errorf("architecture %d: found %s for %s, expected a dictionary", index, describe(e.value),
				name)
		}
		if arch := state.get("arch_str"); arch != o.archs[index] {
			return nil, fmt.Errorf("architecture %d: found results of %s, expected those of %s, as in meta_archs",
				index, describe(arch), o.archs[index])
		}
		trials, ok := state.get("all_results").([]trial201)
		if !ok {
			return nil, fmt.Errorf("architecture %d: found %s for all_results, expected a dictionary", index,
				describe(state.get("all_results")))
		}
		for _, t := range trials {
			if t.epochs != epochs {
				return nil, fmt.Errorf("architecture %d, schedule %s: found a training of %d epochs, expected %d",
					index, name, t.epochs, epochs)
			}
		}
		r[epochs] = trials
	}
	if len(r) == 0 {
		return nil, fmt.Errorf("architecture %d: found none of the schedules 12 and 200 (less and full), expected both",
			index)
	}
	return r, nil
}
