package kernels_test

import (
	"math"

	"github.com/nasml/lab/nasml/internal/kernels"
)

// geometry is one case: maps [b, h, w, c] and a k × k window.
type geometry struct{ b, h, w, c, k, s, d int }

func (g geometry) rows() int    { return (g.h + g.s - 1) / g.s }
func (g geometry) columns() int { return (g.w + g.s - 1) / g.s }
func (g geometry) large() []int { return []int{g.b, g.h, g.w, g.c} }
func (g geometry) small() []int { return []int{g.b, g.rows(), g.columns(), g.c} }
func (g geometry) size() (x, y, k int) {
	return g.b * g.h * g.w * g.c, g.b * g.rows() * g.columns() * g.c, g.k * g.k * g.c
}

// visit calls f for every output, tap and pixel inside of x that belong
// together: places in y, in x, and the number of the tap.
func (g geometry) visit(f func(y, x, tap, c int)) {
	p := g.d * (g.k - 1) / 2
	for b := range g.b {
		for i := range g.rows() {
			for j := range g.columns() {
				for u := range g.k {
					for v := range g.k {
						h, w := g.s*i+g.d*u-p, g.s*j+g.d*v-p
						for c := range g.c {
							if h >= 0 && h < g.h && w >= 0 && w < g.w {
								f(((b*g.rows()+i)*g.columns()+j)*g.c+c, ((b*g.h+h)*g.w+w)*g.c+c, u*g.k+v, c)
							}
						}
					}
				}
			}
		}
	}
}

// results are y, and the gradients in x and in the kernel of ⟨y, v⟩, by the
// definition.
type results struct{ y, dx, dk []float64 }

func (g geometry) depthwise(x, kernel, v []float64) (r results) {
	nx, ny, nk := g.size()
	r = results{make([]float64, ny), make([]float64, nx), make([]float64, nk)}
	g.visit(func(at, from, tap, c int) {
		r.y[at] += x[from] * kernel[tap*g.c+c]
		r.dx[from] += v[at] * kernel[tap*g.c+c]
		r.dk[tap*g.c+c] += v[at] * x[from]
	})
	return r
}

func (g geometry) maxPool(x, v []float64) (r results) {
	nx, ny, _ := g.size()
	r = results{y: make([]float64, ny), dx: make([]float64, nx)}
	best := make([]int, ny)
	for i := range best {
		best[i] = -1
	}
	g.visit(func(at, from, _, _ int) {
		if best[at] < 0 || x[from] > x[best[at]] {
			best[at] = from
		}
	})
	for at, from := range best {
		r.y[at] = x[from]
		r.dx[from] += v[at]
	}
	return r
}

func (g geometry) avgPool(x, v []float64) (r results) {
	nx, ny, _ := g.size()
	r = results{y: make([]float64, ny), dx: make([]float64, nx)}
	count := make([]float64, ny)
	g.visit(func(at, _, _, _ int) { count[at]++ })
	g.visit(func(at, from, _, _ int) {
		r.y[at] += x[from] / count[at]
		r.dx[from] += v[at] / count[at]
	})
	return r
}

// batchNorm also returns the largest 1/σ, by which roundings grow.
func (g geometry) batchNorm(x, v []float64) (r results, most float64) {
	r = results{y: make([]float64, len(x)), dx: make([]float64, len(x))}
	n := float64(len(x) / g.c)
	mean := func(c int, f func(i int) float64) (sum float64) {
		for i := c; i < len(x); i += g.c {
			sum += f(i) / n
		}
		return sum
	}
	for c := range g.c {
		mu := mean(c, func(i int) float64 { return x[i] })
		sigma := math.Sqrt(mean(c, func(i int) float64 { return (x[i] - mu) * (x[i] - mu) }) + kernels.Epsilon)
		up := mean(c, func(i int) float64 { return v[i] })
		along := mean(c, func(i int) float64 { return v[i] * (x[i] - mu) / sigma })
		for i := c; i < len(x); i += g.c {
			r.y[i] = (x[i] - mu) / sigma
			r.dx[i] = (v[i] - up - r.y[i]*along) / sigma
		}
		most = max(most, 1/sigma)
	}
	return r, most
}

// geometries have every k, stride and dilation, channels for all numbers of
// lanes, and maps smaller than the window.
func geometries() (all []geometry) {
	channels := []int{1, 3, 4, 8, 16, 21, 36}
	for i, kind := range [][3]int{
		{3, 1, 1}, {3, 2, 1}, {3, 1, 2}, {3, 2, 2}, {5, 1, 1}, {5, 2, 1}, {5, 1, 2}, {5, 2, 2},
		{7, 1, 1}, {7, 2, 1}, {7, 1, 2}, {7, 2, 2},
		{3, 3, 1}, {3, 1, 1}, {5, 1, 2}, {3, 1, 3},
	} {
		all = append(all, geometry{
			b: 1 + i%3, h: []int{9, 6, 12, 1, 5}[i%5], w: []int{7, 16, 3, 8}[i%4],
			c: channels[i%len(channels)], k: kind[0], s: kind[1], d: kind[2],
		})
	}
	return append(all, geometry{20, 4, 5, 8, 3, 1, 1},
		geometry{2, 32, 32, 16, 3, 1, 1}, geometry{2, 32, 32, 16, 5, 2, 1})
}
