package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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
	for _, setting := range settingsOf(e) {
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

func settingsOf(e catalog.Entry) []catalog.Setting {
	var settings []catalog.Setting
	for _, scale := range e.Scales() {
		settings = append(settings, catalog.Setting{Scale: scale})
	}
	for _, s := range e.Shipped {
		if !slices.ContainsFunc(settings, func(has catalog.Setting) bool { return has.String() == s.String() }) {
			settings = append(settings, s)
		}
	}
	return settings
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
	return shortened(string(value), most)
}
