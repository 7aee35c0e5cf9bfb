package training

import (
	"fmt"

	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes

	"github.com/nasml/lab/nasml/bilevel"
	"github.com/nasml/lab/nasml/supernet"
)

// Step is one step of a training as a graph function.
type Step struct {
	Settings
	Net *supernet.CellNet
}

// Parts are the parts of a state, in the order in which they stand in it.
type Parts[T any] struct {
	Weights, Velocity []T // of the network
	Stats             []T // running statistics
}

func cut[T any](net *supernet.CellNet, all []T) Parts[T] {
	w := len(net.Weights())
	return Parts[T]{Weights: all[:w:w], Velocity: all[w : 2*w : 2*w], Stats: all[2*w:]}
}

// Graph is the step of SGD on the loss
//
//	H(logits) + Auxiliary·H(auxiliary logits) ,
//
// H the mean cross entropy with smoothed labels. It returns the state after it,
// the loss before it, and the number of right answers before it. in are
// images [B, side, side, 3], labels [B], supernet.Pass.Drop [B, places], or anything
// where DropPath is 0, η, and the state.
func (s Step) Graph(in []*Node) (next []*Node, loss, right *Node) {
	rate, parts := in[3], cut(s.Net, in[4:])
	zero := ScalarZero(rate.Graph(), rate.DType())
	descent := bilevel.Search{
		Settings: bilevel.Settings{Clip: s.Clip},
		SGD:      bilevel.SGD{Momentum: s.Momentum, WeightDecay: s.WeightDecay, Together: true},
		Problem: func(aux []*Node) bilevel.Problem {
			return bilevel.Problem{Inner: func(w, _ []*Node) (*Node, []*Node) {
				loss, right, stats := s.loss(in[0], in[1], in[2], w, aux[:len(aux)-1])
				return loss, append(stats, right)
			}}
		},
	}
	stats := append(parts.Stats[:len(parts.Stats):len(parts.Stats)], zero)
	after, seen := descent.Step(bilevel.State{W: parts.Weights, Velocity: parts.Velocity, Aux: stats}, rate, nil)
	last := len(after.Aux) - 1
	next = append(append(append(next, after.W...), after.Velocity...), after.Aux[:last]...)
	return next, seen.Train, after.Aux[last]
}

// loss is that of a batch, with the right answers and the statistics after it.
func (s Step) loss(images, labels, drop *Node, w, stats []*Node) (loss, right *Node, after []*Node) {
	pass := supernet.Pass{Images: images, Weights: w, Stats: stats, Train: true}
	if s.DropPath > 0 {
		pass.Drop = drop
	}
	out := s.Net.Evaluate(pass)
	loss = CrossEntropy(out.Logits, labels, s.Smoothing)
	if s.Auxiliary > 0 {
		loss = Add(loss, MulScalar(CrossEntropy(out.Auxiliary, labels, s.Smoothing), s.Auxiliary))
	}
	right = ReduceAllSum(ConvertDType(Equal(ArgMax(out.Logits, -1, labels.DType()), labels), loss.DType()))
	return loss, right, out.Stats
}

// CrossEntropy is the mean over a batch of −Σ_c q_c log softmax(logits)_c, where
// smoothing ε spreads the label y (Szegedy+ 2016, Section 7):
//
//	q_c = (1 − ε)·1[c = y] + ε/classes .
//
// logits are [B, classes], labels [B] integers.
func CrossEntropy(logits, labels *Node, smoothing float64) *Node {
	logp := LogSoftmax(logits)
	q := OneHot(labels, logits.Shape().Dim(-1), logits.DType())
	if smoothing > 0 {
		q = AddScalar(MulScalar(q, 1-smoothing), smoothing/float64(logits.Shape().Dim(-1)))
	}
	return Neg(ReduceAllMean(ReduceSum(Mul(q, logp), -1)))
}

// top is the number of classes among which the label has to be.
const top = 5

// score is what a test looks at in a batch, [sum of cross entropies, right
// answers, labels among the five largest logits]. Labels below 0 do not count.
// A label is among them where fewer than five logits are larger.
func (s Step) score(images, labels *Node, state []*Node) *Node {
	w := len(s.Net.Weights())
	logits := s.Net.Evaluate(supernet.Pass{Images: images, Weights: state[:w], Stats: state[w:]}).Logits
	hot := OneHot(labels, logits.Shape().Dim(-1), logits.DType())
	counts := ConvertDType(GreaterOrEqual(labels, ScalarZero(labels.Graph(), labels.DType())), logits.DType())
	own := ReduceAndKeep(Mul(hot, logits), ReduceSum, -1)
	larger := ReduceSum(ConvertDType(GreaterThan(logits, own), logits.DType()), -1)
	among := ConvertDType(LessThan(larger, Scalar(larger.Graph(), larger.DType(), top)), logits.DType())
	first := ConvertDType(Equal(ArgMax(logits, -1, labels.DType()), labels), logits.DType())
	return Stack([]*Node{
		Neg(ReduceAllSum(Mul(hot, LogSoftmax(logits)))), ReduceAllSum(Mul(first, counts)),
		ReduceAllSum(Mul(among, counts)),
	}, 0)
}

// reported is the step with a report behind the new state: loss, right answers,
// and the squared norm of the new state, which tells whether it is finite.
func (s Step) reported(in []*Node) []*Node {
	next, loss, right := s.Graph(in)
	norm := ScalarZero(loss.Graph(), loss.DType())
	for _, x := range next {
		norm = Add(norm, ConvertDType(ReduceAllSum(Square(x)), loss.DType()))
	}
	if !loss.IsScalar() {
		panic(fmt.Errorf("training: the loss must be a scalar, got shape %s", loss.Shape()))
	}
	return append(next, Stack([]*Node{loss, right, norm}, 0))
}
