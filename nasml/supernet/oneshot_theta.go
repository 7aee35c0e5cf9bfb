package supernet

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
)

// CheckTheta returns an error if θ, logits or weights on simplices, has other shapes than Product or a weight that is
// not finite.
func (s OneShot) CheckTheta(theta [][][]float64) error {
	product := s.Product()
	if len(theta) != len(product) {
		return fmt.Errorf("found %d blocks of weights, expected %d in the space %q", len(theta), len(product), s.Name)
	}
	for b, block := range product {
		if len(theta[b]) != block.Rows {
			return fmt.Errorf("found %d rows of weights of the %s, expected %d in the space %q", len(theta[b]),
				block.Name,
				block.Rows, s.Name)
		}
		for _, row := range theta[b] {
			if len(row) != block.Options {
				return fmt.Errorf("found %d weights of the %s, expected %d in the space %q", len(row), block.Name,
					block.Options, s.Name)
			}
			if i := slices.IndexFunc(row, func(x float64) bool { return !finite(x) }); i >= 0 {
				return fmt.Errorf("found %v as weight %d of the %s, expected a finite number", row[i], i, block.Name)
			}
		}
	}
	return nil
}

// Ties says which of equally weighted parents a discretisation takes.
type Ties string

// The rules.
const (
	TiesFirst Ties = "first" // the earlier nodes
	TiesNumPy Ties = "numpy" // those that numpy.argpartition puts last, as in the authors' code and time
)

// TieRule says how weights are compared.
type TieRule struct {
	// Single compares weights after a softmax in single precision, as in the authors' code: differences below its
	// rounding become ties.
	Single bool
	// Top are the places of the k largest.
	Top func(weights []float64, k int) []int
}

// TieRules are the rules by name. Add a custom one with TieRules["mine"] = TieRule{Top: …}.
var TieRules = map[Ties]TieRule{
	TiesFirst: {Top: firstOfLargest},
	TiesNumPy: {Single: true, Top: func(w []float64, k int) []int { return argpartition(w, len(w)-k)[len(w)-k:] }},
}

// firstOfLargest are the places of the k largest weights, the first of equals.
func firstOfLargest(w []float64, k int) []int {
	order := count(len(w))
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(w[j], w[i]) })
	return order[:k]
}

// Discretize reads the architecture off θ, the blocks of Product: of every node the operation of the largest weight,
// the first of equals, and the parents of the largest weights. The initial θ of GAEA is uniform, so that the rule for
// ties decides alone. It returns an error if CheckTheta does, or if the rule is none of TieRules.
func (s OneShot) Discretize(theta [][][]float64, ties Ties) (OneShotArch, error) {
	rule, known := TieRules[ties]
	if !known {
		return OneShotArch{}, fmt.Errorf("found the rule %q for ties, expected one of %q", ties,
			slices.Sorted(maps.Keys(TieRules)))
	}
	if err := s.CheckTheta(theta); err != nil {
		return OneShotArch{}, err
	}
	seen := func(row []float64) []float64 {
		if rule.Single {
			return softmax32(row)
		}
		return row
	}
	var a OneShotArch
	for _, row := range theta[0] {
		a.Ops = append(a.Ops, firstOfLargest(seen(row), 1)[0])
	}
	inputs := theta[2:]
	for i, k := range s.numbers() {
		var parents []int
		switch {
		case i == len(s.Parents):
			parents = rule.Top(seen(theta[1][0]), k)
		case k == i+1:
			parents = count(k)
		default:
			parents, inputs = rule.Top(seen(inputs[0][0]), k), inputs[1:]
		}
		slices.Sort(parents)
		a.Parents = append(a.Parents, parents)
	}
	return a, nil
}

// softmax32 is the softmax in single precision.
func softmax32(w []float64) []float64 {
	p := make([]float64, len(w))
	largest, sum := float32(slices.Max(w)), float32(0)
	for i := range p {
		e := float32(math.Exp(float64(float32(w[i]) - largest)))
		p[i] = float64(e)
		sum += e
	}
	for i := range p {
		p[i] = float64(float32(p[i]) / sum)
	}
	return p
}

// argpartition orders the places of v so that the one at kth is where sorting would put it, and those of larger values
// come after it: introselect, as in numpy.argpartition in the authors' time, so that equal values end up in the same
// places (NumPy 2 has another with AVX-512). It leaves out NumPy's worst-case guard, which only acts on more elements
// than v has.
func argpartition(v []float64, kth int) []int {
	at := count(len(v))
	swap := func(i, j int) { at[i], at[j] = at[j], at[i] }
	less := func(i, j int) bool { return v[at[i]] < v[at[j]] }
	switch {
	case kth < 3:
		selectFirst(kth+1, len(at), less, swap)
		return at
	case kth == len(v)-1: // the last of the largest
		most := 0
		for j := range at {
			if !less(j, most) {
				most = j
			}
		}
		swap(kth, most)
		return at
	}
	low, high := 0, len(v)-1
	for low+1 < high {
		medianToLow(low, low+(high-low)/2, high, less, swap)
		l, h := low+1, high
		for pivot := v[at[low]]; ; swap(l, h) {
			for l++; v[at[l]] < pivot; l++ {
			}
			for h--; pivot < v[at[h]]; h-- {
			}
			if h < l {
				break
			}
		}
		swap(low, h)
		if h >= kth {
			high = h - 1
		}
		if h <= kth {
			low = l
		}
	}
	if high == low+1 && less(high, low) {
		swap(high, low)
	}
	return at
}

// selectFirst is selection sort of n places that ends with the first k.
func selectFirst(k, n int, less func(i, j int) bool, swap func(i, j int)) {
	for i := range k {
		least := i
		for j := i + 1; j < n; j++ {
			if less(j, least) {
				least = j
			}
		}
		swap(i, least)
	}
}

// medianToLow moves the median of three to low, and the least to low+1.
func medianToLow(low, mid, high int, less func(i, j int) bool, swap func(i, j int)) {
	if less(high, mid) {
		swap(high, mid)
	}
	if less(high, low) {
		swap(high, low)
	}
	if less(low, mid) {
		swap(low, mid)
	}
	swap(mid, low+1)
}
