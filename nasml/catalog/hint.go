package catalog

import (
	"context"
	"regexp"
	"strings"
)

// unknownName is how a registry, or the tag of a field, says that a name is none of its own: the name, and those that
// it has, as "one of eg, sgd" or as "ordered or random".
var unknownName = regexp.MustCompile(`(?s)"([^"]+)"[^"]{0,14}[:,] (?:` +
	`(?:(?:take|want|expected) one of|only for|(?:it|the space) has) \[?([^\];:]+?)(?:, or |[\];:]|$)|` +
	`want ([\w-]+(?:(?:,|,? or) [\w-]+)+))|` +
	`must be (?:one of \[?([^\];:]+?)\]?|([\w-]+(?:(?:,|,? or) [\w-]+)+)), got "([^"]+)"`)

var (
	nameInList = regexp.MustCompile(`[\w./@*+±-]+`)
	orInList   = regexp.MustCompile(`,? or\b`)
)

// known are the name that an error is about, and those of which it is none; empty if it is about something else.
func known(err error) (name string, names []string) {
	if err == nil {
		return "", nil
	}
	found := unknownName.FindStringSubmatch(err.Error())
	if found == nil {
		return "", nil
	}
	list := found[2] + found[4] + orInList.ReplaceAllString(found[3]+found[5], " ")
	return found[1] + found[6], nameInList.FindAllString(list, -1)
}

// DidYouMean is what may have been meant where an error is that of a name that is not
// known, as "; did you mean eg?"; else it is empty.
func DidYouMean(err error) string {
	name, names := known(err)
	if names == nil || strings.Contains(err.Error(), "did you mean") {
		return ""
	}
	return didYouMean(misspelt(name, names))
}

// Choices are the names that a parameter may be, or each of a list: those that the message about an unknown one has.
// Nil: it lists none.
func (e Entry) Choices(ctx context.Context, field string) []string {
	for value := "?"; len(value) <= len("?,?,?"); value += ",?" { // an array takes as many as it has
		_, err := e.Stored(ctx, Setting{Scale: Quick, Set: []string{field + "=" + value}})
		if _, names := known(err); names != nil || err == nil || !strings.Contains(err.Error(), "is not a value for") {
			return names
		}
	}
	return nil
}
