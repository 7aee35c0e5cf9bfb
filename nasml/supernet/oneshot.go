package supernet

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat/combin"
)

// OneShot is a space of NAS-Bench-1Shot1 (Zela+ 2020, https://openreview.net/forum?id=SJx9ngStPH) as data: cells of
// NAS-Bench-101 whose nodes choose one operation and a fixed number of parents. Node 0 is the cell's input, nodes 1 … N
// have an operation each and parents among the nodes before them, and the output chooses among all of those.
type OneShot struct {
	Name    string
	Ops     []string // of every node, in the original's order; others are of Operations, and have no table
	Parents []int    // how many parents node 1, 2, … N has
	Output  int      // how many the output has

	// What the space's authors print: the number of architectures, and the lowest errors of one training in
	// NAS-Bench-101 among those that their program lists. Zeros: unknown.
	Known OneShotKnown
}

// OneShotKnown are published facts about a space.
type OneShotKnown struct {
	Archs      int
	EveryOp    bool    // Archs counts operations of nodes, too, that nothing reads
	TestError  float64 // a fraction
	ValidError float64
}

// opsOneShot are the operations in the original's order.
var opsOneShot = []string{"maxpool3x3", "conv3x3-bn-relu", "conv1x1-bn-relu"}

// The spaces of NAS-Bench-1Shot1. Their authors count 6,240 and 363,648 architectures of the first and the third by the
// operations of nodes that another node reads, and all 81 · 360 = 29,160 of the second. The lowest errors are over the
// 2,487, 3,609 and 24,066 pruned architectures that their program generates, which are not all.
var (
	OneShot1 = OneShot{
		Name: "1shot1-s1", Ops: opsOneShot, Parents: []int{1, 2, 2, 2}, Output: 2,
		Known: OneShotKnown{Archs: 6240, TestError: .05448716878890991, ValidError: .049278855323791504},
	}
	OneShot2 = OneShot{
		Name: "1shot1-s2", Ops: opsOneShot, Parents: []int{1, 1, 2, 2}, Output: 3,
		Known: OneShotKnown{Archs: 29160, EveryOp: true, TestError: .057592153549194336,
			ValidError: .051582515239715576},
	}
	OneShot3 = OneShot{
		Name: "1shot1-s3", Ops: opsOneShot, Parents: []int{1, 1, 1, 2, 2}, Output: 2,
		Known: OneShotKnown{Archs: 363648, TestError: .05338543653488159, ValidError: .04847759008407593},
	}
)

// OneShots are the known spaces of this kind by name. Add a custom one with OneShots["mine"] = OneShot{…}.
var OneShots = map[string]OneShot{OneShot1.Name: OneShot1, OneShot2.Name: OneShot2, OneShot3.Name: OneShot3}

// The bounds of NAS-Bench-101.
const (
	maxOneShotNodes = 5 // between input and output
	maxOneShotEdges = 9
)

// With is the space with more operations, behind those that it has.
func (s OneShot) With(ops ...string) OneShot {
	s.Ops, s.Known = append(slices.Clone(s.Ops), ops...), OneShotKnown{}
	return s
}

// Check returns an error if the space is not one of NAS-Bench-101's cells: a node with no parent or more than there are
// nodes before it, more than five nodes or nine edges, an operation unknown or twice.
func (s OneShot) Check() error {
	if n := len(s.Parents); n < 1 || n > maxOneShotNodes {
		return fmt.Errorf("space %q has %d nodes, expected 1 to %d", s.Name, n, maxOneShotNodes)
	}
	edges := 0
	for i, k := range s.numbers() {
		if k < 1 || k > i+1 {
			return fmt.Errorf("space %q: %s has %d parents, expected 1 to %d: so many nodes come before it", s.Name,
				s.node(i), k, i+1)
		}
		edges += k
	}
	if edges > maxOneShotEdges {
		return fmt.Errorf("space %q: the parents %v and %d of the output add up to %d edges, expected at most %d",
			s.Name, s.Parents, s.Output, edges, maxOneShotEdges)
	}
	for i, op := range s.Ops {
		if !slices.Contains(opsOneShot, op) && Operations[op] == nil || slices.Contains(s.Ops[:i], op) {
			return fmt.Errorf("space %q: operation %q is unknown or named twice: take each of %s at most once, or one "+
				"of supernet.Operations", s.Name, op, strings.Join(opsOneShot, ", "))
		}
	}
	if len(s.Ops) == 0 {
		return fmt.Errorf("space %q has no operations, expected some of %s", s.Name, strings.Join(opsOneShot, ", "))
	}
	return nil
}

// numbers are the numbers of parents of nodes 1 … N and of the output.
func (s OneShot) numbers() []int { return append(slices.Clone(s.Parents), s.Output) }

// node names entry i of numbers.
func (s OneShot) node(i int) string {
	if i == len(s.Parents) {
		return "the output"
	}
	return fmt.Sprintf("node %d", i+1)
}

// Choosing are the nodes that choose their parents, in order: nodes 3 and 4 of the first space. The others have all
// nodes before them as parents, without weights. The output always has weights and is not listed.
func (s OneShot) Choosing() []int {
	var nodes []int
	for i, k := range s.Parents {
		if k <= i {
			nodes = append(nodes, i+1)
		}
	}
	return nodes
}

// Size is the number of choices of operations and parents, Π |O|ᴺ · C(i, kᵢ): 14,580, 29,160 and 1,312,200.
func (s OneShot) Size() int {
	size := 1
	for range s.Parents {
		size *= len(s.Ops)
	}
	for i, k := range s.numbers() {
		size *= combin.Binomial(i+1, k)
	}
	return size
}

// OneShotArch is an architecture of a space.
type OneShotArch struct {
	Ops     []int   // of nodes 1 … N, as indices to the space's
	Parents [][]int // of nodes 1 … N and of the output, ascending
}

// Archs are the architectures of the space, grouped by wiring. With everyOp these are all of Size; without, a node that
// no other reads has the first operation only: 6,240, 16,632 and 363,648. (As with the space's authors, nodes that only
// such nodes read count as read.)
func (s OneShot) Archs(everyOp bool) iter.Seq[OneShotArch] {
	return func(yield func(OneShotArch) bool) {
		var sets [][][]int // of parents, by node
		var sizes []int
		for i, k := range s.numbers() {
			sets = append(sets, combin.Combinations(i+1, k))
			sizes = append(sizes, len(sets[i]))
		}
		for wiring := range tuples(sizes) {
			parents := make([][]int, len(sets))
			for i, at := range wiring {
				parents[i] = sets[i][at]
			}
			varied := make([]int, len(s.Parents)) // numbers of operations
			for i, read := range s.readNodes(parents) {
				if varied[i] = 1; read || everyOp {
					varied[i] = len(s.Ops)
				}
			}
			for ops := range tuples(varied) {
				if !yield(OneShotArch{ops, parents}) {
					return
				}
			}
		}
	}
}

// tuples are all choices of one of so many at every place, the last place fastest.
func tuples(sizes []int) iter.Seq[[]int] {
	return func(yield func([]int) bool) {
		for all := combin.NewCartesianGenerator(sizes); all.Next(); {
			if !yield(all.Product(nil)) {
				return
			}
		}
	}
}

// readNodes says of nodes 1 … N whether another is their child.
func (s OneShot) readNodes(parents [][]int) []bool {
	read := make([]bool, len(s.Parents))
	for _, set := range parents {
		for _, p := range set {
			if p > 0 {
				read[p-1] = true
			}
		}
	}
	return read
}

// CheckArch returns an error if the architecture is not of the space.
func (s OneShot) CheckArch(a OneShotArch) error {
	numbers := s.numbers()
	if len(a.Ops) != len(s.Parents) || len(a.Parents) != len(numbers) {
		return fmt.Errorf("found %d operations and the parents of %d nodes, expected %d and %d (with the output) "+
			"in the space %q", len(a.Ops), len(a.Parents), len(s.Parents), len(numbers), s.Name)
	}
	for i, op := range a.Ops {
		if op < 0 || op >= len(s.Ops) {
			return fmt.Errorf("found operation %d on node %d, expected 0 to %d: %s", op, i+1, len(s.Ops)-1,
				strings.Join(s.Ops, ", "))
		}
	}
	for i, set := range a.Parents {
		ascending := slices.IsSorted(set) && len(slices.Compact(slices.Clone(set))) == len(set)
		if len(set) != numbers[i] || !ascending || set[0] < 0 || set[len(set)-1] > i {
			return fmt.Errorf("found the parents %v of %s, expected %d of the nodes 0 to %d, ascending", set,
				s.node(i), numbers[i], i)
		}
	}
	return nil
}

// Spec is the architecture as a cell of NAS-Bench-101: the adjacency matrix [N+2][N+2] and the names of all operations,
// to be pruned by that benchmark's rule (data.NewCell101) to the nodes that the output can be traced back to. It has
// CheckArch's errors. The authors' program traces back first, and gives the cells of the first two spaces a fifth node
// without edges; the pruned cells are the same.
func (s OneShot) Spec(a OneShotArch) (matrix [][]int, ops []string, err error) {
	if err := s.CheckArch(a); err != nil {
		return nil, nil, err
	}
	n := len(s.Parents) + 2
	matrix = make([][]int, n)
	for i := range matrix {
		matrix[i] = make([]int, n)
	}
	for i, set := range a.Parents {
		for _, p := range set {
			matrix[p][i+1] = 1
		}
	}
	ops = []string{"input"}
	for _, op := range a.Ops {
		ops = append(ops, s.Ops[op])
	}
	return matrix, append(ops, "output"), nil
}

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
