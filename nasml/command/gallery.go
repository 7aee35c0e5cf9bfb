package command

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/nasml/lab/nasml/claims"
	"github.com/nasml/lab/nasml/gallery"
	"github.com/nasml/lab/nasml/runs"
)

type galleryCmd struct {
	Out string `help:"Folder for the pages (default: gallery)." default:"gallery" placeholder:"DIR"`
}

// Run writes the pages from what is shipped.
func (v *galleryCmd) Run(ctx context.Context, c console) error {
	if err := tryFolder(v.Out); err != nil {
		return err
	}
	items, err := gallery.Shipped(ctx)
	if err != nil {
		return err
	}
	ledger, err := claims.Read(runs.WithProgress(ctx, runs.Silent), claims.Options{})
	if err != nil {
		return err
	}
	const page = "claims.html"
	if err := writePage(filepath.Join(v.Out, page), ledger); err != nil {
		return err
	}
	if err := gallery.Write(v.Out, items, map[string]string{"The papers' claims, one by one": page}); err != nil {
		return err
	}
	_, err = fmt.Fprintln(c.Out, filepath.Join(v.Out, "index.html"))
	return err
}
