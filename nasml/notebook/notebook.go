// Package notebook is what the cells of the notebooks call: it runs a figure,
// shows it with its claims, and ends cleanly when JupyterLab's Stop is pressed.
package notebook

import (
	"context"
	"errors"
	"fmt"
	"html"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/janpfeifer/gonb/gonbui"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/internal/claims"
	"github.com/nasml/lab/nasml/internal/findings"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/plots"
)

// Environment variables that the headless runs of the notebooks set.
const (
	ScaleEnv = "NASML_SCALE"        // "quick" (default) or "paper"
	DataEnv  = "NASML_OFFLINE_DATA" // "synthetic": the stand-in data if the real data are missing
)

// patience is how long the step under way has to end and to keep its
// checkpoint. GoNB kills the cell five seconds after Stop, without a word.
const patience = 3500 * time.Millisecond

// Preset is the quick parameters, or the paper's where $NASML_SCALE says
// "paper". Any other value ends the cell with an error.
func Preset[P any](quick, paper P) P {
	switch scale := os.Getenv(ScaleEnv); scale {
	case "", catalog.Quick:
		return quick
	case catalog.Paper:
		return paper
	default:
		fail(fmt.Errorf("$%s is %q: set it to %s or %s for a notebook; %s is for run, where a figure has it",
			ScaleEnv, scale, catalog.Quick, catalog.Paper, catalog.Large))
		panic("unreachable")
	}
}

// Data is the data set of that name, or the synthetic stand-in where
// $NASML_OFFLINE_DATA asks for it; the figure then says so.
func Data(name data.Name) data.Name {
	if os.Getenv(DataEnv) == string(data.Synthetic) {
		return data.Synthetic
	}
	return name
}

// DataHere is the data set of that name if all its files are on this machine. Else it is the
// synthetic stand-in, as with [Data], and the cell says so: nothing is downloaded.
func DataHere(name data.Name) data.Name {
	of, missing := here(name)
	if missing != "" {
		fmt.Println(missing)
	}
	return of
}

// here is the data set to take, and what to say if it is not the one that was asked for.
func here(name data.Name) (of data.Name, missing string) {
	if of = Data(name); of == data.Synthetic {
		return of, ""
	}
	files, err := data.Status(of)
	fail(err)
	for _, f := range files {
		if f.State != data.Present && f.State != data.Incomplete { // which may have all that is searched on
			return data.Synthetic, fmt.Sprintf("%s is not on this machine: synthetic images take its place. "+
				"`go tool nasml data %[1]s` in a terminal downloads it.", of)
		}
	}
	return of, ""
}

// kept remembers the shipped records that Run read, so that [Records] finds them.
var kept = runs.KeepShipped(context.Background())

// Run computes the trials that are not in the store of a figure and returns the result. Stop in JupyterLab (SIGINT)
// ends it after the step under way, or where that takes long, as compiling does, in the middle of it; finished trials
// stay stored. An error ends the cell with one line on standard error.
func Run[P any, R catalog.Result](figure func(context.Context, P) (R, error), p P) R {
	ctx, stop := signal.NotifyContext(kept, os.Interrupt, syscall.SIGTERM)
	defer stop()
	returned := make(chan struct{})
	go func() {
		<-ctx.Done()
		select {
		case <-returned:
		case <-time.After(patience):
			fail(errors.New("stopped within a step that cannot be interrupted, such as compiling; what was finished " +
				"is stored, run the cell again to go on"))
		}
	}()
	r, err := figure(ctx, p)
	close(returned)
	if errors.Is(err, context.Canceled) {
		err = errors.New("stopped; what was finished is stored, run the cell again to go on")
	}
	fail(err)
	return r
}

// Show displays a result's picture below the cell, and what it shows in words,
// which a reader opens: JupyterLab gives a picture no text of its own.
func Show(r catalog.Result) {
	f := r.Figure()
	if shown(f.Show()) {
		inCell(func() string {
			return "<details><summary><small>in words</small></summary><small>" + html.EscapeString(f.Alt()) +
				"</small></details>"
		})
	}
}

// shown reports whether a picture was shown, by the error of that; outside a notebook it says that none is.
func shown(err error) bool {
	if errors.Is(err, plots.ErrNoNotebook) {
		fmt.Println("(not in a notebook: no picture is shown)")
		return false
	}
	fail(err)
	return true
}

// Claims displays the paper's claims with our numbers and a verdict beside each.
func Claims(r catalog.Result) {
	table := r.Check()
	if e, scale, ok := catalog.Of(r); ok {
		table = claims.Judged(e.ID, scale, table)
	}
	if !inCell(func() string { return runs.ClaimHTML(table) }) {
		fmt.Print(runs.ClaimTable(table))
	}
}

// inCell displays a part of a page below the cell; false outside a notebook, where it is not made.
func inCell(part func() string) bool {
	if gonbui.IsNotebook {
		gonbui.DisplayHTML(part())
		gonbui.Sync() // a cell that ends at once would take its last output along
	}
	return gonbui.IsNotebook
}

// Ledger displays every claim of a paper, such as "li2021", or of all papers if it is
// empty, with what the run store and the shipped records say about it. The cell has to
// import package papers, which registers what judges them. It computes nothing.
func Ledger(paper string) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	l, err := claims.Read(ctx, claims.Options{Paper: paper})
	fail(err)
	if !inCell(func() string {
		part, err := l.HTML()
		fail(err)
		return part
	}) {
		fail(l.WriteText(os.Stdout, claims.Text{Width: 120}))
	}
}

// Findings displays what is wrong in the papers and in their authors' programs, see
// package findings. It computes nothing.
func Findings() {
	if !inCell(findings.HTML) {
		fmt.Print(findings.Markdown())
	}
}

// Export writes a result's picture into the folder dir, beside the notebook, and prints the
// paths, the size in inches and the smallest text. It takes formats, the venue's style and
// all that a [plots.Export] says, in any order; the caption goes beside the picture:
//
//	notebook.Export(r, "figures", "pdf", plots.ICML.Column())
//	notebook.Export(r, "figures", "pdf", "tex", "width=3.25in", plots.Export{NoReferences: true})
func Export(r catalog.Result, dir string, with ...any) {
	how, err := exportOf(with)
	fail(err)
	done, err := r.Figure().Export(dir, how)
	fmt.Println(done)
	fail(err)
}

func exportOf(with []any) (plots.Export, error) {
	var how plots.Export
	for _, w := range with {
		if e, ok := w.(plots.Export); ok {
			how = e
		}
	}
	for _, w := range with {
		switch w := w.(type) {
		case plots.Export:
		case plots.Style:
			how.Style = w
		case string:
			if slices.Contains(plots.Formats(), w) {
				how.Formats = append(how.Formats, w)
				continue
			}
			style, err := plots.StyleNamed(w)
			if err != nil {
				return how, fmt.Errorf("%w; or one of the formats %q", err, plots.Formats())
			}
			how.Style = style
		default:
			return how, fmt.Errorf("export: %v is a %T: expected a format such as \"pdf\", a plots.Style or "+
				"a plots.Export", w, w)
		}
	}
	return how, nil
}

// Records are the records that a result of [Run] is made of, as tables: every seed's curves, θ and architecture with
// the settings of its trial.
func Records(r catalog.Result) runs.Data {
	if r, ok := r.(interface{ Data() runs.Data }); ok {
		return r.Data()
	}
	records, err := runs.Lookup(kept, r.Records())
	fail(err)
	return runs.Data{Name: r.Figure().Name, Records: records}
}

// ExportData writes [Records] into the folder dir, beside the notebook, as "csv", "npz" or, if no format is named, as
// both, and prints the paths.
func ExportData(r catalog.Result, dir string, formats ...string) {
	printed(Records(r).Save(dir, formats...))
}

// printed prints the paths of files that were written.
func printed(files []string, err error) {
	fail(err)
	for _, file := range files {
		fmt.Println(file)
	}
}

// Animate displays an animation below the cell, with a button and a slider. It takes what a result's Animation returns.
func Animate(a plots.Animation, err error) {
	fail(err)
	shown(a.Show())
}

// ExportAnimation writes an animation into the folder dir, as a page ("html") and
// every frame in the other formats, and prints the paths.
func ExportAnimation(a plots.Animation, dir string, formats ...string) {
	printed(a.Save(dir, formats...))
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, said(err))
		os.Exit(1)
	}
}

// said is an error with what a reader of a notebook can do about it.
func said(err error) string {
	if errors.Is(err, data.ErrMissing) {
		return err.Error() + "; without it, `p.Data = data.Synthetic` runs the same cell on made-up images, and " +
			"data.MNIST has a few thousand digits that travel with the project"
	}
	return err.Error() + catalog.DidYouMean(err) + lower(err.Error())
}

// tooHigh is how a search says which step size to lower.
var tooHigh = regexp.MustCompile(`lower (its rate|LearningRate) \(now ([^)]+)\)`)

// lower is the line that lowers the step size of a search that has diverged, as ": type
// `p.LearningRate = 0.0025`"; else it is empty.
func lower(message string) string {
	found := tooHigh.FindStringSubmatch(message)
	if found == nil {
		return ""
	}
	rate, err := strconv.ParseFloat(found[2], 64)
	if err != nil {
		return ""
	}
	field := map[string]string{"its rate": "ArchRate", "LearningRate": "LearningRate"}[found[1]]
	return fmt.Sprintf(": type `p.%s = %.2g`", field, rate/10)
}

// Answer displays a question with its answer in words, from the claims of a result: all that
// it has, or those whose name contains one of the texts in about:
//
//	notebook.Answer("Does GAEA still win without skip connections?", r, "GAEA DARTS (bilevel) above")
//
// The answer is yes where all of them hold, no where none does, and open where the runs do not
// tell; each claim stands below it with its number, its interval and its note.
func Answer(question string, r catalog.Result, about ...string) {
	text, err := answer(question, r.Check(), about)
	fail(err)
	if !inCell(func() string {
		lines := strings.Split(strings.TrimSpace(html.EscapeString(text)), "\n")
		return "<p><b>" + lines[0] + "</b></p><ul><li>" + strings.Join(lines[1:], "</li><li>") + "</li></ul>"
	}) {
		fmt.Print(text)
	}
}

func answer(question string, claims []runs.Claim, about []string) (string, error) {
	chosen := claimsAbout(claims, about)
	if len(chosen) == 0 {
		names := study.Map(claims, func(c runs.Claim) string { return c.Name })
		return "", fmt.Errorf("no claim of this result is about %q: take a part of one of the names %q", about, names)
	}
	text := question + " " + yesOrNo(chosen) + "\n"
	for _, c := range chosen {
		text += sentence(c) + "\n"
	}
	return text, nil
}

// claimsAbout are the claims whose name contains one of the texts; all if there is none.
func claimsAbout(claims []runs.Claim, about []string) []runs.Claim {
	return slices.DeleteFunc(slices.Clone(claims), func(c runs.Claim) bool {
		in := func(text string) bool { return strings.Contains(c.Name, text) }
		return len(about) > 0 && !slices.ContainsFunc(about, in)
	})
}

func yesOrNo(claims []runs.Claim) string {
	count := map[runs.Verdict]int{}
	for _, c := range claims {
		count[c.Holds]++
	}
	n := len(claims)
	switch {
	case count[runs.Holds] == n:
		return "Yes."
	case count[runs.Fails] == n:
		return "No."
	case count[runs.NotKnown] == n:
		return "These runs do not tell."
	}
	return fmt.Sprintf("Not as a whole: %d of %d statements hold, %d do not hold, %d are inconclusive.",
		count[runs.Holds], n, count[runs.Fails], count[runs.NotKnown])
}

func sentence(c runs.Claim) string {
	text := strings.TrimPrefix(c.Name, "own: ")
	if c.Ours.Valid() {
		text += ": " + c.Ours.String()
		if c.Lo.Valid() && c.Hi.Valid() {
			text += fmt.Sprintf(" [%v, %v]", c.Lo, c.Hi)
		}
		text += ", " + c.Holds.String()
	}
	if c.Note != "" {
		text += ". " + c.Note
	}
	return text
}
