package search

import (
	"maps"
	"math/rand/v2"
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/bilevel"
	"github.com/nasml/lab/nasml/simplex"
	"github.com/nasml/lab/nasml/supernet"
)

func settingsKey(t *testing.T, s Settings) Settings {
	t.Helper()
	key, err := s.Key()
	require.NoError(t, err)
	return key
}

func TestSettingsOfShippedEntriesAreTheirOwnKey(t *testing.T) {
	for name := range quickSettings {
		s, err := AsQuick(name)
		require.NoError(t, err)
		require.Equal(t, s, settingsKey(t, s), name)
	}
}

// A reader's update, hypergradient, method and space under a name that stays:
// an edited body is another key, a new name is not.
func TestSettingsKeyFollowsWhatAReaderAdded(t *testing.T) {
	base, err := AsQuick("gaea-darts")
	require.NoError(t, err)
	for what, edit := range map[string]func(name string, c float64) Settings{
		"update": func(name string, c float64) Settings {
			simplex.Updates[name] = func(theta, grad *Node, eta float64) *Node { return simplex.EG(theta, grad, c*eta) }
			s := base
			s.Update = name
			return s
		},
		"update with a state": func(name string, c float64) Settings {
			Updates[name] = momentum(0.9 * c)
			s := base
			s.Update = name
			return s
		},
		"update that counts its moves": func(name string, c float64) Settings {
			Updates[name] = moved(func(theta, grad *Node, o Setup, m bilevel.Move) *Node {
				// the first move shows nothing
				decayed := Mul(grad, Exp(MulScalar(ConvertDType(m.Done, grad.DType()), -0.01*c)))
				return simplex.EG(theta, decayed, o.Rate)
			})
			s := base
			s.Update = name
			return s
		},
		"update that reads the settings": func(name string, c float64) Settings {
			Updates[name] = moved(func(theta, grad *Node, o Setup, _ bilevel.Move) *Node {
				return simplex.EG(theta, grad, o.Rate+1e-3*c*o.Settings.ArchWeightDecay)
			})
			s := base
			s.Update = name
			return s
		},
		"method with an update with a state": func(name string, c float64) Settings {
			Updates[name+"-update"] = momentum(0.9 * c)
			Methods[name] = Method{
				Hold: OnSimplex, Weights: Mixture, Architecture: Mixture, Update: name + "-update", Final: ByArgmax,
			}
			s := base
			s.Method = name
			return s
		},
		"hypergradient": func(name string, c float64) Settings {
			bilevel.Hypergradients[name] = func(
				p bilevel.Problem, o bilevel.Options, w, theta, v []*Node,
			) (*Node, []*Node, []*Node) {
				loss, grad, aux := bilevel.FirstOrder(p, o, w, theta, v)
				return loss, []*Node{MulScalar(grad[0], c), MulScalar(grad[len(grad)-1], c)}[:len(grad)], aux
			}
			s := base
			s.Bilevel.Hypergradient = name
			return s
		},
		"method": func(name string, c float64) Settings {
			simplex.Updates[name+"-update"] = func(theta, grad *Node, eta float64) *Node {
				return simplex.EG(theta, grad, c*eta)
			}
			Methods[name] = Method{
				Title: "Mine", Hold: OnSimplex, Weights: Mixture, Architecture: Mixture,
				Update: name + "-update", Final: ByArgmax,
			}
			s := base
			s.Method = name
			return s
		},
		"space": func(name string, c float64) Settings {
			space := supernet.NASBench201.Without("none")
			if c != 1 {
				space = space.Without(space.Ops[0])
			}
			space.Name = name
			supernet.Spaces[name] = space
			s := base
			s.Space = name
			return s
		},
	} {
		first := settingsKey(t, edit("mine", 1))
		require.NotEqual(t, base, first, what)
		require.Equal(t, first, settingsKey(t, edit("renamed", 1)), "%s: a new name", what)
		require.NotEqual(t, first, settingsKey(t, edit("mine", 1.5)), "%s: an edited body", what)
		for _, name := range []string{"mine", "renamed"} {
			delete(Updates, name)
			delete(Updates, name+"-update")
			delete(simplex.Updates, name)
			delete(simplex.Updates, name+"-update")
			delete(bilevel.Hypergradients, name)
			delete(Methods, name)
			delete(supernet.Spaces, name)
		}
	}
}

// An entry in the place of a shipped one goes by what it computes, and one of
// its own for logits and for a gradient an example can be known, too.
func TestKeysOfUpdatesWithAState(t *testing.T) {
	shipped := maps.Clone(Updates)
	defer func() { Updates = shipped }()
	keys := map[string]string{}
	for name, u := range shipped {
		key, err := updateKey(name)
		require.NoError(t, err)
		require.Equal(t, name, key)
		rule := u.Rule
		u.Rule = func(o Setup) bilevel.Rule { return rule(o) }
		Updates = maps.Clone(shipped)
		Updates["mine"] = u
		key, err = updateKey("mine")
		require.NoError(t, err)
		require.NotContains(t, keys, key)
		keys[key] = name
		Updates[name] = u
		again, err := updateKey(name)
		require.NoError(t, err)
		require.Equal(t, key, again, "in the place of %q", name)
	}
}

func TestKeysRefuseRandomUpdates(t *testing.T) {
	Updates["drifting"] = moved(func(theta, grad *Node, o Setup, _ bilevel.Move) *Node {
		return simplex.EG(theta, MulScalar(grad, rand.Float64()), o.Rate)
	})
	defer delete(Updates, "drifting")
	s, err := AsQuick("gaea-darts")
	require.NoError(t, err)
	s.Update = "drifting"
	_, err = s.Key()
	require.ErrorContains(t, err, `search.Updates["drifting"] gives other numbers`)
}
