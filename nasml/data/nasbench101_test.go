package data

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
)

// training101 is a training as the benchmark's file has it.
type training101 struct {
	cell    string // short form
	epochs  int
	params  int
	valid   int // of 9,984
	test    int
	seconds float32
}

// message writes ModelMetrics.
func (v training101) message() []byte {
	evaluation := func(share float64) []byte {
		var m []byte
		for number, x := range []float64{
			1: share * float64(v.epochs), 2: share * float64(v.seconds), 3: 1,
			4: float64(float32(v.valid) / 9984), 5: float64(float32(v.test) / 9984),
		} {
			if number > 0 {
				m = protowire.AppendFixed64(
					protowire.AppendTag(m, protowire.Number(number), protowire.Fixed64Type),
					math.Float64bits(x),
				)
			}
		}
		return protowire.AppendString(protowire.AppendTag(m, 6, protowire.BytesType), "model.ckpt-1")
	}
	var m []byte
	for _, share := range []float64{0, 0.5, 1} {
		m = protowire.AppendBytes(protowire.AppendTag(m, 1, protowire.BytesType), evaluation(share))
	}
	m = protowire.AppendVarint(protowire.AppendTag(m, 2, protowire.VarintType), uint64(v.params))
	return protowire.AppendFixed64(
		protowire.AppendTag(m, 3, protowire.Fixed64Type),
		math.Float64bits(2*float64(v.seconds)),
	)
}

// fields are the elements of the JSON array.
func (v training101) fields(t testing.TB) []any {
	t.Helper()
	c, err := ParseCell101(v.cell)
	require.NoError(t, err)
	digits := ""
	for _, row := range c.matrix() {
		digits += strings.Trim(strings.ReplaceAll(fmt.Sprint(row), " ", ""), "[]")
	}
	return []any{c.Hash(), v.epochs, digits, strings.Join(c.names(), ","),
		base64.StdEncoding.EncodeToString(v.message())}
}

func (v training101) json(t testing.TB) []byte {
	t.Helper()
	text, err := json.Marshal(v.fields(t))
	require.NoError(t, err)
	return text
}

// frame writes records as a TFRecord file.
func frame(records ...[]byte) []byte {
	var out []byte
	for _, data := range records {
		head := binary.LittleEndian.AppendUint64(nil, uint64(len(data)))
		out = append(out, head...)
		out = binary.LittleEndian.AppendUint32(out, maskedCRC(head))
		out = append(out, data...)
		out = binary.LittleEndian.AppendUint32(out, maskedCRC(data))
	}
	return out
}

// trainings are those of one cell and length: 9000, 9001, 9002 of the
// validation images were right.
func trainings(cell string, epochs int) (all []training101) {
	for n := range 3 {
		all = append(all, training101{cell, epochs, 1000, 9000 + n, 8900 + n, float32(epochs) + float32(n)/8 + 0.1})
	}
	return all
}

func records(t testing.TB, all ...[]training101) (out [][]byte) {
	for _, v := range slices.Concat(all...) {
		out = append(out, v.json(t))
	}
	return out
}

// folder101 makes a folder with a file of the benchmark, and an empty one for
// data sets.
func folder101(t testing.TB, base string, file []byte) (from string) {
	t.Helper()
	from = t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(from, base), file, 0o644))
	t.(*testing.T).Setenv("NASML_DATA", t.TempDir())
	return from
}

// The masked checksum of RFC 3720's test vector (32 zeros: CRC-32C 8a9136aa).
func TestMaskedCRC(t *testing.T) {
	c := uint32(0x8a9136aa)
	require.Equal(t, (c>>15|c<<17)+0xa282ead8, maskedCRC(make([]byte, 32)))
}

func TestImportNASBench101(t *testing.T) {
	full := records(t, trainings("I3O 111", 108), trainings("I31O 100101", 4), trainings("I31O 100101", 108),
		trainings("I3O 111", 4))
	from := folder101(t, "nasbench_full.tfrecord", frame(full...))
	var heard int64
	b, err := ImportNASBench101(t.Context(), from, func(_ string, done, _ int64) { heard = done })
	require.NoError(t, err)
	require.EqualValues(t, len(frame(full...)), heard)
	require.Equal(t, []int{108, 4}, b.Epochs())
	require.Equal(t, 2, b.Len())
	require.False(t, b.Complete())

	loaded, err := LoadNASBench101("")
	require.NoError(t, err)
	require.Equal(t, b.Fingerprint, loaded.Fingerprint)
	short, err := ParseCell101("I3O 111")
	require.NoError(t, err)
	for trial, want := range map[int]float64{Mean: 9001, BestTrial: 9002, 1: 9000, 2: 9001, 3: 9002} {
		x, err := loaded.Accuracy(short, Query101{Valid, 4, trial})
		require.NoError(t, err)
		require.InDelta(t, 100*want/9984, x, 1e-12)
	}
	seconds, err := loaded.Seconds(short, 108, 3)
	require.NoError(t, err)
	require.Equal(t, float64(float32(108.35)), seconds)
	mean, err := loaded.Seconds(short, 108, Mean)
	require.NoError(t, err)
	require.InDelta(t, 108.225, mean, 1e-4)
	params, err := loaded.Params(short)
	require.NoError(t, err)
	require.Equal(t, 1000, params)

	_, err = ImportNASBench101(t.Context(), from, nil)
	require.ErrorContains(t, err, "is there already")
}

// A file cut anywhere has one error, which says where.
func TestImportNASBench101CutAnywhere(t *testing.T) {
	whole := frame(records(t, trainings("I3O 111", 108))...)
	from := folder101(t, "nasbench_only108.tfrecord", whole)
	path := filepath.Join(from, "nasbench_only108.tfrecord")
	for n := range whole {
		require.NoError(t, os.WriteFile(path, whole[:n], 0o644))
		_, err := ImportNASBench101(t.Context(), from, nil)
		require.ErrorIs(t, err, ErrBroken, "%d bytes", n)
		require.ErrorContains(t, err, path)
		require.NotContains(t, err.Error(), "\n")
		record := n/(len(whole)/3) + 1
		want := fmt.Sprintf("record %d (offset %d)", record, (record-1)*(len(whole)/3))
		if n%(len(whole)/3) == 0 { // between two records
			want = map[int]string{
				0: "found no record", 1: "found 1 trainings of cell", 2: "found 2 trainings of cell",
			}[record-1]
		}
		require.ErrorContains(t, err, want)
	}
	require.NoError(t, os.WriteFile(path, whole, 0o644))
	_, err := ImportNASBench101(t.Context(), from, nil)
	require.NoError(t, err)
}

// One changed bit anywhere is an error with the record and its offset.
func TestImportNASBench101ByteChanged(t *testing.T) {
	whole := frame(records(t, trainings("I3O 111", 108))...)
	from := folder101(t, "nasbench_only108.tfrecord", whole)
	path := filepath.Join(from, "nasbench_only108.tfrecord")
	for i := range whole {
		changed := bytes.Clone(whole)
		changed[i] ^= 1 << (i % 8)
		require.NoError(t, os.WriteFile(path, changed, 0o644))
		_, err := ImportNASBench101(t.Context(), from, nil)
		require.ErrorIs(t, err, ErrBroken, "byte %d", i)
		record := i/(len(whole)/3) + 1
		require.ErrorContains(t, err,
			fmt.Sprintf("record %d (offset %d): %s: found the checksum", record, (record-1)*(len(whole)/3), ErrBroken))
	}
}

// Records whose checksums are right and whose content is not.
func TestImportNASBench101WrongContent(t *testing.T) {
	good := trainings("I3O 111", 108)
	edit := func(change func(fields []any)) [][]byte {
		fields := good[1].fields(t)
		change(fields)
		text, err := json.Marshal(fields)
		require.NoError(t, err)
		return [][]byte{good[0].json(t), text, good[2].json(t)}
	}
	with := func(change func(v *training101)) [][]byte {
		v := good[1]
		change(&v)
		return [][]byte{good[0].json(t), v.json(t), good[2].json(t)}
	}
	metrics := func(m []byte) [][]byte {
		return edit(func(f []any) { f[4] = base64.StdEncoding.EncodeToString(m) })
	}
	message := good[1].message()
	for name, c := range map[string]struct {
		records [][]byte
		want    string
	}{
		"no JSON": {[][]byte{[]byte("x")},
			"record 1 (offset 0): the file is broken: found 1 bytes that are no JSON array of 5"},
		"four elements":   {[][]byte{[]byte(`["a",1,"",""]`)}, "no JSON array of 5"},
		"epochs a text":   {edit(func(f []any) { f[1] = "108" }), "element 1 of the JSON array"},
		"epochs 0":        {edit(func(f []any) { f[1] = 0 }), "found 0 epochs"},
		"hash of another": {edit(func(f []any) { f[0] = "09fc2d10bdd6225e167a6f81a22a3f06" }), `record 2 (offset `},
		"wrong hash": {edit(func(f []any) { f[0] = "09fc2d10bdd6225e167a6f81a22a3f06" }),
			`found the hash "09fc2d10bdd6225e167a6f81a22a3f06", expected`},
		"cycle":            {edit(func(f []any) { f[2] = "011001010" }), "an edge from vertex 2 back to vertex 1"},
		"backwards":        {edit(func(f []any) { f[2] = "001100000" }), "an edge from vertex 1 back to vertex 0"},
		"matrix too short": {edit(func(f []any) { f[2] = "01100100" }), "expected 9 digits"},
		"unknown op": {edit(func(f []any) { f[3] = "input,conv5x5,output" }),
			`unknown operation "conv5x5" on vertex 1`},
		"not pruned":    {edit(func(f []any) { f[2] = "001001000" }), "expected a pruned cell"},
		"base64":        {edit(func(f []any) { f[4] = "?" }), "metrics: illegal base64"},
		"protobuf cut":  {metrics(message[:len(message)-1]), "metrics: field 3: unexpected EOF"},
		"no message":    {metrics([]byte{0xff}), "metrics: found no field"},
		"empty message": {metrics(nil), "found 0 evaluations"},
		"no accuracy":   {metrics(bytes.Repeat([]byte{1<<3 | 2, 0}, 3)), "expected more than 0"},
		"accuracy 1.5":  {with(func(v *training101) { v.valid = 14976 }), "found the accuracy 1.5"},
		"no time":       {with(func(v *training101) { v.seconds = 0 }), "found 0 seconds"},
		"endless":       {with(func(v *training101) { v.seconds = float32(math.Inf(1)) }), "found +Inf seconds"},
		"other parameters": {with(func(v *training101) { v.params = 999 }),
			"with 999 parameters, expected I3O 111 with 1000"},
		"a fourth": {records(t, good, good[:1]), "a training number 4"},
		"two":      {records(t, good[:2]), "found 2 trainings of cell"},
		"one of 4 epochs": {records(t, good, trainings("I1O 111", 108), trainings("I1O 111", 4)),
			"found 0 trainings of cell"},
	} {
		t.Run(name, func(t *testing.T) {
			from := folder101(t, "nasbench_only108.tfrecord", frame(c.records...))
			_, err := ImportNASBench101(t.Context(), from, nil)
			require.ErrorIs(t, err, ErrBroken)
			require.ErrorContains(t, err, c.want)
			dir, _ := Dir()
			left, _ := filepath.Glob(filepath.Join(dir, "*"))
			require.Empty(t, left, "nothing is left behind")
		})
	}
	_, err := ImportNASBench101(t.Context(), t.TempDir(), nil)
	require.ErrorIs(t, err, ErrMissing)
	require.ErrorContains(t, err, "found neither nasbench_full.tfrecord nor nasbench_only108.tfrecord")
}

// table101 is the text of a table of two cells.
var table101 = []string{
	"id,adj_upper,ops,params,val9984_1,val9984_2,val9984_3,test9984_1,test9984_2,test9984_3,time_s_1,time_s_2,time_s_3",
	"0,111,I1O,2793866,8331,8392,8321,8345,8387,8343,734.97705078125,732.7,733",
	"7,100101,I31O,10177674,9213,9148,9156,9184,9100,9126,1531.04,1532.4,1531.5",
}

func load101(t *testing.T, file string, lines []string) (*NASBench101, error) {
	t.Helper()
	dir := t.TempDir()
	write201(t, dir, file, lines)
	return LoadNASBench101(dir)
}

func TestLoadNASBench101(t *testing.T) {
	for _, file := range []string{table101File, subset101File} {
		b, err := load101(t, file, table101)
		require.NoError(t, err)
		one, err := ParseCell101("I31O 100101")
		require.NoError(t, err)
		x, err := b.Accuracy(one, Query101{Test, 108, 1})
		require.NoError(t, err)
		require.Equal(t, 100*9184./9984, x)

		best, err := b.Best(Query101{Split: Valid, Epochs: 108})
		require.NoError(t, err)
		require.True(t, best.IsBound(), "the table lacks cells")
		require.Equal(t, [2]int{2, Cells101}, [2]int{best.Found, best.Asked})
		require.Equal(t, one, best.Cell)
		both, err := b.BestOf(slices.Values(b.Cells()), Query101{Split: Valid, Epochs: 108})
		require.NoError(t, err)
		require.False(t, both.IsBound())
	}
}

// What a table does not have is never a number.
func TestNASBench101NotThere(t *testing.T) {
	b, err := load101(t, table101File, table101)
	require.NoError(t, err)
	there := b.Cells()[0]
	other, err := ParseCell101("IMO 111")
	require.NoError(t, err)
	q := Query101{Split: Test, Epochs: 108}
	_, err = b.Accuracy(other, q)
	require.ErrorIs(t, err, ErrNotInTable)
	require.ErrorContains(t, err,
		"cell IMO 111 ("+other.Hash()+"): this table does not have the cell; it has 2 of the benchmark's 423624")
	_, err = b.Params(other)
	require.ErrorIs(t, err, ErrNotInTable)
	_, err = b.Seconds(other, 108, Mean)
	require.ErrorIs(t, err, ErrNotInTable)
	_, err = b.BestOf(slices.Values([]Cell101{other}), q)
	require.ErrorIs(t, err, ErrNotInTable)
	for want, q := range map[string]Query101{
		"expected one of the lengths [108]": {Test, 36, Mean},
		"expected split":                    {Train, 108, Mean},
		"as trial Mean, BestTrial, 1":       {Test, 108, 4},
		"after 108 epochs (training -2)":    {Test, 108, -2},
	} {
		_, err = b.Accuracy(there, q)
		require.ErrorContains(t, err, want)
		require.NotErrorIs(t, err, ErrNotInTable)
	}
	_, err = b.Seconds(there, 108, BestTrial)
	require.ErrorContains(t, err, "found trial -1")
	_, err = b.Seconds(there, 4, Mean)
	require.ErrorContains(t, err, "expected one of the lengths [108]")
}

func TestLoadNASBench101BrokenFiles(t *testing.T) {
	edit := func(line, column int, text string) []string {
		lines := slices.Clone(table101)
		fields := strings.Split(lines[line-1], ",")
		fields[column] = text
		lines[line-1] = strings.Join(fields, ",")
		return lines
	}
	for name, c := range map[string]struct {
		lines []string
		want  string
	}{
		"no id":            {edit(1, 0, "index"), "line 1, column id: found no such column"},
		"unknown column":   {edit(1, 4, "val10000_1"), "line 1, column val10000_1: found an unknown column"},
		"108 twice":        {edit(1, 4, "e108_val9984_1"), "column e108_val9984_1"},
		"a column too few": {edit(1, 4, "e4_val9984_1"), "for 2 lengths of training"},
		"id twice":         {edit(3, 0, "0"), `line 3, column id: found "0"`},
		"id a text":        {edit(3, 0, "x"), `line 3, column id: found "x"`},
		"cell twice": {append(slices.Clone(table101), "8,"+strings.SplitN(table101[1], ",", 2)[1]),
			"line 4, column ops: found I1O 111, which is the cell of line 2"},
		"matrix":         {edit(3, 1, "10010"), "line 3, column ops"},
		"ops":            {edit(3, 2, "I3XO"), `unknown operation "X"`},
		"not pruned":     {edit(3, 1, "010001"), "expected a pruned cell"},
		"no parameters":  {edit(2, 3, "0"), "line 2, column params"},
		"too many right": {edit(2, 4, "9985"), `line 2, column val9984_1: found "9985"`},
		"a fraction":     {edit(2, 9, "0.5"), `line 2, column test9984_3: found "0.5"`},
		"NaN":            {edit(2, 10, "NaN"), `line 2, column time_s_1: found "NaN"`},
		"no time":        {edit(2, 12, "0"), "line 2, column time_s_3"},
		"no rows":        {table101[:1], "found no row"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load101(t, table101File, c.lines)
			require.ErrorIs(t, err, ErrBroken)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "csv.gz")
		})
	}
	dir := t.TempDir()
	_, err := LoadNASBench101(dir)
	require.ErrorIs(t, err, ErrMissing)
	require.ErrorContains(t, err, "nasbench_full.tfrecord nor nasbench_only108.tfrecord")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "nasbench_only108.tfrecord"), nil, 0o644))
	_, err = LoadNASBench101(dir)
	require.ErrorContains(t, err, `run "go tool nasml data nasbench101 --from `+dir+`"`)
}

// The file that a program in Python wrote, with three cells of the benchmark,
// has the numbers of the real table, however its records are ordered.
func TestPythonsTFRecordIsTheRealTable(t *testing.T) {
	real, err := LoadNASBench101("")
	if errors.Is(err, ErrMissing) {
		t.Skipf("needs the table of NAS-Bench-101: %v", err)
	}
	require.NoError(t, err)
	t.Setenv("NASML_DATA", t.TempDir())
	made, err := ImportNASBench101(t.Context(), "testdata/nasbench101", nil)
	require.NoError(t, err)
	require.Equal(t, 3, made.Len())
	for _, c := range made.Cells() {
		for _, split := range []Split{Valid, Test} {
			want, err := real.Accuracy(c, Query101{split, 108, Mean})
			require.NoError(t, err)
			got, err := made.Accuracy(c, Query101{split, 108, Mean})
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
		want, err := real.Seconds(c, 108, Mean)
		require.NoError(t, err)
		got, err := made.Seconds(c, 108, Mean)
		require.NoError(t, err)
		require.InDelta(t, want, got, 1e-9, "trials are numbered as the records come")
	}
}
