package li2021

import (
	"math"
	"sync"
)

// publishedOneShot are the curves of Figure 2 as numbers, by space and search; see its field source. They were not
// compared with the printed figure.
type publishedOneShot struct {
	Source string                            `json:"source"`
	Before map[string]float64                `json:"before"` // dashed: regret of the best search of Zela+ 2020
	Regret map[string]map[string]regretCurve `json:"regret"`
}

// regretCurve is a test regret, as a fraction, from epoch 1: the mean of four searches ± one standard deviation
// (divisor n).
type regretCurve struct {
	Mean []float64 `json:"mean"`
	Hi   []float64 `json:"hi"`
	Lo   []float64 `json:"lo"`
}

var publishedOneShotCurves = sync.OnceValue(readPublished[publishedOneShot]("published_oneshot.json"))

// deviation is the distance of two curves at the epochs that both have.
type deviation struct {
	Largest float64 // absolute difference
	At      float64 // its epoch
	Mean    float64 // absolute difference
	Epochs  int
}

// deviate compares a curve with another, whose first point is of the epoch first.
func deviate(x, y []float64, theirs []float64, first int) deviation {
	d := deviation{}
	for i, epoch := range x {
		j := int(epoch) - first
		if j < 0 || j >= len(theirs) {
			continue
		}
		apart := math.Abs(y[i] - theirs[j])
		if d.Epochs == 0 || apart > d.Largest {
			d.Largest, d.At = apart, epoch
		}
		d.Mean += apart
		d.Epochs++
	}
	if d.Epochs > 0 {
		d.Mean /= float64(d.Epochs)
	}
	return d
}
