// Package prose checks what the project says to people against rules.txt: pages, the notebooks' markdown, doc comments
// and messages.
package prose

import (
	"encoding/json"
	"fmt"
	"go/scanner"
	"go/token"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

type rule struct {
	bad    *regexp.Regexp
	better string
}

func rules(t *testing.T) (rs []rule) {
	text, err := os.ReadFile("rules.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if bad, better, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok && !strings.HasPrefix(line, "#") {
			spaced := strings.ReplaceAll(bad, " ", `\s+`)
			rs = append(rs, rule{regexp.MustCompile(`(?i)\b(?:` + spaced + `)\b`), better})
		}
	}
	return rs
}

// offences lists what the rules find in a text, with its line in the file.
func offences(rs []rule, file string, line int, text string) (found []string) {
	for _, r := range rs {
		for _, at := range r.bad.FindAllStringIndex(text, -1) {
			found = append(found, fmt.Sprintf("%s:%d: %q: better: %s", file, line+strings.Count(text[:at[0]], "\n"),
				strings.Join(strings.Fields(text[at[0]:at[1]]), " "), r.better))
		}
	}
	return found
}

func TestProse(t *testing.T) {
	rs := rules(t)
	out, err := exec.CommandContext(t.Context(), "git", "ls-files", "../../*.md", "../../*.ipynb", "../../*.go").Output()
	if err != nil {
		t.Skip("no git checkout: ", err)
	}
	for name := range strings.FieldsSeq(string(out)) {
		text, err := os.ReadFile(name)
		if err != nil || strings.Contains(name, "testdata") {
			continue
		}
		var found []string
		switch {
		case strings.HasSuffix(name, ".md"):
			found = offences(rs, name, 1, string(text))
		case strings.HasSuffix(name, ".ipynb"):
			found = notebook(t, rs, name, text)
		default:
			found = goFile(rs, name, text)
		}
		for _, f := range found {
			t.Error(f)
		}
	}
}

// notebook checks markdown cells; its lines are those of the cell.
func notebook(t *testing.T, rs []rule, name string, text []byte) (found []string) {
	var n struct {
		Cells []struct {
			Type   string   `json:"cell_type"`
			ID     string   `json:"id"`
			Source []string `json:"source"`
		} `json:"cells"`
	}
	if err := json.Unmarshal(text, &n); err != nil {
		t.Fatal(name, err)
	}
	for _, c := range n.Cells {
		if c.Type == "markdown" {
			found = append(found, offences(rs, name+", cell "+c.ID, 1, strings.Join(c.Source, ""))...)
		}
	}
	return found
}

var slashes = regexp.MustCompile(`(?m)^\s*//`)

// goFile checks comments, and strings of tests aside, messages. Neighbouring line comments are one text.
func goFile(rs []rule, name string, text []byte) (found []string) {
	files := token.NewFileSet()
	f := files.AddFile(name, -1, len(text))
	var s scanner.Scanner
	s.Init(f, text, nil, scanner.ScanComments)
	comment, from, last := "", 0, 0
	flush := func() {
		found = append(found, offences(rs, name, from, slashes.ReplaceAllString(comment, ""))...)
		comment = ""
	}
	for {
		pos, tok, lit := s.Scan()
		switch line := f.Line(pos); {
		case tok == token.EOF:
			flush()
			return found
		case tok == token.COMMENT && comment != "" && line == last+1:
			comment, last = comment+"\n"+lit, line
		case tok == token.COMMENT:
			flush()
			comment, from, last = lit, line, line
		case tok == token.STRING && !strings.HasSuffix(name, "_test.go"):
			found = append(found, offences(rs, name, line, lit)...)
		}
	}
}

// Each rule finds its own phrase across a line break, and nothing in plain English.
func TestRules(t *testing.T) {
	rs := rules(t)
	if got := offences(rs, "x.md", 1, "first line\nIt is computed\nanew where there\nis no record."); len(got) != 2 {
		t.Error(got)
	}
	if got := offences(rs, "x.md", 1, "It returns an error if a parameter is invalid."); len(got) != 0 {
		t.Error(got)
	}
}
