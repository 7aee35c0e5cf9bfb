package forecast

import (
	"github.com/nasml/lab/nasml/search"
	"github.com/nasml/lab/nasml/supernet"
	"github.com/nasml/lab/nasml/training"
)

// This file says what searches and trainings cost on a GPU that papers name: by
// multiply-adds, from what those report of their own. It is good for networks of about
// the papers' size; smaller ones leave a GPU idle.

// gpu is the card of both reports.
const gpu = "a GTX 1080 Ti"

// gpuSearches are reported search times in s on 50,000 images, by type of space.
var gpuSearches = map[string]struct {
	seconds  float64
	settings func() (search.Settings, error)
}{
	// four searches of first order in 1.5 days (Liu+ 2019, Table 1)
	"cells": {1.5 * 86400 / 4, func() (search.Settings, error) {
		return search.AsPaperOn(supernet.DARTS.Name, "darts")
	}},
	// DARTS-V1 (Dong & Yang 2020, Table 5)
	"nasbench201": {10890, func() (search.Settings, error) { return search.AsBenchmark(), nil }},
}

// gpuSearch is the time of a search on that GPU, in s; 0 if no paper reports one of its kind.
func gpuSearch(s search.Plan, images int) float64 {
	report, ok := gpuSearches[Kind(s.Space)]
	if !ok {
		return 0
	}
	settings, err := report.settings()
	if err != nil {
		return 0
	}
	reference, err := settings.Plan(10)
	if err != nil || s.Opened == nil {
		return 0
	}
	return report.seconds * products(s, images) / products(reference, 50000)
}

func products(s search.Plan, images int) float64 {
	perImage, _ := s.Opened.Size()
	return perImage * float64(Units(s.Settings, images))
}

// gpuTraining is the time of a training on that GPU, in s. DARTS' cell with 36 channels takes 600 epochs in 1.5 days,
// and 250 on ImageNet in 12 (Liu+ 2019, Section 3.3 and Appendix A).
func gpuTraining(s training.Settings, g supernet.Genotype, images, classes int) float64 {
	reference, of, seconds := training.AsCode["cifar-10/darts"], 50000, 1.5*86400
	if s.Stem == "imagenet" {
		reference, of, seconds = training.AsCode["imagenet/darts"], 1281167, 12*86400
	}
	theirs, err := reference.Network(supernet.Published["DARTS_V2"].Genotype, 10)
	if err != nil {
		return 0
	}
	ours, err := s.Network(g, max(classes, 2))
	if err != nil {
		return 0
	}
	work := float64(s.Epochs) * float64(images) * float64(ours.MultiplyAdds())
	return seconds * work / (float64(reference.Epochs) * float64(of) * float64(theirs.MultiplyAdds()))
}
