package search

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/bilevel"
	"github.com/nasml/lab/nasml/images"
)

// OneShotAsPaper returns the settings of a search on a space of NAS-Bench-1Shot1
// and CIFAR-10: those of Zela+ 2020, and of Li+ 2021, Appendix C.2, whose one
// setting of its own is the step size 0.1 of the GAEA methods. Searches are
// methods, and
//
//	pc-darts, gaea-pc-darts  with a quarter of the channels through the operations
//	darts-second-order       with the unrolled gradient of DARTS
//
// The published curves of Li+ 2021 have 50 epochs and no warm-up; so has this.
func OneShotAsPaper(search, space string) (Settings, error) {
	return oneShotPreset(search, space, func(*Settings) {})
}

// OneShotAsCode returns the settings that the authors' programs have
// (liamcli/nasbench-1shot1 at e369bd7 for GAEA, automl/nasbench-1shot1 at cb0f0ec
// for the others). GAEA's clamps θ, and moves it by gradients that nobody has
// cleared, those of ten epochs of warm-up before the first move in GAEA PC-DARTS.
func OneShotAsCode(search, space string) (Settings, error) {
	return oneShotPreset(search, space, func(s *Settings) {
		switch search {
		case "gaea-pc-darts":
			s.Bilevel, s.Update = bilevel.AsCode["gaea-1shot1"], "eg-clamp-normalize"
		case "gaea-darts": // another program of the same repository, without warm-up
			s.Bilevel, s.Update = bilevel.AsCode["gaea-1shot1"], "eg-clamp-normalize"
			s.Bilevel.Warmup = 0
		case "darts-second-order":
			s.Bilevel.Hypergradient = "finite-difference"
		}
		if !strings.HasPrefix(search, "gaea-") {
			s.AddInput = true
		}
	})
}

// OneShotAsQuick returns settings that two cores can run in some seconds: the
// paper's with 3 cells, 8 channels in the first and 16×16 images.
func OneShotAsQuick(search, space string) (Settings, error) {
	return oneShotPreset(search, space, func(s *Settings) {
		s.Channels, s.Cells, s.Image, s.Batch, s.Epochs = 8, 3, 16, 32, 25
		s.Bilevel.KeepLast, s.EvaluateEvery = false, 0
		if s.Candidates > 0 {
			s.Candidates, s.CandidateBatch = 100, 256
		}
	})
}

// oneShotPreset are the paper's settings with a change.
func oneShotPreset(search, space string, change func(*Settings)) (Settings, error) {
	make, ok := oneShotSettings[search]
	if !ok {
		return Settings{}, fmt.Errorf("no settings are listed for the search %q on NAS-Bench-1Shot1, only for %s: fill "+
			"in search.Settings", search, strings.Join(slices.Sorted(maps.Keys(oneShotSettings)), ", "))
	}
	s := make()
	s.Space = space
	change(&s)
	return s, nil
}

// oneShotOf are the weights' settings of Zela+ 2020, and the images'.
func oneShotOf(method string) Settings {
	return Settings{
		Method: method, Channels: 16, Cells: 9, Image: 32,
		Epochs: 50, Batch: 96, LearningRate: 0.025, LearningRateMin: 0.001, Momentum: 0.9, WeightDecay: 3e-4,
		Bilevel: bilevel.AsCode["1shot1"],
		Split:   "ordered", Augment: images.Augments["darts"], EvaluateEvery: 0,
	}
}

// eg is the architecture's update of Li+ 2021.
func eg(s Settings) Settings {
	s.Start, s.ArchRate = "uniform", 0.1
	return s
}

func partial(s Settings) Settings {
	s.Partial = 4
	return s
}

var oneShotSettings = map[string]func() Settings{
	"darts":         func() Settings { return adam(oneShotOf("darts")) },
	"gaea-darts":    func() Settings { return eg(oneShotOf("gaea-darts")) },
	"pc-darts":      func() Settings { return partial(adam(oneShotOf("darts"))) },
	"gaea-pc-darts": func() Settings { return partial(eg(oneShotOf("gaea-darts"))) },
	"darts-second-order": func() Settings {
		return with(adam(oneShotOf("darts")), func(s *Settings) { s.Bilevel.Hypergradient = "unrolled" })
	},
	// Every row of θ is sampled, and for a whole pass; their program samples
	// operations only, each cell by itself.
	"gdas": func() Settings {
		return with(adam(oneShotOf("gdas")), func(s *Settings) { s.TauFirst, s.TauLast = 10, 1 })
	},
	// Their program ranks 1,000 architectures on ten batches after every epoch, and
	// the best five on all images.
	"rsps": func() Settings {
		return with(oneShotOf("rsps"), func(s *Settings) {
			noArchitecture(s)
			s.Batch, s.Bilevel.Clip = 64, 0.25
			s.Candidates, s.CandidateBatch = 1000, 640
		})
	},
}
