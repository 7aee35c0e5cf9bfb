package supernet

import (
	"fmt"
	"math"
	"strings"
)

// The reference: the network in plain loops over float64, an edge at a time, an
// example at a time, written from the definitions and sharing nothing with the
// package but the paths of the weights.

type fmap struct { // a feature map
	b, h, w, c int
	v          []float64
}

func newMap(b, h, w, c int) fmap { return fmap{b, h, w, c, make([]float64, b*h*w*c)} }

func (m fmap) at(b, i, j, c int) *float64 { return &m.v[((b*m.h+i)*m.w+j)*m.c+c] }

func (m fmap) each(f func(b, i, j, c int, v *float64)) {
	for b := range m.b {
		for i := range m.h {
			for j := range m.w {
				for c := range m.c {
					f(b, i, j, c, m.at(b, i, j, c))
				}
			}
		}
	}
}

// reference holds the values of one evaluation, by path.
type reference struct {
	net      *Net
	values   map[string][]float64 // weights and running statistics
	next     map[string][]float64 // running statistics after the batch
	theta    [][][]float64        // [B, |E|, |O|]
	chosen   [][]float64          // nil: all
	training bool
}

func refConv(x fmap, kernel []float64, k, out, pad, stride int) fmap {
	y := newMap(x.b, (x.h+2*pad-k)/stride+1, (x.w+2*pad-k)/stride+1, out)
	y.each(func(b, i, j, o int, v *float64) {
		for di := range k {
			for dj := range k {
				if p, q := i*stride+di-pad, j*stride+dj-pad; p >= 0 && p < x.h && q >= 0 && q < x.w {
					for c := range x.c {
						*v += *x.at(b, p, q, c) * kernel[((di*k+dj)*x.c+c)*out+o]
					}
				}
			}
		}
	})
	return y
}

func refReLU(x fmap) fmap {
	y := newMap(x.b, x.h, x.w, x.c)
	y.each(func(b, i, j, c int, v *float64) { *v = math.Max(*x.at(b, i, j, c), 0) })
	return y
}

// refPool is the mean over a window of what lies inside the map.
func refPool(x fmap, k, pad, stride int) fmap {
	y := newMap(x.b, (x.h+2*pad-k)/stride+1, (x.w+2*pad-k)/stride+1, x.c)
	y.each(func(b, i, j, c int, v *float64) {
		n := 0.0
		for p := max(i*stride-pad, 0); p < min(i*stride-pad+k, x.h); p++ {
			for q := max(j*stride-pad, 0); q < min(j*stride-pad+k, x.w); q++ {
				*v += *x.at(b, p, q, c)
				n++
			}
		}
		*v /= n
	})
	return y
}

// bn normalises; counts reports whether the batch counts in the running statistics.
func (r *reference) bn(path string, x fmap, affine, counts bool) fmap {
	y := newMap(x.b, x.h, x.w, x.c)
	n := float64(x.b * x.h * x.w)
	for c := range x.c {
		mean, variance := 0.0, 0.0
		x.each(func(b, i, j, at int, v *float64) {
			if at == c {
				mean += *v / n
			}
		})
		x.each(func(b, i, j, at int, v *float64) {
			if at == c {
				variance += (*v - mean) * (*v - mean) / n
			}
		})
		if track := r.net.Config.TrackStats || r.net.Config.TrackOutside && !strings.Contains(path, "<-"); track {
			oldMean, oldVariance := r.values[path+"/mean"][c], r.values[path+"/variance"][c]
			switch {
			case !r.training:
				mean, variance = oldMean, oldVariance
			case counts:
				r.next[path+"/mean"][c] = 0.9*oldMean + 0.1*mean
				r.next[path+"/variance"][c] = 0.9*oldVariance + 0.1*variance*n/(n-1)
			}
		}
		scale, bias := 1.0, 0.0
		if affine {
			scale, bias = r.values[path+"/scale"][c], r.values[path+"/bias"][c]
		}
		y.each(func(b, i, j, at int, v *float64) {
			if at == c {
				*v = (*x.at(b, i, j, c)-mean)/math.Sqrt(variance+1e-5)*scale + bias
			}
		})
	}
	return y
}

func (r *reference) op(cell int, edge Edge, name string, x fmap, counts bool) fmap {
	path := fmt.Sprintf("cells/%d/%s/%s", cell, edge, name)
	switch name {
	case "none":
		return newMap(x.b, x.h, x.w, x.c)
	case "skip_connect":
		return x
	case "avg_pool_3x3":
		return refPool(x, 3, 1, 1)
	}
	k := 3
	if strings.HasSuffix(name, "1x1") {
		k = 1
	}
	y := refConv(refReLU(x), r.values[path+"/conv"], k, x.c, k/2, 1)
	if r.net.Config.ConvBias {
		y.each(func(_, _, _, c int, v *float64) { *v += r.values[path+"/conv_bias"][c] })
	}
	return r.bn(path+"/bn", y, r.net.Config.Affine, counts)
}

func (r *reference) cell(cell int, x fmap) fmap {
	s := r.net.Config.Space
	nodes := []fmap{x}
	for j := 1; j < s.Nodes; j++ {
		node := newMap(x.b, x.h, x.w, x.c)
		for e, edge := range s.Edges {
			if edge.To != j {
				continue
			}
			for o, name := range s.Ops {
				chosen := r.chosen == nil || r.chosen[e][o] == 1
				y := r.op(cell, edge, name, nodes[edge.From], chosen)
				node.each(func(b, i, j, c int, v *float64) {
					if chosen {
						*v += r.theta[b][e][o] * *y.at(b, i, j, c)
					} else {
						*v += r.theta[b][e][o]
					}
				})
			}
		}
		nodes = append(nodes, node)
	}
	return nodes[s.Nodes-1]
}

func (r *reference) forward(images fmap) (logits [][]float64) {
	c := r.net.Config
	width := c.Channels
	x := r.bn("stem/bn", refConv(images, r.values["stem/conv"], 3, width, 1, 1), true, true)
	cell := 0
	for stage := range 3 {
		if stage > 0 {
			p := fmt.Sprintf("cells/%d/", cell)
			a := r.bn(p+"conv_a/bn", refConv(refReLU(x), r.values[p+"conv_a"], 3, 2*width, 1, 2), true, true)
			y := r.bn(p+"conv_b/bn", refConv(refReLU(a), r.values[p+"conv_b"], 3, 2*width, 1, 1), true, true)
			down := refConv(refPool(x, 2, 0, 2), r.values[p+"downsample"], 1, 2*width, 0, 1)
			y.each(func(b, i, j, c int, v *float64) { *v += *down.at(b, i, j, c) })
			x, width, cell = y, 2*width, cell+1
		}
		for range c.Cells {
			x = r.cell(cell, x)
			cell++
		}
	}
	x = refReLU(r.bn("last/bn", x, true, true))
	for b := range x.b {
		row := append([]float64(nil), r.values["classifier/bias"]...)
		for k := range row {
			for i := range x.h {
				for j := range x.w {
					for ch := range x.c {
						row[k] += *x.at(b, i, j, ch) / float64(x.h*x.w) * r.values["classifier/weight"][ch*c.Classes+k]
					}
				}
			}
		}
		logits = append(logits, row)
	}
	return logits
}
