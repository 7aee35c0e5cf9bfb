package supernet

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// The reference: networks of cells in plain loops over float64, an edge at a
// time, written from the authors' definitions (quark0/darts@f276dd3,
// yuhuixu1993/PC-DARTS@b74702f) and sharing nothing with the package but the
// paths of the weights and the data of spaces and genotypes.
type cellLoops struct {
	values, next map[string][]float64 // weights and running statistics, before and after
	train        bool
	drop         []float64 // factors of the examples, a place after the other
}

func (r *cellLoops) conv(path string, x fmap, k, out, stride int) fmap {
	return refConv(x, r.values[path], k, out, k/2, stride)
}

func (r *cellLoops) bn(path string, x fmap, affine bool) fmap {
	y := newMap(x.b, x.h, x.w, x.c)
	n := float64(x.b * x.h * x.w)
	for c := range x.c {
		channel := func(f func(v float64)) {
			x.each(func(_, _, _, at int, v *float64) {
				if at == c {
					f(*v)
				}
			})
		}
		mean, variance := 0.0, 0.0
		channel(func(v float64) { mean += v / n })
		channel(func(v float64) { variance += (v - mean) * (v - mean) / n })
		if !r.train {
			mean, variance = r.values[path+"/mean"][c], r.values[path+"/variance"][c]
		} else {
			r.next[path+"/mean"][c] = 0.9*r.values[path+"/mean"][c] + 0.1*mean
			r.next[path+"/variance"][c] = 0.9*r.values[path+"/variance"][c] + 0.1*variance*n/(n-1)
		}
		scale, shift := 1.0, 0.0
		if affine {
			scale, shift = r.values[path+"/scale"][c], r.values[path+"/bias"][c]
		}
		y.each(func(b, i, j, at int, v *float64) {
			if at == c {
				*v = (*x.at(b, i, j, c)-mean)/math.Sqrt(variance+1e-5)*scale + shift
			}
		})
	}
	return y
}

// channels are those from, to, of x; beside them another map's.
func channels(x fmap, from, to int) fmap {
	y := newMap(x.b, x.h, x.w, to-from)
	y.each(func(b, i, j, c int, v *float64) { *v = *x.at(b, i, j, from+c) })
	return y
}

func stacked(maps ...fmap) fmap {
	x := maps[0]
	for _, m := range maps[1:] {
		y := newMap(x.b, x.h, x.w, x.c+m.c)
		y.each(func(b, i, j, c int, v *float64) {
			if c < x.c {
				*v = *x.at(b, i, j, c)
			} else {
				*v = *m.at(b, i, j, c-x.c)
			}
		})
		x = y
	}
	return x
}

func (r *cellLoops) factorized(path string, x fmap, out int, affine bool) fmap {
	x = refReLU(x)
	later := newMap(x.b, x.h-1, x.w-1, x.c) // without its first row and column
	later.each(func(b, i, j, c int, v *float64) { *v = *x.at(b, i+1, j+1, c) })
	halves := stacked(r.conv(path+"/conv_1", x, 1, out/2, 2), r.conv(path+"/conv_2", later, 1, out/2, 2))
	return r.bn(path+"/bn", halves, affine)
}

func (r *cellLoops) preprocess(path string, x fmap, width int, halve, affine bool) fmap {
	if halve {
		return r.factorized(path, x, width, affine)
	}
	return r.bn(path+"/bn", r.conv(path+"/conv", refReLU(x), 1, width, 1), affine)
}

func (r *cellLoops) depthwise(path, suffix string, x fmap, k, stride, dilation int) fmap {
	kernel := r.values[path+"/depthwise"+suffix]
	y := refWindow(refReLU(x), k, dilation*(k/2), stride, dilation, func(sum, pixel float64, di, dj, c int) float64 {
		return sum + pixel*kernel[(di*k+dj)*x.c+c]
	})
	return r.conv(path+"/pointwise"+suffix, y, 1, x.c, 1)
}

func (r *cellLoops) op(path, name string, x fmap, stride int, search bool) fmap {
	affine := !search
	switch name {
	case "none":
		return newMap(x.b, (x.h+stride-1)/stride, (x.w+stride-1)/stride, x.c)
	case "max_pool_3x3", "avg_pool_3x3":
		y := refMax(x, 3, 1, stride)
		if name == "avg_pool_3x3" {
			y = refPool(x, 3, 1, stride)
		}
		if search {
			y = r.bn(path+"/bn", y, false)
		}
		return y
	case "skip_connect":
		if stride == 1 {
			return x
		}
		return r.factorized(path, x, x.c, affine)
	}
	k := int(name[len(name)-1] - '0')
	if strings.HasPrefix(name, "dil") {
		return r.bn(path+"/bn", r.depthwise(path, "", x, k, stride, 2), affine)
	}
	y := r.bn(path+"/bn_1", r.depthwise(path, "_1", x, k, stride, 1), affine)
	return r.bn(path+"/bn_2", r.depthwise(path, "_2", y, k, 1, 1), affine)
}

// cells walks through a network; cell makes of the preprocessed inputs the
// nodes of a cell.
func (r *cellLoops) cells(
	s Skeleton, affine bool, images fmap, cell func(path string, t CellType, states []fmap) fmap,
) []fmap {
	var s0, s1 fmap
	halved := false
	if s.Stem == "cifar" {
		s0 = r.bn("stem/bn", r.conv("stem/conv", images, 3, 3*s.Channels, 1), true)
		s1 = s0
	} else {
		out := map[string]int{"imagenet": s.Channels, "imagenet-search": 3 * s.Channels}[s.Stem]
		x := refReLU(r.bn("stem/bn_0", r.conv("stem/conv_0", images, 3, out/2, 2), true))
		s0 = r.bn("stem/bn_1", r.conv("stem/conv_1", x, 3, out, 2), true)
		s1 = r.bn("stem/bn_2", r.conv("stem/conv_2", refReLU(s0), 3, out, 2), true)
		halved = true
	}
	width := s.Channels
	var outputs []fmap
	for i := range s.Cells {
		t := Normal
		if i == s.Cells/3 || i == 2*s.Cells/3 {
			t, width = Reduce, 2*width
		}
		path := fmt.Sprintf("cells/%d", i)
		states := []fmap{
			r.preprocess(path+"/preprocess0", s0, width, halved, affine),
			r.preprocess(path+"/preprocess1", s1, width, false, affine),
		}
		s0, s1, halved = s1, cell(path, t, states), t == Reduce
		outputs = append(outputs, s1)
	}
	return outputs
}

func (r *cellLoops) classify(path string, x fmap, classes int) (logits []float64) {
	for b := range x.b {
		for k := range classes {
			y := r.values[path+"/bias"][k]
			x.each(func(at, _, _, c int, v *float64) {
				if at == b {
					y += *v / float64(x.h*x.w) * r.values[path+"/weight"][c*classes+k]
				}
			})
			logits = append(logits, y)
		}
	}
	return logits
}

func addScaledMap(to, x fmap, w float64) {
	to.each(func(b, i, j, c int, v *float64) { *v += w * *x.at(b, i, j, c) })
}

// search is a supernet with one θ for all examples.
func (r *cellLoops) search(c SearchConfig, images fmap, theta [][][]float64) (logits []float64) {
	edges := map[CellType][]float64{}
	for i, t := range CellTypes {
		for e := range c.Space.Edges() {
			weight := 1.0
			if c.Edges {
				at := e
				for _, row := range theta[2+i*c.Space.Nodes : 2+(i+1)*c.Space.Nodes] {
					if at >= 0 && at < len(row[0]) {
						weight = row[0][at]
					}
					at -= len(row[0])
				}
			}
			edges[t] = append(edges[t], weight)
		}
	}
	outputs := r.cells(c.Skeleton, false, images, func(path string, t CellType, states []fmap) fmap {
		for e, edge := range c.Space.Edges() {
			x, stride := states[edge.From], 1
			if t == Reduce && edge.From < 2 {
				stride = 2
			}
			width := x.c / c.Partial
			y := newMap(x.b, x.h/stride, x.w/stride, width)
			for o, name := range c.Space.Candidates(t, e) {
				at := fmt.Sprintf("%s/%d<-%d/%s", path, edge.To, edge.From, name)
				z := r.op(at, name, channels(x, 0, width), stride, true)
				addScaledMap(y, z, theta[slices.Index(CellTypes, t)][e][o])
			}
			if c.Partial > 1 {
				rest := channels(x, width, x.c)
				if stride == 2 {
					rest = refMax(rest, 2, 0, 2)
				}
				y = stacked(y, rest)
			}
			if edge.From == 0 {
				states = append(states, newMap(y.b, y.h, y.w, y.c))
			}
			mixed := newMap(y.b, y.h, y.w, y.c) // the channels dealt out to K groups
			mixed.each(func(b, i, j, at int, v *float64) {
				*v = *y.at(b, i, j, at%c.Partial*width+at/c.Partial)
			})
			addScaledMap(states[edge.To], mixed, edges[t][e])
		}
		return stacked(states[2:]...)
	})
	return r.classify("classifier", outputs[len(outputs)-1], c.Classes)
}

// derived is the network of a genotype, and its auxiliary logits in training.
func (r *cellLoops) derived(c DerivedConfig, images fmap) (logits, aside []float64) {
	outputs := r.cells(c.Skeleton, true, images, func(path string, t CellType, states []fmap) fmap {
		cell := c.Genotype.Cell(t)
		for i, gene := range cell.Genes {
			stride, to := 1, 2+i/2
			if t == Reduce && gene.From < 2 {
				stride = 2
			}
			x := states[gene.From]
			y := r.op(fmt.Sprintf("%s/%d/%d<-%d/%s", path, i, to, gene.From, gene.Op), gene.Op, x, stride, false)
			if i%2 == 0 {
				states = append(states, newMap(y.b, y.h, y.w, y.c))
			}
			if r.drop != nil && (gene.Op != "skip_connect" || stride == 2) {
				z := newMap(y.b, y.h, y.w, y.c)
				z.each(func(b, i, j, c int, v *float64) { *v = *y.at(b, i, j, c) * r.drop[b] })
				y, r.drop = z, r.drop[y.b:]
			}
			addScaledMap(states[to], y, 1)
		}
		var out []fmap
		for _, node := range cell.Concat {
			out = append(out, states[node])
		}
		return stacked(out...)
	})
	if c.Auxiliary && r.train {
		x := refPool(refReLU(outputs[2*c.Cells/3]), 5, 0, map[string]int{"cifar": 3, "imagenet": 2}[c.Stem])
		x = refReLU(r.bn("auxiliary/bn_1", r.conv("auxiliary/conv_1", x, 1, 128, 1), true))
		x = refConv(x, r.values["auxiliary/conv_2"], 2, 768, 0, 1)
		if c.Stem == "cifar" {
			x = r.bn("auxiliary/bn_2", x, true)
		}
		aside = r.classify("auxiliary/classifier", refReLU(x), c.Classes)
	}
	return r.classify("classifier", outputs[len(outputs)-1], c.Classes), aside
}
