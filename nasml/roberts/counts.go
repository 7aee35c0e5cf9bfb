package roberts

import (
	"slices"

	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/roberts/internal/mixture"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/plots"
)

// counts are what the checker counted in the problems of some records.
type counts struct {
	records    []*runs.Record
	operations int // of a problem, at most
}

// countsOf joins groups of problems, also of several sizes.
func countsOf(gs ...lab.Group[problems]) (all counts) {
	for _, g := range gs {
		all.records = append(all.records, g.Records...)
		all.operations = max(all.operations, g.Trial.Operations)
	}
	return all
}

func (c counts) sum(name string) float64 {
	var sum float64
	for _, r := range c.records {
		sum += r.Values[name]
	}
	return sum
}

// per is a sum over the problems.
func (c counts) per(name string) float64 { return c.sum(name) / c.sum("problems") }

func (c counts) most(name string) float64 {
	return slices.Max(append(study.Values(c.records, name), 0))
}

// series joins a series of all records.
func (c counts) series(name string) []float64 { return slices.Concat(study.Rows(c.records, name)...) }

// sumSeries adds a series up over the records.
func (c counts) sumSeries(name string) []float64 {
	var sum []float64
	for _, r := range c.records {
		for i, x := range r.Series[name] {
			if i == len(sum) {
				sum = append(sum, 0)
			}
			sum[i] += x
		}
	}
	return sum
}

// share is a proportion of two counts.
func (c counts) share(yes, all string, confidence float64) verdict.Share {
	s := verdict.Share{Yes: c.sum(yes), Of: c.sum(all), Confidence: confidence}
	if slices.Contains(mixture.CountsOfPairs, all) {
		s.Alike = c.pairs()
	}
	return s
}

// without is the share that the first count lacks of the second.
func (c counts) without(yes, all string, confidence float64) verdict.Share {
	s := c.share(yes, all, confidence)
	s.Yes = s.Of - s.Yes
	return s
}

// pairs is the number of pairs of operations in a problem.
func (c counts) pairs() float64 { return max(1, float64(c.operations*(c.operations-1)/2)) }

// sharesOver is a curve of shares, a point a group, over a number of its problems. If there is nothing to share
// there is no point.
func sharesOver(
	label string, gs problemGroups, x func(problems) float64, yes, all string, confidence float64,
) plots.Series {
	var points []verdict.Share
	for _, g := range gs {
		points = append(points, countsOf(g).share(yes, all, confidence))
	}
	return shares(label, gs.X(x), points)
}

// What the error of an identity is: of α and γ, and of losses, which are differences of outputs.
const (
	ofNumbers = "largest relative error, in float64"
	ofRoots   = "largest error of the root of the loss, relative to the outputs, in float64"
)

// identity is a claim that two numbers are equal: the largest error over all problems.
func identity(c lab.Claim, err float64, ran bool, note string) runs.Claim {
	if !ran {
		c.Note = "not run"
		return c.Claim
	}
	c.Paper, c.Ours, c.Tolerance, c.Note = 0, runs.Number(err), mixture.Tolerance, note
	c.Holds = runs.Judge(err <= mixture.Tolerance)
	return c.Claim
}

// own is the source of what the paper does not say.
const own = "ours, not in the paper; derived in the notebook"

// ours is a claim that is not in the paper.
func ours(name string) runs.Claim { return runs.NewClaim("own: "+name, own) }

// shares is a curve of proportions; if there is nothing to share, there is no
// point.
func shares(label string, x []float64, ps []verdict.Share) plots.Series {
	var at []float64
	var points []verdict.Share
	for i, p := range ps {
		if p.Of > 0 {
			at, points = append(at, x[i]), append(points, p)
		}
	}
	return plots.Bars(label, at, points)
}
