package command

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/runs"
)

// part runs or inspects a part of a figure's trials. Errors of the figure itself do not count while trials are
// elsewhere.
func (v chosen) part(ctx context.Context, e catalog.Entry, p *runs.Part) (runs.PartSummary, error) {
	err := e.RunPart(ctx, p, v.Scale, v.Set)
	sum := p.Summary()
	if sum.Elsewhere > 0 {
		err = p.Err()
	}
	return sum, err
}

func (v *runCmd) shard(ctx context.Context, c console, e catalog.Entry) error {
	p := &runs.Part{Index: v.Shard.Index, Of: v.Shard.Of}
	sum, err := v.part(ctx, e, p)
	if err != nil {
		return err
	}
	total := 0
	var counts []string
	for _, state := range states {
		total += sum.Count[state]
		counts = append(counts, fmt.Sprintf("%d %s", sum.Count[state], state))
	}
	_, err = fmt.Fprintf(c.Out, "%s at %s scale, part %d/%d: %d trials: %s\n", e.ID, v.Scale, p.Index, p.Of, total,
		strings.Join(counts, ", "))
	return err
}

var states = []runs.State{runs.TrialDone, runs.TrialRunning, runs.TrialFailed, runs.TrialLost, runs.TrialOpen}

type statusCmd struct {
	chosen `set:"scale=quick"`
	JSON   bool `name:"json" help:"Print one JSON object a figure."`
}

type standing struct {
	ID       string            `json:"id"`
	Scale    string            `json:"scale"`
	Done     int               `json:"done"`
	Running  int               `json:"running"`
	Failed   int               `json:"failed"`
	Lost     int               `json:"lost"`
	Open     int               `json:"open"`
	Seconds  runs.Number       `json:"seconds_left"` // forecast, see runs.PartSummary
	runs.Use                   // of the finished trials, where it is known
	Failures map[string]string `json:"failures"`
}

// Run looks at the trials of figures and computes nothing.
func (v *statusCmd) Run(ctx context.Context, c console) error {
	entries, err := v.check()
	if err != nil {
		return err
	}
	ctx = runs.WithProgress(ctx, runs.Silent)
	rows := [][]string{strings.Fields("ID DONE RUNNING FAILED LOST OPEN")}
	rows[0] = append(rows[0], "TIME LEFT", "PROCESSOR TIME", "PEAK")
	var why []string
	var unknown error // of figures whose data are not there
	for _, e := range entries {
		sum, err := v.part(ctx, e, new(runs.Part))
		if err != nil && (sum.Elsewhere > 0 || sum.Count[runs.TrialDone] == 0) { // else run will tell the figure's own
			unknown = errors.Join(unknown, fmt.Errorf("%s: %w", e.ID, err))
			continue
		}
		s := stand(e.ID, v.Scale, sum)
		if v.JSON {
			if err := printJSON(c, "", s); err != nil {
				return err
			}
			continue
		}
		rows = append(rows, s.row())
		for _, key := range slices.Sorted(maps.Keys(sum.Failures)) {
			why = append(why, fmt.Sprintf("failed %s: %s\n", key[:12], sum.Failures[key]))
		}
	}
	if v.JSON || len(rows) == 1 {
		return unknown
	}
	return errors.Join(c.table(rows, why...), unknown)
}

func stand(id, scale string, sum runs.PartSummary) standing {
	return standing{
		ID: id, Scale: scale, Failures: sum.Failures, Use: sum.Use, Seconds: sum.Seconds,
		Done: sum.Count[runs.TrialDone], Running: sum.Count[runs.TrialRunning], Failed: sum.Count[runs.TrialFailed],
		Lost: sum.Count[runs.TrialLost], Open: sum.Count[runs.TrialOpen],
	}
}

func (s standing) row() []string {
	left, worked, peak := "not known", "-", "-"
	if s.Seconds.Valid() {
		left = wholeSeconds(float64(s.Seconds))
	}
	if s.Processor > 0 {
		worked = wholeSeconds(s.Processor)
	}
	if s.Peak > 0 {
		peak = fmt.Sprintf("%.1f GB", s.Peak/1e9)
	}
	row := []string{s.ID}
	for _, n := range []int{s.Done, s.Running, s.Failed, s.Lost, s.Open} {
		row = append(row, strconv.Itoa(n))
	}
	return append(row, left, worked, peak)
}

// wholeSeconds rounds up, so that 0 means that nothing is left to do.
func wholeSeconds(seconds float64) string {
	const most = 1e9 // s, beyond which nobody counts
	return (time.Duration(math.Ceil(min(seconds, most))) * time.Second).String()
}

// batch is what Slurm and Kubernetes are told alike.
type batch struct {
	chosen `set:"scale=paper"`
	Array  int    `help:"Number of parts." default:"8"`
	Time   string `help:"Time limit of a part, as the scheduler writes it (Slurm 08:00:00, Kubernetes 8h)." placeholder:"TIME"`
	Gpus   int    `help:"GPUs of a part."`
	Cpus   int    `help:"Processors of a part." default:"2"`
	Mem    string `help:"Memory of a part, such as 8G (Kubernetes: 8Gi)." placeholder:"SIZE"`
}

func (b batch) check() error {
	for _, set := range b.Set { // what follows would take it for a value
		if err := checkLines(given{"--set", set}); err != nil {
			return err
		}
	}
	if _, err := b.chosen.check(); err != nil {
		return err
	}
	if b.Array < 1 || b.Cpus < 1 || b.Gpus < 0 {
		return catalog.Usagef("--array and --cpus must be at least 1 and --gpus at least 0, got %d, %d and %d",
			b.Array, b.Cpus, b.Gpus)
	}
	return nil
}

// Args are the command's own, without the part.
func (b batch) Args() []string {
	args := append([]string{"run"}, b.ID...)
	args = append(args, "--scale", b.Scale)
	for _, set := range b.Set {
		args = append(args, "--set", set)
	}
	return args
}

// Name is a name for the scheduler.
func (b batch) Name() string {
	return "nasml-" + strings.NewReplacer("/", "-", "_", "-").Replace(strings.Join(b.ID, "-"))
}

type slurmCmd struct {
	batch
	Partition string `help:"Partition." placeholder:"NAME"`
	Dir       string `help:"Folder for the program, the script and the logs; all nodes must see it." placeholder:"DIR" default:"slurm" type:"path"`
	Submit    bool   `help:"Hand the script to sbatch."`
}

//go:embed templates
var templateFiles embed.FS

// templates are the script of an array and the manifest of an Indexed Job. The script runs a part per task; the program
// is the batch step itself, so that it gets Slurm's signal before the time limit and saves a checkpoint. A failed part
// of the Job is retried from its checkpoint, a lost node does not count, a usage error (exit status 2) ends a part.
var templates = template.Must(template.New("").Funcs(template.FuncMap{"quote": quote, "yaml": yamlText}).
	ParseFS(templateFiles, "templates/*"))

// Run writes the program and the script, and submits it where asked.
func (v *slurmCmd) Run(ctx context.Context, c console, s *site) error {
	// What stands in the script's head without quotes is words.
	if err := cmp.Or(v.check(), checkGiven(oneWord, wordWanted, given{"--partition", v.Partition},
		given{"--time", v.Time}, given{"--mem", v.Mem}, given{"--dir", v.Dir},
		given{"the name of the job", v.Name()})); err != nil {
		return err
	}
	store, err := sharedStore()
	if err != nil {
		return err
	}
	if err := ensurePlugin(ctx, c); err != nil {
		return err
	}
	env := environment(s, store)
	if err := checkLines(given{"the store", store}, given{"the folder of the checkout", s.Root},
		given{"the environment", strings.Join(env, "")}); err != nil {
		return err
	}
	program, file := filepath.Join(v.Dir, "nasml"), filepath.Join(v.Dir, v.Name()+".sh")
	if err := buildProgram(ctx, s.Root, program, inBucket()); err != nil {
		return err
	}
	var script bytes.Buffer
	err = templates.ExecuteTemplate(&script, "slurm.sh", struct {
		*slurmCmd
		Root, Program, Store string
		Env                  []string
	}{v, s.Root, program, store, env})
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, script.Bytes(), 0o755); err != nil {
		return fmt.Errorf("writing the script: %w", err)
	}
	_, _ = fmt.Fprintln(c.Out, file)
	if !v.Submit {
		c.logf("submit it with `sbatch %s`; `go tool nasml status %s --scale %s` shows how far it is",
			file, strings.Join(v.ID, " "), v.Scale)
		return nil
	}
	return submit(ctx, c, file)
}

func submit(ctx context.Context, c console, file string) error {
	cmd := exec.CommandContext(ctx, "sbatch", "--parsable", file)
	cmd.Stderr = c.Err
	out, err := cmd.Output()
	if errors.Is(err, exec.ErrNotFound) {
		return errors.New("no sbatch in PATH: run this on a machine that submits to Slurm, or without --submit")
	}
	if err != nil {
		return fmt.Errorf("sbatch did not take %s: %w", file, err)
	}
	c.logf("submitted as job %s", strings.TrimSpace(string(out)))
	return nil
}

func sharedStore() (string, error) {
	store, err := runs.Default()
	if err != nil {
		return "", err
	}
	if address := os.Getenv("NASML_STORE"); inBucket() {
		return address, nil
	}
	return store.Dir(), nil
}

// environment returns a task's settings as shell words.
func environment(s *site, store string) []string {
	env := []string{"NASML_STORE=" + quote(store), "GOMLX_NO_AUTO_INSTALL=1"}
	plugins := os.Getenv(pluginPathVar)
	if plugins == "" {
		plugins = s.path("pjrt")
	}
	env = append(env, pluginPathVar+"="+quote(plugins))
	for _, name := range []string{"NASML_DATA", "GOMLX_BACKEND"} {
		if value := os.Getenv(name); value != "" {
			env = append(env, name+"="+quote(value))
		}
	}
	return env
}

func quote(text string) string {
	if text != "" &&
		strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=,@%+-") == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// given is a value for a script or a manifest, with what the user calls it.
type given struct{ name, value string }

// checkGiven returns an error for the first value that does not have the form.
func checkGiven(form func(value string) bool, want string, all ...given) error {
	for _, g := range all {
		if g.value != "" && !form(g.value) {
			return catalog.Usagef("%s must be %s, got %.80q", g.name, want, g.value)
		}
	}
	return nil
}

func checkLines(all ...given) error {
	return checkGiven(oneLine, "text without control characters", all...)
}

func oneLine(text string) bool {
	const breaks = "\u2028\u2029"
	return utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl) &&
		!strings.ContainsAny(text, breaks)
}

// oneWord reports whether a value is safe unquoted where no shell reads it, as in Slurm's head lines.
func oneWord(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !strings.ContainsRune("_./:=,@+-~", r)
	})
}

const wordWanted = "letters, digits and _./:=,@+-~"

// The forms of Kubernetes: names as RFC 1123 has them, quantities and images.
var (
	label     = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)
	quantity  = regexp.MustCompile(`^([0-9]+\.?[0-9]*|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$`)
	imageName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/:-]*(@[A-Za-z0-9+._-]+:[A-Fa-f0-9]+)?$`)
)

// The names of RFC 1123 are no longer than that.
const longestLabel, longestSubdomain = 63, 253

func isLabel(name string) bool { return len(name) <= longestLabel && label.MatchString(name) }

func isSubdomain(name string) bool {
	for part := range strings.SplitSeq(name, ".") {
		if !label.MatchString(part) {
			return false
		}
	}
	return len(name) <= longestSubdomain
}
