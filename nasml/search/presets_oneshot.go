package search

import (
	"github.com/nasml/lab/nasml/bilevel"
	"github.com/nasml/lab/nasml/internal/images"
)

// This file has the settings on the spaces of NAS-Bench-1Shot1 and CIFAR-10.

// oneShotTraining is Zela+ 2020's training of the shared weights, for as many epochs as in the published curves of Li+
// 2021.
func oneShotTraining(method string) Settings {
	return Settings{
		Method: method, Channels: 16, Cells: 9, Image: 32,
		Epochs: 50, Batch: 96, LearningRate: 0.025, LearningRateMin: 0.001, Momentum: 0.9, WeightDecay: 3e-4,
		Bilevel: bilevel.AsCode["1shot1"],
		Split:   "ordered", Augment: images.Augments["darts"],
	}
}

// partialNodes sends a quarter of a node's channels through the operations. Unlike partial it changes neither edges nor
// training.
func partialNodes(method string, s Settings) Settings {
	s.Method, s.Partial = method, 4
	return s
}

// oneShotPaper: Li+ 2021, Appendix C.2, has one setting of its own, the step size of EG, and mentions no warm-up; the
// published curves have none. Second-order DARTS is Bilevel.Hypergradient "unrolled".
var oneShotPaper = map[string]func() Settings{
	"darts":      func() Settings { return adam(oneShotTraining("darts")) },
	"gaea-darts": func() Settings { return simplices("gaea-darts", oneShotTraining("gaea-darts")) },
	"pc-darts":   func() Settings { return partialNodes("pc-darts", adam(oneShotTraining("pc-darts"))) },
	"gaea-pc-darts": func() Settings {
		return partialNodes("gaea-pc-darts", simplices("gaea-pc-darts", oneShotTraining("gaea-pc-darts")))
	},
	// All rows of θ are sampled, for a whole pass; their program samples those of operations, for each cell by itself.
	"gdas": func() Settings {
		return with(adam(oneShotTraining("gdas")), func(s *Settings) { s.TauFirst, s.TauLast = 10, 1 })
	},
	// Their program ranks 1,000 architectures on ten batches after every epoch, and the best five of them on all
	// images; here 1,000 are ranked once in the end.
	"rsps": func() Settings {
		return with(oneShotTraining("rsps"), func(s *Settings) {
			noArchitecture(s)
			s.Batch, s.Bilevel.Clip = 64, 0.25
			s.Candidates, s.CandidateBatch = 1000, 640
		})
	},
}

// oneShotCode are the authors' programs: liamcli/nasbench-1shot1@e369bd7 for GAEA and the PC-DARTS beside it,
// automl/nasbench-1shot1@cb0f0ec for the others, whose cells add their input. GAEA's clamps θ, moves it by stale
// gradients, and makes the validation pass twice; that of GAEA PC-DARTS warms up for ten epochs.
var oneShotCode = map[string]func() Settings{
	"darts":    func() Settings { return with(oneShotPaper["darts"](), addInput) },
	"pc-darts": oneShotPaper["pc-darts"],
	"gdas":     func() Settings { return with(oneShotPaper["gdas"](), addInput) },
	"rsps":     func() Settings { return with(oneShotPaper["rsps"](), addInput) },
	"gaea-darts": func() Settings {
		return with(oneShotPaper["gaea-darts"](), func(s *Settings) {
			s.Update, s.Bilevel, s.Running = "eg-clamp-normalize", bilevel.AsCode["gaea-1shot1"], OuterTwice
			s.Bilevel.Warmup = 0
		})
	},
	"gaea-pc-darts": func() Settings {
		return with(oneShotPaper["gaea-pc-darts"](), func(s *Settings) {
			s.Update, s.Bilevel, s.Running = "eg-clamp-normalize", bilevel.AsCode["gaea-1shot1"], OuterTwice
		})
	},
}

func addInput(s *Settings) { s.AddInput = true }

// oneShotQuick are the paper's with 3 cells of 8, 16 and 32 channels, 8×8 images and batches of 32.
var oneShotQuick = changed(oneShotPaper, func(s *Settings) {
	s.Channels, s.Cells, s.Image = 8, 3, 8
	s.Epochs, s.Batch, s.Bilevel.KeepLast = 25, 32, false
	if s.Candidates > 0 {
		s.Candidates, s.CandidateBatch = 100, 256
	}
})
