// Package gallery shows every figure, table and theorem as the shipped records have
// it: as static pages, as the notebook that JupyterLab opens first, and as the tables of
// the README and of the guide. It runs no trial.
package gallery

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

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
