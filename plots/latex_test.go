package plots

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTablesAsLaTeX(t *testing.T) {
	f := Figure{
		Name: "t", Caption: "50 % of $θ_t$; a_b ≤ 1.", Panels: [][]Panel{{{Table: &Table{
			Columns: []Column{
				{Header: "method"}, {Header: "valid", Group: "CIFAR-10"}, {Header: "test", Group: "CIFAR-10"},
			},
			Blocks: []Block{{Title: "top", Rows: [][]Entry{
				{{Text: "R&D"}, {Text: "93.9 ± 0.3", Bold: true}, {Text: "–"}},
			}}},
		}}}},
	}
	text, err := f.LaTeX()
	require.NoError(t, err)
	require.Equal(t, `% t; needs \usepackage{booktabs,graphicx}
\begin{table}
\centering
\begin{tabular}{lrr}
\toprule
\multicolumn{1}{c}{} & \multicolumn{2}{c}{CIFAR-10} \\
\cmidrule(lr){2-3}
method & valid & test \\
\midrule
\multicolumn{3}{l}{\itshape top} \\
R\&D & \textbf{93.9 $\pm$ 0.3} & -- \\
\bottomrule
\end{tabular}
\caption{50 \% of $\theta _t$; a\_b $\le$ 1.}
\end{table}
`, string(text))
	f.Panels[0] = append(f.Panels[0], Panel{Series: []Series{{X: []float64{1}, Y: []float64{1}}}})
	text, err = f.LaTeX()
	require.NoError(t, err)
	require.Contains(t, string(text), "\\includegraphics[width=6.75in]{t}\n\\caption")
	require.Contains(t, Formats(), "tex")
}

// What stands between the formulas of a paper keeps no sign that LaTeX would
// take for its own.
func TestLaTeXEscapes(t *testing.T) {
	require.Equal(t, `a\textbackslash{}b \{x\} \#1 \textasciitilde{}`, latexText(`a\b {x} #1 ~`))
	require.Equal(t, `$\|\theta \|_2$ and $\nabla$`, latexText(`$\|θ\|_2$ and ∇`))
}

func TestStylesByName(t *testing.T) {
	for name, width := range map[string]float64{
		"icml": 6.75, "icml/column": 3.25, "ICML/text": 6.75, "iclr": 5.5, "neurips/text": 5.5,
	} {
		s, err := StyleNamed(name)
		require.NoError(t, err, name)
		require.Equal(t, width, s.Width, name)
	}
	for _, name := range []string{"", "cvpr", "icml/page"} {
		_, err := StyleNamed(name)
		require.ErrorContains(t, err, "expected icml, iclr or neurips, with /column or /text", name)
	}
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
