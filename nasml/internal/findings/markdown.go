package findings

import (
	"fmt"
	"html"
	"path"
	"strings"
)

func (f Finding) lines() [][2]string {
	var tests []string
	for _, t := range f.Tests {
		tests = append(tests, t.String())
	}
	by := strings.Join(tests, ", ")
	if len(f.Claims) > 0 {
		var claims []string
		for _, c := range f.Claims {
			claims = append(claims, c.String())
		}
		by += "; claims that fail: " + strings.Join(claims, "; ")
	}
	return [][2]string{
		{"Printed", f.Printed}, {"True", f.True}, {"Shown", f.Shown}, {"Test", by}, {"Follows", f.Follows},
	}
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
