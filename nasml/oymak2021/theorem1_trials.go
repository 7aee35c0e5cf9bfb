package oymak2021

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/nasml/lab/nasml/runs"
)

// thm1Slope is the slope of log y over log x by least squares; NaN where there
// are fewer than two x or a y is not positive.
func thm1Slope(xs, ys []float64) float64 {
	if len(xs) < 2 {
		return math.NaN()
	}
	lx, ly := make([]float64, len(xs)), make([]float64, len(ys))
	for i := range xs {
		if !(xs[i] > 0 && ys[i] > 0) {
			return math.NaN()
		}
		lx[i], ly[i] = math.Log(xs[i]), math.Log(ys[i])
	}
	_, slope := stat.LinearRegression(lx, ly, nil, false)
	return slope
}

// thm1Within says whether an interval lies in [lo, hi]: it fails where it lies
// outside, and is undecided where it holds an end of [lo, hi].
func thm1Within(s runs.Summary, lo, hi float64) runs.Verdict {
	switch {
	case !s.Lo.Valid() || !s.Hi.Valid():
		return runs.NotKnown
	case float64(s.Lo) >= lo && float64(s.Hi) <= hi:
		return runs.Holds
	case float64(s.Hi) < lo || float64(s.Lo) > hi:
		return runs.Fails
	}
	return runs.NotKnown
}

// thm1Claim is a claim about the mean of values, one for each seed: it holds
// where the interval lies in [lo, hi].
func thm1Claim(name, source string, paper, lo, hi float64, values []float64, confidence float64, note string) runs.Claim {
	c := thm1NewClaim(name, source)
	c.Paper, c.Note = runs.Number(paper), note
	switch {
	case !math.IsInf(lo, 0) && !math.IsInf(hi, 0):
		c.Tolerance = runs.Number(max(paper-lo, hi-paper))
	case !math.IsInf(hi, 0):
		c.Tolerance = runs.Number(hi - paper)
	case !math.IsInf(lo, 0):
		c.Tolerance = runs.Number(paper - lo)
	}
	if len(values) == 0 || slices.ContainsFunc(values, math.IsNaN) {
		c.Note = "not run: there are too few points, or a mean is 0 and has no logarithm; " + note
		return c
	}
	s, err := runs.Summarize(values, confidence)
	if err != nil {
		c.Note = "not run: " + err.Error()
		return c
	}
	c.Ours, c.Lo, c.Hi, c.Holds = runs.Number(s.Mean), s.Lo, s.Hi, thm1Within(s, lo, hi)
	if s.N > 1 && s.Std == 0 { // a number without noise, such as a count of violations
		c.Lo, c.Hi = c.Ours, c.Ours
		c.Holds = runs.Judge(s.Mean >= lo && s.Mean <= hi)
	}
	if c.Holds == runs.NotKnown {
		c.Note = "undecided: the interval holds an end of what is allowed, or there are too few seeds; " + note
	}
	return c
}

// thm1NewClaim is runs.NewClaim; a name that begins with "own:" says that the
// claim is ours.
func thm1NewClaim(name, source string) runs.Claim {
	if strings.HasPrefix(name, "own:") {
		source = "ours, on " + source
	}
	return runs.NewClaim(name, source)
}

// thm1None counts violations of a statement that has to hold in every case.
func thm1None(name, source string, violations, of int, note string) runs.Claim {
	c := thm1NewClaim(name, source)
	c.Paper, c.Tolerance = 0, 0
	c.Note = fmt.Sprintf("violations in %d cases; %s", of, note)
	if of == 0 {
		c.Note = "not run: there is no case; " + note
		return c
	}
	c.Ours, c.Holds = runs.Number(violations), runs.Judge(violations == 0)
	return c
}

// thm1Keys are the keys of records.
func thm1Keys(records []*runs.Record) []string {
	var keys []string
	for _, r := range records {
		keys = append(keys, r.Key)
	}
	return keys
}

// thm1Hash names parameters in a picture's metadata.
func thm1Hash(params any) string {
	data, err := json.Marshal(params)
	if err != nil { // a struct of numbers and strings always marshals
		panic(err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// thm1Meta is the metadata of a picture.
func thm1Meta(title, scale string, params any) map[string]string {
	return map[string]string{"title": title, "scale": cmp.Or(scale, "own"), "params": thm1Hash(params)}
}

// thm1Summaries is the summary of every column of rows: rows are seeds.
func thm1Summaries(rows [][]float64, confidence float64) ([]runs.Summary, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	out := make([]runs.Summary, len(rows[0]))
	for j := range out {
		var column []float64
		for _, row := range rows {
			column = append(column, row[j])
		}
		var err error
		if out[j], err = runs.Summarize(column, confidence); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// thm1Floats are whole numbers as an axis needs them.
func thm1Floats(xs []int) []float64 {
	out := make([]float64, len(xs))
	for i, x := range xs {
		out[i] = float64(x)
	}
	return out
}

// thm1Rows are one series of each record.
func thm1Rows(records []*runs.Record, name string) [][]float64 {
	var rows [][]float64
	for _, r := range records {
		rows = append(rows, r.Series[name])
	}
	return rows
}

// thm1Values are one value of each record.
func thm1Values(records []*runs.Record, name string) []float64 {
	var values []float64
	for _, r := range records {
		values = append(values, r.Values[name])
	}
	return values
}
