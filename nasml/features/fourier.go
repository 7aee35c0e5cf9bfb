package features

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/mat"
)

// Kernel is a shift-invariant kernel.
type Kernel string

// The two of Khodak+ 2020.
const (
	Gaussian  Kernel = "gaussian"  // exp(−γ‖x − x′‖₂²)
	Laplacian Kernel = "laplacian" // exp(−γ‖x − x′‖₁)
)

// FourierConfig is a configuration of Khodak+ 2020 for images (Appendix B.2.1).
type FourierConfig struct {
	Kernel     Kernel
	Gamma      float64 // bandwidth γ > 0
	Preprocess Preprocess
}

// Check returns an error if a field is invalid.
func (c FourierConfig) Check() error {
	switch {
	case c.Kernel != Gaussian && c.Kernel != Laplacian:
		return fmt.Errorf("kernel must be %s or %s, got %q", Gaussian, Laplacian, c.Kernel)
	case c.Preprocess != Raw && c.Preprocess != MinMax && c.Preprocess != Standard && c.Preprocess != UnitRows:
		return fmt.Errorf("preprocessing must be %s, %s, %s or %s, got %q", Raw, MinMax, Standard, UnitRows,
			c.Preprocess)
	case !(c.Gamma > 0 && c.Gamma <= math.MaxFloat32):
		return fmt.Errorf("bandwidth γ must be positive, got %v", c.Gamma)
	}
	return nil
}

// factor is what the preprocessed inputs are multiplied by, so that W is the same for all bandwidths: the spectral
// measure of the Gaussian kernel is normal with variance 2γ, that of the Laplacian one is Cauchy with scale γ.
func (c FourierConfig) factor() float64 {
	if c.Kernel == Gaussian {
		return math.Sqrt(2 * c.Gamma)
	}
	return c.Gamma
}

// Fourier is a draw of d random Fourier features (Rahimi and Recht 2007),
//
//	φ(x) = √(2/d)·cos(√(2γ)·Wx + b),   W ~ N(0, I),   b ~ U[0, 2π],
//
// for the Gaussian kernel, and with γ·W, W standard Cauchy, for the Laplacian. Feature j is the same whatever d is.
type Fourier struct {
	Dim  int // d
	Seed uint64
	// Fresh gives every configuration a draw of its own. Otherwise all share
	// the two matrices and the offsets, as in the code of Khodak+ 2020.
	Fresh bool
}

// Rows are examples, each with its configuration.
type Rows struct {
	X       Table
	Scaling *Scaling // of the training examples; may be nil where no configuration needs it
	Configs []FourierConfig
	Config  []int // of each row, an index of Configs; if nil, all have Configs[0]
}

// Features is the matrix Φ of the features of some rows, [n, d], as an [Operator]. It is
// not for use by two goroutines at once.
type Features struct {
	e       *Engine
	f       Fourier
	rows    Rows
	groups  []featureGroup
	room    int                     // so many rows, in the order of the groups, have their features kept
	filling bool                    // while they are made
	kept    map[int]*tensors.Tensor // features of a block, by its first row in the order of the groups
	weights *tensors.Tensor         // if there is one group only
	offsets *tensors.Tensor
}

type featureGroup struct {
	kernel Kernel
	draw   string // names the stream of a fresh draw
	rows   []int  // of the table
	first  int    // place of the first one, all groups' rows in order
}

// Features makes the features of as many rows as have room in keepBytes, and keeps them on the device. Every product
// makes those of the others again, block by block, and W before the first of them.
//
// It returns an error if a configuration is invalid, the sizes differ, or an input is not finite.
func (e *Engine) Features(ctx context.Context, f Fourier, rows Rows, keepBytes int64) (*Features, error) {
	if err := rows.check(); err != nil {
		return nil, fmt.Errorf("random Fourier features: %w", err)
	}
	if f.Dim < 1 || f.Dim > math.MaxInt32 {
		return nil, fmt.Errorf("random Fourier features: d must be at least 1, got %d", f.Dim)
	}
	m := &Features{e: e, f: f, rows: rows, kept: map[int]*tensors.Tensor{}}
	m.room = int(min(int64(rows.X.Rows), max(keepBytes, 0)/int64(4*f.Dim)))
	m.group()
	m.filling = true
	err := m.each(ctx, func(b block) error { m.kept[b.first] = b.phi; return nil })
	m.filling = false
	if err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

func (r *Rows) check() error {
	if err := r.X.check(); err != nil {
		return err
	}
	if len(r.Configs) == 0 {
		return errors.New("at least one configuration is needed")
	}
	for i, c := range r.Configs {
		if err := c.Check(); err != nil {
			return fmt.Errorf("configuration %d: %w", i, err)
		}
		if c.Preprocess != MinMax && c.Preprocess != Standard {
			continue
		}
		if r.Scaling == nil || len(r.Scaling.mean) != r.X.Cols {
			return fmt.Errorf("configuration %d preprocesses by %s: expected a Scaling of %d columns, from FitScaling",
				i, c.Preprocess, r.X.Cols)
		}
	}
	if r.Config != nil && len(r.Config) != r.X.Rows {
		return fmt.Errorf("each of %d rows must have a configuration, got %d", r.X.Rows, len(r.Config))
	}
	for i, c := range r.Config {
		if c < 0 || c >= len(r.Configs) {
			return fmt.Errorf("row %d has configuration %d of %d", i, c, len(r.Configs))
		}
	}
	return nil
}

func (r *Rows) config(i int) (index int, c FourierConfig) {
	if r.Config != nil {
		index = r.Config[i]
	}
	return index, r.Configs[index]
}

func (m *Features) group() {
	for i := range m.rows.X.Rows {
		index, c := m.rows.config(i)
		draw := ""
		if m.f.Fresh {
			draw = strconv.Itoa(index)
		}
		at := slices.IndexFunc(m.groups, func(g featureGroup) bool { return g.kernel == c.Kernel && g.draw == draw })
		if at < 0 {
			at = len(m.groups)
			m.groups = append(m.groups, featureGroup{kernel: c.Kernel, draw: draw})
		}
		m.groups[at].rows = append(m.groups[at].rows, i)
	}
	first := 0
	for i := range m.groups {
		m.groups[i].first = first
		first += len(m.groups[i].rows)
	}
}

// Dims are n and d.
func (m *Features) Dims() (rows, cols int) { return m.rows.X.Rows, m.f.Dim }

// Kept reports whether the features of all rows stay on the device.
func (m *Features) Kept() bool { return m.room == m.rows.X.Rows }

// Close frees the memory of the device.
func (m *Features) Close() {
	for _, t := range m.kept {
		finalize(t)
	}
	for _, t := range []*tensors.Tensor{m.weights, m.offsets} {
		if t != nil {
			finalize(t)
		}
	}
	m.kept, m.weights, m.offsets = nil, nil, nil
}

// block is some rows of one group with their features. Behind the last row it has others, up to the size of a compiled
// shape: all zero as inputs, so that their features are not.
type block struct {
	rows  []int // of the table
	first int   // key of Features.kept
	size  int   // with those that only fill up
	phi   *tensors.Tensor
}

// each calls do with every block in turn. Where features are not kept, they are freed after it.
func (m *Features) each(ctx context.Context, do func(block) error) error {
	for g := range m.groups {
		if err := m.eachOf(ctx, &m.groups[g], do); err != nil {
			return fmt.Errorf("random Fourier features of shape [%d, %d]: %w", m.rows.X.Rows, m.f.Dim, err)
		}
	}
	return nil
}

func (m *Features) eachOf(ctx context.Context, g *featureGroup, do func(block) error) error {
	var weights *tensors.Tensor
	defer func() {
		if weights != nil && weights != m.weights {
			finalize(weights)
		}
	}()
	for at := 0; at < len(g.rows); {
		if err := ctx.Err(); err != nil {
			return err
		}
		size := m.e.blockSize(m.f.Dim, len(g.rows)-at)
		if m.filling && g.first+at+min(size, len(g.rows)-at) > m.room {
			return nil
		}
		b := block{rows: g.rows[at:min(at+size, len(g.rows))], first: g.first + at, size: size, phi: m.kept[g.first+at]}
		at += size
		if b.phi != nil {
			if err := do(b); err != nil {
				return err
			}
			continue
		}
		var err error
		if weights == nil {
			if weights, err = m.drawWeights(g); err != nil {
				return err
			}
		}
		if b.phi, err = m.e.features(m.inputs(b), weights, m.offsets, b.size); err != nil {
			return err
		}
		err = do(b)
		if m.kept[b.first] != b.phi {
			finalize(b.phi)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// drawWeights draws W, [p, d], and the offsets, [d]. A W that all rows share is kept, because its next use is sure.
func (m *Features) drawWeights(g *featureGroup) (*tensors.Tensor, error) {
	if m.weights != nil {
		return m.weights, nil
	}
	of := normal
	if g.kernel == Laplacian {
		of = cauchy
	}
	weights, err := m.e.draw(drawKey(m.f.Seed, string(of), g.draw), m.rows.X.Cols, m.f.Dim, of)
	if err != nil {
		return nil, err
	}
	if m.offsets == nil || m.f.Fresh {
		if m.offsets != nil {
			finalize(m.offsets)
		}
		if m.offsets, err = m.e.draw(drawKey(m.f.Seed, "offsets", g.draw), 1, m.f.Dim, uniform); err != nil {
			return nil, err
		}
	}
	if len(m.groups) == 1 && !m.Kept() {
		m.weights = weights
	}
	return weights, nil
}

// Draws are W, [p, d] row-major, and the offsets b, [d], of a draw that all
// configurations share, for p inputs: what [Engine.Features] multiplies by.
func (e *Engine) Draws(f Fourier, kernel Kernel, inputs int) (w, b []float32, err error) {
	m := &Features{e: e, f: f, rows: Rows{X: Table{Cols: inputs}}}
	weights, err := m.drawWeights(&featureGroup{kernel: kernel})
	if err != nil {
		return nil, nil, err
	}
	defer finalize(weights)
	defer m.Close()
	if w, err = tensors.CopyFlatData[float32](weights); err != nil {
		return nil, nil, fmt.Errorf("reading drawn numbers: %w", err)
	}
	b, err = tensors.CopyFlatData[float32](m.offsets)
	return w, b, err
}

func (m *Features) inputs(b block) []float32 {
	p := m.rows.X.Cols
	x := make([]float32, b.size*p)
	for i, row := range b.rows {
		_, c := m.rows.config(row)
		m.rows.Scaling.applyTo(x[i*p:(i+1)*p], m.rows.X.Row(row), c.Preprocess, c.factor())
	}
	return x
}

// MulTo is dst = ΦX.
func (m *Features) MulTo(ctx context.Context, dst, x *mat.Dense) error {
	if err := m.fits(dst, x); err != nil {
		return err
	}
	right := upload(x)
	defer right.finalize()
	return m.each(ctx, func(b block) error {
		y, err := m.e.mul(b.phi, right)
		if err == nil {
			b.scatter(dst, y)
		}
		return err
	})
}

// MulTransTo is dst = ΦᵀY.
func (m *Features) MulTransTo(ctx context.Context, dst, y *mat.Dense) error {
	if err := m.fits(y, dst); err != nil {
		return err
	}
	dst.Zero()
	return m.each(ctx, func(b block) error {
		z, err := m.e.mulTrans(b.phi, b.gather(y))
		if err == nil {
			addTransposed(dst, z)
		}
		return err
	})
}

// StepTo is [Operator.StepTo] with A = Φ.
func (m *Features) StepTo(ctx context.Context, dst, y, x *mat.Dense, shift, scale []float64) error {
	if err := m.fits(y, x); err != nil {
		return err
	}
	right := upload(x)
	defer right.finalize()
	dst.Zero()
	return m.each(ctx, func(b block) error {
		yNew, z, err := m.e.step(b.phi, right, b.gather(y), shift, scale, len(b.rows))
		if err != nil {
			return err
		}
		b.scatter(y, yNew)
		addTransposed(dst, z)
		return nil
	})
}

// fits returns an error that shows all shapes where those of Y, [n, k], and X,
// [d, k], are not those of a product with A.
func (m *Features) fits(y, x *mat.Dense) error {
	n, d := m.Dims()
	yn, yk := y.Dims()
	xd, xk := x.Dims()
	if yn != n || xd != d || yk != xk {
		return fmt.Errorf(
			"product with a matrix of shape [%d, %d]: found sides of shapes [%d, %d] and [%d, %d], expected [%d, k] "+
				"and [%d, k]", n, d, xd, xk, yn, yk, d, n)
	}
	return nil
}

// gather are the block's rows of Y, then zeros.
func (b block) gather(y *mat.Dense) *mat.Dense {
	_, k := y.Dims()
	out := mat.NewDense(b.size, k, nil)
	for i, row := range b.rows {
		copy(out.RawRowView(i), y.RawRowView(row))
	}
	return out
}

func (b block) scatter(y *mat.Dense, rows []float64) {
	_, k := y.Dims()
	for i, row := range b.rows {
		copy(y.RawRowView(row), rows[i*k:(i+1)*k])
	}
}

// addTransposed adds zᵀ, where z has shape [k, d], to m, [d, k].
func addTransposed(m *mat.Dense, z []float64) {
	d, k := m.Dims()
	for j := range k {
		for i, v := range z[j*d : (j+1)*d] {
			m.RawRowView(i)[j] += v
		}
	}
}
