package mixture

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"gonum.org/v1/gonum/floats"

	"github.com/nasml/lab/nasml/trial"
)

// Tolerance is the relative difference below which two losses count as equal. With two operations both sides of
// Condition 6 are the same number (Theorem 1), and rounding would decide which of them is larger.
const Tolerance = 1e-9

// Report is what α says of the operations that it mixes. Losses are
// 𝓛(f, g) = ½E[(f − g)²] over the points given (Roberts+, Sec. 3).
type Report struct {
	Names []string  // of the operations; may be empty
	Alpha []float64 // α

	Loss    []float64      // Lᵢ = 𝓛(f_σᵢ), against the labels
	Mixture float64        // R = 𝓛(f_σα), against the labels: 0 under Assumption 3
	Far     []trial.Number // Aᵢ = 𝓛(f_σᵢ, Σ_{k≠i} γ_k f_σ_k), γ as of Factor at i; none where αᵢ = 1
	Excess  []float64      // 𝓛(f_σᵢ, f_σα), which is (1 − αᵢ)²Aᵢ
	Between [][]float64    // D_ij = 𝓛(f_σᵢ, f_σⱼ)

	Best    int   // argmin Lᵢ, the first of equals
	ArgMax  int   // argmax αᵢ, the first of equals
	Ranking []int // operations by loss, the best first
	Pairs   []Pair

	// Ordered and Distinct are Assumption 1: f_σα is better than every operation,
	// and no two operations are equally good.
	Ordered, Distinct bool
	Interior          bool // Assumption 2: all αᵢ > 0, and so all αᵢ < 1
	Realized          bool // Assumption 3: R ≤ Tolerance · min Lᵢ

	size float64 // √ of the largest ½E[f_σᵢ²]: what rounding is relative to
}

// Pair is what can be said of two operations with Lᵢ < Lⱼ.
type Pair struct {
	I, J int

	// Condition reports whether Condition 6 (Condition 3 for three operations) holds, Aᵢ ≥ Aⱼ up to Tolerance, and
	// Margin is (Aᵢ − Aⱼ)/Aⱼ, none where Aⱼ is 0. They need αᵢ, αⱼ < 1.
	Condition bool
	Margin    trial.Number

	// Gap is Lⱼ − Lᵢ − 2√(D_ij·R). Where it is positive, 𝓛(f_σᵢ, f_σα) <
	// 𝓛(f_σⱼ, f_σα) whatever the residual y − f_σα is: Assumption 3 is not needed.
	Gap float64

	// Guaranteed: the condition holds and the gap is positive, so that αⱼ < αᵢ.
	Guaranteed bool

	// Prior reports whether D_ik ≥ D_jk for every other operation k: i is at least as far from all others as j is. This
	// is exactly when Lᵢ < Lⱼ implies αⱼ < αᵢ for every α of the simplex (under Assumption 3), so that it can be known
	// before a search has ended.
	Prior bool

	// Threshold is Σ_{k≠i,j} α_k(D_ik − D_jk)/D_ij. Under Assumption 3, Lᵢ < Lⱼ
	// says no more and no less than αᵢ − αⱼ > Threshold. None where D_ij is 0.
	Threshold trial.Number

	Right bool // αⱼ < αᵢ: what the theorems conclude
}

// Check compares the weights α [h] of a mixture with the losses of its operations, whose outputs are [h][n], on labels
// y [n]. The points are the population: expectations are means over them, so that the paper's identities are exact. Any
// problem will do: outputs may be those of the discrete architectures of any weight-sharing network, with the mixture Σ
// αᵢ·outputsᵢ, and outputs of several numbers a point joined to one row.
//
// With one operation there is nothing to compare: no pair, and Assumption 2 fails. It returns an error if lengths
// differ or if α is not on the simplex, and where a number is not finite.
func Check(alpha []float64, outputs [][]float64, y []float64) (*Report, error) {
	if err := checkInput(alpha, outputs, y); err != nil {
		return nil, err
	}
	r := &Report{Alpha: alpha, Interior: len(alpha) > 1 && floats.Min(alpha) > 0}
	for _, g := range outputs {
		r.size = max(r.size, floats.Norm(g, 2)/math.Sqrt(2*float64(len(g))))
	}
	mixture := Combine(alpha, outputs)
	r.Mixture = r.between(mixture, y)
	for i, g := range outputs {
		r.Loss = append(r.Loss, r.between(g, y))
		r.Excess = append(r.Excess, r.between(g, mixture))
		far := trial.None
		if gamma := Factor(alpha, i); gamma != nil {
			far = trial.Number(r.between(g, Combine(gamma, outputs)))
		}
		r.Far = append(r.Far, far)
		r.Between = append(r.Between, make([]float64, len(outputs)))
		for j := range i {
			d := r.between(g, outputs[j])
			r.Between[i][j], r.Between[j][i] = d, d
		}
	}
	r.rank()
	for a, i := range r.Ranking {
		for _, j := range r.Ranking[a+1:] {
			if !same(r.Loss[i], r.Loss[j]) {
				r.Pairs = append(r.Pairs, r.pair(i, j))
			}
		}
	}
	return r, nil
}

func checkInput(alpha []float64, outputs [][]float64, y []float64) error {
	if err := checkAlpha(alpha); err != nil {
		return err
	}
	if len(outputs) != len(alpha) || len(y) == 0 {
		return fmt.Errorf(
			"%d operations' outputs on %d labels for %d weights: expected one row of outputs for each weight and at "+
				"least one label", len(outputs), len(y), len(alpha))
	}
	for i, g := range append(slices.Clone(outputs), y) {
		name := fmt.Sprintf("outputs of operation %d", i)
		if i == len(outputs) {
			name = "labels"
		}
		if len(g) != len(y) {
			return fmt.Errorf("%s: %d, expected one for each of %d labels", name, len(g), len(y))
		}
		if at := slices.IndexFunc(g, func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) }); at >= 0 {
			return fmt.Errorf("%s: %v at point %d, expected finite numbers: did the training diverge?", name, g[at], at)
		}
	}
	return nil
}

func (r *Report) rank() {
	r.Ranking = trial.Indices(0, len(r.Alpha))
	r.ArgMax = floats.MaxIdx(r.Alpha)
	slices.SortStableFunc(r.Ranking, func(i, j int) int { return cmp.Compare(r.Loss[i], r.Loss[j]) })
	r.Best = r.Ranking[0]
	best := r.Loss[r.Best]
	r.Ordered, r.Distinct = r.Mixture < best && !same(r.Mixture, best), true
	for a := 1; a < len(r.Ranking); a++ {
		r.Distinct = r.Distinct && !same(r.Loss[r.Ranking[a-1]], r.Loss[r.Ranking[a]])
	}
	r.Realized = r.Mixture <= Tolerance*best
}

func (r *Report) pair(i, j int) Pair {
	p := Pair{I: i, J: j, Margin: trial.None, Threshold: trial.None, Prior: true, Right: r.Alpha[j] < r.Alpha[i]}
	if ai, aj := r.Far[i], r.Far[j]; ai.Valid() && aj.Valid() {
		p.Condition = ai >= aj*(1-Tolerance)
		if aj > 0 {
			p.Margin = (ai - aj) / aj
		}
	}
	p.Gap = r.Loss[j] - r.Loss[i] - 2*math.Sqrt(r.Between[i][j]*r.Mixture)
	p.Guaranteed = p.Condition && p.Gap > Tolerance*r.Loss[j]
	if r.Between[i][j] > 0 {
		p.Threshold = 0
		for k, a := range r.Alpha {
			if k != i && k != j {
				p.Prior = p.Prior && r.Between[i][k] >= r.Between[j][k]
				p.Threshold += trial.Number(a * (r.Between[i][k] - r.Between[j][k]) / r.Between[i][j])
			}
		}
	}
	return p
}

// RankingRight reports whether α ranks all operations as their losses do, where no two are equally good.
func (r *Report) RankingRight() bool {
	return r.Distinct && !slices.ContainsFunc(r.Pairs, func(p Pair) bool { return !p.Right })
}

// ArgMaxRight reports whether the arg max of α is the best operation, where one of them is the best.
func (r *Report) ArgMaxRight() bool {
	if slices.ContainsFunc(r.Ranking[1:], func(j int) bool { return same(r.Loss[r.Best], r.Loss[j]) }) {
		return false
	}
	return !slices.ContainsFunc(r.Pairs, func(p Pair) bool { return p.I == r.Best && !p.Right })
}

// Conditions says for how many pairs Condition 6 holds: of the pairs (1, j) of the best operation, which is what arg
// max discretization needs, and of all pairs, which is what the whole ranking needs.
func (r *Report) Conditions() (first, all int) {
	for _, p := range r.Pairs {
		if p.Condition {
			all++
			if p.I == r.Best {
				first++
			}
		}
	}
	return first, all
}

// Sparse is a guarantee that needs neither Condition 6 nor Assumption 3: α is so
// concentrated on one operation i that i must be the best,
//
//	2(1 − αᵢ) max_k √D_ik + 2√R < min_{k≠i} √D_ik .
//
// Proof with ‖f‖² = ½E[f²] and the triangle inequality: √Lᵢ ≤ (1 − αᵢ) max_k √D_ik
// + √R, and √Lⱼ ≥ √D_ij − √Lᵢ. It is false for a single operation.
func (r *Report) Sparse() bool {
	i, near, far := r.ArgMax, math.Inf(1), 0.0
	for k, d := range r.Between[i] {
		if k != i {
			near, far = min(near, math.Sqrt(d)), max(far, math.Sqrt(d))
		}
	}
	bound := 2*Rest(r.Alpha, i)*far + 2*math.Sqrt(r.Mixture)
	return len(r.Alpha) > 1 && bound < near*(1-Tolerance)
}

// String is the report as two aligned tables.
func (r *Report) String() string {
	var out bytes.Buffer
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "operation\tα\tloss L\tA\trank by L")
	for at, i := range r.Ranking {
		_, _ = fmt.Fprintf(w, "%s\t%.4f\t%.4g\t%v\t%d\n", r.name(i), r.Alpha[i], r.Loss[i], r.Far[i], at+1)
	}
	_, _ = fmt.Fprintln(w, "\npair\tCondition 6\tmargin\tguaranteed\tfor every α\tα in order")
	for _, p := range r.Pairs {
		_, _ = fmt.Fprintf(w, "%s before %s\t%s\t%v\t%s\t%s\t%s\n", r.name(p.I), r.name(p.J), yes[p.Condition],
			p.Margin, yes[p.Guaranteed], yes[p.Prior], yes[p.Right])
	}
	_ = w.Flush() // into a buffer
	fmt.Fprintf(&out, "\nAssumption 1: %s. Assumption 2: %s. Assumption 3: %s (loss of the mixture %.4g).\n",
		yes[r.Ordered && r.Distinct], yes[r.Interior], yes[r.Realized], r.Mixture)
	fmt.Fprintf(&out,
		"arg max α is %s, the best operation is %s; whole ranking right: %s; so sparse that it must be: %s.\n",
		r.name(r.ArgMax), r.name(r.Best), yes[r.RankingRight()], yes[r.Sparse()])
	return strings.TrimRight(out.String(), "\n")
}

func (r *Report) name(i int) string {
	if i < len(r.Names) {
		return r.Names[i]
	}
	return fmt.Sprint(i + 1)
}

var yes = map[bool]string{true: "yes", false: "no"}

// Combine is Σᵢ weightsᵢ·outputsᵢ.
func Combine(weights []float64, outputs [][]float64) []float64 {
	sum := make([]float64, len(outputs[0]))
	for i, g := range outputs {
		floats.AddScaled(sum, weights[i], g)
	}
	return sum
}

// between is 𝓛(f, g) = ½E[(f − g)²], and 0 where f and g differ by rounding only: which of two
// such losses is larger means nothing.
func (r *Report) between(f, g []float64) float64 {
	const rounding = 1e-14
	var sum float64
	for i := range f {
		sum += (f[i] - g[i]) * (f[i] - g[i])
	}
	l := sum / 2 / float64(len(f))
	if math.Sqrt(l) <= rounding*r.size {
		return 0
	}
	return l
}

func same(a, b float64) bool { return math.Abs(a-b) <= Tolerance*max(a, b) }

// onSimplex is how far the sum of α may be from 1: what float32 leaves of it.
const onSimplex = 1e-5

func checkAlpha(alpha []float64) error {
	if len(alpha) == 0 {
		return errors.New("α must have the weight of at least one operation")
	}
	for i, a := range alpha {
		if math.IsNaN(a) || a < 0 || a > 1+onSimplex {
			return fmt.Errorf("α[%d] must be between 0 and 1, got %v", i, a)
		}
	}
	if sum := floats.Sum(alpha); math.Abs(sum-1) > onSimplex {
		return fmt.Errorf("α must sum to 1, got %v: take a softmax, or divide by the sum", sum)
	}
	return nil
}

// Rest is 1 − αᵢ as the sum of the others, which loses no digits where αᵢ is near 1.
func Rest(alpha []float64, i int) float64 {
	var sum float64
	for k, a := range alpha {
		if k != i {
			sum += a
		}
	}
	return sum
}

// Factor writes α as seen from operation i (Roberts+, Lemma 5):
//
//	α_k = (1 − αᵢ)γ_k,  γ_k = α_k / Σ_{l≠i} α_l,  k ≠ i .
//
// γ is on the simplex of the other operations; γ[i] is 0, so that it has the length of α, as the paper's [0, γ]. Where
// all αs are positive so are all other γs (the paper's Assumption 2), but αᵢ < 1 is all that the factorization needs:
// where αᵢ is 1 there is none, and γ is nil.
func Factor(alpha []float64, i int) (gamma []float64) {
	others := Rest(alpha, i)
	if others == 0 {
		return nil
	}
	gamma = make([]float64, len(alpha))
	for k, a := range alpha {
		if k != i {
			gamma[k] = a / others
		}
	}
	return gamma
}

// StickBreaking applies [Factor] to γ again and again (Roberts+, after Lemma 5):
//
//	b₁ = α₁,  bᵢ = αᵢ / Σ_{j≥i} α_j,  αᵢ = bᵢ Π_{j<i} (1 − b_j),  b_h = 1 .
//
// Tails are summed, because 1 − Σ_{j<i} α_j loses digits. Where a tail is zero its b are 1, which gives the zeros back.
func StickBreaking(alpha []float64) []float64 {
	b := make([]float64, len(alpha))
	tail := 0.0
	for i := len(alpha) - 1; i >= 0; i-- {
		tail += alpha[i]
		b[i] = 1
		if tail > 0 {
			b[i] = alpha[i] / tail
		}
	}
	return b
}

// Sticks is the inverse of [StickBreaking].
func Sticks(b []float64) []float64 {
	alpha := make([]float64, len(b))
	left := 1.0
	for i, x := range b {
		alpha[i] = left * x
		left *= 1 - x
	}
	return alpha
}
