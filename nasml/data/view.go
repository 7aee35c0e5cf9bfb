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

	// OrShipped takes what is part of the project of the set where the publisher's files can neither be found nor
	// downloaded. Opened.Note then says so, which has to be said beside whatever is made of it.
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

// What trials that are shipped, and the quick presets, were computed with. A test with real data holds these to it;
// keys of stored trials depend on every digit.

var knownViews = map[string]Facts{
	"mnist train, classes [3 5]": {"2a9bd473c147d021938093ea6cb94ebc05607ebf6ca9c88ef4041cdbcf2d9d18", 11552, false},
	"mnist train, classes [0 1]": {"1e3031a9d767374b1f6227dd00722c57d2aa1d382414e09366d13b470b9b6848", 12665, false},
	"mnist train, classes [0 1], first 500": {
		"afc807c1758408b32df7789ce8df02fb13dec5458b1d369fbe97846c7100511a", 500, false,
	},
	"mnist test, classes [0 1]":   {"9a209e906eaa41a6f88349eedb4581602785bf3af1f5d190d93bd18a3b58d236", 2115, false},
	"cifar-10 train":              {"3ca63dc2270e708eb5bc776433c93c4c62e2bf6e9ff0728d6910e852b5bfb014", 50000, false},
	"cifar-10 train, first 10000": {"1b493db27e29d452755a9c634f26906e2afe9e5f7a21c2e1b1f0814a410a0fd5", 10000, false},
	"cifar-10 train, first 4000":  {"2de6530ebf757917d8ce6efb35c28f24ba31a04d79fe752f0e3a1da93675195e", 4000, false},
	"cifar-10 train, first 2000":  {"41d5d27c45b7a8f0de08188764efe1a65769c5cbcb8db3a4e18a97e27d0bdfaa", 2000, false},
	"cifar-10 train, first 1000":  {"29f2b08a7fc64d9f660386cbf0939f2c7f019d0e5673d956d952612e1f11adb2", 1000, false},
	"cifar-10 test, first 1000":   {"343727a0aaa1f290088a711206626af599f551e4fc4947ab8eeff2671421b2fd", 1000, false},
}

// NASBench201Fingerprint is that of the table that shipped trials used: nasbench201.csv and nats_per_trial_e200.csv.
const NASBench201Fingerprint = "5a4329bc38400ae25aadb62378e6ba455e6355e23a4137e0dd9bbf840e250c71"

// The fingerprints of the tables that shipped trials used: nb101_108_subset151644.csv, and weightsharing_proxy.csv,
// which names its cells.
const (
	NASBench101Fingerprint = "115037c49ca280b317023c8b245681d75bbbbfc16d54b323dd5d080cc672aa4d"
	Shared101Fingerprint   = "d94f41b3ca929445e93262fa7fb439190099f5cfa4db87e59022539f16d6bf53"
)

var knownReviews = map[string]Facts{
	"imdb train, 3000": {"16578b79f006c8ad2f8aa8a7706f3d738a0a0673f3c5b479baa93fc593169ee6", 3000, false},
	"imdb valid, 1500": {"2b4bcc8b6009cb83d5e3ae16f6e427a87e2d91c92f58f349f262bb4e7975faf1", 1500, false},
	"imdb test, 2000":  {"6b91494d21a17e8d6605ddeef758dbf6a440e1aeb04e6608fa3831aaf48a5091", 2000, false},
	"imdb train, 0":    {"7710877f738d98a29a9e9675072d72e47578ca13a966a9afdfa80355cfb517f1", 25000, false},
	"imdb valid, 0":    {"1b2b83f29ed3e0f1c22c8d3ac9723650db0203c57cfde131e1e30be3a2ae98fa", 12500, false},
	"imdb test, 0":     {"edba3c94796204fda8f3e3526ad6043d59a60d5b1562159cfc4dba1786b73fba", 12500, false},
}
