package trace

import (
	"archive/zip"
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/sbinet/npyio/npy"
	"github.com/sbinet/npyio/npz"
	"golang.org/x/text/encoding/unicode/utf32"
)

// Array is an array of a trace.
type Array struct {
	Type   string    // NumPy's: "<f4", "<f8", "<i4", "<i8", "|u1" or "|b1"
	Dims   []int     // [] for a scalar
	Values []float64 // row-major; every type but large int64 fits
}

// Float32 is an array of float32 values.
func Float32(values []float32, dims ...int) Array {
	return Array{Type: "<f4", Dims: dims, Values: Converted[float64](values)}
}

func zeros(dims ...int) Array {
	return Array{Type: "<f4", Dims: dims, Values: make([]float64, size(dims))}
}

func scalar(x float64) Array { return Array{Values: []float64{x}} }

func size(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

// permuted reorders axes: axis i of the result is axis axes[i] of a.
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
	for i := range b.Values {
		from, rest := 0, i
		for j, axis := range slices.Backward(axes) {
			from += rest % b.Dims[j] * strides[axis]
			rest /= b.Dims[j]
		}
		b.Values[i] = a.Values[from]
	}
	return b
}

// number is a type of elements.
type number interface {
	float32 | float64 | int32 | int64 | uint8
}

// element is how the elements of a type are read and written.
type element struct {
	bytes int
	read  func(r io.Reader, n int) ([]float64, error)
	nest  func([]float64, []int) any
}

func elementOf[T number]() element {
	return element{
		bytes: int(unsafe.Sizeof(T(0))),
		read: func(r io.Reader, n int) ([]float64, error) {
			raw := make([]T, n)
			err := binary.Read(r, binary.LittleEndian, raw)
			return Converted[float64](raw), err
		},
		nest: func(values []float64, dims []int) any { return nested(Converted[T](values), dims) },
	}
}

// nested is a pointer to the elements as a Go array of these dimensions, which npyio writes. The memory layout is the
// slice's.
func nested[T number](flat []T, dims []int) any {
	t := reflect.TypeFor[T]()
	for _, d := range slices.Backward(dims) {
		t = reflect.ArrayOf(d, t)
	}
	return reflect.NewAt(t, unsafe.Pointer(unsafe.SliceData(flat))).Interface()
}

// WriteNPY writes an array for NumPy, row-major. It panics if the number of elements does not match the dimensions.
func WriteNPY[T number](w io.Writer, flat []T, dims ...int) error {
	if size(dims) != len(flat) || len(flat) == 0 {
		panic(fmt.Errorf("found %d elements, expected those of shape %v, and at least one", len(flat), dims))
	}
	return npy.Write(w, nested(flat, dims))
}

// Converted are numbers in another type.
func Converted[To, From number](from []From) []To {
	to := make([]To, len(from))
	for i, x := range from {
		to[i] = To(x)
	}
	return to
}

// elements are the types that are read; a bool is read, and written, as a byte.
var elements = map[string]element{
	"<f4": elementOf[float32](), "<f8": elementOf[float64](), "<i4": elementOf[int32](), "<i8": elementOf[int64](),
	"|u1": elementOf[uint8](), "|b1": elementOf[uint8](),
}

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
type heads map[string]*item

func (h heads) shapes() map[string]Array {
	out := map[string]Array{}
	for name, a := range h {
		if name != settingsName {
			out[name] = Array{Type: a.kind, Dims: a.dims}
		}
	}
	return out
}

// readNPZ reads an archive's arrays and settings. check first gets the settings and the shapes; if it refuses, nothing
// else is read.
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
	if settings, err = text.text(); err != nil {
		return nil, "", fmt.Errorf("%s: %w", settingsName, err)
	}
	if err := check(settings, all.shapes()); err != nil {
		return nil, "", err
	}
	delete(all, settingsName)
	arrays = map[string]Array{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if arrays[name], err = all[name].array(); err != nil {
			return nil, "", fmt.Errorf("%s: %w", name, err)
		}
	}
	return arrays, settings, nil
}

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
		if elements[a.kind].bytes == 0 {
			return nil, fmt.Errorf("%s: found a text of type %s, expected numbers", name, a.kind)
		}
		if memory += 8 * (a.bytes / elements[a.kind].bytes); memory > mostMemory {
			return nil, fmt.Errorf("%s: with this array all elements take more than %d bytes: write fewer or smaller "+
				"steps", name, mostMemory)
		}
	}
	return all, nil
}

// item is an array as it stands in the file.
type item struct {
	kind    string // of the elements
	fortran bool
	dims    []int
	bytes   int // of the elements
	entry   *zip.File
}

// readHead reads an entry's header and checks the entry's size.
func readHead(entry *zip.File) (*item, error) {
	file, err := entry.Open()
	if err != nil {
		return nil, err
	}
	defer file.Close()
	a, _, err := readHeader(file)
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

// open passes the data after the header to read, then reads to the end, where zip checks the checksum.
func (a *item) open(read func(io.Reader) error) error {
	file, err := a.entry.Open()
	if err != nil {
		return err
	}
	defer file.Close()
	_, rest, err := readHeader(file)
	if err != nil {
		return err
	}
	if err := read(rest); err != nil {
		return fmt.Errorf("reading %d bytes: %w", a.bytes, err)
	}
	if n, err := io.Copy(io.Discard, io.LimitReader(rest, 1)); err != nil {
		return fmt.Errorf("after the %d bytes of shape %v of type %s: %w", a.bytes, a.dims, a.kind, err)
	} else if n != 0 {
		return fmt.Errorf("found more than the %d bytes of shape %v of type %s", a.bytes, a.dims, a.kind)
	}
	return nil
}

const longestHeader = 1 << 16

// numpyHeader is the dictionary as NumPy writes it for a plain type.
var numpyHeader = regexp.MustCompile(
	`^\{'descr': '([^'{}]*)', 'fortran_order': (True|False), 'shape': \(((?:[0-9]{1,10},? ?)*)\), \} *\n$`)

// readHeader reads NumPy's format 1 or 2; rest has the elements.
func readHeader(file io.Reader) (a *item, rest io.Reader, err error) {
	rest = bufio.NewReader(file)
	start := make([]byte, 8)
	if n, _ := io.ReadFull(rest, start); n < 8 || [6]byte(start) != npy.Magic || start[6] < 1 || start[6] > 2 {
		return nil, nil, fmt.Errorf("expected an .npy array of version 1 or 2, found the start %q", start[:n])
	}
	var length [4]byte
	_, err = io.ReadFull(rest, length[:2*start[6]]) // two bytes in version 1, four in version 2
	n := binary.LittleEndian.Uint32(length[:])
	if n > longestHeader {
		return nil, nil, fmt.Errorf("found a header of %d bytes, expected at most 65,536", n)
	}
	header := make([]byte, n)
	if err == nil {
		_, err = io.ReadFull(rest, header)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading the header: %w", err)
	}
	found := numpyHeader.FindSubmatch(header)
	if found == nil {
		return nil, nil, fmt.Errorf("found the header %.100q, expected one with a plain type, an order and a shape",
			header)
	}
	a = &item{kind: string(found[1]), fortran: string(found[2]) == "True", dims: []int{}}
	if itemSize(a.kind) == 0 {
		return nil, nil, fmt.Errorf("found elements of type %q, expected float32, float64, int32, int64, uint8 or "+
			"bool, little-endian; arrays of objects are pickles, which are never read", a.kind)
	}
	for digits := range strings.FieldsSeq(strings.ReplaceAll(string(found[3]), ",", " ")) {
		d, _ := strconv.Atoi(digits) // the expression has digits, and few
		a.dims = append(a.dims, d)
	}
	return a, rest, nil
}

// itemSize is an element's size in bytes; 0 for a type that is not supported.
func itemSize(kind string) int {
	if e, ok := elements[kind]; ok {
		return e.bytes
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

func (a *item) text() (string, error) {
	unicode := strings.HasPrefix(a.kind, "<U")
	isText := unicode || strings.HasPrefix(a.kind, "|S")
	if isText != (len(a.dims) == 0) || !isText && (a.kind != "|u1" || len(a.dims) != 1) {
		return "", fmt.Errorf("found shape %v of type %s, expected one string or a vector of uint8", a.dims, a.kind)
	}
	data := make([]byte, a.bytes)
	err := a.open(func(r io.Reader) error {
		_, err := io.ReadFull(r, data)
		return err
	})
	if err == nil && unicode {
		data, err = utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM).NewDecoder().Bytes(data)
	}
	if err != nil {
		return "", err
	}
	return strings.TrimRight(string(data), "\x00"), nil
}

func (a *item) array() (Array, error) {
	out := Array{Type: a.kind, Dims: a.dims}
	err := a.open(func(r io.Reader) (err error) {
		out.Values, err = elements[a.kind].read(r, size(a.dims)) // readHeads has refused texts
		return err
	})
	if err != nil {
		return Array{}, err
	}
	if a.fortran { // it is row-major with the axes the other way round
		axes := make([]int, len(out.Dims))
		for i := range axes {
			axes[i] = len(axes) - 1 - i
		}
		slices.Reverse(out.Dims)
		out = out.permuted(axes...)
	}
	return out, nil
}

// writeNPZ writes an archive deterministically. settings become a vector of bytes.
func writeNPZ(file string, arrays map[string]Array, settings []byte) error {
	all := map[string]any{settingsName + ".npy": settings}
	for name, a := range arrays {
		kind, ok := elements[a.Type]
		switch {
		case !ok:
			return fmt.Errorf("%s: found type %q, expected one of those that are read", name, a.Type)
		case size(a.Dims) != len(a.Values) || len(a.Values) == 0:
			return fmt.Errorf("%s: found %d values, expected those of shape %v", name, len(a.Values), a.Dims)
		}
		all[name+".npy"] = kind.nest(a.Values, a.Dims)
	}
	return npz.Write(file, all)
}
