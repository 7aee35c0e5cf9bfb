package oymak2021

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/oymak2021/internal/lowrank"
	"github.com/nasml/lab/nasml/oymak2021/spectral"
	"github.com/nasml/lab/nasml/runs"
)

// tinyTheorem4 takes a second.
func tinyTheorem4() Theorem4Params {
	p := Theorem4Quick
	p.Examples, p.Ratios, p.Operations, p.Seeds = 20, []float64{1.5, 3}, []int{1, 3}, 3
	p.LawExamples, p.LawRatios, p.LawOperations, p.LawSeeds = 2000, []float64{1.5, 20, 40}, []int{2, 16, 32}, 5
	p.MapExamples, p.MapSide, p.MapRatio, p.MapSeeds = 20, 4, 8, 2
	p.BoundaryExamples, p.BoundarySeeds, p.BoundaryOperations = 300, 6, []int{2, 4, 8, 16, 32, 64}
	p.SizeExamples, p.SizeSeeds = []int{20, 40}, 3
	p.SearchExamples, p.SearchOperations, p.SearchSeeds, p.SearchSteps = 10, []int{1, 3}, 2, 5
	p.FitExamples, p.FitSeeds, p.FitTries = 8, 3, 2
	p.CaseSeeds = 2
	p.Cases = nil
	for _, c := range theorem4Cases {
		c.Examples, c.Ratio = 20, 2
		p.Cases = append(p.Cases, c)
	}
	return p
}

func TestTheorem4WrongParametersAreAllNamed(t *testing.T) {
	p := Theorem4Quick
	p.Ratios = []float64{1}
	p.Operations = []int{0}
	p.Seeds = 0
	p.FitExamples = 2
	p.Noise = -1
	p.BoundaryOperations = []int{8, 4, 16}
	p.SearchOperations = []int{100000}
	p.Cases = []Theorem4Case{{Name: "x", Examples: 5, Ratio: 2, H: 1, Features: "pink"}}
	_, err := Theorem4(t.Context(), p)
	var usage *catalog.UsageError
	require.ErrorAs(t, err, &usage)
	for _, part := range []string{
		"value of Ratios must", "value of Operations must", "Seeds must", "FitExamples must",
		"Noise must be at least 0, got -1", "ascending",
		"GB", "pink", "rademacher",
	} {
		require.ErrorContains(t, err, part)
	}
}

func TestTheorem4RunsIsReadAgainAndDraws(t *testing.T) {
	ctx, p := emptyStore(t), tinyTheorem4()
	first, err := Theorem4(ctx, p)
	require.NoError(t, err)
	again, err := Theorem4(ctx, p)
	require.NoError(t, err)
	require.Equal(t, first.Records(), again.Records())
	require.Equal(t, first.Groups, again.Groups, "an unchanged call reads everything")
	other, err := Theorem4(emptyStore(t), p)
	require.NoError(t, err)
	require.Equal(t, runs.ClaimTable(first.Check()), runs.ClaimTable(other.Check()),
		"the same numbers, whatever ran beside what")
	names := map[string]bool{}
	for _, view := range Theorem4Views { // a figure answers one question
		first.Params.View = view
		f := first.Figure()
		names[f.Name] = true
		require.Len(t, f.Panels, 1, view)
		require.LessOrEqual(t, len(f.Panels[0]), 2, view)
		_, err = f.Render("svg")
		require.NoError(t, err, view)
	}
	require.Len(t, names, len(Theorem4Views))
	p.View = "everything"
	_, err = Theorem4(ctx, p)
	require.ErrorContains(t, err, `View must be one of`)

	byID := map[string]bool{}
	for _, c := range first.Check() {
		for _, row := range c.Rows {
			byID[row] = true
		}
	}
	for _, id := range []string{
		"thm4-cond", "thm4-eq11", "thm4-eq12", "thm4-oracle", "thm4-err-scale", "thm4-risk-scale", "thm4-refined",
		"thm4-necessary", "sec5-merged", "sec5-recon", "intro-ph-bound",
	} {
		require.True(t, byID[id], id)
	}
}

func TestTheorem4AtTheEdges(t *testing.T) {
	p := tinyTheorem4()
	p.Examples, p.Ratios, p.Operations, p.Seeds = 2, []float64{1.01}, []int{1}, 1
	p.LawExamples, p.LawOperations, p.LawSeeds = 2, []int{1}, 1
	p.MapSeeds, p.BoundarySeeds, p.SizeExamples, p.SizeLevels, p.SizeSeeds = 1, 1, []int{2}, nil, 1
	p.SearchOperations, p.SearchSeeds, p.SearchSteps = []int{1}, 1, 0
	p.FitExamples, p.FitOperations, p.FitSeeds, p.Cases = 4, 1, 1, nil
	r, err := Theorem4(emptyStore(t), p)
	require.NoError(t, err)
	for _, c := range r.Check() {
		require.NotEqual(t, runs.Fails, c.Holds, "%s: one seed cannot refute", c.Name)
	}
	_, err = r.Figure().Render("svg")
	require.NoError(t, err)
}

// A part that is left out is not drawn, and its claims are not run.
func TestTheorem4PartsCanBeLeftOut(t *testing.T) {
	p := tinyTheorem4()
	p.MapSide, p.FitExamples, p.Cases = 0, 0, nil
	p.Operations, p.LawOperations, p.BoundaryOperations, p.SizeExamples = nil, nil, nil, nil
	r, err := Theorem4(emptyStore(t), p)
	require.NoError(t, err)
	for _, c := range r.Check() {
		require.Equal(t, runs.NotKnown, c.Holds, c.Name)
	}
	f := r.Figure()
	require.Len(t, f.Panels, 1)
	_, err = f.Render("svg")
	require.NoError(t, err)
	p.SearchOperations = nil
	_, err = Theorem4(emptyStore(t), p)
	require.ErrorContains(t, err, "at least one part with a picture")
	p.BoundaryOperations = Theorem4Quick.BoundaryOperations[:3]
	r, err = Theorem4(emptyStore(t), p)
	require.NoError(t, err)
	_, err = r.Figure().Render("svg")
	require.NoError(t, err, "a boundary without a map")
}

func TestTheorem4Cancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(emptyStore(t))
	cancel()
	_, err := Theorem4(ctx, tinyTheorem4())
	require.ErrorIs(t, err, context.Canceled)
}

// The exponents of the exact limits, put instead of draws, come out.
func TestTheorem4SlopesOfTheLimit(t *testing.T) {
	r := &theorem4{Params: Theorem4Quick, Confidence: 0.95}
	for _, q := range theorem4Questions {
		r.Groups = append(r.Groups, q.Trials(r.Params)...)
	}
	for i := range r.Groups {
		law, ok := r.Groups[i].Trial.(lowrank.Law)
		if !ok {
			continue
		}
		var rho2 []float64
		for _, p := range law.P {
			for _, h := range law.H {
				rho2 = append(rho2, theorem4Point{n: law.N, p: p, h: h}.limit())
			}
		}
		for range r.Groups[i].Seeds {
			r.Groups[i].Records = append(r.Groups[i].Records,
				&runs.Record{Series: map[string][]float64{"rho2": rho2, "risk": rho2}})
		}
	}
	slopes := judgeRates(r)
	require.InDelta(t, 1, float64(slopes[0].Ours), 0.002)
	require.InDelta(t, 0.974, float64(slopes[1].Ours), 0.001, "log(81/21)/log 4")
	require.Equal(t, runs.Holds, slopes[0].Holds)
	require.InDelta(t, -0.97, float64(judgeBoundary(r).Ours), 0.02)
	require.InDelta(t, 0, float64(judgeLimit(r).Ours), 1e-12)
}

// In the limit (11) holds with 2 for 64 and (12) with 2.25 for 200, everywhere,
// and with nothing smaller.
func TestTheorem4SharpConstants(t *testing.T) {
	largest11, largest12 := 0.0, 0.0
	for i := range 200 {
		for j := range 200 {
			pBar, hBar := 1/(1-float64(i+1)/201), math.Pow(10, -4*float64(j+1)/200)
			rho2 := spectral.CorrelationLimit(pBar, hBar, 0)
			largest11 = max(largest11, (1-rho2)/(pBar*hBar))
			excess := spectral.RiskLimit(pBar, rho2, 0) - spectral.RiskLimit(pBar, 1, 0)
			largest12 = max(largest12, excess*(1-1/pBar)/hBar)
		}
	}
	require.LessOrEqual(t, largest11, 2.0)
	require.InDelta(t, 2, largest11, 0.01)
	require.LessOrEqual(t, largest12, 2.25)
	require.InDelta(t, 2.25, largest12, 0.001)
}
