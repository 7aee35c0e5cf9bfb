package supernet

import (
	"math"
	"testing"

	"github.com/gomlx/compute"
	_ "github.com/gomlx/compute/gobackend"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"
)

func goBackend(t *testing.T) compute.Backend {
	t.Helper()
	b, err := compute.NewWithConfig("go")
	require.NoError(t, err)
	return b
}

// values returns σ(z) and dσ/dz.
func values(t *testing.T, sigma Activation, z []float64) (value, slope []float64) {
	t.Helper()
	out, err := ExecOnceN(goBackend(t), func(z *Node) []*Node {
		h := sigma(z)
		h.AssertDims(z.Shape().Dimensions...)
		return []*Node{h, Gradient(ReduceAllSum(h), z)[0]}
	}, z)
	require.NoError(t, err)
	return out[0].Value().([]float64), out[1].Value().([]float64)
}

func TestActivationsAgainstTheirFormulas(t *testing.T) {
	z := []float64{-40, -3, -0.5, 0.25, 2, 40}
	for name, want := range map[string]func(float64) float64{
		"identity": func(z float64) float64 { return z },
		"relu":     func(z float64) float64 { return math.Max(z, 0) },
		"sigmoid":  func(z float64) float64 { return 1 / (1 + math.Exp(-z)) },
		"sin":      math.Sin,
		"softplus": func(z float64) float64 { return math.Max(z, 0) + math.Log1p(math.Exp(-math.Abs(z))) },
		"square":   func(z float64) float64 { return z * z / 2 },
		"tanh":     math.Tanh,
	} {
		value, slope := values(t, Activations[name], z)
		const h = 1e-5
		for i := range z {
			require.InDelta(t, want(z[i]), value[i], 1e-12, "%s(%v)", name, z[i])
			require.InDelta(t, (want(z[i]+h)-want(z[i]-h))/(2*h), slope[i], 1e-6, "derivative of %s at %v", name, z[i])
		}
	}
	require.Len(t, Activations, 7, "a new activation needs its formula here")
}

func TestReLUHasDerivativeZeroAtZero(t *testing.T) {
	value, slope := values(t, Activations["relu"], []float64{0})
	require.Zero(t, value[0])
	require.Zero(t, slope[0])
}

func TestMixtureIsLinearInAlpha(t *testing.T) {
	z := []float64{-1, 0.5, 3}
	for _, alpha := range []float64{0, 0.3, 1, 1.07} {
		mixed, _ := values(t, func(z *Node) *Node {
			return MixActivations("relu", "sigmoid", Const(z.Graph(), []float64{alpha}), z)
		}, z)
		for i := range z {
			want := (1-alpha)*math.Max(z[i], 0) + alpha/(1+math.Exp(-z[i]))
			require.InDelta(t, want, mixed[i], 1e-14, "α = %v", alpha)
		}
	}
}

func TestMixtureRefusesWhatDoesNotFit(t *testing.T) {
	mix := func(name string, alpha any) error {
		_, err := ExecOnce(goBackend(t), func(z *Node) *Node {
			return MixActivations("relu", name, Const(z.Graph(), alpha), z)
		}, []float64{1, 2})
		return err
	}
	err := mix("sigmoit", []float64{0.5})
	require.ErrorContains(t, err, `"sigmoit"`)
	require.ErrorContains(t, err, "sigmoid, sin, softplus")
	err = mix("sigmoid", [][]float64{{0.5}})
	require.ErrorContains(t, err, "alpha has shape (Float64)[1, 1] and z (Float64)[2]")
}
