package li2021

import (
	"context"
	"sync/atomic"
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/bilevel"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/search"
	"github.com/nasml/lab/nasml/simplex"
	"github.com/nasml/lab/nasml/supernet"
)

// counting is a progress that counts what is computed.
type counting struct {
	runs.Progress
	steps *atomic.Int64
}

func (c counting) Step(n int, _ string) { c.steps.Add(int64(n)) }

// tiny is a search of one epoch on images of 8×8.
func tiny() Figure1Params {
	p := Figure1Params{SearchParams: quickSearch, Rows: []string{"gaea-darts"}}
	p.Seeds, p.Channels, p.Image, p.Batch, p.Epochs = 1, 2, 8, 4, 1
	return p
}

// colour are 16 synthetic images with three channels.
func colour(context.Context) (*data.Images, error) {
	grey, err := data.SyntheticImages(1, 16, data.ImageSpec{Classes: 3, Height: 8, Width: 8})
	if err != nil {
		return nil, err
	}
	im := *grey
	im.Channels, im.Pixels = 3, nil
	for _, v := range grey.Pixels {
		im.Pixels = append(im.Pixels, v, v/2, 255-v)
	}
	return &im, nil
}

// What a reader adds, under a name that stays: an edited body is computed anew, a
// new name of the same is read.
func TestSearchesGoByWhatAReaderAdded(t *testing.T) {
	t.Setenv("GOMLX_BACKEND", "go")
	for what, add := range map[string]func(name string, c float64, p *Figure1Params){
		"update": func(name string, c float64, p *Figure1Params) {
			simplex.Updates[name] = scaledEG(c)
			p.Update = name
		},
		"hypergradient": func(name string, c float64, p *Figure1Params) {
			bilevel.Hypergradients[name] = func(q bilevel.Problem, o bilevel.Options, w, theta, v []*Node) (
				*Node, []*Node, []*Node,
			) {
				loss, grads, aux := bilevel.FirstOrder(q, o, w, theta, v)
				scaled := make([]*Node, len(grads))
				for i, g := range grads {
					scaled[i] = MulScalar(g, c)
				}
				return loss, scaled, aux
			}
			p.Hypergradient = name
		},
		"method": func(name string, c float64, p *Figure1Params) {
			simplex.Updates[name] = scaledEG(c)
			search.Methods[name] = search.Method{
				Hold: search.OnSimplex, Weights: search.Mixture, Architecture: search.Mixture,
				Update: name, Final: search.ByArgmax,
			}
			p.Rows = []string{name}
		},
		"space": func(name string, c float64, p *Figure1Params) {
			space := supernet.NASBench201.Without("none")
			if c != 1 {
				space = space.Without("avg_pool_3x3")
			}
			space.Name = name
			supernet.Spaces[name] = space
			p.Space = name
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Cleanup(func() {
				for _, name := range []string{"mine", "renamed"} {
					delete(simplex.Updates, name)
					delete(bilevel.Hypergradients, name)
					delete(search.Methods, name)
					delete(supernet.Spaces, name)
				}
			})
			ctx := isolated(t)
			run := func(name string, c float64) (keys []string, computed bool) {
				p := tiny()
				add(name, c, &p)
				steps := new(atomic.Int64)
				all, err := p.runOn(runs.WithProgress(ctx, counting{runs.Silent, steps}), "own", rowsNamed(p.Rows),
					data.Facts{Fingerprint: "16 images", Len: 16, Synthetic: true}, colour)
				require.NoError(t, err)
				r := &Figure1Result{Params: p, all: all}
				require.NoError(t, r.Figure().Validate())
				return r.Records(), steps.Load() > 0
			}
			first, computed := run("mine", 1)
			require.True(t, computed)
			renamed, computed := run("renamed", 1)
			require.False(t, computed, "a new name")
			require.Equal(t, first, renamed)
			edited, computed := run("mine", 1.5)
			require.True(t, computed, "an edited body")
			require.NotEqual(t, first, edited)
		})
	}
}

func scaledEG(c float64) func(theta, grad *Node, eta float64) *Node {
	return func(theta, grad *Node, eta float64) *Node { return simplex.EG(theta, grad, c*eta) }
}

// A reader's method has the settings of the shipped one that it resembles most.
func TestSettingsOfAnOwnMethod(t *testing.T) {
	for name := range search.Presets["nasbench201"]["quick"] {
		require.Equal(t, name, resembling("nasbench201", search.Methods[name]))
	}
	ours := search.Methods["gaea-darts"]
	ours.Title, ours.Update = "", "projected"
	require.Equal(t, "gaea-darts", resembling("nasbench201", ours))
	ours.Weights = search.Uniform
	require.Equal(t, "gaea-darts", resembling("nasbench201", ours),
		"how θ is held and the architecture's pass are the same")

	ours.Final = search.ByLikelihood
	search.Methods["mine"] = ours
	t.Cleanup(func() { delete(search.Methods, "mine") })
	for preset := range presets {
		p := quickSearch
		p.Preset = preset
		s, err := p.settings("mine")
		require.NoError(t, err, preset)
		require.Equal(t, "mine", s.Method)
		require.Empty(t, s.Update, "its own")
		require.Positive(t, s.Candidates, "it ranks candidates in the end")
	}
	require.Equal(t, "mine", row("mine").title())
	_, err := SearchParams{Preset: "code", Data: data.Synthetic}.settings("xnas")
	require.ErrorContains(t, err, "no settings are listed", "a shipped one goes by what its paper or code says")
}

// The table has the architectures of NAS-Bench-201's cells only.
func TestOtherSpacesHaveNoTable(t *testing.T) {
	require.NoError(t, tabulated(""))
	require.NoError(t, tabulated("nasbench201"))
	two := supernet.Space{Nodes: 2, Edges: []supernet.Edge{{From: 0, To: 1}}, Ops: supernet.NASBench201.Ops}
	supernet.Spaces["mine"] = two
	t.Cleanup(func() { delete(supernet.Spaces, "mine") })
	p := Figure4Quick
	p.Space = "mine"
	_, err := Figure4(isolated(t), p)
	require.ErrorContains(t, err, "does not have")
}
