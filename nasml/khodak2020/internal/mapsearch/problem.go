// Package mapsearch selects feature maps, as the experiments of Khodak+ 2020 do:
// ridge regression on random Fourier features of images, a linear SVM on hashed
// n-grams of reviews, weight sharing and the searches that it is compared with.
package mapsearch

import "context"

// The two tasks of the paper.
const (
	ImageTask  = "cifar-10"
	ReviewTask = "imdb"
)

// Setting is what a trial of a task depends on besides its search.
type Setting struct {
	Task    string  `json:"task"`
	Reading string  `json:"reading"`          // "paper" or "code"
	Fresh   bool    `json:"fresh"`            // every configuration has random features or a hash of its own
	Lambda  float64 `json:"lambda"`           // λ of λ‖w‖² + Σℓ
	Tol     float64 `json:"tol"`              // of the solver: LSQR or the SVM
	Epochs  int     `json:"epochs,omitempty"` // of the SVM at most
	// Tokenizer is the third one of reviews, which the two readings differ in;
	// empty: "treebank".
	Tokenizer string `json:"tokenizer,omitempty"`
}

// Data are the examples of a task, of which every trial makes a problem with
// its own pool of configurations.
type Data interface {
	problem(s Setting, configs int, seed uint64) problem
}

// split names the examples that something is done with.
type split int

const (
	trainSplit split = iota
	validSplit
	testSplit
)

// cost is what a step took: seconds of wall time, and multiply-adds of the
// products (features and solver), which do not depend on the machine.
type cost struct{ seconds, madds float64 }

func (c *cost) add(d cost) { c.seconds += d.seconds; c.madds += d.madds }

// problem is feature map selection on one data set, with a drawn pool of
// configurations.
type problem interface {
	// points are the examples of each split.
	points(s split) int
	// train fits one classifier on the training examples, example i under
	// configuration of[i] of the pool (one for all: a list of length 1), on d
	// features. The draws of the features are those of seed.
	train(ctx context.Context, of []int, d int, seed uint64, alone bool) (model, cost, error)
}

// model is a trained classifier.
type model interface {
	// values are the loss and the error (0 or 1) of every example of a split
	// under configuration of[i], or of[0] for all.
	values(ctx context.Context, s split, of []int) (losses, errs []float64, err error)
}

// mean is the mean of values; NaN if there are none.
func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}
