// Package findings lists what is wrong in the four papers and in their authors'
// programs, each in five lines: what is printed, what is true, a counterexample or
// the constant that works, the test that shows it, and what follows for the paper.
//
// Only what can be shown is listed: a proof, a counterexample at the paper's own
// assumptions, the paper's own arithmetic, or a comparison with the program. A number
// that this library fails to reproduce is no finding: it "does not hold".
//
// A claim that fails is the paper's error if [OfClaim] finds it; otherwise it is this library's, or one of scale. The
// package imports nothing of ours, so that ledger, pages and notebooks can all use it.
package findings

import (
	"embed"
	"fmt"
	"html"
	"path"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

// Kind is whose error a finding is.
type Kind string

// The two kinds.
const (
	Paper Kind = "paper" // the paper is wrong
	Code  Kind = "code"  // the authors' program does not do what the paper says
)

// Finding is one error.
type Finding struct {
	ID    string // "oymak2021/lemma2-joint-convexity", the anchor on the page
	Kind  Kind
	Paper string // as in the ledger: "Oymak+ 2021"
	Where string // "Lemma 2"; for code the program, its commit and file
	Title string

	Printed string // what the paper says, or what the program should do
	True    string `yaml:"truth"` // what is true, or what the program does
	Shown   string // the counterexample or the constant that works, in numbers
	Tests   []Test // the tests that show it
	Follows string // what follows for the paper's conclusion

	// Notebook shows it in full, a path from the root of the repository; may be empty.
	Notebook string
	// Rows are the rows of the ledger whose failure it explains. A row can be
	// judged by other checks too, which fail for other reasons: see Claims.
	Rows []string
	// Claims are the claims of entries that fail because of the error, and not because of this library.
	Claims []Claim
}

// Test names a test function and the folder it is in.
type Test struct{ Folder, Name string }

// String is "nasml/oymak2021 TestLemma2Run".
func (t Test) String() string { return t.Folder + " " + t.Name }

// Claim names claims of an entry by a prefix, without the rows in brackets.
type Claim struct{ Entry, Name string }

// String is "oymak2021/lemma2: as printed".
func (c Claim) String() string { return c.Entry + ": " + c.Name }

//go:embed papers.yaml programs.yaml
var texts embed.FS

// All lists the findings by paper, those in papers before those in programs.
var All = sync.OnceValue(func() (all []Finding) {
	for _, name := range []string{"papers.yaml", "programs.yaml"} {
		file, _ := texts.Open(name) // what is embedded can be read
		decoder := yaml.NewDecoder(file)
		decoder.KnownFields(true)
		var some []Finding
		if err := decoder.Decode(&some); err != nil {
			panic(fmt.Errorf("%s: %w", name, err)) // a test sees it
		}
		all = append(all, some...)
	}
	return all
})

// Of returns the finding that explains why a row of the ledger fails, if any. For a single check, see [OfClaim].
func Of(row string) (Finding, bool) {
	return first(func(f Finding) bool { return slices.Contains(f.Rows, row) })
}

// OfClaim returns the finding that makes a claim of an entry fail, if any, by its printed name.
func OfClaim(entry, name string) (Finding, bool) {
	return first(func(f Finding) bool {
		return slices.ContainsFunc(f.Claims, func(c Claim) bool {
			return c.Entry == entry && strings.HasPrefix(name, c.Name)
		})
	})
}

func first(is func(Finding) bool) (f Finding, ok bool) {
	if i := slices.IndexFunc(All(), is); i >= 0 {
		return All()[i], true
	}
	return f, false
}

func (f Finding) lines() [][2]string {
	by := joined(f.Tests, ", ")
	if len(f.Claims) > 0 {
		by += "; claims that fail: " + joined(f.Claims, "; ")
	}
	return [][2]string{
		{"Printed", f.Printed}, {"True", f.True}, {"Shown", f.Shown}, {"Test", by}, {"Follows", f.Follows},
	}
}

func joined[T fmt.Stringer](all []T, between string) string {
	var texts []string
	for _, x := range all {
		texts = append(texts, x.String())
	}
	return strings.Join(texts, between)
}

func sections() (titles []string, parts map[string][]Finding) {
	parts = map[string][]Finding{}
	for _, f := range All() {
		title := f.Paper
		if f.Kind == Code {
			title = "The authors' programs"
		}
		if parts[title] == nil {
			titles = append(titles, title)
		}
		parts[title] = append(parts[title], f)
	}
	return titles, parts
}

const intro = `# Findings: what is wrong in the papers and in their programs

Each finding has five lines: what is printed, what is true, what shows it, the test that holds it, and what follows ` +
	`for the paper. Only what can be shown is listed: a proof, a counterexample at the paper's own assumptions, the ` +
	`paper's own arithmetic, or a comparison with the program. A number that this library does not reproduce is no ` +
	`finding; the ledger of claims says that it does not hold.

`

// Markdown is all findings as a page of the guide, notebooks/guide/findings.md.
func Markdown() string {
	var out strings.Builder
	out.WriteString(intro)
	titles, parts := sections()
	for _, title := range titles {
		fmt.Fprintf(&out, "## %s\n\n", title)
		for _, f := range parts[title] {
			fmt.Fprintf(&out, "<a id=\"%s\"></a>\n\n### %s\n\n%s", f.ID, f.Title, escape(f.place()))
			fmt.Fprintf(&out, " · [notebook](../%s)", strings.TrimPrefix(f.Notebook, "notebooks/"))
			if len(f.Rows) > 0 {
				fmt.Fprintf(&out, " · claims %s", strings.Join(f.Rows, ", "))
			}
			out.WriteString("\n\n")
			for _, line := range f.lines() {
				fmt.Fprintf(&out, "- **%s.** %s\n", line[0], escape(line[1]))
			}
			out.WriteString("\n")
		}
	}
	return strings.TrimRight(out.String(), "\n") + "\n"
}

// HTML is all findings as a part of a page in the folder notebooks.
func HTML() string {
	var out strings.Builder
	titles, parts := sections()
	for _, title := range titles {
		fmt.Fprintf(&out, "<h3>%s</h3>\n", html.EscapeString(title))
		for _, f := range parts[title] {
			fmt.Fprintf(&out, "<details id=\"%s\"><summary><b>%s</b> (%s)</summary>\n<ul>\n", f.ID,
				html.EscapeString(f.Title), html.EscapeString(f.place()))
			for _, line := range f.lines() {
				fmt.Fprintf(&out, "<li><b>%s.</b> %s</li>\n", line[0], html.EscapeString(line[1]))
			}
			link := strings.TrimPrefix(f.Notebook, "notebooks/")
			fmt.Fprintf(&out, "</ul>\n<p><a href=\"%s\">%s</a></p>\n</details>\n", link, path.Base(link))
		}
	}
	return out.String()
}

func (f Finding) place() string {
	if f.Kind == Code {
		return f.Paper + ": " + f.Where
	}
	return f.Where
}

func escape(text string) string {
	return strings.NewReplacer("_", `\_`, "*", `\*`, "<", "&lt;", "|", `\|`).Replace(text)
}
