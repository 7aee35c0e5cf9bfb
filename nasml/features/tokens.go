package features

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

// Tokenizer appends the tokens of a text to dst and returns it. Tokens are not empty and have no white space in them.
// Text is valid UTF-8: what is not has been replaced by U+FFFD, which counts as a symbol.
type Tokenizer func(dst []string, text string) []string

// tokenizers are the ways to cut a text into tokens, by the name that NGramConfig.Tokenizer has. White space is what
// Python takes for it: that of Unicode, and the four separators U+001C to U+001F.
//
//	whitespace  the paper's words (Khodak+ App. B.2.2): cut at white space, nothing more
//	simple      the same, and then marks, punctuation and symbols (Unicode's
//	            categories M, P, S) are taken out, as the authors' code does
//	custom      cut at white space and where such a sign and another stand side by side
//	treebank    the convention of the Penn Treebank, as NLTK's TreebankWordTokenizer
//	            has it; the text is one sentence to it
//	nltk        NLTK's word_tokenize, as the authors' code has it, see [nltkTokens]
var tokenizers = map[string]Tokenizer{
	"whitespace": appendFields,
	"simple":     simpleTokens,
	"custom":     customTokens,
	"treebank":   treebankTokens,
	"nltk":       nltkTokens,
}

// isSpace reports whether Python's str.split cuts at r.
func isSpace(r rune) bool {
	if r > ' ' && r < utf8.RuneSelf {
		return false
	}
	return r >= 0x1c && r <= 0x1f || unicode.IsSpace(r)
}

// isSign reports whether r is a mark, punctuation or a symbol.
func isSign(r rune) bool {
	if r < utf8.RuneSelf {
		return asciiSign[r]
	}
	return unicode.In(r, unicode.M, unicode.P, unicode.S)
}

var asciiSign = func() (is [utf8.RuneSelf]bool) {
	for r := range is {
		is[r] = unicode.In(rune(r), unicode.P, unicode.S)
	}
	return is
}()

func appendFields(dst []string, text string) []string {
	start := -1
	for i, r := range text {
		switch space := isSpace(r); {
		case space && start >= 0:
			dst, start = append(dst, text[start:i]), -1
		case !space && start < 0:
			start = i
		}
	}
	if start >= 0 {
		dst = append(dst, text[start:])
	}
	return dst
}

func simpleTokens(dst []string, text string) []string {
	var b strings.Builder
	b.Grow(len(text))
	from := 0
	for i, r := range text {
		if isSign(r) {
			b.WriteString(text[from:i])
			from = i + utf8.RuneLen(r)
		}
	}
	b.WriteString(text[from:])
	return appendFields(dst, b.String())
}

func customTokens(dst []string, text string) []string {
	start, sign := -1, false
	for i, r := range text {
		if isSpace(r) {
			if start >= 0 {
				dst, start = append(dst, text[start:i]), -1
			}
			continue
		}
		s := isSign(r)
		switch {
		case start < 0:
			start = i
		case s != sign:
			dst, start = append(dst, text[start:i]), i
		}
		sign = s
	}
	if start >= 0 {
		dst = append(dst, text[start:])
	}
	return dst
}

// stopList is the English list of NLTK's stopwords corpus of 2020: 179 words,
// those of the Snowball project and contractions with their parts.
const stopList = `i me my myself we our ours ourselves you you're you've you'll you'd your yours yourself yourselves
he him his himself she she's her hers herself it it's its itself they them their theirs themselves
what which who whom this that that'll these those am is are was were be been being have has had having do does did doing
a an the and but if or because as until while of at by for with about against between into through during before after
above below to from up down in out on off over under again further then once here there when where why how
all any both each few more most other some such no nor not only own same so than too very
s t can will just don don't should should've now d ll m o re ve y ain aren aren't couldn couldn't didn didn't doesn doesn't
hadn hadn't hasn hasn't haven haven't isn isn't ma mightn mightn't mustn mustn't needn needn't shan shan't
shouldn shouldn't wasn wasn't weren weren't won won't wouldn wouldn't`

// stopWords are those of the list, capitalised, and without their apostrophes,
// as in the authors' code: "don't", "Don't" and "dont", but not "Dont" or "DON'T".
var stopWords = func() map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(stopList) {
		set[word] = true
		set[strings.ToUpper(word[:1])+word[1:]] = true
		set[strings.ReplaceAll(word, "'", "")] = true
	}
	return set
}()

const longestStop = len("themselves")

func isStop(word string) bool { return len(word) <= longestStop && stopWords[word] }

// lower appends a token in lower case, as Python's str.lower has it.
func lower(dst []byte, token string) []byte {
	for i := range len(token) {
		if token[i] >= utf8.RuneSelf {
			return append(dst, lowerUnicode(token)...)
		}
	}
	for i := range len(token) {
		c := token[i]
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		dst = append(dst, c)
	}
	return dst
}

// lowerUnicode knows the two letters that strings.ToLower has otherwise: İ,
// which becomes two characters, and Σ, which is another at the end of a word.
func lowerUnicode(token string) string {
	if strings.ContainsAny(token, "İΣ") {
		return cases.Lower(language.Und).String(token)
	}
	return strings.ToLower(token)
}
