package li2021

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/search"
	"github.com/nasml/lab/nasml/training"
)

// The variables that make this test binary the process that TestKilled… kill: which
// run, in which store, on which photographs.
const (
	killedEnv       = "NASML_TEST_KILLED"
	killedStoreEnv  = "NASML_TEST_KILLED_STORE"
	killedPhotosEnv = "NASML_TEST_KILLED_PHOTOS"
)

// killed are runs of half a minute or so on GoMLX's own backend.
var killed = map[string]func(ctx context.Context, photographs string) ([]*runs.Record, error){
	"search": func(ctx context.Context, photographs string) ([]*runs.Record, error) {
		r, err := Figure1Left(ctx, onPhotographs(photographs))
		if err != nil {
			return nil, err
		}
		return r.Groups[0].Records, nil
	},
	"evaluation": func(ctx context.Context, photographs string) ([]*runs.Record, error) {
		p := Table5Quick
		p.Genotypes, p.Folder = []string{cheap}, photographs
		p.Channels, p.Cells, p.Image, p.Epochs, p.Batch = 4, 3, 32, 12, 4
		p.Vary = func(_ string, s *training.Settings) { s.DropPath = 0.2 }
		r, err := Table5(ctx, p)
		if err != nil {
			return nil, err
		}
		return r.Groups[0].Records, nil
	},
}

// onPhotographs is a small search with the settings of ImageNet.
func onPhotographs(folder string) Figure1Params {
	p := Figure1LeftQuick
	p.Preset, p.Folder, p.Rows, p.Seeds = "imagenet", folder, []string{"gaea-pc-darts@darts-s2"}, 1
	p.Channels, p.Cells, p.Image, p.Batch, p.Epochs, p.Examples = 4, 3, 32, 5, 6, 15
	p.EvaluateEvery = 3
	p.Vary = func(_ string, s *search.Settings) { s.Bilevel.Warmup = 2 }
	return p
}

func TestMain(m *testing.M) {
	run, ok := killed[os.Getenv(killedEnv)]
	if !ok {
		os.Exit(m.Run())
	}
	lab.SaveEvery = time.Nanosecond
	store, err := runs.Open(os.Getenv(killedStoreEnv))
	if err == nil {
		ctx := runs.WithProgress(runs.WithStore(context.Background(), store), runs.Silent)
		_, err = run(ctx, os.Getenv(killedPhotosEnv))
	}
	if err != nil {
		println(err.Error())
		os.Exit(1)
	}
	os.Exit(0)
}

// A process that is killed in the middle of a search on photographs, or of a training
// on them, twice, resumes from its last checkpoint and ends with the same bits.
func TestKilledOnPhotographsGoesOnBitIdentically(t *testing.T) {
	if testing.Short() {
		t.Skip("runs processes for a minute")
	}
	photographs := photoFolder(t)
	for name, run := range killed {
		process := func(dir string) *exec.Cmd {
			cmd := exec.Command(os.Args[0], "-test.run=^$")
			cmd.Env = append(os.Environ(), "GOMLX_BACKEND=go", killedEnv+"="+name, killedStoreEnv+"="+dir,
				killedPhotosEnv+"="+photographs)
			cmd.Stderr = os.Stderr
			return cmd
		}
		ended := func(dir string) []*runs.Record { // by a process: this one may have another backend
			require.NoError(t, process(dir).Run(), name)
			store, err := runs.Open(dir)
			require.NoError(t, err)
			records, err := run(runs.WithProgress(runs.WithStore(t.Context(), store), runs.Silent), photographs)
			require.NoError(t, err, name)
			return records
		}
		calm, dir := ended(t.TempDir()), t.TempDir()
		for kills := range 2 {
			cmd := process(dir)
			require.NoError(t, cmd.Start())
			require.True(t, waitForCheckpoint(t, dir, time.Duration(kills)*200*time.Millisecond), name)
			require.NoError(t, cmd.Process.Kill())
			require.ErrorContains(t, cmd.Wait(), "killed", "%s must not be over before it is killed", name)
		}
		resumed := ended(dir)
		require.Positive(t, resumed[0].Resumed, name)
		require.Equal(t, calm[0].Values, resumed[0].Values, name)
		require.Equal(t, calm[0].Series, resumed[0].Series, name)
	}
}

// waitForCheckpoint waits until the process has saved again, then so long; it is false
// where no checkpoint came within a minute.
func waitForCheckpoint(t *testing.T, dir string, pause time.Duration) bool {
	t.Helper()
	newest := func() (at time.Time) {
		whole, err := filepath.Glob(filepath.Join(dir, "checkpoints", "*.ckpt"))
		require.NoError(t, err)
		for _, name := range whole {
			if info, err := os.Stat(name); err == nil && info.ModTime().After(at) {
				at = info.ModTime()
			}
		}
		return at
	}
	before := newest()
	for range 3000 {
		if newest().After(before) {
			time.Sleep(pause)
			return true
		}
		time.Sleep(20 * time.Millisecond)
	}
	return false
}

// A photograph that cannot be read ends a search in a line that names it, with what
// was done saved; with invalid settings nothing begins.
func TestSearchOnPhotographsThatAreWrong(t *testing.T) {
	t.Setenv("GOMLX_BACKEND", "go")
	p := onPhotographs(photoFolder(t))
	ctx := isolated(t)
	says := func(want string) {
		t.Helper()
		_, err := Figure1Left(ctx, p)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "\n")
	}
	name := filepath.Join(p.Folder, "train", "n02", "c.JPEG")
	whole, err := os.ReadFile(name)
	require.NoError(t, err)
	broken := append(append([]byte{}, whole[:len(whole)/2]...), make([]byte, len(whole)-len(whole)/2)...)
	p.Examples = 16 // all
	require.NoError(t, os.WriteFile(name, broken, 0o644))
	says("c.JPEG is broken: ")
	require.NoError(t, os.WriteFile(name, whole, 0o644))
	r, err := Figure1Left(ctx, p)
	require.NoError(t, err, "the same search goes on: the file is as long as before")
	require.Positive(t, r.Groups[0].Records[0].Resumed, "it was saved before the photograph that could not be read")
	require.Contains(t, r.Figure().Caption, "16 images of photographs in ")

	p.Examples = 17
	says("Parts need 17 images")
	p.Rows, p.Examples = []string{"gaea-darts/erm@darts-s2"}, 16
	p.Preset = "quick"
	says("a single-level search takes all photographs")
	require.NoError(t, os.MkdirAll(filepath.Join(p.Folder, "train", "n03"), 0o755))
	p.Rows = onPhotographs("").Rows
	says("class n03 has no file")
	p.Folder = filepath.Join(p.Folder, "missing")
	says("missing does not exist")
}

// A search, and a training, that diverges says at which step and what to do; run again
// it says the same, and with a lower rate another one is run to its end.
func TestDivergingIsSaid(t *testing.T) {
	t.Setenv("GOMLX_BACKEND", "go")
	folder, ctx := photoFolder(t), isolated(t)
	p := onPhotographs(folder)
	rate := 1e30
	p.Epochs, p.Vary = 2, func(_ string, s *search.Settings) { s.LearningRate, s.Bilevel.Warmup = rate, 2 }
	for range 2 {
		_, err := Figure1Left(ctx, p)
		require.ErrorContains(t, err, "the weights have diverged; lower LearningRate (now 1e+30), with which another "+
			"search begins from its start: what is saved of this one stays")
		require.NotContains(t, err.Error(), "\n")
	}
	rate = 0.1
	_, err := Figure1Left(ctx, p)
	require.NoError(t, err)

	q := Table5Quick
	q.Genotypes, q.Folder = []string{cheap}, folder
	q.Channels, q.Cells, q.Image, q.Epochs, q.Batch, q.LearningRate = 4, 3, 32, 6, 8, 1e30
	_, err = Table5(ctx, q)
	require.ErrorContains(t, err, "lower LearningRate (now 1e+30), with which another training begins from its start")
	q.LearningRate = 0.1
	_, err = Table5(ctx, q)
	require.NoError(t, err)
}
