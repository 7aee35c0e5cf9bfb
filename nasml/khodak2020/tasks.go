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
	"github.com/nasml/lab/nasml/study"
)

var taskTitles = map[string]string{mapsearch.ImageTask: "CIFAR-10", mapsearch.ReviewTask: "IMDb"}

// What computes the trials of the two tasks.
var taskKinds = map[string]*code.Kind{
	mapsearch.ImageTask:  code.Define("khodak2020/images", "khodak2020/internal/mapsearch"),
	mapsearch.ReviewTask: code.Define("khodak2020/reviews", "khodak2020/internal/mapsearch"),
}

// TaskParams are the parameters of the two tasks.
type TaskParams struct {
	Tasks   []string  // "cifar-10": ridge regression on random Fourier features; "imdb": a linear SVM on hashed n-grams
	Images  data.Name // of at most ten classes: cifar-10, or another or own set, or the synthetic stand-in
	Reviews data.Name // imdb, or the synthetic stand-in
	// Reading is "paper" or "code": what a search does where the two differ (see
	// halving.Rules), and of reviews the feature map, the tokenizers (the code has
	// NLTK's) and the loss of the baselines.
	Reading string

	// Examples of each split; 0: all there are. Training images are the first
	// ones, validation images those from 40,000 on.
	ImageTrain, ImageValid, ImageTest    int
	ReviewTrain, ReviewValid, ReviewTest int

	Fresh  []string // tasks in which every configuration has random features or a hash of its own
	Lambda float64  // λ of λ‖w‖² + Σℓ
	Tol    float64  // of LSQR; scikit-learn's was 1e-3 then and is 1e-4 now
	SVMTol float64  // of the SVM
	Epochs int      // of the SVM at most
	KeepGB float64  // features that are kept in memory; what is larger is made anew for every product

	Seeds      int
	Confidence float64
	StoredOnly bool // show what the run store has and compute nothing
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

// check notes what makes no sense.
func (p TaskParams) check(c *study.Checks) {
	study.Distinct(c, "Tasks", p.Tasks, 1)
	study.Distinct(c, "Fresh", p.Fresh, 0)
	for field, list := range map[string][]string{"Tasks": p.Tasks, "Fresh": p.Fresh} {
		for _, task := range list {
			c.OneOf(field, task, mapsearch.ImageTask, mapsearch.ReviewTask)
		}
	}
	known := data.Known()
	c.Expect(slices.Contains(known, p.Images), "Images is %q, want one of %v", p.Images, known)
	c.OneOf("Reviews", string(p.Reviews), string(data.IMDb), string(data.Synthetic))
	c.OneOf("Reading", p.Reading, "paper", "code")
	for field, v := range map[string]int{
		"ImageTrain": p.ImageTrain, "ImageValid": p.ImageValid, "ImageTest": p.ImageTest,
		"ReviewTrain": p.ReviewTrain, "ReviewValid": p.ReviewValid, "ReviewTest": p.ReviewTest,
	} {
		c.Expect(v >= 0, "%s is %d, want 0 (all) or more", field, v)
	}
	c.Expect(p.ImageTest <= testImages, "ImageTest is %d, there are %d test images: take fewer, or 0 for all",
		p.ImageTest, testImages)
	c.Expect(p.Lambda > 0 && !math.IsInf(p.Lambda, 1),
		"Lambda is %v, want more than 0: the SVM has C = 1/(2λ)", p.Lambda)
	c.Expect(p.Tol >= 0, "Tol is %v, want at least 0", p.Tol)
	c.Positive("SVMTol", p.SVMTol)
	c.AtLeast("Epochs", p.Epochs, 1)
	c.Expect(p.KeepGB >= 0, "KeepGB is %v, want at least 0", p.KeepGB)
	c.AtLeast("Seeds", p.Seeds, 1)
	c.Confidence(p.Confidence)
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

// examples are those of a task, of which only the facts need be there until a
// trial is computed.
type examples struct {
	params      TaskParams
	task        string
	fingerprint string // of training and test images, or of all reviews, and how many are used
	sizes       [3]int
	synthetic   bool
	engine      *features.Engine // of all trials, so that each shape is compiled once
	load        func() (mapsearch.Data, error)
}

// title is what a task is called: its data set, where that is another than the paper's.
func (p TaskParams) title(task string) string {
	if task == mapsearch.ImageTask && p.Images != data.CIFAR10 && p.Images != data.Synthetic {
		return string(p.Images)
	}
	return taskTitles[task]
}

func (e *examples) title() string { return e.params.title(e.task) }

// open finds out about the examples of a task.
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

// take says how many examples of each split are used, of so many. 0 stands for all.
func (e *examples) take(want, have [3]int) error {
	for s, n := range want {
		if n > have[s] {
			return catalog.Usagef("%d %s examples were asked for, there are %d: take fewer, or 0 for all",
				n, splitNames[s], have[s])
		}
		if e.sizes[s] = n; n == 0 {
			e.sizes[s] = have[s]
		}
	}
	return nil
}

// imageClasses is how many the task tells apart.
const imageClasses = 10

// testImages is how many there are in CIFAR-10's whole archive, and in the
// stand-in.
const testImages = 10000

// openTest finds the test images that are used: the first ones, so that trials
// are the same with the publisher's archive and with one that has the first
// 1,000 only. Where all were asked for, these are all that such an archive has.
// For a look at what is stored nothing is downloaded: without an archive it is
// read as with that one.
func (p TaskParams) openTest(ctx context.Context) (*data.Opened, error) {
	view := data.View{Name: p.Images, Split: data.Test, First: p.ImageTest}
	if p.StoredOnly && p.Images == data.CIFAR10 && p.ImageTest == 0 && missing(p.Images) {
		view.First = 1000
	}
	test, err := view.Open(ctx)
	if errors.Is(err, data.ErrIncomplete) && p.ImageTest == 0 {
		view.First = 1000
		return view.Open(ctx)
	}
	return test, err
}

// missing says that the files of a set are not in the folder of the data sets.
func missing(name data.Name) bool {
	files, err := data.Status(name)
	return err == nil && slices.ContainsFunc(files, func(f data.FileStatus) bool { return f.State == data.Missing })
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
	return func() (mapsearch.Data, error) {
		var splits [3]mapsearch.Images
		for s, part := range []struct {
			of   *data.Opened
			from int
		}{{all, 0}, {all, from}, {test, 0}} {
			im, err := part.of.Images(ctx)
			if err != nil {
				return nil, err
			}
			if most := slices.Max(im.Labels); most >= imageClasses {
				return nil, catalog.Usagef("Images is %s, which has class %d: want classes 0 to %d", p.Images, most,
					imageClasses-1)
			}
			splits[s].Labels = im.Labels[part.from : part.from+e.sizes[s]]
			splits[s].Pixels = func(i int) []uint8 { return im.Image(part.from + i) }
		}
		return mapsearch.NewImages(e.engine, splits, int64(p.KeepGB*(1<<30)))
	}, nil
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

// study computes trials of the task one after the other, so that their times can
// be compared: images on XLA, reviews in this machine's Go.
func (e *examples) study(id string) study.Study {
	s := study.Study{ID: id, Code: taskKinds[e.task],
		Shipped: shippedRecords, StoredOnly: e.params.StoredOnly, Workers: 1}
	if e.task == mapsearch.ImageTask {
		s.Device = e.device
	}
	return s
}

// device opens XLA.
func (e *examples) device() (name, device string, err error) {
	b, err := backend.Open()
	if err != nil {
		return "", "", err
	}
	if e.engine == nil {
		e.engine = features.NewEngine(b)
	}
	name, device = backend.Describe(b)
	return name, device, nil
}

// close frees what the trials were computed with.
func (e *examples) close() {
	if e.engine != nil {
		e.engine.Close()
	}
}

// paperSizes are the splits of Appendix B.2.
var paperSizes = map[string][3]int{
	mapsearch.ImageTask: {40000, 10000, 10000}, mapsearch.ReviewTask: {25000, 12500, 12500},
}

// caption says which examples a task has, and d where about says so, and what
// the paper has where that is more: examples, and the largest d.
func (e *examples) caption(about string, d, paperD int) string {
	text := fmt.Sprintf(" %s: %d training, %d validation, %d test examples",
		e.title(), e.sizes[0], e.sizes[1], e.sizes[2])
	switch {
	case e.synthetic:
		text += ", SYNTHETIC DATA, not the paper's"
	case e.title() != taskTitles[e.task]:
		text += ", not the paper's data"
	}
	text += about + "."
	var more []string
	for s, n := range paperSizes[e.task] {
		if e.sizes[s] < n {
			more = append(more, fmt.Sprintf("%d %s", n, splitNames[s]))
		}
	}
	if len(more) > 0 {
		more = []string{strings.Join(more, ", ") + " examples"}
	}
	if d < paperD {
		more = append(more, fmt.Sprintf("$d$ up to %d", paperD))
	}
	if len(more) > 0 {
		text += " The paper has " + strings.Join(more, ", ") + "."
	}
	return text
}
