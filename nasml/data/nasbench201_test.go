package data

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestArch201RoundTrip(t *testing.T) {
	seen := map[string]bool{}
	for n := range Archs201 {
		a := Arch201At(n)
		require.Equal(t, n, a.Number())
		parsed, err := ParseArch201(a.String())
		require.NoError(t, err)
		require.Equal(t, a, parsed)
		built, err := NewArch201(a.Choice())
		require.NoError(t, err)
		require.Equal(t, a, built)
		seen[a.String()] = true
	}
	require.Len(t, seen, Archs201)
	// The order of edges, as in the original's documentation.
	a, err := ParseArch201("|nor_conv_3x3~0|+|nor_conv_3x3~0|avg_pool_3x3~1|+|skip_connect~0|nor_conv_1x1~1|none~2|")
	require.NoError(t, err)
	require.Equal(t, Arch201{3, 3, 4, 1, 2, 0}, a)
}

func TestParseArch201IsStrict(t *testing.T) {
	good := Arch201{3, 1, 0, 2, 4, 1}.String()
	for _, s := range []string{
		"", "|", good + " ", " " + good, good + "+", good[1:], good[:len(good)-1],
		strings.Replace(good, "~1", "~0", 1), strings.Replace(good, "none", "None", 1),
		strings.Replace(good, "skip_connect", "dil_conv_3x3", 1), strings.ReplaceAll(good, "+", ""),
		"|none~0|+|none~1|none~0|+|none~0|none~1|none~2|", // the edges of node 2 in another order
	} {
		_, err := ParseArch201(s)
		require.ErrorContains(t, err, "expected", "%q", s)
	}
	_, err := ParseArch201("|none~0|+|none~0|zero~1|+|none~0|none~1|none~2|")
	require.ErrorContains(t, err, `at "zero~1|+|none~0|none~1|none~2|", for edge 2<-1`)
}

// Whatever parses prints as it was.
func TestParseArch201TakesOnlyWhatIsPrinted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := []byte(Arch201At(rapid.IntRange(0, Archs201-1).Draw(t, "arch")).String())
		at := rapid.IntRange(0, len(s)-1).Draw(t, "at")
		s[at] = rapid.SampledFrom([]byte("|+~012 aenor_x3")).Draw(t, "byte")
		if a, err := ParseArch201(string(s)); err == nil {
			require.Equal(t, string(s), a.String())
		}
	})
}

func TestNewArch201Errors(t *testing.T) {
	for _, choice := range [][]int{
		nil, {0, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 0, 0}, {0, 0, 5, 0, 0, 0}, {0, 0, -1, 0, 0, 0},
	} {
		_, err := NewArch201(choice)
		require.ErrorContains(t, err, "expected", "%v", choice)
	}
}

// tableText writes a table in which every number says where it stands: column
// c of architecture number n has (n+c)/1000, and indices run backwards.
func tableText(columns ...string) []string {
	lines := []string{strings.Join(columns, ",")}
	for row := range Archs201 {
		n := (row*7 + 3) % Archs201 // some order
		fields := make([]string, len(columns))
		for c, name := range columns {
			switch name {
			case archColumn:
				fields[c] = Arch201At(n).String()
			case indexColumn:
				fields[c] = fmt.Sprint(Archs201 - 1 - n)
			case isoColumn:
				fields[c] = fmt.Sprint(n / 3)
			default:
				fields[c] = fmt.Sprint(float64(n+c) / 1000)
			}
		}
		lines = append(lines, strings.Join(fields, ","))
	}
	return lines
}

var smallTable = tableText("index", "arch", "e12_c10valid_val", "nats_e200_c10_test", "train_time_s_e200_c10valid")

// trialLines has two trials of index 7 and three of index 9.
var trialLines = []string{
	"index,trial,c10valid_val,c100_valtest",
	"7,0,80.5,50.25", "7,1,81.5,51.25", "9,0,70,40", "9,1,71,41", "9,2,72,42",
}

// folder201 makes a folder of data sets, with a cache of its own.
func folder201(t *testing.T, means, trials []string) string {
	t.Helper()
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("HOME", cache)
	dir := t.TempDir()
	write201(t, dir, table201File, means)
	if trials != nil {
		write201(t, dir, trials201File, trials)
	}
	return dir
}

func write201(t *testing.T, dir, file string, lines []string) {
	t.Helper()
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	require.NoError(t, err)
	_, err = z.Write([]byte(strings.Join(lines, "\n") + "\n"))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	path := filepath.Join(dir, filepath.FromSlash(file))
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, out.Bytes(), 0o644))
}

var valid12 = Query201{TaskCIFAR10Valid, Valid, 12, ReleaseNB201, Mean}

func TestLoadNASBench201(t *testing.T) {
	dir := folder201(t, smallTable, trialLines)
	fresh, err := LoadNASBench201(dir)
	require.NoError(t, err)
	cached, err := LoadNASBench201(dir)
	require.NoError(t, err)
	require.Equal(t, fresh.Fingerprint, cached.Fingerprint)
	for _, b := range []*NASBench201{fresh, cached} {
		for _, n := range []int{0, 1, 4711, Archs201 - 1} {
			a := Arch201At(n)
			x, err := b.Accuracy(a, valid12)
			require.NoError(t, err)
			require.Equal(t, float64(n+2)/1000, x)
			x, err = b.Accuracy(a, Reported201[0])
			require.NoError(t, err)
			require.Equal(t, float64(n+3)/1000, x)
			x, err = b.EpochSeconds(a)
			require.NoError(t, err)
			require.Equal(t, float64(n+4)/1000/200, x)
			require.Equal(t, Archs201-1-n, b.Index(a))
			require.Equal(t, a, b.Arch(Archs201-1-n))
		}
		column, err := b.Column(valid12)
		require.NoError(t, err)
		require.Len(t, column, Archs201)
		x, err := b.Accuracy(b.Arch(9), Query201{TaskCIFAR100, ValidTest, 200, ReleaseNATS, 3})
		require.NoError(t, err)
		require.Equal(t, 42.0, x)
		require.Len(t, b.Queries(), 2+2*3)
	}
}

func TestNASBench201Errors(t *testing.T) {
	b, err := LoadNASBench201(folder201(t, smallTable, trialLines))
	require.NoError(t, err)
	a := b.Arch(7)
	for _, c := range []struct {
		query Query201
		want  string
	}{
		{Query201{}, `no task ""`},
		{Query201{TaskCIFAR10Valid, Test, 12, ReleaseNB201, Mean},
			"cifar10-valid valid after 12 epochs (NAS-Bench-201, mean over trials)"},
		{Query201{TaskCIFAR10Valid, Valid, 200, ReleaseNATS, Mean}, "trial 1"},
		{Query201{TaskCIFAR10, Test, 200, ReleaseNB201, Mean}, "NATS-Bench"},
		{Query201{TaskCIFAR10Valid, Valid, 200, ReleaseNATS, 3}, "expected fewer trials"},
	} {
		_, err := b.Accuracy(a, c.query)
		require.ErrorContains(t, err, c.want)
		_, err = b.Column(c.query)
		require.Error(t, err)
	}
	_, err = b.Params(a)
	require.ErrorContains(t, err, paramsColumn)

	b, err = LoadNASBench201(folder201(t, smallTable, nil))
	require.NoError(t, err, "the second file may be missing")
	_, err = b.Accuracy(a, Query201{TaskCIFAR10Valid, Valid, 200, ReleaseNATS, 1})
	require.ErrorIs(t, err, ErrMissing)
	require.ErrorContains(t, err, "nats_per_trial_e200.csv.gz")
}

func TestLoadNASBench201BrokenFiles(t *testing.T) {
	edit := func(line int, column int, text string) []string {
		lines := append([]string{}, smallTable...)
		fields := strings.Split(lines[line-1], ",")
		fields[column] = text
		lines[line-1] = strings.Join(fields, ",")
		return lines
	}
	trial := func(lines ...string) []string { return append(append([]string{}, trialLines...), lines...) }
	for name, c := range map[string]struct {
		means, trials []string
		want          string
	}{
		"NaN":               {edit(17, 2, "NaN"), nil, `line 17, column e12_c10valid_val: found "NaN"`},
		"negative":          {edit(2, 3, "-1"), nil, `line 2, column nats_e200_c10_test: found "-1"`},
		"fraction of 1":     {edit(2, 3, "101"), nil, "0 to 100 percent"},
		"empty":             {edit(2, 2, ""), nil, `found ""`},
		"no time":           {edit(3, 4, "0"), nil, "line 3, column train_time_s_e200_c10valid"},
		"endless":           {edit(3, 4, "+Inf"), nil, "greater than 0"},
		"index twice":       {edit(4, 0, "15621"), nil, "column index"},
		"index too high":    {edit(4, 0, "15625"), nil, "column index"},
		"index a fraction":  {edit(4, 0, "1.5"), nil, "line 4, column index"},
		"architecture":      {edit(5, 1, "|none~0|"), nil, "line 5, column arch"},
		"arch again":        {edit(5, 1, strings.Split(smallTable[5], ",")[1]), nil, "line 6, column arch"},
		"unknown column":    {edit(1, 2, "e12_c10valid_value"), nil, "line 1, column e12_c10valid_value"},
		"column twice":      {edit(1, 2, "nats_e200_c10_test"), nil, "found it twice"},
		"no arch":           {edit(1, 1, "iso_class"), nil, "column arch"},
		"a field too many":  {edit(9, 2, "1,2"), nil, "line 9, column train_time_s_e200_c10valid: found 6 fields"},
		"rows missing":      {smallTable[:15000], nil, "found 14999 rows"},
		"nothing":           {[]string{""}, nil, "line 1"},
		"trial out of turn": {smallTable, trial("7,3,80,50"), "line 7, column trial"},
		"a fourth trial":    {smallTable, trial("9,3,80,50"), "line 7, column trial"},
		"trial of nothing":  {smallTable, trial("15625,0,80,50"), "line 7, column index"},
		"trial NaN":         {smallTable, trial("8,0,80,nan"), "line 7, column c100_valtest"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := LoadNASBench201(folder201(t, c.means, c.trials))
			require.ErrorIs(t, err, ErrBroken)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "csv.gz")
		})
	}
}

func TestLoadNASBench201DamagedZip(t *testing.T) {
	for name, damage := range map[string]func([]byte) []byte{
		"truncated": func(raw []byte) []byte { return raw[:len(raw)*2/3] },
		"cut short": func(raw []byte) []byte { return raw[:len(raw)-1] },
		"a byte":    func(raw []byte) []byte { raw[len(raw)/2] ^= 0x40; return raw },
		"no gzip":   func([]byte) []byte { return []byte("index,arch\n") },
		"empty":     func([]byte) []byte { return nil },
	} {
		for _, file := range []string{table201File, trials201File} {
			t.Run(name+" "+file, func(t *testing.T) {
				dir := folder201(t, smallTable, trialLines)
				path := filepath.Join(dir, filepath.FromSlash(file))
				_, err := LoadNASBench201(dir) // so that a cache is there, and must not hide the damage
				require.NoError(t, err)
				raw, err := os.ReadFile(path)
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(path, damage(raw), 0o644))
				_, err = LoadNASBench201(dir)
				require.ErrorIs(t, err, ErrBroken)
				require.ErrorContains(t, err, path)
			})
		}
	}
}

func TestLoadNASBench201Missing(t *testing.T) {
	dir := t.TempDir()
	_, err := LoadNASBench201(dir)
	require.ErrorIs(t, err, ErrMissing)
	require.ErrorContains(t, err, filepath.Join(dir, "nasbench", "nasbench201.csv.gz"))
	require.ErrorContains(t, err, "put the file there")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "NAS-Bench-201-v1_1-096897.pth"), []byte("\x80\x02."), 0o644))
	_, err = LoadNASBench201(dir)
	require.ErrorIs(t, err, ErrMissing)
	require.ErrorContains(t, err, `run "go tool nasml data nasbench201 --from `+dir+`"`)
}

// Without a file of the user's there is the table that is part of the project, single
// trials included, of which the project's own trials are.
func TestLoadNASBench201Shipped(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("NASML_DATA", t.TempDir())
	b, err := LoadNASBench201("")
	require.NoError(t, err)
	require.Equal(t, NASBench201Fingerprint, b.Fingerprint)
	best, err := b.Column(Query201{TaskCIFAR10, Test, 200, ReleaseNATS, Mean})
	require.NoError(t, err)
	require.InDelta(t, 94.37, slices.Max(best), 0.01, "the best of CIFAR-10, as the benchmark's paper prints it")
	_, err = b.Accuracy(b.Arch(0), Query201{TaskCIFAR10Valid, Valid, 200, ReleaseNATS, 1})
	require.NoError(t, err)
}

func TestLoadNASBench201Unzipped(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "nasbench"), 0o755))
	text := strings.Join(tableText("arch", "e12_c10valid_val"), "\r\n") + "\r\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "nasbench", "nasbench201.csv"), []byte(text), 0o644))
	b, err := LoadNASBench201(dir)
	require.NoError(t, err)
	require.Equal(t, Arch201At(3), b.Arch(0), "without indices, the order of the rows")
	_, err = b.EpochSeconds(Arch201{})
	require.ErrorContains(t, err, secondsColumn)
}

// A damaged or impossible cache changes nothing.
func TestLoadNASBench201Cache(t *testing.T) {
	dir := folder201(t, smallTable, nil)
	_, err := LoadNASBench201(dir)
	require.NoError(t, err)
	kept, err := filepath.Glob(filepath.Join(os.Getenv("XDG_CACHE_HOME"), "nasml", "*"))
	require.NoError(t, err)
	if len(kept) == 0 {
		kept, err = filepath.Glob(filepath.Join(os.Getenv("HOME"), "Library", "Caches", "nasml", "*"))
		require.NoError(t, err)
	}
	require.Len(t, kept, 1)
	whole, err := os.ReadFile(kept[0])
	require.NoError(t, err)
	flipped := append([]byte{}, whole...)
	flipped[5000] ^= 1
	for _, damaged := range [][]byte{nil, whole[:len(whole)/2], flipped} {
		require.NoError(t, os.WriteFile(kept[0], damaged, 0o644))
		b, err := LoadNASBench201(dir)
		require.NoError(t, err)
		x, err := b.Accuracy(Arch201At(100), valid12)
		require.NoError(t, err)
		require.Equal(t, 0.102, x)
		again, err := os.ReadFile(kept[0])
		require.NoError(t, err)
		require.Equal(t, whole, again, "it is made anew")
	}
	t.Setenv("XDG_CACHE_HOME", filepath.Join(kept[0], "no folder"))
	t.Setenv("HOME", filepath.Join(kept[0], "no folder"))
	_, err = LoadNASBench201(dir)
	require.NoError(t, err)
}
