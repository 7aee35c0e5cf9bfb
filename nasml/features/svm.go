package features

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/nasml/lab/nasml/trial"
)

// SVMParams say what [FitSVM] minimizes, and how well.
type SVMParams struct {
	C         float64 // C > 0 on the sum of losses; λ = ½ is C = 1
	Loss      string  // "hinge" or "squared-hinge"
	Tol       float64 // on the violation; the code of Khodak+ 2020 takes 1e-5, scikit-learn 1e-4
	MaxEpochs int     // if 0, 1000
	Seed      uint64  // of the order of the rows
}

// SVMModel is a linear support vector machine with its certificate: the optimum lies between Dual and Primal.
type SVMModel struct {
	Weights      []float64 // w, [d]
	Intercept    float64   // b
	Epochs       int       // passes over the rows that were not shrunk
	Violation    float64   // largest less smallest projected gradient of the last epoch
	Primal, Dual float64
	Converged    bool // Violation ≤ Tol on all rows
}

// FitSVM is dual coordinate descent for two classes (Hsieh+ 2008, Algorithm 3,
// with shrinking): it maximizes the dual of
//
//	min_{w,b} ½(‖w‖² + b²) + C Σᵢ ℓ(yᵢ(⟨w, xᵢ⟩ + b)),   ℓ(m) = max(0, 1 − m) or its square,
//
// one dual variable after the other, in an order drawn again for every epoch. The intercept is the weight of a feature
// that is always 1 and is penalized, as liblinear's and so scikit-learn's LinearSVC's is (intercept_scaling = 1).
// Labels are −1 and +1. The same arguments give the same model.
//
// It returns an error if the labels are others, or of one class only, a parameter is invalid, a value is not finite, or
// ctx ends. Not to converge is none: Converged says so.
func FitSVM(ctx context.Context, x *Sparse, labels []int8, p SVMParams) (*SVMModel, error) {
	if p.MaxEpochs <= 0 {
		p.MaxEpochs = 1000
	}
	if err := p.check(x, labels); err != nil {
		return nil, fmt.Errorf("linear SVM: %w", err)
	}
	s, err := newDualDescent(x, labels, p)
	if err != nil {
		return nil, fmt.Errorf("linear SVM: %w", err)
	}
	for s.epochs < p.MaxEpochs && !s.converged {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("linear SVM, after %d epochs: %w", s.epochs, err)
		}
		s.epoch()
	}
	return s.model(), nil
}

func (p *SVMParams) check(x *Sparse, labels []int8) error {
	plus, minus := 0, 0
	for i, y := range labels {
		switch y {
		case 1:
			plus++
		case -1:
			minus++
		default:
			return fmt.Errorf("labels must be −1 or +1, got %d in row %d", y, i)
		}
	}
	switch {
	case len(labels) != x.Rows:
		return fmt.Errorf("found %d labels of %d rows", len(labels), x.Rows)
	case plus == 0 || minus == 0:
		return fmt.Errorf("both classes must have rows, got %d of class +1 and %d of class −1", plus, minus)
	case !(p.C > 0) || math.IsInf(p.C, 1):
		return fmt.Errorf("the factor C must be positive and finite, got %v", p.C)
	case p.Loss != "hinge" && p.Loss != "squared-hinge":
		return fmt.Errorf("loss must be hinge or squared-hinge, got %q", p.Loss)
	case !(p.Tol > 0):
		return fmt.Errorf("tolerance must be positive, got %v", p.Tol)
	}
	return nil
}

// dualDescent is the state of the descent. The dual is
//
//	min_α ½ αᵀQ̄α − 1ᵀα,   0 ≤ αᵢ ≤ U,   Q̄ᵢⱼ = yᵢyⱼ⟨xᵢ, xⱼ⟩ + D·[i = j] ,
//
// with U = C, D = 0 for the hinge and U = ∞, D = 1/(2C) for its square; w is Σᵢ αᵢyᵢxᵢ all the time.
type dualDescent struct {
	rows   *packedRows
	y      []int8
	p      SVMParams
	rng    *rand.Rand
	upper  float64   // U
	extra  float64   // D
	square []float64 // Q̄ᵢᵢ
	alpha  []float64
	w      []float64 // of the packed columns
	b      float64

	active    []int32 // rows that are not shrunk
	high, low float64 // projected gradients of the epoch before: rows outside of them are shrunk
	epochs    int
	violation float64
	converged bool
}

func newDualDescent(x *Sparse, y []int8, p SVMParams) (*dualDescent, error) {
	rows := x.Rows
	s := &dualDescent{
		rows: packRows(x), y: y, p: p, rng: trial.RNG(p.Seed, "linear SVM"), upper: p.C,
		square: make([]float64, rows), alpha: make([]float64, rows), active: make([]int32, rows),
	}
	s.w = make([]float64, len(s.rows.columns))
	if p.Loss == "squared-hinge" {
		s.upper, s.extra = math.Inf(1), 1/(2*p.C)
	}
	for i := range rows {
		s.square[i] = s.extra + 1
		for _, e := range s.rows.row(int32(i)) {
			s.square[i] += float64(e.val) * float64(e.val)
		}
		if math.IsNaN(s.square[i]) || math.IsInf(s.square[i], 0) {
			return nil, fmt.Errorf("found a value in row %d that is not finite", i)
		}
	}
	s.unshrink()
	return s, nil
}

func (s *dualDescent) unshrink() {
	s.active = s.active[:cap(s.active)]
	for i := range s.active {
		s.active[i] = int32(i)
	}
	s.high, s.low = math.Inf(1), math.Inf(-1)
}

// margin is ⟨w, xᵢ⟩ + b.
func (s *dualDescent) margin(i int32) float64 {
	row, w := s.rows.row(i), s.w
	var a, b, c, d float64 // four sums, for one addition waits for the one before
	for ; len(row) >= 4; row = row[4:] {
		a += w[row[0].col] * float64(row[0].val)
		b += w[row[1].col] * float64(row[1].val)
		c += w[row[2].col] * float64(row[2].val)
		d += w[row[3].col] * float64(row[3].val)
	}
	for _, e := range row {
		a += w[e.col] * float64(e.val)
	}
	return (a + b) + (c + d) + s.b
}

// epoch visits the active rows once, in a new order. The descent has converged where the violation of an epoch over all
// rows is within the tolerance; where that of the active ones is, the others are made active again.
func (s *dualDescent) epoch() {
	s.epochs++
	s.rng.Shuffle(len(s.active), func(i, j int) { s.active[i], s.active[j] = s.active[j], s.active[i] })
	all := len(s.active) == cap(s.active)
	high, low := math.Inf(-1), math.Inf(1)
	kept := s.active[:0]
	for _, i := range s.active {
		g := float64(s.y[i])*s.margin(i) - 1 + s.extra*s.alpha[i]
		projected, shrink := s.project(s.alpha[i], g)
		if shrink {
			continue
		}
		kept = append(kept, i)
		high, low = max(high, projected), min(low, projected)
		if math.Abs(projected) > 1e-12 {
			s.move(i, g)
		}
	}
	s.active = kept
	if len(kept) == 0 {
		high, low = 0, 0
	}
	s.violation = high - low
	if s.violation <= s.p.Tol {
		if s.converged = all && len(kept) == cap(kept); !s.converged {
			s.unshrink()
		}
		return
	}
	// The next epoch shrinks beyond these bounds, which are infinite where they would shrink rows that may still move.
	if s.high, s.low = high, low; high <= 0 {
		s.high = math.Inf(1)
	}
	if low >= 0 {
		s.low = math.Inf(-1)
	}
}

// project is the gradient without what would lead out of [0, U], and whether the row can be shrunk: its variable is at
// a bound and its gradient holds it there more strongly than any other's did in the epoch before.
func (s *dualDescent) project(alpha, g float64) (projected float64, shrink bool) {
	switch alpha {
	case 0:
		return min(g, 0), g > s.high
	case s.upper:
		return max(g, 0), g < s.low
	}
	return g, false
}

func (s *dualDescent) move(i int32, g float64) {
	before := s.alpha[i]
	after := min(max(before-g/s.square[i], 0), s.upper)
	s.alpha[i] = after
	d := (after - before) * float64(s.y[i])
	w := s.w
	for _, e := range s.rows.row(i) {
		w[e.col] += d * float64(e.val)
	}
	s.b += d
}

// model evaluates primal and dual:
//
//	P = ½(‖w‖² + b²) + C Σ ℓ,   D = Σα − ½(‖w‖² + b²) − ½ D Σα² .
func (s *dualDescent) model() *SVMModel {
	norm := s.b * s.b
	for _, v := range s.w {
		norm += v * v
	}
	m := &SVMModel{
		Weights: make([]float64, s.rows.cols), Intercept: s.b, Epochs: s.epochs, Violation: s.violation,
		Converged: s.converged,
	}
	for at, c := range s.rows.columns {
		m.Weights[c] = s.w[at]
	}
	m.Primal, m.Dual = norm/2, -norm/2
	for i, a := range s.alpha {
		loss := max(0, 1-float64(s.y[i])*s.margin(int32(i)))
		if s.p.Loss == "squared-hinge" {
			loss *= loss
		}
		m.Primal += s.p.C * loss
		m.Dual += a - s.extra*a*a/2
	}
	return m
}

// packedRows are sparse rows with the columns numbered again, the most frequent ones first and those without an entry
// left out. Hashing scatters the few columns that most entries are in over all of w; side by side they stay in the
// processor's cache.
type packedRows struct {
	starts  []int
	entries []entry
	columns []int32 // packed column → column
	cols    int
}

type entry struct {
	col int32
	val float32
}

func packRows(x *Sparse) *packedRows {
	p := &packedRows{starts: x.RowPtr, cols: x.Cols, entries: make([]entry, len(x.Col))}
	counts := make([]int32, x.Cols)
	for _, c := range x.Col {
		counts[c]++
	}
	place := p.order(counts, x.Rows)
	for i, c := range x.Col {
		p.entries[i] = entry{place[c], x.Val[i]}
	}
	return p
}

// order numbers the columns by their counts, which are at most the number of
// rows, equal ones in their own order, and returns the number of each.
func (p *packedRows) order(counts []int32, rows int) []int32 {
	first := make([]int32, rows+2) // of the columns with a count: those with more come before
	for _, n := range counts {
		if n > 0 {
			first[n]++
		}
	}
	used := int32(0)
	for n := rows; n > 0; n-- {
		first[n], used = used, used+first[n]
	}
	p.columns = make([]int32, used)
	place := make([]int32, len(counts))
	for c, n := range counts {
		if n > 0 {
			place[c] = first[n]
			p.columns[first[n]] = int32(c)
			first[n]++
		}
	}
	return place
}

func (p *packedRows) row(i int32) []entry { return p.entries[p.starts[i]:p.starts[i+1]] }

// Scores are ⟨w, xᵢ⟩ + b; the class is their sign.
func (m *SVMModel) Scores(x *Sparse) []float64 {
	out := make([]float64, x.Rows)
	for i := range out {
		cols, vals := x.Row(i)
		sum := m.Intercept
		for j, c := range cols {
			sum += m.Weights[c] * float64(vals[j])
		}
		out[i] = sum
	}
	return out
}

// Sparse is a matrix in compressed rows: those of row i are Col[RowPtr[i]:RowPtr[i+1]], ascending and each once, with
// their values in Val. What is not stored is 0.
type Sparse struct {
	Rows, Cols int
	RowPtr     []int // Rows+1
	Col        []int32
	Val        []float32
}

// NNZ returns how many entries are stored.
func (s *Sparse) NNZ() int { return len(s.Col) }

// Row returns the columns and values of row i, as parts of the matrix.
func (s *Sparse) Row(i int) (cols []int32, vals []float32) {
	from, to := s.RowPtr[i], s.RowPtr[i+1]
	return s.Col[from:to:to], s.Val[from:to:to]
}

// inBlocks calls f for the blocks of 0…n−1 on all processors. f must not depend on the order.
func inBlocks(n, block int, f func(from, to int)) {
	blocks := (n + block - 1) / block
	workers := min(runtime.GOMAXPROCS(0), blocks)
	if workers <= 1 {
		if n > 0 {
			f(0, n)
		}
		return
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for b := int(next.Add(1)) - 1; b < blocks; b = int(next.Add(1)) - 1 {
				f(b*block, min(n, (b+1)*block))
			}
		})
	}
	wg.Wait()
}
