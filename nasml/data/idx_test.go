package data

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// encodeIDX is the inverse of readIDX.
func encodeIDX(shape []int, body []byte) []byte {
	file := []byte{0, 0, 8, byte(len(shape))}
	for _, n := range shape {
		file = binary.BigEndian.AppendUint32(file, uint32(n))
	}
	return append(file, body...)
}

func drawShape(t *rapid.T) (shape []int, size int) {
	shape, size = rapid.SliceOfN(rapid.IntRange(0, 9), 1, 3).Draw(t, "shape"), 1
	for _, n := range shape {
		size *= n
	}
	return shape, size
}

func TestReadIDXInvertsEncode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape, size := drawShape(t)
		body := rapid.SliceOfN(rapid.Byte(), size, size).Draw(t, "body")
		got, err := readIDX(bytes.NewReader(encodeIDX(shape, body)), shape)
		require.NoError(t, err)
		require.True(t, bytes.Equal(body, got))
	})
}

func TestReadIDXRefusesEveryOtherLength(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape, size := drawShape(t)
		file := encodeIDX(shape, make([]byte, size))
		cut := rapid.IntRange(0, len(file)-1).Draw(t, "cut")
		_, err := readIDX(bytes.NewReader(file[:cut]), shape)
		require.ErrorContains(t, err, fmt.Sprintf("cut off after %d bytes", cut))
		_, err = readIDX(bytes.NewReader(append(file, 0)), shape)
		require.ErrorContains(t, err, "more bytes after the end")
	})
}

// Whatever a file says of itself, reading it neither panics nor gives
// something other than what was asked for.
func TestReadIDXOnAnyBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape, size := drawShape(t)
		file := encodeIDX(shape, make([]byte, size))
		at := rapid.IntRange(0, 3+4*len(shape)).Draw(t, "at")
		old := file[at]
		file[at] = rapid.Byte().Draw(t, "byte")
		_, err := readIDX(bytes.NewReader(file), shape)
		require.Equal(t, old == file[at], err == nil, "%v", err)
		body, err := readIDX(bytes.NewReader(rapid.SliceOf(rapid.Byte()).Draw(t, "file")), shape)
		require.True(t, err != nil || len(body) == size)
	})
}

func TestReadIDXDoesNotAllocateForAFalseHeader(t *testing.T) {
	header := encodeIDX([]int{-1, 0xffff, 0xffff}, nil) // −1 is written as 0xffffffff
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := readIDX(bytes.NewReader(header), []int{20, 6, 5})
	runtime.ReadMemStats(&after)
	require.ErrorContains(t, err, "found 4294967295×65535×65535 images, expected 20×6×5")
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
}

func TestReadNamesWhatIsWrong(t *testing.T) {
	f, plain := smallFile("mnist/train-images-idx3-ubyte.gz", 1, 20, 6, 5)
	zipped := gz(plain)
	flipped := bytes.Clone(plain)
	flipped[len(flipped)-1]++
	for name, c := range map[string]struct {
		content []byte
		want    string
	}{
		"labels for images": {gz(encodeIDX([]int{20}, make([]byte, 20))),
			"found magic number 0x00000801, expected 0x00000803 (images)"},
		"wrong count": {gz(encodeIDX([]int{19, 6, 5}, make([]byte, 19*30))),
			"found 19×6×5 images, expected 20×6×5"},
		"truncated gzip":   {zipped[:len(zipped)-9], "is cut off after"},
		"no gzip trailer":  {zipped[:len(zipped)-8], "is cut off after 616 bytes"},
		"only a beginning": {zipped[:5], "found the beginning of a gzip file, and then: unexpected EOF"},
		"damaged gzip": {append(bytes.Clone(zipped[:len(zipped)-8]), 1, 2, 3, 4, 5, 6, 7, 8),
			"gzip: invalid checksum"},
		"one bit flipped": {gz(flipped), "expected " + f.SHA256},
		"a web page":      {[]byte("<!doctype html>"), "found magic number 0x3c21646f"},
		"short file":      {plain[:100], "cut off after 100 bytes (uncompressed), expected all of 616"},
		"empty file":      {nil, "found a file of 0 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "file.gz")
			require.NoError(t, os.WriteFile(path, c.content, 0o644))
			_, err := f.read(path)
			require.ErrorIs(t, err, ErrBroken)
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestReadTakesZippedAndUnzippedUnderAnyName(t *testing.T) {
	f, plain := smallFile("mnist/train-labels-idx1-ubyte.gz", 1, 20)
	for _, content := range [][]byte{plain, gz(plain)} {
		path := filepath.Join(t.TempDir(), "file.gz")
		require.NoError(t, os.WriteFile(path, content, 0o644))
		body, err := f.read(path)
		require.NoError(t, err)
		require.Equal(t, plain[8:], body)
	}
}
