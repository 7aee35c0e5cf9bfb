// Package gallery shows every figure, table and theorem as the shipped records have
// it: as static pages, as the notebook that JupyterLab opens first, and as the tables of
// the README and of the guide. It runs no trial.
package gallery

import (
	"bytes"
	"cmp"
	"context"
	_ "embed" // the pages
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nasml/lab/internal/files"
	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/internal/claims"
	"github.com/nasml/lab/nasml/runs"
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
	settings := append([]catalog.Setting{{Scale: catalog.Paper}}, e.Shipped...)
	for _, scale := range e.Scales() {
		settings = append(settings, catalog.Setting{Scale: scale})
	}
	slices.SortStableFunc(settings, func(a, b catalog.Setting) int {
		return cmp.Compare(slices.Index(bySize, a.Scale), slices.Index(bySize, b.Scale))
	})
	return slices.CompactFunc(settings, func(a, b catalog.Setting) bool { return a.String() == b.String() })
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
