// Package forecast says what searches and trainings of networks of cells will cost
// before anything of them is compiled: time and peak memory on this machine's
// processors, and time on a GPU that papers name.
package forecast

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/bilevel"
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

// String is what a title ends with, ", about 2 h and 1.1 GB on this machine's
// processors, or 10 min on a GTX 1080 Ti by the times that its papers report
// (forecast)"; of a GPU of this machine's the named one alone, by which a reader can
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
