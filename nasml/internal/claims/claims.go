// Package claims is the ledger of the papers' claims: a row for each, with the entries that
// judge it or the reason why none does, and the verdict from the run store and the shipped
// records. The entries' claims name their rows ([runs.Claim].Rows); the papers' packages,
// which register the entries, have to be imported.
package claims

import (
	_ "embed" // the rows
	"encoding/csv"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
)

// Row is one claim of a paper.
type Row struct {
	ID    string
	Paper string // "Oymak+ 2021"
	Where string // "Theorem 1 (2)"
	Claim string // in our words
	Value string // the paper's, as it prints it
	// Entries are those of the catalog that judge it. One that the catalog lacks
	// will judge it once it is there.
	Entries []string
	// Why says why no entry judges it, or, after "reduced:", why entries judge no more
	// than a small case of it; empty where they judge it as it is.
	Why string
}

//go:embed claims.csv
var rowsCSV string

var header = []string{"id", "paper", "where", "claim", "value", "entries", "why"}

// Reasons are the words before the colon of a Why: what is no claim, what is said as
// background, what cannot be tested here, definitions that a test of the code holds,
// whose folder and name follow, and what is judged on a small case only.
var Reasons = []string{"no claim", "background", "not testable here", testReason, reducedReason}

const testReason, reducedReason = "test", "reduced"

// Rows lists all rows, paper by paper. It returns an error if the embedded list is not
// as it should be, which a test sees at once.
func Rows() ([]Row, error) { return allRows() }

var allRows = sync.OnceValues(func() ([]Row, error) { return parse(rowsCSV) })

// parse reads and checks a list.
func parse(text string) ([]Row, error) {
	lines, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("the list of claims: %w", err)
	}
	if len(lines) == 0 || !slices.Equal(lines[0], header) {
		return nil, fmt.Errorf("the list of claims does not begin with the columns %v", header)
	}
	var rows []Row
	seen := map[string]bool{}
	for i, l := range lines[1:] {
		r := Row{l[0], l[1], l[2], l[3], l[4], strings.Fields(l[5]), l[6]}
		if err := r.check(); err != nil {
			return nil, fmt.Errorf("the list of claims, row %d: %w", i+1, err)
		}
		if seen[r.ID] {
			return nil, fmt.Errorf("the list of claims, row %d: %s is there twice", i+1, r.ID)
		}
		seen[r.ID] = true
		rows = append(rows, r)
	}
	return rows, nil
}

func (r Row) check() error {
	reason, _, _ := strings.Cut(r.Why, ":")
	switch {
	case r.ID == "" || r.Paper == "" || r.Where == "" || r.Claim == "":
		return fmt.Errorf("%q lacks id, paper, where or claim", r.ID)
	case (len(r.Entries) > 0) != (r.Why == "" || reason == reducedReason):
		return fmt.Errorf("%s has %d entries and the reason %q, want entries or a reason", r.ID, len(r.Entries), r.Why)
	case r.Why != "" && !slices.Contains(Reasons, reason):
		return fmt.Errorf("%s has the reason %q, want one that begins with one of %v and a colon", r.ID, r.Why, Reasons)
	}
	return nil
}

// ByTest is the folder and the name of the test that holds a row; empty where none
// does.
func (r Row) ByTest() (folder, name string) {
	if rest, ok := strings.CutPrefix(r.Why, testReason+": "); ok {
		folder, name, _ = strings.Cut(rest, " ")
	}
	return folder, name
}

// RowOf is the id of a row that a claim of an entry names, which may leave out the
// paper where it is the entry's: "thm1-eq2" is oymak2021/thm1-eq2 in
// oymak2021/theorem1.
func RowOf(entry, row string) string {
	if strings.Contains(row, "/") || strings.HasPrefix(row, "LI") || strings.HasPrefix(row, "RO") {
		return row
	}
	return path.Join(path.Dir(entry), row)
}
