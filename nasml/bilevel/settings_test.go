package bilevel

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestTheCodesPassTheirCheck(t *testing.T) {
	for name, s := range AsCode {
		require.NoError(t, s.Check(), name)
		text, err := json.Marshal(s)
		require.NoError(t, err)
		var back Settings
		require.NoError(t, json.Unmarshal(text, &back))
		require.Equal(t, s, back, name)
	}
}

func TestCheckNamesTheFieldWhatItIsAndWhatItMayBe(t *testing.T) {
	for want, change := range map[string]func(s *Settings){
		`Level must be one of bilevel, erm`:                      func(s *Settings) { s.Level = "" },
		`Order must be one of architecture-first, weights-first`: func(s *Settings) { s.Order = "both" },
		`Pairing must be one of fresh-shuffle, without-replacement, with-replacement, got "same"`: func(s *Settings) {
			s.Pairing = Same
		},
		`Pairing must be one of fresh-shuffle, without-replacement, with-replacement, same`: func(s *Settings) {
			s.Level, s.Pairing = ERM, "x"
		},
		`Hypergradient must be one of cg, finite-difference, first-order`: func(s *Settings) {
			s.Hypergradient = "second"
		},
		`ClipCovers must be one of weights, weights+architecture`: func(s *Settings) { s.ClipCovers = "" },
		`ClipCovers without Clip must be`: func(s *Settings) {
			s.Clip, s.ClipCovers = 0, ClipWeightsAndArchitecture
		},
		`Uncleared must be false with ClipCovers weights+architecture`: func(s *Settings) {
			s.Uncleared, s.ClipCovers = true, ClipWeightsAndArchitecture
		},
		`Warmup must be a finite number, at least 0`:        func(s *Settings) { s.Warmup = -1 },
		`Clip must be a finite number, at least 0, got NaN`: func(s *Settings) { s.Clip = math.NaN() },
		`Clip must be a finite number, at least 0, got -5`:  func(s *Settings) { s.Clip = -5 },
		`Damping must be`:                          func(s *Settings) { s.Damping = math.Inf(1) },
		`Epsilon must be`:                          func(s *Settings) { s.Epsilon = -1 },
		`Terms must be at least 1`:                 func(s *Settings) { s.Hypergradient = "cg" },
		`cg and neumann, 0 for the others, got -2`: func(s *Settings) { s.Terms = -2 },
		`StepSize must be more than 0 for neumann`: func(s *Settings) {
			s.Hypergradient, s.Terms = "neumann", 3
		},
	} {
		s := AsCode["darts"]
		change(&s)
		require.ErrorContains(t, s.Check(), want)
	}
	err := Settings{}.Check()
	for _, field := range []string{"Level", "Order", "Pairing", "Hypergradient"} {
		require.ErrorContains(t, err, field, "all mistakes at once")
	}
}

func TestOwnHypergradientPassesTheCheck(t *testing.T) {
	Hypergradients["mine"] = FirstOrder
	defer delete(Hypergradients, "mine")
	s := AsCode["darts"]
	s.Hypergradient = "mine"
	require.NoError(t, s.Check())
}

func testRNG(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

func TestSplit(t *testing.T) {
	s := Settings{Level: Bilevel}
	train, validation, err := s.Split(5, 0.5, nil)
	require.NoError(t, err)
	require.Equal(t, [][]int{{0, 1}, {2, 3, 4}}, [][]int{train, validation}, "⌊n/2⌋ train, in order")

	a, b, err := s.Split(100, 0.8, testRNG(1))
	require.NoError(t, err)
	require.Len(t, a, 80)
	require.False(t, slices.IsSorted(a))
	all := slices.Sorted(slices.Values(slices.Concat(a, b)))
	require.Equal(t, all[99], 99)
	require.Len(t, slices.Compact(all), 100)
	again, _, err := s.Split(100, 0.8, testRNG(1))
	require.NoError(t, err)
	require.Equal(t, a, again)

	a, b, err = Settings{Level: ERM}.Split(3, 0.5, testRNG(1))
	require.NoError(t, err)
	require.Equal(t, [][]int{{0, 1, 2}, {0, 1, 2}}, [][]int{a, b}, "ERM has no split")

	for _, fraction := range []float64{0, 1, -0.5, math.NaN(), 0.1} {
		_, _, err := s.Split(5, fraction, nil)
		require.ErrorContains(t, err, "out of 5 examples", "fraction %v", fraction)
	}
	_, _, err = Settings{Level: ERM}.Split(0, 0.5, nil)
	require.ErrorContains(t, err, "at least 1 example, got 0")
}

func TestEpochDrawsWhatTheSettingsSay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pairings := []string{FreshShuffle, WithoutReplacement, WithReplacement, Same}
		s := Settings{Level: ERM, Pairing: rapid.SampledFrom(pairings).Draw(t, "pairing")}
		s.KeepLast = rapid.Bool().Draw(t, "keep last")
		batch := rapid.IntRange(1, 8).Draw(t, "batch")
		train := index(0, rapid.IntRange(batch, 40).Draw(t, "training examples"))
		validation := index(1000, rapid.IntRange(batch, 40).Draw(t, "validation examples"))
		seed := rapid.Uint64().Draw(t, "seed")
		e, err := s.Epoch(train, validation, batch, testRNG(seed))
		require.NoError(t, err)

		full := len(train) / batch
		steps := full
		if s.KeepLast && len(train)%batch > 0 {
			steps++
		}
		require.Len(t, e.Weights, steps)
		require.Len(t, e.Architecture, steps)
		seen := slices.Concat(e.Weights...)
		require.Equal(t, min(len(train), full*batch+(steps-full)*(len(train)%batch)), distinct(seen),
			"every example at most once")
		require.Len(t, seen, distinct(seen))
		for i, a := range e.Architecture {
			if i < full {
				require.Len(t, e.Weights[i], batch)
			}
			switch s.Pairing {
			case Same:
				require.Equal(t, e.Weights[i], a)
				continue
			case WithReplacement:
				require.Len(t, a, len(e.Weights[i]))
			case FreshShuffle:
				require.Len(t, a, batch)
				require.Equal(t, batch, distinct(a), "distinct within a step")
			case WithoutReplacement:
				if !s.KeepLast {
					require.Len(t, a, batch)
				}
			}
			require.GreaterOrEqual(t, slices.Min(a), 1000, "from the validation part")
		}
		if s.Pairing == WithoutReplacement {
			once := (len(validation) + batch - 1) / batch
			if !s.KeepLast {
				once = len(validation) / batch
			}
			pass := slices.Concat(e.Architecture[:min(once, steps)]...)
			require.Equal(t, len(pass), distinct(pass), "no example twice before the shuffle is used up")
		}
		again, err := s.Epoch(train, validation, batch, testRNG(seed))
		require.NoError(t, err)
		require.Equal(t, e, again, "a function of the generator")
		require.Equal(t, index(0, len(train)), train, "the parts stay as they are")
		require.Equal(t, index(1000, len(validation)), validation)
		s.Pairing = Same
		other, err := s.Epoch(train, validation, batch, testRNG(seed))
		require.NoError(t, err)
		require.Equal(t, e.Weights, other.Weights, "whatever the pairing")
	})
}

func index(from, n int) []int {
	x := make([]int, n)
	for i := range x {
		x[i] = from + i
	}
	return x
}

func distinct(x []int) int {
	return len(slices.Compact(slices.Sorted(slices.Values(x))))
}

// Each of 10 examples is in a batch of 4 with probability 0.4 (0.4 times on
// average where a batch may hold it twice), and first in it with 0.1.
func TestPairingsAreUniform(t *testing.T) {
	for _, pairing := range []string{FreshShuffle, WithoutReplacement, WithReplacement} {
		s := Settings{Level: Bilevel, Pairing: pairing}
		e, err := s.Epoch(index(0, 40000), index(0, 10), 4, testRNG(7))
		require.NoError(t, err)
		var count, first [10]float64
		twice, again := 0, 0.0
		for i, a := range e.Architecture {
			first[a[0]]++
			for _, x := range a {
				count[x]++
			}
			if distinct(a) < 4 {
				twice++
			}
			if i > 0 && pairing == FreshShuffle {
				again += float64(8 - distinct(slices.Concat(a, e.Architecture[i-1])))
			}
		}
		for i := range count {
			require.InDelta(t, 4000, count[i], 5*math.Sqrt(4000), "%s: example %d", pairing, i)
			require.InDelta(t, 1000, first[i], 5*math.Sqrt(1000), "%s: example %d is first", pairing, i)
		}
		if pairing == WithReplacement { // 1 − 10·9·8·7/10⁴
			require.InDelta(t, 4960, twice, 5*50)
		} else {
			require.Zero(t, twice)
		}
		if pairing == FreshShuffle { // what two steps have in common: 4·4/10, of variance 0.64
			require.InDelta(t, 1.6, again/9999, 5*0.008, "a step does not look at the one before")
		}
	}
}

func TestFreshShuffleRepeatsWithinAnEpochAndWithoutReplacementDoesNot(t *testing.T) {
	covered := func(pairing string) int {
		e, err := Settings{Level: Bilevel, Pairing: pairing}.Epoch(index(0, 1000), index(0, 1000), 10, testRNG(3))
		require.NoError(t, err)
		return distinct(slices.Concat(e.Architecture...))
	}
	require.Equal(t, 1000, covered(WithoutReplacement))
	require.InDelta(t, 1000*(1-math.Pow(0.99, 100)), covered(FreshShuffle), 60)
	require.InDelta(t, 1000*(1-math.Pow(0.999, 1000)), covered(WithReplacement), 60)
}

func TestStepsOfAnEpochAsInTheCodes(t *testing.T) {
	for name, want := range map[string]int{"gaea-nasbench201": 391, "gaea-nasbench201-erm": 782} {
		s := AsCode[name]
		train, validation, err := s.Split(50000, 0.5, nil)
		require.NoError(t, err)
		e, err := s.Epoch(train, validation, 64, testRNG(0))
		require.NoError(t, err)
		require.Len(t, e.Weights, want, name)
		s.KeepLast = false
		e, err = s.Epoch(train, validation, 64, testRNG(0))
		require.NoError(t, err)
		require.Len(t, e.Weights, want-1, name)
	}
}

func TestEpochRefusesWhatDoesNotFit(t *testing.T) {
	s := AsCode["darts"]
	s.KeepLast = false
	_, err := s.Epoch(index(0, 3), index(0, 9), 4, testRNG(0))
	require.ErrorContains(t, err, "the training part has 3 examples, which do not fill one batch of 4")
	_, err = s.Epoch(index(0, 9), index(0, 3), 4, testRNG(0))
	require.ErrorContains(t, err, "the validation part has 3 examples, which do not fill one batch of 4")
	_, err = s.Epoch(index(0, 9), index(0, 9), 0, testRNG(0))
	require.ErrorContains(t, err, "the batch size must be at least 1, got 0")
	_, err = s.Epoch(index(0, 9), index(0, 9), 4, nil)
	require.ErrorContains(t, err, "needs a random generator")
	s.KeepLast = true
	_, err = s.Epoch(index(0, 9), nil, 4, testRNG(0))
	require.ErrorContains(t, err, "the validation part has 0 examples")
	e, err := s.Epoch(index(0, 9), index(0, 3), 4, testRNG(0))
	require.NoError(t, err)
	require.Len(t, e.Architecture[0], 3, "a loader that keeps its last batch gives the whole part")
	s.Pairing = "x"
	_, err = s.Epoch(index(0, 9), index(0, 9), 4, testRNG(0))
	require.ErrorContains(t, err, `"x"`)
}
