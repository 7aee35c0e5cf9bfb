package claims

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/internal/findings"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
)

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

func (c Check) ran() bool { return c.Ours.Valid() || c.Holds != runs.NotKnown }

// largest are the checks that count: of those that differ in numbers of the name only, such as the sizes of a scale,
// the ones at the largest scale at which some were run; where none was run, those of the largest scale.
func largest(checks []Check) []Check {
	best := map[string]int{}
	weight := func(c Check) int {
		w := 1 + slices.Index([]string{catalog.Quick, catalog.Large, catalog.Paper}, c.Scale)
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
	totals := study.Map(l.Papers(), func(p Paper) Total { return total(p.Name, p.Lines) })
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

// Tally counts the verdicts of one entry: on the paper's claims that it judges, which
// are rows of the ledger, and on this implementation's own checks.
type Tally struct {
	Entry  string
	Claims map[Verdict]int
	Own    map[Verdict]int
}

// Tally counts the verdicts of an entry.
func (l *Ledger) Tally(entry string) Tally {
	t := Tally{Entry: entry, Claims: map[Verdict]int{}, Own: map[Verdict]int{}}
	for _, line := range slices.Concat(l.Lines, l.others) {
		if slices.Contains(line.Entries, entry) {
			t.Claims[line.Verdict]++
		}
	}
	for _, c := range l.Own {
		if c.Entry == entry {
			t.Own[c.verdict()]++
		}
	}
	return t
}

// Tallies lists the tally of every registered entry that judges a row or has checks of its own.
func (l *Ledger) Tallies() (all []Tally) {
	for _, e := range catalog.All() {
		if slices.ContainsFunc(l.Lines, func(line Line) bool { return slices.Contains(line.Entries, e.ID) }) ||
			slices.ContainsFunc(l.Own, func(c Check) bool { return c.Entry == e.ID }) {
			all = append(all, l.Tally(e.ID))
		}
	}
	return all
}

// String says the counts in words: "5 hold, 1 does not hold, 2 not run; own checks: 3 hold".
func (t Tally) String() string {
	var parts []string
	if text := counted(t.Claims); text != "" {
		parts = append(parts, text)
	}
	if text := counted(t.Own); text != "" {
		parts = append(parts, "own checks: "+text)
	}
	if len(parts) == 0 {
		return "no claims"
	}
	return strings.Join(parts, "; ")
}

func counted(count map[Verdict]int) string {
	var parts []string
	for _, v := range Verdicts {
		if n := count[v]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, v.plural(n)))
		}
	}
	return strings.Join(parts, ", ")
}

// plural is the verdict as the predicate of n claims.
func (v Verdict) plural(n int) string {
	switch {
	case n == 1:
		return string(v)
	case v == Holds:
		return "hold"
	case v == Fails:
		return "do not hold"
	case v == PaperError:
		return "errors in the paper"
	}
	return string(v)
}

// verdict is that of one check, whatever its scale.
func (c Check) verdict() Verdict {
	if _, ok := findings.OfClaim(c.Entry, c.Name); ok && c.Holds == runs.Fails {
		return PaperError
	}
	if !c.ran() {
		return NotRun
	}
	return Verdict(c.Holds.String())
}

// Judged are the claims of a result with the words of their verdicts, which depend on
// the entry and on the scale at which it was run: one of the paper's that was judged at
// a smaller size is reduced, and one that fails because the paper is wrong says so.
func Judged(entry, scale string, all []runs.Claim) []runs.Claim {
	all = slices.Clone(all)
	for i, c := range all {
		if c.Holds == runs.Fails {
			if finding, ok := findings.OfClaim(entry, c.Name); ok {
				all[i].Verdict = string(PaperError)
				all[i].Note = strings.TrimPrefix(c.Note+"; "+finding.Title+": notebooks/guide/findings.md", "; ")
				continue
			}
		}
		if c.Ran() && scale != catalog.Paper && len(c.Rows) > 0 {
			all[i].Verdict = fmt.Sprintf("%s: %s", Reduced, c.Holds)
		}
	}
	return all
}
