package search

import (
	"math"
	"runtime"
	"sync"
	"time"

	"github.com/nasml/lab/nasml/bilevel"
	"github.com/nasml/lab/nasml/internal/images"
)

// Forecast is the cost of a search on this machine's processors, before anything is compiled: a model with measured
// constants, good to about a factor of two. It does not cover GPUs.
type Forecast struct {
	Work  float64 // processor seconds
	Bytes float64 // peak memory
}

// Wall is the time on n processors, s. XLA's loops over maps keep two of them busy about nine tenths of the time.
func (f Forecast) Wall(n int) float64 { return f.Work / math.Pow(float64(n), 0.85) }

// Constants of the model, fitted to measured steps (see BenchmarkForecast). Work is in units of the probe, so that a
// slow machine has a slow forecast.
const (
	probesPerProduct = 2.2e-8 // probes a multiply-add of a convolution, forward and backward
	bytesPerElement  = 4.8    // an example's elements that are kept for the backward pass, with their temporaries
	bytesAlways      = 3.1e8  // program and compiler, without cells
)

// costs are the constants of a kind of space, which also differ in what counts as operations and elements of maps: see
// operations and Size.
type costs struct {
	element   float64 // probes an element of a map, forward and backward
	operation float64 // probes an operation of a batch's forward and backward pass, however small
	compiling float64 // probes a cell, to compile
	bytes     float64 // program and compiler, a cell
}

var costsOf = map[string]costs{
	"nasbench201": {element: 6e-7, operation: 0.08, compiling: 400, bytes: 3e7},
	"cells":       {element: 2e-6, operation: 0.04, compiling: 1600, bytes: 1.3e8},
	"oneshot":     {element: 8e-7, operation: 0.04, compiling: 900, bytes: 3e7},
}

// Forecast is the cost of one search on a number of images (both halves).
func (p Plan) Forecast(of int) Forecast {
	_, elements := p.size()
	return Forecast{
		Work: probe() * p.probes(of),
		Bytes: bytesAlways + p.costs().bytes*float64(p.Cells) + bytesPerElement*elements*float64(p.Batch) +
			p.pixels(of),
	}
}

// costs are those of the space's kind. A reader's own kind costs as NAS-Bench-201.
func (p Plan) costs() costs {
	kind, _, err := p.kind()
	if c, ok := costsOf[kind]; ok && err == nil {
		return c
	}
	return costsOf["nasbench201"]
}

// pixels are the bytes of images in memory; 0 if they stay in files.
func (s Settings) pixels(of int) float64 {
	if s.Crop != (images.Crop{}) {
		return 0
	}
	return 3 * float64(s.Image*s.Image*of)
}

// probes is the work of a search in runs of the probe.
func (p Plan) probes(of int) float64 {
	m := Methods[p.Method]
	split, valid := of/2, of/2 // images that pass once or twice a step, and those that are evaluated
	if p.Parts != (Shares{}) {
		split, valid = p.Parts.Train, p.Parts.Validation
	}
	if p.Bilevel.Level == bilevel.ERM {
		split = of
	}
	compiled := float64(p.Cells)
	if m.Architecture == NoPass {
		compiled /= 2
	}
	evaluations := 1.
	if p.EvaluateEvery > 0 {
		evaluations += float64(p.Epochs / p.EvaluateEvery)
	}
	forward := 2 * float64(valid) / 3 // θ as it is, and one operation an edge: without gradients
	forward = forward*evaluations + float64(p.Candidates*p.CandidateBatch)/3
	return p.pass(p.Batch)*(float64(p.Epochs)*p.passes()*float64(split)+forward) + p.costs().compiling*compiled
}

// passes are how often the supernet is run forward and backward in a step.
func (s Settings) passes() float64 {
	passes := 1.
	if Methods[s.Method].Architecture != NoPass {
		passes = 2
	}
	switch s.Bilevel.Hypergradient {
	case "unrolled": // two steps and a Hessian–vector product more
		passes += 4
	case "finite-difference": // the same by two gradients
		passes += 3
	}
	return passes
}

// pass is the work of an image's forward and backward pass in a batch, in probes.
func (p Plan) pass(batch int) float64 {
	products, elements := p.size()
	c := p.costs()
	return probesPerProduct*products + c.element*elements + c.operation*p.operations()/float64(batch)
}

// ForecastEvaluations is the cost of evaluating images with shared weights, batch by batch, without gradients.
func (p Plan) ForecastEvaluations(images, batch int) Forecast {
	return Forecast{Work: probe() * p.pass(batch) * float64(images) / 3}
}

// operations are the candidate operations of all cells, or their maps if nodes have operations; 0 in a reader's own
// kinds of spaces.
func (p Plan) operations() float64 {
	switch c := p.Opened.(type) {
	case nasbench201:
		return float64(3 * c.Config.Cells * len(c.Config.Space.Edges) * len(c.Config.Space.Ops))
	case cells:
		return float64(c.config.Cells * len(c.space.Edges()) * c.space.Options())
	case oneShot:
		through, whole := c.maps()
		return float64(c.config.Cells) * (through + whole)
	}
	return 0
}

// size is Space.Size, or 0 without a space.
func (p Plan) size() (products, elements float64) {
	if p.Opened == nil { // Check tells
		return 0, 0
	}
	return p.Opened.Size()
}

var kernelArea = map[string]float64{"nor_conv_1x1": 1, "nor_conv_3x3": 9}

// probe is the time in seconds of a loop over a map that fits into no cache: the least of many tries, since others may
// be at work. It is measured once, so that all forecasts of a process add up.
var probe = sync.OnceValue(func() float64 {
	x, y := make([]float32, 1<<22), make([]float32, 1<<22)
	best := math.Inf(1)
	for range 25 {
		begin := time.Now()
		for i := range x {
			y[i] = 0.5*y[i] + x[i]
		}
		best = min(best, time.Since(begin).Seconds())
	}
	runtime.KeepAlive(y)
	return best
})
