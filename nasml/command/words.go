package command

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/nasml/lab/nasml/catalog"
)

// given is a value for a script or a manifest, with what the user calls it.
type given struct{ name, value string }

// checkGiven returns an error for the first value that does not have the form.
func checkGiven(form func(value string) bool, want string, all ...given) error {
	for _, g := range all {
		if g.value != "" && !form(g.value) {
			return catalog.Usagef("%s must be %s, got %.80q", g.name, want, g.value)
		}
	}
	return nil
}

func checkLines(all ...given) error {
	return checkGiven(oneLine, "text without control characters", all...)
}

func oneLine(text string) bool {
	const breaks = "\u2028\u2029"
	return utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl) &&
		!strings.ContainsAny(text, breaks)
}

// oneWord reports whether a value is safe unquoted where no shell reads it, as in Slurm's head lines.
func oneWord(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !strings.ContainsRune("_./:=,@+-~", r)
	})
}

const wordWanted = "letters, digits and _./:=,@+-~"

// The forms of Kubernetes: names as RFC 1123 has them, quantities and images.
var (
	label     = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)
	quantity  = regexp.MustCompile(`^([0-9]+\.?[0-9]*|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$`)
	imageName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/:-]*(@[A-Za-z0-9+._-]+:[A-Fa-f0-9]+)?$`)
)

// The names of RFC 1123 are no longer than that.
const longestLabel, longestSubdomain = 63, 253

func isLabel(name string) bool { return len(name) <= longestLabel && label.MatchString(name) }

func isSubdomain(name string) bool {
	for part := range strings.SplitSeq(name, ".") {
		if !label.MatchString(part) {
			return false
		}
	}
	return len(name) <= longestSubdomain
}
