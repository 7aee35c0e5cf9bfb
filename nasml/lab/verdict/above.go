package verdict

import (
	"fmt"

	"github.com/nasml/lab/nasml/runs"
)

// Above judges that a mean is larger than a bound, the opposite of [AtMost]: a mean that
// equals the bound is not above it.
func Above(c runs.Claim, s runs.Summary, err error, bound float64) runs.Claim {
	return opposite(AtMost(allowed(c, "above", bound), s, err, bound))
}

// Below judges that a mean is smaller than a bound, the opposite of [AtLeast].
func Below(c runs.Claim, s runs.Summary, err error, bound float64) runs.Claim {
	return opposite(AtLeast(allowed(c, "below", bound), s, err, bound))
}

func allowed(c runs.Claim, side string, bound float64) runs.Claim {
	c.Allowed = fmt.Sprintf("%s %.6g", side, bound)
	return c
}

func opposite(c runs.Claim) runs.Claim {
	if c.Holds != runs.NotKnown {
		c.Holds = runs.Judge(c.Holds == runs.Fails)
	}
	return c
}

// Worst summarizes the list with the largest mean, for a statement about every list, at the
// confidence of a [Family] of them. It returns an error if there is no list, or if one
// cannot be summarized.
func Worst(lists [][]float64, confidence float64) (runs.Summary, error) {
	if len(lists) == 0 {
		return runs.Summary{}, errFew
	}
	each := Family(confidence, len(lists))
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
