package data

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/nasml/lab/internal/files"
)

// View is a part of a set of images that trials use.
type View struct {
	Name    Name
	Split   Split
	Classes []uint8 // only the images of these; none: of all
	First   int     // only the first so many; 0: all

	// OrShipped takes what is part of the project of the set where the publisher's
	// files can neither be found nor downloaded. Opened.Note then says so, which has to
	// be said beside whatever is made of it.
	OrShipped bool
}

// String names the view, "mnist train, classes [0 1], first 500".
func (v View) String() string {
	text := fmt.Sprintf("%s %s", v.Name, v.Split)
	if len(v.Classes) > 0 {
		text += fmt.Sprintf(", classes %v", v.Classes)
	}
	if v.First > 0 {
		text += fmt.Sprintf(", first %d", v.First)
	}
	return text
}

// Facts are what is known of examples without having them.
type Facts struct {
	Fingerprint string
	Len         int
	Synthetic   bool
}

// Opened is a view whose images are loaded only if needed: a figure of stored trials is drawn without its data.
type Opened struct {
	Facts
	Note   string // what has to be said about the images, see View.OrShipped; empty: nothing
	view   View
	lock   sync.Mutex
	images *Images // nil until they are asked for
}

// Open finds out about a view. Facts of what the project ships trials of are
// built in; for everything else the images are loaded, with [Load]'s errors.
func (v View) Open(ctx context.Context) (*Opened, error) {
	o := &Opened{view: v}
	if facts, known := knownViews[v.String()]; known {
		o.Facts = facts
		return o, nil
	}
	found, err := files.Remembered(v.archive(), v.String(), func() (opening, error) {
		im, err := o.Images(ctx)
		switch {
		case errors.Is(err, ErrIncomplete):
			return opening{Incomplete: err.Error()}, nil
		case err != nil:
			return opening{}, err
		}
		return opening{Facts: Facts{im.Fingerprint, im.Len(), im.Synthetic}}, nil
	})
	if err == nil && found.Incomplete != "" {
		err = incompleteError(found.Incomplete)
	}
	if err != nil {
		return nil, err
	}
	o.Facts = found.Facts
	return o, nil
}

// opening is what is remembered of an archive that a view was read from.
type opening struct {
	Facts
	Incomplete string // the error of an archive that lacks some of the images; empty: it has all
}

type incompleteError string

func (e incompleteError) Error() string { return string(e) }

// Is makes it the error that it was.
func (e incompleteError) Is(target error) bool { return target == ErrIncomplete }

// archive is the path of the one file that has the images; empty if it is missing, or if there are several.
func (v View) archive() string {
	l, err := open()
	if err != nil {
		return ""
	}
	if p := l.sets[v.Name][v.Split]; len(p.files) == 1 {
		return l.place(p.files[0])
	}
	return ""
}

// Images loads the view's images at the first call. It returns an error if they do not match the facts.
func (o *Opened) Images(ctx context.Context) (*Images, error) {
	o.lock.Lock()
	defer o.lock.Unlock()
	if o.images != nil {
		return o.images, nil
	}
	im, err := o.view.load(ctx)
	if err != nil {
		err = o.openShipped(err)
		return o.images, err
	}
	if o.Fingerprint != "" && im.Fingerprint != o.Fingerprint {
		files.Forget(o.view.archive(), o.view.String())
		return nil, fmt.Errorf("%v: found images with fingerprint %s, expected %s: they are not the publisher's",
			o.view, im.Fingerprint, o.Fingerprint)
	}
	o.images = im
	return im, nil
}

// load reads the images. Incomplete archives have CIFAR-10's first test images, too.
func (v View) load(ctx context.Context) (*Images, error) {
	im, err := Load(ctx, v.Name, v.Split)
	if errors.Is(err, ErrIncomplete) && v.Name == CIFAR10 && v.Split == Test && len(v.Classes) == 0 && v.First > 0 &&
		v.First <= 1000 {
		im, err = Load(ctx, v.Name, Test1000)
	}
	if err == nil && len(v.Classes) > 0 {
		im, err = im.Classes(v.Classes...)
	}
	if err == nil && v.First > 0 {
		im, err = im.Head(v.First)
	}
	return im, err
}

// ReviewView is how many reviews of each part of LoadReviewSplits are used; 0: all. See [Spread].
type ReviewView struct {
	Name               Name
	Train, Valid, Test int
}

func (v ReviewView) parts() [3]int { return [3]int{v.Train, v.Valid, v.Test} }

// OpenedReviews is a ReviewView of which only the facts need be there.
type OpenedReviews struct {
	Parts [3]Facts // training, validation, test
	view  ReviewView
	lock  sync.Mutex
	texts *[3]*Reviews // nil until they are asked for
}

// Open finds out about the view, as [View.Open] does.
func (v ReviewView) Open(ctx context.Context) (*OpenedReviews, error) {
	o := &OpenedReviews{view: v}
	known := 0
	for i, n := range v.parts() {
		if facts, ok := knownReviews[partName(v.Name, i, n)]; ok {
			o.Parts[i] = facts
			known++
		}
	}
	if known == len(o.Parts) {
		return o, nil
	}
	texts, err := o.Reviews(ctx)
	if err != nil {
		return nil, err
	}
	for i, part := range texts {
		o.Parts[i] = Facts{part.Fingerprint, part.Len(), part.Synthetic}
	}
	return o, nil
}

func partName(name Name, part, n int) string {
	return fmt.Sprintf("%s %s, %d", name, [3]string{"train", "valid", "test"}[part], n)
}

// Reviews loads the view's reviews at the first call. It returns an error if there are too few, or if they do not match
// the facts.
func (o *OpenedReviews) Reviews(ctx context.Context) ([3]*Reviews, error) {
	o.lock.Lock()
	defer o.lock.Unlock()
	if o.texts != nil {
		return *o.texts, nil
	}
	var parts [3]*Reviews
	var err error
	if parts[0], parts[1], parts[2], err = LoadReviewSplits(ctx, o.view.Name); err != nil {
		return parts, err
	}
	for i, n := range o.view.parts() {
		have := parts[i].Len()
		if n > have {
			return parts, fmt.Errorf("%s: %d reviews were asked for, there are %d: take fewer, or 0 for all",
				partName(o.view.Name, i, n), n, have)
		}
		if n == 0 {
			n = have
		}
		if parts[i], err = parts[i].Select(Spread(n, have)); err != nil {
			return parts, err
		}
		if want := o.Parts[i].Fingerprint; want != "" && parts[i].Fingerprint != want {
			return parts, fmt.Errorf("%s: found reviews with fingerprint %s, expected %s: they are not the publisher's",
				partName(o.view.Name, i, n), parts[i].Fingerprint, want)
		}
	}
	o.texts = &parts
	return parts, nil
}

// Spread returns n of so many places, evenly spaced, alternating even and odd ones if possible, so that sorted and
// alternating classes keep their shares.
func Spread(n, of int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i * of / n
		if out[i]%2 != i%2 && out[i]+1 < (i+1)*of/n {
			out[i]++
		}
	}
	return out
}
