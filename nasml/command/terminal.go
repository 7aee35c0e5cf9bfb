package command

import (
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/nasml/lab/nasml/runs"
)

// widthOf is the width of the terminal behind w; 0 if there is none.
func widthOf(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func (c console) table(rows [][]string, below ...string) error {
	_, err := io.WriteString(c.Out, grid{rows: rows}.String(0)+strings.Join(below, ""))
	return err
}

const gap = 2

// grid is a table of text that fits a width by dropping and shortening columns.
type grid struct {
	rows    [][]string // the head first
	drop    []string   // columns to leave out, the first one first
	shorten []string   // columns to shorten, the first one first
}

// String formats the table in at most width columns, if it can; 0: any.
func (g grid) String(width int) string {
	for _, name := range g.drop {
		if width > 0 && g.width() > width+g.slack() {
			g = g.without(name)
		}
	}
	for _, name := range g.shorten {
		if over := g.width() - width; width > 0 && over > 0 {
			g = g.shortened(name, over)
		}
	}
	sizes := g.sizes()
	var out strings.Builder
	for _, row := range g.rows {
		line := ""
		for i, cell := range row {
			line += cell + strings.Repeat(" ", sizes[i]-utf8.RuneCountInString(cell)+gap)
		}
		out.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return out.String()
}

func (g grid) sizes() []int {
	sizes := make([]int, len(g.rows[0]))
	for _, row := range g.rows {
		for i, cell := range row {
			sizes[i] = max(sizes[i], utf8.RuneCountInString(cell))
		}
	}
	return sizes
}

func (g grid) width() int {
	width := -gap
	for _, size := range g.sizes() {
		width += size + gap
	}
	return width
}

const leastText = 24

func (g grid) slack() int {
	slack, sizes := 0, g.sizes()
	for i, head := range g.rows[0] {
		if slices.Contains(g.shorten, head) {
			slack += max(0, sizes[i]-leastText)
		}
	}
	return slack
}

// changed applies change to every row; at is the column's index.
func (g grid) changed(name string, change func(row []string, at int) []string) grid {
	at := slices.Index(g.rows[0], name)
	if at < 0 {
		return g
	}
	rows := make([][]string, len(g.rows))
	for i, row := range g.rows {
		rows[i] = change(slices.Clone(row), at)
	}
	g.rows = rows
	return g
}

func (g grid) without(name string) grid {
	return g.changed(name, func(row []string, at int) []string { return slices.Delete(row, at, at+1) })
}

func (g grid) shortened(name string, over int) grid {
	sizes := g.sizes()
	return g.changed(name, func(row []string, at int) []string {
		row[at] = runs.Shortened(row[at], max(leastText, sizes[at]-over))
		return row
	})
}
