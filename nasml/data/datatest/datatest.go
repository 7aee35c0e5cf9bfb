// Package datatest finds real data for tests.
package datatest

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/nasml/lab/nasml/data"
)

// MNIST, CIFAR10 and IMDb are files that a folder of data sets has which has the set.
const (
	MNIST   = "mnist/train-images-idx3-ubyte.gz"
	CIFAR10 = "cifar-10-binary.tar.gz"
	IMDb    = "aclImdb_v1.tar.gz"
)

// Dir sets NASML_DATA for a test to a folder with the given files, MNIST by default, and returns it: $NASML_DATA or, if
// that is not set, the user's folder or shared/data beside the checkout. Otherwise it skips the test. Nothing is
// downloaded.
func Dir(t testing.TB, files ...string) string {
	t.Helper()
	if len(files) == 0 {
		files = []string{MNIST}
	}
	users, err := data.Dir()
	if err != nil {
		t.Skipf("needs real data: %v", err)
	}
	folders := []string{users}
	if os.Getenv("NASML_DATA") == "" {
		folders = append(folders, beside(t)...)
	}
	for _, dir := range folders {
		if has(dir, files) {
			t.Setenv("NASML_DATA", dir)
			return dir
		}
	}
	t.Skipf("needs real data, and found %q in none of %q: run \"go tool nasml data NAME\"", files, folders)
	return ""
}

func has(dir string, files []string) bool {
	for _, f := range files {
		if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(f))); err != nil {
			return false
		}
	}
	return true
}

// beside returns the folders shared/data beside the module's root and beside every folder above it.
func beside(t testing.TB) (folders []string) {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for isRoot := false; !isRoot && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		_, err := os.Stat(filepath.Join(dir, "go.mod"))
		isRoot = err == nil
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		folders = append(folders, filepath.Join(dir, "shared", "data"))
	}
	return folders
}

// NASBench201 returns the real table from the folders of Dir, and sets NASML_DATA to its folder, or skips the test.
func NASBench201(t testing.TB) *data.NASBench201 {
	t.Helper()
	return table(t, "NAS-Bench-201", "nasbench201.csv.gz", data.LoadNASBench201)
}

// NASBench101 is the same for NAS-Bench-101, whose table may be a part (NASBench101.Complete).
func NASBench101(t testing.TB) *data.NASBench101 {
	t.Helper()
	return table(t, "NAS-Bench-101", "nasbench101.csv.gz or nb101_108_subset151644.csv.gz", data.LoadNASBench101)
}

// table loads a table from the first folder that has it.
func table[T any](t testing.TB, name, file string, load func(dir string) (*T, error)) *T {
	t.Helper()
	folders := []string{""} // what NASML_DATA says, or the user's
	if os.Getenv("NASML_DATA") == "" {
		folders = append(folders, beside(t)...)
	}
	for _, dir := range folders {
		table, err := load(dir)
		if err == nil {
			if dir != "" { // what is tested reads it from there, too
				t.Setenv("NASML_DATA", dir)
			}
			return table
		}
		if !errors.Is(err, data.ErrMissing) {
			t.Fatal(err)
		}
	}
	t.Skipf("needs the table of %s, and found no nasbench/%s in any of %q: set NASML_DATA to a folder that has it",
		name, file, folders)
	return nil
}
