package command

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/runs"
)

// versionFlag ends the parsing of the command line, so that nothing is run.
type versionFlag bool

var errVersion = errors.New("version")

// BeforeReset is called where the flag is given.
func (versionFlag) BeforeReset() error { return errVersion }

func versionText() string {
	all := runs.Versions()
	maps.Copy(all, code.Modules())
	lines := []string{modulePath + " " + all[modulePath]}
	delete(all, modulePath)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		lines = append(lines, name+" "+all[name])
	}
	return fmt.Sprintln(strings.Join(lines, "\n"))
}
