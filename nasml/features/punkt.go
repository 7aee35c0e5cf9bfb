package features

import (
	"encoding/json"
	"iter"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"gopkg.in/neurosnap/sentences.v1/data"
)

// punkt is what the Punkt algorithm (Kiss and Strunk 2006) has learned of a
// language; a set is a map to what does not matter.
type punkt struct {
	AbbrevTypes  map[string]int // without the last full stop: "mr", "u.s"
	SentStarters map[string]int // words that often begin a sentence
	Collocations map[string]int // "first,second" around a full stop that ends nothing
	OrthoContext map[string]int // where a word was seen with which first letter, see below
}

// Bits of OrthoContext: a word with a capital at the beginning of a sentence,
// inside of one, somewhere, and the same three with a small letter.
const (
	capitalInside = 1 << 2
	smallFirst    = 1 << 4
	anyCapital    = 1<<1 | capitalInside | 1<<3
	anySmall      = smallFirst | 1<<5 | 1<<6
)

// english are NLTK's parameters for English, as module neurosnap/sentences carries them.
var english = sync.OnceValue(func() *punkt {
	p := &punkt{}
	if err := json.Unmarshal(data.MustAsset("data/english.json"), p); err != nil {
		panic(err) // the module's own data
	}
	return p
})

// sentences cuts a text into sentences as NLTK's sent_tokenize does: at a full stop, a question or exclamation mark,
// unless it ends an abbreviation, an initial or a number and the next word does not look like a beginning. White space
// between sentences is left out; closing marks stay with what they close.
//
// The tokenizer of module neurosnap/sentences v1.0.6, whose parameters these are, cuts 3,761 of IMDb's 25,000 training
// reviews elsewhere: 9,772 of these 271,058 sentences are none of its.
func (p *punkt) sentences(text string) []string {
	var spans [][2]int
	last := 0
	for _, e := range endings(text) {
		if p.breaks(text[e.word:e.contextEnd]) {
			spans, last = append(spans, [2]int{last, e.sign + 1}), e.next
		}
	}
	spans = append(spans, [2]int{last, max(last, len(strings.TrimRightFunc(text, isSpace)))})
	return closeMarks(text, spans)
}

type ending struct{ word, sign, contextEnd, next int }

// endings finds the marks that may end a sentence, with the word before and
// what follows, a sign or a word. Of several in one word it is the last.
func endings(text string) (all []ending) {
	var last ending // none has been seen where its next is 0
	for i := 0; i < len(text); i++ {
		if strings.IndexByte(".?!", text[i]) < 0 {
			continue
		}
		e := ending{sign: i, word: last.word}
		if e.contextEnd, e.next = following(text, i+1); e.next == 0 {
			continue
		}
		// A space right at the mark before does not count, as in NLTK.
		if space := strings.LastIndexAny(text[last.sign:i], " \t\n\r\v\f"); space > 0 {
			e.word = last.sign + space + 1
		}
		if last.next > 0 && last.sign <= e.word {
			all = append(all, last)
		}
		last = e
	}
	if last.next > 0 {
		all = append(all, last)
	}
	return all
}

// following returns where the sign or word ends that follows at text[i], and
// where the next sentence would begin; 0 and 0 where nothing follows.
func following(text string, i int) (end, next int) {
	r, width := utf8.DecodeRuneInString(text[i:])
	switch {
	case endsWord(r):
		return i + width, i
	case !isSpace(r):
		return 0, 0
	}
	rest := strings.TrimLeftFunc(text[i:], isSpace)
	if rest == "" {
		return 0, 0
	}
	next = len(text) - len(rest)
	if n := strings.IndexFunc(rest, isSpace); n >= 0 {
		return next + n, next
	}
	return len(text), next
}

// closeMarks moves closing brackets and quotation marks at the beginning of a sentence to the end of the one before.
func closeMarks(text string, spans [][2]int) (out []string) {
	moved := 0
	for i, s := range spans {
		from, to := s[0]+moved, s[1]
		moved = 0
		if i+1 < len(spans) {
			if n, all := closingMarks(text[spans[i+1][0]:spans[i+1][1]]); n > 0 {
				out, moved = append(out, text[from:spans[i+1][0]+n]), all
				continue
			}
		}
		if from < to {
			out = append(out, text[from:to])
		}
	}
	return out
}

// closingMarks returns how long the closing marks are that text begins with,
// and the same with the white space that follows; 0 where something else does.
func closingMarks(text string) (n, all int) {
	rest := strings.TrimLeft(text, `"')]}‘’“”«»`)
	n = len(text) - len(rest)
	after := strings.TrimLeftFunc(rest, isSpace)
	if len(after) == len(rest) && rest != "" && !strings.HasPrefix(rest, "--") {
		return 0, 0
	}
	return n, len(text) - len(after)
}

func endsWord(r rune) bool {
	return strings.ContainsRune(`)";}]*:@'({[‘’“”«»?!`, r) && r != utf8.RuneError
}

// punktToken is a word or sign of a context.
type punktToken struct {
	text, kind            string // kind: small letters, numbers as ##number##
	stops, abbr, ellipsis bool   // stops: a sentence ends here
}

var number = regexp.MustCompile(`^-?[.,]?\p{Nd}[\p{Nd},.-]*\.?$`)

func newPunktToken(word string) *punktToken {
	t := &punktToken{text: word, kind: lowerUnicode(word)}
	if number.MatchString(t.kind) {
		t.kind = "##number##"
	}
	return t
}

// bare is the kind without a last full stop.
func (t *punktToken) bare() string {
	if len(t.kind) > 1 {
		return strings.TrimSuffix(t.kind, ".")
	}
	return t.kind
}

// asNext is the kind as the word after a full stop: without its own where that ends a sentence.
func (t *punktToken) asNext() string {
	if t.stops {
		return t.bare()
	}
	return t.kind
}

func (t *punktToken) capital() bool {
	r, _ := utf8.DecodeRuneInString(t.text)
	return unicode.IsUpper(r) || unicode.Is(unicode.Other_Uppercase, r)
}

func (t *punktToken) small() bool {
	r, _ := utf8.DecodeRuneInString(t.text)
	return unicode.IsLower(r) || unicode.Is(unicode.Other_Lowercase, r)
}

// initial reports whether it is one letter and a full stop.
func (t *punktToken) initial() bool {
	r, width := utf8.DecodeRuneInString(t.text)
	return inWord(r) && !unicode.IsDigit(r) && t.text[width:] == "."
}

// breaks reports whether a sentence ends in the context, other than with its last word.
func (p *punkt) breaks(context string) bool {
	var last *punktToken
	for line := range strings.SplitSeq(context, "\n") {
		for word := range punktWords(line) {
			t := p.byKind(newPunktToken(word))
			if last != nil {
				if p.byNeighbour(last, t); last.stops {
					return true
				}
			}
			last = t
		}
	}
	return false
}

// byKind decides by the word alone: what ends in a full stop ends a sentence unless it is an abbreviation.
func (p *punkt) byKind(t *punktToken) *punktToken {
	switch {
	case t.text == "." || t.text == "?" || t.text == "!":
		t.stops = true
	case len(t.text) > 1 && strings.Trim(t.text, ".") == "":
		t.ellipsis = true
	case strings.HasSuffix(t.text, ".") && !strings.HasSuffix(t.text, ".."):
		word := lowerUnicode(t.text[:len(t.text)-1])
		_, known := p.AbbrevTypes[word]
		_, part := p.AbbrevTypes[word[strings.LastIndexByte(word, '-')+1:]]
		t.abbr = known || part
		t.stops = !t.abbr
	}
	return t
}

// byNeighbour corrects that by the word that follows: known pairs, and abbreviations, initials and numbers before what
// does or does not look like the beginning of a sentence.
func (p *punkt) byNeighbour(t, next *punktToken) {
	if !strings.HasSuffix(t.text, ".") {
		return
	}
	kind, nextKind := t.bare(), next.asNext()
	if _, pair := p.Collocations[kind+","+nextKind]; pair {
		t.stops = false
		return
	}
	starts, known := p.starts(next)
	initial := t.initial()
	if (t.abbr || t.ellipsis) && !initial {
		_, often := p.SentStarters[nextKind]
		if known && starts || often && next.capital() {
			t.stops = true
			return
		}
	}
	if initial || kind == "##number##" {
		t.stops = t.stops && !p.goesOn(initial, next, starts, known)
	}
}

// goesOn reports whether an initial or a number is inside of a sentence: the next word does not begin one, or after an
// initial it is a name, which has never been seen with a small letter.
func (p *punkt) goesOn(initial bool, next *punktToken, starts, known bool) bool {
	if known {
		return !starts
	}
	return initial && next.capital() && p.OrthoContext[next.asNext()]&anySmall == 0
}

// starts reports whether a word begins a sentence, and whether that is known,
// by how it is written here and was written elsewhere.
func (p *punkt) starts(t *punktToken) (starts, known bool) {
	seen := p.OrthoContext[t.asNext()]
	switch {
	case len(t.text) == 1 && strings.Contains(";:,.!?", t.text):
		return false, true
	case t.capital() && seen&anySmall != 0 && seen&capitalInside == 0:
		return true, true
	case t.small() && (seen&anyCapital != 0 || seen&smallFirst == 0):
		return false, true
	}
	return false, false
}

// punktWords cuts a line into words and signs; full stops stay with the word before.
func punktWords(line string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := 0; i < len(line); {
			r, width := utf8.DecodeRuneInString(line[i:])
			if isSpace(r) {
				i += width
				continue
			}
			end := i + manyMarks(line[i:])
			if end == i {
				end += wordLength(line[i:])
			}
			if !yield(line[i:end]) {
				return
			}
			i = end
		}
	}
}

func wordLength(text string) int {
	r, end := utf8.DecodeRuneInString(text)
	if strings.ContainsRune("(\"`{[:;&#*@)}]-,", r) { // these begin no word
		return end
	}
	for end < len(text) && !wordEnds(text[end:]) {
		_, width := utf8.DecodeRuneInString(text[end:])
		end += width
	}
	return end
}

func wordEnds(rest string) bool {
	r, _ := utf8.DecodeRuneInString(rest)
	if r == ',' {
		if rest = rest[1:]; rest == "" {
			return true
		}
		r, _ = utf8.DecodeRuneInString(rest)
	}
	return isSpace(r) || endsWord(r) || manyMarks(rest) > 0
}

var spacedDots = regexp.MustCompile(`^(?:\.[\s\v\x{1c}-\x{1f}\x{85}\p{Z}]){2,}\.`)

// manyMarks returns the length of the dashes or dots that text begins with, 0
// where it does not begin with two of them.
func manyMarks(text string) int {
	for _, mark := range []string{"-", "."} {
		if n := len(text) - len(strings.TrimLeft(text, mark)); n > 1 {
			return n
		}
	}
	if strings.HasPrefix(text, ".") {
		return len(spacedDots.FindString(text))
	}
	return 0
}
