package verdict

import (
	"fmt"
	"math"

	"github.com/nasml/lab/nasml/runs"
)

// Distance is how far a curve is from a published one, at the points of both.
type Distance struct {
	Points int
	Mean   float64 // of |yᵢ − pᵢ|
	Most   float64 // the largest |yᵢ − pᵢ|
	At     float64 // x of the largest
	Signed float64 // mean of yᵢ − pᵢ: above 0 where ours lies above
}

// CurveDistance compares a curve with a published one, point by point: y[i] and published[i]
// are at x[i]. Of curves of different length the common beginning counts; if there
// is none, Points is 0.
func CurveDistance(x, y, published []float64) Distance {
	var d Distance
	for i := range min(len(x), len(y), len(published)) {
		difference := y[i] - published[i]
		d.Points++
		d.Mean += (math.Abs(difference) - d.Mean) / float64(d.Points)
		d.Signed += (difference - d.Signed) / float64(d.Points)
		if math.Abs(difference) > d.Most || i == 0 {
			d.Most, d.At = math.Abs(difference), x[i]
		}
	}
	return d
}

// Claim puts the mean distance into a claim of ours, and says where the curves are
// farthest apart. It is a measure and has no verdict.
func (d Distance) Claim(c runs.Claim, axis string) runs.Claim {
	c.Paper = 0
	if d.Points == 0 {
		return NotRun(c, "the curves have no point in common")
	}
	c.Ours = runs.Number(d.Mean)
	c.Note = joined(fmt.Sprintf("a measure without a verdict: the mean of |ours − the paper's| over %d points; ours "+
		"is higher by %.3g on average, and farthest at %s %g, by %.3g", d.Points, d.Signed, axis, d.At, d.Most), c.Note)
	return c
}

// MeanCurve is the mean of curves over their common beginning.
func MeanCurve(curves [][]float64) []float64 {
	if len(curves) == 0 {
		return nil
	}
	n := len(curves[0])
	for _, y := range curves {
		n = min(n, len(y))
	}
	mean := make([]float64, n)
	for _, y := range curves {
		for i := range mean {
			mean[i] += y[i] / float64(len(curves))
		}
	}
	return mean
}
