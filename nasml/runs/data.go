package runs

import (
	"archive/zip"
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/nasml/lab/internal/files"
)

// Data are records as tables, for a reader's own plots.
type Data struct {
	Name    string // of the files: "li2021-figure1"
	Records []*Record
	Parts   []string // what each record is for in its figure, "law"; nil: not said
}

// The formats of [Data.Save].
const (
	CSV = "csv" // NAME-trials.csv and NAME-numbers.csv, see [Data.Trials] and [Data.Numbers]
	NPZ = "npz" // NAME.npz, see [Data.NPZ]
)

// Trials returns a line for each trial behind a header: the beginning of its key, figure, part, scale, seed and every
// setting. A setting inside another is named by its path, "settings.bilevel.level"; one that a trial lacks is empty.
func (d Data) Trials() [][]string {
	all := d.settings()
	names := namesOf(all)
	lines := [][]string{append([]string{"trial", "figure", "part", "scale", "seed"}, names...)}
	for i, r := range d.Records {
		line := []string{short(r.Key), r.Trial.Figure, d.part(i), r.Scale, strconv.FormatUint(r.Trial.Seed, 10)}
		for _, name := range names {
			line = append(line, all[i][name])
		}
		lines = append(lines, line)
	}
	return lines
}

// Numbers returns a line for each number behind a header: trial and seed as in [Data.Trials], the quantity, its place
// and the value. A quantity with one number has no place; the places of a series count from 0, and the numbers of a
// matrix, such as θ by step, edge and operation, follow each other row by row.
func (d Data) Numbers() [][]string {
	lines := [][]string{{"trial", "seed", "quantity", "place", "value"}}
	for _, r := range d.Records {
		add := func(quantity, place string, x float64) {
			lines = append(lines, []string{
				short(r.Key), strconv.FormatUint(r.Trial.Seed, 10), quantity, place,
				strconv.FormatFloat(x, 'g', -1, 64),
			})
		}
		for _, name := range slices.Sorted(maps.Keys(r.Values)) {
			add(name, "", r.Values[name])
		}
		for _, name := range slices.Sorted(maps.Keys(r.Series)) {
			for i, x := range r.Series[name] {
				add(name, strconv.Itoa(i), x)
			}
		}
	}
	return lines
}

// Save writes the tables into a folder, which is made, in each of the formats, or in all if none is named. It returns
// the paths.
func (d Data) Save(dir string, formats ...string) ([]string, error) {
	if len(formats) == 0 {
		formats = []string{CSV, NPZ}
	}
	tables := map[string]func() ([]byte, error){}
	for _, format := range formats {
		switch format {
		case CSV:
			tables[d.Name+"-trials.csv"] = func() ([]byte, error) { return csvOf(d.Trials()) }
			tables[d.Name+"-numbers.csv"] = func() ([]byte, error) { return csvOf(d.Numbers()) }
		case NPZ:
			tables[d.Name+".npz"] = d.NPZ
		default:
			return nil, fmt.Errorf("data are written as %s or %s, not as %q", CSV, NPZ, format)
		}
	}
	var paths []string
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		text, err := tables[name]()
		if err != nil {
			return paths, err
		}
		if err := files.WriteBytes(filepath.Join(dir, name), text); err != nil {
			return paths, fmt.Errorf("writing data: %w", err)
		}
		paths = append(paths, filepath.Join(dir, name))
	}
	return paths, nil
}

func csvOf(lines [][]string) ([]byte, error) {
	var out bytes.Buffer
	err := csv.NewWriter(&out).WriteAll(lines)
	return out.Bytes(), err
}

func (d Data) part(i int) string {
	if i < len(d.Parts) {
		return d.Parts[i]
	}
	return ""
}

// short is as much of a key as tells trials apart.
func short(key string) string { return key[:min(12, len(key))] }

func (d Data) settings() []map[string]string {
	var all []map[string]string
	for _, r := range d.Records {
		all = append(all, r.Trial.Settings())
	}
	return all
}

func namesOf[V any](all []map[string]V) []string {
	names := map[string]bool{}
	for _, one := range all {
		for name := range one {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// Settings are what the trial's numbers depend on besides seed, code and data, by their paths: "space",
// "settings.bilevel.level". A list is its JSON.
func (t Trial) Settings() map[string]string {
	settings := map[string]string{}
	text, err := json.Marshal(t.Params)
	if err != nil { // it has no key, so that no record has it
		return settings
	}
	var params map[string]json.RawMessage
	if json.Unmarshal(text, &params) == nil {
		flatten(settings, "", params)
	}
	return settings
}

func flatten(into map[string]string, before string, params map[string]json.RawMessage) {
	for name, raw := range params {
		var inner map[string]json.RawMessage
		var word string
		switch {
		case string(raw) == "null":
		case json.Unmarshal(raw, &inner) == nil:
			flatten(into, before+name+".", inner)
		case json.Unmarshal(raw, &word) == nil:
			into[before+name] = word
		default:
			into[before+name] = string(raw)
		}
	}
}

// InWords says of each record what tells it apart: its method, and the settings in which the records of its figure
// differ, "method gaea-darts, space nasbench201, epochs 25".
func InWords(records []*Record) []string {
	all := Data{Records: records}.settings()
	values := map[string]map[string]bool{} // of each setting of a figure
	count := map[string]int{}              // of the figure's records that have it
	of := func(i int, name string) string { return records[i].Trial.Figure + " " + name }
	figures := map[string]int{}
	for i, settings := range all {
		figures[records[i].Trial.Figure]++
		for name, value := range settings {
			at := of(i, name)
			if values[at] == nil {
				values[at] = map[string]bool{}
			}
			values[at][value] = true
			count[at]++
		}
	}
	words := make([]string, len(records))
	for i, settings := range all {
		var said []string
		for _, name := range byWeight(settings) {
			at := of(i, name)
			word := name[strings.LastIndex(name, ".")+1:]
			if word == "method" || len(values[at]) > 1 || count[at] < figures[records[i].Trial.Figure] {
				said = append(said, word+" "+Shortened(settings[name], 32))
			}
		}
		words[i] = strings.Join(said, ", ")
	}
	return words
}

// byWeight are the names of settings: method first, then space and data, then by the alphabet.
func byWeight(settings map[string]string) []string {
	first := []string{"data", "space", "method"}
	weight := func(name string) int { return slices.Index(first, name[strings.LastIndex(name, ".")+1:]) }
	return slices.SortedFunc(maps.Keys(settings), func(a, b string) int {
		return cmp.Or(weight(b)-weight(a), strings.Compare(a, b))
	})
}

// Shortened is text, of which only so many letters are kept, the last of them "…".
func Shortened(text string, most int) string {
	if letters := []rune(text); len(letters) > most {
		return string(letters[:most-1]) + "…"
	}
	return text
}

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
