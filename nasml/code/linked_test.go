package code

import (
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Every Go module that counts has a function by which its folder is found.
func TestLandmarks(t *testing.T) {
	for module := range ledger().Modules {
		if module == plugin {
			continue
		}
		dir, err := folderOf(module, landmarks[module])
		require.NoError(t, err)
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if errors.Is(err, os.ErrNotExist) { // vendored
			require.True(t, strings.HasSuffix(dir, module), dir)
			continue
		}
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(string(text), "module "+module+"\n"), "%s: %s", dir, text)
	}
	_, err := folderOf("example.org/other", nil)
	require.ErrorContains(t, err, "no function of example.org/other")
	_, err = folderOf("github.com/gomlx/gomlx/elsewhere", landmarks["github.com/gomlx/gomlx"])
	require.ErrorContains(t, err, "no folder of")
}

// A version speaks for a module whose source Go has attested, and for no other.
func TestVersionOfAModule(t *testing.T) {
	const gonum = "gonum.org/v1/gonum"
	of := func(m debug.Module) string { m.Path = gonum; return versionOf(&m) }
	plain := of(debug.Module{Version: "v0.17.0", Sum: "h1:x"})
	require.Equal(t, "v0.17.0", plain)
	require.Equal(t, "v0.16.0", of(debug.Module{Version: "v0.17.0", Sum: "h1:x",
		Replace: &debug.Module{Path: gonum, Version: "v0.16.0", Sum: "h1:y"}}))
	require.Equal(t, "example.org/fork v0.17.0", of(debug.Module{Version: "v0.17.0", Sum: "h1:x",
		Replace: &debug.Module{Path: "example.org/fork", Version: "v0.17.0", Sum: "h1:y"}}))
	vendored := of(debug.Module{Version: "v0.17.0"})
	require.True(t, strings.HasPrefix(vendored, "source "), vendored)
	require.Equal(t, vendored, of(debug.Module{Version: "(devel)"}), "of a workspace")
	require.Equal(t, vendored, of(debug.Module{Version: "v0.17.0", Replace: &debug.Module{Path: "./gonum"}}))
	program, err := programSum()
	require.NoError(t, err)
	require.NotEqual(t, "source "+program, vendored)
	unknown := versionOf(&debug.Module{Path: "example.org/other", Version: "v1.0.0"})
	require.Equal(t, "source "+program, unknown, "what is not found is as other as the program is")
}

func TestHashOfAModule(t *testing.T) {
	dir, built := t.TempDir(), time.Now()
	write := func(name, text string, at time.Time) {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		require.NoError(t, os.Chtimes(path, at, at))
	}
	before := built.Add(-time.Hour)
	hash := func() string {
		sum, err := hashOf(dir, built)
		require.NoError(t, err)
		return sum
	}
	write("a.go", "package a", before)
	write("blas/dgemm.s", "TEXT", before)
	first := hash()
	write("a_test.go", "package a", before)
	write("README.md", "text", before)
	require.Equal(t, first, hash())
	write("blas/dgemm.s", "TEX2", before)
	second := hash()
	require.NotEqual(t, first, second, "one letter, of the same size and time")
	write("b.go", "package a", before)
	require.NotEqual(t, second, hash())
	write("a.go", "package a", built.Add(time.Second))
	_, err := hashOf(dir, built)
	require.ErrorIs(t, err, errNewer)
}
