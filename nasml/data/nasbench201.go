package data

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Ops201 are the operations of NAS-Bench-201 (Dong & Yang 2020, https://arxiv.org/abs/2001.00326) in the original's
// order. The digits of an Arch201 count them from 0.
var Ops201 = [5]string{"none", "skip_connect", "nor_conv_1x1", "nor_conv_3x3", "avg_pool_3x3"}

// edges201 are the edges in the original's order, with the text around an operation in an architecture string.
var edges201 = [6]struct{ name, before, after string }{
	{"1<-0", "|", "~0|"},
	{"2<-0", "+|", "~0|"}, {"2<-1", "", "~1|"},
	{"3<-0", "+|", "~0|"}, {"3<-1", "", "~1|"}, {"3<-2", "", "~2|"},
}

// Arch201 is an architecture of NAS-Bench-201: the operation, an index to Ops201, of each edge in the order 1<-0, 2<-0,
// 2<-1, 3<-0, 3<-1, 3<-2.
type Arch201 [6]uint8

// Archs201 is the number of architectures, 5⁶.
const Archs201 = 15625

// NewArch201 returns the architecture of six operations from 0 to 4, one for each edge.
func NewArch201(choice []int) (Arch201, error) {
	var a Arch201
	if len(choice) != len(a) {
		return a, fmt.Errorf("found %d operations %v, expected one for each of the %d edges of NAS-Bench-201",
			len(choice), choice, len(a))
	}
	for e, op := range choice {
		if op < 0 || op >= len(Ops201) {
			return a, fmt.Errorf("found operation %d on edge %s, expected 0 to %d: %s", op, edges201[e].name,
				len(Ops201)-1, strings.Join(Ops201[:], ", "))
		}
		a[e] = uint8(op)
	}
	return a, nil
}

// Arch201At is the inverse of Number. It panics if number is not in 0…15,624.
func Arch201At(number int) Arch201 {
	if number < 0 || number >= Archs201 {
		panic(fmt.Sprintf("data: found architecture number %d, expected 0 to %d", number, Archs201-1))
	}
	var a Arch201
	for e := len(a) - 1; e >= 0; e-- {
		a[e] = uint8(number % len(Ops201))
		number /= len(Ops201)
	}
	return a
}

// Number reads the architecture as a number to base 5, the first edge first: 0…15,624. It is not the original's index
// (NASBench201.Index).
func (a Arch201) Number() int {
	n := 0
	for _, op := range a {
		n = n*len(Ops201) + int(op)
	}
	return n
}

// Choice is the inverse of NewArch201.
func (a Arch201) Choice() []int {
	choice := make([]int, len(a))
	for e, op := range a {
		choice[e] = int(op)
	}
	return choice
}

// String prints the architecture as the original does, the operations into one
// node between bars and the nodes joined by "+":
//
//	|nor_conv_3x3~0|+|none~0|skip_connect~1|+|avg_pool_3x3~0|none~1|none~2|
func (a Arch201) String() string {
	text := make([]byte, 0, 96)
	for e, edge := range edges201 {
		op := fmt.Sprintf("?%d", a[e])
		if int(a[e]) < len(Ops201) {
			op = Ops201[a[e]]
		}
		text = append(append(append(text, edge.before...), op...), edge.after...)
	}
	return string(text)
}

// ParseArch201 is the inverse of String. It accepts no other form; the error says where the string departs from it.
func ParseArch201(s string) (Arch201, error) {
	var a Arch201
	rest := s
	for e, edge := range edges201 {
		op, tail, ok := cutOp(strings.TrimPrefix(rest, edge.before), edge.after)
		if !ok || !strings.HasPrefix(rest, edge.before) {
			return Arch201{}, fmt.Errorf("found architecture %q, expected at %q, for edge %s, %sOP%s with OP one of %s",
				s, rest, edge.name, edge.before, edge.after, strings.Join(Ops201[:], ", "))
		}
		a[e], rest = op, tail
	}
	if rest != "" {
		return Arch201{}, fmt.Errorf("found architecture %q, expected nothing after its six edges, where %q stands", s,
			rest)
	}
	return a, nil
}

func cutOp(s, after string) (op uint8, rest string, ok bool) {
	for i, name := range Ops201 {
		if tail, ok := strings.CutPrefix(s, name); ok {
			rest, ok = strings.CutPrefix(tail, after)
			return uint8(i), rest, ok
		}
	}
	return 0, s, false
}

// Task201 is what the networks of the table were trained on.
type Task201 string

// The trainings, by the original's names. TaskCIFAR10Valid and TaskCIFAR10 have the same test images and differ by
// several points of accuracy.
const (
	TaskCIFAR10Valid Task201 = "cifar10-valid"
	TaskCIFAR10      Task201 = "cifar10"        // all 50,000 training images; Test: the 10,000; no validation set
	TaskCIFAR100     Task201 = "cifar100"       // all 50,000; Valid and Test: 5,000 each of the test images
	TaskImageNet16   Task201 = "ImageNet16-120" // 151,700 images of 16×16; Valid and Test: 3,000 each
)

// Parts of the images beside Train and Test.
const (
	Valid     Split = "valid"
	ValidTest Split = "valid+test" // both together, where that is all a table has
)

// Release201 is a publication of the table. The two differ in about 2,400 architectures, which were retrained: do not
// mix them in a figure.
type Release201 string

// The releases. The 12-epoch accuracies are those of the first, version 1.1: two trials of TaskCIFAR10Valid, one of the
// others.
const (
	ReleaseNB201 Release201 = "NAS-Bench-201"
	ReleaseNATS  Release201 = "NATS-Bench"
)

// Mean is the Trial of a Query201 that asks for the mean over all trials.
const Mean = 0

// Query201 names one accuracy of an architecture. Only Trial has a default.
type Query201 struct {
	Task    Task201
	Split   Split
	Epochs  int // of the training: 12 or 200, each with its own cosine schedule down to zero
	Release Release201
	Trial   int // Mean, or 1, 2, 3: one trial, in the order of the file
}

// String says in words what is asked for.
func (q Query201) String() string {
	trial := "mean over trials"
	if q.Trial != Mean {
		trial = fmt.Sprintf("trial %d", q.Trial)
	}
	return fmt.Sprintf("%s %s after %d epochs (%s, %s)", q.Task, q.Split, q.Epochs, q.Release, trial)
}

// Reported201 are the accuracies that papers report: test images of CIFAR-10 (trained on all training images),
// CIFAR-100 and ImageNet16-120, 200 epochs, mean over trials, all of one release.
var Reported201 = [3]Query201{
	{TaskCIFAR10, Test, 200, ReleaseNATS, Mean},
	{TaskCIFAR100, Test, 200, ReleaseNATS, Mean},
	{TaskImageNet16, Test, 200, ReleaseNATS, Mean},
}

// NASBench201 is the benchmark's table: accuracies in percent and costs of all 15,625 architectures. It is immutable
// and safe for concurrent use.
type NASBench201 struct {
	Fingerprint string // SHA-256 of the uncompressed files: the same table has the same one

	path     string // of the file, for errors
	table    *table201
	archs    []Arch201 // by the original's index
	noTrials error     // why there are no single trials
}

// table201 is the content of the files, ordered by Number. Missing columns are empty.
type table201 struct {
	Queries  []Query201  // the accuracies, in the order of the files
	Accuracy [][]float64 // [len(Queries)], in percent; NaN: this architecture has no such trial
	Seconds  []float64   // of 200 epochs
	Params   []float64   // in millions
	IsoClass []float64
	Index    []float64 // of the original
}

// Arch returns the architecture of an original index, 0…15,624. It panics if there is none.
func (b *NASBench201) Arch(index int) Arch201 { return b.archs[index] }

// Index returns the original's index of the architecture, 0…15,624.
func (b *NASBench201) Index(a Arch201) int { return int(b.table.Index[a.Number()]) }

// Queries returns what the table has, in the order of its columns.
func (b *NASBench201) Queries() []Query201 { return slices.Clone(b.table.Queries) }

// Accuracy returns an accuracy in percent. If the table does not have it, the error lists what it has for the task, or
// how many trials.
func (b *NASBench201) Accuracy(a Arch201, q Query201) (float64, error) {
	column, err := b.find(q)
	if err != nil {
		return 0, err
	}
	if x := column[a.Number()]; !math.IsNaN(x) {
		return x, nil
	}
	return 0, fmt.Errorf("%s: found no %s of %s, expected fewer trials: ask for trial 1 or 2, or for the mean", b.path,
		q, a)
}

// Column returns an accuracy of every architecture, by Number. A missing trial is an error.
func (b *NASBench201) Column(q Query201) ([]float64, error) {
	column, err := b.find(q)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(column, math.IsNaN); i >= 0 {
		_, err := b.Accuracy(Arch201At(i), q)
		return nil, err
	}
	return slices.Clone(column), nil
}

func (b *NASBench201) find(q Query201) ([]float64, error) {
	i := slices.Index(b.table.Queries, q)
	switch {
	case i >= 0:
		return b.table.Accuracy[i], nil
	case q.Trial != Mean && b.noTrials != nil:
		return nil, fmt.Errorf("found no %s: %w", q, b.noTrials)
	}
	var has []string
	for _, other := range b.table.Queries {
		if other.Task == q.Task {
			has = append(has, other.String())
		}
	}
	if has == nil {
		return nil, fmt.Errorf("%s: found no task %q, expected one of %s, %s, %s, %s with numbers in this table",
			b.path, q.Task, TaskCIFAR10Valid, TaskCIFAR10, TaskCIFAR100, TaskImageNet16)
	}
	return nil, fmt.Errorf("%s: found no %s, expected one of: %s", b.path, q, strings.Join(has, "; "))
}

// EpochSeconds returns the time of one epoch on TaskCIFAR10Valid: a 200th of the table's time, measured by the
// benchmark's authors on one type of GPU.
func (b *NASBench201) EpochSeconds(a Arch201) (float64, error) {
	seconds, err := b.cost(a, b.table.Seconds, secondsColumn)
	return seconds / 200, err
}

// Searched returns what a search on TaskCIFAR10Valid asks for, by Number: validation accuracy after so many epochs,
// mean over trials, and the seconds of an epoch.
func (b *NASBench201) Searched(epochs int) (accuracy, epochSeconds []float64, err error) {
	q := Query201{Task: TaskCIFAR10Valid, Split: Valid, Epochs: epochs, Release: ReleaseNB201, Trial: Mean}
	if accuracy, err = b.Column(q); err != nil {
		return nil, nil, err
	}
	epochSeconds = make([]float64, Archs201)
	for n := range epochSeconds {
		if epochSeconds[n], err = b.EpochSeconds(Arch201At(n)); err != nil {
			return nil, nil, err
		}
	}
	return accuracy, epochSeconds, nil
}

// Number is that of an architecture, given by its operations (NewArch201).
func (b *NASBench201) Number(arch []int) (int, error) {
	a, err := NewArch201(arch)
	return a.Number(), err
}

// Params returns the weights of the network for CIFAR-10 (C = 16, N = 5), in millions.
func (b *NASBench201) Params(a Arch201) (float64, error) {
	return b.cost(a, b.table.Params, paramsColumn)
}

// IsoClass returns the class of architectures that compute the same function without dead edges.
func (b *NASBench201) IsoClass(a Arch201) (int, error) {
	class, err := b.cost(a, b.table.IsoClass, isoColumn)
	return int(class), err
}

func (b *NASBench201) cost(a Arch201, column []float64, name string) (float64, error) {
	if len(column) == 0 {
		return 0, fmt.Errorf("%s: found no column %s, expected it: take a table that has it", b.path, name)
	}
	return column[a.Number()], nil
}
