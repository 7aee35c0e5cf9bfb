// Package datatest finds real data for tests.
package datatest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/nasml/lab/nasml/data"
)

// probe is a file that a folder of data sets with MNIST has.
const probe = "mnist/train-images-idx3-ubyte.gz"

// Dir sets NASML_DATA for a test to a folder that has real MNIST, and returns
// it: the one that NASML_DATA says or, where it is not set, the user's or a
// folder shared/data beside the checkout. Where there is none, it skips the
// test and says so. Nothing is downloaded.
func Dir(t testing.TB) string {
	t.Helper()
	users, err := data.Dir()
	if err != nil {
		t.Skipf("needs real MNIST: %v", err)
	}
	folders := []string{users}
	if os.Getenv("NASML_DATA") == "" {
		folders = append(folders, beside(t)...)
	}
	for _, dir := range folders {
		if _, err := os.Stat(filepath.Join(dir, probe)); err == nil {
			t.Setenv("NASML_DATA", dir)
			return dir
		}
	}
	t.Skipf("needs real MNIST, and found no %s in any of %q: run \"go tool nasml data mnist\"", probe, folders)
	return ""
}

// beside returns the folders shared/data beside the module's root and beside
// every folder above it.
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
