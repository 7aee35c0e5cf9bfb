package khodak2020

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/nasml/lab/nasml/backend"
	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/features"
	"github.com/nasml/lab/nasml/khodak2020/internal/mapsearch"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/trial"
)

var taskTitles = map[string]string{mapsearch.ImageTask: "CIFAR-10", mapsearch.ReviewTask: "IMDb"}

var taskCode = map[string]*code.Kind{
	mapsearch.ImageTask:  code.Define("khodak2020/images", "khodak2020/internal/mapsearch"),
	mapsearch.ReviewTask: code.Define("khodak2020/reviews", "khodak2020/internal/mapsearch"),
}

// TaskParams are the parameters of the two tasks.
type TaskParams struct {
	// "cifar-10": ridge regression on random Fourier features; "imdb": a linear SVM on hashed n-grams
	Tasks   []string  `validate:"min=1,unique,dive,oneof=cifar-10 imdb"`
	Images  data.Name // of at most ten classes: cifar-10, or another or own set, or the synthetic stand-in
	Reviews data.Name `validate:"oneof=imdb synthetic"` // imdb, or the synthetic stand-in
	// Reading is "paper" or "code": what a search does where the two differ (see halving.Rules), and of reviews the
	// feature map, the tokenizers (the code has NLTK's) and the loss of the baselines.
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

func (p TaskParams) rules(c *study.Checks) {
	known := data.Known()
	c.Expect(slices.Contains(known, p.Images), "Images must be one of %v, got %q", known, p.Images)
}

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
		Study:   study.Study{Code: taskCode[task], Workers: 1},
		Data:    func(T) string { return e.fingerprint },
		Label:   func(t T) string { return e.title() + ", " + label(t) },
		Units:   func(t T) int { return t.Calls() },
		Seconds: func(t T) float64 { return e.seconds(t) },
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
		b.Device = backend.Opener(1)
	}
	return b, nil
}

func examplesOf[P, T any](r *lab.Result[P, T], task string) *examples {
	return r.Facts[task].(*examples)
}

type examples struct {
	params      TaskParams
	task        string
	fingerprint string // of training and test images, or of all reviews, and how many are used
	sizes       [3]int
	synthetic   bool
	engine      *features.Engine // of all trials, so that each shape is compiled once
	load        func() (mapsearch.Data, error)
}

func (e *examples) title() string { return e.params.title(e.task) }

func (p TaskParams) open(ctx context.Context, task string) (*examples, error) {
	e := &examples{params: p, task: task}
	open := e.openReviews
	if task == mapsearch.ImageTask {
		open = e.openImages
	}
	load, err := open(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.title(task), err)
	}
	e.load = sync.OnceValues(load)
	return e, nil
}

var splitNames = [3]string{"training", "validation", "test"}

// take sets the number of examples of each split; 0 stands for all.
func (e *examples) take(want, have [3]int) error {
	for s, n := range want {
		if n > have[s] {
			return catalog.Usagef("%d %s examples requested, only %d available: use fewer, or 0 for all",
				n, splitNames[s], have[s])
		}
		if e.sizes[s] = n; n == 0 {
			e.sizes[s] = have[s]
		}
	}
	return nil
}

const imageClasses = 10

// openTest finds the test images that are used: the first ones, so that trials are the same with the publisher's
// archive and with one that has the first 1,000 only. Where all were asked for, these are all that such an archive has.
// For a look at what is stored nothing is downloaded: without an archive it is read as with that one.
func (p TaskParams) openTest(ctx context.Context) (*data.Opened, error) {
	view := data.View{Name: p.Images, Split: data.Test, First: p.ImageTest}
	if p.StoredOnly && p.Images == data.CIFAR10 && p.ImageTest == 0 && !data.Have(p.Images) {
		view.First = 1000
	}
	test, err := view.Open(ctx)
	if errors.Is(err, data.ErrIncomplete) && p.ImageTest == 0 {
		view.First = 1000
		return view.Open(ctx)
	}
	return test, err
}

// openImages cuts the splits: training images from the front, validation images
// from the last fifth of the training part, and test images.
func (e *examples) openImages(ctx context.Context) (load func() (mapsearch.Data, error), err error) {
	p := e.params
	all, err := data.View{Name: p.Images, Split: data.Train}.Open(ctx)
	if err != nil {
		return nil, err
	}
	test, err := p.openTest(ctx)
	if err != nil {
		return nil, err
	}
	from := mapsearch.ValidFrom(all.Len)
	err = e.take([3]int{p.ImageTrain, p.ImageValid, p.ImageTest}, [3]int{from, all.Len - from, test.Len})
	if err != nil {
		return nil, err
	}
	e.synthetic = all.Synthetic
	e.fingerprint = fmt.Sprintf("%s+%s %v", all.Fingerprint, test.Fingerprint, e.sizes)
	return func() (mapsearch.Data, error) { return e.loadImages(ctx, all, test) }, nil
}

func (e *examples) loadImages(ctx context.Context, all, test *data.Opened) (mapsearch.Data, error) {
	b, err := backend.Open()
	if err != nil {
		return nil, err
	}
	e.engine = features.NewEngine(b)
	var splits [3]mapsearch.Images
	from := mapsearch.ValidFrom(all.Len)
	for s, part := range []struct {
		of   *data.Opened
		from int
	}{{all, 0}, {all, from}, {test, 0}} {
		im, err := part.of.Images(ctx)
		if err != nil {
			return nil, err
		}
		if most := slices.Max(im.Labels); most >= imageClasses {
			return nil, catalog.Usagef("Images is %s, which has class %d: classes must be 0 to %d", e.params.Images,
				most, imageClasses-1)
		}
		splits[s].Labels = im.Labels[part.from : part.from+e.sizes[s]]
		splits[s].Pixels = func(i int) []uint8 { return im.Image(part.from + i) }
	}
	return mapsearch.NewImages(e.engine, splits, int64(e.params.KeepGB*(1<<30)))
}

// openReviews takes training reviews of the training part, the first half of the
// shuffled test part for tests and the last for validation.
func (e *examples) openReviews(ctx context.Context) (load func() (mapsearch.Data, error), err error) {
	p := e.params
	view := data.ReviewView{Name: p.Reviews, Train: p.ReviewTrain, Valid: p.ReviewValid, Test: p.ReviewTest}
	opened, err := view.Open(ctx)
	if err != nil {
		return nil, err
	}
	for s, part := range opened.Parts {
		e.sizes[s] = part.Len
		e.synthetic = e.synthetic || part.Synthetic
		e.fingerprint += part.Fingerprint + " "
	}
	e.fingerprint += fmt.Sprint(e.sizes)
	return func() (mapsearch.Data, error) {
		parts, err := opened.Reviews(ctx)
		if err != nil {
			return nil, err
		}
		var splits [3]mapsearch.Reviews
		for s, part := range parts {
			splits[s] = mapsearch.Reviews{Texts: part.Texts, Signs: part.Signs()}
		}
		return mapsearch.NewReviews(splits), nil
	}, nil
}

func (e *examples) close() {
	if e.engine != nil {
		e.engine.Close()
	}
}

// paperSizes are the splits of Appendix B.2.
var paperSizes = map[string][3]int{
	mapsearch.ImageTask: {40000, 10000, 10000}, mapsearch.ReviewTask: {25000, 12500, 12500},
}

// caption says which examples a task has, and d where about says so, and in brackets
// what the paper has where that is more: examples, and the largest d.
func (e *examples) caption(about string, d, paperD int) string {
	text := fmt.Sprintf("%s: %d training, %d validation, %d test examples",
		e.title(), e.sizes[0], e.sizes[1], e.sizes[2])
	switch {
	case e.synthetic:
		text += ", SYNTHETIC DATA, not the paper's"
	case e.title() != taskTitles[e.task]:
		text += ", not the paper's data"
	}
	if about != "" {
		text += ", " + about
	}
	var more []string
	for s, n := range paperSizes[e.task] {
		if e.sizes[s] < n {
			more = append(more, fmt.Sprintf("%d %s", n, splitNames[s]))
		}
	}
	if len(more) > 0 {
		more = []string{strings.Join(more, ", ")}
	}
	if d < paperD {
		more = append(more, fmt.Sprintf("$d$ up to %d", paperD))
	}
	if len(more) > 0 {
		text += " (paper: " + strings.Join(more, ", ") + ")"
	}
	return text
}

// classes of a task, which are about equally frequent.
var classes = map[string]float64{mapsearch.ImageTask: 10, mapsearch.ReviewTask: 2}

// chance is the accuracy up to which a map counts as guessing: that of guessing, 1/k,
// and four standard errors on n validation examples, 4·√((1/k)(1−1/k)/n).
func (e *examples) chance() float64 {
	guess := 1 / classes[e.task]
	return guess + 4*math.Sqrt(guess*(1-guess)/float64(e.sizes[1]))
}
