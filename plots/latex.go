package plots

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gonum.org/v1/plot/vg"
)

// LaTeX returns the figure for a paper's source: an included picture, and every table as a float with booktabs' rules.
// Floats that need both columns are starred; tables wider than the page are scaled. It works with pdfLaTeX, LuaLaTeX
// and XeLaTeX: Greek letters and signs are commands.
func (f Figure) LaTeX() ([]byte, error) {
	if err := f.Validate(); err != nil {
		return nil, err
	}
	f = f.called(Title)
	var floats strings.Builder
	caption, note, drawn := latexText(f.caption()), "", false
	panels := slices.Concat(f.Panels...)
	if slices.ContainsFunc(panels, func(p Panel) bool { return p.Table == nil }) {
		style := f.Style.filled()
		float(&floats, "figure", style.Width > style.ColumnWidth, caption, "fig:"+f.Name,
			fmt.Sprintf("\\includegraphics[width=%.4gin]{%s}\n", style.Width, f.Name))
		drawn = true
	}
	tables := 0
	for _, p := range panels {
		if p.Table == nil {
			continue
		}
		label := "tab:" + f.Name
		if tables++; tables > 1 {
			label += fmt.Sprint("-", tables)
		}
		title := latexText(p.Title)
		switch {
		case drawn:
			note = "; the picture shows the tables, too: keep one"
		case tables == 1 && caption != "":
			title = strings.TrimSpace(title + " " + caption)
		}
		text, wide := p.Table.latex(f.Style.filled())
		float(&floats, "table", wide, title, label, text)
	}
	return fmt.Appendf(nil, "%% %s (%s); needs \\usepackage{amsmath,amssymb,booktabs,graphicx}%s\n%s",
		f.title(), strings.Join(f.meta(), " "), note, floats.String()), nil
}

// float writes a figure or table environment, starred if wide. A table's caption comes first.
func float(out *strings.Builder, kind string, wide bool, caption, label, body string) {
	name := kind
	if wide {
		name += "*"
	}
	if caption != "" {
		caption = "\\caption{" + caption + "}\n"
	}
	caption += "\\label{" + label + "}\n"
	if kind == "table" {
		caption, body = "", caption+body
	}
	fmt.Fprintf(out, "\\begin{%s}\n\\centering\n%s%s\\end{%[1]s}\n", name, body, caption)
}

const (
	latexSmall = 0.9 // \small over \normalsize
	latexGap   = 4   // \tabcolsep, in pt, at each side of a column
)

// latex returns the tabular and whether it needs both columns.
func (t *Table) latex(style Style) (text string, wide bool) {
	var out strings.Builder
	fmt.Fprintf(&out, "\\small\n\\setlength{\\tabcolsep}{%dpt}\n", latexGap)
	width := t.latexWidth(style)
	wide = width > style.ColumnWidth && style.ColumnWidth < style.TextWidth
	if fits := max(style.ColumnWidth, style.TextWidth); width > fits {
		fmt.Fprintf(&out, "\\resizebox{\\linewidth}{!}{")
		defer func() { text = strings.Replace(text, "\\end{tabular}\n", "\\end{tabular}}\n", 1) }()
	}
	t.tabular(&out)
	if t.Note != "" {
		fmt.Fprintf(&out, "\\par\\smallskip{\\footnotesize %s}\n", latexText(t.Note))
	}
	return out.String(), wide
}

// latexWidth is the tabular's approximate width in inches.
func (t *Table) latexWidth(style Style) float64 {
	width := vg.Length(0)
	for _, c := range t.setIn(style.Font, latexSmall*vg.Length(style.Body)).columns {
		width += c.width + 2*latexGap
	}
	return float64(width) / 72
}

func (t *Table) tabular(out *strings.Builder) {
	letters := map[Align]string{Left: "l", Center: "c", Right: "r"}
	spec, lines := "", 0
	for i, c := range t.Columns {
		spec += letters[t.align(i)]
		lines = max(lines, 1+strings.Count(c.Header, "\n"))
	}
	fmt.Fprintf(out, "\\begin{tabular}{%s}\n\\toprule\n", spec)
	t.latexGroups(out)
	for line := range lines {
		var heads []string
		for _, c := range t.Columns {
			head := strings.Split(c.Header, "\n")
			text := ""
			if at := line - lines + len(head); at >= 0 {
				text = latexText(head[at])
			}
			heads = append(heads, text)
		}
		writeRow(out, heads)
	}
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
			writeRow(out, cells)
		}
	}
	out.WriteString("\\bottomrule\n\\end{tabular}\n")
}

func writeRow(out *strings.Builder, cells []string) {
	fmt.Fprintf(out, "%s \\\\\n", firstCell(strings.Join(cells, " & ")))
}

// firstCell keeps a row's start from being read as an argument of the command before it.
func firstCell(row string) string {
	if strings.HasPrefix(row, "[") || strings.HasPrefix(row, "*") {
		return "{}" + row
	}
	return row
}

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

// latexText escapes text for LaTeX and keeps its formulas. It is ASCII if every sign has a command.
func latexText(text string) string {
	var out strings.Builder
	formula := false
	for _, part := range splitDollars(text) {
		if formula {
			out.WriteString("$" + latexSigns(latexFunctions.Replace(part), true) + "$")
		} else {
			out.WriteString(latexSigns(latexQuotes(latexEscapes.Replace(part)), false))
		}
		formula = !formula
	}
	return out.String()
}

// splitDollars alternates between running text and formulas; "\$" is text.
func splitDollars(text string) []string {
	const dollar = "\x00"
	parts := strings.Split(strings.ReplaceAll(text, `\$`, dollar), "$")
	for i, part := range parts {
		parts[i] = strings.ReplaceAll(part, dollar, map[bool]string{true: `\$`, false: "$"}[i%2 == 1])
	}
	return parts
}

var latexEscapes = strings.NewReplacer(`\`, `\textbackslash{}`, "&", `\&`, "%", `\%`, "#", `\#`, "_", `\_`,
	"{", `\{`, "}", `\}`, "~", `\textasciitilde{}`, "^", `\textasciicircum{}`, "$", `\$`,
	"<", `\textless{}`, ">", `\textgreater{}`, "|", `\textbar{}`, "\n", " ")

// latexFunctions are the functions of formulas that LaTeX does not know.
var latexFunctions = strings.NewReplacer(`\argmin`, `\operatorname{arg\,min}`, `\argmax`, `\operatorname{arg\,max}`,
	`\tr`, `\operatorname{tr}`)

func latexQuotes(text string) string {
	var out strings.Builder
	open := true
	for _, r := range text {
		if r != '"' {
			out.WriteRune(r)
			continue
		}
		out.WriteString(map[bool]string{true: "``", false: "''"}[open])
		open = !open
	}
	return out.String()
}

// combiningHat stands behind the letter that it is over.
const combiningHat = '\u0302'

// latexSigns writes signs as math commands, between dollar signs outside a formula.
func latexSigns(text string, formula bool) string {
	var out strings.Builder
	runes := []rune(text)
	for i, r := range runes {
		hat := i+1 < len(runes) && runes[i+1] == combiningHat
		command, known := latexCommands[r]
		switch letters, isText := latexLetters[r]; {
		case r == combiningHat:
		case isText && !hat:
			out.WriteString(letters)
		case !known && !hat:
			out.WriteRune(r)
		default:
			if !known {
				command = string(r)
			}
			if hat {
				command = `\hat{` + command + `}`
			}
			if formula {
				out.WriteString(command + " ")
			} else {
				out.WriteString("$" + command + "$")
			}
		}
	}
	return out.String()
}

var latexLetters = map[rune]string{
	'–': "--", '—': "---", '’': "'", '‘': "`", '“': "``", '”': "''", '…': `\ldots{}`, '†': `\dag{}`,
	'é': `\'e`, 'ö': `\"o`, 'ü': `\"u`, 'ß': `\ss{}`, '\u00a0': "~",
}

// latexCommands are the shortest commands of [symbols], and those of signs that have none there.
var latexCommands = func() map[rune]string {
	all := map[rune]string{}
	for name, r := range symbols {
		if command := `\` + name; all[r] == "" || len(command) < len(all[r]) {
			all[r] = command
		}
	}
	maps.Copy(all, map[rune]string{
		'ο': `o`, 'ς': `\varsigma`, 'ℝ': `\mathbb{R}`, 'ℕ': `\mathbb{N}`, '𝔼': `\mathbb{E}`, 'ℙ': `\mathbb{P}`,
		'ℤ': `\mathbb{Z}`, '𝓛': `\mathcal{L}`, '⋅': `\cdot`, '⇒': `\Rightarrow`, '−': `-`, '‖': `\|`, '√': `\surd`,
		'²': `^2`, '³': `^3`, '¹': `^1`, '°': `^\circ`, '★': `\star`, '′': `{}^\prime`, '✓': `\checkmark`,
	})
	return all
}()
