package forecast

import (
	"math"

	"github.com/nasml/lab/nasml/search"
)

// This file corrects package search's model of a search by what was measured since: processor time of compiling, of
// steps and of evaluations, told apart, at whole searches of two epochs on two processors that had other work too, in
// units of the model's own, and peak memory of the process.

// correction has a factor for each part of the model of a kind of space, and what instruments take.
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
