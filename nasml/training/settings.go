package training

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/nasml/lab/nasml/bilevel"
	"github.com/nasml/lab/nasml/internal/differ"
	"github.com/nasml/lab/nasml/internal/images"
	"github.com/nasml/lab/nasml/supernet"
)

// Settings are all that the training of a genotype's network depends on besides
// genotype, data and seed. They are JSON and part of a trial's key.
type Settings struct {
	// The network.
	Stem     string `json:"stem"`     // a name of supernet.Stems
	Channels int    `json:"channels"` // C of the first cells
	Cells    int    `json:"cells"`    // L
	Image    int    `json:"image"`    // side of the images, pixels

	Auxiliary   float64 `json:"auxiliary,omitempty"`    // weight of the auxiliary head's loss; 0: no head
	AuxiliaryBN bool    `json:"auxiliary_bn,omitempty"` // see supernet.DerivedConfig
	DropPath    float64 `json:"drop_path,omitempty"`    // probability p at the end: p·e/E in epoch e

	// The weights.
	Epochs          int     `json:"epochs"`
	Batch           int     `json:"batch"`
	LearningRate    float64 `json:"learning_rate"`               // η of the first epoch, but for a warm-up
	LearningRateMin float64 `json:"learning_rate_min,omitempty"` // at the end of the cosine
	Schedule        string  `json:"schedule"`                    // a name of Schedules
	Decay           float64 `json:"decay,omitempty"`             // factor an epoch, of "exponential"
	WarmUp          int     `json:"warm_up,omitempty"`           // epochs with η(e+1)/WarmUp instead
	Momentum        float64 `json:"momentum"`
	WeightDecay     float64 `json:"weight_decay"`
	Clip            float64 `json:"clip,omitempty"`      // largest norm of the gradient; 0: any
	Smoothing       float64 `json:"smoothing,omitempty"` // of labels: so much of each is spread over all classes

	EvaluateEvery int `json:"evaluate_every"` // epochs between two tests; 0: one at the end

	// The images: Augment for those in memory, Crop for those in files.
	Augment images.Augment `json:"augment,omitzero"`
	Crop    images.Crop    `json:"crop,omitzero"`
}

// AsPaper are the settings of Li+ 2021 by data set: CIFAR-10's of Appendix
// C.1.2, and ImageNet's of Section 4.2, "the same settings as" Xu+ 2020, without
// label smoothing, which the captions of Tables 1 and 5 rule out.
//
// The paper does not say how weights start and images are augmented: as in
// DARTS' code.
var AsPaper = map[string]Settings{
	"cifar-10": {
		Stem: "cifar", Channels: 36, Cells: 20, Image: 32, Auxiliary: 0.4, DropPath: 0.3,
		Epochs: 600, Batch: 128, LearningRate: 0.025, Schedule: "cosine", Momentum: 0.9, WeightDecay: 3e-4, Clip: 5,
		EvaluateEvery: 1, Augment: cutout,
	},
	"imagenet": mobile(0),
}

// AsCode are those of the code. CIFAR-10: liamcli/gaea_release@1604615,
// configs/cnn/mode/eval.yaml. ImageNet: yuhuixu1993/PC-DARTS@b74702f,
// train_imagenet.py, with the auxiliary head of Li+'s own model.py.
// "cifar-10/darts" and "imagenet/darts" are quark0/darts@f276dd3, train.py and
// train_imagenet.py.
var AsCode = map[string]Settings{
	"cifar-10":       with(AsPaper["cifar-10"], func(s *Settings) { s.Batch, s.DropPath = 96, 0.2 }),
	"cifar-10/darts": with(AsPaper["cifar-10"], func(s *Settings) { s.Batch, s.DropPath = 96, 0.2 }),
	"imagenet":       with(mobile(0.1), func(s *Settings) { s.AuxiliaryBN = true }),
	"imagenet/darts": with(mobile(0.1), func(s *Settings) {
		s.Batch, s.LearningRate, s.Schedule, s.Decay, s.WarmUp = 128, 0.1, "exponential", 0.97, 0
	}),
}

// AsQuick are settings that two cores can train in minutes, by data set: small
// networks of few cells on small images, without the auxiliary head, which these
// have no room for. Everything else is as in the paper.
var AsQuick = map[string]Settings{
	"cifar-10": with(AsPaper["cifar-10"], func(s *Settings) {
		s.Channels, s.Cells, s.Image, s.Auxiliary, s.Epochs, s.Batch = 8, 5, 16, 0, 10, 50
	}),
	"imagenet": with(AsPaper["imagenet"], func(s *Settings) {
		s.Channels, s.Cells, s.Image, s.Auxiliary, s.Epochs, s.Batch = 8, 4, 64, 0, 8, 16
		s.Crop.Resize = 72
	}),
}

var cutout = func() images.Augment {
	a := images.Augments["darts"]
	a.Cutout = 16
	return a
}()

// mobile is ImageNet in the mobile setting, as Xu+ 2020 train.
func mobile(smoothing float64) Settings {
	return Settings{
		Stem: "imagenet", Channels: 48, Cells: 14, Image: 224, Auxiliary: 0.4,
		Epochs: 250, Batch: 1024, LearningRate: 0.5, Schedule: "linear", WarmUp: 5, Momentum: 0.9, WeightDecay: 3e-5,
		Clip: 5, Smoothing: smoothing, EvaluateEvery: 1, Crop: images.ImageNetCrop,
	}
}

func with(s Settings, change func(*Settings)) Settings {
	change(&s)
	return s
}

// lastEpochs is how many epochs of "linear" end at the low rate.
const lastEpochs = 5

// Schedules are the learning rates η of epoch e = 0, 1, …, of E, by name:
//
//	cosine       min + (η − min)·(1 + cos(π·e/E))/2
//	linear       η(E − 5 − e)/(E − 5), and in the last five epochs η(E − e)/(5(E − 5))
//	exponential  η·Decayᵉ
//
// The second is that of PC-DARTS on ImageNet (train_imagenet.py:186-194), the
// third DARTS'. PC-DARTS' CIFAR-10 cosine, under PyTorch from 1.1 on, is one
// epoch ahead of this one.
var Schedules = map[string]func(s Settings, epoch int) float64{
	"cosine": func(s Settings, epoch int) float64 {
		return bilevel.Cosine(s.LearningRate, s.LearningRateMin, epoch, s.Epochs)
	},
	"linear": func(s Settings, epoch int) float64 {
		left, main := float64(s.Epochs-epoch), float64(s.Epochs-lastEpochs)
		if left > lastEpochs {
			return s.LearningRate * (left - lastEpochs) / main
		}
		return s.LearningRate * left / (main * lastEpochs)
	},
	"exponential": func(s Settings, epoch int) float64 {
		rate := s.LearningRate
		for range epoch {
			rate *= s.Decay
		}
		return rate
	},
}

// Rate is the learning rate of an epoch, counted from 0.
func (s Settings) Rate(epoch int) float64 {
	if epoch < s.WarmUp {
		return s.LearningRate * float64(epoch+1) / float64(s.WarmUp)
	}
	return Schedules[s.Schedule](s, epoch)
}

// Drop is the probability with which an example loses a path in an epoch.
func (s Settings) Drop(epoch int) float64 { return s.DropPath * float64(epoch) / float64(s.Epochs) }

// Check returns every invalid setting. Whether images are large enough
// is [supernet.NewDerived]'s to say.
func (s Settings) Check() error {
	var errs []error
	expect := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	_, ok := Schedules[s.Schedule]
	expect(ok, "Schedule must be one of %v, got %q", slices.Sorted(maps.Keys(Schedules)), s.Schedule)
	expect(s.Schedule != "linear" || s.Epochs > lastEpochs, "Epochs must be above %d for the linear schedule, got %d",
		lastEpochs, s.Epochs)
	expect(s.Schedule != "exponential" || s.Decay > 0 && s.Decay <= 1,
		"Decay must be above 0 and at most 1, got %v", s.Decay)
	expect(s.Epochs >= 1 && s.Batch >= 2, "Epochs must be at least 1 and Batch at least 2, got %d and %d: batch norm "+
		"needs two", s.Epochs, s.Batch)
	expect(s.LearningRate > 0 && s.LearningRateMin >= 0, "LearningRate must be above 0 and LearningRateMin at "+
		"least 0, got %v and %v", s.LearningRate, s.LearningRateMin)
	expect(s.Momentum >= 0 && s.Momentum < 1 && s.WeightDecay >= 0 && s.Clip >= 0 && s.Auxiliary >= 0,
		"Momentum must be at least 0 and below 1; WeightDecay, Clip and Auxiliary at least 0, got %v; %v, %v, %v",
		s.Momentum, s.WeightDecay, s.Clip, s.Auxiliary)
	expect(s.DropPath >= 0 && s.DropPath < 1 && s.Smoothing >= 0 && s.Smoothing < 1,
		"DropPath and Smoothing must be at least 0 and below 1, got %v and %v", s.DropPath, s.Smoothing)
	expect(s.EvaluateEvery >= 0 && s.WarmUp >= 0, "EvaluateEvery and WarmUp must be at least 0, got %d and %d",
		s.EvaluateEvery, s.WarmUp)
	return errors.Join(append(errs, s.Augment.Check(), s.Crop.Check())...)
}

// Network is the network of a genotype in these settings. It returns the errors
// of [supernet.NewDerived].
func (s Settings) Network(g supernet.Genotype, classes int) (*supernet.CellNet, error) {
	return supernet.NewDerived(supernet.DerivedConfig{
		Skeleton: supernet.Skeleton{
			Stem: s.Stem, Channels: s.Channels, Cells: s.Cells, Image: s.Image, Classes: classes,
		},
		Genotype: g, Auxiliary: s.Auxiliary > 0, AuxiliaryBN: s.AuxiliaryBN,
	})
}

// Differences lists the fields in which two settings differ, such as those of
// the paper and of the code: "batch: 128, 96".
func Differences(a, b Settings) []string { return differ.Fields(a, b) }
