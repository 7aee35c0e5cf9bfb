package data

import (
	"bufio"
	"compress/gzip"
	"crypto/md5"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// readIDX reads a file of unsigned bytes in MNIST's IDX format, in which all numbers are big-endian:
//
//	00 00 08 rank | rank × uint32 dimension | Π dimensions bytes
//
// It returns the bytes after the header. A magic number, a shape, a length other than expected is an error. Nothing is
// allocated before the header has been found to say what is expected, so that a false one costs nothing.
func readIDX(r io.Reader, shape []int) ([]byte, error) {
	header := make([]byte, 4+4*len(shape))
	if n, err := io.ReadFull(r, header[:4]); err != nil {
		return nil, short(err, n, len(header))
	}
	if found, want := binary.BigEndian.Uint32(header), uint32(0x0800+len(shape)); found != want {
		return nil, fmt.Errorf("found magic number 0x%08x, expected 0x%08x (%s)", found, want, kind(shape))
	}
	if n, err := io.ReadFull(r, header[4:]); err != nil {
		return nil, short(err, 4+n, len(header))
	}
	found, size := make([]int, len(shape)), 1
	for i := range shape {
		found[i] = int(binary.BigEndian.Uint32(header[4+4*i:]))
		size *= shape[i]
	}
	if !slices.Equal(found, shape) {
		return nil, fmt.Errorf("found %s %s, expected %s", times(found), kind(shape), times(shape))
	}
	body := make([]byte, size)
	if n, err := io.ReadFull(r, body); err != nil {
		return nil, short(err, len(header)+n, len(header)+size)
	}
	switch _, err := io.ReadFull(r, make([]byte, 1)); err {
	case io.EOF:
		return body, nil
	case nil:
		return nil, fmt.Errorf("found more bytes after the end, expected %d", len(header)+size)
	default: // the zipped file ends or breaks in its trailer
		return nil, short(err, len(header)+size, len(header)+size)
	}
}

func short(err error, found, want int) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("found a file that is cut off after %d bytes (uncompressed), expected all of %d", found, want)
	}
	return fmt.Errorf("found an error after %d of %d bytes (uncompressed): %w", found, want, err)
}

func kind(shape []int) string {
	if len(shape) == 1 {
		return "labels"
	}
	return "images"
}

func times(shape []int) string {
	return strings.Join(strings.Fields(strings.Trim(fmt.Sprint(shape), "[]")), "×")
}

// read returns the content of the file at path, zipped or not, after checking it. Errors say what was found and
// expected, without the path; they wrap ErrBroken for wrong content. Of an incomplete archive it returns what is there,
// and ErrIncomplete.
func (f File) read(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	plain, err := unzip(bufio.NewReaderSize(file, 1<<16))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBroken, err)
	}
	body, err := f.parse(plain)
	if err != nil && !errors.Is(err, ErrIncomplete) {
		return nil, fmt.Errorf("%w: %w", ErrBroken, err)
	}
	return body, err
}

func (f File) parse(plain io.Reader) (body []byte, err error) {
	switch {
	case f.Members != nil:
		return readArchive(plain, f.Members)
	case f.Reviews > 0:
		return readReviews(plain, f.Reviews)
	}
	sum, name, want := sha256.New(), "SHA-256", f.SHA256
	if f.SHA256 == "" {
		sum, name, want = md5.New(), "MD5", f.MD5
	}
	plain = io.TeeReader(plain, sum)
	if f.Shape != nil {
		body, err = readIDX(plain, f.Shape)
	} else if body, err = io.ReadAll(plain); err != nil {
		err = short(err, len(body), len(body))
	}
	if err != nil {
		return nil, err
	}
	if found := fmt.Sprintf("%x", sum.Sum(nil)); found != want {
		return nil, fmt.Errorf("found %s %s (uncompressed), expected %s", name, found, want)
	}
	if f.Classes > 0 {
		return pickledRecords(body, f.Classes)
	}
	return body, nil
}

// unzip goes by the content: some browsers unzip downloads and keep the name.
func unzip(r *bufio.Reader) (io.Reader, error) {
	switch magic, err := r.Peek(2); {
	case err == io.EOF:
		return nil, fmt.Errorf("found a file of %d bytes, expected the publisher's", len(magic))
	case err != nil:
		return nil, err
	case magic[0] != 0x1f || magic[1] != 0x8b:
		return r, nil
	}
	zipped, err := gzip.NewReader(r)
	if err != nil {
		return nil, fmt.Errorf("found the beginning of a gzip file, and then: %w", err)
	}
	return zipped, nil
}
