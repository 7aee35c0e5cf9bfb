package files

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWriteIsWholeOrNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a", "x")
	require.NoError(t, WriteBytes(path, []byte("old")))
	broke := errors.New("broke off")
	err := Write(path, 0o600, func(f *os.File) error {
		_, err := f.WriteString("half")
		require.NoError(t, err)
		require.True(t, IsTemp(f.Name()))
		return broke
	})
	require.ErrorIs(t, err, broke)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "old", string(text))

	require.NoError(t, Write(path, 0o600, func(f *os.File) error { _, err := f.WriteString("new"); return err }))
	text, err = os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "new", string(text))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())

	// A folder has the name: the renaming fails, and nothing is left.
	require.Error(t, WriteBytes(filepath.Join(dir, "a"), []byte("x")))
	for _, folder := range []string{dir, filepath.Join(dir, "a")} {
		entries, err := os.ReadDir(folder)
		require.NoError(t, err)
		require.Len(t, entries, 1)
	}
}

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	first, err := TryLock(path, 0o600)
	require.NoError(t, err)
	second, err := TryLock(path, 0o600)
	require.NoError(t, err)
	require.Nil(t, second)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = WaitLock(ctx, path, 0o600, time.Hour)
	require.ErrorIs(t, err, context.Canceled)
	first.Remove()
	require.NoFileExists(t, path)
	third, err := WaitLock(t.Context(), path, 0o600, time.Hour)
	require.NoError(t, err)
	third.Unlock()
	require.FileExists(t, path)
	_, err = TryLock(filepath.Join(t.TempDir(), "none", "a"), 0o600)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// Holders that remove the lock's file as they leave never let two in.
func TestLockExcludes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	var inside, taken atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 2000 {
				lock, err := TryLock(path, 0o600)
				if lock == nil {
					assert.NoError(t, err)
					continue
				}
				assert.Equal(t, int32(1), inside.Add(1))
				taken.Add(1)
				inside.Add(-1)
				lock.Remove()
			}
		})
	}
	all.Wait()
	require.Positive(t, taken.Load())
}
