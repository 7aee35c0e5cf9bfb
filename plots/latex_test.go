package plots

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestTablesAsLaTeX(t *testing.T) {
	f := Figure{
		Name: "t", Caption: "50 % of $θ_t$; a_b ≤ 1.", Panels: [][]Panel{{{Table: &Table{
			Columns: []Column{
				{Header: "method"}, {Header: "valid\n%", Group: "CIFAR-10"}, {Header: "test", Group: "CIFAR-10"},
			},
			Blocks: []Block{{Title: "top", Rows: [][]Entry{
				{{Text: "R&D"}, {Text: "93.9 ± 0.3", Bold: true}, {Text: "–"}},
			}}},
		}}}},
	}
	text, err := f.LaTeX()
	require.NoError(t, err)
	require.Equal(t, `% t (name=t); needs \usepackage{amsmath,amssymb,booktabs,graphicx}
\begin{table}
\centering
\caption{50 \% of $\theta _t$; a\_b $\le$ 1.}
\label{tab:t}
\small
\setlength{\tabcolsep}{4pt}
\begin{tabular}{lrr}
\toprule
\multicolumn{1}{c}{} & \multicolumn{2}{c}{CIFAR-10} \\
\cmidrule(lr){2-3}
 & valid &  \\
method & \% & test \\
\midrule
\multicolumn{3}{l}{\itshape top} \\
R\&D & \textbf{93.9 $\pm$ 0.3} & -- \\
\bottomrule
\end{tabular}
\end{table}
`, string(text))
	f.Panels[0] = append(f.Panels[0], Panel{Series: []Series{{X: []float64{1}, Y: []float64{1}}}})
	text, err = f.LaTeX()
	require.NoError(t, err)
	require.Contains(t, string(text), "the picture shows the tables, too: keep one\n\\begin{figure*}\n\\centering\n"+
		"\\includegraphics[width=6.75in]{t}\n\\caption{50")
	require.Equal(t, 1, strings.Count(string(text), "\\caption"), "once")
	f.Style = ICML.Column()
	text, err = f.LaTeX()
	require.NoError(t, err)
	require.Contains(t, string(text), "\\begin{figure}\n\\centering\n\\includegraphics[width=3.25in]{t}")
	require.Contains(t, string(text), "\\label{fig:t}\n\\end{figure}\n\\begin{table}")
	require.Contains(t, Formats(), "tex")
}

// What stands between the formulas of a paper keeps no sign that LaTeX would
// take for its own.
func TestLaTeXEscapes(t *testing.T) {
	require.Equal(t, `a\textbackslash{}b \{x\} \#1 \textasciitilde{}`, latexText(`a\b {x} #1 ~`))
	require.Equal(t, `$\|\theta \|_2$ and $\nabla$`, latexText(`$\|θ\|_2$ and ∇`))
}

func TestCaptionBesideTheFigure(t *testing.T) {
	dir := t.TempDir()
	f := Figure{Name: "f", Caption: "Of $θ$."}
	files, err := f.SaveCaption(dir)
	require.NoError(t, err)
	require.Equal(t, []string{dir + "/f.txt", dir + "/f.caption.tex"}, files)
	files, err = Figure{Name: "g"}.SaveCaption(dir)
	require.NoError(t, err)
	require.Empty(t, files, "it has none")
}

// requireLaTeX reads a document as LaTeX would: environments and braces are closed in
// turn, formulas are, every row has as many cells as the tabular columns, all
// is ASCII, and no sign stands alone that is LaTeX's own.
func requireLaTeX(t require.TestingT, text string) {
	_, body, _ := strings.Cut(text, "\n") // the first line is a comment
	for i, r := range body {
		require.Less(t, r, rune(128), "%q in %.40q", r, body[max(0, i-20):])
	}
	plain := strings.NewReplacer(`\\`, "\x01", `\{`, "", `\}`, "", `\$`, "", `\%`, "", `\#`, "", `\_`, "").Replace(body)
	require.NotContains(t, plain, "#")
	require.NotContains(t, plain, "%")
	depth, formula := 0, false
	for i, r := range plain {
		switch r {
		case '{':
			depth++
		case '}':
			depth--
		case '$':
			formula = !formula
		case '_', '^':
			require.True(t, formula, "a script outside a formula: %q", plain[max(0, i-20):min(len(plain), i+20)])
		case '<', '>', '|', '"':
			require.True(t, formula || i > 0 && plain[i-1] == '\\', "%q in running text", r)
		}
		require.GreaterOrEqual(t, depth, 0, "a brace is closed that is not open")
	}
	require.Zero(t, depth)
	require.False(t, formula)
	var open []string
	for _, m := range regexp.MustCompile(`\\(begin|end)\{(\w+\*?)\}`).FindAllStringSubmatch(plain, -1) {
		if m[1] == "begin" {
			open = append(open, m[2])
			continue
		}
		require.NotEmpty(t, open)
		require.Equal(t, open[len(open)-1], m[2])
		open = open[:len(open)-1]
	}
	require.Empty(t, open)
	requireRows(t, plain)
}

// requireRows counts the cells of every row of every tabular, and looks at its rules.
func requireRows(t require.TestingT, plain string) {
	for _, m := range regexp.MustCompile(`(?s)\\begin\{tabular\}\{(\w+)\}\n(.*?)\\end\{tabular\}`).
		FindAllStringSubmatch(plain, -1) {
		require.True(t, strings.HasPrefix(m[2], "\\toprule\n"))
		require.True(t, strings.HasSuffix(m[2], "\\bottomrule\n"))
		rules := regexp.MustCompile(`\\(toprule|midrule|bottomrule|cmidrule\(lr\)\{\d+-\d+\})`)
		rows := strings.Split(rules.ReplaceAllString(strings.ReplaceAll(m[2], `\&`, ""), ""), "\x01")
		require.Empty(t, strings.TrimSpace(rows[len(rows)-1]), "the last row ends")
		for _, row := range rows[:len(rows)-1] {
			row = strings.TrimSpace(row)
			require.False(t, strings.HasPrefix(row, "[") || strings.HasPrefix(row, "*"), "row %q", row)
			cells := 0
			for _, cell := range strings.Split(row, "&") {
				n := 1
				if span := regexp.MustCompile(`\\multicolumn\{(\d+)\}`).FindStringSubmatch(cell); span != nil {
					n, _ = strconv.Atoi(span[1])
				}
				cells += n
			}
			require.Equal(t, len(m[1]), cells, "row %q", row)
		}
	}
}

// Whatever texts a table has, LaTeX reads it.
func TestAnyTableIsLaTeX(t *testing.T) {
	signs := []rune("ab 01.,[]*()<>|\"'&%#_{}~^±×−≤θαℝ𝔼⊤’“–…\n")
	for r := range latexCommands {
		signs = append(signs, r)
	}
	slices.Sort(signs)
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.OneOf(
			rapid.StringOfN(rapid.SampledFrom(signs), 0, 12, -1),
			rapid.SampledFrom([]string{`$θ_t$ & \$5`, `$\|x\|_2 < \sqrt{y^⊤y}$`, "$γ̂$", "a γ̂", `$\argmin_α 𝔼 f$`}),
		)
		n := rapid.IntRange(1, 4).Draw(t, "columns")
		table := &Table{Note: texts.Draw(t, "note")}
		for range n {
			table.Columns = append(table.Columns, Column{
				Header: texts.Draw(t, "header"), Group: rapid.SampledFrom([]string{"", "g_1", "h"}).Draw(t, "group"),
			})
		}
		for range rapid.IntRange(0, 2).Draw(t, "blocks") {
			b := Block{Title: texts.Draw(t, "title")}
			for range rapid.IntRange(0, 2).Draw(t, "rows") {
				var row []Entry
				for range n {
					row = append(row, Entry{Text: texts.Draw(t, "entry"), Bold: rapid.Bool().Draw(t, "bold")})
				}
				b.Rows = append(b.Rows, row)
			}
			table.Blocks = append(table.Blocks, b)
		}
		f := Figure{Name: "t", Caption: texts.Draw(t, "caption"), Panels: [][]Panel{{{Table: table}}}}
		text, err := f.LaTeX()
		if err != nil { // no font has the sign
			require.ErrorContains(t, err, "no font here has")
			return
		}
		requireLaTeX(t, string(text))
	})
}

// Every symbol that a label can have has a command of LaTeX.
func TestEverySymbolIsLaTeX(t *testing.T) {
	for name, r := range symbols {
		text := latexText("$" + string(r) + "$ " + string(r))
		require.Less(t, slices.Max([]rune(text)), rune(128), `\%s is %q`, name, text)
	}
	require.Equal(t, "``numpy'' \\textless{} $\\hat{\\gamma}$ \\$5", latexText(`"numpy" < γ̂ \$5`))
}
