//go:build cgo && ((linux && (amd64 || arm64)) || (darwin && arm64)) && !noxla

package backend

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// another puts a hook as that of another process in the place of h.
func another(t *testing.T, h *hook) *hook {
	t.Helper()
	next := newHook(h.path)
	require.Equal(t, h.cache.Dir, next.cache.Dir)
	hooked.hook = next
	return next
}

// What a process asked for is loaded early in the next one, and computes the same; what is
// not asked for any more is let go.
func TestProgramsAreForeseen(t *testing.T) {
	old := large
	large = 0
	t.Cleanup(func() { large = old })
	b, h := withCache(t)
	compute := func(name string) [][]byte { return run(t, b, kinds[name].program, kinds[name].inputs()...) }
	end := Foresee(b, "a search")
	loop, double := compute("a while loop"), compute("float64")
	end()
	require.EqualValues(t, 2, h.compiled.Load())
	require.Zero(t, h.early.Load())

	h = another(t, h)
	end = Foresee(b, "a search")
	require.Equal(t, loop, compute("a while loop"))
	require.Equal(t, double, compute("float64"))
	require.Equal(t, double, compute("float64"), "once more, from the cache")
	end()
	end() // changes nothing
	require.EqualValues(t, 2, h.early.Load())
	require.EqualValues(t, 3, h.loaded.Load())
	require.Zero(t, h.compiled.Load())

	h = another(t, h)
	end = Foresee(b, "a search")
	other := Foresee(b, "another search") // while one is foreseen
	require.Equal(t, double, compute("float64"))
	other()
	compute("a Fourier transform")
	end()
	require.EqualValues(t, 1, h.early.Load())
	require.EqualValues(t, 1, h.compiled.Load())

	h = another(t, h)
	end = Foresee(b, 1) // other settings
	require.Equal(t, double, compute("float64"))
	end()
	require.Zero(t, h.early.Load())
}

// What is foreseen and gone, or damaged, is compiled.
func TestWhatWasForeseenAndIsGone(t *testing.T) {
	old := large
	large = 0
	t.Cleanup(func() { large = old })
	b, h := withCache(t)
	kind := kinds["float64"]
	end := Foresee(b, "a search")
	want := run(t, b, kind.program, kind.inputs()...)
	end()
	files, err := filepath.Glob(filepath.Join(h.cache.Dir, "*.program"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	require.NoError(t, os.WriteFile(files[0], []byte("else"), 0o600))
	h = another(t, h)
	end = Foresee(b, "a search")
	require.Equal(t, want, run(t, b, kind.program, kind.inputs()...))
	end()
	require.EqualValues(t, 1, h.compiled.Load())
	require.Zero(t, h.early.Load())
}

// A client that ends takes what was loaded for it along.
func TestAClientEndsWhileProgramsAreForeseen(t *testing.T) {
	old := large
	large = 0
	t.Cleanup(func() { large = old })
	b, h := withCache(t)
	kind := kinds["float64"]
	end := Foresee(b, "a search")
	run(t, b, kind.program, kind.inputs()...)
	end()
	h = another(t, h)
	second := openCPU(t)
	Foresee(second, "a search")
	require.Nil(t, h.foresight.Load(), "for which of two clients is not known")
	second.Finalize()
	Foresee(b, "a search")
	openCPU(t).Finalize()
	require.NotNil(t, h.foresight.Load(), "another client has ended")
	b.Finalize()
	require.Nil(t, h.foresight.Load())
}
