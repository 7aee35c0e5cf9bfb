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
	"github.com/nasml/lab/nasml/internal/claims"
	"github.com/nasml/lab/plots"
)

// Thumbnails is the folder of the index notebook's pictures, below notebooks.
const Thumbnails = "thumbnails"

// verdictsLine says what the words of the claims column mean.
const verdictsLine = "Verdicts come from the shipped results. A claim that was tested at a smaller size than the " +
	"paper's is *reduced*; an interval that contains the threshold is *inconclusive*; a statement that is wrong as " +
	"printed is an *error in the paper*"

// Index is the notebook that JupyterLab opens first: picture, title, verdicts, cost and a link for every item. It has
// no code.
func (g *Gallery) Index() ([]byte, error) {
	cells := []any{markdown("head", "# Four papers on weight-sharing NAS, figure by figure\n\n"+
		"**Start here**: open "+g.start()+", press *Run All*, change a line, and run it again. Then read "+
		"[how to vary an experiment](guide/vary.md), or run [an update, operation or space of your own]"+
		"(your_own.ipynb) beside DARTS, GAEA and random search.\n\n"+
		verdictsLine+", explained in [Findings](guide/findings.md). [Every claim, one by one](claims.ipynb).\n")}
	for i, paper := range ByPaper(g.Items) {
		text := "## " + paper.Name + "\n\n<table>\n" +
			"<tr><th></th><th>figure, table or theorem</th><th>claims</th><th>time</th></tr>\n"
		for _, it := range paper.Items {
			text += it.indexRow()
		}
		cells = append(cells, markdown(fmt.Sprintf("paper%d", i+1), text+"</table>\n"))
	}
	text, err := json.MarshalIndent(map[string]any{
		"cells": cells,
		"metadata": map[string]any{
			"kernelspec": map[string]string{"display_name": "Go (gonb)", "language": "go", "name": "gonb"},
			"language_info": map[string]string{ // all that the kernel says, so that JupyterLab has nothing to add
				"name": "go", "mimetype": "text/x-go", "file_extension": ".go", "pygments_lexer": "",
				"codemirror_mode": "", "nbconvert_exporter": "",
			},
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

func cell(text string) string {
	return strings.NewReplacer("|", "&#124;", "$", "&#36;", "*", "&#42;").Replace(html.EscapeString(text))
}

func (it Item) heading() string { return cell(strings.TrimPrefix(it.Title, it.Short()+": ")) }

// indexRow is HTML, because Markdown tables have no column widths: JupyterLab would shrink the pictures.
func (it Item) indexRow() string {
	link, _ := strings.CutPrefix(it.Notebook, "notebooks/")
	return fmt.Sprintf(`<tr><td width="%d">%s</td><td><b>%s</b><br><a href="%s">%s</a></td><td>%s</td>`+
		"<td>quick: %s<br>paper: %s</td></tr>\n", thumbnailWidth+20, it.picture("", thumbnailWidth), it.Short(), link,
		it.heading(), it.Tally, cell(it.Cost.Quick), cell(it.Cost.Paper))
}

// picture is the thumbnail, linked to the notebook. folder is the path to the notebooks.
func (it Item) picture(folder string, width int) string {
	if !it.Drawn() {
		return ""
	}
	link, _ := strings.CutPrefix(it.Notebook, "notebooks/")
	return fmt.Sprintf(`<a href="%s"><img src="%s" alt="%s" width="%d"></a>`,
		folder+link, folder+path.Join(Thumbnails, it.Name()+".png"), cell(it.Title), width)
}

// startID is the entry that a reader is sent to first: quick, with data that are part of the project.
const startID = "oymak2021/figure2"

func (g *Gallery) start() string {
	for _, it := range g.Items {
		if link, ok := strings.CutPrefix(it.Notebook, "notebooks/"); ok && it.ID == startID {
			return fmt.Sprintf("[%s of %s](%s)", it.Short(), it.Paper, link)
		}
	}
	return "a notebook"
}

// A thumbnail is shown at thumbnailWidth pixels in the index and at readmeWidth in the README.
const (
	thumbnailWidth = 320
	readmeWidth    = 180
	thumbnailDPI   = 90
)

// Thumbnail is the picture of the index, in which a caption could not be read.
func (it Item) Thumbnail() plots.Figure {
	f := it.Figure
	f.Name, f.Caption, f.Title = it.Name(), "", ""
	f.Style.DPI = thumbnailDPI
	return f
}

// WritePages writes the index notebook, its thumbnails, and the tables of the README and the guide.
func (g *Gallery) WritePages(root string) error {
	pages, err := g.Pages(root)
	if err != nil {
		return err
	}
	for name, text := range pages {
		if err := files.WriteBytes(filepath.Join(root, name), text); err != nil {
			return err
		}
	}
	dir := filepath.Join(root, "notebooks", Thumbnails)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("making the folder of the thumbnails: %w", err)
	}
	for _, it := range g.Items {
		if it.Drawn() {
			if _, err := it.Thumbnail().Save(dir, "png"); err != nil {
				return err
			}
		}
	}
	return nil
}

// Pages are the texts that WritePages writes, by path below root. Text outside a page's marks stays.
func (g *Gallery) Pages(root string) (map[string][]byte, error) {
	index, err := g.Index()
	if err != nil {
		return nil, err
	}
	pages := map[string][]byte{"notebooks/index.ipynb": index}
	for name, part := range map[string]func() string{"README.md": g.Summary, "notebooks/guide/figures.md": g.Figures} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return nil, fmt.Errorf("reading a page to fill in: %w", err)
		}
		if !marked.Match(text) {
			return nil, fmt.Errorf("%s has no part between %s and %s: put both marks around its table",
				name, begin, end)
		}
		pages[name] = marked.ReplaceAllLiteral(text, []byte(begin+"\n"+part()+end))
	}
	return pages, nil
}

// The marks around the generated part of a page.
const begin, end = "<!-- figures -->", "<!-- /figures -->"

var marked = regexp.MustCompile("(?s)" + begin + ".*" + end)

// Summary is the README's part: claims by verdict, and each paper's entries.
func (g *Gallery) Summary() string {
	text := g.totals()
	for _, paper := range ByPaper(g.Items) {
		text += "\n**" + paper.Name + "**\n\n| | | claims |\n|---|---|---|\n"
		for _, it := range paper.Items {
			text += fmt.Sprintf("| %s | [%s](%s): %s | %s |\n", it.picture("notebooks/", readmeWidth), it.Short(),
				it.Notebook, it.heading(), it.Tally)
		}
	}
	return text
}

func (g *Gallery) totals() string {
	head, rule := "| claims of |", "|---|"
	for _, v := range claims.Verdicts {
		head, rule = head+" "+string(v)+" |", rule+"---:|"
	}
	text := head + " all |\n" + rule + "---:|\n"
	for _, t := range g.Ledger.Totals() {
		text += "| " + t.Paper + " |"
		for _, v := range claims.Verdicts {
			text += fmt.Sprintf(" %d |", t.Of(v))
		}
		text += fmt.Sprintf(" %d |\n", t.All)
	}
	return text
}

// Figures is the guide's part: what every entry shows, and what it costs.
func (g *Gallery) Figures() string {
	text := "| | notebook | shown at | claims | quick scale | paper's scale |\n|---|---|---|---|---|---|\n"
	for _, it := range g.Items {
		link, _ := strings.CutPrefix(it.Notebook, "notebooks/")
		text += fmt.Sprintf("| %s, %s: %s | [`%s`](../%s) | %s | %s | %s | %s |\n", it.Paper, it.Short(),
			it.heading(), path.Base(link), link, it.Shown(), it.Tally, cell(it.Cost.Quick), cell(it.Cost.Paper))
	}
	return text
}

// numbered is the last part of an identifier such as "figure1-left".
var numbered = regexp.MustCompile(`^([a-z]+?)([0-9]*)(-.*)?$`)

// Short is an item's name in its paper, "Figure 1 left".
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
