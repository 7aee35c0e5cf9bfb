package catalog

import (
	"regexp"
	"strings"
)

// unknownName is how every registry says that a name is none of its own: the name, and
// those that it has.
var unknownName = regexp.MustCompile(`(?s)"([^"]+)"[^"]{0,12}[:,] (?:take|want|expected) one of \[?([^\];:]+)`)

var nameInList = regexp.MustCompile(`[\w./@*+-]+`)

// DidYouMean is what may have been meant where an error is that of a name that is not
// known, as "; did you mean eg?"; else it is empty.
func DidYouMean(err error) string {
	found := unknownName.FindStringSubmatch(err.Error())
	if found == nil || strings.Contains(err.Error(), "did you mean") {
		return ""
	}
	return didYouMean(misspelt(found[1], nameInList.FindAllString(found[2], -1)))
}
