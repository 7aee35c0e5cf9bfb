package command

import (
	"context"
	"fmt"
	"path/filepath"

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
	readWithoutXLA(ctx)
	shipped, err := gallery.Shipped(runs.WithProgress(ctx, runs.Silent))
	if err != nil {
		return err
	}
	if err := shipped.Write(v.Out); err != nil {
		return err
	}
	_, err = fmt.Fprintln(c.Out, filepath.Join(v.Out, "index.html"))
	return err
}
