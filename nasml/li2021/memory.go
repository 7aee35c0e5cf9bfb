package li2021

import (
	"cmp"

	"github.com/nasml/lab/nasml/internal/forecast"
	"github.com/nasml/lab/nasml/supernet"
)

// someImages stand for all images of a set that is not read for a forecast.
const someImages = 50000

// Memory is a forecast of the peak of a search by DARTS, bytes; 0 where the settings are none.
func (p SearchParams) Memory() float64 {
	s, err := p.settings("darts")
	if err != nil {
		return 0
	}
	return forecast.Search(s, cmp.Or(p.Examples, someImages)).Bytes
}

// Memory is a forecast of the peak of a training of DARTS' second-order cell, bytes; 0 where the settings are none.
func (p TrainParams) Memory() float64 {
	s, err := p.settings("cifar-10")
	if err != nil {
		return 0
	}
	return forecast.Training(s, supernet.Published["DARTS_V2"].Genotype, someImages, p.TestExamples, 10).Bytes
}
