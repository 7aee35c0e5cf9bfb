package runs

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"html"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/nasml/lab/nasml/trial"
)

// Number is a float64 that may not apply, see [trial.Number].
type Number = trial.Number

// None is the number that does not apply.
var None = trial.None

// Verdict is whether a claim holds. The zero value is that nothing is known.
type Verdict int

// The verdicts, in JSON null, true and false.
const (
	NotKnown Verdict = iota // not run, or the numbers say neither yes nor no
	Holds
	Fails
)

// Judge is [Holds] or [Fails].
func Judge(holds bool) Verdict {
	if holds {
		return Holds
	}
	return Fails
}

// String is the verdict in words. What is not known is inconclusive; that a claim was not
// run says the claim, which then has no number.
func (v Verdict) String() string {
	switch v {
	case Holds:
		return "holds"
	case Fails:
		return "does not hold"
	}
	return "inconclusive"
}

// MarshalJSON writes null, true or false.
func (v Verdict) MarshalJSON() ([]byte, error) {
	switch v {
	case NotKnown:
		return []byte("null"), nil
	case Holds, Fails:
		return strconv.AppendBool(nil, v == Holds), nil
	}
	return nil, fmt.Errorf("verdict %d, expected NotKnown, Holds or Fails", int(v))
}

// UnmarshalJSON reads null, true or false.
func (v *Verdict) UnmarshalJSON(data []byte) error {
	var holds *bool
	if err := json.Unmarshal(data, &holds); err != nil {
		return err
	}
	*v = NotKnown
	if holds != nil {
		*v = Judge(*holds)
	}
	return nil
}

// Claim is one claim of a paper with our finding beside it. A number that does not apply is [None].
type Claim struct {
	Name      string `json:"name"`
	Source    string `json:"source"`    // where the paper says it, "Oymak+ 2021, Fig. 2(a)"
	Paper     Number `json:"paper"`     // the paper's number
	Ours      Number `json:"ours"`      // ours
	Lo        Number `json:"lo"`        // confidence interval of ours, from
	Hi        Number `json:"hi"`        // to
	Tolerance Number `json:"tolerance"` // how far ours may be from the paper's, in its unit
	// Allowed says in words where ours has to be: "CI within ±0.1 of -0.5", "at most 1", "above 0",
	// "every case at most 1". A tolerance alone does not tell if it has two sides.
	Allowed string  `json:"allowed,omitempty"`
	Holds   Verdict `json:"holds"`
	Note    string  `json:"note,omitempty"` // how it was judged, or why it was not
	// Verdict is the verdict in words where it depends on more than the numbers, such as "reduced: holds" of a claim
	// that was judged at a smaller size than the paper's. Empty: the word of Holds.
	Verdict string `json:"-"`

	// Rows are those of the list of the papers' claims that it judges, by their
	// ids; a claim of ours judges none. A reader does not see them in a table.
	Rows []string `json:"rows,omitempty"`
}

// NewClaim is a claim of which nothing is known yet: its numbers are None. The name may begin with the rows of the list
// of the papers' claims that it judges, in brackets, which are no part of it: "[RO001 RO015] α ranks the operations".
func NewClaim(name, source string) Claim {
	rows, name := cutRows(name)
	return Claim{
		Name: name, Source: source, Paper: None, Ours: None, Lo: None, Hi: None, Tolerance: None, Rows: rows,
	}
}

// cutRows parts a name from the rows before it.
func cutRows(text string) (rows []string, name string) {
	inside, name, closed := strings.Cut(strings.TrimPrefix(text, "["), "] ")
	if !closed || !strings.HasPrefix(text, "[") {
		return nil, text
	}
	return strings.Fields(inside), name
}

// ClaimTable lists claims as aligned plain text, notes below.
func ClaimTable(claims []Claim) string {
	var out bytes.Buffer
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, strings.Join(claimHeader, "\t"))
	for _, c := range claims {
		_, _ = fmt.Fprintln(w, strings.Join(c.cells(), "\t"))
	}
	_ = w.Flush() // into a buffer
	for _, c := range claims {
		if c.Note != "" {
			fmt.Fprintf(&out, "  %s: %s\n", c.Name, c.Note)
		}
	}
	return out.String()
}

// ClaimHTML lists claims as an HTML table, for a notebook or a page: a colour and a sign for the verdict, every source
// once with all of its claims below it, in the order of their first, and notes that open. A page can set its own
// colours, --holds, --fails, --inconclusive, --reduced, --open and --paper.
func ClaimHTML(claims []Claim) string {
	var out strings.Builder
	out.WriteString("<table>\n<thead><tr>")
	for _, head := range claimHeader[:len(claimHeader)-1] {
		fmt.Fprintf(&out, `<th style="text-align:left">%s</th>`, head)
	}
	out.WriteString("</tr></thead>\n<tbody>\n")
	source := ""
	for _, c := range bySource(claims) {
		if c.Source != source {
			source = c.Source
			fmt.Fprintf(&out, "<tr><th colspan=\"%d\" style=\"text-align:left\">%s</th></tr>\n",
				len(claimHeader)-1, html.EscapeString(source))
		}
		out.WriteString("<tr>")
		for i, cell := range c.cells()[:len(claimHeader)-1] {
			cell = html.EscapeString(cell)
			style := "text-align:left;white-space:nowrap"
			switch claimHeader[i] {
			case "claim":
				cell, style = c.opened(html.EscapeString(c.shown())), "text-align:left"
			case "verdict":
				first, _, _ := strings.Cut(c.verdict(), ":")
				look := verdictLooks[first]
				cell = fmt.Sprintf(`<span style="color:var(--%s, %s)">%s %s</span>`, look.class, look.color, look.sign,
					cell)
			default:
				cell = strings.ReplaceAll(cell, "-", "−")
			}
			fmt.Fprintf(&out, `<td style="%s">%s</td>`, style, cell)
		}
		out.WriteString("</tr>\n")
	}
	out.WriteString("</tbody>\n</table>\n")
	return out.String()
}

func bySource(claims []Claim) []Claim {
	first := map[string]int{}
	for i, c := range claims {
		if _, ok := first[c.Source]; !ok {
			first[c.Source] = i
		}
	}
	sorted := slices.Clone(claims)
	slices.SortStableFunc(sorted, func(a, b Claim) int { return cmp.Compare(first[a.Source], first[b.Source]) })
	return sorted
}

// shown is the name below its source: whose claim it is says the source.
func (c Claim) shown() string {
	if strings.HasPrefix(c.Source, "ours") {
		return strings.Replace(c.Name, "own: ", "", 1)
	}
	return c.Name
}

// opened is the name with the note behind it, which a reader opens.
func (c Claim) opened(name string) string {
	if c.Note == "" {
		return name
	}
	return fmt.Sprintf("<details><summary>%s</summary><small>%s</small></details>", name, html.EscapeString(c.Note))
}

// verdictLooks are the sign, the colour and the class of each verdict. Every colour has
// a contrast of 4.5 : 1 on white and on JupyterLab's black.
var verdictLooks = map[string]struct{ sign, color, class string }{
	Holds.String():       {"✓", "#1f8a4c", "holds"},
	Fails.String():       {"✗", "#d73a35", "fails"},
	NotKnown.String():    {"?", "#a86e00", "inconclusive"},
	"reduced":            {"◐", "#2a7cad", "reduced"},
	notRun:               {"–", "#767676", "open"},
	"error in the paper": {"†", "#8f63b6", "paper"},
}

const notRun = "not run"

var claimHeader = []string{"claim", "paper", "ours", "interval", "allowed", "verdict", "source"}

func (c Claim) cells() []string {
	interval := "–"
	if c.Lo.Valid() || c.Hi.Valid() {
		interval = fmt.Sprintf("[%v, %v]", c.Lo, c.Hi)
	}
	return []string{c.Name, c.Paper.String(), c.Ours.String(), interval, c.allowed(), c.verdict(), c.Source}
}

// Ran reports whether the claim has a number or a verdict.
func (c Claim) Ran() bool { return c.Ours.Valid() || c.Holds != NotKnown }

func (c Claim) verdict() string {
	if c.Verdict == "" && !c.Ran() {
		return notRun
	}
	return cmp.Or(c.Verdict, c.Holds.String())
}

// allowed is where ours has to be; of a claim that does not say so, its tolerance.
func (c Claim) allowed() string {
	if c.Allowed == "" && c.Tolerance.Valid() {
		if !c.Paper.Valid() {
			return "within ±" + c.Tolerance.String()
		}
		return WithinOf(float64(c.Paper), float64(c.Tolerance))
	}
	return cmp.Or(c.Allowed, "–")
}

// WithinOf says in words that a number is at most tolerance away from another.
func WithinOf(number, tolerance float64) string {
	return fmt.Sprintf("within ±%.3g of %.6g", tolerance, number)
}
