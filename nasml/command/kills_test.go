package command

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/runs"
)

// victims are what is killed: a sweep, a search and a training, on made images.
var victims = map[string][]string{
	"sweep": {"oymak2021/figure2", "--set=Data=synthetic", "--set=Panels=a", "--set=Widths=16,32", "--set=Seeds=2",
		"--set=Epochs=40", "--set=Examples=100"},
	"search": {"li2021/figure1", "--set=Data=synthetic", "--set=Rows=darts,gaea-darts", "--set=Seeds=1",
		"--set=Channels=4", "--set=Cells=1", "--set=Image=8", "--set=Epochs=2", "--set=Batch=8", "--set=Examples=32"},
	"training": {"li2021/table1", "--set=Data=synthetic", "--set=Seeds=1", "--set=Genotypes=DARTS_V1",
		"--set=Channels=4", "--set=Cells=3", "--set=Image=28", "--set=Epochs=2", "--set=Batch=8", "--set=Examples=32",
		"--set=TestExamples=16"},
}

// fullDisk runs a command whose run store is on a disk that is full for some seconds, and
// copies the store to where it would have been.
const fullDisk = `set -e
disk=$1 wait=$2 kept=$NASML_STORE; shift 2; export NASML_STORE=$disk/store
mount -t tmpfs -o size=16m tmpfs "$disk"; mkdir "$disk/store"
head -c 64m /dev/zero > "$disk/filler" 2> /dev/null || true
( sleep "$wait"; rm "$disk/filler" ) &
code=0; "$@" || code=$?
cp -r "$NASML_STORE" "$kept"; exit $code`

// killer runs victims and kills them.
type killer struct {
	site *site
	draw *rand.Rand
	dir  string
	self string // the program that is killed

	mu            sync.Mutex // guards what follows
	kills, rounds int
	seen          map[string]string // sums of records that were there when a worker had been killed
}

// TestKills kills workers at random moments, in equal shares of all victims at the usual time between two checkpoints
// and at 20 ms, and compares what they leave with an unbroken run.
func TestKills(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv(killsEnv))
	if err != nil {
		t.Skipf("takes minutes: `go tool nasml test --kills N`")
	}
	seed, err := strconv.ParseUint(os.Getenv(killSeedEnv), 10, 64)
	if err != nil {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("kills from seed %d (--kill-seed)", seed)
	ctx := t.Context()
	require.NoError(t, ensurePlugin(ctx, console{os.Stdout, os.Stderr}))
	s, err := openSite(ctx)
	require.NoError(t, err)
	dir := t.TempDir()
	k := &killer{site: s, draw: rand.New(rand.NewPCG(seed, 0)), dir: dir, self: filepath.Join(dir, "nasml")}
	require.NoError(t, buildProgram(ctx, s.Root, k.self, false))
	shares := 2 * len(victims)
	for i, name := range slices.Sorted(maps.Keys(victims)) {
		begin := time.Now()
		calm, err := k.calm(ctx, name)
		require.NoError(t, err)
		took := time.Since(begin)
		for j, every := range []string{"", "20ms"} {
			t.Run(name+", a checkpoint every "+cmp.Or(every, "20 s or 1 min"), func(t *testing.T) {
				k.kills, k.rounds = 0, 0
				require.NoError(t, k.share(ctx, name, every, (n+2*i+j)/shares, took, calm))
				t.Logf("%d kills, %d runs", k.kills, k.rounds)
			})
		}
		t.Run(name+", full disk", func(t *testing.T) { k.full(t, name, took, calm) })
	}
}

// left is what a run leaves: its records without times, memory and versions, its pictures and claims.
type left struct {
	records map[string]runs.Record
	files   map[string]string
}

func (k *killer) calm(ctx context.Context, name string) (left, error) {
	store := filepath.Join(k.dir, name+"-calm")
	return k.end(k.worker(ctx, name, store, ""), name, store)
}

// worker is a process that computes a victim.
func (k *killer) worker(ctx context.Context, name, store, every string) *exec.Cmd {
	args := append([]string{"run", "--json", "--out", k.out(store), "--format", "svg,csv", "--overwrite"},
		victims[name]...)
	cmd := exec.CommandContext(ctx, k.self, args...)
	cmd.Dir, cmd.Env = k.site.Root, k.site.env("NASML_STORE="+store, runs.IntervalEnv+"="+every)
	return cmd
}

func (k *killer) out(store string) string { return store + "-pictures" }

// end runs a worker to its end, which may be that a claim does not hold, and reads what it has left.
func (k *killer) end(cmd *exec.Cmd, name, store string) (left, error) {
	var printed, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &printed, &said
	if err := cmd.Run(); err != nil && cmd.ProcessState.ExitCode() != 3 {
		return left{}, fmt.Errorf("%s: %w: %s", name, err, said.Bytes())
	}
	records, err := k.list(store)
	if err != nil {
		return left{}, err
	}
	var result struct{ Claims json.RawMessage }
	if err := json.Unmarshal(printed.Bytes(), &result); err != nil {
		return left{}, fmt.Errorf("%s printed no claims: %w", name, err)
	}
	l := left{map[string]runs.Record{}, map[string]string{"the list of claims": string(result.Claims)}}
	for _, r := range records {
		delete(k.seen, r.Key)
		bare := *r
		bare.Started, bare.Seconds, bare.Batch, bare.Resumed, bare.Sum = time.Time{}, 0, 0, 0, ""
		bare.Use, bare.Versions = runs.Use{}, nil // a commit in the meantime is another version
		l.records[r.Key] = bare
	}
	err = filepath.Walk(k.out(store), func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		l.files[strings.TrimPrefix(path, k.out(store))] = string(text)
		return err
	})
	if len(k.seen) > 0 {
		return left{}, fmt.Errorf("%d records were lost", len(k.seen))
	}
	return l, err
}

// same says what differs from an unbroken run.
func (l left) same(calm left) error {
	if !reflect.DeepEqual(l.records, calm.records) {
		return fmt.Errorf("%d records, which are not the %d of an unbroken run", len(l.records), len(calm.records))
	}
	for name, text := range calm.files {
		if l.files[name] != text {
			return fmt.Errorf("%s is not that of an unbroken run", name)
		}
	}
	return nil
}

// share kills workers so many times, run after run.
func (k *killer) share(ctx context.Context, name, every string, kills int, took time.Duration, calm left) error {
	for k.kills < kills && ctx.Err() == nil {
		store, err := os.MkdirTemp(k.dir, name+"-")
		if err != nil {
			return err
		}
		k.rounds, k.seen = k.rounds+1, map[string]string{}
		var group sync.WaitGroup
		for range 1 + k.draw.IntN(4) {
			var lives []time.Duration // of a worker that is started again after each
			for range 1 + k.draw.IntN(3) {
				lives = append(lives, time.Duration(k.draw.Float64()*float64(took)))
			}
			group.Go(func() {
				failed := k.lives(ctx, name, store, every, lives)
				k.mu.Lock()
				defer k.mu.Unlock()
				err = errors.Join(err, failed)
			})
		}
		group.Wait()
		var l left
		if err == nil {
			l, err = k.end(k.worker(ctx, name, store, every), name, store)
		}
		if err == nil {
			err = l.same(calm)
		}
		if err != nil {
			return fmt.Errorf("run %d: %w", k.rounds, err)
		}
	}
	return ctx.Err()
}

// lives runs a worker that is killed after each life, unless it ends before, and notes what is kept then.
func (k *killer) lives(ctx context.Context, name, store, every string, lives []time.Duration) error {
	for _, life := range lives {
		cmd := k.worker(ctx, name, store, every)
		if err := cmd.Start(); err != nil {
			return err
		}
		timer := time.AfterFunc(life, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		timer.Stop()
		status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
		if status.Signal() != syscall.SIGKILL {
			return nil // all is computed
		}
		if err := k.note(store); err != nil {
			return err
		}
	}
	return nil
}

// note counts a kill, and notes what the store has.
func (k *killer) note(store string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kills++
	records, err := k.list(store)
	for _, r := range records {
		k.seen[r.Key] = r.Sum
	}
	return err
}

// list are the records of a store, of which none may be broken, or another than when it was noted.
func (k *killer) list(store string) ([]*runs.Record, error) {
	s, err := runs.Open(store)
	if err != nil {
		return nil, err
	}
	records, broken, err := s.List()
	for _, b := range broken {
		err = errors.Join(err, fmt.Errorf("broken record %s: %s", b.Path, b.Reason))
	}
	if err != nil {
		return nil, fmt.Errorf("listing the store: %w", err)
	}
	for _, r := range records {
		if sum, ok := k.seen[r.Key]; ok && sum != r.Sum {
			return nil, fmt.Errorf("record %s was computed twice", r.Key)
		}
	}
	return records, nil
}

// full runs a victim on a disk that is full until after it has computed all.
func (k *killer) full(t *testing.T, name string, took time.Duration, calm left) {
	ctx := t.Context()
	if exec.Command("unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", k.dir).Run() != nil {
		t.Skip("no disk can be mounted here (`unshare -rm` of Linux)")
	}
	k.seen = nil // of a share that failed
	store, disk := filepath.Join(k.dir, name+"-kept"), filepath.Join(k.dir, "disk")
	require.NoError(t, os.MkdirAll(disk, 0o755))
	cmd := k.worker(ctx, name, store, "")
	full := exec.CommandContext(ctx, "unshare", append([]string{"-rm", "sh", "-c", fullDisk, "sh", disk,
		fmt.Sprintf("%.0f", 2*took.Seconds()+3)}, cmd.Args...)...)
	full.Dir, full.Env = cmd.Dir, cmd.Env
	l, err := k.end(full, name, store)
	require.NoError(t, err)
	require.NoError(t, l.same(calm))
}
