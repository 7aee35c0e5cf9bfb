package command

import (
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// widthOf is how many columns the terminal behind w has; 0 if there is none.
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

// gap is the space between two columns.
const gap = 2

// grid is a table of text with a head. It fits a width by leaving columns out
// and by shortening some.
type grid struct {
	rows    [][]string // the head first
	drop    []string   // columns to leave out, the first one first
	shorten []string   // columns to shorten, the first one first
}

// String is the table in lines of at most width columns, as far as dropping and
// shortening can do it; 0: of any.
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
		var line strings.Builder
		for i, cell := range row {
			line.WriteString(cell + strings.Repeat(" ", sizes[i]-utf8.RuneCountInString(cell)+gap))
		}
		out.WriteString(strings.TrimRight(line.String(), " ") + "\n")
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

// column is the position of a column, −1 if there is none.
func (g grid) column(name string) int {
	for i, head := range g.rows[0] {
		if head == name {
			return i
		}
	}
	return -1
}

// leastText is what is kept of a shortened column, in characters.
const leastText = 24

// slack is how much narrower the columns can get that are shortened.
func (g grid) slack() int {
	slack, sizes := 0, g.sizes()
	for _, name := range g.shorten {
		if at := g.column(name); at >= 0 {
			slack += max(0, sizes[at]-leastText)
		}
	}
	return slack
}

func (g grid) without(name string) grid {
	at := g.column(name)
	if at < 0 {
		return g
	}
	rows := make([][]string, len(g.rows))
	for i, row := range g.rows {
		rows[i] = append(append([]string{}, row[:at]...), row[at+1:]...)
	}
	g.rows = rows
	return g
}

// shortened takes characters off the widest cells of a column.
func (g grid) shortened(name string, over int) grid {
	at := g.column(name)
	if at < 0 {
		return g
	}
	most := max(leastText, g.sizes()[at]-over)
	rows := make([][]string, len(g.rows))
	for i, row := range g.rows {
		rows[i] = append([]string{}, row...)
		if letters := []rune(row[at]); len(letters) > most {
			rows[i][at] = string(letters[:most-1]) + "…"
		}
	}
	g.rows = rows
	return g
}

// wrap breaks text into lines of at most width characters, between words.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case width > 0 && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width:
			lines = append(lines, line)
			line = word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}
