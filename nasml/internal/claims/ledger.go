package claims

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/sync/errgroup"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/internal/findings"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
)

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
	Reduced      Verdict = "reduced"      // judged, but at least in part at a smaller size than the paper's
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
	// Finding is the error in the paper that the row shows; empty unless Verdict is
	// PaperError.
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

// Read makes the ledger from the run store and the shipped records. It runs no trial.
// An entry with missing trials is not an error: its claims are not run. It returns an
// error if the store cannot be read, and if an entry that judges a row is not
// registered, because its rows would seem to have no check: import package papers.
func Read(ctx context.Context, o Options) (*Ledger, error) {
	rows, err := Rows()
	if err != nil {
		return nil, err
	}
	all := rows
	rows = slices.DeleteFunc(slices.Clone(all), func(r Row) bool { return !o.has(r) })
	if len(rows) == 0 {
		var papers []string
		for _, of := range study.By(all, func(r Row) string { return r.Paper }) {
			papers = append(papers, of[0].Paper)
		}
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

// isOneOf reports whether id is that of one of the entries.
func isOneOf(id string, entries []catalog.Entry) bool {
	return slices.ContainsFunc(entries, func(e catalog.Entry) bool { return e.ID == id })
}

// of reports whether one of the entries judges the row.
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

// registered returns an error if an entry that judges one of the rows is not in the
// catalog.
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

// has reports whether a row is of the paper that was asked for.
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
	for _, s := range settings(e) {
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

// settings are those that an entry is looked at: what is shipped, and the two scales
// that every entry has.
func settings(e catalog.Entry) []catalog.Setting {
	all := slices.Clone(e.Shipped)
	for _, scale := range []string{catalog.Quick, catalog.Paper} {
		if !slices.ContainsFunc(all, func(s catalog.Setting) bool { return s.Scale == scale && len(s.Set) == 0 }) {
			all = append(all, catalog.Setting{Scale: scale})
		}
	}
	return all
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
