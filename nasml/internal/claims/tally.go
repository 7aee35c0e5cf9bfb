package claims

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/internal/findings"
	"github.com/nasml/lab/nasml/runs"
)

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

// Tallies lists the tally of every registered entry that judges a row or has checks of
// its own.
func (l *Ledger) Tallies() []Tally {
	var all []Tally
	for _, e := range catalog.All() {
		if slices.ContainsFunc(l.Lines, func(line Line) bool { return slices.Contains(line.Entries, e.ID) }) ||
			slices.ContainsFunc(l.Own, func(c Check) bool { return c.Entry == e.ID }) {
			all = append(all, l.Tally(e.ID))
		}
	}
	return all
}

// String says the counts in words: "5 hold, 1 does not hold, 2 not run; own checks: 3
// hold".
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

// counted lists counts in the order of Verdicts.
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
