package data

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/gob"
	"fmt"
	"io"
	"math/bits"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/mathext/prng"
)

// imdb is the publisher's archive (Maas+ 2011) or a repacked one. The reviews have no published checksum: an archive is
// good if it has every review once, no other, and ratings that match the labels. A download must also be the
// publisher's file by its SHA-256, which many projects pin (MD5 7c2ac02c…); it was not checked against a real file. The
// 50,000 reviews without labels are ignored and may be missing.
var imdb = reviewSet(File{
	Path:    "aclImdb_v1.tar.gz",
	URLs:    []string{"https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz"},
	Zipped:  "c40f74a18d3b61f90feba1e17730e0d38e8b97c05fde7008942e91923d1658fe",
	Size:    84125825,
	Reviews: 12_500,
})

func reviewSet(archive File) set {
	both := part{files: []File{archive}, reviews: true}
	return set{Train: both, Test: both}
}

func (l *library) loadReviews(ctx context.Context, name Name, splits ...Split) ([]*Reviews, error) {
	for _, split := range splits {
		if p, err := l.sets.part(name, split); err != nil {
			return nil, err
		} else if !p.reviews {
			return nil, fmt.Errorf("found data set %s, which has images, expected %s or %s", name, IMDb, Synthetic)
		}
	}
	body, err := l.obtain(ctx, name, l.sets[name][Train].files[0])
	if err != nil {
		return nil, err
	}
	var reviews []review
	if err := gob.NewDecoder(bytes.NewReader(body)).Decode(&reviews); err != nil {
		return nil, err
	}
	parts := map[Split]*Reviews{Train: {Name: name, Split: Train}, Test: {Name: name, Split: Test}}
	for _, v := range reviews {
		r := parts[v.Split]
		r.Texts, r.Labels = append(r.Texts, string(v.Text)), append(r.Labels, v.Label)
		r.Ratings, r.IDs = append(r.Ratings, v.Rating), append(r.IDs, v.ID)
	}
	var all []*Reviews
	for _, split := range splits {
		all = append(all, newReviews(*parts[split]))
	}
	return all, nil
}

// review is a file of the archive. A list of them, by package gob, is the content that File.read returns.
type review struct {
	Split         Split
	Label, Rating uint8
	ID            int32
	Text          []byte
}

func (v review) order(w review) int {
	return cmp.Or(cmp.Compare(w.Split, v.Split), cmp.Compare(v.Label, w.Label), cmp.Compare(v.ID, w.ID))
}

const largestReview = 16 << 20 // bytes; the longest of IMDb has 14 thousand

// readReviews returns the encoded reviews of an archive in order: n in each of its four folders, with ids from 0 to
// n−1. Other files are ignored.
func readReviews(plain io.Reader, n int) ([]byte, error) {
	var all []review
	known := func() string { return fmt.Sprintf("%d of %d reviews", len(all), 4*n) }
	err := eachEntry(plain, known, func(name string, entry *tar.Header, content io.Reader) error {
		v, ok, err := reviewOf(name, entry)
		if err != nil || !ok {
			return err
		}
		if entry.Size > largestReview {
			return fmt.Errorf("found %d bytes in %s, expected at most %d", entry.Size, entry.Name, largestReview)
		}
		v.Text = make([]byte, entry.Size)
		if k, err := io.ReadFull(content, v.Text); err != nil {
			return fmt.Errorf("%s: %w", entry.Name, short(err, k, len(v.Text)))
		}
		all = append(all, v)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return packReviews(all, n)
}

var (
	reviewPath = regexp.MustCompile(`^aclImdb/(train|test)/(neg|pos)/([^/]+)$`)
	reviewName = regexp.MustCompile(`^([0-9]{1,7})_([0-9]{1,2})\.txt$`)
)

// reviewOf returns the review, without text, of an archive entry such as aclImdb/train/pos/ID_RATING.txt; ok is false
// for other files. Negative reviews have 1 to 4 stars, positive ones 7 to 10.
func reviewOf(name string, entry *tar.Header) (v review, ok bool, err error) {
	m := reviewPath.FindStringSubmatch(name)
	if m == nil || entry.Typeflag != tar.TypeReg {
		return v, false, nil
	}
	v.Split = Split(m[1])
	low, high := 1, 4
	if m[2] == "pos" {
		v.Label, low, high = 1, 7, 10
	}
	numbers := reviewName.FindStringSubmatch(m[3])
	if numbers == nil {
		return v, false, fmt.Errorf(
			"found %s in the archive, expected a name like 17_9.txt: the review's number and its stars", name)
	}
	id, _ := strconv.Atoi(numbers[1]) // digits, as the expression says
	rating, _ := strconv.Atoi(numbers[2])
	if rating < low || rating > high {
		return v, false, fmt.Errorf("found %s in the archive with %d stars, expected %d to %d for %s", name, rating,
			low, high, m[2])
	}
	v.ID, v.Rating = int32(id), uint8(rating)
	return v, true, nil
}

// packReviews sorts and encodes the reviews after checking that each is there once.
func packReviews(all []review, n int) ([]byte, error) {
	slices.SortStableFunc(all, review.order)
	var counts [4]int
	for i, v := range all {
		if i > 0 && v.order(all[i-1]) == 0 {
			return nil, fmt.Errorf("found the %s review %d of label %d twice in the archive, expected it once", v.Split,
				v.ID, v.Label)
		}
		folder := int(v.Label)
		if v.Split == Test {
			folder += 2
		}
		counts[folder]++
	}
	if counts != [4]int{n, n, n, n} {
		return nil, fmt.Errorf(
			"found %d, %d, %d and %d reviews in train/neg, train/pos, test/neg and test/pos of the archive, expected "+
				"%d in each", counts[0], counts[1], counts[2], counts[3], n)
	}
	for i, v := range all {
		if int(v.ID) != i%n {
			return nil, fmt.Errorf("found no %s review %d of label %d in the archive, expected the numbers 0 to %d",
				v.Split, i%n, v.Label, n-1)
		}
	}
	var body bytes.Buffer
	err := gob.NewEncoder(&body).Encode(all)
	return body.Bytes(), err
}

// Reviews is a set of texts with their sentiment.
type Reviews struct {
	Name        Name
	Split       Split
	Texts       []string
	Labels      []uint8 // 1: positive, 0: negative
	Ratings     []uint8 // stars, 1–10
	IDs         []int32 // the publisher's number within split and label
	Fingerprint string  // SHA-256 of texts, labels and ratings in their order: the same content has the same one
	Synthetic   bool    // not a publisher's data, and a figure made of it says so
}

func newReviews(r Reviews) *Reviews {
	h := sha256.New()
	fmt.Fprintf(h, "reviews %d\n", len(r.Texts))
	var head [10]byte
	for i, text := range r.Texts {
		head[0], head[1] = r.Labels[i], r.Ratings[i]
		binary.LittleEndian.PutUint64(head[2:], uint64(len(text)))
		h.Write(head[:])
		h.Write([]byte(text))
	}
	r.Fingerprint = fmt.Sprintf("%x", h.Sum(nil))
	return &r
}

// Len returns the number of reviews.
func (r *Reviews) Len() int { return len(r.Texts) }

// Signs returns the labels as −1 and 1.
func (r *Reviews) Signs() []int8 {
	signs := make([]int8, len(r.Labels))
	for i, label := range r.Labels {
		signs[i] = 2*int8(label) - 1
	}
	return signs
}

// Select returns the reviews of the given numbers, with their own fingerprint.
func (r *Reviews) Select(rows []int) (*Reviews, error) {
	part := *r
	part.Texts, part.Labels, part.Ratings, part.IDs = nil, nil, nil, nil
	if len(rows) == 0 {
		return nil, fmt.Errorf("%s %s: found a request for no reviews, expected some of %d", r.Name, r.Split, r.Len())
	}
	for _, i := range rows {
		if i < 0 || i >= r.Len() {
			return nil, fmt.Errorf("%s %s: found a request for review %d, expected 0 to %d", r.Name, r.Split, i,
				r.Len()-1)
		}
		part.Texts, part.Labels = append(part.Texts, r.Texts[i]), append(part.Labels, r.Labels[i])
		part.Ratings, part.IDs = append(part.Ratings, r.Ratings[i]), append(part.IDs, r.IDs[i])
	}
	return newReviews(part), nil
}

// LoadReviews returns the Train or Test part of a set of reviews: of IMDb 25,000 each, negative ones by id, then
// positive ones; of Synthetic 2,000 each. Its errors are those of Load.
func LoadReviews(ctx context.Context, name Name, split Split) (*Reviews, error) {
	all, err := loadReviews(ctx, name, split)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

func loadReviews(ctx context.Context, name Name, splits ...Split) ([]*Reviews, error) {
	if name == Synthetic {
		return reviewStandIn(splits)
	}
	l, err := open()
	if err != nil {
		return nil, err
	}
	return l.loadReviews(ctx, name, splits...)
}

// LoadReviewSplits returns the split of Khodak+ (App. B.2.2): all of Train, and of Test one half to validate on and one
// to test on; of IMDb 25,000, 12,500 and 12,500.
//
// As in the authors' code, both parts are shuffled by Python's random.shuffle with seed 0; the test set is the first
// half of Test then, the validation set the other. The file that they read has the reviews in an order of its own,
// which their publisher's archive does not tell. Here they are in the order of LoadReviews before they are shuffled, so
// that the halves are other ones.
func LoadReviewSplits(ctx context.Context, name Name) (train, valid, test *Reviews, err error) {
	parts, err := loadReviews(ctx, name, Train, Test)
	if err != nil {
		return nil, nil, nil, err
	}
	if train, err = parts[0].Select(PythonShuffle(parts[0].Len(), 0)); err != nil {
		return nil, nil, nil, err
	}
	order := PythonShuffle(parts[1].Len(), 0)
	half := len(order) / 2
	if test, err = parts[1].Select(order[:half]); err != nil {
		return nil, nil, nil, err
	}
	valid, err = parts[1].Select(order[half:])
	return train, valid, test, err
}

// PythonShuffle returns 0…n−1 as shuffled by Python 3's random.seed(seed) and random.shuffle.
func PythonShuffle(n int, seed uint32) []int {
	rng := prng.NewMT19937()
	rng.SeedFromKeys([]uint32{seed})
	order := span(0, n)
	for i := n - 1; i > 0; i-- {
		shift := 32 - bits.Len32(uint32(i+1)) // as few bits as hold i+1, until they are at most i
		j := rng.Uint32() >> shift
		for j > uint32(i) {
			j = rng.Uint32() >> shift
		}
		order[i], order[j] = order[j], order[i]
	}
	return order
}

func span(from, to int) []int {
	all := make([]int, to-from)
	for i := range all {
		all[i] = from + i
	}
	return all
}

// ReviewSpec says what SyntheticReviews writes.
type ReviewSpec struct {
	Words  int     // mean length of a review in words; if 0, 60
	Signal float64 // share of the words that tell the sentiment, in (0, 0.5]; if 0, 0.08
	Noise  float64 // share of these that tell the other one, in [0, 0.5); if 0, 0.25; if negative, none
}

func (s ReviewSpec) withDefaults() (ReviewSpec, error) {
	s.Words = cmp.Or(s.Words, 60)
	s.Signal = cmp.Or(s.Signal, 0.08)
	s.Noise = max(0, cmp.Or(s.Noise, 0.25))
	switch {
	case s.Words < 1:
		return s, fmt.Errorf("ReviewSpec.Words: found %d, expected at least 1", s.Words)
	case !(s.Signal > 0 && s.Signal <= 0.5):
		return s, fmt.Errorf("ReviewSpec.Signal: found %v, expected a share in (0, 0.5]", s.Signal)
	case !(s.Noise < 0.5):
		return s, fmt.Errorf("ReviewSpec.Noise: found %v, expected less than 0.5", s.Noise)
	}
	return s, nil
}

// Words of made-up reviews: telling ones by label, common ones, and syllables of names and rare words.
var (
	telling = [2][]string{
		strings.Fields("dull clumsy boring waste awful tiresome flat worst badly lifeless isn't mess"),
		strings.Fields("lovely gripping moving superb clever warm brilliant best finely wonderful must-see gem"),
	}
	common = strings.Fields(
		"the a of and to is in it this that was film story as with for but on you are not I he she they have at by " +
			"from one an who so scene plot actor music camera don't can't it's cannot there's")
	syllables = strings.Fields("ba der fin gol hem ka lor mi nes por qui ras sto tam ul vei wo xan yl zo")
	marks     = []string{". ", ". ", ", ", ", ", "! ", "... ", " -- ", "; ", ".<br /><br />"}
)

// SyntheticReviews writes n reviews of nonsense that have what configurations of a bag of n-grams differ in: capitals,
// punctuation, contractions, stop words, marks of a web page, a long tail of rare words. As many are positive as
// negative, in turns, and a few words tell which, not always rightly.
//
// Review i depends on seed, spec and i only. It returns an error if n is not positive or the spec cannot be written.
func SyntheticReviews(seed uint64, n int, spec ReviewSpec) (*Reviews, error) {
	spec, err := spec.withDefaults()
	if err != nil {
		return nil, err
	}
	if n < 1 {
		return nil, fmt.Errorf("SyntheticReviews: found n = %d, expected at least 1", n)
	}
	r := Reviews{Name: Synthetic, Split: Train, Synthetic: true}
	for i := range n {
		rng, label := stream(seed, ofReview, i), i%2
		r.Texts = append(r.Texts, write(rng, label, spec))
		r.Labels = append(r.Labels, uint8(label))
		r.Ratings = append(r.Ratings, uint8(1+6*label+rng.IntN(4)))
		r.IDs = append(r.IDs, int32(i/2))
	}
	return newReviews(r), nil
}

func write(rng *rand.Rand, label int, spec ReviewSpec) string {
	var b strings.Builder
	capital := true
	for range 1 + spec.Words/2 + rng.IntN(spec.Words) {
		word := common[min(rng.IntN(len(common)), rng.IntN(len(common)))]
		switch u := rng.Float64(); {
		case u < spec.Signal:
			side := label
			if rng.Float64() < spec.Noise {
				side = 1 - label
			}
			word = telling[side][rng.IntN(len(telling[side]))]
		case u < spec.Signal+0.3:
			word = syllables[rng.IntN(len(syllables))] + syllables[rng.IntN(len(syllables))] +
				syllables[min(rng.IntN(len(syllables)), rng.IntN(len(syllables)))]
		}
		if capital || rng.IntN(20) == 0 {
			word = strings.ToUpper(word[:1]) + word[1:]
		}
		b.WriteString(word)
		if capital = rng.IntN(10) == 0; capital {
			b.WriteString(marks[rng.IntN(len(marks))])
		} else {
			b.WriteByte(' ')
		}
	}
	return strings.TrimSpace(b.String()) + "."
}

const standInReviews = 2_000 // in each part

func reviewStandIn(splits []Split) ([]*Reviews, error) {
	all, err := SyntheticReviews(standInSeed, 2*standInReviews, ReviewSpec{})
	if err != nil {
		return nil, err
	}
	var parts []*Reviews
	for _, split := range splits {
		from, ok := map[Split]int{Train: 0, Test: standInReviews}[split]
		if !ok {
			return nil, unknownSplit(Synthetic, split, Train, Test)
		}
		part := *all
		part.Split = split
		selected, err := part.Select(span(from, from+standInReviews))
		if err != nil {
			return nil, err
		}
		parts = append(parts, selected)
	}
	return parts, nil
}
