// Package own names functions in the keys of trials. An entry that the project ships goes by its name. What a reader
// put into an exported map goes by what it computes: an edited body is another trial, a new name or layout is the same.
package own

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"github.com/gomlx/compute"
	_ "github.com/gomlx/compute/gobackend" // probes run on it: nothing is compiled
	. "github.com/gomlx/gomlx/core/graph"  // the formulas drown in graph. prefixes
	"github.com/gomlx/gomlx/core/tensors"
)

// Prefix begins the name of a reader's function in a key.
const Prefix = "own:"

// Same reports whether two functions are the same Go value: same code and captured variables. F is a function type.
func Same[F any](f, g F) bool {
	return *(*unsafe.Pointer)(unsafe.Pointer(&f)) == *(*unsafe.Pointer)(unsafe.Pointer(&g))
}

// Unknown is the error for a name that a map of entries does not have; where says where a reader can add one.
func Unknown[V any](what, name string, entries map[string]V, where string) error {
	known := strings.Join(slices.Sorted(maps.Keys(entries)), ", ")
	return fmt.Errorf("unknown %s %q: take one of %s, or add your own to %s", what, name, known, where)
}

// Entry names an entry of a map, called where, in a trial's key: by its name if it is the shipped function, else by
// what its probes compute.
func Entry[F any](what, name, where string, entries, shipped map[string]F, probes func(F) []Probe) (string, error) {
	f, ok := entries[name]
	if !ok {
		return "", Unknown(what, name, entries, where)
	}
	if Same(f, shipped[name]) {
		return name, nil
	}
	return Name(where+"[\""+name+"\"]", probes(f)...)
}

// Probe is a graph function with the inputs that tell it from others.
type Probe struct {
	Of     func(in []*Node) []*Node
	Inputs []any // tensors or Go values, float64
}

// Name is the name in a key of what some functions compute, "own:" and 16 digits: of all their outputs and, where they
// have one, the gradient of a weighted sum of these by every input, in nine digits, which tell sin(5z) from 5 sin z and
// leave out what processors round in their own ways. The functions are run on GoMLX's Go backend in milliseconds.
//
// A function that panics for some of the inputs, such as one that wants another shape, is known by the others. It
// returns an error if none can be run, and where a function gives other numbers when it is called again: it is random
// or has a state, so that no key could speak of it.
func Name(what string, probes ...Probe) (string, error) {
	first, err := probe(what, probes)
	if err != nil {
		return "", err
	}
	second, err := probe(what, probes)
	if err != nil {
		return "", err
	}
	if first != second {
		return "", fmt.Errorf(
			"%s gives other numbers when it is called again with the same ones: a trial with it could never be "+
				"known by what it computes; draw random numbers outside, or fix them in it", what)
	}
	return first, nil
}

// Text is the name in a key of something that is known by its text.
func Text(text string) string {
	sum := sha256.Sum256([]byte(text))
	return Prefix + hex.EncodeToString(sum[:8])
}

func probe(what string, probes []Probe) (string, error) {
	backend, err := goBackend()
	if err != nil {
		return "", fmt.Errorf("%s: %w", what, err)
	}
	text := ""
	var failed []error
	for _, f := range probes {
		values, err := f.run(backend)
		if err != nil {
			failed = append(failed, err)
			values = "none"
		}
		text += values + "\n"
	}
	if len(failed) == len(probes) {
		return "", fmt.Errorf("%s cannot be run to find out what it computes, so that no key can speak of it: %w", what,
			errors.Join(failed...))
	}
	return Text(text), nil
}

var goBackend = sync.OnceValues(func() (compute.Backend, error) { return compute.NewWithConfig("go") })

func (f Probe) run(backend compute.Backend) (string, error) {
	text, err := f.values(backend, true)
	if err != nil { // an operation on the way may have no gradient
		text, err = f.values(backend, false)
	}
	return text, err
}

func (f Probe) values(backend compute.Backend, gradients bool) (string, error) {
	out, err := ExecOnceN(backend, func(in []*Node) []*Node {
		defer panicWithError()
		out := f.Of(in)
		if gradients {
			out = append(out, slopes(out, in)...)
		}
		return out
	}, f.Inputs...)
	if err != nil {
		return "", err
	}
	text := ""
	for _, t := range out {
		text += digits(t)
	}
	return text, nil
}

// panicWithError turns panics into errors: GoMLX returns those, and keeps a lock after others.
func panicWithError() {
	switch cause := recover().(type) {
	case nil:
	case error:
		panic(cause)
	default:
		panic(fmt.Errorf("%v", cause))
	}
}

// slopes are gradients of a weighted sum of the outputs. The weights differ, because the outputs of softmax sum to 1.
func slopes(out, in []*Node) []*Node {
	var sum *Node
	for _, y := range out {
		weights := AddScalar(Sin(ConvertDType(Iota(y.Graph(), y.Shape(), -1), y.DType())), 1.5)
		if y.Rank() == 0 {
			weights = OnesLike(y)
		}
		part := ReduceAllSum(Mul(y, weights))
		if sum == nil {
			sum = part
		} else {
			sum = Add(sum, part)
		}
	}
	return Gradient(sum, in...)
}

func digits(t *tensors.Tensor) string {
	text := t.Shape().String()
	t.MustConstFlatData(func(flat any) {
		switch values := flat.(type) {
		case []float64:
			for _, v := range values {
				text += " " + nine(v)
			}
		default:
			text += fmt.Sprint(values)
		}
	})
	return text + ";"
}

// nine formats nine digits. Numbers of 1e-12 or less are rounding.
func nine(v float64) string {
	if math.Abs(v) < 1e-12 {
		v = 0
	}
	return strconv.FormatFloat(v, 'g', 9, 64)
}
