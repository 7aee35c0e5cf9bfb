package search

import (
	"github.com/nasml/lab/nasml/bilevel"
	"github.com/nasml/lab/nasml/internal/images"
)

// This file has the settings on spaces of cells with two inputs, above all DARTS', and CIFAR-10.

// dartsCells is Liu+ 2019, Section 3.1.1 and Appendix A.1.1.
func dartsCells() Settings {
	return adam(Settings{
		Method:   "darts",
		Channels: 16, Cells: 8, Image: 32,
		Epochs: 50, Batch: 64, LearningRate: 0.025, LearningRateMin: 0.001, Momentum: 0.9, WeightDecay: 3e-4,
		Bilevel: bilevel.AsCode["darts"],
		Split:   "ordered", Augment: images.Augments["darts"], EvaluateEvery: 5,
	})
}

// partial adds the supernet and the training of PC-DARTS (Xu+ 2020, Section 4.2): a larger batch and rate, and a
// warm-up of 15 epochs.
func partial(s Settings) Settings {
	s.Partial, s.EdgeWeights = 4, true
	s.Batch, s.LearningRate, s.LearningRateMin = 256, 0.1, 0
	s.Bilevel = bilevel.AsCode["pc-darts"]
	return s
}

// simplices adds GAEA's architecture (Li+ 2021, Appendix C.1.1): θ on simplices, moved by EG with η = 0.1 on operations
// and edges, without weight decay.
func simplices(method string, s Settings) Settings {
	s.Method, s.Start, s.ArchRate = method, "uniform", 0.1
	s.ArchBeta1, s.ArchBeta2, s.ArchWeightDecay = 0, 0, 0
	return s
}

// cellsPaper: second-order DARTS is Bilevel.Hypergradient "unrolled", and ERM is Bilevel.Level "erm". Li+ 2021 have no
// GAEA DARTS on this space: it is DARTS with their architecture.
var cellsPaper = map[string]func() Settings{
	"darts":      dartsCells,
	"gaea-darts": func() Settings { return simplices("gaea-darts", dartsCells()) },
	"pc-darts": func() Settings {
		return with(partial(dartsCells()), func(s *Settings) { s.Method, s.ArchRate = "pc-darts", 6e-4 })
	},
	// "we train the shared-weights network for 10 epochs without performing any architecture updates"
	"gaea-pc-darts": func() Settings {
		return with(simplices("gaea-pc-darts", partial(dartsCells())), func(s *Settings) { s.Bilevel.Warmup = 10 })
	},
}

// cellsCode are the authors' programs: quark0/darts@f276dd3 for darts, liamcli/gaea_release@1604615 for the others. The
// latter has no warm-up, clamps θ of operations but not of edges, and evaluates the supernet after every epoch, for
// RuleAsCode. Its PC-DARTS has edges that weigh 1 and stay so (architect_darts.py:53-56), as in the curve of Figure 1
// (left). Second-order DARTS as in its code is bilevel.AsCode["darts-second-order"] with Running "inner".
var cellsCode = map[string]func() Settings{
	"darts": dartsCells,
	"gaea-darts": func() Settings {
		return with(cellsPaper["gaea-darts"](), func(s *Settings) {
			s.Update, s.EvaluateEvery = "eg-clamp-normalize", 1
		})
	},
	"pc-darts": func() Settings {
		return with(cellsPaper["pc-darts"](), func(s *Settings) {
			s.EdgeWeights, s.Bilevel.Warmup, s.EvaluateEvery = false, 0, 1
		})
	},
	"gaea-pc-darts": func() Settings {
		return with(cellsPaper["gaea-pc-darts"](), func(s *Settings) {
			s.Update, s.EdgeUpdate, s.Bilevel.Warmup, s.EvaluateEvery = "eg-clamp-normalize", "eg", 0, 1
		})
	},
}

// cellsQuick are the paper's with 8 channels, 3 cells (the first is a normal one), 8×8 images, batches of 16 and no
// warm-up, which would be all of a short search.
var cellsQuick = changed(cellsPaper, func(s *Settings) {
	s.Channels, s.Cells, s.Image = 8, 3, 8
	s.Epochs, s.Batch, s.EvaluateEvery = 10, 16, 1
	s.Bilevel.KeepLast, s.Bilevel.Warmup = false, 0
})

// ilsvrc is the number of ILSVRC-2012's training images.
const ilsvrc = 1281167

// imageNet adds the supernet and training with which Xu+ 2020 (Section 4.3) and Li+ 2021 (Section 4.2) search on
// ImageNet: a stem that halves images three times, half of the channels through the operations, a tenth of the training
// images for the weights and a fortieth for the architecture, which rests for 35 of 50 epochs. Their images are cropped
// and jittered photographs; here they are padded, cropped and flipped as CIFAR-10's.
func imageNet(s Settings) Settings {
	s.Stem, s.Image, s.Partial = "imagenet-search", 224, 2
	s.Batch, s.LearningRate, s.LearningRateMin, s.RateWarmup = 1024, 0.5, 0, 5
	s.Split, s.Parts = "random", Shares{Train: ilsvrc / 10, Validation: ilsvrc / 40}
	s.Bilevel = bilevel.AsCode["pc-darts-imagenet"]
	return s
}

// cellsImageNet are both papers' searches on ImageNet. The step size of EG is as on CIFAR-10; that of Adam is Xu+'s.
var cellsImageNet = map[string]func() Settings{
	"pc-darts": func() Settings {
		return with(imageNet(cellsPaper["pc-darts"]()), func(s *Settings) { s.ArchRate = 6e-3 })
	},
	"gaea-pc-darts": func() Settings { return imageNet(cellsPaper["gaea-pc-darts"]()) },
}

// cellsImageNetCode are the authors' programs (yuhuixu1993/PC-DARTS@b74702f, train_search_imagenet.py;
// liamcli/PC-DARTS@dc3cfe0, train_search_imagenet_edarts.py). The latter takes the weights' step first and leaves its
// gradient in the architecture's, whose first step has the sum of those of 35 epochs; it clamps θ of operations, not of
// edges.
var cellsImageNetCode = map[string]func() Settings{
	"pc-darts": func() Settings {
		return with(cellsImageNet["pc-darts"](), func(s *Settings) { s.Running = OperationsTwice })
	},
	"gaea-pc-darts": func() Settings {
		return with(cellsImageNet["gaea-pc-darts"](), func(s *Settings) {
			s.Update, s.EdgeUpdate, s.Bilevel = "eg-clamp-normalize", "eg", bilevel.AsCode["gaea-imagenet"]
			s.Running = OperationsTwice
		})
	},
}
