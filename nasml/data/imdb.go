package data

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"encoding/gob"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
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
