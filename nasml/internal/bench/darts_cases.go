package bench

import (
	"fmt"
	"slices"
)

// DartsCase is a network of cells with one type of step: bilevel search or training of a genotype.
type DartsCase struct {
	Name     string `json:"name"`
	Space    string `json:"space,omitempty"`    // of NAS-Bench-1Shot1, a name of supernet.OneShots; empty: DARTS'
	Genotype string `json:"genotype,omitempty"` // a name of supernet.Published; empty: a search
	Partial  int    `json:"partial"`            // K of PC-DARTS, whose edges have weights in DARTS' space; 1: DARTS
	Cells    int    `json:"cells"`
	Channels int    `json:"channels"`
	Image    int    `json:"image"`
	Batch    int    `json:"batch"`
	Steps    int    `json:"steps"`
	Double   bool   `json:"double"` // in float64

	// How the architecture moves.
	Update        string `json:"update,omitempty"`        // "eg": θ by exponentiated gradient; empty: logits by Adam
	ERM           bool   `json:"erm,omitempty"`           // on the batch of the weights, as on one level
	Hypergradient string `json:"hypergradient,omitempty"` // a name of bilevel.Hypergradients; empty: of first order

	// Forms are the peers' forms that are run; nil: all.
	Forms  []string `json:"-"`
	halved bool     // because peers could not run the larger one
}

// quarter has a quarter of the batch, and JAX.
func (c DartsCase) quarter() DartsCase {
	c.Batch, c.Forms = c.Batch/4, []string{"channels-last", "stock"}
	return c
}

func (c DartsCase) peers(all []program) []program {
	out := slices.Clone(all)
	for i, p := range out {
		out[i].forms = slices.DeleteFunc(slices.Clone(p.forms), func(form string) bool {
			return c.Forms != nil && !slices.Contains(c.Forms, form)
		})
	}
	return out
}

// dartsCompared are small cases of every kind, in float64.
var dartsCompared = []DartsCase{
	{Name: "DARTS", Partial: 1, Cells: 3, Channels: 4, Image: 8, Batch: 4, Steps: 2, Double: true},
	{Name: "PC-DARTS", Partial: 2, Cells: 3, Channels: 8, Image: 8, Batch: 4, Steps: 2, Double: true},
	{Name: "training", Genotype: "DARTS_V2", Partial: 1, Cells: 3, Channels: 4, Image: 8, Batch: 4, Steps: 2,
		Double: true},
	moved("GAEA DARTS", 1, DartsCase{Update: "eg"}),
	moved("GAEA DARTS (ERM)", 1, DartsCase{Update: "eg", ERM: true}),
	moved("GAEA PC-DARTS", 2, DartsCase{Update: "eg"}),
	moved("DARTS (2nd order)", 1, DartsCase{Hypergradient: "unrolled"}),
	moved("DARTS (2nd order by differences)", 1, DartsCase{Hypergradient: "finite-difference"}),
}

// moved is a small case of another architecture update: one reduction cell, which JAX compiles in minutes.
func moved(name string, partial int, c DartsCase) DartsCase {
	c.Name, c.Partial, c.Channels = name, partial, 4*partial
	c.Cells, c.Image, c.Batch, c.Steps, c.Double = 1, 8, 4, 2, true
	c.Forms = []string{"stock", "channels-last"}
	return c
}

// The timed cases. At the paper's size JAX needs 30 GB with shifted maps and over 18 GB with stock operations, so it
// runs at quick size, and at the paper's with a quarter of the batch.
var (
	dartsQuickSize    = DartsCase{Name: "DARTS", Partial: 1, Cells: 5, Channels: 8, Image: 16, Batch: 64, Steps: 2}
	dartsPartialQuick = DartsCase{Name: "PC-DARTS", Partial: 4, Cells: 5, Channels: 8, Image: 16, Batch: 256, Steps: 2,
		Forms: []string{"channels-last", "stock"}}
	dartsPaperSize = DartsCase{Name: "DARTS", Partial: 1, Cells: 8, Channels: 16, Image: 32, Batch: 64, Steps: 2,
		Forms: []string{"channels-last"}}
	dartsPartial = DartsCase{Name: "PC-DARTS", Partial: 4, Cells: 8, Channels: 16, Image: 32, Batch: 256, Steps: 2,
		Forms: []string{"channels-last"}}
	dartsTraining = DartsCase{Name: "training", Genotype: "DARTS_V2", Partial: 1, Cells: 8, Channels: 16, Image: 32,
		Batch: 96, Steps: 2, Forms: []string{"channels-last", "stock"}}
)

// oneShotForms are the peers' forms on NAS-Bench-1Shot1, without JAX's shifted pools: their float64 gradients differ
// from all others by 1e-9 to 1e-7, for unknown reasons.
var oneShotForms = []string{"stock", "channels-last", "contiguous"}

// oneShotCompared are small cases of every space of NAS-Bench-1Shot1, in float64.
var oneShotCompared = []DartsCase{
	{Name: "DARTS on S1", Space: "1shot1-s1", Partial: 1, Cells: 3, Channels: 4, Image: 8, Batch: 4, Steps: 2,
		Double: true, Forms: oneShotForms},
	{Name: "DARTS on S2", Space: "1shot1-s2", Partial: 1, Cells: 3, Channels: 4, Image: 8, Batch: 4, Steps: 2,
		Double: true, Forms: oneShotForms},
	{Name: "PC-DARTS on S3", Space: "1shot1-s3", Partial: 4, Cells: 3, Channels: 4, Image: 8, Batch: 4, Steps: 2,
		Double: true, Forms: oneShotForms},
}

// oneShotTimed is a bilevel DARTS step at the paper's size or that of quick scale.
func oneShotTimed(number int, quick bool) DartsCase {
	c := DartsCase{
		Name: fmt.Sprintf("DARTS on S%d", number), Space: fmt.Sprintf("1shot1-s%d", number), Partial: 1,
		Cells: 9, Channels: 16, Image: 32, Batch: 96, Steps: 1, Forms: oneShotForms,
	}
	if quick {
		c.Cells, c.Channels, c.Image, c.Batch, c.Steps = 3, 8, 8, 32, 2
	}
	return c
}

// OneShotFull and OneShotQuick are the same for NAS-Bench-1Shot1's supernets.
var (
	OneShotFull = DartsParams{
		Timing: Timing{Rounds: 5}, Compared: oneShotCompared,
		Timed: []DartsCase{oneShotTimed(1, true), oneShotTimed(1, false), oneShotTimed(2, false),
			oneShotTimed(3, false)},
	}
	OneShotQuick = DartsParams{
		Timing: Timing{Rounds: 3}, Compared: oneShotCompared[:1], Timed: []DartsCase{oneShotTimed(1, true)},
	}
)

// DartsFull is behind the README's claims. DartsQuick only shows that everything works.
var (
	DartsFull = DartsParams{
		Timing: Timing{Rounds: 5}, Compared: dartsCompared,
		Timed: []DartsCase{dartsQuickSize, dartsPartialQuick, dartsPaperSize, dartsPaperSize.quarter(), dartsPartial,
			dartsPartial.quarter(), dartsTraining},
	}
	DartsQuick = DartsParams{
		Timing: Timing{Rounds: 3}, Compared: dartsCompared[:1],
		Timed: []DartsCase{{Name: "DARTS", Partial: 1, Cells: 2, Channels: 4, Image: 8, Batch: 8, Steps: 2}},
	}
)

// String says what is computed.
func (c DartsCase) String() string {
	kind := "one bilevel step of " + c.Name
	if c.Genotype != "" {
		kind = "one step of training " + c.Genotype
	}
	if c.Partial > 1 {
		kind += fmt.Sprintf(", K = %d", c.Partial)
	}
	return fmt.Sprintf("%s: %d cells, C = %d, %d×%d, batch %d", kind, c.Cells, c.Channels, c.Image, c.Image, c.Batch)
}
