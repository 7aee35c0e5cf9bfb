package gallery

import (
	"encoding/json"
	"fmt"
	"html"
	"os"
	"path"
	"path/filepath"
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
	picture := ""
	if it.Drawn() {
		picture = fmt.Sprintf(`<a href="%s"><img src="%s" alt="" width="180"></a>`,
			link, path.Join(Thumbnails, it.Name()+".png"))
	}
	sign, _ := it.Sign()
	cell := strings.NewReplacer("|", "&#124;", "$", "&#36;", "*", "&#42;").Replace
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
