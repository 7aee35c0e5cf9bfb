package features

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// treebankTokens cuts a sentence as the Penn Treebank has it (R. MacIntyre's rules): signs stand alone, a comma or
// colon unless a digit follows, a full stop at the very end only; double quotation marks become “ and ” in ASCII (two
// backticks, two apostrophes); verbs lose their contractions, n't and 's, and cannot, gonna and the like fall in two.
//
// It gives the tokens of NLTK's TreebankWordTokenizer, in three passes instead
// of thirty regular expressions, so that its time is linear in the text.
func treebankTokens(dst []string, text string) []string {
	first := splitFinalStop(spaceSigns(make([]byte, 0, len(text)+len(text)/4), text))
	spaced := string(spaceQuotes(make([]byte, 0, len(first)+len(first)/4), first))
	for chunk := range strings.SplitSeq(spaced, " ") {
		if chunk != "" {
			dst = splitClitics(dst, chunk)
		}
	}
	return dst
}

// spaceSigns opens quotations and puts spaces around , : ; @ # $ % & ? ! and the three dots of an ellipsis.
func spaceSigns(out []byte, text string) []byte {
	taken := 0   // a comma or colon before it has gone with the one before
	opened := -1 // where the text goes on after two backticks, which lead to a quotation like a space
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case ',', ':':
			last := i+1 == len(text)
			splits := i >= taken && !last && !digitAt(text[i+1:])
			if splits {
				taken = i + 2
			}
			if splits || last {
				out = append(out, ' ', c, ' ')
			} else {
				out = append(out, c)
			}
		case ';', '@', '#', '$', '%', '&', '?', '!':
			out = append(out, ' ', c, ' ')
		case '.', '`', '"', '\'':
			sign, next := quotationAt(text, i, opened == i)
			if out = append(out, sign...); sign == openMark && text[i] == '`' || i == 0 && c == '"' {
				opened = next
			}
			i = next - 1
		default:
			out = append(out, c)
		}
	}
	return out
}

const openMark, ellipsis = " `` ", " ... "

// quotationAt returns what the sign at text[i] becomes where it is an ellipsis or opens a quotation, else itself, and
// where the text goes on. led says that an opening mark stands right before it.
func quotationAt(text string, i int, led bool) (sign string, next int) {
	led = led || i > 0 && strings.IndexByte(" ([{<", text[i-1]) >= 0
	switch rest := text[i:]; {
	case strings.HasPrefix(rest, "..."):
		return ellipsis, i + 3
	case strings.HasPrefix(rest, "``"), led && strings.HasPrefix(rest, "''"):
		return openMark, i + 2
	case text[i] == '"' && (led || i == 0):
		return openMark, i + 1
	}
	return text[i : i+1], i + 1
}

// digitAt reports whether text begins with a decimal digit of any script.
func digitAt(text string) bool {
	r, _ := utf8.DecodeRuneInString(text)
	return unicode.IsDigit(r)
}

// splitFinalStop puts a space before the full stop that ends the text, and
// that closing brackets and quotation marks may follow.
func splitFinalStop(text []byte) []byte {
	trimmed := bytes.TrimRightFunc(text, isSpace)
	stop := len(trimmed) - 1
	for stop >= 0 && strings.IndexByte(`])}>"'`, trimmed[stop]) >= 0 {
		stop--
	}
	if stop < 1 || trimmed[stop] != '.' || trimmed[stop-1] == '.' {
		return text
	}
	return slices.Insert(trimmed, stop, ' ')
}

// spaceQuotes puts spaces around brackets, dashes and closing quotation marks,
// and before an apostrophe that ends a word.
func spaceQuotes(out, text []byte) []byte {
	free := 0 // what stands before it belongs to an apostrophe that has been split off
	at := func(i int) byte {
		if i < len(text) {
			return text[i]
		}
		return 0
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case strings.IndexByte("[](){}<>", c) >= 0:
			out = append(out, ' ', c, ' ')
		case c == '-' && at(i+1) == '-':
			out, i = append(out, " -- "...), i+1
		case c == '"':
			out = append(out, " '' "...)
		case c == '\'' && at(i+1) == '\'':
			out, i = append(out, " '' "...), i+1
		case c == '\'' && at(i+1) == ' ' && i > free && text[i-1] != '\'':
			out, i = append(out, " ' "...), i+1
			free = i + 1
		default:
			out = append(out, c)
		}
	}
	return out
}

// splitClitics cuts the end off a chunk between two spaces, where it is one of
// 's 'm 'd ' and then one of 'll 're 've n't.
func splitClitics(dst []string, chunk string) []string {
	if strings.IndexByte(chunk, '\'') < 0 {
		return splitContractions(dst, chunk)
	}
	var ends [2]string
	chunk, ends[1] = cutEnd(chunk, "'s", "'S", "'m", "'M", "'d", "'D", "'")
	chunk, ends[0] = cutEnd(chunk, "'ll", "'LL", "'re", "'RE", "'ve", "'VE", "n't", "N'T")
	dst = splitContractions(dst, chunk)
	for _, end := range ends {
		if end != "" {
			dst = append(dst, end)
		}
	}
	return dst
}

// cutEnd cuts off the first of the ends that the chunk has, unless nothing or an apostrophe stands before it.
func cutEnd(chunk string, ends ...string) (rest, end string) {
	for _, end := range ends {
		if n := len(chunk) - len(end); n > 0 && chunk[n:] == end && chunk[n-1] != '\'' {
			return chunk[:n], end
		}
	}
	return chunk, ""
}

// contractions are words that stand for two, by their first letter, with the length of the first.
var contractions = [256][]struct {
	word  string
	first int
}{
	'c': {{"cannot", 3}}, 'd': {{"d'ye", 1}}, 'l': {{"lemme", 3}}, 'm': {{"more'n", 4}}, 'w': {{"wanna", 3}},
	'g': {{"gimme", 3}, {"gonna", 3}, {"gotta", 3}},
}

// splitContractions cuts such words in two, in any case of their letters, and
// 'tis and 'twas at the beginning; then at white space other than a space.
func splitContractions(dst []string, chunk string) []string {
	for i := 0; i+4 <= len(chunk); i++ {
		for _, c := range contractions[chunk[i]|0x20] {
			if !wordAt(chunk, i, c.word) || c.word == "wanna" && !spaceAfter(chunk[i+len(c.word):]) {
				continue
			}
			dst = splitTis(dst, chunk[:i])
			dst = append(dst, chunk[i:i+c.first], chunk[i+c.first:i+len(c.word)])
			return splitContractions(dst, chunk[i+len(c.word):])
		}
	}
	return splitTis(dst, chunk)
}

func splitTis(dst []string, chunk string) []string {
	for _, word := range []string{"'tis", "'twas"} {
		if len(chunk) >= len(word) && chunk[0] == '\'' && strings.EqualFold(chunk[:len(word)], word) &&
			!wordStarts(chunk[len(word):]) {
			dst, chunk = append(dst, chunk[:2], chunk[2:len(word)]), chunk[len(word):]
		}
	}
	return appendFields(dst, chunk)
}

// wordAt reports whether the word stands at chunk[i], in any case, with its ends at the ends of words.
func wordAt(chunk string, i int, word string) bool {
	end := i + len(word)
	if end > len(chunk) || !strings.EqualFold(chunk[i:end], word) || wordStarts(chunk[end:]) {
		return false
	}
	before, _ := utf8.DecodeLastRuneInString(chunk[:i])
	return i == 0 || !inWord(before)
}

func wordStarts(text string) bool {
	r, _ := utf8.DecodeRuneInString(text)
	return text != "" && inWord(r)
}

func spaceAfter(text string) bool {
	r, _ := utf8.DecodeRuneInString(text)
	return text == "" || isSpace(r)
}

func inWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r) }

// nltkTokens is the tokenizer that the authors' code uses, NLTK's word_tokenize. It cuts a text into sentences first,
// so that each loses its full stop, and knows more quotation marks, dashes and stars than "treebank". On reviews one
// token in sixteen differs between the two, nearly all of them a word before a full stop.
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

// dots stands for a run of dots, which is one token however long it is, while the Treebank's rules see the text.
const dots = '\x00'

// openMarks puts spaces around opening quotation marks and runs of backticks, and after an apostrophe that opens a word
// and is not of 's, 't, 'll and the like; runs of dots become one sign.
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

// splitLastStop is to a sentence what splitFinalStop is, with more closing marks, which may have spaces between them.
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
