package plots

import (
	"bytes"
	"fmt"
	"image/png"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// table2 is shaped like Table 2 of Li+ 2021: twenty rows, ours and the paper's
// numbers on three data sets. Its numbers are made up.
func table2() *Table {
	t := &Table{
		Columns: []Column{{Header: "method"}},
		Note:    "Grey: the paper's numbers, and what was not run. $^†$ made up.",
	}
	for _, d := range []string{"CIFAR-10 (test)", "CIFAR-100 (test)", "ImageNet16-120 (test)"} {
		t.Columns = append(t.Columns, Column{Group: d, Header: "ours"}, Column{Group: d, Header: "paper"})
	}
	for b, title := range []string{
		"Regular HO, search on CIFAR-10", "Weight sharing, search on CIFAR-10", "Weight sharing, direct search", "",
	} {
		block := Block{Title: title}
		for i := range []int{4, 8, 6, 2}[b] {
			row := []Entry{{Text: []string{"REINFORCE", "GAEA DARTS (bilevel)", "DARTS$^†$ (ERM)"}[i%3]}}
			for c := range 6 {
				e := Entry{
					Text: fmt.Sprintf("%d.30 ± %d.%02d", 93-10*c, c/5*10*(i%2), 7*i),
					Grey: c%2 == 1,
					Bold: b == 1 && i == 7 && c%2 == 0,
				}
				switch {
				case b == 2 && c == 2:
					e = Entry{Text: "no data", Grey: true}
				case b == 3:
					e.Text = "94.37"
				}
				row = append(row, e)
			}
			block.Rows = append(block.Rows, row)
		}
		t.Blocks = append(t.Blocks, block)
	}
	return t
}

func tableFigure(style Style, t *Table) Figure {
	return Figure{Name: "table", Style: style, Panels: [][]Panel{{{Title: "a table", Table: t}}}}
}

func TestValidateOfTables(t *testing.T) {
	require.NoError(t, tableFigure(ICLR, table2()).Validate())
	for name, c := range map[string]struct {
		spoil func(*Table)
		wants []string
	}{
		"no columns": {func(t *Table) { t.Columns = nil }, []string{"no columns"}},
		"note":       {func(t *Table) { t.Note = "漢" }, []string{"note", "no font"}},
		"header":     {func(t *Table) { t.Columns[1].Header = "$" }, []string{`column 1 "$"`, "the end"}},
		"group":      {func(t *Table) { t.Columns[1].Group = "$" }, []string{`column 1 "ours"`, "the end"}},
		"align":      {func(t *Table) { t.Columns[1].Align = "top" }, []string{"column 1", `align "top"`, "center"}},
		"title":      {func(t *Table) { t.Blocks[2].Title = "$" }, []string{"block 2", "the end"}},
		"row": {func(t *Table) { t.Blocks[1].Rows[3] = nil },
			[]string{"block 1", "Weight sharing", "row 3", "0 entries", "7 columns"}},
		"entry": {func(t *Table) { t.Blocks[1].Rows[3][2].Text = "$" },
			[]string{"row 3", `column 2 "paper"`, "the end"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := tableFigure(ICLR, table2())
			c.spoil(f.Panels[0][0].Table)
			err := f.Validate()
			require.Error(t, err)
			for _, want := range append(c.wants, "plots: figure", "panel [0][0]", "table") {
				require.ErrorContains(t, err, want)
			}
		})
	}
}

func TestTableFitsThePage(t *testing.T) {
	for _, style := range []Style{ICML, ICLR, NeurIPS} {
		f := tableFigure(style, table2())
		requireTidy(t, f)
		l, err := newLayout(f)
		require.NoError(t, err)
		s, err := l.panels[0][0].box.(*tableBox).set(l, l.boxWidth(l.panels[0], 0))
		require.NoError(t, err)
		require.GreaterOrEqual(t, float64(s.size), 7., "legible at %s's width", style.Name)
		require.LessOrEqual(t, s.width(), l.width)
	}
	f := tableFigure(ICLR, table2())
	data, err := f.Render("png")
	require.NoError(t, err)
	config, err := png.DecodeConfig(bytes.NewReader(data))
	require.NoError(t, err)
	require.Equal(t, 1650, config.Width, "5.5 in at 300 dpi")
}

func TestTableThatDoesNotFit(t *testing.T) {
	f := tableFigure(ICML.Column(), table2())
	_, err := f.Render("svg")
	require.ErrorContains(t, err, `panel "a table": table: its 7 columns need`)
	require.ErrorContains(t, err, "in 6 pt text: found 231")
}

// entryBoxes draws a table of one number column and returns where the pieces
// of its entries are.
func entryBoxes(t *testing.T, entries ...Entry) [][]float64 {
	table := &Table{Columns: []Column{{Header: "m"}, {Header: "n"}}, Blocks: []Block{{}}}
	for _, e := range entries {
		table.Blocks[0].Rows = append(table.Blocks[0].Rows, []Entry{{}, e})
	}
	l, err := newLayout(tableFigure(ICLR, table))
	require.NoError(t, err)
	var rows [][]float64
	height := 1.0
	for _, box := range l.texts[3:] { // title and headers come first
		if float64(box.Max.Y) < height-5 {
			rows, height = append(rows, nil), float64(box.Max.Y)
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], float64(box.Min.X), float64(box.Max.X))
	}
	return rows
}

// Numbers stand with their signs, and their decimal points, below each other.
func TestNumbersAreAligned(t *testing.T) {
	rows := entryBoxes(t, Entry{Text: "93.92 ± 0.30"}, Entry{Text: "5.10 ± 10.22"}, Entry{Text: "94.37"},
		Entry{Text: "no data"}, Entry{Text: "93.92 ± 0.30", Bold: true})
	first, second, alone, text, bold := rows[0], rows[1], rows[2], rows[3], rows[4]
	const number, sign, spread = 0, 2, 4 // indices of their left ends
	require.InDelta(t, first[number+1], second[number+1], 1e-9, "numbers end at the sign")
	require.InDelta(t, first[number+1], alone[1], 1e-9, "also one without")
	require.InDelta(t, first[sign], second[sign], 1e-9)
	require.InDelta(t, first[spread+1], second[spread+1], 1e-9, "as many decimals: points below each other")
	require.Greater(t, first[spread], second[spread])
	require.InDelta(t, (first[sign]+first[sign+1])/2, (bold[sign]+bold[sign+1])/2, 1e-9)
	require.Less(t, bold[number], first[number], "bold is wider")
	require.Greater(t, text[0], first[number])
	require.Less(t, text[1], first[spread+1])
}

func TestBoldIsAnotherFont(t *testing.T) {
	require.Greater(t, float64(LatinModern.boldLine("93.92", 10).width), width("93.92"))
	theta := LatinModern.line("$θ$", 10)
	require.Equal(t, theta.glyphs, LatinModern.boldLine("$θ$", 10).glyphs, "letters of formulas stay")
	for _, r := range "0123456789.,±−+-% no data" {
		require.NotNil(t, LatinModern.lookupBold(r), "%c", r)
	}
	require.NotEqual(t, LatinModern.lookup('±'), LatinModern.lookupBold('±'))
}

// A header over several columns stands in their middle, and they make room for
// a long one.
func TestHeaderOfAGroup(t *testing.T) {
	table := &Table{
		Columns: []Column{
			{Header: "m"},
			{Header: "a", Group: strings.Repeat("long ", 9) + "header"},
			{Header: "b", Group: strings.Repeat("long ", 9) + "header"},
			{Header: "c"},
		},
		Blocks: []Block{{Rows: [][]Entry{{{Text: "x"}, {Text: "1"}, {Text: "2"}, {Text: "3"}}}}},
	}
	l := layout{small: 8}
	s, err := table.set(&l, 396)
	require.NoError(t, err)
	require.Len(t, s.groups(), 1)
	left, right := s.span(1, 2)
	require.GreaterOrEqual(t, float64(right-left), float64(s.groups()[0].header.width))
	require.InDelta(t, float64(LatinModern.line("b", s.size).width-LatinModern.line("a", s.size).width),
		float64(s.columns[2].width-s.columns[1].width), 1e-9, "both by as much")
	requireTidy(t, tableFigure(ICLR, table))
}

// Any table is drawn tidily, or refused with a reason.
func TestAnyTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SampledFrom(
			[]string{
				"",
				"x",
				"93.92 ± 0.30",
				"1 ± 10",
				"5",
				"−1.5",
				"not run",
				"$θ_t$ ± $1$",
				"±",
				"a ± b ± c",
				"a longer text",
			},
		)
		table := &Table{
			Note: rapid.SampledFrom([]string{"", "a note"}).Draw(t, "note"),
		}
		for range rapid.IntRange(1, 6).Draw(t, "columns") {
			table.Columns = append(table.Columns, Column{
				Header: rapid.SampledFrom([]string{"", "x", "two\nlines"}).Draw(t, "header"),
				Group:  rapid.SampledFrom([]string{"", "A", "a group"}).Draw(t, "group"),
				Align:  rapid.SampledFrom([]Align{AlignAuto, Left, Center, Right}).Draw(t, "align"),
			})
		}
		for range rapid.IntRange(0, 3).Draw(t, "blocks") {
			block := Block{Title: rapid.SampledFrom([]string{"", "a", "a title of some length"}).Draw(t, "title")}
			for range rapid.IntRange(0, 3).Draw(t, "rows") {
				var row []Entry
				for range table.Columns {
					row = append(
						row,
						Entry{
							Text: texts.Draw(t, "text"),
							Bold: rapid.Bool().Draw(t, "bold"),
							Grey: rapid.Bool().Draw(t, "grey"),
						},
					)
				}
				block.Rows = append(block.Rows, row)
			}
			table.Blocks = append(table.Blocks, block)
		}
		f := tableFigure(Style{Width: rapid.Float64Range(1, 8).Draw(t, "inches")}, table)
		require.NoError(t, f.Validate())
		data, err := f.Render("svg")
		if err != nil {
			require.ErrorContains(t, err, "table: ")
			return
		}
		require.NotContains(t, string(data), "NaN")
		requireTidy(t, f)
	})
}
