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

func with(s Settings, change func(*Settings)) Settings {
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
