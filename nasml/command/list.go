package command

import (
	"context"
	"fmt"
	"strings"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/internal/claims"
	"github.com/nasml/lab/nasml/runs"
)

type listCmd struct {
	JSON  bool   `name:"json" help:"Print JSON."`
	Paper string `complete:"paper" help:"Only those of this paper: khodak2020, li2021, oymak2021 or roberts, or a part of its name." placeholder:"PAPER"`
	Kind  string `help:"Only these: figure, table or theorem." enum:"figure,table,theorem," default:"" placeholder:"KIND"`
	State string `help:"Only those in this state, from what is shipped and stored: holds, fails (a claim does not hold), inconclusive (none fails, not all are decided), or open (trials are missing). any: all, with a column for it." enum:"holds,fails,inconclusive,open,any," default:"" placeholder:"STATE"`
	Scale string `complete:"scale" help:"Scale of --state: quick, paper, or large where a figure has one between them." default:"quick" env:"NASML_SCALE"`
}

// listed is an entry with its state, where that was asked for.
type listed struct {
	catalog.Entry
	State string `json:"state,omitempty"`
}

func (v *listCmd) Run(ctx context.Context, c console) error {
	readWithoutXLA(ctx)
	found := []listed{} // [] and not null where empty
	for _, e := range catalog.All() {
		if !v.wants(e) {
			continue
		}
		one := listed{Entry: e}
		if v.State != "" {
			var err error
			if one.State, err = stateOf(ctx, e, catalog.Setting{Scale: v.Scale}); err != nil {
				return err
			}
		}
		if v.State == "" || v.State == "any" || v.State == one.State {
			found = append(found, one)
		}
	}
	if v.JSON {
		return printJSON(c, "  ", found)
	}
	if len(found) == 0 {
		c.logf("no figure, table or theorem is like that: without flags, list shows all %d", len(catalog.All()))
	}
	_, err := fmt.Fprint(c.Out, v.table(found).String(widthOf(c.Out)))
	return err
}

func (v *listCmd) wants(e catalog.Entry) bool {
	return (v.Kind == "" || v.Kind == e.Kind) && (v.Paper == "" || strings.HasPrefix(e.ID, v.Paper+"/") ||
		strings.Contains(strings.ToLower(e.Paper), strings.ToLower(v.Paper)))
}

func (v *listCmd) table(found []listed) grid {
	g := grid{
		rows: [][]string{{"ID", "PAPER", "TITLE", "STATE", "QUICK", "PAPER SCALE", "NOTEBOOK"}},
		drop: []string{"NOTEBOOK", "PAPER", "PAPER SCALE"}, shorten: []string{"PAPER SCALE", "QUICK", "TITLE"},
	}
	for _, e := range found {
		g.rows = append(g.rows, []string{e.ID, e.Paper, e.Title, e.State, e.Cost.Quick, e.Cost.Paper, e.Notebook})
	}
	if v.State == "" {
		g = g.without("STATE")
	}
	return g
}

// stateOf summarizes an entry's finished trials: "open" if some are missing, else by its claims.
func stateOf(ctx context.Context, e catalog.Entry, s catalog.Setting) (string, error) {
	r, err := e.Stored(ctx, s)
	if claims.NotThere(err) {
		return "open", nil
	}
	if err != nil {
		return "", err
	}
	return together(r.Check()), nil
}

func together(all []runs.Claim) string {
	word := "holds"
	for _, claim := range all {
		switch claim.Holds {
		case runs.Fails:
			return "fails"
		case runs.NotKnown:
			word = "inconclusive"
		case runs.Holds:
		}
	}
	return word
}
