package lipschitz

import (
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/floats"

	"github.com/nasml/lab/nasml/oymak2021/internal/instance"
	"github.com/nasml/lab/nasml/trial"
)

func TestArgument(t *testing.T) {
	c := Case{Train: 20, Scale: 1}
	require.InEpsilon(t, 20*400*4*21.0, c.argument(0.5, 3), 1e-12)
	c.Scale = 2
	require.InEpsilon(t, 8*20*400*4*21.0, c.argument(0.5, 3), 1e-12)
	require.InEpsilon(t, 16*20*400*4*21.0, c.argument(0.5, 4), 1e-12)
	c.Scale = 0.1
	require.Equal(t, 1.0, c.Radius(), "R ≥ 1")
}

func TestLipschitzConstant(t *testing.T) {
	teacher := instance.NewTeacher(4, instance.Params{Inputs: 6, Features: 8, Maps: 2, Decay: 1})
	x, y := teacher.Sample(trial.RNG(1, "x"), 4)
	train, err := teacher.Mixture(x, y)
	require.NoError(t, err)
	alpha := []float64{0.4, 0.6}
	w, slope, err := fit(teacher, train, alpha, 0.2, true)
	require.NoError(t, err)
	most, rng := 0.0, trial.RNG(2, "steps")
	for range 2000 {
		step := []float64{rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64()}
		floats.Scale(1e-5, step)
		next := []float64{alpha[0] + step[0], alpha[1] + step[1]}
		moved, _, err := fit(teacher, train, next, 0.2+step[2], true)
		require.NoError(t, err)
		most = max(most, floats.Distance(w, moved, 2)/floats.Norm(step, 2))
	}
	require.LessOrEqual(t, most, slope*(1+1e-3))
	require.InEpsilon(t, slope, most, 0.05)
}
