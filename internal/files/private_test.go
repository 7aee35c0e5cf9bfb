//go:build unix

package files

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPrivate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("text"), 0o600))
	for mode, says := range map[os.FileMode]string{
		0o600: "", 0o755: "", 0o664: "its group may write", 0o620: "its group may write", 0o602: "everybody may write",
	} {
		require.NoError(t, os.Chmod(file, mode))
		read, err := ReadPrivate(file)
		if says == "" {
			require.NoError(t, err)
			require.Equal(t, "text", string(read))
			require.NoError(t, Private(file, filepath.Dir(file)+"/file"))
			continue
		}
		require.ErrorIs(t, err, ErrNotPrivate)
		require.ErrorContains(t, err, says)
		require.Empty(t, read)
		require.EqualError(t, Private(file), err.Error())
	}
	require.ErrorIs(t, Private(file+"s"), os.ErrNotExist)
	require.NotErrorIs(t, Private(file+"s"), ErrNotPrivate)
}

// A file of another user is refused whatever its mode, one of root's is not.
func TestPrivateIsTheUsers(t *testing.T) {
	if os.Geteuid() != 0 {
		require.NoError(t, Private("/"), "root's")
		t.Skip("only root gives files away")
	}
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.NoError(t, os.Chown(file, 12345, 12345))
	require.ErrorContains(t, Private(file), "belongs to the user with number 12345")
	_, err := ReadPrivate(file)
	require.ErrorIs(t, err, ErrNotPrivate)
}

func TestReadPrivateWaitsForNobody(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	for _, path := range []string{pipe, filepath.Dir(pipe)} {
		_, err := ReadPrivate(path)
		require.ErrorContains(t, err, "expected a file")
	}
}
