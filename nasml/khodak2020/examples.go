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
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/features"
	"github.com/nasml/lab/nasml/khodak2020/internal/mapsearch"
)

// examples are those of a task. They are read when the first trial runs.
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

// open opens the examples of a task.
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

// imageClasses is the number of classes.
const imageClasses = 10

// openTest finds the test images that are used: the first ones, so that trials
// are the same with the publisher's archive and with one that has the first
// 1,000 only. Where all were asked for, these are all that such an archive has.
// For a look at what is stored nothing is downloaded: without an archive it is
// read as with that one.
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

// loadImages reads the images of the splits.
func (e *examples) loadImages(ctx context.Context, all, test *data.Opened) (mapsearch.Data, error) {
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
