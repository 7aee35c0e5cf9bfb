package activation

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/trial"
)

// twosAndFives are synthetic images of two classes.
func twosAndFives(t *testing.T) Images {
	t.Helper()
	im, err := data.Load(t.Context(), data.Synthetic, data.Train)
	require.NoError(t, err)
	im, err = im.Classes(2, 5)
	require.NoError(t, err)
	return Images{im.Image, im.Labels}
}

func TestActivationSlopes(t *testing.T) {
	for name, a := range known {
		for _, z := range []float64{-2, -0.3, 0.4, 1.7} {
			require.InDelta(t, fd.Derivative(a.value, z, &fd.Settings{Formula: fd.Central}), a.slope(z), 1e-6, name)
		}
	}
}

func TestNetEqualsGradientDescentInW(t *testing.T) {
	net := Net{
		Classes: [2]int{2, 5}, Train: 6, Pool: 5, Activations: []string{"relu", "tanh"},
		Width: 4, Steps: 7, C0: 2, Rate: 0.5,
	}
	task, err := NewTask(twosAndFives(t), net, 3)
	require.NoError(t, err)
	alpha := []float64{0.3, 0.7}
	train, pool, err := task.Train(t.Context(), alpha)
	require.NoError(t, err)

	_, d := task.x.Dims()
	rng := trial.RNG(3, "weights")
	w := mat.NewDense(net.Width, d, nil)
	w.Apply(func(int, int, float64) float64 { return rng.NormFloat64() }, w)
	output := func(x []float64) (f float64, slopes []float64) {
		for j := range net.Width {
			z := floats.Dot(w.RawRowView(j), x)
			f += task.head[j] * (alpha[0]*max(z, 0) + alpha[1]*math.Tanh(z))
			slope := alpha[0]*trial.Indicator(z > 0) + alpha[1]*(1-math.Tanh(z)*math.Tanh(z))
			slopes = append(slopes, task.head[j]*slope)
		}
		return f, slopes
	}
	eta := net.Rate / task.sharpness(alpha)
	for range net.Steps {
		grad := mat.NewDense(net.Width, d, nil)
		for i := range net.Train {
			x := task.x.RawRowView(i)
			f, slopes := output(x)
			for j, s := range slopes {
				floats.AddScaled(grad.RawRowView(j), (f-task.Y[i])*s, x)
			}
		}
		grad.Scale(-eta, grad)
		w.Add(w, grad)
	}
	for i := range net.Train {
		f, _ := output(task.x.RawRowView(i))
		require.InDelta(t, f, train[i], 1e-9)
	}
	for i := range net.Pool {
		f, _ := output(task.pool.RawRowView(i))
		require.InDelta(t, f, pool[i], 1e-9)
	}
	require.InDelta(t, 2, floats.Dot(task.head, task.head), 1e-12, "‖v‖² = c₀")
}

func TestNetSharpness(t *testing.T) {
	net := Net{
		Classes: [2]int{2, 5}, Train: 3, Pool: 2, Activations: []string{"tanh", "sigmoid"},
		Width: 4, Steps: 1, C0: 1, Rate: 1,
	}
	task, err := NewTask(twosAndFives(t), net, 0)
	require.NoError(t, err)
	alpha := []float64{0.5, 0.5}
	slopes := task.apply(alpha, task.z, true)
	_, d := task.x.Dims()
	jacobian := mat.NewDense(3, 4*d, nil)
	for i := range 3 {
		for j := range 4 {
			for k := range d {
				jacobian.Set(i, j*d+k, task.head[j]*slopes.At(i, j)*task.x.At(i, k))
			}
		}
	}
	var svd mat.SVD
	require.True(t, svd.Factorize(jacobian, mat.SVDNone))
	s := svd.Values(nil)[0]
	require.InEpsilon(t, s*s, task.sharpness(alpha), 1e-9)
}

func TestTooFewImages(t *testing.T) {
	im := twosAndFives(t)
	_, err := NewTask(im, Net{Classes: [2]int{2, 5}, Train: len(im.Labels), Pool: 1}, 0)
	require.ErrorContains(t, err, "set Train or Pool lower")
}

func TestAConstantActivationCannotBeTrained(t *testing.T) {
	net := Net{
		Classes: [2]int{2, 5}, Train: 3, Pool: 2, Activations: []string{"relu"}, Width: 4, Steps: 1, C0: 1, Rate: 1,
	}
	task, err := NewTask(twosAndFives(t), net, 0)
	require.NoError(t, err)
	_, _, err = task.Train(t.Context(), []float64{0})
	require.ErrorContains(t, err, "nothing to train")
}

func TestLosses(t *testing.T) {
	y, f := []float64{1, 1, -1}, []float64{0.25, 3, 0}
	require.Equal(t, []float64{0.75, 0, 1}, Losses("hinge", y, f))
	require.Equal(t, []float64{0.5625, 4, 1}, Losses("squared", y, f))
	require.Equal(t, []float64{0, 0, 1}, Losses("error", y, f), "an output of 0 is an error")
}
