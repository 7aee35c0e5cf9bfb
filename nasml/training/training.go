// Package training trains one network of a search space from scratch, as the architectures that a search has found are
// evaluated: DARTS' way (Liu+ 2019, Section 3.2 and 3.3), that of PC-DARTS and of Li+ 2021, Appendix C.1.2.
package training

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"

	"github.com/nasml/lab/nasml/backend"
	"github.com/nasml/lab/nasml/bilevel"
	"github.com/nasml/lab/nasml/internal/differ"
	"github.com/nasml/lab/nasml/internal/images"
	"github.com/nasml/lab/nasml/supernet"
)

// Curve is what a training records.
type Curve struct {
	// Of the passes of an epoch themselves, augmented and with drop path: [Epochs].
	TrainLoss  []float64 `json:"train_loss"`  // with the auxiliary head's
	TrainError []float64 `json:"train_error"` // share of wrong answers

	// On the test images after Evaluated epochs.
	Evaluated []float64 `json:"evaluated"`
	TestLoss  []float64 `json:"test_loss"`  // mean cross entropy
	TestError []float64 `json:"test_error"` // share of wrong answers
	TestTop5  []float64 `json:"test_top5"`  // share of labels that are not among the five largest logits
}

// Options are how a training is watched and kept. The zero value does neither.
type Options struct {
	// Load and Save are those of a runs.Job: the state that was saved last, or
	// an error that is fs.ErrNotExist, and a function that keeps it.
	Load func() (io.ReadCloser, error)
	Save func(write func(io.Writer) error) error
	// SaveEvery is the time between two saves; 0: a minute.
	SaveEvery time.Duration
	// Observe is called after every step. The curve must not be changed or kept.
	Observe func(Snapshot)
}

// Snapshot is where a training stands.
type Snapshot struct {
	Epoch, Epochs int // epochs done, and all
	Step, Steps   int // of the epoch under way
	Curve         *Curve
	Loss          float64 // of the last step
}

// Trainer trains networks of one genotype with the same settings on the same examples.
type Trainer struct {
	Step
	backend     compute.Backend
	train, test images.Examples
	steps       int // of an epoch
	trainer     *Exec
	tester      *Exec
	foreseen    func() // ends the loading of programs of the cache
}

// New prepares trainings, which compile once for all seeds. The last batch of an
// epoch is smaller where the examples do not divide evenly, and compiles again.
//
// It returns an error if settings are invalid or if genotype or images do not
// fit them, and where training and test examples differ in their classes.
func New(b compute.Backend, s Settings, g supernet.Genotype, train, test images.Examples) (*Trainer, error) {
	if err := s.Check(); err != nil {
		return nil, fmt.Errorf("training: %w", err)
	}
	if train.Classes() != test.Classes() || train.Len() < 2 || test.Len() < 1 {
		return nil, fmt.Errorf("training: %d examples of %d classes and %d test examples of %d classes: expected at "+
			"least two, at least one, and as many classes", train.Len(), train.Classes(), test.Len(), test.Classes())
	}
	net, err := s.Network(g, train.Classes())
	if err != nil {
		return nil, fmt.Errorf("training: %w", err)
	}
	t := &Trainer{Step: Step{s, net}, backend: b, train: train, test: test, foreseen: backend.Foresee(b, []any{s, g})}
	if t.steps = (train.Len() + s.Batch - 1) / s.Batch; train.Len()%s.Batch == 1 {
		t.steps-- // batch norm needs two
	}
	if t.trainer, err = NewExec(b, t.reported); err == nil {
		t.tester, err = NewExec(b, func(in []*Node) []*Node { return []*Node{t.score(in[0], in[1], in[2:])} })
	}
	if err != nil {
		t.Close()
		return nil, fmt.Errorf("training: building the graphs: %w", err)
	}
	return t, nil
}

// Close frees what was compiled.
func (t *Trainer) Close() {
	for _, exec := range []*Exec{t.trainer, t.tester} {
		if exec != nil {
			exec.Finalize()
		}
	}
	t.foreseen()
}

// Train trains one network from its start, or from where Options.Load left it, to its end. The same seed gives the same
// curve, however often the training was interrupted.
//
// It returns an error if ctx ends, which is looked at after every step and test batch, and where a loss or a weight is
// not finite: what was saved last stays as it is, and the error says at which step that was and what to change.
func (t *Trainer) Train(ctx context.Context, seed uint64, o Options) (*Curve, error) {
	r := t.start(seed, o)
	defer r.free()
	if err := r.loop.Resume(); err != nil {
		return nil, fmt.Errorf("training, seed %d: %w", seed, err)
	}
	if err := r.loop.Run(ctx); err != nil {
		return nil, fmt.Errorf("training, seed %d, %w", seed, err)
	}
	return &r.at.Curve, nil
}

// InMemory are a set's images for training and another's for testing, augmented as the settings say, and fitted to
// their size, see [images.Images.Fit]. It is an error if that does not lead there, or where a test image has a class
// that training has not.
func (s Settings) InMemory(train, test *images.Images) (trained, tested images.Examples, err error) {
	own, err := train.Fit(s.Image)
	if err != nil {
		return nil, nil, fmt.Errorf("training: %w", err)
	}
	others, err := test.Fit(s.Image)
	if err != nil {
		return nil, nil, fmt.Errorf("training: %w", err)
	}
	a, b := own.Augmented(s.Augment), others.Augmented(s.Augment.Plain())
	for label := range test.Counts() {
		if int(label) >= a.Most {
			return nil, nil, fmt.Errorf("training: a test image of %s has label %d, training images have 0 to %d",
				test.Name, label, a.Most-1)
		}
	}
	b.Most = a.Most
	return a, b, nil
}

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

// AsPaper are the settings of Li+ 2021 by data set: CIFAR-10's of Appendix C.1.2, and ImageNet's of Section 4.2, "the
// same settings as" Xu+ 2020, without label smoothing, which the captions of Tables 1 and 5 rule out.
//
// The paper does not say how weights start and images are augmented: as in DARTS' code.
var AsPaper = map[string]Settings{
	"cifar-10": {
		Stem: "cifar", Channels: 36, Cells: 20, Image: 32, Auxiliary: 0.4, DropPath: 0.3,
		Epochs: 600, Batch: 128, LearningRate: 0.025, Schedule: "cosine", Momentum: 0.9, WeightDecay: 3e-4, Clip: 5,
		EvaluateEvery: 1, Augment: cutout,
	},
	"imagenet": mobile(0),
}

// AsCode are those of the code. CIFAR-10: liamcli/gaea_release@1604615, configs/cnn/mode/eval.yaml. ImageNet:
// yuhuixu1993/PC-DARTS@b74702f, train_imagenet.py, with the auxiliary head of Li+'s own model.py. "cifar-10/darts" and
// "imagenet/darts" are quark0/darts@f276dd3, train.py and train_imagenet.py.
var AsCode = map[string]Settings{
	"cifar-10":       with(AsPaper["cifar-10"], func(s *Settings) { s.Batch, s.DropPath = 96, 0.2 }),
	"cifar-10/darts": with(AsPaper["cifar-10"], func(s *Settings) { s.Batch, s.DropPath = 96, 0.2 }),
	"imagenet":       with(mobile(0.1), func(s *Settings) { s.AuxiliaryBN = true }),
	"imagenet/darts": with(mobile(0.1), func(s *Settings) {
		s.Batch, s.LearningRate, s.Schedule, s.Decay, s.WarmUp = 128, 0.1, "exponential", 0.97, 0
	}),
}

// AsQuick are settings that two cores can train in minutes, by data set: small networks of few cells on small images,
// without the auxiliary head, which these have no room for. Everything else is as in the paper.
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
// The second is that of PC-DARTS on ImageNet (train_imagenet.py:186-194), the third DARTS'. PC-DARTS' CIFAR-10 cosine,
// under PyTorch from 1.1 on, is one epoch ahead of this one.
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

// Check returns every invalid setting. Whether images are large enough is [supernet.NewDerived]'s to say.
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

// Network is the network of a genotype in these settings. It returns the errors of [supernet.NewDerived].
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
