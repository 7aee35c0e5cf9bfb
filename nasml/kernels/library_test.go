package kernels

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLibraryIsFoundBeforeItIsBuilt(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	t.Setenv("CC", filepath.Join(t.TempDir(), "no-compiler"))
	empty, made := t.TempDir(), t.TempDir()
	_, err := Library(empty)
	require.ErrorContains(t, err, "building the kernels by ")
	left, err := filepath.Glob(filepath.Join(os.Getenv("XDG_CACHE_HOME"), "nasml", "kernels", "*"))
	require.NoError(t, err)
	require.Empty(t, left, "no half library")
	file := filepath.Join(made, FileName())
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	path, err := Library(empty, made)
	require.NoError(t, err)
	require.Equal(t, file, path)
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
