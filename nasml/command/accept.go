package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/nasml/lab/internal/files"
	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/internal/accept"
)

type storeAccept struct {
	Kind    []string      `arg:"" complete:"none" optional:"" help:"Kinds of trials, such as li2021/search (default: all whose source is not accepted)."`
	Longest time.Duration `help:"Longest time that a trial may have taken to be computed again." default:"5m"`
	Unshown bool          `help:"Accept kinds of which no trial is shipped, so that nothing can be compared."`
	DryRun  bool          `help:"Only say what would be computed."`
}

var errMoved = errors.New(
	"not accepted: the source computes other numbers, so its trials are recomputed under a new version")

// Run recomputes shipped trials of changed code and accepts the code if the numbers agree.
func (v *storeAccept) Run(ctx context.Context, c console, s *site) error {
	open, err := accept.Open(v.Kind)
	if err != nil {
		return catalog.Usagef("%v", err)
	}
	if len(open) == 0 {
		_, err := fmt.Fprintln(c.Out, "all sources are accepted")
		return err
	}
	if err := ensurePlugin(ctx, c); err != nil {
		return err
	}
	for _, k := range open { // before the first key is made
		k.Assume()
	}
	shipped, notes, err := accept.Shipped(ctx)
	if err != nil {
		return err
	}
	for _, note := range notes {
		c.logf("%s", note)
	}
	var failed []error
	for _, k := range open {
		err := v.one(ctx, c, k, shipped, filepath.Join(s.Root, filepath.FromSlash(code.LedgerFile)))
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", k.Name(), err))
		}
	}
	return errors.Join(failed...)
}

func (v *storeAccept) one(ctx context.Context, c console, k *code.Kind, shipped accept.ByVersion, ledger string) error {
	version, err := k.Version()
	if err != nil {
		return err
	}
	source, err := k.Source()
	if err != nil {
		return err
	}
	picked, left := accept.Pick(shipped[version], source, v.Longest.Seconds())
	_, _ = fmt.Fprintf(c.Out, "%s: %d of %d shipped trials, about %.0f s\n", k.Name(), len(picked),
		len(shipped[version]), accept.Seconds(picked))
	for _, branch := range left {
		_, _ = fmt.Fprintf(c.Out, "  not computed: %s\n", branch)
	}
	if v.DryRun {
		return nil
	}
	if len(picked) == 0 && !v.Unshown {
		return errors.New(
			"no shipped trial was found that could show a difference: ship one, set NASML_DATA to a folder with the " +
				"data, or give --unshown")
	}
	moved, largest, err := accept.Recompute(ctx, picked, func(text string) { c.logf("%s", text) })
	if err != nil {
		return err
	}
	for _, d := range moved {
		_, _ = fmt.Fprintf(c.Out, "  %v\n", d)
	}
	if len(moved) > 0 {
		return errMoved
	}
	switch {
	case len(picked) == 0:
		_, _ = fmt.Fprintln(c.Out, "  accepted: no trial is shipped that could show a difference")
	case largest == 0:
		_, _ = fmt.Fprintln(c.Out, "  accepted: all numbers are the same bit for bit")
	default:
		_, _ = fmt.Fprintf(c.Out, "  accepted: the largest relative difference is %.2g, %.2g is allowed in float32\n",
			largest, accept.Tolerance)
	}
	return addToLedger(ledger, k.Name(), source)
}

func addToLedger(file, kind, source string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	l, err := code.ParseLedger(text)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	l.Accept(kind, source)
	if text, err = l.Text(); err != nil {
		return err
	}
	return files.WriteBytes(file, string(text))
}
