package data

import (
	"bytes"
	"compress/gzip"
	"crypto/md5"
	"encoding/hex"
	"io"
	"net/http"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// numpyPickle is what Python 3.11 with numpy 2 wrote of
//
//	{'data': (arange(4*768)//12).astype(uint8).reshape(4, 768), 'labels': [3, 700, 1, 120], 'mean': full(768, 120.5)}
func numpyPickle(t testing.TB, file string) []byte {
	t.Helper()
	zipped, err := os.Open("testdata/" + file)
	require.NoError(t, err)
	defer zipped.Close()
	r, err := gzip.NewReader(zipped)
	require.NoError(t, err)
	pickle, err := io.ReadAll(r)
	require.NoError(t, err)
	return pickle
}

// batchPickle writes labels and white noise as numpy's protocol 3 does, with
// the parts of it that a test wants to be otherwise.
type batchPickle struct {
	rows, columns byte // of a shape whose second number is columns·256
	call          string
	dtype         string
	fortran       byte
	labels        []byte // instructions of the numbers
	bytes         int
}

func goodPickle() batchPickle {
	return batchPickle{
		rows:    2,
		columns: 3,
		call:    "numpy.core.multiarray\n_reconstruct\n",
		dtype:   "u1",
		fortran: 0x89,
		labels:  []byte{'K', 3, 'M', 0xe8, 3},
		bytes:   2 * 768,
	}
}

func (p batchPickle) encode() []byte {
	var b bytes.Buffer
	b.WriteString("\x80\x03}q\x00(X\x04\x00\x00\x00dataq\x01c" + p.call +
		"q\x02cnumpy\nndarray\nq\x03K\x00\x85q\x04C\x01bq\x05\x87q\x06Rq\x07(K\x01")
	b.Write([]byte{'K', p.rows, 'M', 0, p.columns, 0x86})
	b.WriteString("cnumpy\ndtype\nX\x02\x00\x00\x00" + p.dtype +
		"K\x00K\x01\x87R(K\x03X\x01\x00\x00\x00|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb")
	b.Write([]byte{p.fortran, 'B', byte(p.bytes), byte(p.bytes >> 8), 0, 0})
	for i := range p.bytes {
		b.WriteByte(byte(i / 768 * 100))
	}
	b.WriteString("tbX\x06\x00\x00\x00labels](")
	b.Write(p.labels)
	b.WriteString("eu.")
	return b.Bytes()
}

func TestPickledRecordsOfNumpy(t *testing.T) {
	for _, file := range []string{"imagenet16-protocol3.gz", "imagenet16-protocol4.gz"} {
		t.Run(file, func(t *testing.T) {
			records, err := pickledRecords(numpyPickle(t, file), 120)
			require.NoError(t, err)
			require.Len(t, records, 3*769, "label 700 is left out")
			for k, want := range []struct{ label, row int }{{2, 0}, {0, 2}, {119, 3}} {
				record := records[k*769 : (k+1)*769]
				require.EqualValues(t, want.label, record[0])
				for i, p := range record[1:] {
					require.Equal(t, byte((want.row*768+i)/12), p)
				}
			}
		})
	}
}

func TestLoadImageNet16(t *testing.T) {
	l := &library{dir: t.TempDir(), sets: registry{ImageNet16: set{}}, client: http.DefaultClient}
	images := recordFormat{labels: []int{120}, side: 16}.images
	file := func(base string, body []byte) File {
		sum := md5.Sum(body)
		f := imagenetFile(base, hex.EncodeToString(sum[:]))
		put(t, l.dir, f.Path, body)
		return f
	}
	one, two := numpyPickle(t, "imagenet16-protocol3.gz"), goodPickle().encode()
	l.sets[ImageNet16][Train] = part{
		files:  []File{file("train_data_batch_1", one), file("train_data_batch_2", two)},
		images: images,
	}
	l.sets[ImageNet16][Test] = part{files: []File{file("val_data", append(bytes.Clone(two), 0))}, images: images}

	im, err := l.load(t.Context(), ImageNet16, Train)
	require.NoError(t, err)
	require.Equal(t, []uint8{2, 0, 119, 2}, im.Labels, "1000 is left out too")
	require.Equal(t, []int{4, 16, 16, 3}, []int{im.Len(), im.Height, im.Width, im.Channels})
	require.Equal(t, []uint8{0, 21, 42, 0, 21, 42}, im.Image(0)[:6], "by pixel: 256/12 and 512/12")

	_, err = l.load(t.Context(), ImageNet16, Test)
	require.ErrorIs(t, err, ErrBroken)
	require.ErrorContains(t, err, "found something else than one dictionary in the pickle")
	put(t, l.dir, "imagenet16-120/val_data", two)
	_, err = l.load(t.Context(), ImageNet16, Test)
	require.ErrorContains(t, err, "found MD5 ")
	require.NoError(t, os.Remove(l.path(l.sets[ImageNet16][Test].files[0])))
	_, loaded := l.load(t.Context(), ImageNet16, Test)
	for _, err := range []error{loaded, l.fetch(t.Context(), ImageNet16, nil)} {
		require.ErrorIs(t, err, ErrMissing)
		require.ErrorContains(t, err, "imagenet16-120/val_data: the file is missing")
		require.ErrorContains(t, err,
			"https://image-net.org/download-images.php, which asks for an account, unzip them, and put it there")
	}

	from := t.TempDir()
	l.sets[ImageNet16][Test].files[0] = file("val_data", two)
	require.NoError(t, os.Rename(l.dir+"/imagenet16-120", from+"/ImageNet16"))
	require.NoError(t, l.takeOver(from, nil), "AutoDL-Projects' folder")
	_, err = l.load(t.Context(), ImageNet16, Test)
	require.NoError(t, err)
}

func TestPickledRecordsNamesWhatIsWrong(t *testing.T) {
	with := func(change func(p *batchPickle)) []byte {
		p := goodPickle()
		change(&p)
		return p.encode()
	}
	good := goodPickle().encode()
	_, err := pickledRecords(good, 120)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		pickle []byte
		want   string
	}{
		"runs a command": {[]byte("\x80\x03cos\nsystem\nX\x02\x00\x00\x00ls\x85R."),
			`found "os.system" in the pickle, ` +
				`expected only numpy arrays, numbers, texts and containers; nothing of it was run`},
		"evaluates": {with(func(p *batchPickle) { p.call = "builtins\neval\n" }), `found "builtins.eval"`},
		"calls an array": {with(func(p *batchPickle) { p.call = "numpy\nndarray\n" }),
			"found a call of something else"},
		"protocol 0": {[]byte("(dp0\nVdata\np1\n"), "found instruction 0x64 in the pickle"},
		"floats": {with(func(p *batchPickle) { p.dtype = "f4" }),
			"data: found another numpy array, expected one of bytes"},
		"Fortran order": {with(func(p *batchPickle) { p.fortran = 0x88 }), "data: found another numpy array"},
		"images of 32×32": {with(func(p *batchPickle) { p.columns = 12 }),
			"data: found a numpy array of 1536 bytes, expected one of N×768 of them"},
		"too few bytes": {with(func(p *batchPickle) { p.bytes-- }), "data: found a numpy array of 1535 bytes"},
		"too few labels": {with(func(p *batchPickle) { p.labels = []byte{'K', 1} }),
			"found a list of 1 for labels, expected a list of 2"},
		"label 0": {with(func(p *batchPickle) { p.labels = []byte{'K', 1, 'K', 0} }),
			"found 0 for the label of image 1, expected 1 to 1000"},
		"label 1001": {with(func(p *batchPickle) { p.labels = []byte{'M', 0xe9, 3, 'K', 0} }),
			"found 1001 for the label of image 0"},
		"label −1": {with(func(p *batchPickle) { p.labels = []byte{'K', 1, 'J', 255, 255, 255, 255} }),
			"found -1 for the label of image 1"},
		"label None": {with(func(p *batchPickle) { p.labels = []byte{'K', 1, 'N'} }),
			"found nothing for the label of image 1"},
		"a number":            {[]byte("\x80\x03K\x01."), "expected a dictionary"},
		"an empty dictionary": {[]byte("\x80\x03}."), "data: found nothing, expected a numpy array"},
		"nothing":             {nil, "found a pickle that is cut off"},
		"values without list": {[]byte("\x80\x03K\x01K\x02a."), "without the list"},
		"a list as a key":     {[]byte("\x80\x03}]K\x02s."), "found a list of 0 for a key"},
		"pop of nothing":      {[]byte("\x80\x03\x85"), "found an instruction without its values"},
		"mark after values":   {[]byte("\x80\x03K\x01(\x85"), "found an instruction without its values"},
		"no mark":             {[]byte("\x80\x03t"), "found an end without its beginning"},
		"endless name":        {[]byte("\x80\x03cnumpy"), "cut off in a name"},
		"2 GB of text": {[]byte("\x80\x03X\xff\xff\xff\x7fabc"),
			"cut off: 3 bytes are left, expected 2147483647"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := pickledRecords(c.pickle, 120)
			require.ErrorContains(t, err, c.want)
		})
	}
}

// Whatever a pickle says, reading it ends without a panic, and a part of a
// good one is never good.
func TestUnpickleOnAnyBytes(t *testing.T) {
	good := numpyPickle(t, "imagenet16-protocol4.gz")
	codes := make([]byte, 0, len(opcodes))
	for code := range 256 {
		if opcodes[byte(code)] != nil || code == '.' {
			codes = append(codes, byte(code))
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		cut := rapid.IntRange(0, len(good)-1).Draw(t, "cut")
		_, err := pickledRecords(good[:cut], 120)
		require.Error(t, err)
		changed := bytes.Clone(good)
		changed[rapid.IntRange(0, 160).Draw(t, "at")] = rapid.SampledFrom(codes).Draw(t, "byte")
		_, _ = pickledRecords(changed, 120)
		_, err = pickledRecords(rapid.SliceOf(rapid.SampledFrom(codes)).Draw(t, "pickle"), 120)
		require.Error(t, err)
	})
}
