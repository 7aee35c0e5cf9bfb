package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/internal/claims"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
)

type showCmd struct {
	ID   string `arg:"" name:"id" complete:"figure" help:"Figure, table or theorem, as the verb list names it."`
	JSON bool   `name:"json" help:"Print JSON."`
}

// shown is all that is known of an entry without computing anything.
type shown struct {
	catalog.Entry
	Parameters []catalog.Field `json:"parameters"`
	Results    []shownResult   `json:"results"`
}

type shownResult struct {
	Setting string       `json:"setting"` // as the flags of run say it
	Open    int          `json:"open"`    // trials that have to be computed; −1: not known without its data
	Claims  []runs.Claim `json:"claims"`  // none where trials are open
	Records []string     `json:"records"`
}

func (v *showCmd) Run(ctx context.Context, c console) error {
	e, err := catalog.Lookup(v.ID)
	if err != nil {
		return err
	}
	readWithoutXLA(ctx)
	s := shown{Entry: e}
	if s.Parameters, err = e.Fields(); err != nil {
		return err
	}
	for _, setting := range e.AllSettings() {
		found, err := storedResult(ctx, e, setting)
		if err != nil {
			return err
		}
		s.Results = append(s.Results, found)
	}
	if v.JSON {
		return printJSON(c, "  ", s)
	}
	return s.print(c)
}

// storedResult reads what is finished. It returns an error if that cannot be read.
func storedResult(ctx context.Context, e catalog.Entry, s catalog.Setting) (shownResult, error) {
	found := shownResult{Setting: s.String(), Claims: []runs.Claim{}, Records: []string{}}
	r, err := e.Stored(ctx, s)
	open, some := errors.AsType[*catalog.OpenError](err)
	switch {
	case some:
		found.Open = open.Open
	case claims.NotThere(err):
		found.Open = -1
	case err != nil:
		return found, err
	default:
		found.Claims = append(found.Claims, claims.Judged(e.ID, s.Scale, r.Check())...)
		found.Records = append(found.Records, r.Records()...)
	}
	return found, nil
}

func (s shown) print(c console) error {
	width := widthOf(c.Out)
	var out bytes.Buffer
	for _, text := range []string{
		fmt.Sprintf("%s: %s (%s)", s.ID, s.Title, s.Paper),
		fmt.Sprintf("%s; quick: %s; paper: %s", s.Kind, s.Cost.Quick, s.Cost.Paper),
		s.Notebook,
		catalog.Works[s.Paper].Title,
		catalog.Works[s.Paper].URL,
	} {
		for _, line := range claims.Wrap(text, width) {
			fmt.Fprintln(&out, line)
		}
	}
	fmt.Fprint(&out, "\nParameters, for --set NAME=VALUE:\n")
	for _, f := range s.Parameters {
		fmt.Fprintf(&out, "\n  %s: %s\n", f.Name, strings.TrimSuffix(f.Type+", "+f.Limits, ", "))
		for _, line := range claims.Wrap(f.Meaning, max(0, width-6)) {
			fmt.Fprintf(&out, "      %s\n", line)
		}
		fmt.Fprintf(&out, "      %s\n", defaults(f, s.Scales(), max(0, width-8)))
	}
	for _, r := range s.Results {
		fmt.Fprintf(&out, "\n%s: %s\n", r.Setting, r.standing())
		for line := range strings.Lines(runs.ClaimTable(r.Claims)) {
			if len(r.Claims) > 0 {
				fmt.Fprint(&out, "  ", line)
			}
		}
	}
	_, err := c.Out.Write(out.Bytes())
	return err
}

func (r shownResult) standing() string {
	switch {
	case r.Open < 0:
		return "its data are needed to see how far it is"
	case r.Open > 0:
		return study.Counted(r.Open, "trial") + " to compute"
	}
	return fmt.Sprintf("%d records, %s", len(r.Records), together(r.Claims))
}

// defaults are a parameter's values at each scale, one if all are the same.
func defaults(f catalog.Field, scales []string, width int) string {
	if len(f.Values) == 0 {
		return "default: what the preset says"
	}
	same := true
	var parts []string
	for _, scale := range scales {
		same = same && bytes.Equal(f.Values[scale], f.Values[scales[0]])
		parts = append(parts, scale+" "+abridged(f.Values[scale], width))
	}
	if same {
		return "default " + abridged(f.Values[scales[0]], width)
	}
	return strings.Join(parts, ", ")
}

// abridged shortens a value to most characters; 0: does not.
func abridged(value json.RawMessage, most int) string {
	if most < 10 {
		return string(value)
	}
	return runs.Shortened(string(value), most)
}

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
