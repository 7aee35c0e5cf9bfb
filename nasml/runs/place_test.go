//go:build unix

package runs

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// squatters put something that is no file where one should be.
var squatters = map[string]func(path string) error{
	"pipe":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
	"folder": func(path string) error { return os.MkdirAll(filepath.Join(path, "inside"), 0o700) },
}

// What is no file is never waited for: it is set aside, reported, and its trial is
// computed again.
func TestPlaceOfARecordIsTaken(t *testing.T) {
	for name, squat := range squatters {
		t.Run(name, func(t *testing.T) {
			s, _ := testStore(t)
			trials := toyTrials(7, 2)
			r := fillStore(t, s, trials)[0]
			take := func() {
				require.NoError(t, os.Remove(s.recordPath(r.Key)))
				require.NoError(t, squat(s.recordPath(r.Key)))
			}
			take()
			_, broken, err := s.List()
			require.NoError(t, err)
			require.Len(t, broken, 1, "it is listed")
			again := fillStore(t, s, trials)
			require.Equal(t, r.Values, again[0].Values)
			require.FileExists(t, s.recordPath(r.Key))

			take()
			report, err := s.Verify()
			require.NoError(t, err)
			require.Len(t, report.Broken, 1)
			require.Equal(t, s.recordPath(r.Key), report.Broken[0].Path)
			require.Contains(t, report.Broken[0].Reason, "expected a file")
			require.NotEmpty(t, report.Broken[0].MovedTo)
			report, err = s.Verify()
			require.NoError(t, err)
			require.Empty(t, report.Broken)
			_, err = s.GC(GCOptions{})
			require.NoError(t, err)
			left, err := os.ReadDir(filepath.Join(s.Dir(), "broken"))
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}

// The same of a checkpoint.
func TestPlaceOfACheckpointIsTaken(t *testing.T) {
	for name, squat := range squatters {
		t.Run(name, func(t *testing.T) {
			s, _ := testStore(t)
			at := filepath.Join(s.Dir(), "checkpoints", "a.ckpt")
			require.NoError(t, os.MkdirAll(filepath.Dir(at), 0o700))
			require.NoError(t, squat(at))
			report, err := s.Verify()
			require.NoError(t, err)
			require.Len(t, report.Broken, 1)
			require.NoFileExists(t, at)
		})
	}
}

// A file where the store has a folder hides what is below it, which is not "no record".
func TestPlaceOfAFolderIsTaken(t *testing.T) {
	s, _ := testStore(t)
	r := fillStore(t, s, toyTrials(7, 1))[0]
	shelf := filepath.Dir(s.recordPath(r.Key))
	require.NoError(t, os.RemoveAll(shelf))
	require.NoError(t, os.WriteFile(shelf, nil, 0o600))
	report, err := s.Verify()
	require.NoError(t, err)
	require.Len(t, report.Broken, 1)
	fillStore(t, s, toyTrials(7, 1)) // there is room again

	records := filepath.Join(s.Dir(), "records")
	require.NoError(t, os.RemoveAll(records))
	require.NoError(t, os.WriteFile(records, nil, 0o600))
	_, err = s.Verify()
	require.ErrorContains(t, err, "a file is where the store needs a folder")
	_, _, err = s.List()
	require.ErrorContains(t, err, records)
}

// The folder of records may be a link to another disk.
func TestRecordsBehindALink(t *testing.T) {
	s, _ := testStore(t)
	fillStore(t, s, toyTrials(7, 1))
	records, disk := filepath.Join(s.Dir(), "records"), filepath.Join(t.TempDir(), "disk")
	require.NoError(t, os.Rename(records, disk))
	require.NoError(t, os.Symlink(disk, records))
	report, err := s.Verify()
	require.NoError(t, err)
	require.Equal(t, 1, report.Records)
}
