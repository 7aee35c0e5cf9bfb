package kernels

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLibraryIsFoundBeforeItIsBuilt(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	t.Setenv("CC", filepath.Join(t.TempDir(), "no-compiler"))
	empty, made := t.TempDir(), t.TempDir()
	require.NoError(t, os.Chmod(made, 0o755)) // whatever umask is
	warned := ""
	warn := func(format string, args ...any) { warned = fmt.Sprintf(format, args...) }
	_, err := Library(warn, empty)
	require.ErrorContains(t, err, "building the kernels by ")
	left, err := filepath.Glob(filepath.Join(os.Getenv("XDG_CACHE_HOME"), "nasml", "kernels", "*"))
	require.NoError(t, err)
	require.Empty(t, left, "no half library")
	file := filepath.Join(made, FileName())
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	path, err := Library(warn, empty, made)
	require.NoError(t, err)
	require.Equal(t, file, path)
	require.Empty(t, warned)

	for _, shared := range []string{file, made} {
		require.NoError(t, os.Chmod(shared, 0o775))
		_, err = Library(warn, empty, made)
		require.ErrorContains(t, err, "building the kernels by ", "the user's own are built")
		require.Contains(t, warned, "its group may write to "+shared)
		require.NoError(t, os.Chmod(shared, 0o755))
	}
}

// What the compiler says is in the error.
func TestBuildSaysWhatTheCompilerSays(t *testing.T) {
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("no shell to play the compiler")
	}
	fake := filepath.Join(t.TempDir(), "cc")
	script := "#!/bin/sh\necho 'lanes.h:3: no such vectors'\necho more\nexit 1\n"
	require.NoError(t, os.WriteFile(fake, []byte(script), 0o755))
	t.Setenv("CC", fake+" -v")
	err := Build(t.Context(), filepath.Join(t.TempDir(), "kernels", "library.so"))
	require.EqualError(t, err, "building the kernels by "+fake+": exit status 1: lanes.h:3: no such vectors")
}

// Whatever umask is, what is built is the user's own, and is taken.
func TestBuiltLibraryIsTaken(t *testing.T) {
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("no shell to play the compiler")
	}
	defer syscall.Umask(syscall.Umask(0o002))
	fake := filepath.Join(t.TempDir(), "cc")
	script := "#!/bin/sh\ntouch library.so\nchmod 775 library.so\n"
	require.NoError(t, os.WriteFile(fake, []byte(script), 0o755))
	t.Setenv("CC", fake)
	t.Setenv("XDG_CACHE_HOME", filepath.Join(t.TempDir(), "cache"))
	t.Setenv("HOME", t.TempDir())
	built, err := Library(t.Errorf)
	require.NoError(t, err)
	t.Setenv("CC", "no-compiler")
	again, err := Library(t.Errorf)
	require.NoError(t, err)
	require.Equal(t, built, again)
	info, err := os.Stat(filepath.Dir(built))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
}
