// Package forecast says what searches and trainings of networks of cells will cost before anything of them is compiled:
// time and peak memory on this machine's processors, and time on a GPU that papers name.
package forecast

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/bilevel"
	"github.com/nasml/lab/nasml/internal/images"
	"github.com/nasml/lab/nasml/search"
	"github.com/nasml/lab/nasml/supernet"
	"github.com/nasml/lab/nasml/training"
)

// Cost is a forecast, good to about a factor of one and a half.
type Cost struct {
	Seconds float64 // on this machine's processors; 0 where a GPU computes, of which nothing is known
	Bytes   float64 // peak memory on processors
	GPU     float64 // on the GPU that papers name, s; 0 where none reports it
}

// Title is what a title says of trials that take so many seconds, as their bench knows better; 0: it does not.
func Title[T any](of func(T) Cost) func(missing []T, seconds float64) string {
	return func(missing []T, seconds float64) string {
		var sum Cost
		for _, t := range missing {
			sum = sum.Then(of(t))
		}
		if seconds > 0 {
			sum.Seconds = seconds
		}
		return sum.String()
	}
}

// Then is the cost of both, one after the other.
func (c Cost) Then(d Cost) Cost {
	return Cost{c.Seconds + d.Seconds, max(c.Bytes, d.Bytes), c.GPU + d.GPU}
}

// Search is the cost of one search on so many images, all that it has.
func Search(s search.Settings, images int) Cost {
	plan, _ := s.Plan(10) // what an invalid setting costs is nobody's question
	f := forecastOf(plan, images)
	return Cost{onProcessors(f.Wall(runtime.NumCPU())), f.Bytes, gpuSearch(plan, images)}
}

// Training is the cost of training a genotype's network; zero if the network is invalid.
func Training(s training.Settings, g supernet.Genotype, train, test, classes int) Cost {
	net, err := s.Network(g, max(10, classes))
	if err != nil {
		return Cost{}
	}
	return Cost{
		onProcessors(trainingSeconds(s, net, train, test)), trainingBytes(s, g, net, train+test),
		gpuTraining(s, g, train, classes),
	}
}

func onProcessors(seconds float64) float64 {
	if strings.Contains(os.Getenv("GOMLX_BACKEND"), "cuda") {
		return 0
	}
	return seconds
}

// secondsPerProduct is a core's time per multiply-add of an example's forward pass in training, in s: 17 s of two cores
// for eight epochs of the quick setting.
const secondsPerProduct = 7e-10

// secondsPerCell is the time to compile a cell, in s: three, which every other training, with another seed, saves.
const secondsPerCell = 1.5

func trainingSeconds(s training.Settings, net *supernet.CellNet, train, test int) float64 {
	tests := 1
	if s.EvaluateEvery > 0 {
		tests += (s.Epochs - 1) / s.EvaluateEvery
	}
	passes := float64(s.Epochs)*float64(train) + float64(tests)*float64(test)/3
	return secondsPerCell*float64(s.Cells) +
		passes*float64(net.MultiplyAdds())*secondsPerProduct/math.Pow(float64(runtime.NumCPU()), 0.85)
}

// String is what a title ends with, ", about 2 h and 1.1 GB on this machine's processors, or 10 min on a GTX 1080 Ti by
// the times that its papers report (forecast)"; of a GPU of this machine's the named one alone, by which a reader can
// judge; empty for less than five minutes, and where nothing is known.
func (c Cost) String() string {
	const papers = " on " + gpu + " by the times that its papers report"
	var text string
	switch {
	case c.Seconds >= 300:
		text = fmt.Sprintf(", about %s and %.1f GB on this machine's processors", Roughly(c.Seconds), c.Bytes/1e9)
		if c.GPU >= 60 {
			text += ", or " + Roughly(c.GPU) + papers
		}
	case c.Seconds == 0 && c.GPU >= 300:
		text = ", about " + Roughly(c.GPU) + papers
	default:
		return ""
	}
	return text + " (forecast)"
}

// Roughly is a time with as many digits as a forecast has.
func Roughly(seconds float64) string {
	switch {
	case seconds < 5400:
		return fmt.Sprintf("%.0f min", seconds/60)
	case seconds < 48*3600:
		return fmt.Sprintf("%.0f h", seconds/3600)
	}
	return fmt.Sprintf("%.0f days", seconds/86400)
}

// Trained is how many of a search's images an epoch passes through its weights.
func Trained(s search.Settings, images int) int {
	switch {
	case s.Parts != (search.Shares{}):
		return s.Parts.Train
	case s.Bilevel.Level == bilevel.ERM:
		return images
	}
	return images / 2
}

// Units are the cost of a search in thousands of passes of an image.
func Units(s search.Settings, images int) int {
	passes := 1
	if search.Methods[s.Method].Architecture != search.NoPass {
		passes = 2
	}
	return max(1, s.Epochs*Trained(s, images)*passes/1000)
}

// Kind is the kind of a space, a name of search.Kinds; empty where it is unknown.
func Kind(space string) string {
	for name, kind := range search.Kinds {
		if slices.Contains(kind.Names(), space) {
			return name
		}
	}
	return ""
}

// gpu is the card of the papers' reports, from which the cost on it is forecast by multiply-adds: good for networks of
// about the papers' size; smaller ones leave a GPU idle.
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

// correction corrects package search's model of a search by what was measured since: processor time of compiling, of
// steps and of evaluations, told apart, at whole searches of two epochs on two processors that had other work too, in
// units of the model's own, and peak memory of the process. It has a factor for each part of the model of a kind of
// space, and what instruments take.
type correction struct {
	// Where operations see a part of the channels: of what is counted of maps, to which copying comes that is not, and
	// of what an operation takes of every batch.
	maps, operations float64
	compiling        float64
	// What curvature and instruments add, which differentiate twice: compiling, as a multiple of the model's, and peak
	// memory, bytes a cell.
	twice, bytes float64
}

var corrections = map[string]correction{
	"nasbench201": {1, 1, 4.9, 30, 4.2e8},
	"cells":       {2.3, 0.53, 2, 20, 8.6e8},
	"oneshot":     {1.8, 0.78, 1.4, 20, 8.6e8},
}

// inPieces is what an hour of a core adds to the memory of a batch's maps, as a multiple of it: the heap falls into
// pieces. More hours add no more.
const inPieces = 1.3

// passesOfProduct is how many passes of a batch one product with a Hessian takes.
const passesOfProduct = 4

func forecastOf(s search.Plan, images int) search.Forecast {
	c, known := corrections[Kind(s.Space)]
	if !known { // a reader's own
		c = corrections["nasbench201"]
	}
	if s.Partial <= 1 { // as the model was fitted to
		c.maps, c.operations = 1, 1
	}
	f, compiling := s.Forecast(images), compilingOf(s)
	maps, whole := imageOf(s, math.MaxInt), imageOf(s, s.Batch)
	step := c.maps*maps + c.operations*(whole-maps) // an image's
	f.Work = (f.Work-compiling)/whole*step + c.compiling*compiling
	one := s
	one.Batch = 1
	f.Bytes += inPieces * min(1, f.Work/3600) * (f.Bytes - one.Forecast(images).Bytes)
	if products := s.Curvature + s.Instruments; products > 0 {
		evaluations := 1.
		if s.EvaluateEvery > 0 {
			evaluations += float64(s.Epochs / s.EvaluateEvery)
		}
		f.Work += evaluations*float64(products*passesOfProduct*s.Batch)*step + c.twice*compiling
		f.Bytes += c.bytes * float64(s.Cells)
	}
	return f
}

func imageOf(s search.Plan, batch int) float64 {
	return 3 * s.ForecastEvaluations(1, batch).Work
}

func compilingOf(s search.Plan) float64 {
	s.Parts, s.Candidates = search.Shares{}, 0
	return s.Forecast(0).Work
}

// Fitted to the first five runs of TestMemoryOfTrainings.
const (
	bytesAlways  = 5.3e8 // program and compiler, without cells
	bytesCell    = 5.5e7 // likewise, a cell
	bytesElement = 7.5   // an example's elements that are kept for the backward pass, with their temporaries
	bytesWeight  = 16    // a weight with its gradient, its velocity and its next value
)

// mapsOf is how many maps an operation keeps for its backward pass.
var mapsOf = map[string]float64{"sep": 2, "dil": 1, "max": 1, "avg": 1, "skip": 0}

func trainingBytes(s training.Settings, g supernet.Genotype, net *supernet.CellNet, of int) float64 {
	pixels := 3 * float64(s.Image*s.Image*of)
	if s.Crop != (images.Crop{}) {
		pixels = 0 // they are files
	}
	return bytesAlways + bytesCell*float64(s.Cells) + bytesElement*elements(s, g)*float64(s.Batch) +
		bytesWeight*float64(net.Parameters()) + pixels
}

// elements counts the numbers that an example's maps have: a cell's two inputs, what its operations keep, its nodes.
func elements(s training.Settings, g supernet.Genotype) (n float64) {
	side, width := float64(s.Image), float64(s.Channels)
	if strings.HasPrefix(s.Stem, "imagenet") {
		side /= 8
	}
	for i := range s.Cells {
		cell := g.Normal
		if i == s.Cells/3 || i == 2*s.Cells/3 {
			side, width, cell = side/2, 2*width, g.Reduce
		}
		maps := 2 + float64(len(cell.Concat))
		for _, gene := range cell.Genes {
			kind, _, _ := strings.Cut(gene.Op, "_")
			maps += mapsOf[kind]
		}
		n += maps * side * side * width
	}
	return n
}
