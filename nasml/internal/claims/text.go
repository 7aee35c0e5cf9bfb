package claims

import (
	"bufio"
	_ "embed" // the page
	"encoding/csv"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
)

// Text is how WriteText sets the ledger.
type Text struct {
	Width  int  // columns, at least 60
	Colour bool // verdicts in the terminal's colours
}

var colours = map[Verdict]string{
	Holds: "32", Fails: "31;1", Inconclusive: "33", Reduced: "36", NotRun: "35", PaperError: "34", NotJudged: "2",
}

// WriteText lists the rows paper by paper, each with its id, its verdict, the claim, and below it the paper's value,
// ours, and the check that decides; totals come last.
func (l *Ledger) WriteText(w io.Writer, t Text) error {
	out := bufio.NewWriter(w)
	width := max(60, t.Width)
	for _, p := range l.Papers() {
		_, _ = fmt.Fprintf(out, "%s\n\n", t.paint("1", p.Name))
		indent := 0
		for _, line := range p.Lines {
			indent = max(indent, utf8.RuneCountInString(line.Short())+2)
		}
		for _, line := range p.Lines {
			t.line(out, line, indent, width)
		}
		_, _ = fmt.Fprintln(out)
	}
	if err := l.WriteTotals(out); err != nil {
		return err
	}
	return out.Flush()
}

// verdictWidth has room for the words of a verdict; "reduced: inconclusive" takes two
// lines, and so does "error in the paper".
const verdictWidth = 13

// line sets one row: id and verdict have columns of their own, and long texts hang.
func (t Text) line(w io.Writer, l Line, indent, width int) {
	left := indent + verdictWidth + 2
	verdict := l.wordLines()
	text := Wrap(l.Claim, width-left)
	claims := len(text)
	text = append(text, Wrap(l.detail(), width-left)...)
	for i := range max(len(text), len(verdict)) {
		first, second, third := "", at(verdict, i), at(text, i)
		if i == 0 {
			first = l.Short()
		}
		if i >= claims {
			third = t.paint("2", third)
		}
		row := fmt.Sprintf("%-*s", indent, first) + t.paint(colours[l.Verdict], second) +
			strings.Repeat(" ", max(0, verdictWidth-utf8.RuneCountInString(second))) + "  " + third
		_, _ = fmt.Fprintln(w, strings.TrimRight(row, " "))
	}
}

// wordLines breaks the verdict after its colon, and where it is wider than its column.
func (l Line) wordLines() []string {
	if first, second, ok := strings.Cut(l.Word(), ": "); ok {
		return []string{first + ":", second}
	}
	return Wrap(l.Word(), verdictWidth)
}

// Short is the id without the folder that all ids of a paper have.
func (r Row) Short() string { return r.ID[strings.LastIndex(r.ID, "/")+1:] }

func (l Line) detail() string {
	parts := []string{l.Where}
	if l.Value != "" {
		parts = append(parts, "paper "+l.Value)
	}
	if ours := l.Ours(); ours != "" {
		parts = append(parts, "ours "+ours)
	}
	for _, part := range []string{l.Check(), l.Reason} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, " · ")
}

func at(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return ""
}

func (t Text) paint(colour, text string) string {
	if !t.Colour || text == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// Wrap breaks a text between words into lines of at most width columns, 0: of any; a longer word has a line of its own.
func Wrap(text string, width int) (lines []string) {
	for _, word := range strings.Fields(text) {
		last := len(lines) - 1
		if last < 0 || width > 0 && utf8.RuneCountInString(lines[last])+1+utf8.RuneCountInString(word) > width {
			lines = append(lines, word)
			continue
		}
		lines[last] += " " + word
	}
	return lines
}

// WriteTotals writes how many rows of every paper have which verdict, and below it the same of every entry in words.
func (l *Ledger) WriteTotals(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	heads := [2][]string{{"rows"}, {""}}
	for _, v := range append(slices.Clone(Verdicts), "all") {
		words := append([]string{""}, Wrap(string(v), len(PaperError)/2)...) // all take two lines at most
		heads[0] = append(heads[0], words[len(words)-2])
		heads[1] = append(heads[1], words[len(words)-1])
	}
	for _, head := range heads {
		_, _ = fmt.Fprintln(table, strings.Join(append(head, ""), "\t"))
	}
	for _, t := range l.Totals() {
		cells := []string{t.Paper}
		for _, v := range Verdicts {
			cells = append(cells, fmt.Sprint(t.Count[v]))
		}
		_, _ = fmt.Fprintln(table, strings.Join(append(cells, fmt.Sprint(t.All), ""), "\t"))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	entries := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(entries)
	for _, t := range l.Tallies() {
		_, _ = fmt.Fprintf(entries, "%s\t%s\n", t.Entry, t)
	}
	return entries.Flush()
}

// jsonLine is a row as the command's contract has it.
type jsonLine struct {
	ID     string  `json:"id"`
	Paper  string  `json:"paper"`
	Where  string  `json:"where"`
	Claim  string  `json:"claim"`
	Value  string  `json:"value"`
	Checks []Check `json:"checks"`
	Reason string  `json:"reason"`
}

// WriteJSON writes a list of all rows with all their checks.
func (l *Ledger) WriteJSON(w io.Writer) error {
	all := []jsonLine{}
	for _, line := range l.Lines {
		all = append(all, jsonLine{
			line.ID, line.Paper, line.Where, line.Claim, line.Value, append([]Check{}, line.Checks...), line.Reason,
		})
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(all)
}

// WriteCSV writes a line for every check, and one for every row without any.
func (l *Ledger) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	head := []string{"id", "paper", "where", "claim", "value", "verdict", "entry", "name", "scale", "ours", "lo", "hi",
		"holds", "reason"}
	if err := out.Write(head); err != nil {
		return err
	}
	for _, line := range l.Lines {
		row := []string{line.ID, line.Paper, line.Where, line.Claim, line.Value, line.Word()}
		for _, c := range line.Checks {
			cells := []string{
				c.Entry, c.Name, c.Scale, number(c.Ours), number(c.Lo), number(c.Hi), string(c.verdict()), line.Reason,
			}
			if err := out.Write(append(slices.Clone(row), cells...)); err != nil {
				return err
			}
		}
		if len(line.Checks) == 0 {
			if err := out.Write(append(row, "", "", "", "", "", "", "", line.Reason)); err != nil {
				return err
			}
		}
	}
	out.Flush()
	return out.Error()
}

func number(x runs.Number) string {
	if !x.Valid() {
		return ""
	}
	return fmt.Sprintf("%.6g", float64(x))
}

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
	papers := study.By(l.Lines, func(line Line) string { return line.Paper })
	return study.Map(papers, func(lines []Line) Paper { return Paper{lines[0].Paper, lines} })
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
	if n := len(largest(l.Checks)) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more)", n)
	}
	return fmt.Sprintf("%s, %s scale: %s%s", l.Best.Entry, l.Best.Scale, l.Best.Name, more)
}
