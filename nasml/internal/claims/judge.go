package claims

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/internal/findings"
	"github.com/nasml/lab/nasml/runs"
)

// judge says what the checks of a row say together.
func judge(r Row, checks []Check) Line {
	l := Line{Row: r, Checks: checks, Verdict: NotRun}
	kept := largest(checks)
	if len(kept) == 0 {
		if r.Why != "" {
			l.Verdict, l.Reason = NotJudged, r.Why
		} else {
			l.Reason = "trials of " + strings.Join(r.Entries, ", ") + " are missing"
		}
		return l
	}
	holds, best := together(kept)
	l.Best, l.At = &best, holds
	reduced := slices.ContainsFunc(kept, func(c Check) bool { return c.Scale != catalog.Paper && c.ran() })
	switch {
	case !slices.ContainsFunc(kept, Check.ran):
		l.Reason = best.Note
	case reduced || r.Why != "":
		l.Verdict, l.Reason = Reduced, r.Why
	default:
		l.Verdict = Verdict(holds.String())
	}
	if finding, ok := explained(kept); ok && l.Verdict == Fails {
		l.Verdict, l.Finding, l.Reason = PaperError, finding, finding.Title
	}
	return l
}

// explained is the error in the paper because of which checks fail. One that fails for
// another reason refutes the row by itself.
func explained(checks []Check) (finding findings.Finding, ok bool) {
	for _, c := range checks {
		if c.Holds != runs.Fails {
			continue
		}
		if finding, ok = findings.OfClaim(c.Entry, c.Name); !ok {
			return finding, false
		}
	}
	return finding, ok
}

// ran reports whether a check has a number or a verdict.
func (c Check) ran() bool { return c.Ours.Valid() || c.Holds != runs.NotKnown }

// rank orders scales.
func rank(scale string) int {
	return slices.Index([]string{catalog.Quick, catalog.Large, catalog.Paper}, scale)
}

// largest are the checks that count: of those that differ in numbers of the name
// only, such as the sizes of a scale, the ones at the largest scale at which some
// were run; where none was run, those of the largest scale.
func largest(checks []Check) []Check {
	best := map[string]int{}
	weight := func(c Check) int {
		w := 1 + rank(c.Scale)
		if c.ran() {
			w += 10
		}
		return w
	}
	for _, c := range checks {
		best[c.kind()] = max(best[c.kind()], weight(c))
	}
	var kept []Check
	for _, c := range checks {
		if weight(c) == best[c.kind()] && !slices.ContainsFunc(kept, c.same) {
			kept = append(kept, c)
		}
	}
	return kept
}

// same reports whether two checks are the same one, met in two settings of an entry.
func (c Check) same(d Check) bool {
	return c.Entry == d.Entry && c.Name == d.Name && c.Scale == d.Scale
}

// kind is an entry and a name without its numbers.
func (c Check) kind() string {
	return c.Entry + " " + strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r == '.' || r == ',' || r == 'e' {
			return -1
		}
		return r
	}, c.Name)
}

// together is what checks say: one that fails refutes them all, and all have to
// hold. The check that decides comes with it.
func together(checks []Check) (runs.Verdict, Check) {
	for _, v := range []runs.Verdict{runs.Fails, runs.NotKnown} {
		for _, ran := range []bool{true, false} {
			at := slices.IndexFunc(checks, func(c Check) bool { return c.Holds == v && c.ran() == ran })
			if at >= 0 {
				return v, checks[at]
			}
		}
	}
	return runs.Holds, checks[0]
}

// Word is the verdict as tables show it: "reduced: holds".
func (l Line) Word() string {
	if l.Verdict != Reduced {
		return string(l.Verdict)
	}
	return fmt.Sprintf("%s: %s", Reduced, l.At)
}

// Ours is our number with its interval: "0.71 [0.6, 0.8]"; empty if there is none.
func (l Line) Ours() string {
	if l.Best == nil || !l.Best.Ours.Valid() {
		return ""
	}
	text := l.Best.Ours.String()
	if l.Best.Lo.Valid() || l.Best.Hi.Valid() {
		text += fmt.Sprintf(" [%v, %v]", l.Best.Lo, l.Best.Hi)
	}
	return text
}

// Total counts the rows of a paper by verdict.
type Total struct {
	Paper string
	Count map[Verdict]int
	All   int
}

// Totals are those of each paper and, last, of all.
func (l *Ledger) Totals() []Total {
	var totals []Total
	for _, p := range l.Papers() {
		totals = append(totals, total(p.Name, p.Lines))
	}
	if len(totals) == 1 {
		return totals
	}
	return append(totals, total("all", l.Lines))
}

func total(paper string, lines []Line) Total {
	t := Total{Paper: paper, Count: map[Verdict]int{}, All: len(lines)}
	for _, line := range lines {
		t.Count[line.Verdict]++
	}
	return t
}
