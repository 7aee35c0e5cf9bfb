package data

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// reviewEntries are an archive of n reviews in each folder, with what the
// publisher's has besides, in an order that is not that of the ids.
func reviewEntries(n int) []entry {
	all := []entry{{"aclImdb/", nil, tar.TypeDir}, {"aclImdb/README", []byte("Large Movie Review Dataset"), 0},
		{"aclImdb/train/urls_pos.txt", []byte("http://"), 0}, {"aclImdb/train/unsup/7_0.txt", []byte("no label"), 0}}
	for _, split := range []string{"test", "train"} {
		for k, label := range []string{"neg", "pos"} {
			for id := n - 1; id >= 0; id-- {
				name := fmt.Sprintf("aclImdb/%s/%s/%d_%d.txt", split, label, id, 1+6*k+id%4)
				all = append(all, entry{name, fmt.Appendf(nil, "%s %s %d: a filme, né?", split, label, id), 0})
			}
		}
	}
	return all
}

// reviewLibrary is a library whose only set has n reviews in each folder, with
// the archive in its place.
func reviewLibrary(t *testing.T, n int, archive []byte) *library {
	t.Helper()
	f := imdb[Train].files[0]
	f.Reviews, f.URLs, f.Zipped = n, nil, ""
	l := &library{dir: t.TempDir(), sets: registry{IMDb: reviewSet(f)}, client: http.DefaultClient, stall: time.Minute}
	if archive != nil {
		require.NoError(t, os.WriteFile(l.path(f), archive, 0o644))
	}
	return l
}

func TestLoadReviews(t *testing.T) {
	l := reviewLibrary(t, 12, gz(tarball(reviewEntries(12)...)))
	parts, err := l.loadReviews(t.Context(), IMDb, Test, Train)
	require.NoError(t, err)
	test, train := parts[0], parts[1]
	require.Equal(t, 24, test.Len())
	for i, text := range test.Texts {
		label, id := i/12, i%12
		require.Equal(t, fmt.Sprintf("test %s %d: a filme, né?", []string{"neg", "pos"}[label], id), text)
		require.Equal(t, uint8(label), test.Labels[i])
		require.Equal(t, uint8(1+6*label+id%4), test.Ratings[i])
		require.Equal(t, int32(id), test.IDs[i])
	}
	require.Equal(t, int8(-1), test.Signs()[0])
	require.Equal(t, int8(1), test.Signs()[23])

	require.Equal(t, "train neg 0: a filme, né?", train.Texts[0])
	require.NotEqual(t, train.Fingerprint, test.Fingerprint)

	_, err = l.loadReviews(t.Context(), IMDb, Test1000)
	require.ErrorContains(t, err, `found split "test-1000" of data set imdb, expected one of ["train" "test"]`)
	_, err = l.load(t.Context(), IMDb, Train)
	require.ErrorContains(t, err, "which has texts, expected one of")
	l.sets[MNIST] = publishers[MNIST]
	_, err = l.loadReviews(t.Context(), MNIST, Train)
	require.ErrorContains(t, err, "which has images, expected imdb or synthetic")
}

func TestReviewsKeepAnyText(t *testing.T) {
	entries := reviewEntries(1)
	entries[len(entries)-1].body = nil
	entries[len(entries)-2].body = []byte("\xff not UTF-8 \x00")
	l := reviewLibrary(t, 1, tarball(entries...)) // not zipped, under the same name
	train, err := l.loadReviews(t.Context(), IMDb, Train)
	require.NoError(t, err)
	require.Equal(t, []string{"\xff not UTF-8 \x00", ""}, train[0].Texts)
}

func TestReviewArchivesThatAreWrong(t *testing.T) {
	whole := gz(tarball(reviewEntries(3)...))
	with := func(change func(all []entry) []entry) []byte { return gz(tarball(change(reviewEntries(3))...)) }
	add := func(e entry) []byte { return with(func(all []entry) []entry { return append(all, e) }) }
	flipped := bytes.Clone(whole)
	flipped[len(flipped)-6] ^= 1 // the sum at the end
	for name, c := range map[string]struct {
		archive []byte
		says    string
	}{
		"cut off":   {whole[:len(whole)/2], "of 12 reviews and then no more of a tar archive"},
		"wrong sum": {flipped, "gzip: invalid checksum"},
		"not a tar": {[]byte("<html>404</html>"), "found 0 of 12 reviews and then no more of a tar archive"},
		"empty":     {nil, "found a file of 0 bytes"},
		"climbs out": {add(entry{"aclImdb/../../home/.profile", nil, 0}),
			`found "aclImdb/../../home/.profile" in the archive, a name that leads out of it`},
		"absolute": {add(entry{"/etc/cron.d/x", nil, 0}), "a name that leads out of it"},
		"link": {add(entry{"aclImdb/train/pos/link", nil, tar.TypeSymlink}),
			"which is neither a file nor a folder"},
		"hard link": {add(entry{"aclImdb/train/pos/9_9.txt", nil, tar.TypeLink}),
			"which is neither a file nor a folder"},
		"one more": {add(entry{"aclImdb/train/pos/3_9.txt", nil, 0}),
			"found 3, 4, 3 and 3 reviews in train/neg, train/pos, test/neg and test/pos of the archive, " +
				"expected 3 in each"},
		"one less": {with(func(all []entry) []entry { return all[:len(all)-1] }), "found 3, 2, 3 and 3 reviews"},
		"twice": {add(entry{"aclImdb/./train/pos/1_9.txt", nil, 0}),
			"found the train review 1 of label 1 twice in the archive, expected it once"},
		"number missing": {with(func(all []entry) []entry {
			all[len(all)-1].name = "aclImdb/train/pos/5_9.txt"
			return all
		}), "found no train review 0 of label 1 in the archive, expected the numbers 0 to 2"},
		"stars": {with(func(all []entry) []entry {
			all[len(all)-1].name = "aclImdb/train/pos/0_4.txt"
			return all
		}), "with 4 stars, expected 7 to 10 for pos"},
		"name": {add(entry{"aclImdb/test/neg/first.txt", nil, 0}), "expected a name like 17_9.txt"},
	} {
		t.Run(name, func(t *testing.T) {
			l := reviewLibrary(t, 3, c.archive)
			if c.archive == nil {
				require.NoError(t, os.WriteFile(filepath.Join(l.dir, "aclImdb_v1.tar.gz"), nil, 0o644))
			}
			_, err := l.loadReviews(t.Context(), IMDb, Train)
			require.ErrorIs(t, err, ErrBroken)
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, err, "aclImdb_v1.tar.gz", "names the file")
			require.ErrorContains(t, err, "go tool nasml data imdb", "says what to do")
		})
	}
}

func TestReviewArchiveMissing(t *testing.T) {
	f := imdb[Train].files[0]
	l := reviewLibrary(t, 3, nil)
	_, err := l.loadReviews(t.Context(), IMDb, Train)
	require.ErrorIs(t, err, ErrMissing)
	require.ErrorContains(t, err, f.Path)
}

// A file too large is refused by its head, before its content is read.
func TestReviewThatIsTooLarge(t *testing.T) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	require.NoError(
		t,
		w.WriteHeader(&tar.Header{Name: "aclImdb/test/neg/0_1.txt", Typeflag: tar.TypeReg, Size: 1 << 40}),
	)
	_, err := readReviews(&b, 1)
	require.ErrorContains(t, err, "found 1099511627776 bytes in aclImdb/test/neg/0_1.txt")
}

// What is downloaded has to be the publisher's file, byte for byte.
func TestDownloadedReviewsHaveThePublishersSum(t *testing.T) {
	archive := gz(tarball(reviewEntries(2)...))
	server := httptest.NewServer(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(archive) }),
	)
	defer server.Close()
	for name, c := range map[string]struct{ sum, says string }{
		"right": {sumOf(archive), ""},
		"wrong": {strings.Repeat("0", 64), "found SHA-256 " + sumOf(archive) + " of the file as it is, expected 0000"},
	} {
		t.Run(name, func(t *testing.T) {
			l := reviewLibrary(t, 2, nil)
			f := l.sets[IMDb][Train].files[0]
			f.URLs, f.Zipped = []string{server.URL}, c.sum
			l.sets[IMDb] = reviewSet(f)
			train, err := l.loadReviews(context.Background(), IMDb, Train)
			if c.says == "" {
				require.NoError(t, err)
				require.Equal(t, 4, train[0].Len())
				return
			}
			require.ErrorContains(t, err, c.says)
		})
	}
}

// Orders that Python 3 gave: random.seed(s); random.shuffle(x).
func TestPythonShuffle(t *testing.T) {
	require.Equal(t, []int{7, 8, 1, 5, 3, 4, 2, 0, 9, 6}, PythonShuffle(10, 0))
	require.Equal(t, []int{6, 8, 9, 7, 5, 3, 0, 4, 1, 2}, PythonShuffle(10, 1))
	long := PythonShuffle(25_000, 0)
	require.Equal(t, []int{22272, 20482, 20599, 19706, 19999}, long[:5])
	require.Equal(t, []int{0}, PythonShuffle(1, 0))
	require.Empty(t, PythonShuffle(0, 0))
}

func TestReviewSplits(t *testing.T) {
	train, valid, test, err := LoadReviewSplits(t.Context(), Synthetic)
	require.NoError(t, err)
	require.Equal(t, [3]int{2000, 1000, 1000}, [3]int{train.Len(), valid.Len(), test.Len()})
	seen := map[string]bool{}
	for _, part := range []*Reviews{train, valid, test} {
		require.True(t, part.Synthetic)
		for i := range part.Len() {
			seen[part.Texts[i]] = true
		}
	}
	require.Len(t, seen, 4000, "no review is in two parts")
	whole, err := LoadReviews(t.Context(), Synthetic, Test)
	require.NoError(t, err)
	order := PythonShuffle(2000, 0)
	require.Equal(t, whole.Texts[order[0]], test.Texts[0])
	require.Equal(t, whole.Texts[order[1000]], valid.Texts[0])
	_, err = LoadReviews(t.Context(), Synthetic, Test1000)
	require.ErrorContains(t, err, `expected one of ["train" "test"]`)
}

func TestSyntheticReviews(t *testing.T) {
	r, err := SyntheticReviews(3, 400, ReviewSpec{})
	require.NoError(t, err)
	more, err := SyntheticReviews(3, 500, ReviewSpec{})
	require.NoError(t, err)
	require.Equal(t, r.Texts, more.Texts[:400], "more reviews leave the first ones as they are")
	require.NotEqual(t, r.Fingerprint, more.Fingerprint)
	words, right, wrong := 0, 0, 0
	for i, text := range r.Texts {
		words += len(strings.Fields(text))
		for _, w := range telling[1] {
			if n := strings.Count(text, " "+w+" "); r.Labels[i] == 1 {
				right += n
			} else {
				wrong += n
			}
		}
	}
	require.InDelta(t, 60, float64(words)/400, 6)
	require.InDelta(t, 0.25, float64(wrong)/float64(wrong+right), 0.05)

	for says, spec := range map[string]ReviewSpec{
		"Words: found -1":   {Words: -1},
		"Signal: found 0.6": {Signal: 0.6},
		"Noise: found 0.5":  {Noise: 0.5},
	} {
		_, err := SyntheticReviews(1, 2, spec)
		require.ErrorContains(t, err, says)
	}
	_, err = SyntheticReviews(1, 0, ReviewSpec{})
	require.ErrorContains(t, err, "found n = 0")
}

func TestSelectReviews(t *testing.T) {
	r, err := SyntheticReviews(3, 4, ReviewSpec{Words: 3})
	require.NoError(t, err)
	same, err := r.Select([]int{0, 1, 2, 3})
	require.NoError(t, err)
	require.Equal(t, r.Fingerprint, same.Fingerprint)
	twice, err := r.Select([]int{3, 3})
	require.NoError(t, err)
	require.Equal(t, []string{r.Texts[3], r.Texts[3]}, twice.Texts)
	_, err = r.Select(nil)
	require.ErrorContains(t, err, "no reviews")
	_, err = r.Select([]int{4})
	require.ErrorContains(t, err, "found a request for review 4, expected 0 to 3")
}
