package runs

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nasml/lab/nasml/internal/memory"
	"github.com/nasml/lab/nasml/trial"
)

// Result is what the computation of one trial found, see [trial.Result].
type Result = trial.Result

// Record is a finished trial with all that is needed to believe it.
type Record struct {
	Key    string               `json:"key"`              // key of the trial
	Trial  Trial                `json:"trial"`            // what was computed
	Scale  string               `json:"scale,omitempty"`  // scale it was computed for, "quick" or "paper"
	Values map[string]float64   `json:"values"`           // see [Result]
	Series map[string][]float64 `json:"series,omitempty"` // see [Result]
	// "xla:cpu", "xla:cuda", "go" (GoMLX's) or "host" (float64 of Go itself)
	Backend  string            `json:"backend"`
	Device   string            `json:"device"`   // device as the backend names it
	Host     Host              `json:"host"`     // kind of machine, never its name
	Versions map[string]string `json:"versions"` // of Go, this module (its commit) and what else computes
	Started  time.Time         `json:"started"`  // when the first part of it began, UTC
	// from the start of its batch to its result, resumed parts included, s
	Seconds float64 `json:"seconds"`
	Use             // of the batch likewise
	Batch   int     `json:"batch"`   // trials computed together, in one graph
	Resumed int     `json:"resumed"` // how often it went on from a checkpoint
	Sum     string  `json:"sum"`     // SHA-256 over all the rest
}

// RNG is [trial.RNG], for cells that draw their own examples.
func RNG(seed uint64, parts ...string) *rand.Rand { return trial.RNG(seed, parts...) }

// Host is the kind of machine that computed a record.
type Host struct {
	OS        string `json:"os"`
	Arch      string `json:"arch"`
	CPUs      int    `json:"cpus"`
	Processor string `json:"processor,omitempty"` // see [processorOf]; older records do not say
}

// thisHost is this machine.
var thisHost = sync.OnceValue(func() Host {
	text, _ := os.ReadFile("/proc/cpuinfo") // absent where the system is not Linux
	return Host{OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(), Processor: processorOf(string(text))}
})

var processorLine = regexp.MustCompile(
	`(?m)^(?:vendor_id|cpu family|model|CPU implementer|CPU architecture|CPU part)\s*: *(.+)$`)

// processorOf is vendor, family and model, by which compilers know a processor: "AuthenticAMD 25 17".
func processorOf(cpuinfo string) string {
	core, _, _ := strings.Cut(cpuinfo, "\n\n")
	var facts []string
	for _, found := range processorLine.FindAllStringSubmatch(core, -1) {
		facts = append(facts, found[1])
	}
	return strings.Join(facts, " ")
}

// encode seals the record with its sum and returns it as one line of JSON.
func (r *Record) encode() ([]byte, error) {
	line, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	fields, err := normalised(line)
	if err != nil {
		return nil, err
	}
	if r.Sum, err = sumOf(fields); err != nil {
		return nil, err
	}
	line, err = json.Marshal(r)
	return append(line, '\n'), err
}

func parse(line []byte) (*Record, error) {
	r := new(Record)
	if err := json.Unmarshal(line, r); err != nil {
		return nil, fmt.Errorf("not a record: %w", err)
	}
	return r, nil
}

// decode reads one record and believes it only where its sum and its key are right.
func decode(line []byte) (*Record, error) {
	r, err := parse(line)
	if err != nil {
		return nil, err
	}
	fields, err := normalised(line)
	if err != nil {
		return nil, fmt.Errorf("not a record: %w", err)
	}
	sum, err := sumOf(fields)
	if err != nil {
		return nil, fmt.Errorf("not a record: %w", err)
	}
	if sum != r.Sum {
		return nil, fmt.Errorf("its content has sum %s, but it says %.64q: changed after it was written", sum, r.Sum)
	}
	tried, _ := fields["trial"].(map[string]any) // none: an error
	key, err := keyIn(tried)
	if err != nil {
		return nil, err
	}
	if key != r.Key {
		return nil, fmt.Errorf("its trial has key %s, but it says %.64q", key, r.Key)
	}
	return r, nil
}

// sumOf is the SHA-256 over the canonical JSON of a record without its sum. It works on the JSON and not on a Record,
// so that a record with a field that this version does not know is still whole.
func sumOf(fields map[string]any) (string, error) {
	delete(fields, "sum")
	rest, err := json.Marshal(fields)
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
	return cmp.Or(strings.Compare(a.Trial.Figure, b.Trial.Figure), strings.Compare(a.Key, b.Key))
}

const thisModule = "github.com/nasml/lab"

// versions names Go and the revision of this module, as far as this program knows it.
var versions = sync.OnceValue(func() map[string]string {
	return map[string]string{"go": runtime.Version(), thisModule: revision()}
})

// Versions are those of Go and of this module, its commit, as records name them. The map is the caller's own.
func Versions() map[string]string { return maps.Clone(versions()) }

// revision is the commit of the checkout that this program was built from, with "modified"
// if it was, or the version of the module if another module imports it. Only "go build"
// stamps a program with the commit; tests, "go tool" and cells ask git.
func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if commit := setting(info, "vcs.revision"); info.Main.Path == thisModule && commit != "" {
		return joined(commit, setting(info, "vcs.modified") == "true")
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == thisModule && m.Version != "" && m.Version != "(devel)" {
			return m.Version
		}
	}
	_, file, _, _ := runtime.Caller(0)
	return revisionOf(filepath.Dir(file))
}

func revisionOf(dir string) string {
	commit, err := exec.Command("git", "-C", dir, "rev-parse", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	changed, err := exec.Command("git", "-C", dir, "status", "--porcelain", "--untracked-files=no").Output()
	return joined(strings.TrimSpace(string(commit)), err != nil || len(changed) > 0)
}

func joined(commit string, modified bool) string {
	if modified {
		commit += " modified"
	}
	return commit
}

func setting(info *debug.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

// Use is what a computation took of a process that did nothing else.
type Use struct {
	Processor float64 `json:"processor,omitempty"` // seconds of all its processors; 0: not known
	Peak      float64 `json:"peak,omitempty"`      // most memory of the process at once, bytes; 0: not known
}

// then is what two parts took, one after the other. Parts of an unknown time have one.
func (u Use) then(next Use) Use {
	sum := Use{u.Processor + next.Processor, max(u.Peak, next.Peak)}
	if u.Processor == 0 || next.Processor == 0 {
		sum.Processor = 0
	}
	return sum
}

// processUse is what this process has taken since its start, 0 where the system does not tell.
var processUse = func() Use {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return Use{
		Processor: time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds(),
		Peak:      memory.Peak("self"),
	}
}

var jobs struct {
	sync.Mutex
	now, begun int // under way, and all that ever began
}

type watch struct {
	from  Use
	nth   int  // job of the process
	alone bool // when it began
}

func startWatch() watch {
	jobs.Lock()
	defer jobs.Unlock()
	jobs.now++
	jobs.begun++
	return watch{processUse(), jobs.begun, jobs.now == 1}
}

func (w watch) end() {
	jobs.Lock()
	defer jobs.Unlock()
	jobs.now--
}

// use is what was taken since the start; nothing is known where another job ran beside
// it, and nothing of the peak where that was reached before.
func (w watch) use() Use {
	jobs.Lock()
	defer jobs.Unlock()
	if !w.alone || jobs.begun != w.nth {
		return Use{}
	}
	now := processUse()
	if now.Peak <= w.from.Peak {
		now.Peak = 0
	}
	return Use{now.Processor - w.from.Processor, now.Peak}
}
