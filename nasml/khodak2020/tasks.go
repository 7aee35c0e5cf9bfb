package khodak2020

import (
	"context"
	"slices"

	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/khodak2020/internal/mapsearch"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/trial"
)

var taskTitles = map[string]string{mapsearch.ImageTask: "CIFAR-10", mapsearch.ReviewTask: "IMDb"}

// taskKinds are the code versions of the two tasks.
var taskKinds = map[string]*code.Kind{
	mapsearch.ImageTask:  code.Define("khodak2020/images", "khodak2020/internal/mapsearch"),
	mapsearch.ReviewTask: code.Define("khodak2020/reviews", "khodak2020/internal/mapsearch"),
}

// TaskParams are the parameters of the two tasks.
type TaskParams struct {
	// "cifar-10": ridge regression on random Fourier features; "imdb": a linear SVM on hashed n-grams
	Tasks   []string  `validate:"min=1,unique,dive,oneof=cifar-10 imdb"`
	Images  data.Name // of at most ten classes: cifar-10, or another or own set, or the synthetic stand-in
	Reviews data.Name `validate:"oneof=imdb synthetic"` // imdb, or the synthetic stand-in
	// Reading is "paper" or "code": what a search does where the two differ (see
	// halving.Rules), and of reviews the feature map, the tokenizers (the code has
	// NLTK's) and the loss of the baselines.
	Reading string `validate:"oneof=paper code"`

	// Examples of each split; 0: all there are. Training images are the first
	// ones, validation images those from 40,000 on.
	ImageTrain, ImageValid               int `validate:"gte=0"`
	ImageTest                            int `validate:"gte=0,lte=10000"` // 0: all there are
	ReviewTrain, ReviewValid, ReviewTest int `validate:"gte=0"`           // of each split; 0: all there are

	// Fresh are tasks in which every configuration has random features or a hash of its own
	Fresh  []string `validate:"unique,dive,oneof=cifar-10 imdb"`
	Lambda float64  `validate:"positive"` // λ of λ‖w‖² + Σℓ; the SVM has C = 1/(2λ)
	Tol    float64  `validate:"gte=0"`    // of LSQR; scikit-learn's was 1e-3 then and is 1e-4 now
	SVMTol float64  `validate:"positive"` // of the SVM
	Epochs int      `validate:"gte=1"`    // of the SVM at most
	KeepGB float64  `validate:"gte=0"`    // features kept in memory; what is larger is made again for every product

	Seeds      int     `validate:"gte=1"`
	Confidence float64 `validate:"gt=0.5,lt=1"`
	StoredOnly bool    // show what the run store has and compute nothing
}

// paperTasks are the settings of Appendix B.2; those of the solvers are the
// authors' code's, where the paper only names them.
var paperTasks = TaskParams{
	Tasks: []string{mapsearch.ImageTask, mapsearch.ReviewTask}, Images: data.CIFAR10, Reviews: data.IMDb,
	Reading: "paper", Lambda: 0.5, Tol: 1e-3, SVMTol: 1e-5, Epochs: 1000, KeepGB: 4, Seeds: 10, Confidence: 0.95,
}

// quickTasks have a tenth of the examples and a looser SVM.
var quickTasks = func() TaskParams {
	p := paperTasks
	p.ImageTrain, p.ImageValid, p.ImageTest = 4096, 2048, 1000
	p.ReviewTrain, p.ReviewValid, p.ReviewTest = 3000, 1500, 2000
	p.SVMTol, p.Epochs, p.Seeds, p.KeepGB = 1e-3, 100, 5, 1
	return p
}()

// rules reports an unknown image data set.
func (p TaskParams) rules(c *study.Checks) {
	known := data.Known()
	c.Expect(slices.Contains(known, p.Images), "Images must be one of %v, got %q", known, p.Images)
}

// setting is what a trial of a task depends on.
func (p TaskParams) setting(task string) mapsearch.Setting {
	s := mapsearch.Setting{
		Task: task, Reading: p.Reading, Fresh: slices.Contains(p.Fresh, task), Lambda: p.Lambda, Tol: p.Tol,
	}
	if task == mapsearch.ReviewTask {
		s.Tol, s.Epochs = p.SVMTol, p.Epochs
		if p.Reading == "code" {
			s.Tokenizer = "nltk"
		}
	}
	return s
}

// title is what a task is called: its data set, where that is another than the paper's.
func (p TaskParams) title(task string) string {
	if task == mapsearch.ImageTask && p.Images != data.CIFAR10 && p.Images != data.Synthetic {
		return string(p.Images)
	}
	return taskTitles[task]
}

// ofTask is a claim about a task, as one of n.
func (p TaskParams) ofTask(task string, c lab.Claim, n int) lab.Claim {
	c.Name = p.title(task) + ": " + c.Name
	return c.Family(n)
}

// taskClaim is a claim about a task: it is made of every task.
func taskClaim[P interface{ tasks() TaskParams }, T any](
	r *lab.Result[P, T], task, format string, args ...any,
) lab.Claim {
	p := r.Params.tasks()
	return p.ofTask(task, r.Claim(format, args...), len(p.Tasks))
}

func (p TaskParams) tasks() TaskParams { return p }

// taskTrial is a trial of a task.
type taskTrial interface {
	Run(ctx context.Context, data mapsearch.Data, seed uint64, step func(note string)) (trial.Result, error)
	Calls() int
}

// taskOf is the task of a group, which is its part and has a bench of its own.
func taskOf[T taskTrial](g lab.Group[T]) string { return g.Part }

// taskBench opens the examples of a task. Its trials run one after the other, so that their times can be compared:
// images on XLA, reviews in Go.
func taskBench[T taskTrial](ctx context.Context, p TaskParams, task string, label func(T) string) (
	lab.Bench[T], error,
) {
	e, err := p.open(ctx, task)
	if err != nil {
		return lab.Bench[T]{}, err
	}
	b := lab.Bench[T]{
		Study: study.Study{Code: taskKinds[task], Workers: 1},
		Data:  func(T) string { return e.fingerprint },
		Label: func(t T) string { return e.title() + ", " + label(t) },
		Units: func(t T) int { return t.Calls() },
		Run: func(ctx context.Context, t T, seed uint64, step study.Step) (trial.Result, error) {
			maps, err := e.load()
			if err != nil {
				return trial.Result{}, err
			}
			return t.Run(ctx, maps, seed, func(note string) { step(1, note) })
		},
		Facts: e,
		Close: e.close,
	}
	if task == mapsearch.ImageTask {
		b.Device = e.device
	}
	return b, nil
}

// examplesOf are the examples that a task was computed on.
func examplesOf[P, T any](r *lab.Result[P, T], task string) *examples {
	return r.Facts[task].(*examples)
}
