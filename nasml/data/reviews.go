package data

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"strings"

	"gonum.org/v1/gonum/mathext/prng"
)

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
