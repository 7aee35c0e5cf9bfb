package runs

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
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

// Trials returns a line for each trial behind a header: the beginning of its key, figure, part, scale, seed and
// every setting. A setting inside another is named by its path, "settings.bilevel.level"; one that a trial lacks is
// empty.
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
				said = append(said, word+" "+cut(settings[name]))
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

func cut(value string) string {
	const most = 32
	if letters := []rune(value); len(letters) > most {
		return string(letters[:most-1]) + "…"
	}
	return value
}
