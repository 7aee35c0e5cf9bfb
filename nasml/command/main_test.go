package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/internal/claims"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/search"
)

// call runs one command line.
func call(t *testing.T, args ...string) (status int, out, err string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	status = execute(t.Context(), args, console{&stdout, &stderr})
	return status, stdout.String(), stderr.String()
}

func TestMistakesInTheCall(t *testing.T) {
	t.Setenv("NASML_SCALE", "")
	t.Setenv("NASML_DATA", t.TempDir())
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"verb":     {[]string{"lst"}, `did you mean`},
		"flag":     {[]string{"list", "--jsn"}, "unknown flag --jsn"},
		"its help": {[]string{"store", "ls", "--jsn"}, "store ls --help`"},
		"no id":    {[]string{"show"}, `"nasml list" shows every id`},
		"as flag":  {[]string{"run", "oymak2021/figure2", "--seeds", "3"}, "--set NAME=VALUE"},
		"no paper": {[]string{"run", "figure2"}, "khodak2020/figure2 or li2021/figure2 or oymak2021/figure2?"},
		"figure":   {[]string{"run", "oymak2021/figure9"}, "oymak2021/figure"},
		"format":   {[]string{"run", "oymak2021/figure2", "--format", "jpg"}, `--format must be one of "eps","pdf"`},
		"shard":    {[]string{"run", "oymak2021/figure2", "--shard", "5/4"}, `--shard: "5/4" is no part: want I/N`},
		"style":    {[]string{"run", "oymak2021/figure2", "--style", "nips"}, `--style`},
		"scale":    {[]string{"run", "oymak2021/figure2", "--scale", "huge"}, `unknown scale "huge"`},
		"no value": {[]string{"run", "oymak2021/figure2", "--set"}, "--set"},
		"notebook": {[]string{"notebooks", "nowhere.ipynb"}, "nowhere.ipynb"},
		"data set": {[]string{"data", "minst"}, "minst"},
		"a table":  {[]string{"data", "nasbench201"}, "expected --from DIR"},
		"other":    {[]string{"data", "nasbench101"}, "expected --from DIR with its authors' nasbench_full.tfrecord"},
		"and more": {[]string{"data", "nasbench201", "mnist", "--from", "."}, "expected nasbench201 alone"},
		"rm all":   {[]string{"store", "rm"}, "which records?"},
		"shown":    {[]string{"show", "li2021/figur1"}, "did you mean li2021/figure1"},
		"kind":     {[]string{"list", "--kind", "picture"}, "--kind"},
		"address":  {[]string{"lab", "--ip", "foo"}, `--ip: must be 127.0.0.1 (this machine only), 0.0.0.0`},
	} {
		t.Run(name, func(t *testing.T) {
			status, out, err := call(t, test.args...)
			require.Equal(t, exitUsage, status, err)
			require.Contains(t, err, test.want)
			require.Empty(t, out)
			require.Equal(t, 1, strings.Count(err, "\n"), "one line: %s", err)
		})
	}
}

func TestAListOfNothingSaysSo(t *testing.T) {
	status, _, err := call(t, "list", "--paper", "smith")
	require.Equal(t, exitOK, status)
	require.Contains(t, err, "without flags, list shows all")
}

func TestScaleFromTheEnvironmentIsChecked(t *testing.T) {
	t.Setenv("NASML_SCALE", "huge")
	status, _, err := call(t, "run", "oymak2021/figure2")
	require.Equal(t, exitUsage, status)
	require.Contains(t, err, "NASML_SCALE")
}

// A backend that is none is a mistake in the call, in a line that does not name the figure.
func TestBackendIsChecked(t *testing.T) {
	t.Setenv("GOMLX_BACKEND", "cuda")
	status, _, err := call(t, "run", "oymak2021/figure2")
	require.Equal(t, exitUsage, status)
	require.Contains(t, err, `$GOMLX_BACKEND is "cuda": take `)
	require.Equal(t, 1, strings.Count(err, "\n"))
	require.NotContains(t, err, "oymak2021")

	e, lookupErr := catalog.Lookup("oymak2021/figure2")
	require.NoError(t, lookupErr)
	require.EqualError(t, named(e, errors.New("oymak2021/figure2: no data")), "oymak2021/figure2: no data", "once")
	require.EqualError(t, named(e, errors.New("no data")), "oymak2021/figure2: no data")
}

func TestListJSON(t *testing.T) {
	status, out, err := call(t, "list", "--json")
	require.Equal(t, exitOK, status, err)
	var entries []map[string]any
	require.NoError(t, json.Unmarshal([]byte(out), &entries))
	for _, e := range entries {
		for _, field := range []string{"id", "paper", "title", "kind", "notebook", "cost"} {
			require.Contains(t, e, field)
		}
		require.Contains(t, []string{"figure", "table", "theorem"}, e["kind"])
		root, err := findRoot()
		require.NoError(t, err)
		require.FileExists(t, filepath.Join(root, e["notebook"].(string)))
	}
}

func TestListFilters(t *testing.T) {
	t.Setenv("NASML_STORE", t.TempDir())
	ids := func(args ...string) (ids, states []string) {
		status, out, err := call(t, append([]string{"list", "--json"}, args...)...)
		require.Equal(t, exitOK, status, err)
		var entries []struct{ ID, State string }
		require.NoError(t, json.Unmarshal([]byte(out), &entries))
		for _, e := range entries {
			ids, states = append(ids, e.ID), append(states, e.State)
		}
		return ids, states
	}
	tables, _ := ids("--kind", "table")
	require.Contains(t, tables, "li2021/table2")
	for _, paper := range []string{"roberts", "Roberts+"} {
		found, states := ids("--paper", paper, "--state", "open")
		require.Contains(t, found, "roberts/theorem1", "its quick trials are computed in seconds, and not shipped")
		require.NotContains(t, found, "li2021/theorem1")
		require.Equal(t, slices.Repeat([]string{"open"}, len(found)), states)
	}
	found, states := ids("--paper", "roberts", "--state", "any", "--scale", "paper")
	require.Contains(t, found, "roberts/theorem1")
	require.NotContains(t, states, "open", "the paper's scale is shipped")
	none, _ := ids("--paper", "nobody")
	require.Empty(t, none)
}

func TestVersionIsThatOfTheRecords(t *testing.T) {
	status, out, err := call(t, "--version")
	require.Equal(t, exitOK, status, err)
	require.Contains(t, out, modulePath+" "+runs.Versions()[modulePath]+"\n")
	for module, version := range code.Modules() {
		require.Contains(t, out, module+" "+version+"\n")
	}
}

func TestShow(t *testing.T) {
	t.Setenv("NASML_STORE", t.TempDir())
	status, out, err := call(t, "show", "roberts/theorem1")
	require.Equal(t, exitOK, status, err)
	require.Contains(t, out, catalog.Works["Roberts+"].Title)
	require.Contains(t, out, "\n  Confidence: float64, more than 0 and less than 1\n")
	require.Contains(t, out, "--scale quick: ")
	require.Contains(t, out, "trials to compute")
	require.Regexp(t, `--scale paper: \d+ records, (holds|fails|inconclusive)`, out)

	status, out, err = call(t, "show", "li2021/figure1", "--json")
	require.Equal(t, exitOK, status, err)
	var s shown
	require.NoError(t, json.Unmarshal([]byte(out), &s))
	require.Equal(t, "li2021/figure1", s.ID)
	found := map[string]catalog.Field{}
	for _, f := range s.Parameters {
		require.NotEmpty(t, f.Type, f.Name)
		found[f.Name] = f
		if _, varied := reflect.TypeFor[search.Settings]().FieldByName(f.Name); !varied {
			require.NotEmpty(t, f.Values["quick"], f.Name)
			require.NotEmpty(t, f.Values["paper"], f.Name)
		}
	}
	require.Equal(t, "float64", found["WeightDecay"].Type, "which the figure varies")
	require.Empty(t, found["WeightDecay"].Values, "each row's preset has its own")
	require.Contains(t, found["Rows"].Meaning, "searches by method", "its own")
	require.NotEmpty(t, found["Channels"].Meaning, "of an embedded struct")
	require.NotEmpty(t, s.Results[0].Claims)
	require.NotEmpty(t, s.Results[0].Records)
}

// A script can tell claims that do not hold from a run that failed.
func TestExitStatusOfClaims(t *testing.T) {
	var said bytes.Buffer
	c := console{&said, &said}
	e := fmt.Errorf("x: %w", errClaims)
	require.Equal(t, exitClaims, status(t.Context(), c, claimsError{e}))
	require.Equal(t, exitFailed, status(t.Context(), c, e), "--strict")

	t.Setenv("NASML_STORE", t.TempDir())
	t.Setenv("GOMLX_BACKEND", "go") // needs no plugin
	args := []string{"run", "li2021/stationarity", "--format", "csv", "--out", t.TempDir()}
	status, _, said1 := call(t, args...)
	require.Equal(t, exitClaims, status, said1)
	status, _, said1 = call(t, append(args, "--strict")...)
	require.Equal(t, exitFailed, status, said1)
}

// What is drawn says which entries have the other panels of the figure.
func TestPanelsOfAFigure(t *testing.T) {
	require.Equal(t, "; other panels: li2021/figure1-left, li2021/figure1-middle", parts("li2021/figure1"))
	require.Empty(t, parts("li2021/figure2"))
	require.Empty(t, parts("li2021/figure1-left"))
}

// A folder that cannot be written to is found before anything is computed.
func TestOutIsTriedFirst(t *testing.T) {
	store := t.TempDir()
	t.Setenv("NASML_STORE", store)
	t.Setenv("GOMLX_BACKEND", "go")
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	status, _, err := call(t, "run", "roberts/theorem1", "--out", file)
	require.Equal(t, exitFailed, status)
	require.Contains(t, err, "take another with --out")
	left, readErr := os.ReadDir(store)
	require.NoError(t, readErr)
	require.Empty(t, left)
}

func TestStoreRemovesAndLists(t *testing.T) {
	t.Setenv("NASML_STORE", t.TempDir())
	t.Setenv("GOMLX_BACKEND", "go")
	status, _, err := call(t, "run", "roberts/theorem1", "--set", "Seeds=2", "--set", "Points=32",
		"--set", "Problems=4", "--format", "csv", "--out", t.TempDir())
	require.NotEqual(t, exitFailed, status, err)
	list := func(args ...string) (list []storedRecord) {
		status, out, err := call(t, append([]string{"store", "ls", "--json"}, args...)...)
		require.Equal(t, exitOK, status, err)
		require.NoError(t, json.Unmarshal([]byte(out), &list))
		return list
	}
	all := list()
	require.Greater(t, len(all), 2)
	require.Equal(t, all, list("--figure", "roberts"))
	require.Empty(t, list("--figure", "rob"))
	require.Empty(t, list("--scale", "paper"))
	status, table, err := call(t, "store", "ls")
	require.Equal(t, exitOK, status, err)
	require.Contains(t, table, "level 0.1, violation weights", "the settings in which they differ")
	require.NotContains(t, table, "width", "those that all have")

	status, out, err := call(t, "store", "rm", all[0].Key[:20], "--dry-run")
	require.Equal(t, exitOK, status, err)
	require.Contains(t, out, "would remove 1 records")
	require.Equal(t, all, list())
	status, _, err = call(t, "store", "rm", all[0].Key[:20], "--scale", "paper")
	require.Equal(t, exitFailed, status)
	require.Contains(t, err, "leaves out")
	status, _, err = call(t, "store", "rm", all[0].Key[:20])
	require.Equal(t, exitOK, status, err)
	require.Equal(t, all[1:], list())
	status, _, err = call(t, "store", "rm", "--figure", all[0].Figure)
	require.Equal(t, exitOK, status, err)
	require.Empty(t, list())
}

func TestVerbsThatPrintJSON(t *testing.T) {
	t.Setenv("NASML_STORE", t.TempDir())
	t.Setenv("NASML_DATA", t.TempDir())
	status, out, err := call(t, "store", "verify", "--json")
	require.Equal(t, exitOK, status, err)
	require.JSONEq(t, `{"store": "`+os.Getenv("NASML_STORE")+`", "records": 0, "checkpoints": 0, "broken": []}`, out)
	status, out, err = call(t, "data", "--json")
	require.Equal(t, exitOK, status, err)
	var found struct {
		Folder string
		Files  []listedFile
	}
	require.NoError(t, json.Unmarshal([]byte(out), &found))
	require.Equal(t, os.Getenv("NASML_DATA"), found.Folder)
	for _, f := range found.Files {
		if f.Set == "nasbench201" {
			require.Equal(t, shipped, f.State, "it travels with the project")
			continue
		}
		require.Equal(t, data.Missing, f.State, f.File)
		require.NotEmpty(t, f.What, f.File)
	}
}

func TestGridFitsItsWidth(t *testing.T) {
	g := grid{
		rows: [][]string{{"ID", "TITLE", "NOTE"}, {"a", strings.Repeat("θ", 60), "more"}, {"bb", "short", ""}},
		drop: []string{"NOTE"}, shorten: []string{"TITLE"},
	}
	for width, want := range map[int]string{
		0:  "a   " + strings.Repeat("θ", 60) + "  more",
		80: "a   " + strings.Repeat("θ", 60) + "  more",
		50: "a   " + strings.Repeat("θ", 39) + "…  more",
		30: "a   " + strings.Repeat("θ", 25) + "…",
		5:  "a   " + strings.Repeat("θ", 23) + "…",
	} {
		lines := strings.Split(g.String(width), "\n")
		require.Equal(t, want, lines[1], "width %d", width)
		require.Equal(t, "bb  short", lines[2])
	}
	require.Equal(t, []string{"one two", "three"}, claims.Wrap("one two  three", 8))
	require.Equal(t, []string{"one two three"}, claims.Wrap("one two  three", 0))
	require.Empty(t, claims.Wrap("", 8))
}

func TestStoreVerbs(t *testing.T) {
	t.Setenv("NASML_STORE", filepath.Join(t.TempDir(), "store"))
	for _, verb := range []string{"ls", "verify", "gc"} {
		status, _, err := call(t, "store", verb)
		require.Equal(t, exitOK, status, "%s: %s", verb, err)
	}
	status, _, err := call(t, "store", "show", "abc")
	require.Equal(t, exitFailed, status)
	require.Contains(t, err, "abc")
}

func TestDataVerb(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("NASML_DATA", dir)
	status, out, err := call(t, "data")
	require.Equal(t, exitOK, status, err)
	require.Contains(t, out, "mnist/train-images-idx3-ubyte.gz")
	require.Contains(t, out, "missing")

	status, _, err = call(t, "data", "mnist", "--from", t.TempDir())
	require.Equal(t, exitFailed, status)
	require.NotEmpty(t, err)

	require.NoError(t, os.MkdirAll(filepath.Join(dir, "mnist"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "mnist", "train-images-idx3-ubyte.gz"), []byte("broken"), 0o644))
	status, out, err = call(t, "data")
	require.Equal(t, exitFailed, status)
	require.Contains(t, out, "broken")
	require.Contains(t, err, "train-images")
}

// The table of NAS-Bench-201 is made of all its architectures or not at all.
func TestDataMakesTheTable(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("NASML_DATA", dir)
	status, _, err := call(t, "data", "nasbench201", "--from", "../data/testdata/nasbench201")
	require.Equal(t, exitFailed, status)
	require.Contains(t, err, "NATS-tss-v1_0-tiny-simple: found 3 architectures: the file is broken, expected 15625")
	require.NoDirExists(t, filepath.Join(dir, "nasbench"))
}

// A file with a part of NAS-Bench-101 is a table, which says what it lacks.
func TestDataMakesAPartOfATable(t *testing.T) {
	t.Setenv("NASML_DATA", t.TempDir())
	status, out, err := call(t, "data", "nasbench101", "--from", "../data/testdata/nasbench101")
	require.Equal(t, exitOK, status, err)
	require.Contains(t, err, "3 of the benchmark's 423624 cells, trainings of [108] epochs")
	require.Regexp(t, `nasbench101 +nasbench/nasbench101.csv.gz +\S+ +present`, out)
	status, _, err = call(t, "data", "nasbench101", "--from", "../data/testdata/nasbench101")
	require.Equal(t, exitFailed, status)
	require.Contains(t, err, "is there already")
}

func TestFindRoot(t *testing.T) {
	root := t.TempDir()
	deep := filepath.Join(root, "a", "b")
	require.NoError(t, os.MkdirAll(deep, 0o755))
	t.Chdir(deep)
	_, err := findRoot()
	require.ErrorContains(t, err, "no checkout of "+modulePath)

	require.NoError(t, os.WriteFile(filepath.Join(root, "a", "go.mod"), []byte("module example.org/other\n"), 0o644))
	require.NoError(
		t,
		os.WriteFile(filepath.Join(root, "go.mod"), []byte("// comment\nmodule "+modulePath+" // lab\n"), 0o644),
	)
	found, err := findRoot()
	require.NoError(t, err)
	wantInfo, err := os.Stat(root)
	require.NoError(t, err)
	gotInfo, err := os.Stat(found)
	require.NoError(t, err)
	require.True(t, os.SameFile(wantInfo, gotInfo), "%s, not %s", found, root)
}

func TestChoosePort(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	taken := listener.Addr().(*net.TCPAddr).Port
	for _, ip := range []string{"127.0.0.1", "0.0.0.0"} {
		_, err = choosePort(netip.MustParseAddr(ip), taken)
		require.ErrorContains(t, err, "take another with --port")
		require.NotContains(t, err.Error(), "\n")
	}
}

func TestCountReadsTest2JSON(t *testing.T) {
	var out bytes.Buffer
	run := &testRun{console: console{&out, &out}}
	run.count(strings.NewReader(`{"Action":"output","Package":"p","Test":"TestA","Output":"fine\n"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestB","Output":"expected 1, got 2\n"}
{"Action":"fail","Package":"p","Test":"TestB"}
{"Action":"output","Package":"p","Test":"TestC","Output":"=== RUN   TestC\n"}
{"Action":"output","Package":"p","Test":"TestC","Output":"    c_test.go:3: needs a GPU\n"}
{"Action":"output","Package":"p","Test":"TestC","Output":"--- SKIP: TestC (0.00s)\n"}
{"Action":"skip","Package":"p","Test":"TestC"}
{"Action":"output","Package":"p","Output":"FAIL\tp\t0.1s\n"}
{"Action":"fail","Package":"p"}
not JSON
`))
	require.Equal(t, [3]int{1, 1, 1}, [3]int{run.passed, run.failures, run.skipped})
	require.NotContains(t, out.String(), "fine")
	require.Contains(t, out.String(), "expected 1, got 2")
	require.Contains(t, out.String(), "skip  p.TestC: c_test.go:3: needs a GPU")
	require.Contains(t, out.String(), "FAIL\tp\t0.1s")
	require.Contains(t, out.String(), "not JSON")
}
