package features

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/twmb/murmur3"

	"github.com/nasml/lab/nasml/trial"
)

// NGramConfig is one configuration of the search space of Khodak+ (App.
// B.2.2): how a text becomes a bag of hashed n-grams.
type NGramConfig struct {
	Tokenizer  string  // one of "treebank", "nltk" and the others in tokens.go
	StopWords  bool    // stop words are removed, before letters become small
	Lower      bool    // letters become small
	Order      int     // n-grams of 1…Order tokens, all in one bag
	Binary     bool    // a bin is 1 where something fell into it, else how much did
	Weighting  string  // "none", "nb" (Wang and Manning 2012), "sif" (Arora+ 2017)
	Alpha      float64 // α of the weighting, > 0; the paper's range is 10⁻⁵…10
	Preprocess string  // "none", "normalize" (rows to ‖·‖₂ = 1), "average" (divided by what is in the bag)
	HashSeed   uint32  // of MurmurHash3
}

// Weightings and Preprocessings are what the two fields can be.
var (
	Weightings     = []string{"none", "nb", "sif"}
	Preprocessings = []string{"none", "normalize", "average"}
)

// Check returns an error if a configuration is invalid.
func (c NGramConfig) Check() error {
	switch {
	case tokenizers[c.Tokenizer] == nil:
		return fmt.Errorf("tokenizer must be one of %q, got %q", slices.Sorted(maps.Keys(tokenizers)), c.Tokenizer)
	case c.Order < 1:
		return fmt.Errorf("n-gram order must be at least 1, got %d", c.Order)
	case !slices.Contains(Weightings, c.Weighting):
		return fmt.Errorf("weighting must be one of %q, got %q", Weightings, c.Weighting)
	case !slices.Contains(Preprocessings, c.Preprocess):
		return fmt.Errorf("preprocessing must be one of %q, got %q", Preprocessings, c.Preprocess)
	case c.Weighting != "none" && !(c.Alpha > 0 && !math.IsInf(c.Alpha, 1)):
		return fmt.Errorf("α must be positive for the weighting %q, got %g", c.Weighting, c.Alpha)
	}
	return nil
}

// Texts are texts that many configurations look at. A text is cut into tokens once for each tokenizer, when that is
// first asked for; this is where the time goes. Several goroutines may use it at once.
type Texts struct {
	raw []string
	mu  sync.Mutex
	cut map[string]func() []tokens
}

// NewTexts keeps the texts as they are, but for bytes that are not UTF-8: each run of them becomes one U+FFFD.
func NewTexts(texts []string) *Texts {
	valid := texts
	for i, text := range texts {
		if utf8.ValidString(text) {
			continue
		}
		if &valid[0] == &texts[0] {
			valid = slices.Clone(texts)
		}
		valid[i] = strings.ToValidUTF8(text, "\uFFFD")
	}
	return &Texts{raw: valid, cut: map[string]func() []tokens{}}
}

// Len returns the number of texts.
func (t *Texts) Len() int { return len(t.raw) }

func (t *Texts) tokens(name string) []tokens {
	t.mu.Lock()
	all, ok := t.cut[name]
	if !ok {
		all = sync.OnceValue(func() []tokens { return tokenizeAll(t.raw, tokenizers[name]) })
		t.cut[name] = all
	}
	t.mu.Unlock()
	return all()
}

func tokenizeAll(texts []string, cut Tokenizer) []tokens {
	all := make([]tokens, len(texts))
	inBlocks(len(texts), 64, func(from, to int) {
		var words []string
		for i := from; i < to; i++ {
			words = cut(words[:0], texts[i])
			all[i] = join(words)
		}
		clear(words[:cap(words)])
	})
	return all
}

// tokens is a text in tokens, joined by single spaces, so that an n-gram is a piece of it.
type tokens struct {
	text    string
	ends    []uint32 // where each token ends; the first bit says that it is a stop word
	content int      // tokens that are not stop words
}

const stopBit = 1 << 31

func join(words []string) tokens {
	t := tokens{text: strings.Join(words, " "), ends: make([]uint32, len(words))}
	at := -1
	for i, w := range words {
		at += 1 + len(w)
		t.ends[i] = uint32(at)
		if isStop(w) {
			t.ends[i] |= stopBit
		} else {
			t.content++
		}
	}
	return t
}

type view struct {
	text []byte
	ends []uint32
}

func (v *view) gram(i, n int) []byte {
	start := uint32(0)
	if i > 0 {
		start = v.ends[i-1] + 1
	}
	return v.text[start:v.ends[i+n-1]]
}

// view uses the memory of an earlier one.
func (t tokens) view(noStops, small bool, old *view) *view {
	v := view{text: old.text[:0], ends: old.ends[:0]}
	start := uint32(0)
	for _, end := range t.ends {
		stop := end&stopBit != 0
		end &^= stopBit
		word := t.text[start:end]
		start = end + 1
		if stop && noStops {
			continue
		}
		if len(v.ends) > 0 {
			v.text = append(v.text, ' ')
		}
		if small {
			v.text = lower(v.text, word)
		} else {
			v.text = append(v.text, word...)
		}
		v.ends = append(v.ends, uint32(len(v.text)))
	}
	*old = v
	return old
}

func (t tokens) grams(c NGramConfig) int {
	n, sum := len(t.ends), 0
	if c.StopWords {
		n = t.content
	}
	for k := 1; k <= c.Order && k <= n; k++ {
		sum += n - k + 1
	}
	return sum
}

// Bags returns the raw hashed bags of n-grams: row i is text rows[i] under configuration configs[of[i]], and column j
// counts its n-grams of which the hash mod d is j, or reports whether there are any. rows nil means all texts, of nil
// the first configuration for all. A text without tokens is an empty row.
//
// Weighting and preprocessing are not applied: FitNGrams does.
func Bags(ctx context.Context, t *Texts, rows []int, configs []NGramConfig, of []int, d int) (*Sparse, error) {
	rows, of, err := t.assign(rows, configs, of, d)
	if err != nil {
		return nil, err
	}
	cut := map[string][]tokens{} // by tokenizer
	for _, k := range of {
		if name := configs[k].Tokenizer; cut[name] == nil {
			cut[name] = t.tokens(name)
		}
	}
	room := make([]int, len(rows)+1) // row i has room from room[i] on
	for i, r := range rows {
		c := configs[of[i]]
		room[i+1] = room[i] + cut[c.Tokenizer][r].grams(c)
	}
	b := &Sparse{
		Rows:   len(rows),
		Cols:   d,
		RowPtr: make([]int, len(rows)+1),
		Col:    make([]int32, room[len(rows)]),
		Val:    make([]float32, room[len(rows)]),
	}
	inBlocks(len(rows), 64, func(from, to int) {
		var w bagger
		for i := from; i < to && ctx.Err() == nil; i++ {
			c := configs[of[i]]
			hashes := w.hash(cut[c.Tokenizer][rows[i]], c, uint32(d))
			b.RowPtr[i+1] = w.count(hashes, c.Binary, b.Col[room[i]:], b.Val[room[i]:])
		}
	})
	b.closeGaps(room)
	return b, ctx.Err()
}

// closeGaps moves the rows together: row i begins at room[i], and RowPtr[i+1] says how long it is.
func (s *Sparse) closeGaps(room []int) {
	for i := range s.Rows {
		to, n := s.RowPtr[i], s.RowPtr[i+1]
		copy(s.Col[to:], s.Col[room[i]:room[i]+n])
		copy(s.Val[to:], s.Val[room[i]:room[i]+n])
		s.RowPtr[i+1] = to + n
	}
	n := s.RowPtr[s.Rows]
	s.Col, s.Val = s.Col[:n], s.Val[:n]
}

// assign fills in what nil stands for and checks that all fits together.
func (t *Texts) assign(rows []int, configs []NGramConfig, of []int, d int) ([]int, []int, error) {
	if rows == nil {
		rows = trial.Indices(0, t.Len())
	}
	if of == nil {
		of = make([]int, len(rows))
	}
	if d < 1 || d > math.MaxInt32 {
		return nil, nil, fmt.Errorf("d must be between 1 and %d, got %d", math.MaxInt32, d)
	}
	if len(configs) == 0 || len(of) != len(rows) {
		return nil, nil, fmt.Errorf(
			"found %d configurations, %d texts and a configuration for %d of them, expected some configurations and "+
				"one for every text", len(configs), len(rows), len(of))
	}
	for k, c := range configs {
		if err := c.Check(); err != nil {
			return nil, nil, fmt.Errorf("configuration %d: %w", k, err)
		}
	}
	for i, r := range rows {
		if r < 0 || r >= t.Len() || of[i] < 0 || of[i] >= len(configs) {
			return nil, nil, fmt.Errorf("found text %d with configuration %d, expected 0…%d and 0…%d", r, of[i],
				t.Len()-1, len(configs)-1)
		}
	}
	return rows, of, nil
}

// hash is MurmurHash3 x86-32 of the UTF-8 bytes of an n-gram, its tokens joined
// by single spaces, as an unsigned number.
func hash(ngram []byte, seed uint32) uint32 { return murmur3.SeedSum32(seed, ngram) }

type bagger struct {
	view          view
	hashes, other []uint32
}

// hash returns the bins of all n-grams of a text, in ascending order.
func (w *bagger) hash(t tokens, c NGramConfig, d uint32) []uint32 {
	v := t.view(c.StopWords, c.Lower, &w.view)
	w.hashes = w.hashes[:0]
	for n := 1; n <= c.Order; n++ {
		for i := 0; i+n <= len(v.ends); i++ {
			w.hashes = append(w.hashes, hash(v.gram(i, n), c.HashSeed)%d)
		}
	}
	w.sort(d)
	return w.hashes
}

const digit = 10 // bits of a hash that one pass of sort looks at

// sort puts the hashes, all below d, in order: by their lowest bits first,
// which takes a third of the time of a general sort.
func (w *bagger) sort(d uint32) {
	n := len(w.hashes)
	if n < 128 {
		slices.Sort(w.hashes)
		return
	}
	w.other = slices.Grow(w.other[:0], n)[:n]
	for shift := 0; shift < bits.Len32(d-1); shift += digit {
		var at [1 << digit]int32
		for _, h := range w.hashes {
			at[h>>shift&(1<<digit-1)]++
		}
		sum := int32(0)
		for k, count := range at {
			at[k], sum = sum, sum+count
		}
		for _, h := range w.hashes {
			k := h >> shift & (1<<digit - 1)
			w.other[at[k]] = h
			at[k]++
		}
		w.hashes, w.other = w.other, w.hashes
	}
}

// count writes each bin once, with how often it occurs, and returns how many there are.
func (w *bagger) count(hashes []uint32, binary bool, col []int32, val []float32) int {
	n := 0
	for i := 0; i < len(hashes); n++ {
		first := i
		for i < len(hashes) && hashes[i] == hashes[first] {
			i++
		}
		col[n], val[n] = int32(hashes[first]), float32(i-first)
		if binary {
			val[n] = 1
		}
	}
	return n
}
