package verdict

import (
	"github.com/nasml/lab/nasml/runs"
)

// Above judges that a mean is larger than a bound: the opposite of [AtMost], so
// that a mean that equals the bound is not above it.
func Above(c runs.Claim, s runs.Summary, err error, bound float64) runs.Claim {
	return opposite(AtMost(c, s, err, bound))
}

// Below judges that a mean is smaller than a bound, the opposite of [AtLeast].
func Below(c runs.Claim, s runs.Summary, err error, bound float64) runs.Claim {
	return opposite(AtLeast(c, s, err, bound))
}

func opposite(c runs.Claim) runs.Claim {
	switch c.Holds {
	case runs.Holds:
		c.Holds = runs.Fails
	case runs.Fails:
		c.Holds = runs.Holds
	case runs.NotKnown:
	}
	return c
}

// Worst summarizes the list with the largest mean, for a statement that speaks of
// every list: at a confidence that holds for all lists together, 1 − (1−c)/n for
// each of n (Bonferroni). It is an error where there is no list, and where one
// cannot be summarized.
func Worst(lists [][]float64, confidence float64) (runs.Summary, error) {
	if len(lists) == 0 {
		return runs.Summary{}, errFew
	}
	each := 1 - (1-confidence)/float64(len(lists))
	var most runs.Summary
	for i, list := range lists {
		s, err := runs.Summarize(list, each)
		if err != nil {
			return s, err
		}
		if i == 0 || s.Mean > most.Mean {
			most = s
		}
	}
	return most, nil
}
