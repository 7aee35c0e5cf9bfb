package plots

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// wideTable has more columns than two columns of a page hold.
func wideTable(columns int) *Table {
	t := &Table{Columns: []Column{{Header: "method"}}, Blocks: []Block{{Title: "searched on CIFAR-10"}}}
	row := []Entry{{Text: "PC-DARTS (bilevel)"}}
	for i := range columns {
		t.Columns = append(t.Columns, Column{Header: fmt.Sprintf("space %d\ntest", i), Group: "error in %"})
		row = append(row, Entry{Text: "93.92 ± 0.30"})
	}
	t.Blocks[0].Rows = [][]Entry{row, row}
	return t
}

func TestTablesFitTheirPage(t *testing.T) {
	for columns, want := range map[int][]string{
		2:  {"\\begin{table}"},
		6:  {"\\begin{table*}"},
		14: {"\\begin{table*}", "\\resizebox{\\linewidth}{!}{\\begin{tabular}", "\\end{tabular}}\n"},
	} {
		f := tableFigure(ICML.Column(), wideTable(columns))
		text, err := f.LaTeX()
		require.NoError(t, err)
		for _, part := range want {
			require.Contains(t, string(text), part, "%d columns", columns)
		}
		require.Equal(t, columns > 10, strings.Contains(string(text), "resizebox"), "%d columns", columns)
	}
	f := tableFigure(NeurIPS, wideTable(6))
	text, err := f.LaTeX()
	require.NoError(t, err)
	require.Contains(t, string(text), "\\begin{table}", "a page of one column has no other")
}

// What is exported compiles in a paper of one column and of two, nothing is wider than
// its place, and the caption is there once.
func TestPapersCompile(t *testing.T) {
	if _, err := exec.LookPath("pdflatex"); err != nil {
		t.Skip("needs pdflatex, of texlive-latex-base and texlive-latex-recommended")
	}
	for name, page := range map[string]struct {
		style Style
		class string
	}{
		"two columns": {ICML.Column(), "\\documentclass[10pt,twocolumn]{article}\n" +
			"\\usepackage[textwidth=6.75in,textheight=9in,columnsep=0.25in]{geometry}\n"},
		"one column": {NeurIPS, "\\documentclass[10pt]{article}\n" +
			"\\usepackage[textwidth=5.5in,textheight=9in]{geometry}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			body := ""
			for i, f := range []Figure{
				figure2(page.style, Bands), tableFigure(page.style, wideTable(2)),
				tableFigure(page.style, wideTable(6)), tableFigure(page.style, wideTable(14)),
			} {
				f.Name, f.Caption = fmt.Sprint("f", i), fmt.Sprintf("Mark%d: a_b at 5 %% \\$ of $‖θ_α‖_2$, \"so\".", i)
				_, err := f.Export(dir, Export{Formats: []string{"pdf", "tex"}})
				if i == 0 {
					require.NoError(t, err)
				}
				body += fmt.Sprintf("\\input{f%d}\n", i)
			}
			for _, caption := range []string{
				`\caption[short]{\input{f0.caption}}`, `\caption{\protect\input{f0.caption}}`,
			} {
				body += `\begin{figure}\includegraphics[width=\columnwidth]{f0}` + caption + "\\end{figure}\n"
			}
			text := compile(t, dir, page.class+
				"\\usepackage{amsmath,amssymb,booktabs,graphicx}\n\\begin{document}\nText.\n"+
				body+"\\listoffigures\n\\end{document}\n")
			for i := range 4 {
				require.Contains(t, text, fmt.Sprintf("Mark%d: a", i))
			}
		})
	}
}

// compile returns the words of a document, where pdftotext is there.
func compile(t *testing.T, dir, document string) string {
	require.NoError(t, os.WriteFile(filepath.Join(dir, "paper.tex"), []byte(document), 0o600))
	for range 2 { // for the list of figures
		cmd := exec.Command("pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex")
		cmd.Dir = dir
		log, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", log)
		require.NotContains(t, string(log), "Overfull \\hbox")
	}
	text, err := exec.Command("pdftotext", filepath.Join(dir, "paper.pdf"), "-").Output()
	if err != nil {
		t.Skip("needs pdftotext, of poppler-utils, to read what was compiled")
	}
	return string(text)
}
