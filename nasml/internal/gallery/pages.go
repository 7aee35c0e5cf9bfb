package gallery

import (
	"bytes"
	_ "embed" // the pages
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"slices"

	"github.com/nasml/lab/internal/files"
	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/plots"
)

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
func ByPaper(items []Item) []Paper {
	var papers []Paper
	for _, it := range items {
		if len(papers) == 0 || papers[len(papers)-1].Name != it.Paper {
			papers = append(papers, Paper{Name: it.Paper})
		}
		last := &papers[len(papers)-1]
		last.Items = append(last.Items, it)
	}
	return papers
}

// pageOf is what a page shows of an item.
type pageOf struct {
	Item
	Alt   string
	Files []string // all but the picture on the page
}

// claimsPage is the file of the ledger.
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
	var values []string
	for _, scale := range it.Scales() {
		values = append(values, string(it.Fields[field].Values[scale]))
	}
	if len(slices.Compact(slices.Clone(values))) == 1 {
		return values[:1]
	}
	return values
}
