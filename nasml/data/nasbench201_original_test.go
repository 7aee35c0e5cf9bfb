package data

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

const tiny201 = "testdata/nasbench201/"

// unzipTo writes what a zipped file of testdata has inside, as another file.
func unzipTo(t *testing.T, zipped, path string) string {
	t.Helper()
	f, err := os.Open(tiny201 + zipped)
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	body, err := io.ReadAll(z)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, body, 0o644))
	return path
}

// theirs201 are the formats, each with three architectures of the benchmark.
func theirs201(t *testing.T) map[string]*original201 {
	dir := t.TempDir()
	all := map[string]*original201{}
	for name, path := range map[string]string{
		"folder": tiny201 + "NATS-tss-v1_0-tiny-simple",
		"whole":  tiny201 + "NATS-tss-v1_0-tiny.pickle.pbz2",
		"legacy": unzipTo(t, "legacy.pth.gz", filepath.Join(dir, "NAS-Bench-201-v1_0-tiny.pth")),
		"zip":    unzipTo(t, "zip.pth.gz", filepath.Join(dir, "NAS-Bench-201-v1_1-tiny.pth")),
	} {
		o, err := readOriginal201(t.Context(), path, nil)
		require.NoError(t, err, name)
		require.Len(t, o.archs, 3, name)
		require.Len(t, o.results, 3, name)
		all[name] = o
	}
	return all
}

// What the four formats have is what the benchmark is known to have.
func TestReadOriginal201(t *testing.T) {
	nats := map[string]float64{
		"nats_e200_c10_test": 93.66, "nats_e200_c100_test": 70.29333326822916, "nats_e200_in16_test": 44.03333332316081,
		"e12_c10valid_val": 82.83399999389648, "e12_c10_test": 88.22, "e12_in16_test": 33.80000003051758,
		"params_m_c10": 0.802426, "train_time_s_e200_c10valid": 2169.641375541687,
	}
	nb201 := map[string]float64{
		"e200_c10valid_val": 90.76933332438152, "e200_c10valid_test": 90.51333333333332,
		"e200_c100_val": 69.82666660970052, "e200_in16_test": 44.033333248562286,
		"e12_c10valid_val": 82.83399999389648, "e12_c100_val": 57.79999996948242,
		"params_m_c10": 0.802426, "train_time_s_e200_c10valid": 2169.641375541687,
	}
	for name, o := range theirs201(t) {
		want, release, absent := nb201, ReleaseNB201, "nats_e200_c10_test"
		if name == "folder" || name == "whole" {
			want, release, absent = nats, ReleaseNATS, "e200_c10valid_val"
		}
		require.Equal(t, release, o.release, name)
		for column, x := range want {
			has, ok := o.number(1, column)
			require.True(t, ok, "%s, %s", name, column)
			require.InDelta(t, x, has, 1e-9, "%s, %s", name, column)
		}
		_, ok := o.number(1, absent)
		require.False(t, ok, "%s: %s is of the other release", name, absent)
	}
}

// The three architectures are those of the real table, in every column and
// every trial.
func TestOriginal201IsTheRealTable(t *testing.T) {
	table, err := LoadNASBench201("")
	if errors.Is(err, ErrMissing) {
		t.Skipf("needs the table of NAS-Bench-201: %v", err)
	}
	require.NoError(t, err)
	o := theirs201(t)
	sources := []*original201{o["zip"], o["folder"]}
	columns := 0
	for _, name := range accuracies201 {
		column, err := column201(sources, name)
		require.NoError(t, err)
		for i, x := range column {
			real, err := table.Accuracy(table.Arch(i), means201[name])
			require.NoError(t, err)
			require.InDelta(t, real, x, 1e-9, "%s of architecture %d", name, i)
		}
		columns += len(column) / 3
	}
	require.Equal(t, 15, columns)
	f := &csvFile{names: []string{indexColumn, trialColumn, "c10valid_val", "c100_valtest", "in16_valtest"}}
	_, f.body, _ = bytesCut(o["folder"].trialsCSV())
	rows, err := f.rows(func(row int, fields []string) error {
		for c, name := range f.names[2:] {
			q := ofTrials201[name]
			q.Trial = row%3 + 1
			real, err := table.Accuracy(table.Arch(row/3), q)
			require.NoError(t, err)
			require.Equal(t, fmt.Sprint(real), fields[c+2], "row %d, %s", row, name)
		}
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, 9, rows)
}

func bytesCut(text []byte) (head, body string, found bool) {
	h, b, ok := bytes.Cut(text, []byte("\n"))
	return string(h), string(b), ok
}

// A pickle that calls a command is refused, and nothing is called.
func TestOriginal201RunsNothing(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	evil := []byte("\x80\x02cposix\nsystem\nq\x00X\x12\x00\x00\x00touch ran-a-pickleq\x01\x85q\x02Rq\x03.")
	require.NoError(t, os.WriteFile("NAS-Bench-201-v1_1-evil.pth", append(torchHead(), evil...), 0o644))
	_, err := readOriginal201(t.Context(), "NAS-Bench-201-v1_1-evil.pth", nil)
	require.ErrorContains(t, err, `found "posix.system" in the pickle, expected only`)
	require.ErrorContains(t, err, "nothing of it was run")
	require.ErrorIs(t, err, ErrBroken)
	require.NoFileExists(t, "ran-a-pickle")
}

// The same as Python writes it.
func TestOriginal201RefusesPythonsCall(t *testing.T) {
	_, err := readOriginal201(t.Context(), tiny201+"evil.pickle.pbz2", nil)
	require.ErrorContains(t, err, `found "posix.system" in the pickle`)
	require.NoFileExists(t, "ran-a-pickle")
	require.NoFileExists(t, tiny201+"ran-a-pickle")
}

// However much of a file is missing, it is said.
func TestOriginal201CutOff(t *testing.T) {
	dir := t.TempDir()
	for _, zipped := range []string{"legacy.pth.gz", "zip.pth.gz"} {
		path := unzipTo(t, zipped, filepath.Join(dir, "NAS-Bench-201-cut.pth"))
		body, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, n := range []int{0, 3, 12, 100, len(body) / 2, len(body) - 400} {
			require.NoError(t, os.WriteFile(path, body[:n], 0o644))
			_, err := readOriginal201(t.Context(), path, nil)
			require.ErrorIs(t, err, ErrBroken, "%s of %d bytes", zipped, n)
			require.ErrorContains(t, err, "NAS-Bench-201-cut.pth: the file is broken: ")
		}
	}
	whole, err := os.ReadFile(tiny201 + "NATS-tss-v1_0-tiny.pickle.pbz2")
	require.NoError(t, err)
	path := filepath.Join(dir, "NATS-tss-cut.pickle.pbz2")
	require.NoError(t, os.WriteFile(path, whole[:len(whole)/2], 0o644))
	_, err = readOriginal201(t.Context(), path, nil)
	require.ErrorIs(t, err, ErrBroken)

	folder := filepath.Join(dir, "NATS-tss-v1_0-cut-simple")
	require.NoError(t, os.CopyFS(folder, os.DirFS(tiny201+"NATS-tss-v1_0-tiny-simple")))
	one := filepath.Join(folder, "000001.pickle.pbz2")
	body, err := os.ReadFile(one)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(one, body[:len(body)-50], 0o644))
	_, err = readOriginal201(t.Context(), folder, nil)
	require.ErrorIs(t, err, ErrBroken)
	require.ErrorContains(t, err, "000001.pickle.pbz2")
	require.NoError(t, os.Remove(one))
	o, err := readOriginal201(t.Context(), folder, nil)
	require.NoError(t, err, "one that is missing is counted at the end")
	require.Len(t, o.results, 2)
}

func TestReadOriginal201Cancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	legacy := unzipTo(t, "legacy.pth.gz", filepath.Join(t.TempDir(), "NAS-Bench-201-v1_0-tiny.pth"))
	for _, path := range []string{legacy, tiny201 + "NATS-tss-v1_0-tiny-simple"} {
		_, err := readOriginal201(ctx, path, nil)
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, ErrBroken)
	}
}

// torchHead is what torch.save wrote before its pickle until PyTorch 1.6.
func torchHead() []byte {
	return []byte("\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19." + "\x80\x02M\xe9\x03." +
		"\x80\x02}q\x00(X\x0d\x00\x00\x00little_endianq\x01\x88u.")
}

// encode writes a value as protocol 2 does, without places.
func encode(out *bytes.Buffer, v any) {
	text := func(s string) {
		out.WriteByte('X')
		_ = binary.Write(out, binary.LittleEndian, uint32(len(s)))
		out.WriteString(s)
	}
	switch v := v.(type) {
	case string:
		text(v)
	case int:
		out.WriteByte('J')
		_ = binary.Write(out, binary.LittleEndian, int32(v))
	case float64:
		out.WriteByte('G')
		_ = binary.Write(out, binary.BigEndian, math.Float64bits(v))
	case tuple:
		for _, x := range v {
			encode(out, x)
		}
		out.WriteByte(0x84 + byte(len(v)))
	case []any:
		out.WriteString("](")
		for _, x := range v {
			encode(out, x)
		}
		out.WriteByte('e')
	case *dict:
		out.WriteString("}(")
		for _, e := range v.entries {
			encode(out, e.key)
			encode(out, e.value)
		}
		out.WriteByte('u')
	default:
		panic(fmt.Sprintf("no way to write %T", v))
	}
}

func dictOf(pairs ...any) *dict {
	d := &dict{}
	for i := 0; i < len(pairs); i += 2 {
		d.entries = append(d.entries, keyed{pairs[i], pairs[i+1]})
	}
	return d
}

// made201 is a benchmark of n architectures, in which every number says where
// it stands: schedule, task, architecture; change may spoil it.
func made201(n int, change func(arch int, trial *dict)) *dict {
	tasks := []Task201{TaskCIFAR10Valid, TaskCIFAR10, TaskCIFAR100, TaskImageNet16}
	var archs []any
	infos := &dict{}
	for i := range n {
		arch := Arch201At(i).String()
		archs = append(archs, arch)
		info := &dict{}
		for name, epochs := range map[string]int{"less": 12, "full": 200} {
			results := &dict{}
			for k, task := range tasks {
				accuracies := &dict{}
				for s, set := range []string{xValid, xTest, oriTest} {
					accuracies.entries = append(
						accuracies.entries,
						keyed{fmt.Sprintf("%s@%d", set, epochs-1), made201Number(i, epochs, k, s)},
					)
				}
				trial := dictOf("epochs", epochs, "params", 0.5+float64(i), "eval_acc1es", accuracies,
					"train_times", dictOf(0, 1+float64(i), 1, 2.0), "train_losses", dictOf(0, 0.25))
				if change != nil {
					change(i, trial)
				}
				results.entries = append(results.entries, keyed{tuple{string(task), 777}, trial})
			}
			info.entries = append(info.entries, keyed{name, dictOf("arch_str", arch, "all_results", results)})
		}
		infos.entries = append(infos.entries, keyed{i, info})
	}
	return dictOf("meta_archs", archs, "arch2infos", infos)
}

func made201Number(arch, epochs, task, set int) float64 {
	return float64(arch)/1000 + float64(epochs)/100 + 10*float64(task) + 3*float64(set)
}

// put201 writes a benchmark as NAS-Bench-201 does and returns its folder.
func put201(t *testing.T, d *dict) string {
	t.Helper()
	var out bytes.Buffer
	out.Write(torchHead())
	out.WriteString("\x80\x02")
	encode(&out, d)
	out.WriteByte('.')
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "NAS-Bench-201-v1_1-made.pth"), out.Bytes(), 0o644))
	return dir
}

func TestImportNASBench201(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("NASML_DATA", dir)
	from := put201(t, made201(Archs201, nil))
	var heard int64
	require.NoError(t, ImportNASBench201(t.Context(), from, func(_ string, done, total int64) {
		require.LessOrEqual(t, done, total)
		heard = done
	}))
	require.Positive(t, heard)
	table, err := LoadNASBench201("")
	require.NoError(t, err)
	require.Len(t, table.Queries(), 6+6, "what NAS-Bench-201 has")
	for _, c := range []struct {
		query     Query201
		task, set int
	}{
		{Query201{TaskCIFAR10Valid, Valid, 200, ReleaseNB201, Mean}, 0, 0},
		{Query201{TaskCIFAR10Valid, Test, 200, ReleaseNB201, Mean}, 0, 2},
		{Query201{TaskCIFAR100, Test, 200, ReleaseNB201, Mean}, 2, 1},
		{Query201{TaskCIFAR10, Test, 12, ReleaseNB201, Mean}, 1, 2},
		{Query201{TaskImageNet16, Valid, 12, ReleaseNB201, Mean}, 3, 0},
	} {
		x, err := table.Accuracy(Arch201At(4711), c.query)
		require.NoError(t, err)
		require.InDelta(t, made201Number(4711, c.query.Epochs, c.task, c.set), x, 1e-12, "%s", c.query)
	}
	seconds, err := table.EpochSeconds(Arch201At(4711))
	require.NoError(t, err)
	require.InDelta(t, (1+4711+2.0)/200, seconds, 1e-12)
	_, err = table.Accuracy(Arch201{}, Reported201[0])
	require.ErrorContains(t, err, "found no cifar10 test after 200 epochs (NATS-Bench",
		"a column of the other release is not made up")

	err = ImportNASBench201(t.Context(), from, nil)
	require.ErrorContains(t, err, "nasbench201.csv.gz is there already; move it away")
	left, err := filepath.Glob(filepath.Join(dir, ".nasbench-*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// Both releases together fill every column; each has its own.
func TestInstall201OfBothReleases(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	made := func(release Release201, shift float64, seeds ...int) *original201 {
		o := &original201{path: string(release), release: release, results: map[int]result201{}}
		for i := range Archs201 {
			o.archs = append(o.archs, Arch201At(i).String())
			r := result201{}
			for _, epochs := range []int{12, 200} {
				for _, task := range []Task201{TaskCIFAR10Valid, TaskCIFAR10, TaskCIFAR100, TaskImageNet16} {
					for _, seed := range seeds {
						x := shift + float64(seed-777)/111
						r[epochs] = append(
							r[epochs],
							trial201{
								task:     task,
								seed:     seed,
								params:   1,
								seconds:  2,
								accuracy: map[string]float64{xValid: x, xTest: x + 10, oriTest: x + 20},
							},
						)
					}
				}
			}
			o.results[i] = r
		}
		return o
	}
	dir := t.TempDir()
	require.NoError(
		t,
		install201(dir, []*original201{made(ReleaseNB201, 20, 777), made(ReleaseNATS, 50, 999, 777, 888)}),
	)
	table, err := LoadNASBench201(dir)
	require.NoError(t, err)
	require.Len(t, table.Queries(), 15+9)
	for q, want := range map[Query201]float64{
		{TaskCIFAR100, Test, 200, ReleaseNB201, Mean}:  30,
		{TaskCIFAR10, Test, 200, ReleaseNATS, Mean}:    71,
		{TaskCIFAR10Valid, Valid, 12, ReleaseNB201, 0}: 20,
		{TaskCIFAR10Valid, Valid, 200, ReleaseNATS, 3}: 52,
		{TaskCIFAR100, ValidTest, 200, ReleaseNATS, 1}: 70,
	} {
		x, err := table.Accuracy(Arch201At(99), q)
		require.NoError(t, err)
		require.Equal(t, want, x, "%s", q)
	}
}

func TestImportNASBench201NamesWhatIsWrong(t *testing.T) {
	t.Setenv("NASML_DATA", t.TempDir())
	spoil := func(change func(trial *dict)) *dict {
		return made201(3, func(arch int, trial *dict) {
			if arch == 1 {
				change(trial)
			}
		})
	}
	renamed := made201(3, nil)
	results := renamed.get("arch2infos").(*dict).entries[2].value.(*dict).get("less").(*dict).get("all_results").(*dict)
	results.entries[3].key = tuple{"svhn", 777}
	swapped := made201(3, nil)
	infos := swapped.get("arch2infos").(*dict).entries
	infos[0].key, infos[1].key = 1, 0
	unknown := made201(3, nil)
	(unknown.get("meta_archs").([]any))[1] = "|conv~0|"
	for name, c := range map[string]struct {
		benchmark *dict
		want      string
	}{
		"three architectures": {made201(3, nil), "found 3 architectures: the file is broken, expected 15625"},
		"unknown data set": {renamed,
			`found data set "svhn", expected one of [cifar10-valid cifar10 cifar100 ImageNet16-120]`},
		"other architecture": {swapped, "found results of "},
		"no architecture": {unknown,
			`architecture 1 of meta_archs: the file is broken: found architecture "|conv~0|"`},
		"no architectures": {dictOf("arch2infos", dictOf()), "found nothing for meta_archs"},
		"no results":       {dictOf("meta_archs", []any{}), "found nothing for arch2infos"},
		"accuracy of 101 %": {spoil(func(d *dict) {
			d.get("eval_acc1es").(*dict).entries[0].value = 101.0
		}), "expected an accuracy from 0 to 100 percent"},
		"half a training": {spoil(func(d *dict) { d.entries[0].value = 100 }),
			"expected an accuracy from 0 to 100 percent after epoch 99"},
		"a text as time": {spoil(func(d *dict) { d.entries[3].value = dictOf(0, "long") }),
			`found "long" in train_times, expected seconds`},
		"no weights": {spoil(func(d *dict) { d.entries[1].key = "other" }),
			"found nothing for params, expected a number"},
	} {
		t.Run(name, func(t *testing.T) {
			err := ImportNASBench201(t.Context(), put201(t, c.benchmark), nil)
			require.ErrorContains(t, err, c.want)
			require.ErrorIs(t, err, ErrBroken)
		})
	}
	err := ImportNASBench201(t.Context(), t.TempDir(), nil)
	require.ErrorIs(t, err, ErrMissing)
	require.ErrorContains(t, err, "nor NATS-tss-*-simple nor ")
	require.Error(t, ImportNASBench201(t.Context(), "no such folder", nil))
	require.ErrorContains(t, ImportNASBench201(t.Context(), tiny201+"NATS-tss-v1_0-tiny-simple", nil),
		"found 3 architectures")
}

func TestOriginals201Found(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{
		"NAS-Bench-201-v1_0-e61699.pth", "NAS-Bench-201-v1_1-096897.pth", "NATS-tss-v1_0-3ffb9.pickle.pbz2",
		"nasbench/NATS-tss-v1_0-3ffb9-simple/meta.pickle.pbz2",
	} {
		put(t, dir, path, nil)
	}
	paths, err := originals201(dir)
	require.NoError(t, err)
	for i := range paths {
		paths[i], err = filepath.Rel(dir, paths[i])
		require.NoError(t, err)
	}
	require.Equal(t, []string{"NAS-Bench-201-v1_1-096897.pth", filepath.Join("nasbench", "NATS-tss-v1_0-3ffb9-simple")},
		paths)
}

// Curves pass through: what is kept of a training does not grow with them.
func TestOriginal201KeepsNoCurves(t *testing.T) {
	const n, epochs = 200, 200
	d := made201(n, func(_ int, trial *dict) {
		losses := trial.get("train_losses").(*dict)
		for e := range epochs {
			losses.entries = append(losses.entries, keyed{e, float64(e)})
			accuracies := trial.get("eval_acc1es").(*dict)
			accuracies.entries = slices.Insert(accuracies.entries, 0, keyed{fmt.Sprintf("x-valid@%d", e/20), 1.0})
		}
	})
	from := put201(t, d)
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	o, err := readOriginal201(t.Context(), filepath.Join(from, "NAS-Bench-201-v1_1-made.pth"), nil)
	require.NoError(t, err)
	after := heap()
	require.Len(t, o.results, n)
	info, err := os.Stat(filepath.Join(from, "NAS-Bench-201-v1_1-made.pth"))
	require.NoError(t, err)
	require.Less(t, int64(after)-int64(before), info.Size()/8)
	runtime.KeepAlive(o)
}
