// Package gallery shows every figure, table and theorem as the project's shipped
// trials have it: as static pages, and as the notebook that JupyterLab opens
// first. It computes nothing.
package gallery

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/plots"
)

// Item is an entry with what its finished trials show.
type Item struct {
	catalog.Entry
	Setting catalog.Setting // at which it is drawn
	Fields  []catalog.Field
	Figure  plots.Figure // without panels where trials are open
	Claims  []runs.Claim
	Records []string
}

// Drawn says whether there is a picture.
func (it Item) Drawn() bool { return len(it.Figure.Panels) > 0 }

// Name is the stem of the entry's files, "li2021-figure1".
func (it Item) Name() string { return strings.ReplaceAll(it.ID, "/", "-") }

// State is how many claims hold, in words.
func (it Item) State() string {
	if !it.Drawn() {
		return "to compute"
	}
	count := map[runs.Verdict]int{}
	for _, c := range it.Claims {
		count[c.Holds]++
	}
	parts := []string{fmt.Sprintf("%d of %d claims hold", count[runs.Holds], len(it.Claims))}
	if n := count[runs.Fails]; n == 1 {
		parts = append(parts, "1 does not")
	} else if n > 1 {
		parts = append(parts, fmt.Sprintf("%d do not", n))
	}
	if n := count[runs.NotKnown]; n > 0 {
		parts = append(parts, fmt.Sprintf("%d undecided", n))
	}
	return strings.Join(parts, ", ")
}

// Sign is the state as one sign and a word for its colour.
func (it Item) Sign() (sign, class string) {
	has := func(v runs.Verdict) bool {
		return slices.ContainsFunc(it.Claims, func(c runs.Claim) bool { return c.Holds == v })
	}
	switch {
	case !it.Drawn():
		return "○", "open"
	case has(runs.Fails):
		return "✗", "fails"
	case has(runs.NotKnown):
		return "?", "undecided"
	}
	return "✓", "holds"
}

// Shipped is every entry as the shipped trials alone show it, whatever the
// user's store has: at the paper's scale where all of its trials are shipped,
// else at what else is shipped, else at quick scale.
func Shipped(ctx context.Context) ([]Item, error) {
	dir, err := os.MkdirTemp("", "nasml-gallery-*")
	if err != nil {
		return nil, fmt.Errorf("a place for an empty store: %w", err)
	}
	defer os.RemoveAll(dir)
	empty, err := runs.Open(dir)
	if err != nil {
		return nil, err
	}
	ctx = runs.WithStore(ctx, empty)
	var items []Item
	for _, e := range catalog.All() {
		it, err := itemOf(ctx, e)
		if err != nil {
			return nil, err
		}
		items = append(items, it)
	}
	return items, ctx.Err()
}

// itemOf draws an entry at the first setting of which all trials are there.
func itemOf(ctx context.Context, e catalog.Entry) (it Item, err error) {
	it = Item{Entry: e, Setting: catalog.Setting{Scale: catalog.Quick}}
	if it.Fields, err = e.Fields(); err != nil {
		return it, err
	}
	for _, s := range settingsOf(e) {
		r, err := e.Stored(ctx, s)
		var usage *catalog.UsageError
		if errors.As(err, &usage) {
			return it, err
		}
		if err != nil { // trials are open, or data are needed to know which they are
			continue
		}
		it.Setting, it.Figure, it.Claims, it.Records = s, r.Figure(), r.Check(), r.Records()
		break
	}
	return it, nil
}

// settingsOf are the settings that may be shipped, the best first.
func settingsOf(e catalog.Entry) []catalog.Setting {
	settings := []catalog.Setting{{Scale: catalog.Paper}}
	settings = append(settings, e.Shipped...)
	for _, scale := range e.Scales() {
		if scale != catalog.Paper && scale != catalog.Quick {
			settings = append(settings, catalog.Setting{Scale: scale})
		}
	}
	return append(settings, catalog.Setting{Scale: catalog.Quick})
}
