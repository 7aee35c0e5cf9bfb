package plots

import (
	"fmt"
	"strings"
)

// LaTeX returns the figure for a paper's source: its tables as text, with the
// rules of package booktabs, and what is drawn as a picture that is included by
// the figure's name; below them the caption. It is for LuaLaTeX or XeLaTeX, or
// for pdfLaTeX: Greek letters and signs are written as commands.
func (f Figure) LaTeX() ([]byte, error) {
	if err := f.Validate(); err != nil {
		return nil, err
	}
	var out strings.Builder
	drawn := false
	for _, row := range f.Panels {
		for _, p := range row {
			if p.Table == nil {
				drawn = true
				continue
			}
			p.Table.latex(&out)
		}
	}
	float := "table"
	if drawn {
		float = "figure"
		fmt.Fprintf(&out, "\\includegraphics[width=%.4gin]{%s}\n", f.Style.filled().Width, f.Name)
	}
	caption := ""
	if f.Caption != "" {
		caption = "\\caption{" + latexText(f.caption()) + "}\n"
	}
	return fmt.Appendf(nil, "%% %s; needs \\usepackage{booktabs,graphicx}\n\\begin{%s}\n\\centering\n%s%s\\end{%s}\n",
		f.title(), float, out.String(), caption, float), nil
}

// latex writes the table as a tabular.
func (t *Table) latex(out *strings.Builder) {
	letters := map[Align]string{Left: "l", Center: "c", Right: "r"}
	var spec, heads []string
	for i, c := range t.Columns {
		align := c.Align
		if align == AlignAuto {
			if align = Right; i == 0 {
				align = Left
			}
		}
		spec = append(spec, letters[align])
		heads = append(heads, latexText(strings.ReplaceAll(c.Header, "\n", " ")))
	}
	fmt.Fprintf(out, "\\begin{tabular}{%s}\n\\toprule\n", strings.Join(spec, ""))
	t.latexGroups(out)
	fmt.Fprintf(out, "%s \\\\\n", strings.Join(heads, " & "))
	for _, b := range t.Blocks {
		out.WriteString("\\midrule\n")
		if b.Title != "" {
			fmt.Fprintf(out, "\\multicolumn{%d}{l}{\\itshape %s} \\\\\n", len(t.Columns), latexText(b.Title))
		}
		for _, row := range b.Rows {
			var cells []string
			for _, e := range row {
				cell := latexText(e.Text)
				if e.Bold && e.Text != "" {
					cell = "\\textbf{" + cell + "}"
				}
				cells = append(cells, cell)
			}
			fmt.Fprintf(out, "%s \\\\\n", strings.Join(cells, " & "))
		}
	}
	out.WriteString("\\bottomrule\n\\end{tabular}\n")
	if t.Note != "" {
		fmt.Fprintf(out, "\\par\\smallskip{\\footnotesize %s}\n", latexText(t.Note))
	}
}

// latexGroups writes the headers over neighbouring columns, where there are some.
func (t *Table) latexGroups(out *strings.Builder) {
	var cells, rules []string
	some := false
	for from := 0; from < len(t.Columns); {
		to := from + 1
		for to < len(t.Columns) && t.Columns[to].Group == t.Columns[from].Group {
			to++
		}
		group := t.Columns[from].Group
		cells = append(cells, fmt.Sprintf("\\multicolumn{%d}{c}{%s}", to-from, latexText(group)))
		if group != "" {
			some = true
			rules = append(rules, fmt.Sprintf("\\cmidrule(lr){%d-%d}", from+1, to))
		}
		from = to
	}
	if some {
		fmt.Fprintf(out, "%s \\\\\n%s\n", strings.Join(cells, " & "), strings.Join(rules, ""))
	}
}

// latexText is text as LaTeX wants it, with its formulas.
func latexText(text string) string {
	var out strings.Builder
	for i, part := range strings.Split(text, "$") {
		if i%2 == 1 {
			out.WriteString("$" + latexSigns(part, "", "") + "$")
			continue
		}
		out.WriteString(latexSigns(latexEscapes.Replace(part), "$", "$"))
	}
	return out.String()
}

var latexEscapes = strings.NewReplacer(`\`, `\textbackslash{}`, "&", `\&`, "%", `\%`, "#", `\#`, "_", `\_`,
	"{", `\{`, "}", `\}`, "~", `\textasciitilde{}`, "^", `\textasciicircum{}`)

// latexSigns writes signs as commands of mathematics, between the given marks.
func latexSigns(text, open, end string) string {
	var out strings.Builder
	for _, r := range text {
		if command, ok := latexCommands[r]; ok {
			out.WriteString(open + command + map[bool]string{true: " ", false: ""}[open == ""] + end)
			continue
		}
		if text, ok := latexLetters[r]; ok {
			out.WriteString(text)
			continue
		}
		out.WriteRune(r)
	}
	return out.String()
}

var latexLetters = map[rune]string{'–': "--", '—': "---", '’': "'", '…': `\ldots{}`}

var latexCommands = map[rune]string{
	'α': `\alpha`, 'β': `\beta`, 'γ': `\gamma`, 'δ': `\delta`, 'ε': `\varepsilon`, 'ζ': `\zeta`, 'η': `\eta`,
	'θ': `\theta`, 'κ': `\kappa`, 'λ': `\lambda`, 'μ': `\mu`, 'ν': `\nu`, 'ξ': `\xi`, 'π': `\pi`, 'ρ': `\rho`,
	'σ': `\sigma`, 'τ': `\tau`, 'φ': `\varphi`, 'χ': `\chi`, 'ψ': `\psi`, 'ω': `\omega`, 'Γ': `\Gamma`,
	'Δ': `\Delta`, 'Θ': `\Theta`, 'Λ': `\Lambda`, 'Σ': `\Sigma`, 'Φ': `\Phi`, 'Ω': `\Omega`, '∇': `\nabla`,
	'∂': `\partial`, '±': `\pm`, '×': `\times`, '·': `\cdot`, '≤': `\le`, '≥': `\ge`, '≠': `\ne`, '≈': `\approx`,
	'∞': `\infty`, '∈': `\in`, '→': `\to`, '−': `-`, '‖': `\|`, '√': `\surd`, '∑': `\sum`, '⟨': `\langle`,
	'⟩': `\rangle`, '²': `^2`, '³': `^3`, '°': `^\circ`, '★': `\star`, '⊙': `\odot`,
}
