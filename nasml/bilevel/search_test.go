package bilevel

import (
	"fmt"
	"math"
	"slices"
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/floats"
)

// bowl is a problem small enough to walk on the host:
//
//	G(w, θ) = ½ Σⱼ θⱼ(wⱼ − 3)²,  F(w, θ) = ½ Σⱼ θⱼ(wⱼ + 1)²
//
// aux is one number that every pass moves: 0.9·aux + its loss.
func bowl(aux []*Node) Problem {
	loss := func(center float64) Loss {
		return func(w, theta []*Node) (*Node, []*Node) {
			loss := MulScalar(ReduceAllSum(Mul(theta[0], Square(AddScalar(w[0], -center)))), 0.5)
			return loss, []*Node{Add(MulScalar(aux[0], 0.9), loss)}
		}
	}
	return Problem{Inner: loss(3), Outer: loss(-1)}
}

// walk is the state of the same search in plain loops.
type walk struct {
	w, v, theta, stale []float64
	updates            float64 // of the architecture
	aux                float64
}

func (k *walk) loss(center float64) float64 {
	f := 0.0
	for j := range k.w {
		f += k.theta[j] * (k.w[j] - center) * (k.w[j] - center) / 2
	}
	k.aux = 0.9*k.aux + f
	return f
}

func (k *walk) weights(s Settings, eta, mu float64) float64 {
	loss := k.loss(3)
	var g, stale []float64
	for j := range k.w {
		g = append(g, k.theta[j]*(k.w[j]-3))
		stale = append(stale, k.stale[j]+(k.w[j]-3)*(k.w[j]-3)/2) // backward adds to what is there
	}
	if s.Clip > 0 {
		norm := floats.Norm(g, 2)
		if s.ClipCovers == ClipWeightsAndArchitecture {
			norm = math.Hypot(norm, floats.Norm(stale, 2))
		}
		floats.Scale(math.Min(1, s.Clip/(norm+1e-6)), g)
	}
	for j := range k.w {
		k.v[j] = mu*k.v[j] + g[j]
		k.w[j] -= eta * k.v[j]
	}
	return loss
}

func (k *walk) architecture(s Settings, warm bool) float64 {
	before := k.aux
	loss := k.loss(-1)
	if warm {
		k.aux = before
		return loss
	}
	k.updates++
	for j := range k.theta {
		k.stale[j] = (k.w[j] + 1) * (k.w[j] + 1) / 2
	}
	if s.ArchClip > 0 {
		floats.Scale(math.Min(1, s.ArchClip/(floats.Norm(k.stale, 2)+1e-6)), k.stale)
	}
	for j := range k.theta {
		k.theta[j] *= math.Exp(-0.01 * k.updates * k.stale[j])
	}
	return loss
}

// A reader's own hypergradient may be as plain as this.
func bare(p Problem, _ Options, w, theta, _ []*Node) (*Node, []*Node, []*Node) {
	loss, aux := p.Outer(w, theta)
	return loss, Gradient(loss, theta...), aux
}

func TestStepAgainstPlainLoops(t *testing.T) {
	const eta, mu, total = 0.1, 0.9, 5
	Hypergradients["bare"] = bare
	defer delete(Hypergradients, "bare")
	for _, order := range []string{ArchitectureFirst, WeightsFirst} {
		covered := map[string]string{"": "first-order", ClipWeights: "bare", ClipWeightsAndArchitecture: "bare"}
		for covers, name := range covered {
			s := Search{
				Settings: Settings{Order: order, ClipCovers: covers, Hypergradient: name},
				SGD:      SGD{Momentum: mu}, Problem: bowl,
				// a step size that grows with a slot
				Architecture: []Rule{Each(1, func(theta, grad *Node, own []*Node, _ Move) (*Node, []*Node) {
					n := AddScalar(own[0], 1)
					return Mul(theta, Exp(Neg(Mul(MulScalar(n, 0.01), grad)))), []*Node{n}
				})},
			}
			if covers == "" { // one that is not in the map
				s.Settings.Hypergradient, s.Hypergradient = "", FirstOrder
			} else {
				s.Settings.Clip, s.Settings.ArchClip = 2.5, 0.7
			}
			got := run(t, func(in []*Node) []*Node {
				state := State{W: in[0:1], Velocity: in[1:2], Theta: in[2:3], Slots: in[3:4], Aux: in[4:5]}
				if covers == ClipWeightsAndArchitecture {
					state.Stale = []*Node{ZerosLike(in[2])}
				}
				var out []*Node
				for i := range total {
					var seen Seen
					warmup := Const(in[0].Graph(), float32(0))
					if i < 2 {
						warmup = Const(in[0].Graph(), float32(1))
					}
					state, seen = s.Step(state, Const(in[0].Graph(), eta), warmup)
					out = append(out, slices.Concat(state.W, state.Velocity, state.Theta, state.Aux,
						[]*Node{seen.Train, seen.Validation})...)
				}
				return out
			}, []float64{0.5, -2}, []float64{0.1, 0}, []float64{0.3, 0.7}, []float64{0, 0}, 4.0)

			k := walk{
				w: []float64{0.5, -2}, v: []float64{0.1, 0}, theta: []float64{0.3, 0.7}, stale: []float64{0, 0}, aux: 4,
			}
			for i := range total {
				var train, validation float64
				if order == WeightsFirst {
					train = k.weights(s.Settings, eta, mu)
				}
				validation = k.architecture(s.Settings, i < 2)
				if order == ArchitectureFirst {
					train = k.weights(s.Settings, eta, mu)
				}
				want := concat(k.w, k.v, k.theta, []float64{k.aux, train, validation})
				requireClose(t, want, concat(got[6*i:6*i+6]...), 1e-13,
					fmt.Sprintf("%s, clip %q, step %d", order, covers, i))
			}
		}
	}
}

// Second order through Search: options reach the hypergradient.
func TestStepUnrolls(t *testing.T) {
	w, theta, v := []float64{0.5, -2}, []float64{0.3, 0.7}, []float64{0.1, 0}
	s := Search{
		Settings:     Settings{Order: WeightsFirst, Hypergradient: "unrolled"},
		SGD:          SGD{Momentum: 0.9, WeightDecay: 0.01},
		Problem:      bowl,
		Architecture: []Rule{Each(0, func(_, grad *Node, _ []*Node, _ Move) (*Node, []*Node) { return grad, nil })},
	}
	got := run(t, func(in []*Node) []*Node {
		start := State{W: in[0:1], Velocity: in[1:2], Theta: in[2:3], Aux: in[3:4]}
		next, _ := s.Step(start, Const(in[0].Graph(), 0.1), nil)
		return append(next.Theta, next.W...)
	}, w, v, theta, 0.0)
	for j := range w {
		step := func() {
			v[j] = 0.9*v[j] + theta[j]*(w[j]-3) + 0.01*w[j]
			w[j] -= 0.1 * v[j]
		}
		step()
		require.InDelta(t, w[j], got[1][j], 1e-14)
		start := w[j]
		step() // the look-ahead, at the new weights and velocity
		want := (w[j]+1)*(w[j]+1)/2 - 0.1*(start-3)*theta[j]*(w[j]+1)
		require.InDelta(t, want, got[0][j], 1e-13)
	}
}

func TestStepWithoutArchitecture(t *testing.T) {
	s := Search{Problem: func(aux []*Node) Problem { return Problem{Inner: bowl(aux).Inner} }}
	got := run(t, func(in []*Node) []*Node {
		start := State{W: in[0:1], Velocity: in[1:2], Theta: in[2:3], Aux: in[3:4]}
		next, seen := s.Step(start, Const(in[0].Graph(), 0.1), nil)
		require.Nil(t, seen.Validation)
		require.Nil(t, seen.GradTheta)
		return append(next.W, next.Theta...)
	}, []float64{1}, []float64{0}, []float64{0.5}, 0.0)
	require.InDelta(t, 1.1, got[0][0], 1e-15)
	require.Equal(t, []float64{0.5}, got[1])
}

func TestStepRefusesWhatDoesNotFit(t *testing.T) {
	try := func(settings Settings, slots2 int) error {
		s := Search{Settings: settings, Problem: bowl, Architecture: []Rule{{Update: func(m Move) ([]*Node, []*Node) {
			return m.Params, make([]*Node, slots2)
		}}}}
		return fails(t, func(in []*Node) *Node {
			next, _ := s.Step(State{W: in[:1], Velocity: in[:1], Theta: in[:1], Aux: in[1:]}, in[1], in[1])
			return next.W[0]
		}, []float64{1}, 0.0)
	}
	require.ErrorContains(t, try(Settings{Hypergradient: "x"}, 0),
		`no hypergradient is called "x", there are [cg finite-difference first-order neumann unrolled]`)
	require.ErrorContains(t, try(Settings{Hypergradient: "first-order"}, 1),
		"architecture 0 after its move: each parameter must have 0 slots, got 1 slots for 1 parameters")
	err := try(Settings{Hypergradient: "first-order", Order: WeightsFirst, Clip: 1,
		ClipCovers: ClipWeightsAndArchitecture}, 0)
	require.ErrorContains(t, err, "stale gradient: lists must have equal lengths, got 0 and 1 tensors")
}

// With Uncleared, θ moves by the gradient of its own batch and the sum of the
// training gradients since its last move: one of them, all of the warm-up before
// the first, and with the weights first that of the same step.
func TestStepAddsUpWhatIsNotCleared(t *testing.T) {
	const eta, rate, warm, total = 0.1, 0.05, 3, 6
	for _, order := range []string{ArchitectureFirst, WeightsFirst} {
		s := Search{
			Settings: Settings{Order: order, Hypergradient: "first-order", Uncleared: true}, Problem: bowl,
			Architecture: []Rule{Each(0, func(theta, grad *Node, _ []*Node, _ Move) (*Node, []*Node) {
				return Sub(theta, MulScalar(grad, rate)), nil
			})},
		}
		got := run(t, func(in []*Node) []*Node {
			state := State{W: in[0:1], Velocity: in[1:2], Theta: in[2:3], Aux: in[3:4]}
			state.Stale = []*Node{ZerosLike(in[2])}
			var out []*Node
			for i := range total {
				var warmup float64
				if i < warm {
					warmup = 1
				}
				state, _ = s.Step(state, Const(in[0].Graph(), eta), Const(in[0].Graph(), warmup))
				out = append(out, state.W[0], state.Theta[0], state.Stale[0])
			}
			return out
		}, []float64{0.5, -2}, []float64{0, 0}, []float64{0.3, 0.7}, 0.0)

		w, theta, left := []float64{0.5, -2}, []float64{0.3, 0.7}, []float64{0, 0}
		weights := func() {
			for j := range w {
				left[j] += (w[j] - 3) * (w[j] - 3) / 2
				w[j] -= eta * theta[j] * (w[j] - 3)
			}
		}
		for i := range total {
			if order == WeightsFirst {
				weights()
			}
			if i >= warm {
				for j := range theta {
					theta[j] -= rate * ((w[j]+1)*(w[j]+1)/2 + left[j])
					left[j] = 0
				}
			}
			if order == ArchitectureFirst {
				weights()
			}
			for k, want := range [][]float64{w, theta, left} {
				requireClose(t, want, got[3*i+k], 1e-13, fmt.Sprintf("%s, step %d, %d", order, i, k))
			}
		}
	}
}
