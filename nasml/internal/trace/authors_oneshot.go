package trace

import (
	"fmt"

	"github.com/nasml/lab/nasml/supernet"
)

// This file knows the traces of NAS-Bench-1Shot1: what tells its supernets
// apart, and the names of their architecture.

// oneShotSpaces are the spaces by the authors' numbers.
var oneShotSpaces = map[string]supernet.OneShot{"1": supernet.OneShot1, "2": supernet.OneShot2, "3": supernet.OneShot3}

// oneShot is the settings' supernet. The shapes of the first cell tell how cells join their input and how many channels
// the operations get.
func (t *Authors) oneShot() (supernet.Network, error) {
	s := t.Settings
	c := supernet.OneShotConfig{
		Skeleton: supernet.Skeleton{Channels: s.Channels, Cells: s.Layers, Image: s.Image, Classes: s.Classes},
		Space:    oneShotSpaces[string(s.Space)],
	}
	if c.Space.Ops == nil {
		return nil, fmt.Errorf("settings: space must be 1, 2 or 3 of NAS-Bench-1Shot1, got %s", s.Space)
	}
	nodes := len(c.Space.Parents)
	all := func([]int) bool { return true }
	width := t.channels("cells.0._input_projections.0.", all)
	c.AddInput = t.channels(fmt.Sprintf("cells.0._input_projections.%d.", nodes), all) > width
	if through := t.channels("cells.0._choice_blocks.0.", all); through > 0 {
		c.Partial = width / through
	}
	return supernet.NewOneShot(c)
}

func oneShotArchitecture(blocks int) []authorsParameter {
	out := []authorsParameter{{name: "alphas_mixed_op", blocks: []int{0}}, {name: "alphas_output", blocks: []int{1}}}
	for i := 2; i < blocks; i++ {
		out = append(out, authorsParameter{name: fmt.Sprintf("alphas_inputs.%d", i-2), blocks: []int{i}})
	}
	return out
}
