package study

import (
	"fmt"
	"strings"

	"github.com/nasml/lab/nasml/catalog"
)

// ScaleNote is a caption's sentence on the scale of an entry's parameters, with a
// space before it, for what the paper proves and has no setting for: its largest scale
// is "large", though a command calls it "paper".
func ScaleNote(params any) string {
	switch catalog.ScaleOf(params) {
	case catalog.Quick:
		return " Quick scale."
	case catalog.Large, catalog.Paper:
		return " Large scale."
	}
	return " Varied parameters."
}

// SettingNote is ScaleNote for an experiment of the paper's.
func SettingNote(params any) string {
	if catalog.ScaleOf(params) == catalog.Paper {
		return " The paper's setting."
	}
	return strings.TrimSuffix(ScaleNote(params), ".") + ", not the paper's setting."
}

// Counted is a number of things in words, "1 seed" or "3 seeds"; one is what a single
// one is called.
func Counted(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// SpaceTitle is a search space in words.
func SpaceTitle(space string) string {
	if title, ok := spaceTitles[space]; ok {
		return title
	}
	return space
}

var spaceTitles = map[string]string{
	"nasbench201": "NAS-Bench-201", "darts": "DARTS' space", "1shot1-s1": "NAS-Bench-1Shot1, space 1",
	"1shot1-s2": "NAS-Bench-1Shot1, space 2", "1shot1-s3": "NAS-Bench-1Shot1, space 3",
	"darts-s1": "RobustDARTS' S1", "darts-s2": "RobustDARTS' S2", "darts-s3": "RobustDARTS' S3",
	"darts-s4": "RobustDARTS' S4",
}
