package checkpoint

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"testing"
	"testing/iotest"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "github.com/nasml/lab/nasml/internal/steady"
)

type place struct {
	Epoch  int         `json:"epoch"`
	Losses [][]float64 `json:"losses"`
}

// empty has the shapes of what is written, with other numbers.
func empty() []*tensors.Tensor {
	return []*tensors.Tensor{
		tensors.FromShape(shapes.Make(dtypes.Float32, 2, 2)),
		tensors.FromShape(shapes.Make(dtypes.Float64, 3)),
		tensors.FromShape(shapes.Make(dtypes.Int32)),
	}
}

// written is a small checkpoint with the values that it was made of.
func written(t *testing.T) ([]byte, place, []*tensors.Tensor) {
	t.Helper()
	head := place{Epoch: 3, Losses: [][]float64{{0.1, 1.0 / 3}, {math.SmallestNonzeroFloat64, math.MaxFloat64}}}
	state := []*tensors.Tensor{
		tensors.FromValue([][]float32{{1, -0.1}, {float32(math.Inf(1)), math.SmallestNonzeroFloat32}}),
		tensors.FromValue([]float64{math.Pi, math.Copysign(0, -1), 1e300}),
		tensors.FromScalar(int32(-7)),
	}
	var b bytes.Buffer
	require.NoError(t, Write(&b, head, state...))
	return b.Bytes(), head, state
}

func bytesOf(t *testing.T, state []*tensors.Tensor) (all [][]byte) {
	t.Helper()
	for _, x := range state {
		require.NoError(t, x.ConstBytes(func(data []byte) { all = append(all, bytes.Clone(data)) }))
	}
	return all
}

// All comes back bit for bit, however the reader cuts it into pieces, and a
// NaN in a tensor comes back as it was.
func TestWhatIsWrittenIsRead(t *testing.T) {
	text, head, state := written(t)
	for _, r := range []io.Reader{
		bytes.NewReader(text), iotest.OneByteReader(bytes.NewReader(text)), iotest.DataErrReader(bytes.NewReader(text)),
	} {
		var got place
		into := empty()
		require.NoError(t, Read(r, &got, into...))
		require.Equal(t, head, got)
		require.Equal(t, bytesOf(t, state), bytesOf(t, into))
	}
	rapid.Check(t, func(t *rapid.T) {
		bits := rapid.SliceOfN(rapid.Uint64(), 1, 8).Draw(t, "bits")
		values := make([]float64, len(bits))
		for i, b := range bits {
			values[i] = math.Float64frombits(b)
		}
		var b bytes.Buffer
		require.NoError(t, Write(&b, len(bits), tensors.FromValue(values)))
		var n int
		into := tensors.FromShape(shapes.Make(dtypes.Float64, len(bits)))
		require.NoError(t, Read(&b, &n, into))
		require.Equal(t, len(bits), n)
		for i, v := range tensors.MustCopyFlatData[float64](into) {
			require.Equal(t, bits[i], math.Float64bits(v))
		}
	})
}

// The layout, byte by byte: checkpoints that lie in a store are read by later
// versions.
func TestLayout(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, Write(&b, place{Epoch: 2}, tensors.FromValue([]int32{1, 258})))
	const head = `{"epoch":2,"losses":null}`
	want := append([]byte{byte(len(head)), 0, 0, 0, 0, 0, 0, 0}, head...)
	want = append(want, 1, 0, 0, 0, 2, 1, 0, 0)
	require.Equal(t, want, b.Bytes())
}

// A checkpoint that is cut anywhere, that has more than expected, a wrong
// length or a head that is not JSON of this type is another's.
func TestAnotherCheckpointIsRefused(t *testing.T) {
	text, _, _ := written(t)
	read := func(b []byte) error { return Read(bytes.NewReader(b), new(place), empty()...) }
	require.NoError(t, read(text))
	for n := range text {
		require.ErrorIs(t, read(text[:n]), ErrOther, "the first %d of %d bytes", n, len(text))
	}
	require.ErrorIs(t, read(append(bytes.Clone(text), 0)), ErrOther)
	require.ErrorContains(t, read(append(bytes.Clone(text), 0)), "more than the 3 tensors")

	long := bytes.Clone(text)
	binary.LittleEndian.PutUint64(long, math.MaxUint64)
	require.ErrorIs(t, read(long), ErrOther)
	binary.LittleEndian.PutUint64(long, longestHead)
	require.ErrorIs(t, read(long), ErrOther)

	var b bytes.Buffer
	require.NoError(t, Write(&b, []int{1, 2}, empty()...))
	require.ErrorIs(t, read(b.Bytes()), ErrOther)
}

// A disk that fails is no other checkpoint: what lies there may be read later.
func TestFailuresOfReaderAndWriterArePassedOn(t *testing.T) {
	text, head, state := written(t)
	failure := errors.New("disk on fire")
	for n := range len(text) + 1 {
		r := io.MultiReader(bytes.NewReader(text[:n]), iotest.ErrReader(failure))
		err := Read(r, new(place), empty()...)
		require.ErrorIs(t, err, failure, "after %d bytes", n)
		require.NotErrorIs(t, err, ErrOther, "after %d bytes", n)
	}
	for n := range len(text) {
		require.ErrorIs(t, Write(&full{n, failure}, head, state...), failure, "after %d bytes", n)
	}
	require.NoError(t, Write(&full{len(text), failure}, head, state...))
	require.Error(t, Write(io.Discard, math.NaN()), "JSON has no NaN")
}

// full takes so many bytes.
type full struct {
	left int
	err  error
}

func (f *full) Write(p []byte) (int, error) {
	if len(p) > f.left {
		return f.left, f.err
	}
	f.left -= len(p)
	return len(p), nil
}
