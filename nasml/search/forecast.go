package search

import (
	"math"
	"runtime"
	"time"

	"github.com/nasml/lab/nasml/bilevel"
	"github.com/nasml/lab/nasml/images"
)

// Forecast is what a search will cost on this machine's processors, before
// anything of it is compiled. It is a model with four measured constants, good
// to about a factor of two, and says nothing about a GPU.
type Forecast struct {
	Work  float64 // processor seconds
	Bytes float64 // peak memory
}

// Wall is the time that a forecast takes on n processors, s. XLA's loops over
// maps keep two of them busy about nine tenths of the time.
func (f Forecast) Wall(n int) float64 { return f.Work / math.Pow(float64(n), 0.85) }

// Constants of the model, fitted to measured steps of GAEA DARTS with C = 8 and
// 16 on 16×16 and 32×32 images and N = 1 and 2 (see BenchmarkForecast). Work
// is in units of the probe, so that a slow machine has a slow forecast.
const (
	probesPerProduct = 2.2e-8  // probes a multiply-add of a convolution, forward and backward
	probesPerElement = 2.35e-6 // probes an element of a candidate operation's map
	bytesPerElement  = 7       // an example's elements that are kept for the backward pass, with their temporaries
	bytesPerCell     = 8e7     // program and compiler, a cell a stage
	bytesAlways      = 7.5e8   // likewise, without cells
)

// Constants of cells with two inputs, of which a step has hundreds of small
// operations: fitted to 12 and 162 steps of GAEA PC-DARTS with three cells, C = 8, on
// 8×8 images in batches of 16, where all else is less than a tenth of the time. The same
// hold for cells with operations on nodes, where what is counted is all maps.
const (
	probesPerOperation = 0.04 // an operation of a batch's forward and backward pass, however small
	probesPerCompiling = 4500 // a cell that is compiled
	compiledNodes      = 0.5  // of such a cell, one of NAS-Bench-1Shot1 compiles
)

// Forecast is the cost of one search on so many images (all of them, both
// halves).
func (s Settings) Forecast(of int) Forecast {
	_, elements := s.size()
	return Forecast{
		Work: probe() * s.probes(of),
		Bytes: bytesAlways + bytesPerCell*float64(s.Cells) + bytesPerElement*elements*float64(s.Batch) +
			s.pixels(of),
	}
}

// pixels are the bytes of images in memory, of which there are none where they are
// files.
func (s Settings) pixels(of int) float64 {
	if s.Crop != (images.Crop{}) {
		return 0
	}
	return 3 * float64(s.Image*s.Image*of)
}

// probes is the work of a search in runs of the probe.
func (s Settings) probes(of int) float64 {
	products, elements := s.size()
	pass := probesPerProduct*products + probesPerElement*elements
	m := Methods[s.Method]
	split, valid := of/2, of/2 // images that pass once or twice a step, and those that are evaluated
	if s.Parts != (Shares{}) {
		split, valid = s.Parts.Train, s.Parts.Validation
	}
	if s.Bilevel.Level == bilevel.ERM {
		split = of
	}
	passes := 1.
	if m.Architecture != NoPass {
		passes = 2
	}
	switch s.Bilevel.Hypergradient {
	case "unrolled": // two steps and a Hessian–vector product more
		passes += 4
	case "finite-difference": // the same by two gradients
		passes += 3
	}
	evaluations := 1.
	if s.EvaluateEvery > 0 {
		evaluations += float64(s.Epochs / s.EvaluateEvery)
	}
	forward := 2 * float64(valid) / 3 // θ as it is, and one operation an edge: without gradients
	forward = forward*evaluations + float64(s.Candidates*s.CandidateBatch)/3
	all := float64(s.Epochs)*passes*float64(split) + forward
	operations, compiled := s.operations()
	return pass*all + probesPerOperation*operations*all/float64(s.Batch) + probesPerCompiling*compiled
}

// ForecastEvaluations is the cost of evaluating so many images by shared weights,
// batch by batch, without gradients.
func (s Settings) ForecastEvaluations(images, batch int) Forecast {
	products, elements := s.size()
	operations, _ := s.operations()
	pass := probesPerProduct*products + probesPerElement*elements + probesPerOperation*operations/float64(batch)
	return Forecast{Work: probe() * pass * float64(images) / 3}
}

// operations are the candidate operations of all cells with two inputs, or the maps of
// all cells with operations on nodes, and how many cells there are to compile, in units
// of the first kind's; 0 in other spaces.
func (s Settings) operations() (operations, compiled float64) {
	space, err := s.Open(10)
	if err != nil {
		return 0, 0
	}
	switch c := space.(type) {
	case cells:
		compiled = float64(c.config.Cells)
		operations = compiled * float64(len(c.space.Edges())*c.space.Options())
	case oneShot:
		through, whole := c.maps()
		operations = float64(c.config.Cells) * (through + whole)
		compiled = compiledNodes * float64(c.config.Cells)
		if Methods[s.Method].Architecture == NoPass {
			compiled /= 2
		}
	}
	return operations, compiled
}

// size is Space.Size, and 0 where there is none.
func (s Settings) size() (products, elements float64) {
	space, err := s.Open(10)
	if err != nil { // Check tells
		return 0, 0
	}
	return space.Size()
}

var kernelArea = map[string]float64{"nor_conv_1x1": 1, "nor_conv_3x3": 9}

// probe is how long this machine takes, in seconds, for a loop over a map that
// fits into no cache: the least of some tries, because others may be at work.
func probe() float64 {
	x, y := make([]float32, 1<<22), make([]float32, 1<<22)
	best := math.Inf(1)
	for range 5 {
		begin := time.Now()
		for i := range x {
			y[i] = 0.5*y[i] + x[i]
		}
		best = min(best, time.Since(begin).Seconds())
	}
	runtime.KeepAlive(y)
	return best
}
