package datatest

import (
	"errors"
	"os"
	"testing"

	"github.com/nasml/lab/nasml/data"
)

// NASBench201 returns the real table of NAS-Bench-201 from the folders that
// Dir looks in, to which it sets NASML_DATA for the test. Where there is none,
// it skips the test and says so.
func NASBench201(t testing.TB) *data.NASBench201 {
	t.Helper()
	folders := []string{""} // what NASML_DATA says, or the user's
	if os.Getenv("NASML_DATA") == "" {
		folders = append(folders, beside(t)...)
	}
	for _, dir := range folders {
		table, err := data.LoadNASBench201(dir)
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
	t.Skipf("needs the table of NAS-Bench-201, and found no nasbench/nasbench201.csv.gz in any of %q: set NASML_DATA to a folder that has it", folders)
	return nil
}
