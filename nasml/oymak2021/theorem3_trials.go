package oymak2021

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/nasml/lab/nasml/runs"
)

// thm3Exponent is the slope of log y over log x by least squares. It is an
// error where there are fewer than two x, or a value is not positive: a slope
// on log–log axes would be NaN.
func thm3Exponent(xs, ys []float64) (float64, error) {
	if len(xs) < 2 || len(xs) != len(ys) {
		return 0, fmt.Errorf("slope through %d x and %d y, expected at least two of each", len(xs), len(ys))
	}
	lx, ly := make([]float64, len(xs)), make([]float64, len(ys))
	for i := range xs {
		if !(xs[i] > 0 && ys[i] > 0) {
			return 0, fmt.Errorf("slope on log–log axes through (%v, %v), expected positive numbers", xs[i], ys[i])
		}
		lx[i], ly[i] = math.Log(xs[i]), math.Log(ys[i])
	}
	_, slope := stat.LinearRegression(lx, ly, nil, false)
	return slope, nil
}

// thm3Claim judges the mean of one value a seed: it holds where the interval
// lies in [lo, hi], fails where it lies outside, and is else undecided.
func thm3Claim(name, source string, paper runs.Number, lo, hi float64, values []float64, confidence float64, note string) runs.Claim {
	c := runs.NewClaim(name, source)
	c.Paper, c.Note = paper, note
	if len(values) == 0 {
		c.Note = "not run: no value; " + note
		return c
	}
	s, err := runs.Summarize(values, confidence)
	if err != nil {
		c.Note = "not run: " + err.Error()
		return c
	}
	c.Ours, c.Lo, c.Hi = runs.Number(s.Mean), s.Lo, s.Hi
	if s.N > 1 && s.Std == 0 { // a number without noise, such as an identity
		c.Lo, c.Hi = c.Ours, c.Ours
	}
	switch {
	case !c.Lo.Valid() || !c.Hi.Valid():
		c.Note = "undecided: one seed has no interval; " + note
	case float64(c.Lo) >= lo && float64(c.Hi) <= hi:
		c.Holds = runs.Holds
	case float64(c.Hi) < lo || float64(c.Lo) > hi:
		c.Holds = runs.Fails
	default:
		c.Note = "undecided: the interval holds an end of what is allowed; " + note
	}
	return c
}

// thm3Every judges a statement about every case: it holds where the largest
// value is at most most.
func thm3Every(name, source string, most float64, values []float64, note string) runs.Claim {
	c := runs.NewClaim(name, source)
	c.Paper, c.Tolerance, c.Note = runs.Number(most), 0, note
	if len(values) == 0 {
		c.Note = "not run: no case; " + note
		return c
	}
	worst := values[0]
	for _, v := range values {
		worst = max(worst, v)
	}
	c.Ours, c.Holds = runs.Number(worst), runs.Judge(worst <= most)
	c.Note = fmt.Sprintf("ours is the largest of %d cases; %s", len(values), note)
	return c
}

// thm3Greater judges that a exceeds b on average over seeds, paired.
func thm3Greater(name, source string, a, b []float64, confidence float64, note string) runs.Claim {
	c := runs.NewClaim(name, source)
	c.Paper, c.Note = 0, note
	if len(a) == 0 {
		c.Note = "not run: no pair; " + note
		return c
	}
	d, err := runs.MeanDiff(a, b, confidence)
	if err != nil {
		c.Note = "not run: " + err.Error()
		return c
	}
	c.Ours, c.Lo, c.Hi = runs.Number(d.Mean), d.Lo, d.Hi
	switch {
	case !d.Lo.Valid() || (d.Lo <= 0 && d.Hi >= 0):
		c.Note = "undecided: the interval of the difference holds 0; " + note
	default:
		c.Holds = runs.Judge(d.Lo > 0)
	}
	return c
}

// thm3Hash names parameters in a picture's metadata.
func thm3Hash(params any) string {
	text, err := json.Marshal(params)
	if err != nil { // a struct of numbers and strings always marshals
		panic(err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

func thm3Keys(records []*runs.Record) []string {
	var keys []string
	for _, r := range records {
		keys = append(keys, r.Key)
	}
	return keys
}

func thm3ScaleName(scale string) string {
	if scale == "" {
		return "own"
	}
	return scale
}

func thm3Floats(xs []int) []float64 {
	out := make([]float64, len(xs))
	for i, x := range xs {
		out[i] = float64(x)
	}
	return out
}

// binomialInterval is the interval of Clopper and Pearson for a share, hits of
// n: each end is the share at which so few or so many hits have half of the
// remaining probability.
func binomialInterval(hits, n int, confidence float64) (lo, hi runs.Number) {
	rest := (1 - confidence) / 2
	lo, hi = 0, 1
	if hits > 0 {
		lo = runs.Number(distuv.Beta{Alpha: float64(hits), Beta: float64(n - hits + 1)}.Quantile(rest))
	}
	if hits < n {
		hi = runs.Number(distuv.Beta{Alpha: float64(hits + 1), Beta: float64(n - hits)}.Quantile(1 - rest))
	}
	return lo, hi
}
