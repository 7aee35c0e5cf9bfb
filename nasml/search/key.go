package search

import (
	"encoding/json"
	"fmt"
	"maps"

	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes

	"github.com/nasml/lab/nasml/bilevel"
	"github.com/nasml/lab/nasml/internal/own"
	"github.com/nasml/lab/nasml/simplex"
)

// The entries that are this package's own.
var (
	shippedMethods = maps.Clone(Methods)
	shippedUpdates = maps.Clone(Updates)
)

// Key is the settings as the key of a trial has them: a reader's entries of Methods, Updates, simplex.Updates,
// bilevel.Hypergradients and maps of spaces are keyed by what they compute and not by name. Settings without such
// entries are their own key. It returns an error if an entry is missing, or cannot be known by what it computes because
// it is random or has a state.
func (s Settings) Key() (Settings, error) {
	var err error
	if s.Method, err = methodKey(s.Method); err != nil {
		return s, err
	}
	for _, name := range []*string{&s.Update, &s.EdgeUpdate} {
		if *name, err = updateKey(*name); err != nil {
			return s, err
		}
	}
	if s.Bilevel.Hypergradient != "" {
		if s.Bilevel.Hypergradient, err = bilevel.HypergradientKey(s.Bilevel.Hypergradient); err != nil {
			return s, err
		}
	}
	_, kind, err := s.kind()
	if err != nil {
		return s, err
	}
	s.Space, err = kind.Key(s.Space)
	return s, err
}

// methodKey is the name of a method of this package; a reader's is keyed by its fields except title and source.
func methodKey(name string) (string, error) {
	m, err := lookup(name)
	if err != nil {
		return "", err
	}
	if ours, ok := shippedMethods[name]; ok && ours == m {
		return name, nil
	}
	m.Title, m.Source = "", ""
	if m.Update, err = updateKey(m.Update); err != nil {
		return "", err
	}
	text, err := json.Marshal(m)
	if err != nil {
		return "", fmt.Errorf("method %q: %w", name, err)
	}
	return own.Text(string(text)), nil
}

// updateKey is the name of a shipped update, or what a reader's computes.
func updateKey(name string) (string, error) {
	if name == "" {
		return name, nil
	}
	update, err := lookupUpdate(name)
	if err != nil {
		return "", err
	}
	keeps, ok := Updates[name]
	if !ok {
		return simplex.UpdateKey(name)
	}
	if ours, ok := shippedUpdates[name]; ok && own.Same(keeps.Rule, ours.Rule) && sameFields(keeps, ours) {
		return name, nil
	}
	var probes []own.Probe
	for _, s := range probeSettings {
		for _, inputs := range probeMoves(update) {
			probes = append(probes, own.Probe{Of: threeMoves(update, s), Inputs: inputs})
		}
	}
	return own.Name("search.Updates[\""+name+"\"]", probes...)
}

func sameFields(a, b Update) bool {
	return a.Moves == b.Moves && a.PerExample == b.PerExample && a.OwnRate == b.OwnRate
}

// threeMoves are the block and the slots after each of three moves in a row: the first sees slots of 0, the others what
// was kept.
func threeMoves(u Update, s Settings) func(in []*Node) []*Node {
	return func(in []*Node) []*Node {
		rule := u.Rule(Setup{Rate: s.ArchRate, Total: s.Epochs, Settings: s})
		theta, slots := in[:1], []*Node(nil)
		for range rule.Slots {
			slots = append(slots, ZerosLike(theta[0]))
		}
		var out []*Node
		for i, grad := range in[1:] {
			theta, slots = rule.Step("update", bilevel.Move{
				Params: theta, Grads: []*Node{grad}, Slots: slots, Done: Const(grad.Graph(), float64(i)),
			})
			out = append(append(out, theta...), slots...)
		}
		return out
	}
}

// probeSettings differ in all that a rule may read, and in no round numbers.
var probeSettings = []Settings{
	{
		Epochs: 5, ArchRate: 0.13, ArchBeta1: 0.37, ArchBeta2: 0.91, ArchEpsilon: 1e-3, ArchWeightDecay: 0.021,
		EntropyWeight: 0.17, TauFirst: 7.1, TauLast: 0.23, GradientClip: 0.83, LearningRate: 0.029, Momentum: 0.71,
	},
	{
		Epochs: 400, ArchRate: 1.7, ArchBeta1: 0.83, ArchBeta2: 0.997, ArchEpsilon: 1e-5, ArchWeightDecay: 0.3,
		EntropyWeight: 0.01, TauFirst: 3.3, TauLast: 1.1, GradientClip: 2.9, LearningRate: 0.31, Momentum: 0.13,
	},
}

// probeMoves are blocks of three and four options, each with three gradients of both signs and several sizes.
func probeMoves(u Update) [][]any {
	blocks := [][][]float64{{{0.2, 0.5, 0.3}, {0.98, 0.015, 0.005}}, {{0.25, 0.25, 0.25, 0.25}}}
	if u.Moves == Logits {
		blocks = [][][]float64{{{0.3, -1.2, 0.7}, {4, 0, -2}}, {{0, 1e-3, -2e-3, 5e-4}}}
	}
	grads := [][][][]float64{
		{{{0.4, -1.1, 0.05}, {2, 0, -0.3}}, {{-0.2, 0.6, 1.3}, {-1, 0.01, 7}}, {{0.9, -0.4, -0.8}, {0.5, 0.2, -6}}},
		{{{1, -2, 0.3, 0.07}}, {{-0.1, 0.4, -3, 0.2}}, {{0.6, -0.02, 0.8, -1}}},
	}
	var all [][]any
	for i, block := range blocks {
		inputs := []any{block}
		for _, grad := range grads[i] {
			if !u.PerExample {
				inputs = append(inputs, grad)
				continue
			}
			half := make([][]float64, len(grad))
			for r, row := range grad {
				for _, g := range row {
					half[r] = append(half[r], -0.3*g*g)
				}
			}
			inputs = append(inputs, [][][]float64{grad, half})
		}
		all = append(all, inputs)
	}
	return all
}
