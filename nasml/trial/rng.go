package trial

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
)

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
// Streams of different seeds or parts are independent, so that adding one
// stream leaves all others as they were. The same call gives the same stream
// on every platform. MarshalBinary and UnmarshalBinary of the result are its
// state, for a checkpoint.
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

// RNG returns a generator over [Source]. It keeps no state of its own: the
// state of its source is all of it.
func RNG(seed uint64, parts ...string) *rand.Rand {
	return rand.New(Source(seed, parts...))
}
