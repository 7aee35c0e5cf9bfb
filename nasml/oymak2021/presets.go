package oymak2021

import (
	"slices"

	"fmt"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/supernet"
)

func figure2Settings() []runs.Claim {
	const source = "Oymak+ 2021, Section 7a"
	p := Figure2Paper
	claims := []runs.Claim{
		verdict.Setting("[figure2-widths] widths of panel (a)", "Oymak+ 2021, Figure 2", p.Widths,
			[]int{64, 128, 256, 512, 1024, 2048, 4096}),
		verdict.Setting("[figure2-widths] widths of panel (b)", "Oymak+ 2021, Figure 2", p.DeepWidths,
			[]int{64, 128, 256, 512, 1024, 2048, 4096}),
		verdict.Setting("[figure2-dalpha] perturbations Δα", "Oymak+ 2021, Figure 2", p.DeltaAlphas,
			[]float64{0.005, 0.01, 0.03, 0.05, 0.07}),
		verdict.Setting("[figure2-activation] activations that are mixed", source, p.Activations,
			[2]string{"relu", "sigmoid"}),
		verdict.Setting("[figure2-data] images", source, p.Data, data.MNIST),
		verdict.Setting("[figure2-data] classes", source, p.Classes, [2]int{0, 1}),
		verdict.Setting("[figure2-epochs] epochs", source, p.Epochs, 60),
		verdict.Setting("[figure2-batch] batch", source, p.Batch, 128),
		verdict.Setting("[figure2-lr] optimizer", source, p.Optimizer, "sgd"),
		verdict.Setting("[figure2-lr] learning rate", source, p.LearningRate, 0.003),
		verdict.Setting("[figure2-reps] runs that are averaged, each at an α of its own", source, p.Seeds, 20),
	}
	const inputs = 28 * 28
	for _, k := range p.Widths {
		shallow, deep := p.network("a", k), p.network("b", k)
		claims = append(claims,
			verdict.Setting(fmt.Sprintf("[figure2a-net] trained weights of the input layer, k = %d", k), source,
				shallow.Weights(inputs), k*784),
			verdict.Setting(fmt.Sprintf("[figure2b-net] trained weights of layers of k, k/2, k/4 and 1, k = %d", k),
				source, deep.Weights(inputs), k*784+k/2*k+k/4*(k/2)+k/4))
	}
	return claims
}

func figure3Settings() []runs.Claim {
	const source = "Oymak+ 2021, Section 7b and Figure 3"
	p := Figure3Paper
	return []runs.Claim{
		verdict.Setting("[figure3-setup] training images", source, p.Train, 10000),
		verdict.Setting("[figure3-epochs] epochs", source, p.Epochs, 50),
		verdict.Setting("[figure3-ops] operations of an edge", source,
			supernet.CellSpaces[p.Space].Options(), 8),
		verdict.Setting("[figure3-runs] runs", source, p.Seeds, 5),
		verdict.Setting("[figure3-nv-range] fewest validation images", source, slices.Min(p.Validation), 20),
		verdict.Setting("[figure3-nv-range] most validation images", source, slices.Max(p.Validation), 1000),
	}
}
