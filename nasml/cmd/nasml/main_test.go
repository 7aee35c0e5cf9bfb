package main

import (
	"bytes"
	"encoding/json"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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
		"figure":   {[]string{"run", "oymak2021/figure9"}, "oymak2021/figure"},
		"format":   {[]string{"run", "oymak2021/figure2", "--format", "jpg"}, `unknown format "jpg"`},
		"scale":    {[]string{"run", "oymak2021/figure2", "--scale", "huge"}, `unknown scale "huge"`},
		"no value": {[]string{"run", "oymak2021/figure2", "--set"}, "--set"},
		"notebook": {[]string{"notebooks", "nowhere.ipynb"}, "nowhere.ipynb"},
		"data set": {[]string{"data", "minst"}, "minst"},
		"a table":  {[]string{"data", "nasbench201"}, "expected --from DIR"},
		"other":    {[]string{"data", "nasbench101"}, "expected --from DIR with its authors' nasbench_full.tfrecord"},
		"and more": {[]string{"data", "nasbench201", "mnist", "--from", "."}, "expected nasbench201 alone"},
		"address":  {[]string{"lab", "--ip", "localhost"}, "--ip"},
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

func TestScaleFromTheEnvironmentIsChecked(t *testing.T) {
	t.Setenv("NASML_SCALE", "huge")
	status, _, err := call(t, "run", "oymak2021/figure2")
	require.Equal(t, exitUsage, status)
	require.Contains(t, err, "NASML_SCALE")
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
	status, _, err := call(t, "data", "nasbench201", "--from", "../../data/testdata/nasbench201")
	require.Equal(t, exitFailed, status)
	require.Contains(t, err, "NATS-tss-v1_0-tiny-simple: found 3 architectures: the file is broken, expected 15625")
	require.NoDirExists(t, filepath.Join(dir, "nasbench"))
}

// A file with a part of NAS-Bench-101 is a table, which says what it lacks.
func TestDataMakesAPartOfATable(t *testing.T) {
	t.Setenv("NASML_DATA", t.TempDir())
	status, out, err := call(t, "data", "nasbench101", "--from", "../../data/testdata/nasbench101")
	require.Equal(t, exitOK, status, err)
	require.Contains(t, err, "3 of the benchmark's 423624 cells, trainings of [108] epochs")
	require.Regexp(t, `nasbench101 +nasbench/nasbench101.csv.gz +\S+ +present`, out)
	status, _, err = call(t, "data", "nasbench101", "--from", "../../data/testdata/nasbench101")
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
