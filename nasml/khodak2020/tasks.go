package khodak2020

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/nasml/lab/nasml/backend"
	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/features"
	"github.com/nasml/lab/nasml/halving"
	"github.com/nasml/lab/nasml/runs"
)

// The two problems of the paper.
const (
	imageTask  = "cifar-10"
	reviewTask = "imdb"
)

var taskTitles = map[string]string{imageTask: "CIFAR-10", reviewTask: "IMDb"}

// TaskParams are the parameters of the two problems.
type TaskParams struct {
	Tasks   []string  // "cifar-10": ridge regression on random Fourier features; "imdb": a linear SVM on hashed n-grams
	Images  data.Name // cifar-10, or the synthetic stand-in
	Reviews data.Name // imdb, or the synthetic stand-in
	Reading string    // "paper" or "code": see halving.Rules, and reviewConfigs

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
	Tasks: []string{imageTask, reviewTask}, Images: data.CIFAR10, Reviews: data.IMDb, Reading: "paper",
	Lambda: 0.5, Tol: 1e-3, SVMTol: 1e-5, Epochs: 1000, KeepGB: 4, Seeds: 10, Confidence: 0.95,
}

// quickTasks have about a tenth of the examples and a looser SVM.
var quickTasks = func() TaskParams {
	p := paperTasks
	p.ImageTrain, p.ImageValid, p.ImageTest = 4096, 2048, 1000
	p.ReviewTrain, p.ReviewValid, p.ReviewTest = 3000, 1500, 2000
	p.SVMTol, p.Epochs, p.Seeds, p.KeepGB = 1e-3, 100, 5, 1
	return p
}()

// check is an error for the first parameter that makes no sense.
func (p TaskParams) check(c *checker) {
	known := []string{imageTask, reviewTask}
	c.expect(len(p.Tasks) > 0, "Tasks is empty, want some of %v", known)
	for name, list := range map[string][]string{"Tasks": p.Tasks, "Fresh": p.Fresh} {
		for i, task := range list {
			c.expect(slices.Contains(known, task) && !slices.Contains(list[:i], task), "%s has %q, want each of %v at most once", name, task, known)
		}
	}
	c.expect(p.Images == data.CIFAR10 || p.Images == data.Synthetic, "Images is %q, want %s or %s", p.Images, data.CIFAR10, data.Synthetic)
	c.expect(p.Reviews == data.IMDb || p.Reviews == data.Synthetic, "Reviews is %q, want %s or %s", p.Reviews, data.IMDb, data.Synthetic)
	c.expect(p.Reading == "paper" || p.Reading == "code", "Reading is %q, want paper or code", p.Reading)
	for name, v := range map[string]int{"ImageTrain": p.ImageTrain, "ImageValid": p.ImageValid, "ImageTest": p.ImageTest,
		"ReviewTrain": p.ReviewTrain, "ReviewValid": p.ReviewValid, "ReviewTest": p.ReviewTest} {
		c.expect(v >= 0, "%s is %d, want 0 (all) or more", name, v)
	}
	c.expect(p.Lambda > 0 && !math.IsInf(p.Lambda, 1), "Lambda is %v, want more than 0: the SVM has C = 1/(2λ)", p.Lambda)
	c.expect(p.Tol >= 0 && p.SVMTol > 0, "Tol is %v and SVMTol %v, want at least 0 and more than 0", p.Tol, p.SVMTol)
	c.expect(p.Epochs >= 1, "Epochs is %d, want at least 1", p.Epochs)
	c.expect(p.KeepGB >= 0, "KeepGB is %v, want at least 0", p.KeepGB)
	c.expect(p.Seeds >= 1, "Seeds is %d, want at least 1", p.Seeds)
	c.expect(p.Confidence > 0.5 && p.Confidence < 1, "Confidence is %v, want between 0.5 and 1, such as 0.95", p.Confidence)
}

// taskTrial is the part of the parameters that a trial of a task depends on.
type taskTrial struct {
	Task    string  `json:"task"`
	Reading string  `json:"reading"`
	Fresh   bool    `json:"fresh"`
	Lambda  float64 `json:"lambda"`
	Tol     float64 `json:"tol"`
	Epochs  int     `json:"epochs,omitempty"`
}

func (p TaskParams) trial(task string) taskTrial {
	t := taskTrial{Task: task, Reading: p.Reading, Fresh: slices.Contains(p.Fresh, task), Lambda: p.Lambda, Tol: p.Tol}
	if task == reviewTask {
		t.Tol, t.Epochs = p.SVMTol, p.Epochs
	}
	return t
}

//go:embed problem.go search.go
var searchSources embed.FS

var imageCode = sync.OnceValues(func() (string, error) {
	return runs.CodeVersion(searchSources, halving.Sources, features.LinearSources)
})

var reviewCode = sync.OnceValues(func() (string, error) {
	return runs.CodeVersion(searchSources, halving.Sources, features.TextSources, features.LinearSources)
})

// opened is a task with its examples, of which every trial makes a problem
// with its own pool of configurations.
type opened struct {
	params      TaskParams
	task        string
	fingerprint string
	sizes       [3]int
	synthetic   bool
	engine      *features.Engine // of all trials, so that each shape is compiled once
	images      *imageProblem    // with everything but configurations
	reviews     *reviewProblem   // likewise
}

// open loads the examples of a task.
func (p TaskParams) open(ctx context.Context, task string) (*opened, error) {
	o := &opened{params: p, task: task}
	var err error
	if task == imageTask {
		err = o.openImages(ctx)
	} else {
		err = o.openReviews(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", taskTitles[task], err)
	}
	return o, nil
}

// code is the version of what computes the task.
func (o *opened) code() (string, error) {
	if o.task == imageTask {
		return imageCode()
	}
	return reviewCode()
}

// validFrom is where the validation images begin (Appendix B.2.1).
const validFrom = 40000

// openImages cuts the splits: training images from the front, validation
// images from the last 10,000 of the training part, test images of what there
// is of the test part.
func (o *opened) openImages(ctx context.Context) error {
	p := o.params
	all, err := data.Load(ctx, p.Images, data.Train)
	if err != nil {
		return err
	}
	test, err := data.Load(ctx, p.Images, data.Test)
	if errors.Is(err, data.ErrIncomplete) {
		test, err = data.Load(ctx, p.Images, data.Test1000)
	}
	if err != nil {
		return err
	}
	from := min(validFrom, all.Len()*4/5)
	o.images = &imageProblem{ridge: features.RidgeParams{Lambda: p.Lambda, Solver: "lsqr", Tol: p.Tol}, keep: int64(p.KeepGB * (1 << 30))}
	for s, cut := range []struct {
		of             *data.Images
		from, to, most int
	}{{all, 0, from, p.ImageTrain}, {all, from, all.Len(), p.ImageValid}, {test, 0, test.Len(), p.ImageTest}} {
		n, err := howMany(split(s), cut.most, cut.to-cut.from)
		if err != nil {
			return err
		}
		o.sizes[s] = n
		o.images.tables[s], o.images.labels[s] = pixels(cut.of, cut.from, n)
	}
	o.synthetic = all.Synthetic
	o.fingerprint = fmt.Sprintf("%s+%s %v", all.Fingerprint, test.Fingerprint, o.sizes)
	o.images.targets = features.Targets(o.images.labels[trainSplit], 10)
	o.images.scaling, err = features.FitScaling(o.images.tables[trainSplit])
	return err
}

var splitNames = [3]string{"training", "validation", "test"}

// howMany is a number of examples of a split, 0 standing for all.
func howMany(s split, want, have int) (int, error) {
	if want > have {
		return 0, catalog.Usagef("%d %s examples were asked for, there are %d: take fewer, or 0 for all", want, splitNames[s], have)
	}
	if want == 0 {
		return have, nil
	}
	return want, nil
}

// pixels are n images in [0, 1], a row each, and their labels.
func pixels(im *data.Images, from, n int) (features.Table, []int) {
	size := im.Height * im.Width * im.Channels
	t := features.Table{Rows: n, Cols: size, Data: make([]float32, n*size)}
	labels := make([]int, n)
	for i := range n {
		labels[i] = int(im.Labels[from+i])
		for j, v := range im.Image(from + i) {
			t.Data[i*size+j] = float32(v) / 255
		}
	}
	return t, labels
}

// openReviews cuts the splits: training reviews of the training part, the
// first half of the shuffled test part for tests and the last for validation.
func (o *opened) openReviews(ctx context.Context) error {
	p := o.params
	parts, err := p.reviewParts(ctx)
	if err != nil {
		return err
	}
	o.reviews = &reviewProblem{reading: features.Reading(p.Reading)}
	var texts []string
	for s, want := range []int{p.ReviewTrain, p.ReviewValid, p.ReviewTest} {
		part := parts[s]
		n, err := howMany(split(s), want, part.Len())
		if err != nil {
			return err
		}
		if part, err = part.Select(spread(n, part.Len())); err != nil {
			return err
		}
		o.sizes[s] = n
		for i, text := range part.Texts {
			o.reviews.rows[s] = append(o.reviews.rows[s], len(texts))
			texts = append(texts, text)
			o.reviews.labels = append(o.reviews.labels, 2*int8(part.Labels[i])-1)
		}
		o.fingerprint += part.Fingerprint + " "
		o.synthetic = o.synthetic || part.Synthetic
	}
	o.fingerprint += fmt.Sprint(o.sizes)
	o.reviews.texts = features.NewTexts(texts)
	return nil
}

// spread are n of so many places, evenly spaced, even and odd ones in turns
// where there is room: so classes that stand together keep their shares, and
// classes that stand in turns do too.
func spread(n, of int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i * of / n
		if out[i]%2 != i%2 && out[i]+1 < (i+1)*of/n {
			out[i]++
		}
	}
	return out
}

// withLambda is the task with another λ.
func (o *opened) withLambda(lambda float64) *opened {
	q := *o
	q.params.Lambda = lambda
	return &q
}

// problem is a task with the pool of configurations of a seed.
func (o *opened) problem(configs int, seed uint64) problem {
	p := o.params
	fresh := slices.Contains(p.Fresh, o.task)
	if o.task == imageTask {
		q := *o.images
		q.engine, q.configs, q.fresh = o.engine, imageConfigs(configs, seed), fresh
		q.ridge.Lambda = p.Lambda
		return &q
	}
	q := *o.reviews
	q.configs = reviewConfigs(configs, seed, p.Reading, fresh)
	q.svm = features.SVMParams{C: 1 / (2 * p.Lambda), Loss: "hinge", Tol: p.SVMTol, MaxEpochs: p.Epochs}
	q.alone = q.svm
	if p.Reading == "code" { // what the baselines' LinearSVC defaults to
		q.alone.Loss, q.alone.Tol = "squared-hinge", max(1e-4, p.SVMTol)
	}
	return &q
}

// device opens what the task computes on: XLA for images, this machine's Go
// for reviews.
func (o *opened) device() (name, device string, err error) {
	if o.task == reviewTask {
		return "go", "cpu", nil
	}
	b, err := backend.Open()
	if err != nil {
		return "", "", err
	}
	if o.engine == nil {
		o.engine = features.NewEngine(b)
	}
	name, device = backend.Describe(b)
	return name, device, nil
}

// close frees what the trials were computed with.
func (o *opened) close() {
	if o.engine != nil {
		o.engine.Close()
	}
}

// sweepOf runs trials of a task one after the other, so that their times can
// be compared.
func (o *opened) sweepOf(title string, trials []runs.Trial, units int, run func(ctx context.Context, t runs.Trial, step func(string)) (runs.Result, error)) sweep {
	return sweep{title: title, trials: trials, workers: 1, storedOnly: o.params.StoredOnly, units: units, backend: o.device, run: run}
}

// sizesText says which examples a task had.
func (o *opened) sizesText() string {
	text := fmt.Sprintf("%s: %d training, %d validation, %d test examples", taskTitles[o.task], o.sizes[0], o.sizes[1], o.sizes[2])
	if o.synthetic {
		text += ", SYNTHETIC DATA, not the paper's"
	}
	return text
}

// paperSizes are the splits of Appendix B.2.
var paperSizes = map[string][3]int{imageTask: {40000, 10000, 10000}, reviewTask: {25000, 12500, 12500}}

// paperText says what the paper has where a setting has less: examples and
// the largest d.
func (p TaskParams) paperText(o *opened, d, paperD int) string {
	var other []string
	for s, n := range paperSizes[o.task] {
		if o.sizes[s] < n {
			other = append(other, fmt.Sprintf("%d %s", n, splitNames[s]))
		}
	}
	text := ""
	if len(other) > 0 {
		text = strings.Join(other, ", ") + " examples"
	}
	if d < paperD {
		if text != "" {
			text += ", "
		}
		text += fmt.Sprintf("$d$ up to %d", paperD)
	}
	if text == "" {
		return ""
	}
	return " The paper has " + text + "."
}

// reviewParts are the training, validation and test reviews.
func (p TaskParams) reviewParts(ctx context.Context) ([3]*data.Reviews, error) {
	train, valid, test, err := data.LoadReviewSplits(ctx, p.Reviews)
	return [3]*data.Reviews{train, valid, test}, err
}
