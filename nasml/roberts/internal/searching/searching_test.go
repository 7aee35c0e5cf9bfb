package searching

import (
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/backend"
	"github.com/nasml/lab/nasml/roberts/internal/mixture"
)

// Where W stays at W*, α is found: the loss in α is a convex quadratic with its
// minimum 0 at α*.
func TestSearchFindsAlphaAtTheTeachersWeights(t *testing.T) {
	b, err := backend.Open()
	require.NoError(t, err)
	es := mixture.NewEvaluators(b)
	defer es.Close()
	p := Teaching{
		Activations: []string{
			"relu",
			"tanh",
			"sin",
		}, Teacher: []float64{0.5, 0.3, 0.2}, Inputs: 3, Width: 4, Student: 4,
		Spread: 2, Train: 30, Valid: 30, Start: "near", Update: "eg", Eta: 3, LearningRate: 1e-12, Steps: 400,
	}
	l, err := p.Draw(es, 5)
	require.NoError(t, err)
	_, l.w, _ = p.inputs(5)
	c := &Class{p, []Lesson{l}}
	w, alpha, err := c.Fit(t.Context(), b, func() {})
	require.NoError(t, err)
	require.InDeltaSlice(t, p.Teacher, alpha.Value().([][]float64)[0], 1e-3)
	results, err := c.Results(b, []Teaching{p}, w, alpha)
	require.NoError(t, err)
	require.Less(t, results[0].Values["mixture"], 1e-6*results[0].Values["best_loss"])
	require.Zero(t, results[0].Values["bound_wrong"])
}

// W moves by the training loss, and lowers it.
func TestSearchTrainsWeights(t *testing.T) {
	b, err := backend.Open()
	require.NoError(t, err)
	es := mixture.NewEvaluators(b)
	defer es.Close()
	p := Teaching{
		Activations: []string{"relu", "tanh"}, Teacher: []float64{0.6, 0.4}, Inputs: 3, Width: 4, Student: 6,
		Spread: 1.5, Train: 40, Valid: 40, Start: "random", Update: "softmax", Eta: 0.1, LearningRate: 0.03, Steps: 200,
	}
	l, err := p.Draw(es, 2)
	require.NoError(t, err)
	require.Len(t, l.w, 3*6, "a wider student has weights and a head of its own")
	before := &Class{p, []Lesson{l}}
	mixture := func(w, alpha *tensors.Tensor) float64 {
		results, err := before.Results(b, []Teaching{p}, w, alpha)
		require.NoError(t, err)
		return results[0].Values["mixture"]
	}
	state := before.state()
	start := mixture(state[0], state[3])
	w, alpha, err := before.Fit(t.Context(), b, func() {})
	require.NoError(t, err)
	require.Less(t, mixture(w, alpha), start/3)
}
