package supernet

// Operation is a candidate operation of any space's cells: it turns a map of C channels into one of C channels at a
// stride, 1 or 2 (2 only in cells with two inputs, as DARTS has them). It declares its weights through l as it goes,
// and computes with them; nothing else describes it. search tells a search, where pools end in a BN, from a derived
// network.
//
// A custom operation is one entry, and a space that names it:
//
//	supernet.Operations["conv_5x5"] = func(l supernet.Layers, x supernet.Map, stride int, search bool) supernet.Map {
//		return l.BN("bn", l.Conv("conv", l.ReLU(x), 5, stride, x.C))
//	}
//	supernet.Spaces["mine"] = supernet.NASBench201.With("conv_5x5")
//
// [Layers.Apply] makes one from a graph function with any weights.
type Operation func(l Layers, x Map, stride int, search bool) Map

// Operations are the known operations by name: those of DARTS (quark0/darts@f276dd3, operations.py), the convolutions
// of NAS-Bench-201 at any stride, and the noise of Zela+ 2020. none, which is 0, has no function. Cells of
// NAS-Bench-201 and NAS-Bench-1Shot1 have pools and skip connections of their own by these names, without DARTS' BN
// behind pools.
var Operations = map[string]Operation{
	none:           nil,
	"max_pool_3x3": pooled(Layers.MaxPool),
	"avg_pool_3x3": pooled(Layers.AvgPool),
	"skip_connect": skip,
	"nor_conv_1x1": convolved(1),
	"nor_conv_3x3": convolved(3),
	"sep_conv_3x3": separable(3),
	"sep_conv_5x5": separable(5),
	"sep_conv_7x7": separable(7),
	"dil_conv_3x3": dilated(3),
	"dil_conv_5x5": dilated(5),
	"noise":        noise,
}

// pooled is a pool, with a BN behind it in a search.
func pooled(pool func(l Layers, x Map, stride int) Map) Operation {
	return func(l Layers, x Map, stride int, search bool) Map {
		if x = pool(l, x, stride); search {
			return l.BN("bn", x)
		}
		return x
	}
}

func skip(l Layers, x Map, stride int, _ bool) Map {
	if stride == 1 {
		return x
	}
	return l.FactorizedReduce(x, x.C)
}

// convolved is ReLU, k×k with the stride, BN.
func convolved(k int) Operation {
	return func(l Layers, x Map, stride int, _ bool) Map {
		return l.BN("bn", l.Conv("conv", l.ReLU(x), k, stride, x.C))
	}
}

// separable is ReLU, depthwise k×k with the stride, 1×1, BN, and the same again without a stride.
func separable(k int) Operation {
	return func(l Layers, x Map, stride int, _ bool) Map {
		x = l.stage(filters{"depthwise_1", "pointwise_1", k, stride, 1}, "bn_1", x)
		return l.stage(filters{"depthwise_2", "pointwise_2", k, 1, 1}, "bn_2", x)
	}
}

// dilated is ReLU, depthwise k×k of dilation 2 with the stride, 1×1, BN.
func dilated(k int) Operation {
	return func(l Layers, x Map, stride int, _ bool) Map {
		return l.stage(filters{"depthwise", "pointwise", k, stride, 2}, "bn", x)
	}
}
