package datatest

import (
	"errors"
	"os"
	"testing"

	"github.com/nasml/lab/nasml/data"
)

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
