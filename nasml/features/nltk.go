package features

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// nltkTokens is the tokenizer that the authors' code uses, NLTK's word_tokenize. It
// cuts a text into sentences first, so that each loses its full stop, and knows more
// quotation marks, dashes and stars than "treebank". On reviews one token in sixteen
// differs between the two, nearly all of them a word before a full stop.
func nltkTokens(dst []string, text string) []string {
	for _, sentence := range english().sentences(text) {
		dst = nltkWords(dst, sentence)
	}
	return dst
}

// nltkWords cuts a sentence by the rules of NLTK's word tokenizer: those of
// the Treebank with some before and some after.
func nltkWords(dst []string, sentence string) []string {
	first := spaceSigns(nil, openMarks(sentence))
	dashed := longDashes.Replace(string(splitLastStop(first)))
	spaced := spaceMore(spaceQuotes(nil, []byte(dashed)), sentence)
	for chunk := range strings.FieldsFuncSeq(spaced, isSpace) {
		dst = splitClitics(dst, chunk)
	}
	return dst
}

// dots stands for a run of dots, which is one token however long it is, while
// the Treebank's rules see the text.
const dots = '\x00'

// openMarks puts spaces around opening quotation marks and runs of backticks,
// and after an apostrophe that opens a word and is not of 's, 't, 'll and the
// like; runs of dots become one sign.
func openMarks(text string) string {
	var b strings.Builder
	b.Grow(len(text) + len(text)/8)
	for i := 0; i < len(text); {
		r, width := utf8.DecodeRuneInString(text[i:])
		if r == '`' || r == '.' {
			width = len(text[i:]) - len(strings.TrimLeft(text[i:], string(r)))
		}
		piece := text[i : i+width]
		switch {
		case strings.ContainsRune("«“‘„`", r):
			b.WriteString(" " + piece + " ")
		case r == '.' && width > 1:
			b.WriteRune(dots)
		case r == '\'' && opensWord(text, i):
			b.WriteString("' ")
		default:
			b.WriteString(piece)
		}
		i += width
	}
	return b.String()
}

// opensWord reports whether the apostrophe at text[i] stands before a word and
// not after one, and the word is not what is left of a contraction.
func opensWord(text string, i int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:i])
	rest := text[i+1:]
	if i > 0 && inWord(before) || !wordStarts(rest) {
		return false
	}
	for _, end := range []string{"re", "ve", "ll", "m", "t", "s", "d", "n"} {
		if len(rest) >= len(end) && strings.EqualFold(rest[:len(end)], end) && !wordStarts(rest[len(end):]) {
			return false
		}
	}
	return true
}

// splitLastStop is to a sentence what splitFinalStop is, with more closing
// marks, which may have spaces between them.
func splitLastStop(text []byte) []byte {
	trimmed := bytes.TrimRightFunc(text, isSpace)
	head := bytes.TrimRight(trimmed, `])}>"'»”’ `)
	stop := len(head) - 1
	if stop < 1 || head[stop] != '.' || head[stop-1] == '.' {
		return text
	}
	tail := append([]byte(" . "), trimmed[stop+1:]...)
	return append(head[:stop], tail...)
}

var longDashes = strings.NewReplacer("‒", " ‒ ", "–", " – ", "—", " — ", "―", " ― ")

// spaceMore puts spaces around closing quotation marks and stars, and puts the runs of dots of the sentence back.
func spaceMore(text []byte, sentence string) string {
	var b strings.Builder
	b.Grow(len(text) + len(text)/8)
	for _, r := range string(text) {
		from := -1
		if r == dots {
			from = strings.Index(sentence, "..")
		}
		switch {
		case from >= 0:
			run := len(sentence[from:]) - len(strings.TrimLeft(sentence[from:], "."))
			b.WriteString(" " + sentence[from:from+run] + " ")
			sentence = sentence[from+run:]
		case strings.ContainsRune("*»”’", r):
			b.WriteString(" " + string(r) + " ")
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
