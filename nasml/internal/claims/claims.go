// Package claims is the ledger of the papers' claims: a row for each, with the entries that judge it or the reason why
// none does, and the verdict from the run store and the shipped records. The entries' claims name their rows
// ([runs.Claim].Rows); the papers' packages, which register the entries, have to be imported.
package claims

import (
	"cmp"
	"context"
	_ "embed" // the rows
	"encoding/csv"
	"errors"
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/sync/errgroup"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/internal/findings"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
)

// Row is one claim of a paper.
type Row struct {
	ID    string
	Paper string // "Oymak+ 2021"
	Where string // "Theorem 1 (2)"
	Claim string // in our words
	Value string // the paper's, as it prints it
	// Entries are those of the catalog that judge it. One that the catalog lacks will judge it once it is there.
	Entries []string
	// Why says why no entry judges it, or, after "reduced:", why entries judge no more
	// than a stand-in for it; empty where they judge it as it is.
	Why string
}

//go:embed claims.csv
var rowsCSV string

var header = []string{"id", "paper", "where", "claim", "value", "entries", "why"}

// Reasons are the words before the colon of a Why: what is no claim, what is said as
// background, what cannot be tested here, definitions that a test of the code holds,
// whose folder and name follow, and what is judged on a stand-in only.
var Reasons = []string{"no claim", "background", "not testable here", testReason, reducedReason}

const testReason, reducedReason = "test", "reduced"

// Rows lists all rows, paper by paper. It returns an error if the embedded list is not
// as it should be, which a test sees at once.
func Rows() ([]Row, error) { return allRows() }

var allRows = sync.OnceValues(func() ([]Row, error) { return parse(rowsCSV) })

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

// ByTest is the folder and the name of the test that holds a row; empty where none does.
func (r Row) ByTest() (folder, name string) {
	if rest, ok := strings.CutPrefix(r.Why, testReason+": "); ok {
		folder, name, _ = strings.Cut(rest, " ")
	}
	return folder, name
}

// RowOf is the id of a row that a claim of an entry names, which may leave out the paper where it is the entry's:
// "thm1-eq2" is oymak2021/thm1-eq2 in oymak2021/theorem1.
func RowOf(entry, row string) string {
	if strings.Contains(row, "/") || strings.HasPrefix(row, "LI") || strings.HasPrefix(row, "RO") {
		return row
	}
	return path.Join(path.Dir(entry), row)
}

// Check is a claim of an entry at a scale, as one row's.
type Check struct {
	Entry string       `json:"entry"`
	Name  string       `json:"name"`
	Scale string       `json:"scale"`
	Ours  runs.Number  `json:"ours"`
	Lo    runs.Number  `json:"lo"`
	Hi    runs.Number  `json:"hi"`
	Holds runs.Verdict `json:"holds"`
	Note  string       `json:"-"`
}

// Verdict is what all checks of a row say together. The words are the same on every
// page, in every table and in every notebook.
type Verdict string

// The verdicts of a row. The first five speak of this implementation.
const (
	Holds        Verdict = "holds"
	Fails        Verdict = "does not hold"
	Inconclusive Verdict = "inconclusive" // the interval contains the threshold, or a part was not run
	Reduced      Verdict = "reduced"      // judged, at least in part, at a smaller size or on a stand-in
	NotRun       Verdict = "not run"      // a check exists, its trials do not
	PaperError   Verdict = "error in the paper"
	NotJudged    Verdict = "not judged" // no check exists: Line.Reason says why
)

// Verdicts lists all of them in the order of totals.
var Verdicts = []Verdict{Holds, Fails, Inconclusive, Reduced, NotRun, PaperError, NotJudged}

// Line is a row with what is known about it today.
type Line struct {
	Row
	Checks  []Check // of every scale that was looked at
	Verdict Verdict
	At      runs.Verdict // of a reduced scale: what it says there
	Best    *Check       // the check that decides; nil if there is none
	Reason  string       // why nothing is judged; else empty
	// Finding is the error in the paper that the row shows; empty unless Verdict is PaperError.
	Finding findings.Finding
}

// Ledger has the rows that were asked for.
type Ledger struct {
	Lines []Line
	Own   []Check // checks of this implementation, which judge no claim of a paper
	// others are rows of papers that were not asked for, judged by entries that were: an
	// entry's tally counts them, whatever is listed.
	others []Line
}

// Options choose what is looked at.
type Options struct {
	Paper string // beginning of a paper's name or of its folder, whatever the case: "li2021"; empty: all
	Scale string // only checks of this scale; empty: all
}

// settingScale is the scale of settings, which are those of the paper's.
const settingScale = catalog.Paper

// Read makes the ledger from the run store and the shipped records. It runs no trial. An entry with missing trials is
// not an error: its claims are not run. It returns an error if the store cannot be read, and if an entry that judges a
// row is not registered, because its rows would seem to have no check: import package papers.
func Read(ctx context.Context, o Options) (*Ledger, error) {
	all, err := Rows()
	if err != nil {
		return nil, err
	}
	rows := slices.DeleteFunc(slices.Clone(all), func(r Row) bool { return !o.has(r) })
	if len(rows) == 0 {
		papers := slices.Compact(study.Map(all, func(r Row) string { return r.Paper })) // which are in order
		return nil, catalog.Usagef("no paper is like %q: take one of %s", o.Paper, strings.Join(papers, ", "))
	}
	if err := registered(rows); err != nil {
		return nil, err
	}
	entries := needed(rows, o)
	others := slices.DeleteFunc(slices.Clone(all), func(r Row) bool { return o.has(r) || !r.of(entries) })
	found, err := readEntries(ctx, o, slices.DeleteFunc(catalog.All(), func(e catalog.Entry) bool {
		judges := func(r Row) bool { return slices.Contains(r.Entries, e.ID) }
		return !isOneOf(e.ID, entries) && !slices.ContainsFunc(others, judges)
	}))
	if err != nil {
		return nil, err
	}
	l := newLedger(append(rows, others...), found)
	l.Lines, l.others = l.Lines[:len(rows)], l.Lines[len(rows):]
	l.Own = slices.DeleteFunc(l.Own, func(c Check) bool { return !isOneOf(c.Entry, entries) })
	return l, nil
}

func isOneOf(id string, entries []catalog.Entry) bool {
	return slices.ContainsFunc(entries, func(e catalog.Entry) bool { return e.ID == id })
}

func (r Row) of(entries []catalog.Entry) bool {
	return slices.ContainsFunc(r.Entries, func(id string) bool { return isOneOf(id, entries) })
}

// newLedger sorts checks by the rows that they judge.
func newLedger(rows []Row, found []Found) *Ledger {
	byRow := map[string][]Check{}
	l := new(Ledger)
	for _, of := range found {
		for _, c := range of.Claims {
			check := Check{of.Entry, c.Name, of.Scale, c.Ours, c.Lo, c.Hi, c.Holds, c.Note}
			for _, row := range c.Rows {
				id := RowOf(of.Entry, row)
				byRow[id] = append(byRow[id], check)
			}
			if len(c.Rows) == 0 {
				l.Own = append(l.Own, check)
			}
		}
	}
	l.Own = largest(l.Own)
	for _, r := range rows {
		l.Lines = append(l.Lines, judge(r, byRow[r.ID]))
	}
	return l
}

// registered returns an error if an entry that judges one of the rows is not in the catalog.
func registered(rows []Row) error {
	for _, r := range rows {
		for _, id := range r.Entries {
			if _, err := catalog.Lookup(id); err != nil {
				return fmt.Errorf("the ledger needs the entries of every paper, and %s is not registered: "+
					"import _ \"github.com/nasml/lab/nasml/catalog/papers\"", id)
			}
		}
	}
	return nil
}

func (o Options) has(r Row) bool {
	return strings.HasPrefix(plain(r.Paper), plain(o.Paper))
}

// plain is a name in small letters and digits, as folders are: "Li+ 2021" is li2021.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, name)
}

// needed are the entries that judge rows, and those of the same papers that judge none.
func needed(rows []Row, o Options) []catalog.Entry {
	return slices.DeleteFunc(catalog.All(), func(e catalog.Entry) bool {
		judges := slices.ContainsFunc(rows, func(r Row) bool { return slices.Contains(r.Entries, e.ID) })
		return !judges && !strings.HasPrefix(plain(e.Paper), plain(o.Paper))
	})
}

// Found are the claims of an entry at a scale.
type Found struct {
	Entry, Scale string
	Claims       []runs.Claim
}

// Find lists the claims of every entry at every scale of which something is stored
// or shipped, and the settings of the paper's.
func Find(ctx context.Context) ([]Found, error) { return readEntries(ctx, Options{}, catalog.All()) }

// readEntries looks at every entry at every scale, as many at a time as there are
// cores, in an order that does not depend on which ends first.
func readEntries(ctx context.Context, o Options, entries []catalog.Entry) ([]Found, error) {
	store, err := runs.FromContext(ctx)
	if err != nil {
		return nil, err
	}
	found := make([][]Found, len(entries))
	ctx = runs.WithStore(runs.KeepShipped(runs.WithProgress(ctx, runs.Silent)), store)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, e := range entries {
		group.Go(func() (err error) {
			found[i], err = readEntry(ctx, o, e)
			return cmp.Or(err, ctx.Err())
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return slices.Concat(found...), nil
}

// readEntry looks at one entry. It returns an error if what is stored cannot be read: a
// ledger without it would be false.
func readEntry(ctx context.Context, o Options, e catalog.Entry) (all []Found, err error) {
	if e.Settings != nil && (o.Scale == "" || o.Scale == settingScale) {
		all = append(all, Found{e.ID, settingScale, e.Settings()})
	}
	for _, s := range e.AllSettings() {
		if o.Scale != "" && o.Scale != s.Scale {
			continue
		}
		r, err := stored(ctx, e, s)
		switch {
		case err == nil:
			all = append(all, Found{e.ID, s.Scale, r.Check()})
		case !NotThere(err):
			return nil, fmt.Errorf("%s at the scale %s: %w", e.ID, s.Scale, err)
		}
	}
	return all, nil
}

// stored runs an entry where nothing has to be computed: with StoredOnly where it
// has that, so that a part of its trials is enough, and else where all are there.
func stored(ctx context.Context, e catalog.Entry, s catalog.Setting) (catalog.Result, error) {
	only := append(slices.Clone(s.Set), "StoredOnly=true")
	if _, err := e.Params(s.Scale, only); err == nil {
		return e.Run(catalog.Looking(ctx), s.Scale, only)
	}
	return e.Stored(ctx, s)
}

// NotThere reports whether err means that trials, or the data that tell which they are, are
// not there. Every other error means that they may be, and could not be read.
func NotThere(err error) bool {
	var open *catalog.OpenError
	return errors.As(err, &open) || errors.Is(err, data.ErrMissing) || errors.Is(err, data.ErrIncomplete)
}
