package claims

import (
	_ "embed" // the page
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/nasml/lab/nasml/study"
)

//go:embed page.html
var pageHTML string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"class": func(v Verdict) string { return strings.ReplaceAll(string(v), " ", "-") },
}).Parse(pageHTML))

// WriteHTML writes the ledger as one page that needs nothing else: light or dark as
// the reader's system has it, and readable from a telephone's width on.
func (l *Ledger) WriteHTML(w io.Writer) error {
	return page.ExecuteTemplate(w, "document", l)
}

// HTML is the ledger as a part of a page, for a notebook.
func (l *Ledger) HTML() (string, error) {
	var out strings.Builder
	err := page.ExecuteTemplate(&out, "part", l)
	return out.String(), err
}

// Paper is the rows of one paper.
type Paper struct {
	Name  string
	Lines []Line
}

// Papers are the rows paper by paper.
func (l *Ledger) Papers() []Paper {
	var all []Paper
	for _, lines := range study.By(l.Lines, func(line Line) string { return line.Paper }) {
		all = append(all, Paper{lines[0].Paper, lines})
	}
	return all
}

// Verdicts are the columns of the totals.
func (*Ledger) Verdicts() []Verdict { return Verdicts }

// Of counts the rows of a verdict.
func (t Total) Of(v Verdict) int { return t.Count[v] }

// Check is the check that decides, in words; empty if there is none.
func (l Line) Check() string {
	if l.Best == nil {
		return ""
	}
	more := ""
	if n := l.distinct() - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more)", n)
	}
	return fmt.Sprintf("%s, %s scale: %s%s", l.Best.Entry, l.Best.Scale, l.Best.Name, more)
}
