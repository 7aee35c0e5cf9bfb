// Package trial is what the arithmetic of one trial knows of the house around it: the random streams that its seed
// names, and the form of its result. What stores, schedules and draws stays outside, so that changing that leaves the
// version of the arithmetic as it is.
package trial

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
)

// Result is what the computation of one trial found. All numbers are finite.
type Result struct {
	Values map[string]float64   // numbers by name, "distance"
	Series map[string][]float64 // optional curves by name, "loss" (one value an epoch)
}

// Check is an error that names the first number that is not finite: a NaN in a
// mean would make the whole figure silently wrong.
func (r Result) Check() error {
	if len(r.Values) == 0 && len(r.Series) == 0 {
		return errors.New("result has neither values nor series")
	}
	for _, name := range slices.Sorted(maps.Keys(r.Values)) {
		if !finite(r.Values[name]) {
			return fmt.Errorf("value %q must be finite, got %v: the trial diverged or divides by zero", name,
				r.Values[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Series)) {
		if i := slices.IndexFunc(r.Series[name], func(x float64) bool { return !finite(x) }); i >= 0 {
			return fmt.Errorf(
				"series %q must be finite, got %v at position %d: the trial diverged or divides by zero", name,
				r.Series[name][i], i)
		}
	}
	return nil
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// Number is a float64 that may not apply: NaN is null in JSON and "–" in text.
type Number float64

// None is the number that does not apply.
var None = Number(math.NaN())

// Valid reports whether the number applies.
func (x Number) Valid() bool { return !math.IsNaN(float64(x)) }

// String is the number with four significant digits, or "–".
func (x Number) String() string {
	if !x.Valid() {
		return "–"
	}
	return strconv.FormatFloat(float64(x), 'g', 4, 64)
}

// MarshalJSON writes NaN as null. It returns an error if the number is infinite.
func (x Number) MarshalJSON() ([]byte, error) {
	if !x.Valid() {
		return []byte("null"), nil
	}
	return json.Marshal(float64(x))
}

// UnmarshalJSON reads null as [None].
func (x *Number) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*x = None
		return nil
	}
	return json.Unmarshal(data, (*float64)(x))
}

// Normals draws n independent normal numbers of mean 0 with a standard deviation.
func Normals(rng *rand.Rand, n int, std float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = std * rng.NormFloat64()
	}
	return out
}

// Signs draws n numbers that are −1 or 1, each with probability ½.
func Signs(rng *rand.Rand, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = float64(2*rng.IntN(2) - 1)
	}
	return out
}

// Indicator is 1 or 0.
func Indicator(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// Mean is the mean of the values, summed in their order; NaN if there are none.
func Mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// Indices are first, first+1, …, n of them.
func Indices(first, n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = first + i
	}
	return out
}

// At are the elements at some places.
func At[T any](all []T, places []int) []T {
	out := make([]T, len(places))
	for i, at := range places {
		out[i] = all[at]
	}
	return out
}

// Seeds returns the seeds 0, 1, …, n−1. Small seeds are as good as large ones
// here, because [Source] hashes them; n ≤ 0 gives none.
func Seeds(n int) []uint64 {
	seeds := make([]uint64, max(n, 0))
	for i := range seeds {
		seeds[i] = uint64(i)
	}
	return seeds
}

// Source returns the random stream of a seed that the parts name:
//
//	Source(seed, "init", "layer 1")
//	Source(seed, "batches")
//
// Streams of different seeds or parts are independent, so that adding one stream leaves all others as they were. The
// same call gives the same stream on every platform. MarshalBinary and UnmarshalBinary of the result are its state, for
// a checkpoint.
func Source(seed uint64, parts ...string) *rand.ChaCha8 {
	h := sha256.New()
	length := make([]byte, 8)
	write := func(n uint64) {
		binary.LittleEndian.PutUint64(length, n)
		h.Write(length)
	}
	write(seed)
	for _, part := range parts {
		write(uint64(len(part))) // ("ab", "c") is not ("a", "bc")
		h.Write([]byte(part))
	}
	return rand.NewChaCha8([32]byte(h.Sum(nil)))
}

// RNG returns a generator over [Source]. It keeps no state of its own: the state of its source is all of it.
func RNG(seed uint64, parts ...string) *rand.Rand {
	return rand.New(Source(seed, parts...))
}
