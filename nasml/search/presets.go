package search

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/bilevel"
	"github.com/nasml/lab/nasml/internal/images"
	"github.com/nasml/lab/nasml/supernet"
)

// AsPaper returns the settings of a method on NAS-Bench-201 and CIFAR-10 in the paper that reports it: Li+ 2021,
// Appendix C.3 and C.4, for darts, gaea-darts, gaea-gdas and xnas; Dong & Yang 2020 for the others. For ERM set
// Bilevel.Level to "erm". For second-order DARTS set Bilevel.Hypergradient to "finite-difference", which is what Liu+
// 2019 (eq. 8) and their code compute: bilevel.AsCode["darts-second-order"]. The exact gradient is "unrolled": the step
// of 0.01 along v/‖v‖ crosses kinks of ReLU, where the two differ by more than half of the gradient on a small network
// in float64.
func AsPaper(method string) (Settings, error) { return AsPaperOn(supernet.NASBench201.Name, method) }

// AsCode returns the settings of the authors' code (liamcli/gaea_release at 1604615 and D-X-Y/AutoDL-Projects at
// f46486e). Differences lists where they are not the paper's.
func AsCode(method string) (Settings, error) { return AsCodeOn(supernet.NASBench201.Name, method) }

// AsQuick returns settings that take two cores about a minute: the paper's with 8 channels, one cell a stage, 16×16
// images, batch statistics in cells and no operation "none".
func AsQuick(method string) (Settings, error) { return AsQuickOn(supernet.NASBench201.Name, method) }

// AsPaperOn is AsPaper on any space of a kind that Presets has.
func AsPaperOn(space, method string) (Settings, error) { return Preset(space, method, "paper") }

// AsCodeOn is AsCode on any space of a kind that Presets has.
func AsCodeOn(space, method string) (Settings, error) { return Preset(space, method, "code") }

// AsQuickOn is AsQuick on any space of a kind that Presets has; searches take two cores minutes. A custom method gets
// the settings of the listed one that it resembles most, in parameterization and passes.
func AsQuickOn(space, method string) (Settings, error) { return Preset(space, method, "quick") }

// Presets are settings by kind of space (a name of Kinds), scale ("paper", "code" or "quick"; of cells also "imagenet"
// and "imagenet-code") and method. The space itself is filled in.
var Presets = map[string]map[string]map[string]func() Settings{
	"nasbench201": {"paper": paperSettings, "code": codeSettings, "quick": quickSettings},
	"cells": {
		"paper": cellsPaper, "code": cellsCode, "quick": cellsQuick,
		"imagenet": cellsImageNet, "imagenet-code": cellsImageNetCode,
	},
	"oneshot": {"paper": oneShotPaper, "code": oneShotCode, "quick": oneShotQuick},
}

// Preset returns the settings of Presets for a method on a space. It returns an error if there are none.
func Preset(space, method, scale string) (Settings, error) {
	kind, _, err := Settings{Space: space}.kind()
	if err != nil {
		return Settings{}, err
	}
	of, ok := Presets[kind][scale]
	if !ok {
		return Settings{}, fmt.Errorf("there are no settings %q on the space %s, of the kind %s: take one of %s", scale,
			space, kind, strings.Join(slices.Sorted(maps.Keys(Presets[kind])), ", "))
	}
	make, ok := of[method]
	if !ok {
		if own, known := Methods[method]; known && !listed(method) {
			return ownPreset(space, kind, method, own, scale)
		}
		if like, known := of["darts"], Methods[method]; like != nil && known.Title != "" {
			s := like()
			s.Space = space
			if _, err := s.checkSpace(known, 10); err != nil { // no settings would help
				return Settings{}, err
			}
		}
		return Settings{}, fmt.Errorf("no settings are listed for the search method %q, only for %s: fill in "+
			"search.Settings", method, strings.Join(slices.Sorted(maps.Keys(of)), ", "))
	}
	s := make()
	s.Space = space
	return s, nil
}

// listed reports whether there are settings of a method on some kind of space.
func listed(method string) bool {
	for _, scales := range Presets {
		if scales["paper"][method] != nil {
			return true
		}
	}
	return false
}

// ownPreset are the settings of a custom method: those of the listed one that it resembles most, with its own update;
// the paper's instead of the code's, since no authors' code has it. If only it ranks candidates in the end, it ranks as
// many as SETN.
func ownPreset(space, kind, method string, own Method, scale string) (Settings, error) {
	if scale == "code" {
		scale = "paper"
	}
	of := Presets[kind][scale]
	s := of[resembling(of, own)]()
	s.Method, s.Space, s.Update = method, space, ""
	if own.Final != ByArgmax && s.Candidates == 0 {
		setn := Presets["nasbench201"][scale]["setn"]()
		s.Candidates, s.CandidateBatch = setn.Candidates, setn.CandidateBatch
	}
	if s.TauFirst == 0 && (own.Weights == Gumbel || own.Architecture == Gumbel) { // as GDAS
		s.TauFirst, s.TauLast = 10, 0.1
	}
	return s, nil
}

// resembling is the listed method with the same parameterization as m and, among those, the same pass for the weights,
// then for the architecture, then the same final rule and update; the first by name of equals.
func resembling(of map[string]func() Settings, m Method) string {
	best, most := "", -1
	for _, name := range slices.Sorted(maps.Keys(of)) {
		like, score := Methods[name], 0
		for _, same := range []bool{
			like.Hold == m.Hold, like.Weights == m.Weights, like.Architecture == m.Architecture,
			like.Final == m.Final, like.Update == m.Update,
		} {
			score *= 2
			if same {
				score++
			}
		}
		if score > most {
			best, most = name, score
		}
	}
	return best
}

// gaea is Li+ 2021, Appendix C.3. Momentum without Nesterov, the split and the augmentation are those of DARTS, on
// which its code is built.
func gaea(method string) Settings {
	return Settings{
		Method: method, Space: "nasbench201", Without: []string{"none"},
		Channels: 16, Cells: 5, Image: 32, TrackStats: true,
		Epochs: 25, Batch: 64, LearningRate: 0.025, LearningRateMin: 0.001, Momentum: 0.9, WeightDecay: 3e-4,
		Bilevel: bilevel.AsCode["gaea"],
		Start:   "uniform", ArchRate: 0.1,
		Split: "ordered", Augment: images.Augments["darts"], EvaluateEvery: 5,
	}
}

// adam adds the architecture's optimizer of DARTS (Liu+ 2019).
func adam(s Settings) Settings {
	s.Start, s.ArchRate = "normal", 3e-4
	darts := bilevel.DARTSAdam
	s.ArchBeta1, s.ArchBeta2, s.ArchWeightDecay = darts.Beta1, darts.Beta2, darts.WeightDecay
	return s
}

// autoDL is how the benchmark's authors ran weight-sharing methods. Their split is a fixed random one whose file is not
// public; here it depends on the seed. Batch norm evaluates by the batch in cells, else by running statistics (their
// BN=0).
func autoDL(method, program string) Settings {
	return adam(Settings{
		Method: method, Space: "nasbench201",
		Channels: 16, Cells: 5, Image: 32, TrackOutside: true,
		Epochs: 250, Batch: 64, LearningRate: 0.025, LearningRateMin: 0.001,
		Momentum: 0.9, Nesterov: true, WeightDecay: 5e-4,
		Bilevel: bilevel.AsCode[program],
		Split:   "random", Augment: images.Augments["autodl"], EvaluateEvery: 25,
	})
}

func with[S any](s S, change func(*S)) S {
	change(&s)
	return s
}

var paperSettings = map[string]func() Settings{
	"gaea-darts": func() Settings { return gaea("gaea-darts") },
	// "first-order DARTS with this modification": without none
	"darts": func() Settings { return adam(gaea("darts")) },
	"gaea-gdas": func() Settings {
		return with(gaea("gaea-gdas"), func(s *Settings) {
			s.Without, s.Epochs, s.TauFirst, s.TauLast = nil, 150, 10, 0.1
		})
	},
	// C.4 gives no settings: those of GAEA DARTS with Nayman+'s step size and L = 1. The published curves go beyond
	// epoch 56.
	"xnas": func() Settings {
		return with(gaea("xnas"), func(s *Settings) { s.ArchRate, s.GradientClip, s.Epochs = 0, 1, 60 })
	},
	"gdas": func() Settings {
		return with(autoDL("gdas", "autodl-gdas"), func(s *Settings) { s.TauFirst, s.TauLast = 10, 0.1 })
	},
	"setn": func() Settings {
		return with(autoDL("setn", "autodl-setn"), func(s *Settings) { s.Candidates, s.CandidateBatch = 100, 512 })
	},
	"rsps": func() Settings {
		return with(autoDL("rsps", "autodl-gdas"), func(s *Settings) {
			noArchitecture(s)
			s.Candidates, s.CandidateBatch = 100, 512
		})
	},
	"enas": func() Settings {
		return with(autoDL("enas", "autodl-gdas"), func(s *Settings) {
			noArchitecture(s)
			s.Batch, s.LearningRate, s.LearningRateMin, s.ScheduleEpochs = 128, 0.05, 0.0005, 10
			s.Candidates, s.CandidateBatch = 100, 512
			s.Control = ControllerSettings{Hidden: 32, Rate: 0.001, Steps: 50, Samples: 20, EntropyWeight: 1e-4,
				BaselineDecay: 0.99, Temperature: 5, Tanh: 2.5}
		})
	},
}

// noArchitecture clears what a method without θ does not read, so that it changes no key.
func noArchitecture(s *Settings) {
	s.Start, s.ArchRate, s.ArchBeta1, s.ArchBeta2, s.ArchWeightDecay = "", 0, 0, 0, 0
	s.Bilevel.ClipCovers = bilevel.ClipWeights
}

var codeSettings = map[string]func() Settings{
	"gaea-darts": func() Settings {
		return with(gaea("gaea-darts"), gaeaCode)
	},
	// The code's "fdarts": plain gradient descent on α.
	"darts": func() Settings {
		return with(adam(gaea("darts")), func(s *Settings) {
			gaeaCode(s)
			s.Update, s.ArchBeta1, s.ArchBeta2 = "sgd", 0, 0
		})
	},
	"gaea-gdas": func() Settings {
		return with(paperSettings["gaea-gdas"](), func(s *Settings) {
			s.Bilevel = bilevel.AsCode["gaea-nasbench201-gdas"]
			s.Update, s.ArchRate, s.EntropyWeight, s.TauFrom = "eg-normalize-clamp", 0.01, 0.01, 50
			s.EvaluateEvery = 1
		})
	},
	"gdas": paperSettings["gdas"],
	"setn": paperSettings["setn"],
	"rsps": paperSettings["rsps"],
	"enas": paperSettings["enas"],
}

// gaeaCode turns the paper's settings of GAEA into those of its code: 24 channels, a cosine over 50 epochs of which 25
// are run, a clamp, and the supernet evaluated after every epoch, for RuleAsCode.
func gaeaCode(s *Settings) {
	s.Bilevel = bilevel.AsCode["gaea-nasbench201"]
	s.Channels, s.ScheduleEpochs, s.EvaluateEvery = 24, 50, 1
	if s.Method == "gaea-darts" {
		s.Update = "eg-clamp-normalize"
	}
}

// AsBenchmark returns the settings by which Dong & Yang 2020 ran DARTS for the benchmark, with the operation "none";
// Li+ 2021 ran it again without (AsPaper).
func AsBenchmark() Settings {
	return with(autoDL("darts", "autodl-darts-v1"), func(s *Settings) { s.Epochs, s.EvaluateEvery = 50, 5 })
}

var quickSettings = changed(paperSettings, makeQuick)

func changed(presets map[string]func() Settings, change func(*Settings)) map[string]func() Settings {
	all := map[string]func() Settings{}
	for name, of := range presets {
		all[name] = func() Settings { return with(of(), change) }
	}
	return all
}

func makeQuick(s *Settings) {
	s.Without = []string{"none"}
	s.Channels, s.Cells, s.Image, s.TrackStats = 8, 1, 16, false
	s.Epochs, s.ScheduleEpochs, s.EvaluateEvery, s.TauFrom = 25, 0, 5, 0
	s.Bilevel.KeepLast, s.Bilevel.Warmup = false, 0
	s.Batch = 64
	if s.Candidates > 0 {
		s.Candidates, s.CandidateBatch = 100, 256
	}
	if s.Method == "enas" {
		s.ScheduleEpochs = 10
		s.Control.Steps, s.Control.Samples = 5, 10
	}
}

// From here on: settings on spaces of cells with two inputs, above all DARTS', and CIFAR-10.

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

// From here on: settings on the spaces of NAS-Bench-1Shot1 and CIFAR-10.

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
