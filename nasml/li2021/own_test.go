package li2021

import (
	"cmp"
	"encoding/json"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/bilevel"
	"github.com/nasml/lab/nasml/catalog"
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

// tiny is a search of one epoch on 16 coloured images of 8×8, made of synthetic ones.
func tiny() Figure1Params {
	p := Figure1Params{SearchParams: quickSearch, Rows: []string{"gaea-darts"}}
	p.Seeds, p.Channels, p.Image, p.Batch, p.Epochs = 1, 2, 8, 4, 1
	p.Data, p.Examples = "coloured", 0
	grey, err := data.SyntheticImages(1, 16, data.ImageSpec{Classes: 3, Height: 8, Width: 8})
	var pixels []uint8
	var labels []int
	for _, v := range grey.Pixels {
		pixels = append(pixels, v, v/2, 255-v)
	}
	for _, label := range grey.Labels {
		labels = append(labels, int(label))
	}
	if _, made := data.FromArrays(p.Data, data.Train, 8, 8, 3, pixels, labels); cmp.Or(err, made) != nil {
		panic(cmp.Or(err, made))
	}
	return p
}

// What a reader adds, under a name that stays: an edited body is recomputed, a
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
		"operation": func(name string, c float64, p *Figure1Params) {
			supernet.Operations["scaled"] = func(l supernet.Layers, x supernet.Map, _ int, _ bool) supernet.Map {
				return l.Apply(x, x, nil, 0, func(x *Node, _ []*Node) *Node { return MulScalar(Tanh(x), c) })
			}
			space := supernet.NASBench201.Without("none").With("scaled")
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
				delete(supernet.Operations, "scaled")
			})
			ctx := isolated(t)
			run := func(name string, c float64) (keys []string, computed bool) {
				p := tiny()
				add(name, c, &p)
				steps := new(atomic.Int64)
				r, err := Figure1(runs.WithProgress(ctx, counting{runs.Silent, steps}), p)
				require.NoError(t, err)
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

// Every field of search.Settings is a parameter, by a line of Go and by --set, and
// enters the key; parameters that set none are what they were.
func TestEveryFieldOfSettingsIsAParameter(t *testing.T) {
	p := quickSearch
	before, err := p.settings("gaea-darts")
	require.NoError(t, err)
	raw, err := json.Marshal(p)
	require.NoError(t, err)
	require.NotContains(t, string(raw), "Vary", "pictures go by the text of their parameters")

	p.Vary = func(row string, s *search.Settings) {
		require.Equal(t, "gaea-darts", row)
		s.LearningRate, s.Nesterov, s.Split, s.EntropyWeight = 0.05, true, "random", 0.01
		s.Augment.Cutout, s.Bilevel.Warmup, s.ArchRate = 8, 2, 0.3
		s.WeightDecay, s.Augment.Flip = 0, false
	}
	after, err := p.settings("gaea-darts")
	require.NoError(t, err)
	require.ElementsMatch(t, []string{
		"arch_rate: 0.1, 0.3", "augment.Cutout: 0, 8", "augment.Flip: true, false", "bilevel.warmup: 0, 2",
		"entropy_weight: not set, 0.01", "learning_rate: 0.025, 0.05", "nesterov: false, true",
		`split: "ordered", "random"`, "weight_decay: 0.0003, 0",
	}, search.Differences(before, after))

	e, err := catalog.Lookup("li2021/figure1")
	require.NoError(t, err)
	set, err := e.Params(catalog.Quick, []string{
		"LearningRate=0.05", "Nesterov=true", "Split=random", "EntropyWeight=0.01", "Augment.Cutout=8",
		"Bilevel.Warmup=2", "Vary.ArchRate=0.3", "WeightDecay=0", "Augment.Flip=false", "Epochs=0",
	})
	require.NoError(t, err)
	again, err := set.(Figure1Params).settings("gaea-darts")
	require.NoError(t, err)
	require.Equal(t, after, again, "and 0 for a field of the figure leaves the preset's")

	fields, err := e.Fields()
	require.NoError(t, err)
	listed := map[string]bool{}
	for _, f := range fields {
		listed[f.Name] = true
	}
	for f := range reflect.TypeFor[search.Settings]().Fields() {
		require.True(t, listed[f.Name], f.Name)
	}
	for _, wrong := range []func(row string, s *search.Settings){
		func(_ string, s *search.Settings) { s.Method = "gaea-darts" },
		func(_ string, s *search.Settings) { s.Space = "darts" },
		func(_ string, s *search.Settings) { s.Devices = 2 },
		func(_ string, s *search.Settings) { s.Split = "sorted" },
		func(_ string, s *search.Settings) { s.Partial = 4 }, // which NAS-Bench-201 does not read
	} {
		p := quickSearch
		p.Vary = wrong
		_, err := p.settings("darts")
		var usage *catalog.UsageError
		require.ErrorAs(t, err, &usage)
	}
}

// A changed learning rate is another trial, which is searched, and another picture, which says so; a change of
// another row is said of that.
func TestAChangedSettingIsSearched(t *testing.T) {
	t.Setenv("GOMLX_BACKEND", "go")
	ctx := isolated(t)
	var found, hashes []string
	for _, rate := range []float64{0, 0.1} {
		p := tiny()
		if rate > 0 {
			p.Vary = func(_ string, s *search.Settings) { s.LearningRate = rate }
		}
		r, err := Figure1(ctx, p)
		require.NoError(t, err)
		said := "Changed settings (preset, here): LearningRate: 0.025, 0.1."
		require.Equal(t, rate > 0, strings.Contains(r.Figure().Caption, said))
		found, hashes = append(found, r.Records()...), append(hashes, r.Figure().Meta["params"])
	}
	require.Len(t, found, 2)
	require.NotEqual(t, found[0], found[1])
	require.NotEqual(t, hashes[0], hashes[1])

	p := tiny()
	p.Rows, p.StoredOnly = []string{"gaea-darts", "darts"}, true
	p.Vary = func(row string, s *search.Settings) {
		if row == "darts" {
			s.WeightDecay = 0
		}
	}
	r, err := Figure1(ctx, p)
	require.NoError(t, err)
	require.Contains(t, r.Figure().Caption,
		"Changed settings of DARTS (bilevel) (preset, here): WeightDecay: 0.0003, 0.")
}

// A reader's method has the settings of the shipped one that it resembles most.
func TestSettingsOfAnOwnMethod(t *testing.T) {
	ours := search.Methods["gaea-darts"]
	ours.Title, ours.Final = "", search.ByLikelihood
	search.Methods["mine"] = ours
	t.Cleanup(func() { delete(search.Methods, "mine") })
	for _, preset := range []string{"quick", "paper", "code", "imagenet", "imagenet-code"} {
		p := quickSearch
		p.Preset = preset
		s, err := p.settings("mine")
		if search.Presets["nasbench201"][preset] == nil {
			require.ErrorContains(t, err, "there are no settings \""+preset+"\" on the space nasbench201")
			continue
		}
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

// A reader's arrays are a data set of a figure: grey, with five classes, known by what
// is in them.
func TestFiguresTakeOwnArrays(t *testing.T) {
	t.Setenv("GOMLX_BACKEND", "go")
	ctx := isolated(t)
	pixels, labels := make([]float32, 16*8*8), make([]int, 16)
	for i := range pixels {
		pixels[i] = float32((7*i)%11) / 11
	}
	for i := range labels {
		labels[i] = i % 5
	}
	run := func(name data.Name) []string {
		_, err := data.FromArrays(name, data.Train, 8, 8, 1, pixels, labels)
		require.NoError(t, err)
		p := tiny()
		p.Data, p.Examples = name, 0
		r, err := Figure1(ctx, p)
		require.NoError(t, err)
		require.Contains(t, r.Figure().Caption, strings.ToUpper(string(name)))
		return r.Records()
	}
	first := run("squares")
	require.Equal(t, first, run("renamed"), "a new name")
	pixels[3] = 1
	require.NotEqual(t, first, run("squares"), "another pixel")
}
