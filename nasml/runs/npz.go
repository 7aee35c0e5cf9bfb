package runs

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// NPZ returns an archive of arrays that NumPy reads, of n records:
//
//	trial.key, trial.figure, trial.part, trial.scale  text [n]
//	trial.seed                                        [n]
//	setting.PATH                                      [n], numbers, or text where not all are numbers
//	value.NAME                                        [n]
//	series.NAME                                       [n, longest], NaN behind the end of a shorter one
//
// A number that a record lacks is NaN, a text empty. The same records give the same bytes.
func (d Data) NPZ() ([]byte, error) {
	arrays := map[string]array{}
	texts := map[string]func(i int) string{
		"trial.key":    func(i int) string { return d.Records[i].Key },
		"trial.figure": func(i int) string { return d.Records[i].Trial.Figure },
		"trial.part":   d.part,
		"trial.scale":  func(i int) string { return d.Records[i].Scale },
	}
	for name, of := range texts {
		arrays[name] = d.texts(of)
	}
	arrays["trial.seed"] = d.numbers(func(i int) (float64, bool) { return float64(d.Records[i].Trial.Seed), true })
	all := d.settings()
	for _, name := range namesOf(all) {
		arrays["setting."+name] = d.setting(func(i int) string { return all[i][name] })
	}
	var values []map[string]float64
	var series []map[string][]float64
	for _, r := range d.Records {
		values, series = append(values, r.Values), append(series, r.Series)
	}
	for _, name := range namesOf(values) {
		arrays["value."+name] = d.numbers(func(i int) (float64, bool) {
			x, ok := d.Records[i].Values[name]
			return x, ok
		})
	}
	for _, name := range namesOf(series) {
		arrays["series."+name] = d.series(name)
	}
	return zipped(arrays)
}

func zipped(arrays map[string]array) ([]byte, error) {
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	for _, name := range slices.Sorted(maps.Keys(arrays)) {
		w, err := archive.Create(strings.ReplaceAll(name, "/", "_") + ".npy")
		if err != nil {
			return nil, err
		}
		if err := arrays[name].write(w); err != nil {
			return nil, fmt.Errorf("array %s: %w", name, err)
		}
	}
	err := archive.Close()
	return out.Bytes(), err
}

// array is one of an NPZ file: its type as NumPy says it, its shape, and its elements row by row.
type array struct {
	kind     string
	shape    []int
	elements any // []float64, or []uint32 with the letters of texts
}

func (a array) write(w io.Writer) error {
	shape := ""
	for _, n := range a.shape {
		shape += strconv.Itoa(n) + ", "
	}
	head := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", a.kind, strings.TrimSpace(shape))
	const before, unit = 10, 64 // bytes: what comes before the header, and what it is filled up to, with a line's end
	head += strings.Repeat(" ", unit-(before+len(head)+1)%unit) + "\n"
	start := append([]byte("\x93NUMPY\x01\x00"), byte(len(head)), byte(len(head)>>8))
	if _, err := w.Write(append(start, head...)); err != nil {
		return err
	}
	return binary.Write(w, binary.LittleEndian, a.elements)
}

func (d Data) texts(of func(i int) string) array {
	longest := 1
	for i := range d.Records {
		longest = max(longest, len([]rune(of(i))))
	}
	letters := make([]uint32, len(d.Records)*longest)
	for i := range d.Records {
		for j, letter := range []rune(of(i)) {
			letters[i*longest+j] = uint32(letter)
		}
	}
	return array{fmt.Sprintf("<U%d", longest), []int{len(d.Records)}, letters}
}

func (d Data) numbers(of func(i int) (float64, bool)) array {
	xs := make([]float64, len(d.Records))
	for i := range xs {
		x, ok := of(i)
		if xs[i] = x; !ok {
			xs[i] = math.NaN()
		}
	}
	return array{"<f8", []int{len(xs)}, xs}
}

// setting is one of every record: numbers, if all records that have it have one.
func (d Data) setting(of func(i int) string) array {
	numbers, others := 0, 0
	for i := range d.Records {
		if _, err := strconv.ParseFloat(of(i), 64); err == nil {
			numbers++
		} else if of(i) != "" {
			others++
		}
	}
	if numbers == 0 || others > 0 {
		return d.texts(of)
	}
	return d.numbers(func(i int) (float64, bool) {
		x, err := strconv.ParseFloat(of(i), 64)
		return x, err == nil
	})
}

func (d Data) series(name string) array {
	longest := 0
	for _, r := range d.Records {
		longest = max(longest, len(r.Series[name]))
	}
	xs := slices.Repeat([]float64{math.NaN()}, len(d.Records)*longest)
	for i, r := range d.Records {
		copy(xs[i*longest:], r.Series[name])
	}
	return array{"<f8", []int{len(d.Records), longest}, xs}
}
