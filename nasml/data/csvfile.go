package data

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// csvFile is a file of comma-separated fields without quotes.
type csvFile struct {
	path  string
	raw   []byte   // as it is on disk
	names []string // of the columns; set by open, as is
	body  string   // what comes after the first line
}

// maxCSV bounds the unzipped size. The largest table, NAS-Bench-101 with four lengths, has some 130 MB.
const maxCSV = 256 << 20

func openCSV(dir, file string) (*csvFile, error) {
	zipped := filepath.Join(dir, filepath.FromSlash(file))
	for _, path := range places(zipped) {
		raw, err := os.ReadFile(path)
		if err == nil {
			return &csvFile{path: path, raw: raw}, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w; make it a file that can be read", err)
		}
	}
	return nil, fmt.Errorf("%s: %w; there is no address to download it from: put the file there, or set NASML_DATA to "+
		"a folder that has %s", zipped, ErrMissing, file)
}

// open unzips the file, reads its first line and returns the SHA-256 of all of it.
func (f *csvFile) open() (fingerprint string, err error) {
	text := f.raw
	if filepath.Ext(f.path) == ".gz" {
		if text, err = gunzip(f.raw); err != nil {
			return "", fmt.Errorf("%s: %w: %w; put an intact file in its place", f.path, ErrBroken, err)
		}
	}
	head, body, _ := strings.Cut(string(text), "\n")
	f.names, f.body = strings.Split(strings.TrimSuffix(head, "\r"), ","), body
	for i, name := range f.names {
		if slices.Contains(f.names[:i], name) {
			return "", f.wrong(1, name, "found it twice", "it once")
		}
	}
	return fmt.Sprintf("%x", sha256.Sum256(text)), nil
}

func (f *csvFile) columns(names ...string) ([]int, error) {
	at := make([]int, len(names))
	for i, name := range names {
		if at[i] = slices.Index(f.names, name); at[i] < 0 {
			return nil, f.wrong(1, name, "found no such column", strings.Join(names, ", "))
		}
	}
	return at, nil
}

func gunzip(raw []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("found %d bytes that are no gzip file, expected one: %w", len(raw), err)
	}
	var out bytes.Buffer
	out.Grow(min(5*len(raw), maxCSV))
	switch n, err := io.Copy(&out, io.LimitReader(z, maxCSV+1)); {
	case err != nil:
		return nil, fmt.Errorf(
			"found %d good lines (%d bytes) before the file breaks off or is damaged, expected its end: %w",
			bytes.Count(out.Bytes(), []byte("\n")), n, err)
	case n > maxCSV:
		return nil, fmt.Errorf("found more than %d MB unzipped, expected less than half of that", maxCSV>>20)
	}
	return out.Bytes(), nil
}

// rows visits every row and returns their number. The fields are reused. Rows of different lengths are an error.
func (f *csvFile) rows(visit func(row int, fields []string) error) (int, error) {
	fields := make([]string, len(f.names))
	row := 0
	for body := f.body; body != ""; row++ {
		var line string
		line, body, _ = strings.Cut(body, "\n")
		line = strings.TrimSuffix(line, "\r")
		if n := strings.Count(line, ",") + 1; n != len(fields) {
			return row, f.wrong(row+2, f.names[min(n, len(f.names))-1], fmt.Sprintf("found %d fields", n),
				fmt.Sprintf("%d, as in the first line", len(fields)))
		}
		for i := range fields {
			fields[i], line, _ = strings.Cut(line, ",")
		}
		if err := visit(row, fields); err != nil {
			return row, err
		}
	}
	return row, nil
}

// number parses a field: an index or class ≥ 0, a cost > 0, or a percentage.
func (f *csvFile) number(line int, name, text string) (float64, error) {
	x, err := strconv.ParseFloat(text, 64)
	ok, expected := x >= 0 && x <= 100, "an accuracy from 0 to 100 percent"
	switch name {
	case indexColumn, isoColumn:
		ok, expected = x >= 0 && x <= math.MaxInt32 && x == math.Trunc(x), "a whole number from 0 on"
	case paramsColumn, secondsColumn:
		ok, expected = x > 0 && !math.IsInf(x, 0), "a number greater than 0"
	}
	if err != nil || !ok {
		return 0, f.wrong(line, name, "found "+strconv.Quote(text), expected)
	}
	return x, nil
}

func (f *csvFile) wrong(line int, column, found, expected string) error {
	return fmt.Errorf("%s, line %d, column %s: %s: %w, expected %s; put an intact file in its place", f.path, line,
		column, found, ErrBroken, expected)
}

func (f *csvFile) unknown(column string) error {
	return f.wrong(1, column, "found an unknown column",
		"only those that the documentation of data.LoadNASBench201 lists")
}
