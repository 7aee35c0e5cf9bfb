package command

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/nasml/lab/nasml/internal/claims"
	"github.com/nasml/lab/nasml/internal/gallery"
	"github.com/nasml/lab/nasml/runs"
)

type claimsCmd struct {
	Paper string `complete:"paper" help:"Only a paper's rows: li2021, roberts, oymak2021, khodak2020, or the beginning of its name." placeholder:"PAPER"`
	Scale string `help:"Only checks at a scale: quick, large or paper (default: all, of which the largest decides)." enum:",quick,large,paper" default:"" placeholder:"SCALE"`
	JSON  bool   `name:"json" xor:"form" help:"Print JSON: a list of rows with all their checks."`
	CSV   bool   `name:"csv" xor:"form" help:"Print CSV: a line for every check of a row."`
	Short bool   `xor:"form" help:"Print the totals only: of every paper, and of every figure, table and theorem."`
	HTML  string `name:"html" xor:"form" help:"Write one HTML page to a file, - for stdout." placeholder:"FILE"`
}

// Help says what the words of the table mean.
func (*claimsCmd) Help() string {
	return `Prints a row for each claim of the four papers with what the run store and the shipped records say about it.
Nothing is computed. Verdicts are

  holds, does not hold   at the paper's scale
  inconclusive           the confidence interval contains the threshold, or a part was not run
  reduced                shown at a smaller size than the paper's or on a stand-in, with what it says there
  not run                a check exists, its trials do not
  error in the paper     the statement is wrong as printed: see notebooks/guide/findings.md
  not judged             no check exists, and the row says why

  go tool nasml claims --paper li2021 | less
  go tool nasml claims --json | jq -r '.[] | select(.checks == []) | [.id, .reason] | @tsv'`
}

func (v *claimsCmd) Run(ctx context.Context, c console) error {
	readWithoutXLA(ctx)
	begin := time.Now()
	ledger, err := claims.Read(ctx, claims.Options{Paper: v.Paper, Scale: v.Scale})
	if err != nil {
		return err
	}
	if err := v.write(c, ledger); err != nil {
		return err
	}
	c.logf("%d rows, %d checks of this implementation beside them, read in %.1f s", len(ledger.Lines), len(ledger.Own),
		time.Since(begin).Seconds())
	return nil
}

func (v *claimsCmd) write(c console, l *claims.Ledger) error {
	switch {
	case v.JSON:
		return l.WriteJSON(c.Out)
	case v.CSV:
		return l.WriteCSV(c.Out)
	case v.Short:
		return l.WriteTotals(c.Out)
	case v.HTML == "-":
		return l.WriteHTML(c.Out)
	case v.HTML != "":
		return writePage(v.HTML, l)
	}
	colour := isTerminal(c.Out) && os.Getenv("NO_COLOR") == ""
	return l.WriteText(c.Out, claims.Text{Width: columns(c.Out), Colour: colour})
}

// writePage writes the page into the file itself: a link, device or pipe stays what it is.
func writePage(file string, l *claims.Ledger) error {
	var page bytes.Buffer
	if err := l.WriteHTML(&page); err != nil {
		return err
	}
	return os.WriteFile(file, page.Bytes(), 0o666)
}

// columns is the width of the terminal, else $COLUMNS, else 120, at most 160.
func columns(w io.Writer) int {
	const usual, most = 120, 160
	set, _ := strconv.Atoi(os.Getenv("COLUMNS")) // 0 where it is no number
	return min(cmp.Or(widthOf(w), max(0, set), usual), most)
}

type galleryCmd struct {
	Out string `help:"Folder for the pages (default: gallery, or one in the user's cache folder where this one is only readable)." placeholder:"DIR"`
}

func (v *galleryCmd) Run(ctx context.Context, c console) error {
	out, err := outFolder(c, v.Out, "gallery")
	if err != nil {
		return err
	}
	readWithoutXLA(ctx)
	shipped, err := gallery.Shipped(runs.WithProgress(ctx, runs.Silent))
	if err != nil {
		return err
	}
	if err := shipped.Write(out); err != nil {
		return err
	}
	_, err = fmt.Fprintln(c.Out, filepath.Join(out, "index.html"))
	return err
}
