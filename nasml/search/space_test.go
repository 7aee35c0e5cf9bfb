package search

import (
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/simplex"
	"github.com/nasml/lab/nasml/supernet"
	"github.com/nasml/lab/nasml/trial"
)

// small are settings on a space of cells, or of NAS-Bench-1Shot1, that compile in
// seconds.
func small(t *testing.T, method, space string) Settings {
	t.Helper()
	s := tiny(t, method)
	s.Space, s.Without, s.Cells, s.TrackOutside = space, nil, 3, false // which is NAS-Bench-201's
	return s
}

// other are searches on other spaces than NAS-Bench-201. PC-DARTS with weights of
// edges is in it, and a method of every pass.
func other(t *testing.T) map[string]Settings {
	t.Helper()
	partial := func(s Settings) Settings {
		s.Channels, s.Partial, s.EdgeWeights, s.EdgeUpdate = 4, 2, s.Space[0] == 'd', "eg-clamp-normalize"
		return s
	}
	return map[string]Settings{
		"darts":               small(t, "darts", "darts-s2"),
		"gaea-darts on edges": partial(small(t, "gaea-darts", "darts-s3")),
		"gaea-gdas":           small(t, "gaea-gdas", "darts-s2"),
		"xnas":                small(t, "xnas", "darts-s2"),
		"rsps":                small(t, "rsps", "darts-s1"),
		"noise":               partial(small(t, "gaea-darts", "darts-s4")),
		"1shot1":              partial(small(t, "gaea-darts", "1shot1-s1")),
		"1shot1 rsps":         small(t, "rsps", "1shot1-s2"),
	}
}

func TestOtherSpacesAreSearched(t *testing.T) {
	for name, s := range other(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x, err := New(pure(t), s, pictures(t, 16))
			require.NoError(t, err)
			defer x.Close()
			c, err := x.Search(t.Context(), 3, Options{})
			require.NoError(t, err)
			blocks := x.product
			for i, entropy := range c.Entropy(blocks) {
				require.InDelta(t, math.Log(float64(blocks[i].Options)), entropy[0], 1e-4, blocks[i].Name)
				moved := 0.0
				for j, row := range Blocks(blocks, c.Theta[2])[i] {
					for k, x := range row {
						moved = max(moved, math.Abs(x-Blocks(blocks, c.Theta[0])[i][j][k]))
					}
				}
				rests := Methods[s.Method].Hold == Nothing || blocks[i].Options == 1
				require.Equal(t, !rests, moved > 1e-6, "%s: θ has moved by %v", blocks[i].Name, moved)
			}
			arch, err := x.space.Arch(c.Final)
			require.NoError(t, err)
			require.Equal(t, c.Found, arch.Text)
			require.Equal(t, c, interrupted(t, x, 2), "stopped after two steps")
		})
	}
}

// TestSearchOnImageNetsStem: the settings of ImageNet on images of 32 pixels, which
// the stem makes 4: warm-ups of the rate and of the architecture, then a step.
func TestSearchOnImageNetsStem(t *testing.T) {
	set := pictures(t, 20)
	side := 32
	large := *set
	large.Height, large.Width = side, side
	large.Pixels = make([]byte, 20*side*side*3)
	for i := range large.Pixels {
		large.Pixels[i] = byte(i * i / 7)
	}
	for _, scale := range []string{"imagenet", "imagenet-code"} {
		s, err := Preset("darts-s2", "gaea-pc-darts", scale)
		require.NoError(t, err)
		require.NoError(t, s.Check())
		require.InDelta(t, 0.1, s.rate(0), 1e-12, "a fifth of 0.5")
		require.InDelta(t, 0.5, s.rate(4), 1e-12)
		require.InDelta(t, 0.25, s.rate(25), 1e-12, "half of the cosine")
		s.Image, s.Channels, s.Cells, s.Batch, s.Epochs = side, 4, 3, 4, 2
		s.Parts, s.Bilevel.Warmup = Shares{Train: 8, Validation: 4}, 1
		x, err := New(pure(t), s, &large)
		require.NoError(t, err)
		defer x.Close()
		c, err := x.Search(t.Context(), 3, Options{})
		require.NoError(t, err)
		require.Equal(t, c.Theta[0], c.Theta[1], "warm-up")
		require.NotEqual(t, c.Theta[1], c.Theta[2])
	}
	_, err := Preset("darts", "darts", "imagenet")
	require.ErrorContains(t, err, `no settings are listed for the search method "darts"`)
}

// A random architecture is what its code and its weights 0 and 1 say.
func TestArchitecturesOfAllSpaces(t *testing.T) {
	for _, space := range slices.Concat(names(supernet.Spaces), names(supernet.CellSpaces), names(supernet.OneShots)) {
		s := small(t, "rsps", space)
		for _, edges := range []bool{false, true} {
			if s.EdgeWeights = edges; edges && supernet.CellSpaces[space].Nodes == 0 {
				continue
			}
			opened, err := s.Open(10)
			require.NoError(t, err, space)
			blocks := opened.Network().Architecture()
			rng := trial.RNG(1, space)
			seen := map[string]bool{}
			for range 20 {
				a, err := opened.Random(rng)
				require.NoError(t, err)
				seen[a.Text] = true
				require.Len(t, a.Theta, len(blocks))
				for i, b := range blocks {
					require.Len(t, a.Theta[i], b.Rows)
				}
				again, err := opened.Arch(a.Code)
				require.NoError(t, err)
				require.Equal(t, a, again)
				read, err := opened.Discretize(a.Theta)
				require.NoError(t, err)
				require.ElementsMatch(t, ones(blocks, a.Theta), ones(blocks, read.Theta), "%s: %s", space, a.Text)
			}
			require.Greater(t, len(seen), 10, space)
			_, err = opened.Arch([]int{-1})
			require.ErrorContains(t, err, "expected", space)
		}
	}
}

// ones are the places of 1.
func ones(blocks simplex.Product, theta [][][]float64) (places [][3]int) {
	for b := range blocks {
		for i, row := range theta[b] {
			for j, x := range row {
				if x == 1 {
					places = append(places, [3]int{b, i, j})
				}
			}
		}
	}
	return places
}

func TestSettingsThatASpaceDoesNotReadAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		method, space string
		change        func(*Settings)
		want          string
	}{
		"partial channels": {"darts", "nasbench201", func(s *Settings) { s.Partial = 2 }, "Partial is set"},
		"K":                {"darts", "darts", func(s *Settings) { s.Partial = 3 }, "K must divide them"},
		"bias":             {"darts", "darts", func(s *Settings) { s.ConvBias = true }, "ConvBias is set"},
		"edges":            {"darts", "1shot1-s1", func(s *Settings) { s.EdgeWeights = true }, "EdgeWeights is set"},
		"ties":             {"darts", "1shot1-s1", func(s *Settings) { s.Ties = "last" }, `got "last"`},
		"stem":             {"darts", "darts", func(s *Settings) { s.Stem = "mnist" }, `"mnist"`},
		"small images":     {"darts", "darts", func(s *Settings) { s.Image = 7 }, "must be even"},
		"likelihood":       {"setn", "darts", func(*Settings) {}, "SETN is not defined on the space darts"},
		"controller":       {"enas", "1shot1-s1", func(*Settings) {}, "ENAS is not defined on the space 1shot1-s1"},
		"operations of S1": {"darts", "darts-s1", func(s *Settings) { s.Without = []string{"none"} },
			"operations of their own, got [none]"},
		"update of edges": {"darts", "darts", func(s *Settings) { s.EdgeUpdate = "eg" },
			"EdgeUpdate must move logits"},
		"no such edge update": {"darts", "darts", func(s *Settings) { s.EdgeUpdate = "ge" }, `"ge"`},
	} {
		s := small(t, c.method, c.space)
		c.change(&s)
		require.ErrorContains(t, s.Check(), c.want, name)
	}
	s := small(t, "darts", "nasbench201")
	supernet.CellSpaces["nasbench201"] = supernet.DARTS
	defer delete(supernet.CellSpaces, "nasbench201")
	require.ErrorContains(t, s.Check(), "rename one")
}

// What a reader put into a space goes by its content, a custom operation by what it
// computes.
func TestKeysOfOtherSpaces(t *testing.T) {
	for _, space := range slices.Concat(names(supernet.CellSpaces), names(supernet.OneShots)) {
		s := small(t, "rsps", space)
		require.Equal(t, s, settingsKey(t, s), space)
	}
	operation := func(k int) supernet.Operation {
		return func(l supernet.Layers, x supernet.Map, stride int, _ bool) supernet.Map {
			return l.BN("bn", l.Conv("conv", l.ReLU(x), k, stride, x.C))
		}
	}
	key := func(name string, k int) string {
		supernet.Operations[name] = operation(k)
		supernet.CellSpaces[name] = supernet.CellSpace{Name: name, Nodes: 2, Ops: []string{"skip_connect", name}}
		defer delete(supernet.Operations, name)
		defer delete(supernet.CellSpaces, name)
		return settingsKey(t, small(t, "rsps", name)).Space
	}
	require.Equal(t, key("mine", 3), key("mine", 3))
	require.NotEqual(t, key("mine", 3), key("mine", 1))
	shipped := maps.Clone(supernet.Operations)
	defer func() { supernet.Operations = shipped }()
	supernet.Operations = maps.Clone(shipped)
	supernet.Operations["sep_conv_3x3"] = operation(3)
	require.NotEqual(t, "darts", settingsKey(t, small(t, "rsps", "darts")).Space)
	require.Equal(t, "darts-s2", settingsKey(t, func() Settings {
		supernet.Operations = shipped
		return small(t, "rsps", "darts-s2")
	}()).Space)
}
