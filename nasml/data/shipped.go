package data

import (
	"bytes"
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/nasml/lab/nasml/internal/images"
)

// A part of MNIST is shipped: the first 5,000 training images, the first 4,096 of the digits 0 and 1, and the first
// 1,000 test images. The first n images of a selection of classes are therefore the same, with the same fingerprint, as
// in the whole set. See shipped/README.md.
//
//go:embed shipped/*.gz
var shippedFiles embed.FS

// The sizes of the part.
const (
	shippedTrain = 5000 // training images of all classes
	shippedPairs = 4096 // training images of 0 and 1
	shippedTest  = 1000 // test images
)

func shippedIDX(split Split, what string) string {
	return fmt.Sprintf("shipped/mnist-%s-%s.gz", split, what)
}

func loadShipped(name Name, split Split) (*Images, error) {
	if name != MNIST || split != Train && split != Test {
		return nil, fmt.Errorf("no part of %s %s travels with the project, only of %s", name, split, MNIST)
	}
	im := Images{Name: name, Split: split, Height: 28, Width: 28, Channels: 1}
	var err error
	if im.Labels, err = shippedBytes(shippedIDX(split, "labels"), 1); err != nil {
		return nil, err
	}
	if im.Pixels, err = shippedBytes(shippedIDX(split, "images"), 3); err != nil {
		return nil, err
	}
	return images.New(im)
}

func shippedBytes(path string, axes int) ([]byte, error) {
	zipped, err := shippedFiles.ReadFile(path)
	if err != nil {
		return nil, err
	}
	plain, err := gunzip(zipped)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	shape := make([]int, axes)
	for i := range shape {
		shape[i] = int(binary.BigEndian.Uint32(plain[4+4*i:]))
	}
	return readIDX(bytes.NewReader(plain), shape)
}

// shipped returns the shipped part of the view, and a note on it.
func (v View) shipped() (im *Images, note string, err error) {
	part, err := loadShipped(v.Name, v.Split)
	if err != nil {
		return nil, "", err
	}
	of := func(first int) (*Images, error) { // of the first so many of the part
		im, err := part.Head(first)
		if err == nil && len(v.Classes) > 0 {
			im, err = im.Classes(v.Classes...)
		}
		return im, err
	}
	if im, err = of(part.Len()); err != nil {
		return nil, "", err
	}
	if v.First > 0 && v.First < im.Len() {
		if im, err = im.Head(v.First); err != nil {
			return nil, "", err
		}
	}
	note = fmt.Sprintf("The %d images are of the part of %s that travels with the project", im.Len(), v.Name)
	sure, err := of(v.shippedSure(part.Len()))
	if err != nil || v.First == 0 || v.First > sure.Len() {
		return im, note + fmt.Sprintf(", which are not all: `go tool nasml data %s` gets the publisher's.", v.Name), nil
	}
	return im, note + "; the whole set has the same in their place.", nil
}

// shippedSure is how many of the shipped images surely include all of the view's classes between them.
func (v View) shippedSure(all int) int {
	others := slices.ContainsFunc(v.Classes, func(class uint8) bool { return class > 1 })
	if v.Split == Train && (others || len(v.Classes) == 0) {
		return shippedTrain
	}
	return all
}

func (o *Opened) openShipped(cause error) error {
	if !o.view.OrShipped || !errors.Is(cause, ErrMissing) {
		return cause
	}
	im, note, err := o.view.shipped()
	if err != nil {
		return cause
	}
	if o.Fingerprint != "" && im.Fingerprint != o.Fingerprint {
		return cause // trials of the whole set are asked for
	}
	o.images, o.Note = im, note
	return nil
}
