package gallery

import (
	"encoding/json"
	"fmt"
	"html"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/nasml/lab/internal/files"
)

// Thumbnails is the folder of the index notebook's pictures, below notebooks.
const Thumbnails = "thumbnails"

// Index is the notebook that JupyterLab opens first: a picture, the title, the
// state, the cost and a link for every item. It has no code, so that it is there
// at once.
func Index(items []Item) ([]byte, error) {
	cells := []any{markdown("head", "# Four papers on weight-sharing NAS, figure by figure\n\n"+
		"Open a notebook, press *Run All*, change a line, and run it again. ✓ all claims hold, ✗ some do not, "+
		"? some are undecided, ○ to compute.\n")}
	for i, paper := range ByPaper(items) {
		text := "## " + paper.Name + "\n\n| | | state | quick | paper |\n|---|---|---|---|---|\n"
		for _, it := range paper.Items {
			text += row(it)
		}
		cells = append(cells, markdown(fmt.Sprintf("paper%d", i+1), text))
	}
	text, err := json.MarshalIndent(map[string]any{
		"cells": cells,
		"metadata": map[string]any{
			"kernelspec":    map[string]string{"display_name": "Go (gonb)", "language": "go", "name": "gonb"},
			"language_info": map[string]string{"name": "go"},
		},
		"nbformat": 4, "nbformat_minor": 5,
	}, "", " ")
	return append(text, '\n'), err
}

func markdown(id, text string) map[string]any {
	return map[string]any{
		"cell_type": "markdown", "id": id, "metadata": map[string]any{}, "source": strings.SplitAfter(text, "\n"),
	}
}

// row is a line of the index's table.
func row(it Item) string {
	link, _ := strings.CutPrefix(it.Notebook, "notebooks/")
	cell := strings.NewReplacer("|", "&#124;", "$", "&#36;", "*", "&#42;").Replace
	picture := ""
	if it.Drawn() {
		picture = fmt.Sprintf(`<a href="%s"><img src="%s" alt="%s" width="180"></a>`,
			link, path.Join(Thumbnails, it.Name()+".png"), cell(html.EscapeString(it.Title)))
	}
	sign, _ := it.Sign()
	return fmt.Sprintf("| %s | [%s](%s) | %s %s | %s | %s |\n", picture, cell(html.EscapeString(it.Title)), link,
		sign, it.State(), cell(it.Cost.Quick), cell(it.Cost.Paper))
}

// WriteIndex writes index.ipynb and its pictures into the folder of the
// notebooks.
func WriteIndex(notebooks string, items []Item) error {
	text, err := Index(items)
	if err != nil {
		return err
	}
	dir := filepath.Join(notebooks, Thumbnails)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("a folder for the thumbnails: %w", err)
	}
	for _, it := range items {
		if !it.Drawn() {
			continue
		}
		it.Figure.Name, it.Figure.Caption, it.Figure.Title = it.Name(), "", ""
		it.Figure.Style.DPI = 50 // twice the width that it is shown in
		if _, err := it.Figure.Save(dir, "png"); err != nil {
			return err
		}
	}
	return files.WriteBytes(filepath.Join(notebooks, "index.ipynb"), text)
}

// Summary is a table for a README: a line for every paper, with the sign, the
// short name and the notebook of each of its items.
func Summary(items []Item) string {
	text := "| paper | figures, tables and theorems |\n|---|---|\n"
	for _, paper := range ByPaper(items) {
		var links []string
		for _, it := range paper.Items {
			sign, _ := it.Sign()
			links = append(links, fmt.Sprintf("%s [%s](%s)", sign, it.Short(), it.Notebook))
		}
		text += fmt.Sprintf("| %s | %s |\n", paper.Name, strings.Join(links, " · "))
	}
	return text
}

// numbered is the last part of an identifier such as "figure1-left".
var numbered = regexp.MustCompile(`^([a-z]+?)([0-9]*)(-.*)?$`)

// Short is what an item is called in its paper, "Figure 1 left", or what it is
// about where the paper has no such figure.
func (it Item) Short() string {
	_, name, _ := strings.Cut(it.ID, "/")
	part := numbered.FindStringSubmatch(name)
	if part == nil {
		return name
	}
	number := part[2]
	if len(number) > 1 { // of a section
		number = number[:1] + "." + number[1:]
	}
	words := strings.Fields(strings.ToUpper(part[1][:1]) + part[1][1:] + " " + number +
		strings.ReplaceAll(part[3], "-", " "))
	return strings.Join(words, " ")
}
