package command

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	_ "github.com/nasml/lab/nasml/runs/bucket" // the verbs are tested with buckets in this program
)

// What a cell and the command link has none of the services' libraries, and the
// program that knows buckets has them.
func TestServicesAreLinkedWhereTheStoreIsABucket(t *testing.T) {
	root, err := findRoot()
	require.NoError(t, err)
	links := func(args ...string) bool {
		cmd := exec.CommandContext(t.Context(), "go", append([]string{"list", "-deps"}, args...)...)
		cmd.Dir = root
		out, err := cmd.Output()
		require.NoError(t, err)
		for path := range strings.Lines(string(out)) {
			for _, service := range []string{
				"gocloud.dev/", "cloud.google.com/", "github.com/aws/", "github.com/Azure/",
			} {
				if strings.HasPrefix(path, service) {
					return true
				}
			}
		}
		return false
	}
	require.False(t, links("./nasml/cmd/nasml"))
	require.False(t, links("./nasml/notebook", "./nasml/li2021", "./nasml/oymak2021", "./nasml/khodak2020",
		"./nasml/roberts"))
	require.True(t, links("-tags="+bucketTag, "./nasml/cmd/nasml"))
}

func TestHandOver(t *testing.T) {
	for _, test := range []struct {
		store, verb string
		want        bool
	}{
		{"", "run <id>", false}, {"/a/folder", "run <id>", false}, {"s3://b", "run <id>", false}, // this one knows it
		{"other://b", "run <id>", true}, {"other://b", "store ls", true}, {"other://b", "lab", false},
		{"other://b", "kubernetes <id>", false}, // which asks the address only
	} {
		t.Setenv("NASML_STORE", test.store)
		require.Equal(t, test.want, handOver(test.verb), "%+v", test)
	}
}

// The command as it is built hands a call over to the program that it builds.
func TestAStoreInABucketIsReadByAnotherProgram(t *testing.T) {
	if testing.Short() {
		t.Skip("links two programs: not with -short")
	}
	dir := t.TempDir()
	root, err := findRoot()
	require.NoError(t, err)
	program := filepath.Join(dir, "plain")
	require.NoError(t, buildProgram(t.Context(), root, program, false))
	list := func(store string) (string, error) {
		cmd := exec.CommandContext(t.Context(), program, "store", "ls", "--json")
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "NASML_STORE="+store, setupVar+"="+filepath.Join(dir, "setup"))
		out, err := cmd.Output()
		return string(out), err
	}
	out, err := list(filepath.Join(dir, "folder"))
	require.NoError(t, err)
	require.Equal(t, "[]\n", out)
	require.NoDirExists(t, filepath.Join(dir, "setup"), "a folder needs no other program")
	out, err = list("file://" + filepath.Join(dir, "bucket"))
	require.NoError(t, err)
	require.Equal(t, "[]\n", out)
	require.FileExists(t, filepath.Join(dir, "setup", "buckets", "nasml"))
	_, err = list("other://bucket")
	require.Error(t, err, "and no service is no reason to try for ever")
}
