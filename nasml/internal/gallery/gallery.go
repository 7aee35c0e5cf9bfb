// Package gallery shows every figure, table and theorem as the shipped records have it: as static pages, as the
// notebook that JupyterLab opens first, and as the tables of the README and of the guide. It runs no trial.
package gallery

import (
	"bytes"
	"cmp"
	"context"
	_ "embed" // the pages
	"encoding/json"
	"fmt"
	"html"
	"html/template"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/nasml/lab/internal/files"
	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/internal/claims"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/plots"
)

// Gallery has every entry with its picture, and the ledger that verdicts are counted from. All pages use one Gallery,
// so that they agree.
type Gallery struct {
	Items  []Item
	Ledger *claims.Ledger
}

// Item is an entry with what its finished trials show.
type Item struct {
	catalog.Entry
	Setting catalog.Setting // at which it is drawn
	Fields  []catalog.Field
	Figure  plots.Figure // without panels if trials are missing
	Claims  []runs.Claim
	Records []string
	Tally   claims.Tally
}

// Drawn reports whether there is a picture.
func (it Item) Drawn() bool { return len(it.Figure.Panels) > 0 }

// Name is the stem of the entry's files, "li2021-figure1".
func (it Item) Name() string { return strings.ReplaceAll(it.ID, "/", "-") }

// Shown is the setting of the picture: "paper", "quick, Seeds=10", or "not run".
func (it Item) Shown() string {
	if !it.Drawn() {
		return string(claims.NotRun)
	}
	return strings.Join(append([]string{it.Setting.Scale}, it.Setting.Set...), ", ")
}

// Shipped is the gallery of the shipped records alone: each entry at the paper's scale if all its trials are shipped,
// else at another shipped setting, else at quick scale.
func Shipped(ctx context.Context) (*Gallery, error) {
	dir, err := os.MkdirTemp("", "nasml-gallery-*")
	if err != nil {
		return nil, fmt.Errorf("making an empty store: %w", err)
	}
	defer os.RemoveAll(dir)
	empty, err := runs.Open(dir)
	if err != nil {
		return nil, err
	}
	ctx = runs.WithStore(ctx, empty)
	ledger, err := claims.Read(ctx, claims.Options{})
	if err != nil {
		return nil, err
	}
	g := &Gallery{Ledger: ledger}
	for _, e := range catalog.All() {
		it, err := itemOf(ctx, e)
		if err != nil {
			return nil, err
		}
		it.Tally = ledger.Tally(e.ID)
		g.Items = append(g.Items, it)
	}
	return g, ctx.Err()
}

func itemOf(ctx context.Context, e catalog.Entry) (it Item, err error) {
	it = Item{Entry: e, Setting: catalog.Setting{Scale: catalog.Quick}}
	if it.Fields, err = e.Fields(); err != nil {
		return it, err
	}
	for _, s := range settingsOf(e) {
		r, err := e.Stored(ctx, s)
		if claims.NotThere(err) {
			continue
		}
		if err != nil {
			return it, fmt.Errorf("%s at %s: %w", e.ID, s, err)
		}
		it.Setting, it.Figure, it.Records = s, r.Figure(), r.Records()
		it.Claims = claims.Judged(e.ID, s.Scale, r.Check())
		break
	}
	return it, nil
}

func settingsOf(e catalog.Entry) []catalog.Setting {
	settings := e.AllSettings()
	slices.SortStableFunc(settings, func(a, b catalog.Setting) int {
		return cmp.Compare(slices.Index(bySize, a.Scale), slices.Index(bySize, b.Scale))
	})
	return settings
}

var bySize = []string{catalog.Paper, catalog.Large, catalog.Quick}

//go:embed page.html
var pageHTML string

var pages = template.Must(template.New("pages").Funcs(template.FuncMap{
	"claims": func(c []runs.Claim) template.HTML { return template.HTML(runs.ClaimHTML(c)) }, // escaped there
	"work":   func(paper string) catalog.Work { return catalog.Works[paper] },
}).Parse(pageHTML))

// formats are the files of a picture, the one on the page first.
var formats = []string{"svg", "pdf", "eps", "csv"}

func formatsOf(f plots.Figure) []string {
	for _, row := range f.Panels {
		if slices.ContainsFunc(row, func(p plots.Panel) bool { return p.Table != nil }) {
			return append(slices.Clone(formats), "tex")
		}
	}
	return formats
}

// Paper is the entries of one paper.
type Paper struct {
	Name  string
	Items []Item
}

// ByPaper keeps the order of the items.
func ByPaper(items []Item) (papers []Paper) {
	for _, of := range study.By(items, func(it Item) string { return it.Paper }) {
		papers = append(papers, Paper{of[0].Paper, of})
	}
	return papers
}

type pageOf struct {
	Item
	Alt   string
	Files []string // all but the picture on the page
}

const claimsPage = "claims.html"

// Write writes a page for every item, the ledger and an index into a folder. They need no network.
func (g *Gallery) Write(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("the gallery's folder: %w", err)
	}
	for _, it := range g.Items {
		page := pageOf{Item: it}
		if it.Drawn() {
			it.Figure.Name = it.Name() // its files are found by the entry
			files, err := it.Figure.Save(dir, formatsOf(it.Figure)...)
			if err != nil {
				return err
			}
			for _, file := range files[1:] {
				page.Files = append(page.Files, filepath.Base(file))
			}
			page.Alt = it.Figure.Alt()
			card := it.Thumbnail()
			card.Name = it.Card()
			if _, err := card.Save(dir, "svg"); err != nil {
				return err
			}
		}
		if err := write(filepath.Join(dir, it.Name()+".html"), "entry", page); err != nil {
			return err
		}
	}
	var ledger bytes.Buffer
	if err := g.Ledger.WriteHTML(&ledger); err != nil {
		return fmt.Errorf("%s: %w", claimsPage, err)
	}
	if err := files.WriteBytes(filepath.Join(dir, claimsPage), ledger.Bytes()); err != nil {
		return err
	}
	return write(filepath.Join(dir, "index.html"), "index", map[string]any{
		"Papers": ByPaper(g.Items), "Ledger": g.Ledger, "Claims": claimsPage,
	})
}

// Card is the name of the picture of the index.
func (it Item) Card() string { return it.Name() + "-card" }

func write(file, name string, data any) error {
	var out bytes.Buffer
	if err := pages.ExecuteTemplate(&out, name, data); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return files.WriteBytes(file, out.Bytes())
}

// Values are a parameter's defaults at the entry's scales.
func (it Item) Values(field int) []string {
	if len(it.Fields[field].Values) == 0 {
		return []string{"what the preset says"}
	}
	values := study.Map(it.Scales(), func(scale string) string { return string(it.Fields[field].Values[scale]) })
	if len(slices.Compact(slices.Clone(values))) == 1 {
		return values[:1]
	}
	return values
}

// Thumbnails is the folder of the index notebook's pictures, below notebooks.
const Thumbnails = "thumbnails"

// verdictsLine says what the words of the claims column mean.
const verdictsLine = "Verdicts come from the shipped results. A claim that was tested at a smaller size than the " +
	"paper's, or on a stand-in, is *reduced*; an interval that contains the threshold is *inconclusive*; a statement " +
	"that is wrong as printed is an *error in the paper*"

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
