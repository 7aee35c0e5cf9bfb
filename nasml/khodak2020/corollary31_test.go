package khodak2020

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/runs"
)

// isolated is a context with an empty store and no progress.
func isolated(t *testing.T) context.Context {
	t.Helper()
	store, err := runs.Open(t.TempDir())
	require.NoError(t, err)
	return runs.WithProgress(runs.WithStore(t.Context(), store), runs.Silent)
}

// tiny31 runs in a second.
func tiny31() Corollary31Params {
	p := Corollary31Quick
	p.Support, p.Dim, p.Train, p.At = 64, 8, []int{16, 32}, 32
	p.Valid, p.Counts, p.Draws = []int{10, 40}, []int{2, 4}, 5
	p.KernelTrain, p.KernelFactor = []int{16, 32}, []float64{0.25, 1}
	p.JointSize, p.JointDim, p.JointCount, p.Members, p.TightCounts, p.Seeds = 12, 40, 4, 8, []int{2, 16}, 3
	return p
}

func TestCorollary31RunsOnceAndResumes(t *testing.T) {
	ctx := isolated(t)
	p := tiny31()
	r, err := Corollary31(ctx, p)
	require.NoError(t, err)
	require.NoError(t, r.Figure().Validate())
	require.NotEmpty(t, r.Records())
	names := map[string]bool{}
	for _, c := range r.Check() {
		require.False(t, names[c.Name], "%s twice", c.Name)
		names[c.Name] = true
		require.NotContains(t, c.Note, "not run", c.Name)
	}
	p.StoredOnly = true
	again, err := Corollary31(ctx, p)
	require.NoError(t, err)
	require.Equal(t, r.Records(), again.Records())
	p.JointLambda = []float64{0, 0.3} // only this part is new
	changed, err := Corollary31(ctx, p)
	require.NoError(t, err)
	require.Len(t, changed.Records(), len(r.Records())-p.Seeds)
	require.NoError(t, changed.Figure().Validate())
	require.NotEmpty(t, changed.Check())
	p.StoredOnly = false
	computed, err := Corollary31(ctx, p)
	require.NoError(t, err)
	require.NoError(t, computed.Figure().Validate())
}

func TestCorollary31RefusesWhatMakesNoSense(t *testing.T) {
	var usage *catalog.UsageError
	for want, change := range map[string]func(*Corollary31Params){
		"Counts must":               func(p *Corollary31Params) { p.Counts = []int{4, 2} },
		"Valid must":                func(p *Corollary31Params) { p.Valid = []int{4, 4} },
		"Train must":                func(p *Corollary31Params) { p.Train = []int{} },
		"value of JointLambda must": func(p *Corollary31Params) { p.JointLambda = []float64{math.Inf(1)} },
		"Range must":                func(p *Corollary31Params) { p.Range = [2]float64{1, 1} },
		"value of Range must":       func(p *Corollary31Params) { p.Range[0] = -1 },
		"Gamma must":                func(p *Corollary31Params) { p.Gamma = math.NaN() },
		"Confidence must":           func(p *Corollary31Params) { p.Confidence = 0.5 },
	} {
		p := Corollary31Quick
		change(&p)
		_, err := Corollary31(isolated(t), p)
		require.ErrorAs(t, err, &usage, want)
		require.ErrorContains(t, err, want)
	}
}

// Edges: one seed, one configuration, one point.
func TestCorollary31AtTheEdges(t *testing.T) {
	p := tiny31()
	p.Seeds, p.At, p.Dim, p.JointCount = 1, 1, 1, 1
	for _, list := range []*[]int{&p.Counts, &p.Train, &p.Valid, &p.TightCounts, &p.KernelTrain} {
		*list = []int{1}
	}
	r, err := Corollary31(isolated(t), p)
	require.NoError(t, err)
	require.NoError(t, r.Figure().Validate())
	for _, c := range r.Check() {
		require.False(t, math.IsInf(float64(c.Ours), 0), c.Name)
		require.NotContains(t, c.Note, "NaN", c.Name)
	}
}
