package li2021

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"sync"

	"github.com/nasml/lab/plots"
)

// publishedOneShot are the curves of Figure 2 of the paper as numbers, by space and
// search: see its field source. They were not compared with the printed figure.
type publishedOneShot struct {
	Source string                            `json:"source"`
	Before map[string]float64                `json:"before"` // dashed: regret of the best search of Zela+ 2020
	Regret map[string]map[string]regretCurve `json:"regret"`
}

// regretCurve is a test regret, as a fraction, from epoch 1 on: the mean of four
// searches, and one standard deviation (divisor n) above and below.
type regretCurve struct {
	Mean []float64 `json:"mean"`
	Hi   []float64 `json:"hi"`
	Lo   []float64 `json:"lo"`
}

//go:embed published_oneshot.json
var publishedOneShotJSON []byte

// publishedOneShotCurves reads them.
var publishedOneShotCurves = sync.OnceValue(func() publishedOneShot {
	var p publishedOneShot
	if err := json.Unmarshal(publishedOneShotJSON, &p); err != nil {
		panic(fmt.Errorf("published_oneshot.json: %w", err)) // a test sees it
	}
	return p
})

// referenceFrom is a published curve, whose first point is of the epoch first, up
// to the epoch last.
func referenceFrom(label string, y []float64, first, last int) plots.Series {
	s := plots.Series{Label: label, Reference: true}
	for i, v := range y {
		if first+i <= last {
			s.X, s.Y = append(s.X, float64(first+i)), append(s.Y, v)
		}
	}
	return s
}

// deviation is how far two curves are apart, at the epochs that both have.
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
