package runs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"
)

// Result is what the computation of one trial found. All numbers are finite.
type Result struct {
	Values map[string]float64   // numbers by name, "distance"
	Series map[string][]float64 // optional curves by name, "loss" (one value an epoch)
}

// check is an error that names the first number that is not finite: a NaN in a
// mean would make the whole figure silently wrong.
func (r Result) check() error {
	if len(r.Values) == 0 && len(r.Series) == 0 {
		return errors.New("result has neither values nor series")
	}
	for _, name := range slices.Sorted(maps.Keys(r.Values)) {
		if !finite(r.Values[name]) {
			return fmt.Errorf("value %q is %v, expected a finite number: the trial diverged or divides by zero", name, r.Values[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Series)) {
		if i := slices.IndexFunc(r.Series[name], func(x float64) bool { return !finite(x) }); i >= 0 {
			return fmt.Errorf("series %q is %v at position %d, expected finite numbers: the trial diverged or divides by zero", name, r.Series[name][i], i)
		}
	}
	return nil
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// Record is a finished trial with all that is needed to believe it.
type Record struct {
	Key      string               `json:"key"`              // key of the trial
	Trial    Trial                `json:"trial"`            // what was computed
	Scale    string               `json:"scale,omitempty"`  // scale it was computed for, "quick" or "paper"
	Values   map[string]float64   `json:"values"`           // see [Result]
	Series   map[string][]float64 `json:"series,omitempty"` // see [Result]
	Backend  string               `json:"backend"`          // "xla:cpu"
	Device   string               `json:"device"`           // device as the backend names it
	Host     Host                 `json:"host"`             // kind of machine, never its name
	Versions map[string]string    `json:"versions"`         // versions of Go and of the modules that compute
	Started  time.Time            `json:"started"`          // when the first part of it began, UTC
	Seconds  float64              `json:"seconds"`          // from the start of its batch to its result, resumed parts included, s
	Batch    int                  `json:"batch"`            // trials computed together, in one graph
	Resumed  int                  `json:"resumed"`          // how often it went on from a checkpoint
	Sum      string               `json:"sum"`              // SHA-256 over all the rest
}

// Host is the kind of machine that computed a record.
type Host struct {
	OS   string `json:"os"`
	Arch string `json:"arch"`
	CPUs int    `json:"cpus"`
}

// encode seals the record with its sum and returns it as one line of JSON.
func (r *Record) encode() ([]byte, error) {
	line, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	if r.Sum, err = sumOf(line); err != nil {
		return nil, err
	}
	line, err = json.Marshal(r)
	return append(line, '\n'), err
}

// decode reads one record and believes it only where its sum and its key are
// right.
func decode(line []byte) (*Record, error) {
	r := new(Record)
	if err := json.Unmarshal(line, r); err != nil {
		return nil, fmt.Errorf("not a record: %w", err)
	}
	sum, err := sumOf(line)
	if err != nil {
		return nil, fmt.Errorf("not a record: %w", err)
	}
	if sum != r.Sum {
		return nil, fmt.Errorf("its content has sum %s, but it says %.64q: changed after it was written", sum, r.Sum)
	}
	key, err := r.Trial.Key()
	if err != nil {
		return nil, err
	}
	if key != r.Key {
		return nil, fmt.Errorf("its trial has key %s, but it says %.64q", key, r.Key)
	}
	return r, nil
}

// sumOf is the SHA-256 over the canonical JSON of a record without its sum. It
// works on the JSON and not on a Record, so that a record with a field that
// this version does not know is still whole.
func sumOf(line []byte) (string, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(line, &fields); err != nil {
		return "", err
	}
	delete(fields, "sum")
	rest, err := json.Marshal(fields)
	if err != nil {
		return "", err
	}
	rest, err = canonical(rest)
	return digest(rest), err
}

// WriteBundle writes records as JSON lines, sorted by figure and key: a file
// that can be kept in a repository and given to [Store.With].
func WriteBundle(w io.Writer, records []*Record) error {
	records = slices.Clone(records)
	slices.SortFunc(records, compareRecords)
	for _, r := range records {
		line, err := json.Marshal(r)
		if err != nil {
			return fmt.Errorf("record %s: %w", r.Key, err)
		}
		if _, err := decode(line); err != nil {
			return fmt.Errorf("record %s is not kept: %w", r.Key, err)
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return fmt.Errorf("record %s: %w", r.Key, err)
		}
	}
	return nil
}

func compareRecords(a, b *Record) int {
	if c := strings.Compare(a.Trial.Figure, b.Trial.Figure); c != 0 {
		return c
	}
	return strings.Compare(a.Key, b.Key)
}

// thisModule is the module of this package; its version in a record is the
// revision of the checkout where the build knows it.
const thisModule = "github.com/nasml/lab"

// versions names Go and the modules that compute, as built into this program.
var versions = sync.OnceValue(func() map[string]string {
	v := map[string]string{"go": runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == thisModule || strings.HasPrefix(m.Path, "github.com/gomlx/") {
			v[m.Path] = m.Version
		}
	}
	if revision := setting(info, "vcs.revision"); info.Main.Path == thisModule && revision != "" {
		if setting(info, "vcs.modified") == "true" {
			revision += "+dirty"
		}
		v[thisModule] = revision
	}
	return v
})

func setting(info *debug.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}
