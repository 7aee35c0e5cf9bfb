package runs

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// recordPath is the file of a record in a folder.
func (s *Store) recordPath(key string) string { return s.medium.Where(recordName(key)) }

func TestRecordSaysWhatToBelieve(t *testing.T) {
	s, _ := testStore(t)
	r, err := s.Get(fillStore(t, s, toyTrials(7, 1))[0].Key)
	require.NoError(t, err)
	require.Equal(t, keyOf(t, toyTrials(7, 1)[0]), r.Key)
	require.Equal(t, uint64(7), r.Trial.Seed)
	require.Equal(t, "test", r.Backend)
	require.NotEmpty(t, r.Host.Arch)
	require.Contains(t, r.Versions, "go")
	require.Equal(t, time.UTC, r.Started.Location())
	require.Zero(t, r.Resumed)
	require.FileExists(t, filepath.Join(s.Dir(), "records", r.Key[:2], r.Key+".json"))
}

// Whatever one byte of a record turns into, it is refused, or it says the same.
func TestAnyChangedByteIsFound(t *testing.T) {
	s, _ := testStore(t)
	r := fillStore(t, s, toyTrials(1, 1))[0]
	whole, err := os.ReadFile(s.recordPath(r.Key))
	require.NoError(t, err)
	refused := 0
	rapid.Check(t, func(t *rapid.T) {
		data := bytes.Clone(whole)
		data[rapid.IntRange(0, len(data)-1).Draw(t, "at")] ^= rapid.ByteRange(1, 255).Draw(t, "bits")
		got, err := decode(data)
		if err != nil {
			refused++
			return
		}
		require.Equal(t, r.Values, got.Values)
		require.Equal(t, r.Key, got.Key)
	})
	require.Positive(t, refused)
}

func TestBrokenRecordIsSetAsideAndComputedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		change func(string) string
		reason string
	}{
		"empty":     {func(string) string { return "" }, "not a record"},
		"truncated": {func(s string) string { return s[:len(s)/2] }, "not a record"},
		"changed value": {func(s string) string { return strings.Replace(s, `"x":3`, `"x":4`, 1) },
			"changed after it was written"},
		"added field": {func(s string) string { return strings.Replace(s, `{"key"`, `{"more":1,"key"`, 1) },
			"changed after it was written"},
	} {
		t.Run(name, func(t *testing.T) {
			s, ctx := testStore(t)
			r := fillStore(t, s, toyTrials(3, 1))[0]
			path := s.recordPath(r.Key)
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			damage := func() { require.NoError(t, os.WriteFile(path, []byte(c.change(string(data))), 0o644)) }

			damage()
			_, err = s.Get(r.Key)
			require.ErrorIs(t, err, ErrNotFound)
			require.ErrorContains(t, err, c.reason)
			require.NoFileExists(t, path)

			damage()
			computed := 0
			records, err := s.Compute(ctx, toyTrials(3, 1), Options{}, func(_ context.Context, job *Job) error {
				computed++
				return job.Done(0, seedResult(job.Trials[0]))
			})
			require.NoError(t, err)
			require.Equal(t, 1, computed)
			require.Equal(t, 3.0, records[0].Values["x"])

			reasons, err := filepath.Glob(filepath.Join(s.Dir(), "broken", "*"+r.Key+".json.reason.txt"))
			require.NoError(t, err)
			require.Len(t, reasons, 2)
			text, err := os.ReadFile(reasons[0])
			require.NoError(t, err)
			require.Contains(t, string(text), c.reason)
		})
	}
}

// A record under another's name is whole, but not what was asked for.
func TestExchangedRecordIsNotBelieved(t *testing.T) {
	s, _ := testStore(t)
	records := fillStore(t, s, toyTrials(0, 2))
	require.NoError(t, os.MkdirAll(filepath.Dir(s.recordPath(records[1].Key)), 0o777))
	require.NoError(t, os.Rename(s.recordPath(records[0].Key), s.recordPath(records[1].Key)))
	_, err := s.Get(records[1].Key)
	require.ErrorContains(t, err, "it holds the record of "+records[0].Key)
	require.ErrorIs(t, err, ErrNotFound)
}

// A record whose sum is right for a trial that is not its own is a forgery, or
// was written by a version with other keys.
func TestRecordOfAnotherKeyIsNotBelieved(t *testing.T) {
	s, _ := testStore(t)
	r := *fillStore(t, s, toyTrials(0, 1))[0]
	r.Trial.Seed = 9
	line, err := r.encode()
	require.NoError(t, err)
	_, err = decode(line)
	require.ErrorContains(t, err, "its trial has key "+keyOf(t, r.Trial))
}

func TestRecordWithFieldsOfALaterVersionIsWhole(t *testing.T) {
	s, _ := testStore(t)
	r := fillStore(t, s, toyTrials(0, 1))[0]
	line, err := r.encode()
	require.NoError(t, err)
	later := strings.Replace(string(line), `{"key"`, `{"colour":"green","key"`, 1)
	fields, err := normalised([]byte(later))
	require.NoError(t, err)
	sum, err := sumOf(fields)
	require.NoError(t, err)
	got, err := decode([]byte(strings.Replace(later, r.Sum, sum, 1)))
	require.NoError(t, err)
	require.Equal(t, r.Values, got.Values)
}

// A record is made only of the lines that are asked for; one that says a key which its trial has not is none.
func TestABundleReadsWhatIsAskedFor(t *testing.T) {
	trials := toyTrials(0, 3)
	keys := []string{keyOf(t, trials[0]), keyOf(t, trials[1]), strings.Repeat("0", 64)}
	forged := strings.Replace(fileOf(t, bundleOf(t, trials[2:], "")), keyOf(t, trials[2]), keys[2], 1)
	b := &bundle{fsys: bundleOf(t, trials[:2], forged)}
	decoded := map[string]bool{}
	for key, l := range b.load() {
		record := l.record
		l.record = func() (*Record, error) { decoded[key] = true; return record() }
	}
	s := &Store{bundles: []*bundle{b}}
	r, err := s.readBundles(keys[1])
	require.NoError(t, err)
	require.Equal(t, keys[1], r.Key)
	_, err = s.readBundles(keys[2])
	require.ErrorIs(t, err, ErrNotFound)
	require.Equal(t, map[string]bool{keys[1]: true, keys[2]: true}, decoded)
}

// A damaged copy of a line loses nothing, wherever it stands, and is named.
func TestABundleKeepsTheWholeOfTwoLines(t *testing.T) {
	trials := toyTrials(0, 1)
	whole := fileOf(t, bundleOf(t, trials, ""))
	damaged := strings.Replace(whole, `"seed":0`, `"seed":1`, 1)
	require.NotEqual(t, whole, damaged)
	for _, text := range []string{whole + damaged, damaged + whole, damaged + whole + damaged} {
		s := &Store{bundles: []*bundle{{fsys: fstest.MapFS{"records/panel_a.json": {Data: []byte(text)}}}}}
		r, err := s.readBundles(keyOf(t, trials[0]))
		require.NoError(t, err)
		require.Equal(t, keyOf(t, trials[0]), r.Key)
		_, broken := s.bundles[0].records()
		require.Len(t, broken, strings.Count(text, `"seed":1`))
	}
}

// bundleOf is a file system with the records of trials, as a package ships it.
func bundleOf(t *testing.T, trials []Trial, extra string) fs.FS {
	t.Helper()
	s, _ := testStore(t)
	var file bytes.Buffer
	require.NoError(t, WriteBundle(&file, fillStore(t, s, trials)))
	return fstest.MapFS{
		"records/panel_a.json": {Data: append(file.Bytes(), extra...)},
		"records/README.md":    {Data: []byte("no record")},
	}
}

// fileOf is the text of the file of a bundle.
func fileOf(t *testing.T, bundle fs.FS) string {
	t.Helper()
	text, err := fs.ReadFile(bundle, "records/panel_a.json")
	require.NoError(t, err)
	return string(text)
}

func TestShippedRecords(t *testing.T) {
	shipped := bundleOf(t, toyTrials(0, 3), "\n{\"key\":\"forged\"}\n")
	dir := filepath.Join(t.TempDir(), "store")
	s, err := Open(dir, shipped)
	require.NoError(t, err)
	ctx := WithProgress(t.Context(), Silent)
	_, err = s.Compute(ctx, toyTrials(0, 3), Options{}, mustNotCompute)
	require.NoError(t, err)
	require.NoDirExists(t, dir, "reading writes nothing")

	plain, err := Open(dir)
	require.NoError(t, err)
	_, err = plain.Get(keyOf(t, toyTrials(0, 1)[0]))
	require.ErrorIs(t, err, ErrNotFound)

	records, broken, err := plain.With(shipped).List()
	require.NoError(t, err)
	require.Len(t, records, 3)
	require.Len(t, broken, 1)
	require.Equal(t, "records/panel_a.json:5", broken[0].Path)

	// A broken record of the folder does not hide the shipped one.
	key := records[0].Key
	require.NoError(t, os.MkdirAll(filepath.Dir(s.recordPath(key)), 0o777))
	require.NoError(t, os.WriteFile(s.recordPath(key), []byte("{}"), 0o644))
	_, err = s.Compute(ctx, toyTrials(0, 3), Options{}, mustNotCompute)
	require.NoError(t, err)
	require.NoFileExists(t, s.recordPath(key))
}

func TestShippedRecordsOfOneFolderCompressed(t *testing.T) {
	s, _ := testStore(t)
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	require.NoError(t, WriteBundle(w, fillStore(t, s, toyTrials(0, 2))))
	require.NoError(t, w.Close())
	shipped := fstest.MapFS{
		"records/one/a.jsonl.gz":   {Data: zipped.Bytes()[:zipped.Len()/2]}, // is named and hides nothing
		"records/one/b.jsonl.gz":   {Data: zipped.Bytes()},
		"records/other/a.jsonl.gz": {Data: []byte("not gzip")},
	}
	empty, err := Open(t.TempDir())
	require.NoError(t, err)
	ctx := WithProgress(WithStore(t.Context(), empty), Silent)
	one, err := FromContextWith(ctx, shipped, "one")
	require.NoError(t, err)
	_, err = one.Compute(ctx, toyTrials(0, 2), Options{}, mustNotCompute)
	require.NoError(t, err)
	_, broken, err := one.List()
	require.NoError(t, err)
	require.Len(t, broken, 1)
	require.ErrorContains(t, broken[0], "a.jsonl.gz is broken: unexpected EOF")

	none, err := FromContextWith(ctx, shipped, "none")
	require.NoError(t, err)
	records, broken, err := none.List()
	require.NoError(t, err)
	require.Empty(t, records)
	require.Empty(t, broken, "a package may ship nothing")
}

func TestWriteBundleRefusesWhatWasChanged(t *testing.T) {
	s, _ := testStore(t)
	r := fillStore(t, s, toyTrials(0, 1))[0]
	r.Values["x"] = 99
	require.ErrorContains(t, WriteBundle(&bytes.Buffer{}, []*Record{r}), "changed after it was written")
}

func TestOpenErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	_, err := Open(file)
	require.ErrorContains(t, err, "is a file, expected a folder")
	_, err = Open(filepath.Join(file, "store"))
	require.ErrorContains(t, err, "a file is where the store needs a folder")
	_, err = Open("")
	require.ErrorContains(t, err, "NASML_STORE")

	s, ctx := testStore(t)
	require.NoError(t, os.MkdirAll(s.Dir(), 0o777))
	require.NoError(t, os.WriteFile(filepath.Join(s.Dir(), "locks"), nil, 0o644))
	_, err = s.Compute(ctx, toyTrials(0, 1), Options{}, mustNotCompute)
	require.ErrorContains(t, err, "a file is where the store needs a folder", "told before anything is computed")
}

func TestExplainSaysWhatToDo(t *testing.T) {
	for errno, advice := range map[syscall.Errno]string{
		syscall.ENOSPC:     "free some space",
		syscall.EDQUOT:     "free some space",
		syscall.EACCES:     "make the folder writable",
		syscall.EROFS:      "make the folder writable",
		syscall.ENOLCK:     "this file system has no locks",
		syscall.EOPNOTSUPP: "this file system has no locks",
		syscall.EMFILE:     "Options.MaxBatch",
		syscall.EIO:        "input/output error",
	} {
		err := explain(&fs.PathError{Op: "open", Path: "p", Err: errno}, "write", "p")
		require.ErrorContains(t, err, advice)
		require.ErrorIs(t, err, errno)
		require.NotContains(t, err.Error(), "\n")
	}
	require.NoError(t, explain(nil, "write", "p"))
}

func TestContext(t *testing.T) {
	t.Setenv("NASML_STORE", filepath.Join(t.TempDir(), "own"))
	s, err := FromContext(t.Context())
	require.NoError(t, err)
	require.Equal(t, os.Getenv("NASML_STORE"), s.Dir())
	other, _ := testStore(t)
	s, err = FromContext(WithStore(t.Context(), other))
	require.NoError(t, err)
	require.Same(t, other, s)

	t.Setenv("NASML_STORE", "")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", os.Getenv("XDG_CACHE_HOME"))
	s, err = Default()
	require.NoError(t, err)
	require.Equal(t, filepath.Join("nasml", "store"), tail(s.Dir(), 2))
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "")
	_, err = Default()
	require.ErrorContains(t, err, "set NASML_STORE")

	require.Equal(t, "paper", Scale(WithScale(t.Context(), "paper")))
	require.Empty(t, Scale(t.Context()))
}

// tail is the last n parts of a path.
func tail(path string, n int) string {
	parts := strings.Split(path, string(filepath.Separator))
	return filepath.Join(parts[len(parts)-n:]...)
}

func TestFindAndList(t *testing.T) {
	s, _ := testStore(t)
	records := fillStore(t, s, toyTrials(0, 40)) // more than 16: two keys share a first digit
	for _, r := range records {
		found, err := s.Find(strings.ToUpper(r.Key[:20]))
		require.NoError(t, err)
		require.Equal(t, r, found)
	}
	found, err := s.Find(records[0].Key)
	require.NoError(t, err)
	require.Equal(t, records[0], found)

	count := map[string]int{}
	for _, r := range records {
		count[r.Key[:1]]++
	}
	for digit, n := range count {
		if _, err := s.Find(digit); n > 1 {
			require.ErrorContains(t, err, fmt.Sprintf("%d keys begin with %s", n, digit))
			require.ErrorContains(t, err, "toy/walk, seed ")
		}
	}
	_, err = s.Find("xyz")
	require.ErrorContains(t, err, "not the beginning of a key")
	_, err = s.Find("")
	require.ErrorContains(t, err, "not the beginning of a key")
	_, err = s.Find(strings.Repeat("0", 63))
	require.ErrorIs(t, err, ErrNotFound)

	listed, broken, err := s.List()
	require.NoError(t, err)
	require.Empty(t, broken)
	require.ElementsMatch(t, records, listed)
	require.True(t, strings.Compare(listed[0].Key, listed[1].Key) < 0)

	empty, _ := testStore(t)
	listed, _, err = empty.List()
	require.NoError(t, err)
	require.Empty(t, listed)
}

func TestVerify(t *testing.T) {
	s, ctx := testStore(t)
	records := fillStore(t, s, toyTrials(0, 5))
	stop := errors.New("stop")
	for from := 10; from < 12; from++ {
		_, err := s.Compute(ctx, toyTrials(from, 1), Options{}, func(_ context.Context, job *Job) error {
			return errors.Join(job.Save(writeString("state")), stop)
		})
		require.ErrorIs(t, err, stop)
	}
	report, err := s.Verify()
	require.NoError(t, err)
	require.Equal(t, Report{Records: 5, Checkpoints: 2}, report)

	checkpoints, err := filepath.Glob(filepath.Join(s.Dir(), "checkpoints", "*"))
	require.NoError(t, err)
	for _, path := range []string{s.recordPath(records[1].Key), s.recordPath(records[3].Key), checkpoints[0]} {
		require.NoError(t, os.Truncate(path, 40))
	}
	report, err = s.With(bundleOf(t, toyTrials(20, 2), "junk")).Verify()
	require.NoError(t, err)
	require.Equal(t, 3+2, report.Records)
	require.Equal(t, 1, report.Checkpoints)
	require.Len(t, report.Broken, 4)
	moved := 0
	for _, b := range report.Broken {
		if b.MovedTo != "" {
			require.FileExists(t, b.MovedTo)
			require.NoFileExists(t, b.Path)
			moved++
		}
	}
	require.Equal(t, 3, moved, "shipped files are left")
	report, err = s.Verify()
	require.NoError(t, err)
	require.Equal(t, Report{Records: 3, Checkpoints: 1}, report)
}

func TestGC(t *testing.T) {
	s, ctx := testStore(t)
	records := fillStore(t, s, toyTrials(0, 3))
	stop := errors.New("stop")
	_, err := s.Compute(ctx, toyTrials(10, 1), Options{}, func(_ context.Context, job *Job) error {
		return errors.Join(job.Save(writeString("state")), stop)
	})
	require.ErrorIs(t, err, stop)
	touch := func(age time.Duration, parts ...string) string {
		path := filepath.Join(append([]string{s.Dir()}, parts...)...)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o777))
		require.NoError(t, os.WriteFile(path, []byte("12345"), 0o644))
		then := time.Now().Add(-age)
		require.NoError(t, os.Chtimes(path, then, then))
		return path
	}
	gone := []string{
		touch(0, "broken", "x.json"),
		touch(0, "locks", strings.Repeat("a", 64)),
		touch(2*time.Hour, "records", "ab", ".tmp-1"),
		touch(2*time.Hour, "checkpoints", ".tmp-2"),
		touch(8*24*time.Hour, "checkpoints", "old.ckpt"),
	}
	held, err := tryLock(filepath.Join(s.Dir(), "locks", strings.Repeat("b", 64)))
	require.NoError(t, err)
	defer held.Remove()
	kept := []string{
		held.Path(),
		touch(time.Minute, "records", "ab", ".tmp-3"),
		touch(6*24*time.Hour, "checkpoints", "young.ckpt"),
		s.recordPath(records[0].Key),
	}

	removed, err := s.GC(GCOptions{DryRun: true})
	require.NoError(t, err)
	require.Equal(t, Removed{Files: 5 + 1, Bytes: 25 + int64(len("stop\n"))}, removed, "and why a trial failed")
	for _, path := range append(gone, kept...) {
		require.FileExists(t, path)
	}
	removed, err = s.GC(GCOptions{})
	require.NoError(t, err)
	require.Equal(t, Removed{Files: 5 + 1, Bytes: 25 + int64(len("stop\n"))}, removed, "and why a trial failed")
	for _, path := range gone {
		require.NoFileExists(t, path)
	}
	for _, path := range kept {
		require.FileExists(t, path)
	}

	empty, _ := testStore(t)
	removed, err = empty.GC(GCOptions{})
	require.NoError(t, err)
	require.Zero(t, removed)
}

func TestProcessorOf(t *testing.T) {
	require.Equal(t, "AuthenticAMD 25 17", processorOf("processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\n"+
		"model\t\t: 17\nmodel name\t: AMD EPYC\n\nprocessor\t: 1\nvendor_id\t: AuthenticAMD\n"))
	require.Equal(t, "0x41 8 0xd40", processorOf("processor\t: 0\nCPU implementer\t: 0x41\nCPU architecture: 8\n"+
		"CPU variant\t: 0x1\nCPU part\t: 0xd40\n"))
	require.Empty(t, processorOf(""))
}
