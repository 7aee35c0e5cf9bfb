// Package oymak2021 reproduces the figures, tables and theorems of Oymak, Li,
// Soltanolkotabi, "Generalization Guarantees for Neural Architecture Search
// with Train-Validation Split", ICML 2021 (Oymak+).
package oymak2021

import (
	"embed"
	"fmt"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/oymak2021/internal/pixels"
)

// ofPaper is what its entries have in common.
var ofPaper = lab.Paper{ID: "oymak2021", Name: "Oymak+ 2021", Shipped: shippedRecords}

// shippedRecords are the trials that are shipped: long runs that nobody
// should have to repeat to see a figure or a theorem.
//
//go:embed records
var shippedRecords embed.FS

// pixelsOf is what trials know of images.
func pixelsOf(im *data.Images) *pixels.Images {
	return &pixels.Images{
		Name: fmt.Sprintf("%s %s", im.Name, im.Split), Size: im.Height * im.Width * im.Channels,
		Pixels: im.Pixels, Labels: im.Labels,
	}
}
