package trace

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Array is an array of a trace.
type Array struct {
	Type   string    // NumPy's: "<f4", "<f8", "<i4", "<i8", "|u1" or "|b1"
	Dims   []int     // [] for a scalar
	Values []float64 // row-major; every type but large int64 fits
}

// Float32 is an array of float32 values.
func Float32(values []float32, dims ...int) Array {
	a := Array{Type: "<f4", Dims: dims, Values: make([]float64, len(values))}
	for i, x := range values {
		a.Values[i] = float64(x)
	}
	return a
}

// Int32 is an array of int32 values.
func Int32(values []int32, dims ...int) Array {
	a := Array{Type: "<i4", Dims: dims, Values: make([]float64, len(values))}
	for i, x := range values {
		a.Values[i] = float64(x)
	}
	return a
}

// size is the number of elements of a shape.
func size(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

// permuted has the axes in another order: axis i of the result is axis axes[i]
// of a.
func (a Array) permuted(axes ...int) Array {
	strides := make([]int, len(a.Dims))
	for i, stride := len(a.Dims)-1, 1; i >= 0; i-- {
		strides[i] = stride
		stride *= a.Dims[i]
	}
	b := Array{Type: a.Type, Dims: make([]int, len(axes)), Values: make([]float64, len(a.Values))}
	for i, axis := range axes {
		b.Dims[i] = a.Dims[axis]
	}
	index := make([]int, len(axes))
	for i := range b.Values {
		from := 0
		for j, axis := range axes {
			from += index[j] * strides[axis]
		}
		b.Values[i] = a.Values[from]
		for j := len(index) - 1; j >= 0; j-- {
			if index[j]++; index[j] < b.Dims[j] {
				break
			}
			index[j] = 0
		}
	}
	return b
}

// itemSizes are the bytes of an element of the types that are read.
var itemSizes = map[string]int{"<f4": 4, "<f8": 8, "<i4": 4, "<i8": 8, "|u1": 1, "|b1": 1}

// largest is the most bytes that an array may have.
const largest = 1 << 31

// settingsName is the array that holds a text.
const settingsName = "settings"

// Limits of a file, which are checked in its headers before anything is read.
const (
	mostMemory   = 1 << 30 // of all arrays together, as float64
	mostSettings = 1 << 20 // of the settings' text
)

// heads are the arrays of an archive by name, without elements.
type heads map[string]*npy

// shapes are the arrays without elements, for who checks names and shapes.
func (h heads) shapes() map[string]Array {
	out := map[string]Array{}
	for name, a := range h {
		if name != settingsName {
			out[name] = Array{Type: a.kind, Dims: a.dims}
		}
	}
	return out
}

// readNPZ reads all arrays of an archive and its settings. The headers come first:
// check is given the settings and the arrays without elements, and nothing of a file
// that it refuses is read. nil checks nothing more than sizes.
func readNPZ(file string, check func(settings string, shapes map[string]Array) error) (
	arrays map[string]Array, settings string, err error,
) {
	archive, err := zip.OpenReader(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, "", errors.New("there is no such file")
	}
	if err != nil {
		return nil, "", fmt.Errorf("expected an .npz file, which is a zip archive: %w", err)
	}
	defer func() { err = errors.Join(err, archive.Close()) }()
	all, err := readHeads(archive.File)
	if err != nil {
		return nil, "", err
	}
	text, ok := all[settingsName]
	if !ok {
		return nil, "", errors.New("the array settings is missing: expected the JSON that the comment of package " +
			"trace describes")
	}
	if err = text.read(); err == nil {
		settings, err = text.text()
	}
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", settingsName, err)
	}
	if check != nil {
		if err := check(settings, all.shapes()); err != nil {
			return nil, "", err
		}
	}
	delete(all, settingsName)
	arrays = map[string]Array{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if err = all[name].read(); err == nil {
			arrays[name] = all[name].array()
		}
		if err != nil {
			return nil, "", fmt.Errorf("%s: %w", name, err)
		}
		all[name].data = nil
	}
	return arrays, settings, nil
}

// readHeads reads the headers of all entries and adds up what they ask for.
func readHeads(entries []*zip.File) (heads, error) {
	all := heads{}
	memory := 0
	for _, entry := range entries {
		name, ok := strings.CutSuffix(entry.Name, ".npy")
		if !ok || all[name] != nil {
			return nil, fmt.Errorf("entry %q: expected arrays NAME.npy, each once", entry.Name)
		}
		a, err := readHead(entry)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all[name] = a
		if name == settingsName {
			if a.bytes > mostSettings {
				return nil, fmt.Errorf("%s: found %d bytes, expected at most %d", name, a.bytes, mostSettings)
			}
			continue
		}
		if itemSizes[a.kind] == 0 {
			return nil, fmt.Errorf("%s: found a text of type %s, expected numbers", name, a.kind)
		}
		if memory += 8 * (a.bytes / itemSizes[a.kind]); memory > mostMemory {
			return nil, fmt.Errorf("%s: with this array all elements take more than %d bytes: write fewer or smaller "+
				"steps", name, mostMemory)
		}
	}
	return all, nil
}

// npy is an array as it stands in the file.
type npy struct {
	kind    string // of the elements
	fortran bool
	dims    []int
	bytes   int // of the elements
	data    []byte
	entry   *zip.File
}

// The header is a Python dictionary of these three; a structured type has no
// string after 'descr' and does not match.
var (
	descr   = regexp.MustCompile(`'descr'\s*:\s*'([^']*)'`)
	fortran = regexp.MustCompile(`'fortran_order'\s*:\s*(True|False)`)
	shape   = regexp.MustCompile(`'shape'\s*:\s*\(([0-9, ]*)\)`)
)

// readHead reads the header of an entry and compares it with the entry's size.
func readHead(entry *zip.File) (*npy, error) {
	r, err := entry.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	a, err := readHeader(r)
	if err != nil {
		return nil, err
	}
	a.entry, a.bytes = entry, itemSize(a.kind)
	for _, d := range a.dims {
		if d == 0 || d > largest/a.bytes {
			return nil, fmt.Errorf("found shape %v, expected 1 to %d bytes in all", a.dims, largest)
		}
		a.bytes *= d
	}
	if have := entry.UncompressedSize64; have < uint64(a.bytes) { // before memory is asked for
		return nil, fmt.Errorf("found %d bytes, expected %d for shape %v of type %s", have, a.bytes, a.dims, a.kind)
	}
	return a, nil
}

// read reads the elements.
func (a *npy) read() error {
	r, err := a.entry.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	if _, err := readHeader(r); err != nil {
		return err
	}
	a.data = make([]byte, a.bytes)
	if _, err := io.ReadFull(r, a.data); err != nil {
		return fmt.Errorf("reading %d bytes: %w", a.bytes, err)
	}
	// to the end, where zip compares the checksum
	if n, err := io.Copy(io.Discard, io.LimitReader(r, 1)); err != nil {
		return fmt.Errorf("after the %d bytes of shape %v of type %s: %w", a.bytes, a.dims, a.kind, err)
	} else if n != 0 {
		return fmt.Errorf("found more than the %d bytes of shape %v of type %s", a.bytes, a.dims, a.kind)
	}
	return nil
}

// readHeader reads NumPy's format 1, 2 or 3 up to the elements.
func readHeader(r io.Reader) (*npy, error) {
	var start [8]byte
	if _, err := io.ReadFull(r, start[:]); err != nil || string(start[:6]) != "\x93NUMPY" || start[6] < 1 ||
		start[6] > 3 {
		return nil, fmt.Errorf("expected an .npy array of version 1, 2 or 3, found the start %q", start)
	}
	length := make([]byte, 4)
	if _, err := io.ReadFull(r, length[:min(2*start[6], 4)]); err != nil { // 2 bytes in version 1, later 4
		return nil, fmt.Errorf("reading the header: %w", err)
	}
	n := binary.LittleEndian.Uint32(length)
	if n > 1<<16 {
		return nil, fmt.Errorf("found a header of %d bytes, expected at most 65,536", n)
	}
	header := make([]byte, n)
	if _, err := io.ReadFull(r, header); err != nil {
		return nil, fmt.Errorf("reading the header: %w", err)
	}
	return parseHeader(header)
}

func parseHeader(header []byte) (*npy, error) {
	kind, order, dims := descr.FindSubmatch(header), fortran.FindSubmatch(header), shape.FindSubmatch(header)
	if kind == nil || order == nil || dims == nil {
		return nil, fmt.Errorf("found the header %.100q, expected one with a plain type, an order and a shape", header)
	}
	a := &npy{kind: string(kind[1]), fortran: string(order[1]) == "True"}
	if itemSize(a.kind) == 0 {
		return nil, fmt.Errorf("found elements of type %q, expected float32, float64, int32, int64, uint8 or bool, "+
			"little-endian; arrays of objects are pickles, which are never read", a.kind)
	}
	for _, d := range strings.FieldsFunc(string(dims[1]), func(r rune) bool { return r == ',' || r == ' ' }) {
		n, err := strconv.Atoi(d)
		if err != nil {
			return nil, fmt.Errorf("found the shape (%s): %w", dims[1], err)
		}
		a.dims = append(a.dims, n)
	}
	return a, nil
}

// itemSize is the number of bytes of an element, 0 for a type that is not read.
func itemSize(kind string) int {
	if n, ok := itemSizes[kind]; ok {
		return n
	}
	letters, ok := strings.CutPrefix(kind, "<U") // UTF-32
	width := 4
	if !ok {
		letters, ok = strings.CutPrefix(kind, "|S")
		width = 1
	}
	if n, err := strconv.Atoi(letters); ok && err == nil && n > 0 && n <= largest/4 {
		return n * width
	}
	return 0
}

// text is a string of NumPy's or the bytes of one.
func (a *npy) text() (string, error) {
	unicode := strings.HasPrefix(a.kind, "<U")
	isText := unicode || strings.HasPrefix(a.kind, "|S")
	if isText != (len(a.dims) == 0) || !isText && (a.kind != "|u1" || len(a.dims) != 1) {
		return "", fmt.Errorf("found shape %v of type %s, expected one string or a vector of uint8", a.dims, a.kind)
	}
	if !unicode {
		return strings.TrimRight(string(a.data), "\x00"), nil
	}
	var text []byte
	for b := a.data; len(b) >= 4; b = b[4:] {
		text = utf8.AppendRune(text, rune(binary.LittleEndian.Uint32(b)))
	}
	return strings.TrimRight(string(text), "\x00"), nil
}

// array is the elements as numbers, row-major.
func (a *npy) array() Array {
	width := itemSizes[a.kind] // readHeads has refused texts
	out := Array{Type: a.kind, Dims: append([]int{}, a.dims...), Values: make([]float64, len(a.data)/width)}
	for i := range out.Values {
		b := a.data[i*width:]
		switch a.kind {
		case "<f4":
			out.Values[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
		case "<f8":
			out.Values[i] = math.Float64frombits(binary.LittleEndian.Uint64(b))
		case "<i4":
			out.Values[i] = float64(int32(binary.LittleEndian.Uint32(b)))
		case "<i8":
			out.Values[i] = float64(int64(binary.LittleEndian.Uint64(b)))
		case "|u1", "|b1":
			out.Values[i] = float64(b[0])
		}
	}
	if a.fortran { // it is row-major with the axes the other way round
		axes := make([]int, len(out.Dims))
		for i := range axes {
			axes[i] = len(axes) - 1 - i
		}
		slices.Reverse(out.Dims)
		out = out.permuted(axes...)
	}
	return out
}

// writeNPZ writes an archive that NumPy reads; the same arrays give the same
// bytes. settings go into a vector of bytes.
func writeNPZ(file string, arrays map[string]Array, settings []byte) (err error) {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	archive := zip.NewWriter(f)
	text := Array{Type: "|u1", Dims: []int{len(settings)}}
	for _, b := range settings {
		text.Values = append(text.Values, float64(b))
	}
	all := maps.Clone(arrays)
	if all == nil {
		all = map[string]Array{}
	}
	all[settingsName] = text
	for _, name := range slices.Sorted(maps.Keys(all)) {
		w, err := archive.Create(name + ".npy")
		if err != nil {
			return err
		}
		raw, err := all[name].encode()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if _, err := w.Write(raw); err != nil {
			return err
		}
	}
	return archive.Close()
}

// encode is the array in format 1.0: magic, version, the length of the header,
// the header padded to a multiple of 64 bytes, the elements.
func (a Array) encode() ([]byte, error) {
	if size(a.Dims) != len(a.Values) {
		return nil, fmt.Errorf("found %d values, expected those of shape %v", len(a.Values), a.Dims)
	}
	dims := ""
	for _, d := range a.Dims {
		dims += strconv.Itoa(d) + ", "
	}
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", a.Type,
		strings.TrimSuffix(dims, " "))
	const prefix = 10
	header += strings.Repeat(" ", 63-(prefix+len(header))%64) + "\n"
	out := bytes.NewBufferString("\x93NUMPY\x01\x00")
	out.Write(binary.LittleEndian.AppendUint16(nil, uint16(len(header))))
	out.WriteString(header)
	b := out.Bytes()
	for _, x := range a.Values {
		switch a.Type {
		case "<f4":
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(x)))
		case "<f8":
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
		case "<i4":
			b = binary.LittleEndian.AppendUint32(b, uint32(int32(x)))
		case "<i8":
			b = binary.LittleEndian.AppendUint64(b, uint64(int64(x)))
		case "|u1", "|b1":
			b = append(b, byte(x))
		default:
			return nil, fmt.Errorf("found type %q, expected one of those that are read", a.Type)
		}
	}
	return b, nil
}
