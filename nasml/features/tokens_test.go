package features

import (
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// pieces are what texts are drawn of: all that a rule looks at, and letters.
var pieces = []string{
	`"`,
	"''",
	"'",
	"`",
	"``",
	",",
	":",
	".",
	"...",
	"..",
	"?",
	"!",
	"-",
	"--",
	" ",
	" ",
	" ",
	"\n",
	"\t",
	"\u00a0",
	"\x1c",
	"(",
	"]",
	"<",
	">",
	"{",
	"cannot",
	"d'ye",
	"Gimme",
	"more'n",
	"wanna",
	"'tis",
	"'Twas",
	"n't",
	"'s",
	"'LL",
	"'ve",
	"'d",
	"can",
	"x",
	"Y",
	"1",
	"23",
	"٣",
	"é",
	"İ",
	"Σ",
	"_",
	"…",
	"“",
	"’",
	"$",
	"%",
	"&",
	";",
	"\u0301",
	"😀",
	"<br />",
}

func drawText(t *rapid.T) string {
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 20).Draw(t, "pieces"), "")
}

func TestTokensAreWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := drawText(t)
		for name, cut := range tokenizers {
			for _, token := range cut(nil, text) {
				require.NotEmpty(t, token, name)
				require.NotContains(t, token, " ", name)
				require.False(t, strings.ContainsFunc(token, isSpace), "%s: %q", name, token)
			}
			require.Equal(t, append([]string{"before"}, cut(nil, text)...), cut([]string{"before"}, text),
				"%s appends", name)
		}
	})
}

// What is between the tokens of one text is white space, and what is in them
// stays as it was but for quotation marks.
func TestTokensKeepTheText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := drawText(t)
		words := strings.FieldsFunc(text, isSpace)
		require.Equal(t, append([]string{}, words...), append([]string{}, tokenizers["whitespace"](nil, text)...))

		all := strings.Join(words, "")
		custom := tokenizers["custom"](nil, text)
		require.Equal(t, all, strings.Join(custom, ""))
		var letters strings.Builder
		for _, token := range custom {
			sign := strings.IndexFunc(token, isSign) >= 0
			require.Equal(t, sign, strings.IndexFunc(token, func(r rune) bool { return !isSign(r) }) < 0,
				"%q is of one kind", token)
			if !sign {
				letters.WriteString(token)
			}
		}
		require.Equal(t, letters.String(), strings.Join(tokenizers["simple"](nil, text), ""))

		unquoted := strings.NewReplacer(`"`, "", "`", "", "'", "")
		require.Equal(t, unquoted.Replace(all), unquoted.Replace(strings.Join(tokenizers["treebank"](nil, text), "")))
	})
}

func TestTreebank(t *testing.T) {
	for text, want := range map[string]string{
		"Mr. Fox can't come, he said.":       "Mr. Fox ca n't come , he said .",
		`"Yes," (she) said; "no..."`:         "`` Yes , '' ( she ) said ; `` no ... ''",
		"They cannot; 'tis 10:30 or 10,000.": "They can not ; 't is 10:30 or 10,000 .",
		"the dogs' bone is John's":           "the dogs ' bone is John 's",
		"Gimme--I'm gonna WANNA go!":         "Gim me -- I 'm gon na WAN NA go !",
		"End of one. End of two.":            "End of one. End of two .",
	} {
		require.Equal(t, want, strings.Join(tokenizers["treebank"](nil, text), " "))
	}
}

func TestNLTK(t *testing.T) {
	for text, want := range map[string]string{
		"Mr. Fox came late. He didn't see J. Bach, etc. But then...": "Mr. Fox came late . He did n't " +
			"see J. Bach , etc . But then ...",
		"The U.S. army. “Why?” he asked—twice. (It ended.) 'Fine'.": "The U.S. army . “ Why ? ” he " +
			"asked — twice . ( It ended . ) ' Fine ' .",
		"It was No. 1. in 1999. The 2. of May, it's *great*!! Isn't it?? yes....": "It was No . 1. in 1999 . The 2. " +
			"of May , it 's * great * ! ! Is n't it ? ? yes ....",
	} {
		require.Equal(t, want, strings.Join(tokenizers["nltk"](nil, text), " "))
	}
}

// Every word is in one sentence, and nothing but white space is between them.
func TestSentencesKeepTheText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := drawText(t) + rapid.SampledFrom([]string{"", " ", ". The end.", " Mr. X. Y"}).Draw(t, "end")
		var all []string
		for _, s := range english().sentences(text) {
			all = append(all, strings.FieldsFunc(s, isSpace)...)
		}
		require.Equal(t, strings.Join(strings.FieldsFunc(text, isSpace), ""), strings.Join(all, ""))
	})
}

func TestStopWords(t *testing.T) {
	require.Len(t, strings.Fields(stopList), 179)
	for _, word := range []string{"the", "The", "don't", "Don't", "dont", "i", "I", "youre"} {
		require.True(t, isStop(word), word)
	}
	for _, word := range []string{"THE", "DON'T", "Dont", "film", "never", "would", "'s", ""} {
		require.False(t, isStop(word), word)
	}
	for word := range stopWords {
		require.LessOrEqual(t, len(word), longestStop)
	}
}

func TestSmallLetters(t *testing.T) {
	for word, want := range map[string]string{
		"DON'T": "don't", "ÉTÉ": "été", "İzmir": "i̇zmir", "ΟΔΟΣ": "οδος", "ΣΑΣ!": "σας!", "STRASSE": "strasse", "": "",
	} {
		require.Equal(t, want, string(lower(nil, word)))
	}
	require.Equal(t, "was a", string(lower([]byte("was "), "A")))
}

func TestSpacesAndSigns(t *testing.T) {
	for r := rune(0); r < 0x3100; r++ {
		require.Equal(t, unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f, isSpace(r), "%U", r)
		require.Equal(t, unicode.In(r, unicode.M, unicode.P, unicode.S), isSign(r), "%U", r)
	}
}

// Published test values of MurmurHash3 x86-32.
func TestHash(t *testing.T) {
	for _, c := range []struct {
		text string
		seed uint32
		want uint32
	}{
		{"", 0, 0}, {"", 1, 0x514e28b7}, {"", 0xffffffff, 0x81f16f39},
		{"hello", 0, 0x248bfa47}, {"hello, world", 0, 0x149bbb7f},
		{"The quick brown fox jumps over the lazy dog", 0, 0x2e4ff723}, {"Hello, world!", 0x9747b28c, 0x24884cba},
	} {
		require.Equal(t, c.want, hash([]byte(c.text), c.seed), "%q", c.text)
	}
}

func TestTokenizerNames(t *testing.T) {
	c := plain
	c.Tokenizer = "words"
	require.ErrorContains(t, c.Check(),
		`tokenizer must be one of ["custom" "nltk" "simple" "treebank" "whitespace"], got "words"`)
}
