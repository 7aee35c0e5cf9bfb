package oymak2021

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/runs"
)

func TestFigure1FromNetworks(t *testing.T) {
	ctx, p := emptyStore(t), Figure1Quick
	p.Data, p.Classes, p.Train, p.Pool, p.Width, p.Steps = data.Synthetic, [2]int{0, 1}, 8, 60, 8, 30
	p.LineSteps, p.PlaneSteps, p.Validation, p.Seeds = 3, 2, []int{3, 400}, 2
	r, err := Figure1(ctx, p)
	require.NoError(t, err)
	require.NoError(t, r.Figure().Validate())
	require.Contains(t, r.caption(), "SYNTHETIC DATA")
	require.Len(t, r.Records(), 4)
	require.Len(t, r.line[0].Series["test"], 4)
	require.Len(t, r.plane[0].Series["test"], 6)
	byName := map[string]runs.Verdict{}
	for _, c := range r.Check() {
		byName[c.Name] = c.Holds
	}
	require.Equal(t, runs.NotKnown, byName["training error zero after 30 epochs"])
	p.Plane[2] = "tanhh"
	_, err = Figure1(ctx, p)
	require.ErrorContains(t, err, "tanhh")
}
