package trace

import (
	"archive/zip"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	_ "github.com/nasml/lab/nasml/internal/steady"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// npyBytes is an array as numpy.save writes it, by the description of the
// format.
func npyBytes(header string, data ...byte) string {
	header += strings.Repeat(" ", 63-(10+len(header))%64) + "\n"
	return "\x93NUMPY\x01\x00" + string(binary.LittleEndian.AppendUint16(nil, uint16(len(header)))) + header +
		string(data)
}

// archive writes a zip of entries, which are name, content, name, content, ….
func archive(t testing.TB, entries ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "x.npz")
	f, err := os.Create(file)
	require.NoError(t, err)
	defer f.Close()
	w := zip.NewWriter(f)
	for i := 0; i < len(entries); i += 2 {
		e, err := w.Create(entries[i])
		require.NoError(t, err)
		_, err = e.Write([]byte(entries[i+1]))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return file
}

var text = npyBytes("{'descr': '|S2', 'fortran_order': False, 'shape': (), }", '{', '}')

// anything is a check that refuses nothing.
func anything(string, map[string]Array) error { return nil }

func TestNPZRoundTrip(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.npz")
	rapid.Check(t, func(t *rapid.T) {
		a := Array{Type: rapid.SampledFrom([]string{"<f4", "<f8", "<i4", "<i8", "|u1"}).Draw(t, "type"), Dims: []int{}}
		a.Dims = append(a.Dims, rapid.SliceOfN(rapid.IntRange(1, 4), 0, 5).Draw(t, "dims")...)
		for range size(a.Dims) {
			a.Values = append(a.Values, float64(rapid.IntRange(0, 255).Draw(t, "value")))
		}
		want := map[string]Array{"a/b<-c": a}
		require.NoError(t, writeNPZ(file, want, []byte(`{"π": 1}`)))
		got, settings, err := readNPZ(file, anything)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Equal(t, `{"π": 1}`, settings)
	})
}

func TestOrdersTypesAndTexts(t *testing.T) {
	f4 := func(xs ...float32) (b []byte) {
		for _, x := range xs {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		}
		return b
	}
	unicode := npyBytes("{'descr': '<U3', 'fortran_order': False, 'shape': (), }", '{', 0, 0, 0, 0xB8, 3, 0, 0, '}', 0,
		0, 0)
	arrays, settings, err := readNPZ(archive(t, "settings.npy", unicode,
		"c.npy", npyBytes("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", f4(1, 2, 3, 4, 5, 6)...),
		"f.npy", npyBytes("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", f4(1, 4, 2, 5, 3, 6)...),
		"i.npy", npyBytes("{'descr': '<i8', 'fortran_order': False, 'shape': (1,), }", 0xFE, 0xFF, 0xFF, 0xFF, 0xFF,
			0xFF, 0xFF, 0xFF)), anything)
	require.NoError(t, err)
	require.Equal(t, "{θ}", settings)
	require.Equal(t, []float64{1, 2, 3, 4, 5, 6}, arrays["c"].Values)
	require.Equal(t, arrays["c"], arrays["f"])
	require.Equal(t, []float64{-2}, arrays["i"].Values)
}

func TestBrokenFiles(t *testing.T) {
	header := func(descr, shape string) string {
		return fmt.Sprintf("{'descr': %s, 'fortran_order': False, 'shape': (%s), }", descr, shape)
	}
	one := npyBytes(header("'|u1'", "1,"), 1)
	for want, entries := range map[string][]string{
		"the array settings is missing":             {"a.npy", one},
		`entry "a.txt": expected arrays NAME.npy`:   {"settings.npy", text, "a.txt", one},
		`entry "a.npy": expected arrays`:            {"a.npy", one, "a.npy", one},
		"objects are pickles, which are never read": {"a.npy", npyBytes(header("'|O'", "1,"), 1)},
		"expected one with a plain type":            {"a.npy", npyBytes(header("[('x', '<f4')]", "1,"), 1)},
		`elements of type ">f4"`:                    {"a.npy", npyBytes(header("'>f4'", "1,"), 1, 2, 3, 4)},
		"expected an .npy array of version":         {"a.npy", "hello"},
		"found shape [0], expected":                 {"a.npy", npyBytes(header("'<f4'", "0,"))},
		"found shape [99999999 99999999], expected": {"a.npy", npyBytes(header("'<f4'", "99999999, 99999999"))},
		"found more than the 1 bytes": {"settings.npy", text, "a.npy",
			npyBytes(header("'|u1'", "1,"), 1, 2)},
		"settings: found shape [1] of type <f4": {"settings.npy", npyBytes(header("'<f4'", "1,"), 0, 0, 0, 0)},
		"a: found a text of type |S2":           {"a.npy", text},
	} {
		_, _, err := readNPZ(archive(t, entries...), anything)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "%!")
	}

	// 400 MB are promised, 4 bytes are there: nothing of that size is made.
	_, _, err := readNPZ(archive(t, "a.npy", npyBytes(header("'<f4'", "100000000,"), 0, 0, 0, 0)), anything)
	require.ErrorContains(t, err, "expected 400000000 for shape [100000000]")

	whole, err := os.ReadFile("testdata/darts.npz")
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "broken.npz")
	require.NoError(t, os.WriteFile(file, whole[:len(whole)/2], 0o644))
	_, err = Read(file)
	require.ErrorContains(t, err, "broken.npz: expected an .npz file")
	whole[200] ^= 0xFF // in the first array
	require.NoError(t, os.WriteFile(file, whole, 0o644))
	_, err = Read(file)
	require.Error(t, err)
	_, err = Read(filepath.Join(t.TempDir(), "none.npz"))
	require.ErrorContains(t, err, "there is no such file")
}

func TestPermuted(t *testing.T) {
	a := Array{Dims: []int{2, 3}, Values: []float64{1, 2, 3, 4, 5, 6}}
	require.Equal(t, Array{Dims: []int{3, 2}, Values: []float64{1, 4, 2, 5, 3, 6}}, a.permuted(1, 0))
	rapid.Check(t, func(t *rapid.T) {
		dims := rapid.SliceOfN(rapid.IntRange(1, 4), 4, 4).Draw(t, "dims")
		a := Array{Dims: dims}
		for i := range size(dims) {
			a.Values = append(a.Values, float64(i))
		}
		require.Equal(t, a, a.permuted(toForeign(dims)...).permuted(toOurs(dims)...))
		kernel := a.permuted(3, 2, 0, 1) // [h, w, in, out] → [out, in, h, w]
		o, i, h, w := dims[3]-1, dims[2]-1, dims[0]-1, dims[1]-1
		require.Equal(t, a.Values[((h*dims[1]+w)*dims[2]+i)*dims[3]+o],
			kernel.Values[((o*dims[2]+i)*dims[0]+h)*dims[1]+w])
	})
}

// A zip of zeros is a thousand times smaller than what it unpacks to: what all arrays
// together ask for is seen in their headers, and nothing is unpacked.
func TestALotOfZerosIsRefusedUnread(t *testing.T) {
	file := filepath.Join(t.TempDir(), "zeros.npz")
	f, err := os.Create(file)
	require.NoError(t, err)
	defer f.Close()
	w := zip.NewWriter(f)
	const rows = 1 << 24 // bytes, each a float64 once it is read: 128 MB an array
	for i := range 12 {
		e, err := w.Create(fmt.Sprintf("grad/%d.npy", i))
		require.NoError(t, err)
		head := fmt.Sprintf("{'descr': '|u1', 'fortran_order': False, 'shape': (%d,), }", rows)
		_, err = e.Write([]byte(npyBytes(head)))
		require.NoError(t, err)
		_, err = e.Write(make([]byte, rows))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, err = readNPZ(file, anything)
	runtime.ReadMemStats(&after)
	require.ErrorContains(t, err, "all elements take more than 1073741824 bytes")
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(rows), "no array was unpacked")

	settings := npyBytes(fmt.Sprintf("{'descr': '|S%d', 'fortran_order': False, 'shape': (), }", 2<<20),
		make([]byte, 2<<20)...)
	_, _, err = readNPZ(archive(t, "settings.npy", settings), anything)
	require.ErrorContains(t, err, "settings: found 2097152 bytes, expected at most 1048576")
}

// Names and shapes are checked before elements are read.
func TestWhatCheckRefusesIsNotRead(t *testing.T) {
	refused := fmt.Errorf("refused")
	a := npyBytes("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", 0, 0, 0x80, 0x3F)
	_, _, err := readNPZ(archive(t, "settings.npy", text, "a.npy", a), func(s string, shapes map[string]Array) error {
		require.Equal(t, "{}", s)
		require.Equal(t, map[string]Array{"a": {Type: "<f4", Dims: []int{1}}}, shapes)
		return refused
	})
	require.ErrorIs(t, err, refused)
}
