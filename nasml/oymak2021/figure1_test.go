package oymak2021

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/oymak2021/spectral"
)

// Figure 1 and Theorem 1 train networks with a reader's activation, which the key of a
// trial knows by what it computes.
func TestNetworksWithAnOwnActivation(t *testing.T) {
	put := func(name string, eval func(z float64) (float64, float64)) {
		spectral.Activations[name] = spectral.Activation{Eval: eval, Slope: 1, Curvature: 1}
		t.Cleanup(func() { delete(spectral.Activations, name) })
	}
	put("mine", math.Sincos)
	put("renamed", func(z float64) (float64, float64) { s, c := math.Sincos(z); return s, c })
	ctx := emptyStore(t)
	run := func(name string) *figure1 {
		p := Figure1Quick
		p.Data, p.Classes, p.Train, p.Pool, p.Width, p.Steps = data.Synthetic, [2]int{0, 1}, 8, 60, 8, 30
		p.LineSteps, p.PlaneSteps, p.Validation, p.Seeds = 3, 2, []int{3, 400}, 2
		p.Line[1] = name
		r, err := Figure1(ctx, p)
		require.NoError(t, err)
		return r
	}
	mine, sine := run("mine"), run("sin")
	require.Equal(t, mine.Records(), run("renamed").Records(), "the same under another name")
	require.NotEqual(t, mine.Groups[0].Records[0].Key, sine.Groups[0].Records[0].Key)
	require.Equal(t, sine.Groups[0].Records[0].Series, mine.Groups[0].Records[0].Series, "it computes what sin does")

	p := tinyTheorem1()
	p.Parts, p.Activations, p.NetMaps = []string{"net"}, []string{"mine", "relu"}, []int{2}
	first, err := Theorem1(ctx, p)
	require.NoError(t, err)
	p.Activations[0] = "renamed"
	again, err := Theorem1(ctx, p)
	require.NoError(t, err)
	require.Equal(t, first.Records(), again.Records())
}

func TestFigure1FromNetworks(t *testing.T) {
	ctx, p := emptyStore(t), Figure1Quick
	p.Data, p.Classes, p.Train, p.Pool, p.Width, p.Steps = data.Synthetic, [2]int{0, 1}, 8, 60, 8, 30
	p.LineSteps, p.PlaneSteps, p.Validation, p.Seeds = 3, 2, []int{3, 400}, 2
	r, err := Figure1(ctx, p)
	require.NoError(t, err)
	require.NoError(t, r.Figure().Validate())
	require.Contains(t, r.Figure().Caption, "SYNTHETIC DATA")
	require.Len(t, r.Records(), 4)
	require.Len(t, r.Part("line")[0].Records[0].Series["test"], 4)
	require.Len(t, r.Part("plane")[0].Records[0].Series["test"], 6)
	p.Plane[2] = "tanhh"
	_, err = Figure1(ctx, p)
	require.ErrorContains(t, err, "tanhh")
}
