package features

import "github.com/twmb/murmur3"

// Hash is MurmurHash3 x86-32 of the UTF-8 bytes of an n-gram, its tokens joined
// by single spaces, as an unsigned number.
func Hash(ngram []byte, seed uint32) uint32 { return murmur3.SeedSum32(seed, ngram) }
