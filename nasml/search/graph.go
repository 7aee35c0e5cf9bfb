package search

import (
	"fmt"
	"maps"
	"slices"

	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes

	"github.com/nasml/lab/nasml/bilevel"
	"github.com/nasml/lab/nasml/simplex"
	"github.com/nasml/lab/nasml/supernet"
)

// program is a search as graph functions.
type program struct {
	Settings
	method Method
	space  supernet.Space
	net    *supernet.Net
	steps  int // of an epoch
}

// feed is what a step is given besides the state.
type feed struct {
	train, valid batch
	draws        *Node // [2, |E|, |O|]: Gumbel noise or one-hot rows, of the weights' and of the architecture's pass
	rate         *Node // η of the weights
	tau          *Node // temperature of the Gumbel-softmax
	step         *Node // updates of the architecture done before, as a float
	warmup       *Node // 1 while the architecture rests
}

type batch struct{ images, labels *Node }

const feeds = 9 // nodes of a feed

func feedOf(in []*Node) feed {
	return feed{batch{in[0], in[1]}, batch{in[2], in[3]}, in[4], in[5], in[6], in[7], in[8]}
}

// state takes apart what nodes puts together.
func (p *program) state(all []*Node) bilevel.State {
	take := func(n int) []*Node {
		part := all[:n:n]
		all = all[n:]
		return part
	}
	w := len(p.net.Weights())
	s := bilevel.State{W: take(w), Velocity: take(w), Aux: take(len(p.net.Stats())), Theta: take(1), Slots: take(p.slots())}
	if p.clipsBoth() {
		s.Stale = take(1)
	}
	return s
}

func nodes(s bilevel.State) []*Node {
	var all []*Node
	for _, part := range [][]*Node{s.W, s.Velocity, s.Aux, s.Theta, s.Slots, s.Stale} {
		all = append(all, part...)
	}
	return all
}

// slots is the number of tensors of the architecture's update, each like θ.
func (p *program) slots() int {
	if p.method.Architecture != NoPass && p.update(p.method) == "adam" {
		return 2 // both moments
	}
	return 0
}

func (p *program) clipsBoth() bool {
	return p.Bilevel.ClipCovers == bilevel.ClipWeightsAndArchitecture && p.method.Architecture != NoPass
}

// outcome is what a step reports besides the new state: losses and numbers of
// right answers on both batches. Without an architecture pass, the second ones
// are 0.
type outcome struct{ trainLoss, trainRight, validLoss, validRight *Node }

// step is one search step. The numbers of right answers travel as the last two
// of the state that passes hand on.
func (p *program) step(f feed, s bilevel.State) (outcome, bilevel.State) {
	zero := ScalarZero(f.rate.Graph(), f.rate.DType())
	stats := len(s.Aux)
	s.Aux = append(append([]*Node{}, s.Aux...), zero, zero)
	search := bilevel.Search{
		Settings: p.Bilevel,
		SGD:      bilevel.SGD{Momentum: p.Momentum, WeightDecay: p.WeightDecay, Nesterov: p.Nesterov},
		Problem:  func(aux []*Node) bilevel.Problem { return p.problem(f, aux) },
	}
	if p.method.Architecture != NoPass {
		search.Update = func(theta, grad, slots []*Node) (theta2, slots2 []*Node) {
			next, slots2 := p.updateArchitecture(f, theta[0], grad[0], slots)
			return []*Node{next}, slots2
		}
	}
	if p.method.Architecture == PerExample {
		search.Hypergradient = perExample(f.valid.images.Shape().Dim(0))
	}
	next, train, valid := search.Step(s, f.rate, f.warmup)
	if valid == nil {
		valid = zero
	}
	o := outcome{train, next.Aux[stats], valid, next.Aux[stats+1]}
	next.Aux = next.Aux[:stats]
	return o, next
}

// problem is the pair of losses of a step whose passes start from aux.
func (p *program) problem(f feed, aux []*Node) bilevel.Problem {
	stats := aux[:len(aux)-2]
	loss := func(pass Pass, which int, b batch) bilevel.Loss {
		return func(w, theta []*Node) (*Node, []*Node) {
			ops, chosen := p.operations(pass, theta[0], draw(f, which), f.tau)
			logits, after := p.net.Forward(supernet.Input{Images: b.images, Theta: ops, Chosen: chosen, Weights: w, Stats: stats, Train: true})
			right, loss := supernet.Score(logits, b.labels)
			next := append(append([]*Node{}, after...), aux[len(aux)-2:]...)
			next[len(stats)+which] = ConvertDType(right, loss.DType())
			return loss, next
		}
	}
	return bilevel.Problem{Inner: loss(p.method.Weights, 0, f.train), Outer: loss(p.method.Architecture, 1, f.valid)}
}

// draw picks the draw of a pass: 0 is the weights', 1 the architecture's.
func draw(f feed, which int) *Node {
	return Squeeze(Slice(f.draws, AxisElem(which)), 0)
}

// operations are the weights of the operations in a pass, [|E|, |O|] or, one
// matrix an example, what theta is, with those that are chosen where the pass
// samples.
//
// Gumbel (Dong & Yang 2019, eq. 5): with noise g and l = log softmax(α) or log θ,
// p = softmax((l + g)/τ), of which the largest is chosen; its value is 1 and
// its gradient that of p.
func (p *program) operations(pass Pass, theta, draw, tau *Node) (ops, chosen *Node) {
	switch pass {
	case Mixture, PerExample:
		return p.relaxed(theta), nil
	case Uniform, Controller:
		return draw, nil
	case Gumbel:
		logits := Div(Add(p.logarithm(theta), draw), tau)
		soft := Softmax(logits, -1)
		hard := StopGradient(OneHot(ArgMax(logits, -1), theta.Shape().Dim(-1), theta.DType()))
		return Add(Sub(hard, StopGradient(soft)), soft), hard
	}
	panic(fmt.Errorf("no forward pass is called %q", pass))
}

// relaxed is softmax(α), or θ itself; without architecture parameters α is 0.
func (p *program) relaxed(theta *Node) *Node {
	if p.method.Hold == OnSimplex {
		return theta
	}
	return Softmax(theta, -1)
}

// logarithm is log softmax(α), or log θ.
func (p *program) logarithm(theta *Node) *Node {
	if p.method.Hold == OnSimplex {
		return Log(theta)
	}
	return LogSoftmax(theta, -1)
}

// perExample is ∇_θ ℓ_b of every example b of the validation batch,
// [B, |E|, |O|]. Batch statistics couple the examples: then it is the share of
// each example in the batch's gradient, times B.
func perExample(examples int) bilevel.Hypergradient {
	return func(p bilevel.Problem, _ bilevel.Options, w, theta, _ []*Node) (*Node, []*Node, []*Node) {
		copies := BroadcastPrefix(theta[0], examples)
		loss, aux := p.Outer(w, []*Node{copies})
		return loss, []*Node{MulScalar(Gradient(loss, copies)[0], float64(examples))}, aux // the loss is a mean
	}
}

// updateArchitecture moves α or θ by a gradient.
func (p *program) updateArchitecture(f feed, theta, grad *Node, slots []*Node) (*Node, []*Node) {
	if p.EntropyWeight > 0 { // ∇ Σ θ log(θ|O|), but for a constant that no update on a simplex sees
		grad = Add(grad, MulScalar(p.logarithm(theta), p.EntropyWeight))
	}
	switch update := p.update(p.method); update {
	case "adam":
		adam := bilevel.Adam{Beta1: p.ArchBeta1, Beta2: p.ArchBeta2, WeightDecay: p.ArchWeightDecay}
		x, m, v := adam.Step([]*Node{theta}, []*Node{grad}, slots[:1], slots[1:], f.step, p.ArchRate)
		return x[0], []*Node{m[0], v[0]}
	case "sgd":
		grad = Add(grad, MulScalar(theta, p.ArchWeightDecay))
		return Sub(theta, MulScalar(grad, p.ArchRate)), nil
	case "xnas":
		return p.xnas().Step(theta, grad, f.step), nil
	default:
		return simplex.Updates[update](theta, grad, p.ArchRate), nil
	}
}

// xnas are the settings of XNAS's update.
func (p *program) xnas() simplex.XNAS {
	return simplex.XNAS{Steps: (p.Epochs - p.Bilevel.Warmup) * p.steps, Bound: p.GradientClip, Eta: p.ArchRate}
}

// space is the search space of the settings.
func (s Settings) space() (supernet.Space, error) {
	space, ok := supernet.Spaces[s.Space]
	if !ok {
		return space, fmt.Errorf("unknown search space %q: take one of %v", s.Space, slices.Sorted(maps.Keys(supernet.Spaces)))
	}
	for _, op := range s.Without {
		if !slices.Contains(space.Ops, op) {
			return space, fmt.Errorf("the space %s has no operation %q to leave out, it has %v", s.Space, op, space.Ops)
		}
	}
	space = space.Without(s.Without...)
	if len(space.Ops) < 2 {
		return space, fmt.Errorf("the space %s without %v has %d operations, want at least 2", s.Space, s.Without, len(space.Ops))
	}
	return space, nil
}

// update is the rule by which θ moves.
func (s Settings) update(m Method) string {
	if s.Update != "" {
		return s.Update
	}
	return m.Update
}
