// Package search holds the methods of neural architecture search: those that share weights in a supernet (New) and
// those that query a table (TabularMethods). Step is one step of the former.
//
// A weight-sharing method is data: how the architecture is parameterized, under which architecture the weights are
// trained and the architecture's gradient is taken, and how the final architecture is picked. Add a custom one with
//
//	search.Methods["mine"] = search.Method{
//		Hold: search.OnSimplex, Weights: search.Mixture, Architecture: search.Mixture,
//		Update: "mine", Final: search.ByArgmax,
//	}
//
// with Update the name of an update: of simplex.Updates where it has no state, of
// Updates where it has one.
//
// # Several devices
//
// With Settings.Devices = N the steps of a search run on N devices of one host, each
// with the N-th part of each batch and a copy of weights, momentum and architecture.
// Two ways, by Settings.Statistics:
//
// Synchronised (GoMLX's AutoSharding): XLA's partitioner cuts the program of one device
// up. Weights, θ and losses are those of one device to rounding.
//
// PerDevice (GoMLX's SPMD): batch norm sees a device's share only, and losses,
// gradients and running statistics are means over the devices, also inside
// unrolled and other hypergradients. XNAS, which takes a gradient of every
// example, has no such form.
//
// What a device needs besides a step's inputs and outputs falls to 1/N
// (BenchmarkDevices); with TrackStats and Synchronised statistics to about 1.5/N, since
// XLA computes the variance of batch norm twice if a sum over devices is in it.
//
// XLA's CPU plugin has four devices, or as many as backend.OpenDevices asks for.
// They share the cores, so that nothing gets faster: they are there to try a
// search out that is meant for several GPUs.
package search

import "github.com/nasml/lab/nasml/internal/own"

// Parameterization says what the architecture parameters are.
type Parameterization string

// The parameterizations: logits α behind a softmax, points θ of a product of simplices, or none.
const (
	Logits    Parameterization = "logits"
	OnSimplex Parameterization = "simplex"
	Nothing   Parameterization = "none"
)

// Pass says under which architecture a forward pass is made.
type Pass string

// The passes. With θ̃ = softmax(α) or θ:
//
//	Mixture     every edge is Σ_o θ̃_o·o(x)
//	PerExample  the same with one copy of θ̃ an example, so that each has an architecture gradient of its own (XNAS)
//	Gumbel      one operation an edge by the hard Gumbel-softmax trick (GDAS)
//	Uniform     one operation an edge, drawn uniformly
//	Controller  one operation an edge, drawn by the LSTM controller of ENAS
//	NoPass      there is none
const (
	Mixture    Pass = "mixture"
	PerExample Pass = "per-example"
	Gumbel     Pass = "gumbel"
	Uniform    Pass = "uniform"
	Controller Pass = "controller"
	NoPass     Pass = ""
)

// Final says how the architecture is picked after the search.
type Final string

// The rules. ByArgmax takes the largest θ of each edge; the others rank candidates by the accuracy of the shared
// weights on one batch of validation images: random ones, the most probable under θ, or samples of the controller.
const (
	ByArgmax     Final = "argmax"
	ByRandom     Final = "random"
	ByLikelihood Final = "likelihood"
	ByController Final = "controller"
)

// Method is a weight-sharing search method.
type Method struct {
	Title        string
	Source       string // the paper it is from
	Hold         Parameterization
	Weights      Pass   // under which the weights are trained
	Architecture Pass   // under which the gradient of θ is taken
	Update       string // of θ: a name of Updates or simplex.Updates
	Final        Final
}

// Methods are the weight-sharing methods by name. PC-DARTS is DARTS on a supernet with Settings.Partial and
// Settings.EdgeWeights, set by its presets. Add a custom one as in the package comment.
var Methods = map[string]Method{
	"darts":         {"DARTS", "Liu+ 2019", Logits, Mixture, Mixture, "adam", ByArgmax},
	"gaea-darts":    {"GAEA DARTS", "Li+ 2021", OnSimplex, Mixture, Mixture, "eg", ByArgmax},
	"xnas":          {"XNAS", "Nayman+ 2019", OnSimplex, Mixture, PerExample, "xnas", ByArgmax},
	"gdas":          {"GDAS", "Dong & Yang 2019", Logits, Gumbel, Gumbel, "adam", ByArgmax},
	"pc-darts":      {"PC-DARTS", "Xu+ 2020", Logits, Mixture, Mixture, "adam", ByArgmax},
	"gaea-pc-darts": {"GAEA PC-DARTS", "Li+ 2021", OnSimplex, Mixture, Mixture, "eg", ByArgmax},
	"gaea-gdas":     {"GAEA GDAS", "Li+ 2021", OnSimplex, Gumbel, Gumbel, "eg", ByArgmax},
	"setn":          {"SETN", "Dong & Yang 2019b", Logits, Uniform, Mixture, "adam", ByLikelihood},
	"rsps":          {"RSPS", "Li & Talwalkar 2019", Nothing, Uniform, NoPass, "", ByRandom},
	"enas":          {"ENAS", "Pham+ 2018", Nothing, Controller, NoPass, "", ByController},
}

func lookup(name string) (Method, error) {
	if m, ok := Methods[name]; ok {
		return m, nil
	}
	return Method{}, own.Unknown("search method", name, Methods, "search.Methods")
}
